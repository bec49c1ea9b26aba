package sim

import (
	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

// flight is an effect on its way. Its next step is executed either when it is issued or when it
// completes: a sync may cover what is written while it runs, or not, and a crash in between finds
// it done, or not. The timer's sync, beside which commits are written, has a third way: it completes
// later and covers what lay there when it was issued and was not written again.
type flight struct {
	effect   core.Effect
	executed bool // the step at hand
	done     bool // it was the last
	sync     bool // it is a sync of the active segment
	begun    bool // it covers what was written when it was issued, and not since: covers
	whole    bool // all steps at once: nothing else happens in between, but a crash still may
	covers   core.Offset
	err      error
	traits   traits
}

// traits are what an effect is to the simulator, looked up once when it is issued.
type traits uint8

const (
	isCommit  traits = 1 << iota
	isSync           // of the Sync lane
	isPrepare        // zero-fills ahead of the commits
	isActive         // Commit, Rollback, Seal: other lanes work beside its steps
	syncsLate        // each step after the first is a sync of the active segment
	syncsDir         // it syncs the log directory
)

func traitsOf(e core.Effect) traits {
	switch e := e.(type) {
	case *core.Commit:
		if e.Sync {
			return isCommit | isActive | syncsLate
		}
		return isCommit | isActive
	case *core.Sync:
		return isSync
	case *core.Rollback, *core.Seal:
		return isActive | syncsLate
	case *core.Prepare:
		return isPrepare
	case *core.Create, *core.Remove, *core.Quarantine, *core.SaveIndex:
		return syncsDir
	case *core.Replace:
		return syncsDir
	case *core.SaveSuper:
		if e.Fresh {
			return syncsDir
		}
	}
	return 0
}

// syncing reports whether the step at hand is a sync of the active segment.
func (f *flight) syncing() bool {
	return f.traits&isSync != 0 || f.traits&syncsLate != 0 && f.effect.Result().Stage > 0
}

// launch starts the next step of a lane's effect.
func (w *World) launch(lane core.Lane) {
	f := &w.flights[lane]
	f.executed, f.done, f.begun, f.err, f.sync = false, false, false, nil, f.syncing()
	w.exclusive(lane)
	took := w.latency(f.sync)
	if lane == core.Uploads || lane == core.Catalogue {
		took = 1 + w.rng.Below(2*bucketLatency*w.h.Sync)
		if e, ok := f.effect.(*core.ScanObject); ok {
			w.cold.looked = append(w.cold.looked, sighting{core.Object{Base: e.Extent.Base, End: e.Extent.Until, Epoch: e.Extent.Epoch, Attempt: e.Extent.Attempt}, w.clock.mono})
		}
	}
	if extra := w.slow[lane]; extra > 0 {
		took += extra
		w.slow[lane] = 0
		w.res.Marks.add(MarkSlow)
	}
	if w.tap != nil {
		w.issued(lane, took)
	}
	draw := w.rng.Next()
	if f.traits&isActive == 0 && f.effect.Result().Stage == 0 { // the others are events of their own, always
		f.whole = draw>>1&3 != 0
	}
	if draw&1 == 0 {
		w.carry(f)
		if lane == core.Warm {
			took += w.warm.server.TakeDelay()
		}
	} else if s, ok := f.effect.(*core.Sync); ok && draw>>3&1 == 0 {
		f.begun = w.fs.BeginSync(w.store.SegmentName(s.Base, s.Segment)) == nil
		f.covers = w.process.written
	}
	w.queue.push(entry{at: w.clock.mono + took, kind: wakeStep, arg: int32(lane), life: w.process.life})
}

// exclusive judges that at most one sync of one file is outstanding: the first one that fails
// consumes the error, and the other one "succeeds". It also judges that a commit keeps out of the
// range that is being zero-filled.
func (w *World) exclusive(lane core.Lane) {
	f := &w.flights[lane]
	if !f.sync && f.traits&(syncsDir|isCommit|isPrepare) == 0 { // nothing that could meet another
		return
	}
	for i := range w.flights[:w.lanes] {
		other := &w.flights[i]
		if core.Lane(i) == lane || other.effect == nil {
			continue
		}
		if f.sync && other.sync && fileOf(f.effect) == fileOf(other.effect) {
			w.fail("exclusion", "two syncs of one file are outstanding")
		}
		if f.traits&other.traits&syncsDir != 0 {
			w.fail("exclusion", "two effects that sync the directory are outstanding")
		}
		c, p := f, other
		if c.traits&isCommit == 0 {
			c, p = other, f
		}
		if c.traits&isCommit != 0 && p.traits&isPrepare != 0 &&
			overlap(c.effect.(*core.Commit), p.effect.(*core.Prepare)) {
			w.fail("exclusion", "a commit writes into the range that is being zero-filled")
		}
	}
}

func overlap(c *core.Commit, p *core.Prepare) bool {
	return c.Segment == p.Segment && c.Pos < p.Pos+p.Bytes && p.Pos < c.Pos+c.Bytes
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

// step completes the step at hand.
func (w *World) step(lane core.Lane) {
	f := &w.flights[lane]
	if !f.executed {
		w.carry(f)
		w.warm.server.TakeDelay() // it answered just in time
	}
	if w.fs.Dead() {
		return
	}
	if f.err == nil && !f.done {
		w.launch(lane)
		return
	}
	w.completed(lane)
}

// completed tells the log of an effect that has ended.
func (w *World) completed(lane core.Lane) {
	f := &w.flights[lane]
	e, err, before := f.effect, f.err, w.log.Phase()
	w.syncFailed(f)
	f.effect = nil
	if !w.process.opened {
		w.process.found(e, err)
	}
	w.ask = askAll // a step of an effect that goes on is nothing to the log
	if _, saved := e.(*core.SaveSuper); !saved || err != nil {
		w.supers(e, err != nil)
	}
	w.log.Complete(w.clock.now(), e, err)
	if lane == core.Warm {
		w.warmTold()
	}
	if lane == core.Catalogue && err != nil {
		w.unclaimed(e)
	}
	if err != nil && lane < core.Uploads && !fromWarm(e) { // what other tiers refuse is tried again
		w.told(e.Result().Failed, before)
	}
}

// fromWarm reports whether an effect reads the warm tier, and could not.
func fromWarm(e core.Effect) bool {
	r, ok := e.(*core.Replace)
	return ok && r.Object.Tier == core.TierWarm && r.Failed == core.StepRead
}

// told judges what the log did with an error. After a failed sync it must not go on, because nobody
// knows what the device holds; an open goes no further after any, or waits for space. What else may
// fail is undone, tried again, or done without, and shows in the outcomes.
func (w *World) told(failed core.Step, before core.Phase) {
	opening := before == core.Opening || before == core.Recovering
	switch now := w.log.Phase(); {
	case now == core.Failed || now == core.Poisoned || now == core.Closed:
		if w.log.Err() == nil {
			w.fail("K9", "an effect failed and the log ended without an error")
		}
	case failed == core.StepSync:
		w.fail("K9", "a sync failed and the log goes on")
	case opening && now != core.Recovering && failed != core.StepCheck:
		w.fail("K9", "an effect of an open failed and the open goes on")
	}
}

// syncFailed tells the checker of a failed sync once the log is told, or dies before that.
func (w *World) syncFailed(f *flight) {
	if f.effect != nil && f.err != nil && f.effect.Result().Failed == core.StepSync && w.process.opened {
		w.check.SyncFailed(w.clock.mono)
	}
}

// execute carries out the step at hand, and tells the checker what the disk did. It judges K24: each
// step of a commit is one call.
func (w *World) execute(f *flight) {
	e := f.effect
	stage, sync := e.Result().Stage, f.syncing()
	f.sync = sync
	if f.traits&isCommit != 0 && stage == 0 {
		w.claimed(e.(*core.Commit))
		w.rewritten(e.(*core.Commit))
	}
	if w.process.saves > 0 {
		w.dieInSave(e, stage)
	}
	before, failed := w.fs.Calls(), w.disk.Counts().Failed
	switch lane := e.Lane(); {
	case lane == core.Warm:
		f.done, f.err = w.warm.store.Step(e)
		w.warmCalled(e, f.err)
	case lane >= core.Uploads:
		f.done, f.err = w.cold.store.Step(e)
		w.bucketCalled(e)
	default:
		f.done, f.err = w.store.Step(e)
	}
	f.executed = true
	w.note(hashStep, uint64(stage)<<8|uint64(e.Lane()), boolHash(f.done)|boolHash(f.err != nil)<<1)
	if w.Trace != nil {
		w.describe(e, stage, f)
	}
	if w.fs.Dead() {
		return
	}
	if s, ok := e.(*core.SaveSuper); ok && f.err != nil && s.NoSpace {
		w.spareLeft(s)
	}
	if f.err == nil {
		if f.traits&(isCommit|isSync) != 0 && w.fs.Calls()-before != 1 {
			w.fail("K24", "a step of a commit made other than one call")
		}
		if w.disk.Counts().Failed != failed {
			w.surfaced(e, stage)
		}
	}
	switch {
	case f.err != nil:
	case sync:
		end := w.process.written
		if s, ok := e.(*core.Sync); ok {
			end = min(end, s.End) // what lies in a sector that is written on may still be torn
		}
		if f.begun {
			end = min(end, f.covers)
		}
		w.check.Synced(w.clock.mono, end)
	case f.traits&isCommit != 0:
		c := e.(*core.Commit)
		w.process.written, w.process.bytes = c.End, c.Pos+c.Bytes
		w.taint(c)
		w.places = append(w.places, place{c.Segment, c.End, c.Pos + c.Bytes})
	}
	if f.err == nil && f.done {
		switch e := e.(type) {
		case *core.SaveSuper:
			w.supers(e, false)
		case *core.Create:
			w.process.bytes = int64(e.Header.SectorBytes)
		case *core.Remove:
			w.proven()
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
func (w *World) claimed(c *core.Commit) {
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

// rewritten takes what a commit is about to write off what the timer's sync covers: it will not write
// a sector back that changed under it.
func (w *World) rewritten(c *core.Commit) {
	f := &w.flights[core.Syncs]
	if !f.begun || f.executed {
		return
	}
	first := c.Pos / faultfs.Sector * faultfs.Sector
	for i := len(w.places) - 1; i >= 0 && w.places[i].pos > first; i-- {
		before := c.Base
		if i > 0 {
			before = w.places[i-1].end
		}
		f.covers = min(f.covers, before)
	}
}

// taint tells the checker of records that are written behind damaged ones in the same file: a reader
// that cannot follow the batches before may not find them.
func (w *World) taint(c *core.Commit) {
	if c.Segment == w.tainted {
		w.check.DamageInjected(w.clock.mono, c.First, c.End, true)
	}
}

// surfaced judges K9: a call that failed fails the effect that made it. Only what is derived may be
// done without: a sidecar index, and the size before a roll-back, which cuts all the same. (A look at
// the free space does not count as a failed call.)
func (w *World) surfaced(e core.Effect, stage int) {
	switch e := e.(type) {
	case *core.Mirror: // the footer of what it reads, which saves looking for a batch
		return
	case *core.Scan:
		if e.File.Index {
			return
		}
	case *core.Rollback:
		if stage == 0 && w.cutBack(e) {
			return
		}
	case *core.SaveSuper: // to take the spare, and to make one, where there is no space
		if writes, renames := stagesOf(e); e.Fresh && (stage == writes || stage == renames) {
			return
		}
	}
	w.fail("K9", "a call failed and its effect succeeded")
}

// cutBack reports whether a roll-back left the file no longer than it was to be.
func (w *World) cutBack(e *core.Rollback) bool {
	name := w.store.SegmentName(e.Base, e.Segment)
	w.names = w.disk.Images(w.names[:0])
	for i := range w.names {
		if m := &w.names[i]; m.Dir == disk.DirLog && m.Name == name {
			return int64(len(m.Kernel)) <= e.Bytes
		}
	}
	return false
}
