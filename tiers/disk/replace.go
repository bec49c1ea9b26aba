package disk

import (
	"errors"

	"varve/core"
	"varve/core/segment"
)

// ErrSource says that the source of a replacement no longer holds the span that it should.
var ErrSource = errors.New("disk: source of a replacement does not verify over its span")

// copyBytes is how much a replacement gathers before it is written.
const copyBytes = 1 << 20

func (s *Store) replace(r *core.Result, e *core.Replace) (done bool, err error) {
	name := s.segmentName(e.Header.Base, e.Header.ID)
	if r.Stage > 0 {
		return s.finishTmp(r, name, r.Stage)
	}
	source, file, err := s.openSource(r, e)
	if err != nil {
		return false, err
	}
	if err = s.openTmp(r, name); err == nil {
		if err = s.copySpan(r, e, source); err != nil {
			s.dropTmp(name)
		}
	}
	if file != nil {
		_ = file.Close() // opened for reading only
	}
	return false, err
}

// Batches gives the batches of a span one by one. An error that matches ErrSource says that they are not
// those that were expected; any other, that they could not be read.
type Batches interface {
	// Next returns the next one; b.Raw is valid until the next call. False: there are no more.
	Next(b *segment.Batch) (more bool, err error)
}

// Streams gives the batches of extents of the warm tier.
type Streams interface {
	Batches(x *core.Extent) Batches
}

// SetStreams says where extents of the warm tier are read. It is called before any of them is.
func (s *Store) SetStreams(w Streams) { s.streams = w }

// openSource opens what a replacement is copied from.
func (s *Store) openSource(r *core.Result, e *core.Replace) (Batches, File, error) {
	x := &e.Object
	var f scanned
	switch x.Tier {
	case core.TierWarm:
		return s.streams.Batches(x), nil, nil
	case core.TierCold:
		f.file = s.objects.OpenObject(x)
		f.sf = segment.ScanFile{
			Source: f.file, Bytes: x.Bytes, ID: x.Segment, Base: x.Base, LogID: e.Header.LogID, SectorBytes: int(x.Sector),
		}
	default:
		var err error
		if f, err = s.openScan(r, &e.Source, e.Header.LogID, int(e.Header.SectorBytes)); err != nil {
			return nil, nil, err
		}
	}
	if err := s.hot.scanner.Start(&f.sf); err != nil {
		_ = f.file.Close() // opened for reading only
		return nil, nil, failed(r, core.StepRead, err)
	}
	return &s.hot.scanner, f.file, nil
}

// copySpan writes the whole replacement into the tmp file.
func (s *Store) copySpan(r *core.Result, e *core.Replace, source Batches) error {
	w := &s.hot.rewrite
	out := w.Begin(s.hot.buf[:0], &e.Header, e.Frontier, e.IndexSpacingBytes)
	pos := int64(0)
	b := &s.hot.batch
	for w.End() < e.Header.End {
		more, err := source.Next(b)
		switch {
		case errors.Is(err, ErrSource):
			return failed(r, core.StepCheck, err)
		case err != nil:
			return failed(r, core.StepRead, err)
		}
		if more && b.Identity.End() <= e.Header.Base {
			continue
		}
		i := &b.Identity
		if !more || i.Base != w.End() || i.End() > e.Header.End || i.Epoch != e.SourceEpoch ||
			b.First && i.Base != e.Header.Base {
			return failed(r, core.StepCheck, ErrSource)
		}
		if len(out) > 0 && len(out)+len(b.Raw) > copyBytes {
			if err := writeAll(s.hot.tmp, &s.hot.bufs, out, pos); err != nil {
				return failed(r, core.StepWrite, err)
			}
			pos, out = pos+int64(len(out)), out[:0]
		}
		out = w.Add(out, b)
		e.AppendTime = i.AppendTime
	}
	out, e.Bytes = w.Finish(out)
	e.Producers = w.AppendProducers(e.Producers[:0])
	s.hot.buf = out
	if err := writeAll(s.hot.tmp, &s.hot.bufs, out, pos); err != nil {
		return failed(r, core.StepWrite, err)
	}
	return nil
}
