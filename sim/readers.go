package sim

import (
	"bytes"
	"encoding/binary"

	"varve/core"
	"varve/faultfs"
	"varve/model"
	"varve/tiers/disk"
)

// reader is a client's cursor: one that follows the log through all lives, or one that reads once.
type reader struct {
	cursor core.Cursor
	handle disk.Handle
	fetch  *core.Fetch // on its way
	call   model.Stamp // when its plan was made
	id     int32
	follow bool
	begun  bool
	done   bool // an end is reported

	pos   core.Position
	until core.Offset // a single read stops there
	left  int64       // batches
	bytes int
}

func (r *reader) forget() {
	r.handle.Forget()
	r.fetch, r.begun, r.pos = nil, false, core.Position{}
}

// lose is the end of the process that the reader ran in. A follower resumes in the next one.
func (r *reader) lose(w *World) {
	if w.fs.Dead() {
		r.handle.Forget()
	} else {
		_ = r.handle.Close()
	}
	if !r.begun {
		return
	}
	if r.fetch != nil {
		r.fetch = nil
		r.begun = r.follow
	}
	r.cursor.Reset(r.pos)
}

// refreshView takes the log's newest view.
func (w *World) refreshView() {
	if w.view.Version != w.log.ViewVersion() {
		w.log.FillView(&w.view)
	}
}

// read starts a single read somewhere in the log, up to what is committed at the call.
func (w *World) read(e *Event) {
	r := &w.readers[clientsMax+int(e.Client)]
	if !w.serving() || r.fetch != nil {
		return
	}
	start, committed := w.log.Start(), w.log.Committed()
	from := core.Position{Offset: start + (committed-start)*e.A/1000}
	r.id, r.follow = int32(clientsMax)+int32(e.Client), false
	r.begin(w, from)
	r.until, r.left, r.bytes = committed, e.C, int(e.B)
	w.plan(r)
}

// poll lets a client's follower go on.
func (w *World) poll(e *Event) {
	r := &w.readers[e.Client]
	if !w.serving() || r.fetch != nil {
		return
	}
	r.id, r.follow = int32(e.Client), true
	if !r.begun {
		r.begin(w, core.Position{Offset: w.log.Start()})
	}
	r.until, r.left, r.bytes = core.EndNone, e.B, int(e.A)
	w.plan(r)
}

func (r *reader) begin(w *World, from core.Position) {
	r.begun, r.pos = true, from
	r.cursor.Reset(from)
	w.check.ReaderStart(w.clock.mono, r.id, model.Position(from), r.follow)
}

// plan asks the cursor for its next fetch and sends it on its way.
func (w *World) plan(r *reader) {
	r.done = false
	if r.left <= 0 || r.pos.Offset >= r.until {
		return
	}
	r.call = w.check.Stamp()
	committed := w.log.Committed()
	w.refreshView()
	f, err := r.cursor.Next(&w.view, committed, r.bytes)
	if err != nil {
		w.readError(r, err)
		return
	}
	if f == nil {
		w.check.ReadEnd(w.clock.mono, r.id, r.call, committed)
		r.done = true
		return
	}
	if f.Pos == 0 && !f.NoIndex && f.Extent.Index == core.IndexCore {
		if pos, _, ok := w.log.Locate(f.Extent.Segment, f.From); ok {
			f.Pos = pos
		}
	}
	r.fetch = f
	took := 1 + w.rng.Below(2*w.h.Write)
	w.queue.push(entry{at: w.clock.mono + took, kind: wakeFetch, arg: r.id, life: w.process.life})
}

