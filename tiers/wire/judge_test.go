package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"

	"varve/core"
	"varve/core/manifest"
	"varve/model"
	"varve/sim"
	"varve/tiers"
	"varve/tiers/disk"
)

// reader is a client that follows the log through all lives, or an audit.
type reader struct {
	cursor core.Cursor
	handle disk.Handle
	pos    core.Position
	begun  bool
}

// identify returns the append whose payload this is, byte for byte, 0 if there is none.
func (w *world) identify(b *core.CursorBatch) model.OpID {
	if len(b.Payload) < 8 {
		return 0
	}
	id := binary.LittleEndian.Uint64(b.Payload)
	if id >= uint64(len(w.payloads)) || !bytes.Equal(w.payloads[id], b.Payload) {
		return 0
	}
	return model.OpID(id)
}

// next fetches what a reader needs next. It is false at the end.
func (w *world) next(r *reader, committed core.Offset, most int) (bool, error) {
	l := w.host.log
	l.FillView(&w.view)
	f, err := r.cursor.Next(&w.view, committed, most)
	if f == nil {
		return false, err
	}
	if f.Pos == 0 && !f.NoIndex && f.Extent.Index == core.IndexCore {
		if pos, _, ok := l.Locate(f.Extent.Segment, f.From); ok {
			f.Pos = pos
		}
	}
	return true, r.cursor.Complete(f, w.host.files.Fetch(f, &r.handle))
}

// poll lets a follower go on to the end. What a server does not give it gets at another time.
func (w *world) poll(r *reader, most int) {
	if !w.serving() {
		return
	}
	l, now := w.host.log, w.now.Mono
	id := int32(0)
	for i := range w.readers {
		if r == &w.readers[i] {
			id = int32(i)
		}
	}
	if !r.begun {
		r.begun, r.pos = true, core.Position{Offset: l.Start()}
		w.check.ReaderStart(now, id, model.Position(r.pos), true)
	}
	r.cursor.Reset(r.pos)
	defer func() { _ = r.handle.Close() }()
	for range 1000 {
		call := w.check.Stamp()
		committed := l.Committed()
		more, err := w.next(r, committed, most)
		var trimmed *core.TrimmedError
		var diverged *core.DivergedError
		switch {
		case errors.As(err, &trimmed):
			w.check.ReadTrimmed(now, id, trimmed.Start)
			r.pos = core.Position{Offset: trimmed.Start}
			w.check.ReaderStart(now, id, model.Position(r.pos), true)
			r.cursor.Reset(r.pos)
			continue
		case errors.As(err, &diverged):
			w.check.ReadDiverged(now, id)
			r.pos = core.Position{Offset: max(l.Start(), min(diverged.First, committed))}
			w.check.ReaderStart(now, id, model.Position(r.pos), true)
			r.cursor.Reset(r.pos)
			continue
		case err != nil:
			w.note("reader %d: %v", id, err)
			if w.healed || !w.mayFail() || isDamage(err) {
				w.fail("K19: a read fails although no server does: %w", err)
			}
			return
		case !more:
			w.check.ReadEnd(now, id, call, committed)
			return
		}
		for b, ok := r.cursor.Batch(); ok; b, ok = r.cursor.Batch() {
			op := w.identify(&b)
			for o := max(b.Base, r.pos.Offset); o < b.End(); o++ {
				w.counts[recordsRead]++
				w.check.Read(now, id, call, o, b.Epoch, model.MakeValue(op, int(o-b.Base)))
			}
			r.pos = r.cursor.Position()
		}
	}
	w.fail("K19: a reader does not get on")
}

func isDamage(err error) bool {
	var corrupt *core.CorruptError
	return errors.As(err, &corrupt)
}

// mayFail reports whether a call of a server may fail now: a connection may be lost already.
func (w *world) mayFail() bool { return w.hurting || w.h.On(sim.SwServer) || w.h.On(sim.SwOutage) }

// audit reads all that the log holds, at one instant.
func (w *world) audit() {
	defer w.stream.calm()()
	defer w.objects.calm()()
	l, now, r := w.host.log, w.now.Mono, &w.auditor
	end := l.Committed()
	if w.h.Warm() { // what waits for the warm tier after an open is there all the same
		end = l.End()
	}
	w.check.AuditBegin(now)
	next := l.Start()
	r.cursor.Reset(core.Position{Offset: next})
	defer func() { _ = r.handle.Close() }()
	for lost := 0; ; {
		more, err := w.next(r, end, 1<<16)
		if err != nil && lost < 2 && !isDamage(err) { // connections from before
			lost++
			r.cursor.Reset(core.Position{Offset: next})
			continue
		}
		if err != nil {
			w.fail("K3: an audit could not read: %w", err)
			return
		}
		if !more {
			break
		}
		for b, ok := r.cursor.Batch(); ok; b, ok = r.cursor.Batch() {
			op := w.identify(&b)
			for o := max(b.Base, next); o < b.End(); o++ {
				w.counts[recordsAudited]++
				w.check.AuditRecord(now, o, b.Epoch, model.MakeValue(op, int(o-b.Base)))
			}
			next = b.End()
		}
	}
	w.check.AuditEnd(now, w.check.End())
}

