package disk

import (
	"errors"

	"varve/core"
	"varve/core/segment"
)

// errSource says that the source of a replacement no longer holds the span that it should.
var errSource = errors.New("disk: source of a replacement does not verify over its span")

// copyBytes is how much a replacement gathers before it is written.
const copyBytes = 1 << 20

func (s *Store) replace(r *core.Result, e *core.Replace) (done bool, err error) {
	name := s.segmentName(e.Header.Base, e.Header.ID)
	if r.Stage > 0 {
		return s.finishTmp(r, name, r.Stage)
	}
	f, err := s.openSource(r, e)
	if err != nil {
		return false, err
	}
	if err = s.openTmp(r, name); err == nil {
		if err = s.copySpan(r, e, &f.sf); err != nil {
			s.dropTmp(name)
		}
	}
	_ = f.file.Close()
	return false, err
}

// openSource opens what a replacement is copied from.
func (s *Store) openSource(r *core.Result, e *core.Replace) (scanned, error) {
	x := &e.Object
	if x.Tier != core.TierCold {
		return s.openScan(r, &e.Source, e.Header.LogID, int(e.Header.SectorBytes))
	}
	file := s.objects.OpenObject(x)
	return scanned{file: file, sf: segment.ScanFile{
		Source: file, Bytes: x.Bytes, ID: x.Segment, Base: x.Base, LogID: e.Header.LogID, SectorBytes: int(x.Sector),
	}}, nil
}

// copySpan writes the whole replacement into the tmp file.
func (s *Store) copySpan(r *core.Result, e *core.Replace, sf *segment.ScanFile) error {
	scan, w := &s.hot.scanner, &s.hot.rewrite
	if err := scan.Start(sf); err != nil {
		return failed(r, core.StepRead, err)
	}
	out := w.Begin(s.hot.buf[:0], &e.Header, e.Frontier, e.IndexSpacingBytes)
	pos := int64(0)
	var b segment.Batch
	for w.End() < e.Header.End {
		more, err := scan.Next(&b)
		if err != nil {
			return failed(r, core.StepRead, err)
		}
		if more && b.Identity.End() <= e.Header.Base {
			continue
		}
		i := &b.Identity
		if !more || i.Base != w.End() || i.End() > e.Header.End || i.Epoch != e.SourceEpoch ||
			b.First && i.Base != e.Header.Base {
			return failed(r, core.StepCheck, errSource)
		}
		if len(out) > 0 && len(out)+len(b.Raw) > copyBytes {
			if err := writeAll(s.hot.tmp, &s.hot.bufs, out, pos); err != nil {
				return failed(r, core.StepWrite, err)
			}
			pos, out = pos+int64(len(out)), out[:0]
		}
		out = w.Add(out, &b)
	}
	out, e.Bytes = w.Finish(out)
	s.hot.buf = out
	if err := writeAll(s.hot.tmp, &s.hot.bufs, out, pos); err != nil {
		return failed(r, core.StepWrite, err)
	}
	return nil
}
