package sim

import (
	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// flight is an effect on its way. Its next step is executed either when it is issued or when it
// completes: a sync may cover what is written while it runs, or not, and a crash in between finds
// it done, or not.
type flight struct {
	effect   core.Effect
	executed bool // the step at hand
	done     bool // it was the last
	sync     bool // it is a sync of the active segment
	whole    bool // all steps at once: nothing else happens in between, but a crash still may
	err      error
}

// launch starts the next step of a lane's effect.
func (w *World) launch(lane core.Lane) {
	f := &w.flights[lane]
	f.executed, f.done, f.err, f.sync = false, false, nil, syncing(f.effect)
	w.exclusive(lane)
	took := w.latency(f.sync)
	if extra := w.slow[lane]; extra > 0 {
		took += extra
		w.slow[lane] = 0
		w.res.Marks.add(MarkSlow)
	}
	draw := w.rng.Next()
	if f.effect.Result().Stage == 0 && severable(f.effect) {
		f.whole = draw>>1&3 != 0
	}
	if draw&1 == 0 {
		w.carry(f)
	}
	w.queue.push(entry{at: w.clock.mono + took, kind: wakeStep, arg: int32(lane), life: w.process.life})
}

// exclusive judges that at most one sync of one file is outstanding: the first one that fails
// consumes the error, and the other one "succeeds". It also judges that a commit keeps out of the
// range that is being zero-filled.
func (w *World) exclusive(lane core.Lane) {
	e, sync := w.flights[lane].effect, w.flights[lane].sync
	for i := range w.flights {
		other := w.flights[i].effect
		if core.Lane(i) == lane || other == nil {
			continue
		}
		if sync && w.flights[i].sync && fileOf(e) == fileOf(other) {
			w.fail("exclusion", "two syncs of one file are outstanding")
		}
		if syncsDir(e) && syncsDir(other) {
			w.fail("exclusion", "two effects that sync the directory are outstanding")
		}
		c, ok := e.(*core.Commit)
		p, ok2 := other.(*core.Prepare)
		if !ok || !ok2 {
			c, ok = other.(*core.Commit)
			p, ok2 = e.(*core.Prepare)
		}
		if ok && ok2 && c.Segment == p.Segment && c.Pos < p.Pos+p.Bytes && p.Pos < c.Pos+c.Bytes {
			w.fail("exclusion", "a commit writes into the range that is being zero-filled")
		}
	}
}

// syncsDir reports whether an effect syncs the log directory.
func syncsDir(e core.Effect) bool {
	switch e := e.(type) {
	case *core.Create, *core.Replace, *core.Remove, *core.Quarantine, *core.SaveIndex:
		return true
	case *core.SaveSuper:
		return e.Fresh
	}
	return false
}

// fileOf returns the segment that an effect syncs.
func fileOf(e core.Effect) segment.ID {
	switch e := e.(type) {
	case *core.Commit:
		return e.Segment
	case *core.Rollback:
		return e.Segment
	case *core.Seal:
		return e.Segment
	case *core.Sync:
		return e.Segment
	}
	return 0
}

// severable reports whether the steps of an effect may be run at once: those of the active segment,
// beside which other lanes work, are always events of their own.
func severable(e core.Effect) bool {
	switch e.(type) {
	case *core.Commit, *core.Rollback, *core.Seal:
		return false
	}
	return true
}

// carry executes the step at hand, and the ones behind it if they belong together.
func (w *World) carry(f *flight) {
	w.execute(f)
	for f.whole && !f.done && f.err == nil && !w.fs.Dead() {
		w.execute(f)
	}
}

// latency draws how long a step takes.
func (w *World) latency(sync bool) int64 {
	typical := w.h.Write
	if sync {
		typical = w.h.Sync
	}
	took := 1 + w.rng.Below(2*typical)
	if w.h.On(SwSlow) && w.rng.Chance(512) {
		took *= 100
		w.res.Marks.add(MarkSlow)
	}
	return took
}

// syncing reports whether the next step of an effect is a sync of the active segment.
func syncing(e core.Effect) bool {
	switch e := e.(type) {
	case *core.Sync:
		return true
	case *core.Commit:
		return e.Sync && e.Stage > 0
	case *core.Rollback, *core.Seal:
		return e.Result().Stage > 0
	}
	return false
}

// step completes the step at hand.
func (w *World) step(lane core.Lane) {
	f := &w.flights[lane]
	if !f.executed {
		w.carry(f)
	}
	if w.fs.Dead() {
		return
	}
	if f.err == nil && !f.done {
		w.launch(lane)
		return
	}
	e, err := f.effect, f.err
	w.syncFailed(f)
	f.effect = nil
	w.log.Complete(w.clock.now(), e, err)
}

// syncFailed tells the checker of a failed sync once the log is told, or dies before that.
func (w *World) syncFailed(f *flight) {
	if f.effect != nil && f.err != nil && f.effect.Result().Failed == core.StepSync && w.process.opened {
		w.check.SyncFailed(w.clock.mono)
	}
}

// execute carries out the step at hand, and tells the checker what the disk did.
func (w *World) execute(f *flight) {
	e := f.effect
	stage, sync := e.Result().Stage, syncing(e)
	f.sync = sync
	w.claimed(e, stage)
	before, injected := w.fs.Calls(), w.disk.Counts().Injected
	f.done, f.err = w.store.Step(e)
	f.executed = true
	w.note(hashStep, uint64(stage)<<8|uint64(e.Lane()), boolHash(f.done)|boolHash(f.err != nil)<<1)
	if w.Trace != nil {
		w.describe(e, stage, f)
	}
	if w.fs.Dead() {
		return
	}
	if f.err == nil {
		w.countCalls(e, w.fs.Calls()-before)
		w.surfaced(e, w.disk.Counts().Injected-injected)
	}
	switch {
	case f.err != nil:
	case sync:
		end := w.process.written
		if s, ok := e.(*core.Sync); ok {
			end = min(end, s.End) // what lies in a sector that is written on may still be torn
		}
		w.check.Synced(w.clock.mono, end)
	default:
		if c, ok := e.(*core.Commit); ok {
			w.process.written, w.process.bytes = c.End, c.Pos+c.Bytes
			w.taint(c)
			w.places = append(w.places, place{c.Segment, c.End, c.Pos + c.Bytes})
		}
	}
	if f.err == nil && f.done {
		switch e := e.(type) {
		case *core.Create:
			w.process.bytes = int64(e.Header.SectorBytes)
		case *core.Rollback:
			w.process.bytes = e.Bytes
		}
	}
}

func boolHash(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// place is where the records of a commit end in their file.
type place struct {
	segment segment.ID
	end     core.Offset
	pos     int64
}

// claimed judges that no write touches a sector with bytes that were claimed to be durable: should
// the sector be damaged by a torn write, they would go with it.
func (w *World) claimed(e core.Effect, stage int) {
	c, ok := e.(*core.Commit)
	if !ok || stage > 0 {
		return
	}
	for len(w.places) > 0 && w.places[0].segment != c.Segment {
		w.places = w.places[:0]
	}
	frontier := w.log.Frontier()
	for i := len(w.places) - 1; i >= 0; i-- {
		if p := &w.places[i]; p.end <= frontier {
			if c.Pos/faultfs.Sector*faultfs.Sector < p.pos {
				w.fail("sector", "a write touches a sector that holds records claimed to be durable")
			}
			return
		}
	}
}

// taint tells the checker of records that are written behind damaged ones in the same file: a reader
// that cannot follow the batches before may not find them.
func (w *World) taint(c *core.Commit) {
	if c.Segment == w.tainted {
		w.check.DamageInjected(w.clock.mono, c.First, c.End, true)
	}
}

// countCalls judges K24: each step of a commit is one call.
func (w *World) countCalls(e core.Effect, calls uint64) {
	switch e.(type) {
	case *core.Commit, *core.Sync:
		if calls != 1 {
			w.fail("K24", "a step of a commit made other than one call")
		}
	}
}

// surfaced judges K9: a call that was made to fail must fail the effect that made it.
func (w *World) surfaced(e core.Effect, injected uint64) {
	if injected == 0 || w.disk.Marks().Has(faultfs.D17Next) {
		return
	}
	switch e.(type) {
	case *core.Commit, *core.Sync, *core.Rollback, *core.Seal, *core.SaveSuper, *core.Replace:
		w.fail("K9", "a call failed and its effect succeeded")
	}
}
