package varve

import (
	"context"
	"errors"
	"iter"
	"time"

	"varve/core"
	"varve/core/segment"
	"varve/tiers/disk"
)

// ReadOptions configure a Reader. The zero value of every field is its default.
type ReadOptions struct {
	// Bytes is about how much is read ahead, and with that the memory of the reader; default
	// 128 KiB. A batch longer than that is still read whole.
	Bytes int
}

const readBytes = 128 << 10

// BatchView is one verified batch, as a reader hands it out: valid until the reader's next step.
type BatchView struct {
	Span       Span
	Epoch      uint64
	Kind       uint8 // KindRecords or KindKafka
	Records    uint32
	AppendTime time.Time
	MaxTime    time.Time
	Producer   Producer
	Payload    []byte
}

// Reader reads whole batches in order, from any position to the live tail. It holds one open file
// and one buffer, and never blocks a writer. One goroutine at a time may use it.
type Reader struct {
	source source
	bytes  int
	cursor core.Cursor
	handle disk.Handle

	batch core.CursorBatch // the one that Record walks
	iter  segment.RecordIter
	rec   segment.Record
	from  int64 // records below it are left out
	next  int64 // offset of the next record of iter
}

// source is what a Reader reads: a Log, or what an inspection found.
type source interface {
	// look returns what may be read now: committed first, so that the view covers it.
	look() (committed int64, v *core.View, err error)
	// fetch carries out a fetch.
	fetch(f *core.Fetch, h *disk.Handle) error
	// startAt returns a batch boundary of an extent before which every record is older than t.
	startAt(x *core.Extent, log segment.LogID, t int64, h *disk.Handle) int64
	// damaged reports damage that a reader met.
	damaged(d *CorruptError)
	// awaitMore waits until more is committed than a given offset, or says why it will not be.
	awaitMore(ctx context.Context, than int64) error
}

// NewReader returns a reader that starts at a position. A batch that begins below it is handed out
// whole; Record leaves out what is below.
func (l *Log) NewReader(from Position, o ReadOptions) *Reader { return newReader(l, from, o) }

func newReader(s source, from Position, o ReadOptions) *Reader {
	r := &Reader{source: s, bytes: o.Bytes}
	if r.bytes <= 0 {
		r.bytes = readBytes
	}
	r.Seek(from)
	return r
}

// Seek moves the reader to another position.
func (r *Reader) Seek(p Position) {
	r.cursor.Reset(p.core())
	r.iter.Reset(nil, 0)
	r.batch = core.CursorBatch{}
	r.from = p.Offset
}

// Position returns where the reader stands: behind the last batch that it handed out.
func (r *Reader) Position() Position { return positionOf(r.cursor.Position()) }

// Close closes the reader's file. It does not move the reader, which may go on.
func (r *Reader) Close() error { return r.handle.Close() }

// Poll returns the next committed batch, or false if there is none yet. Errors: *TrimmedError,
// *DivergedError, *CorruptError, *IOError, ErrClosed. After an error the reader stands where it
// stood, and may be asked again.
func (r *Reader) Poll() (b BatchView, ok bool, err error) {
	if ok, err = r.poll(); !ok {
		return b, false, err
	}
	return r.view(), true, nil
}

// Next returns the next batch and waits for it if need be. It ends with the context's error, with
// ErrClosed when the log is closed, with ErrPoisoned at the end of a poisoned log, or as Poll does.
func (r *Reader) Next(ctx context.Context) (BatchView, error) {
	if err := r.wait(ctx); err != nil {
		return BatchView{}, err
	}
	return r.view(), nil
}

// Record returns the next record of the batch that Poll or Next returned last, and false behind its
// last one. An error is a payload that verifies but is malformed, or not of KindRecords.
func (r *Reader) Record() (rec Record, ok bool, err error) {
	ok, err = r.record(&rec)
	return rec, ok, err
}