// fetched carries out a fetch at the time it completes: files may have gone since it was planned.
func (w *World) fetched(r *reader) {
	f := r.fetch
	failed := w.disk.Counts().Failed
	err := w.store.Fetch(f, &r.handle)
	if w.fs.Dead() {
		return
	}
	if indexed := f.Pos == 0 && !f.NoIndex && f.From > f.Extent.Base; err == nil && !indexed && w.disk.Counts().Failed != failed {
		w.fail("K9", "a read failed and its fetch succeeded")
	}
	r.fetch = nil
	if w.Trace != nil {
		w.say(trackReader(r.id), Fetched, "reader %d: fetch of %d from %016x at %d: %d bytes, %v", r.id, f.From, uint64(f.Extent.Segment), f.At, len(f.Buf), err)
	}
	w.note(hashRead, uint64(r.id), boolHash(err != nil))
	if err := r.cursor.Complete(f, err); err != nil {
		w.res.Marks.add(MarkReadError)
		r.cursor.Reset(r.pos)
		if w.stage != stageSafety {
			r.begun = false
			if !w.disk.Marks().Has(faultfs.D14ReadBad) {
				w.fail("K19", "a read fails although all faults are over: "+err.Error())
			}
		}
		return
	}
	for b, ok := r.cursor.Batch(); ok; b, ok = r.cursor.Batch() {
		w.observe(r, &b)
		r.pos = r.cursor.Position()
		r.left--
		if r.left <= 0 || r.pos.Offset >= r.until {
			r.cursor.Reset(r.pos) // the rest of the fetch is for another call
			return
		}
	}
	w.plan(r)
}

// observe tells the checker of the records of one batch.
func (w *World) observe(r *reader, b *core.CursorBatch) {
	id := w.identify(b.Payload, b.Records)
	for i := range int64(b.Records) {
		o := b.Base + i
		if o < r.pos.Offset {
			continue
		}
		value := model.Value(0)
		if id != 0 {
			value = model.MakeValue(id, int(i))
		}
		w.check.Read(w.clock.mono, r.id, r.call, o, b.Epoch, value)
	}
	w.note(hashRead, uint64(b.Base), uint64(id))
}

// identify returns the append whose payload this is, byte for byte, 0 if there is none.
func (w *World) identify(payload []byte, records uint32) model.OpID {
	if len(payload) < 8 {
		return 0
	}
	id := model.Value(binary.LittleEndian.Uint64(payload)).Op()
	if id <= 0 || int(id) >= len(w.appends) {
		return 0
	}
	if a := &w.appends[id]; a.origin == id && a.records == records && bytes.Equal(w.payload(a), payload) {
		return id
	}
	return 0
}

// readError takes what a cursor refuses, and goes on where the error says that one can.
func (w *World) readError(r *reader, err error) {
	now := w.clock.mono
	next := r.pos
	switch e := err.(type) {
	case *core.TrimmedError:
		w.check.ReadTrimmed(now, r.id, e.Start)
		w.res.Marks.add(MarkTrimmed)
		next = core.Position{Offset: e.Start}
	case *core.DivergedError:
		w.check.ReadDiverged(now, r.id)
		w.res.Marks.add(MarkDiverged)
		next = core.Position{Offset: max(w.log.Start(), min(e.First, w.log.Committed()))}
	case *core.CorruptError:
		if e.Tier == core.TierCold && w.cold.misread() && !w.cold.spoiledAt(e.Offset) {
			w.res.Marks.add(MarkReadError)
			break // of the way, not of the object: whoever asks again gets it
		}
		w.wildDamage()
		if !w.reverted(e.Offset) {
			w.check.ReadCorrupt(now, r.id, e.Offset)
		}
		w.res.Marks.add(MarkReadCorrupt)
		w.log.Damaged(w.clock.now(), e)
		if e.Tier == core.TierHot && w.h.Cold() && w.log.Phase() == core.Ready {
			w.cold.told = append(w.cold.told, e.Offset)
		}
		w.ask = askAll
		r.left = min(r.left, 1)
		next = core.Position{Offset: w.log.Committed()}
	default:
		w.fail("K15", "a cursor ended in an error of no kind: "+err.Error())
		r.begun = false
		return
	}
	if w.Trace != nil {
		w.say(trackReader(r.id), Failed, "reader %d: %v", r.id, err)
	}
	w.note(hashRead, uint64(r.id), 3)
	r.begin(w, next)
	w.plan(r)
}

// findTime asks where the records of some time begin.
func (w *World) findTime(e *Event) {
	if !w.serving() {
		return
	}
	w.refreshView()
	w.checkTime(e.A)
}

// reverted reports whether a sync has failed that the log will hear of only later: what was not
// proven may be gone from the page cache already.
func (w *World) reverted(o core.Offset) bool {
	for i := range w.flights {
		f := &w.flights[i]
		if f.effect != nil && f.executed && f.err != nil && f.effect.Result().Failed == core.StepSync {
			return o >= w.check.ProvenEnd()
		}
	}
	return false
}