// exported returns how far the bucket holds the log, by its manifest.
func (w *world) exported() core.Offset {
	defer w.objects.calm()()
	body := make([]byte, 1<<20)
	n, _, err := w.host.bucket.Get(w.t.Context(), prefix+manifest.ManifestKey, 0, body)
	if errors.Is(err, tiers.ErrNotFound) {
		return 0
	}
	var m manifest.Manifest
	if err == nil {
		err = manifest.Parse(body[:n], &m)
	}
	if err != nil {
		w.fail("K12: the manifest cannot be read: %w", err)
		return 0
	}
	return max(m.Exported(), m.Start)
}

// forget ends what clients asked of a process that ends, or lives on where they do not ask any more.
func (w *world) forget() {
	for i := range w.readers {
		w.readers[i].handle.Forget()
	}
}

// livenessBound is the virtual time in which everything has to resolve once all faults are over.
const livenessBound = 60 * second

// finish ends all faults: the log opens, all appends get an outcome, readers see all, a close is clean;
// and where disks may be lost, all of it is there again without the disk.
func (w *world) finish() {
	w.rng.Seed(w.h.Seed)
	w.heal()
	w.healed, w.doom, w.failed = true, [2]int64{}, 0
	w.host.fs.SetCallBudget(-1, false)
	if !w.rest() {
		return
	}
	w.examine()
	w.append(24, 1)
	w.settle()
	if !w.rest() {
		return
	}
	for i := range w.readers {
		if w.readers[i].begun {
			w.poll(&w.readers[i], 1<<14)
			w.check.ReaderDone(w.now.Mono, int32(i))
		}
	}
	w.audit()
	if w.close(); w.verdict != nil {
		return
	}
	if w.h.On(sim.SwLose) || w.h.On(sim.SwMove) {
		w.lose(never)
		w.begin()
		w.settle()
		if !w.rest() {
			return
		}
		w.close()
	}
	w.check.Finish(w.now.Mono)
	if v := w.check.Violation(); v != nil {
		w.fail("%v", v)
	}
}

// exports reports whether a sealed segment is in no object yet.
func (w *world) exports() bool {
	w.host.log.FillView(&w.view)
	for i := range w.view.Extents {
		if x := &w.view.Extents[i]; x.End != core.EndNone && x.End > w.host.log.Exported() {
			return true
		}
	}
	return false
}

// examine wants the host before to find out that it is none any more, by what its clients ask for.
func (w *world) examine() {
	if w.rival == nil {
		return
	}
	w.rivalAppends()
	_ = w.rival.log.Roll(w.now)
	w.settle()
	for bound := w.now.Mono + livenessBound; w.rival != nil && w.verdict == nil; w.until(w.now.Mono + millisecond) {
		if w.now.Mono > bound {
			w.fail("K8: the host before does not find out that another one has the log: %v, %+v", w.rival.log.Phase(), w.rival.log.Stats())
		}
	}
}

// close closes the log for good.
func (w *world) close() {
	w.leaving, w.delay = true, never
	w.host.log.Close(w.now)
	w.settle()
	for bound := w.now.Mono + livenessBound; w.host.up && w.verdict == nil; w.until(w.now.Mono + millisecond) {
		if w.now.Mono > bound {
			w.fail("K19: the log does not close")
		}
	}
}

// rest waits until nothing is under way.
func (w *world) rest() bool {
	for bound := w.now.Mono + livenessBound; !w.quiet() && w.verdict == nil; w.until(w.now.Mono + millisecond) {
		if w.now.Mono > bound {
			w.fail("K19: the log does not come to rest: up %v, %v, %+v", w.host.up, w.host.log.Phase(), w.host.log.Stats())
		}
	}
	return w.verdict == nil
}

func (w *world) quiet() bool {
	h := w.host
	if !h.opened || h.log.Phase() != core.Ready || len(h.waiting) > 0 || !h.idle() {
		return false
	}
	s := h.log.Stats()
	if w.h.Cold() && (s.ColdError != nil || w.exports()) {
		return false
	}
	return !w.h.Warm() || h.log.Committed() == h.log.End() && s.WarmEnd >= h.log.End() && s.WarmError == nil
}