func (r *Reader) poll() (bool, error) {
	for {
		if b, ok := r.cursor.Batch(); ok {
			r.batch = b
			if b.Kind == segment.KindRecords {
				r.iter.Reset(b.Payload, b.Records)
			}
			r.next = b.Base
			return true, nil
		}
		committed, v, err := r.source.look()
		if err != nil {
			return false, err
		}
		f, err := r.cursor.Next(v, committed, r.bytes)
		if err != nil {
			var damage *CorruptError
			if errors.As(err, &damage) {
				if !damage.Lost {
					r.source.damaged(damage)
				}
				if _, now, err := r.source.look(); err == nil && now.Version != v.Version {
					continue // another tier may hold what is damaged
				}
			}
			return false, err
		}
		if f == nil {
			return false, nil
		}
		if err := r.cursor.Complete(f, r.source.fetch(f, &r.handle)); err != nil {
			return false, err
		}
	}
}

func (r *Reader) wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		ok, err := r.poll()
		if ok || err != nil {
			return err
		}
		if err := r.source.awaitMore(ctx, r.cursor.Position().Offset); err != nil {
			return err
		}
	}
}

func (r *Reader) view() BatchView {
	b := &r.batch
	return BatchView{
		Span: Span{First: b.Base, End: b.End()}, Epoch: uint64(b.Epoch), Kind: b.Kind, Records: b.Records,
		AppendTime: time.Unix(0, b.AppendTime), MaxTime: time.Unix(0, b.MaxTime), Payload: b.Payload,
		Producer: Producer{ID: b.ProducerID, Epoch: b.ProducerEpoch, Sequence: b.Sequence},
	}
}

// record decodes the next record at or above from.
func (r *Reader) record(rec *Record) (bool, error) {
	if r.batch.Records > 0 && r.batch.Kind != segment.KindRecords {
		return false, r.malformed("payload kind 1 (records)", "another kind")
	}
	for r.iter.Next(&r.rec) {
		offset := r.next
		r.next++
		if offset < r.from {
			continue
		}
		rec.Key, rec.Value, rec.Headers = r.rec.Key, r.rec.Value, r.rec.Headers
		rec.Time = time.Unix(0, r.rec.Time)
		rec.Offset, rec.Epoch = offset, uint64(r.batch.Epoch)
		return true, nil
	}
	if err := r.iter.Err(); err != nil {
		return false, r.malformed("a payload of records", err.Error())
	}
	return false, nil
}

// Malformed returns the error of the batch that Poll or Next returned last for whoever decodes its payload, of
// another kind than KindRecords, and finds something else there than expected.
func (r *Reader) Malformed(expected, found string) *CorruptError { return r.malformed(expected, found) }

// malformed is the error of a payload whose checksum is right and whose content is not.
func (r *Reader) malformed(expected, found string) *CorruptError {
	d := &CorruptError{
		Segment: r.batch.Segment, Base: r.batch.Base, Pos: r.batch.Pos, Offset: r.next, End: r.batch.End(),
		Expected: expected, Found: found,
	}
	if _, v, err := r.source.look(); err == nil { // the file's name begins with its base offset
		for i := range v.Extents {
			if x := &v.Extents[i]; x.Segment == d.Segment {
				d.Base = x.Base
			}
		}
	}
	return d
}

// records yields records up to an offset, or for ever.
func (r *Reader) records(ctx context.Context, end int64, yield func(Record, error) bool) {
	defer r.Close() //nolint:errcheck // opened for reading only
	var rec Record
	for r.cursor.Position().Offset < end {
		if err := r.wait(ctx); err != nil {
			yield(Record{}, err)
			return
		}
		for {
			ok, err := r.record(&rec)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !ok || rec.Offset >= end {
				break
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// Records yields the records from a position up to what is committed at the call, in order. An
// error is yielded last. Key, Value and Headers are valid until the next step: see Record.Clone.
func (l *Log) Records(ctx context.Context, from Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := l.NewReader(from, ReadOptions{})
		end, v, err := l.look()
		if err == nil && from.Offset >= end { // nothing to read, but it may have diverged
			_, err = r.cursor.Next(v, end, 0)
		}
		if err != nil {
			yield(Record{}, err)
			return
		}
		r.records(ctx, end, yield)
	}
}

// Follow yields the records from a position on and waits for more. It ends with an error, yielded
// last: the context's, ErrClosed, or ErrPoisoned when all that is committed was yielded.
func (l *Log) Follow(ctx context.Context, from Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l.NewReader(from, ReadOptions{}).records(ctx, core.EndNone, yield)
	}
}

func (l *Log) look() (int64, *core.View, error) {
	if l.shut.Load() {
		return 0, nil, ErrClosed
	}
	committed := l.committed.Load()
	return committed, l.view.Load(), nil
}

func (l *Log) fetch(f *core.Fetch, h *disk.Handle) error {
	if f.Pos == 0 && !f.NoIndex && f.Extent.Index == core.IndexCore {
		l.mu.Lock()
		if pos, _, ok := l.core.Locate(f.Extent.Segment, f.From); ok {
			f.Pos = pos
		}
		l.mu.Unlock()
	}
	err := l.store.Fetch(f, h)
	l.reads[f.Extent.Tier].Add(int64(len(f.Buf)))
	return err
}

func (l *Log) startAt(x *core.Extent, log segment.LogID, t int64, h *disk.Handle) int64 {
	if x.Index == core.IndexCore {
		l.mu.Lock()
		base, ok := l.core.LocateTime(x.Segment, t)
		l.mu.Unlock()
		if ok {
			return base
		}
	}
	return startInFile(l.store, x, log, t, h)
}

// startInFile looks into the file of an extent. Where that fails, the whole extent is looked through.
func startInFile(s *disk.Store, x *core.Extent, log segment.LogID, t int64, h *disk.Handle) int64 {
	_, base, err := s.OffsetForTime(x, log, t, h)
	if err != nil {
		return x.First
	}
	return base
}

func (l *Log) awaitMore(ctx context.Context, than int64) error {
	return l.await(ctx, func() (bool, error) {
		if l.shut.Load() {
			return false, ErrClosed
		}
		if l.core.Committed() > than {
			return true, nil
		}
		return false, l.ended()
	})
}

// OffsetAt returns the position of the first record whose time is not before t; that of the end if
// there is none. Times need not rise with offsets. What a repair declared lost is passed over.
func (l *Log) OffsetAt(ctx context.Context, t time.Time) (Position, error) {
	return offsetAt(ctx, l, 0, t)
}

func offsetAt(ctx context.Context, s source, from int64, t time.Time) (Position, error) {
	for {
		committed, v, err := s.look()
		if err != nil {
			return Position{}, err
		}
		p, err := offsetIn(ctx, s, committed, v, from, nanos(t))
		var trimmed *TrimmedError
		if errors.As(err, &trimmed) && trimmed.Start > v.Start { // meanwhile: begin at the new start
			continue
		}
		return p, err
	}
}

func offsetIn(ctx context.Context, s source, committed int64, v *core.View, from, want int64) (Position, error) {
	r := newReader(s, Position{}, ReadOptions{})
	defer r.Close() //nolint:errcheck // opened for reading only
	for i := range v.Extents {
		if err := ctx.Err(); err != nil {
			return Position{}, err
		}
		x := &v.Extents[i]
		sealed := x.End != core.EndNone && x.MaxTime != 0
		if x.First >= committed || x.End <= from || x.Lost || sealed && x.MaxTime < want {
			continue
		}
		start := max(x.First, s.startAt(x, v.LogID, want, &r.handle), v.Start, from)
		r.Seek(Position{Offset: start})
		o, err := r.firstNotBefore(ctx, want, min(x.End, committed))
		if err != nil {
			return Position{}, err
		}
		if o >= 0 {
			return Position{Offset: o, Epoch: uint64(v.EpochAt(o - 1))}, nil
		}
	}
	return Position{Offset: committed, Epoch: uint64(v.EpochAt(committed - 1))}, nil
}

// firstNotBefore looks for a record in [position, end); -1: there is none.
func (r *Reader) firstNotBefore(ctx context.Context, want, end int64) (int64, error) {
	for r.cursor.Position().Offset < end {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		if ok, err := r.poll(); !ok {
			return -1, err
		}
		if r.batch.MaxTime < want {
			continue
		}
		if r.batch.Kind != segment.KindRecords {
			return max(r.batch.Base, r.from), nil
		}
		var rec Record
		for {
			ok, err := r.record(&rec)
			if err != nil {
				return -1, err
			}
			if !ok {
				break
			}
			if r.rec.Time >= want {
				return rec.Offset, nil
			}
		}
	}
	return -1, nil
}
