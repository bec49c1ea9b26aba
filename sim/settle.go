package sim

import (
	"varve/core"
	"varve/model"
)

var noRetention = model.Retention{Bytes: model.Unlimited, Age: model.Unlimited}

// retentionOf returns the tighter of the limits of a configuration.
func retentionOf(c *core.Config) model.Retention {
	tighter := func(a, b int64) int64 {
		if a == core.Unlimited || b != core.Unlimited && b < a {
			return b
		}
		return a
	}
	if c.Cold { // local limits move files, not Start
		return model.Retention{Bytes: c.RetentionBytes, Age: c.RetentionAge}
	}
	return model.Retention{
		Bytes: tighter(c.RetentionBytes, c.LocalRetentionBytes),
		Age:   tighter(c.RetentionAge, c.LocalRetentionAge),
	}
}

// localOf returns the limits of the disk, where another tier holds what leaves it.
func localOf(c *core.Config) model.Retention {
	if !c.Cold {
		return noRetention
	}
	return model.Retention{Bytes: c.LocalRetentionBytes, Age: c.LocalRetentionAge}
}

// appended notes when the records of a ticket were appended.
func (w *World) appended(t core.Ticket, now core.Now) {
	w.walls = w.walls[:min(int64(len(w.walls)), t.First)]
	for int64(len(w.walls)) < t.End {
		w.walls = append(w.walls, now.Wall)
	}
}

// back is the wall clock stepping back: how many records there were, and what it showed then.
type back struct {
	end  core.Offset
	wall core.Time
}

// firstSeen returns the earliest time from which the log may count the age of records that end at
// an offset: when the newest of them was appended, or what the clock fell back to since.
func (w *World) firstSeen(end core.Offset, newest core.Time) core.Time {
	for i := range w.backs {
		if b := &w.backs[i]; end <= b.end {
			newest = min(newest, b.wall)
		}
	}
	return newest
}

// segments lists the segments of the log as retention counts them: objects, and behind them files.
func (w *World) segments() []model.SegmentSpan {
	w.spans = w.spans[:0]
	from := core.Offset(-1)
	if w.h.Cold() {
		from = w.log.Exported()
		w.coldView.Extents = w.log.ColdExtents(w.coldView.Extents[:0])
		for i := range w.coldView.Extents {
			x := &w.coldView.Extents[i]
			s := model.SegmentSpan{First: x.First, End: x.End, Bytes: x.Bytes}
			w.age(&s)
			w.spans = append(w.spans, s)
		}
	}
	w.spans = w.filesOf(w.spans, from)
	return w.spans
}

// age notes of which time a segment is.
func (w *World) age(s *model.SegmentSpan) {
	if s.End > 0 && s.End <= int64(len(w.walls)) {
		s.Newest = w.walls[s.End-1]
	} else {
		s.Newest = w.clock.now().Wall
	}
	s.Seen = w.firstSeen(s.End, s.Newest)
}

// filesOf lists the files of the view that end behind an offset: a file's bytes count where it ends.
func (w *World) filesOf(spans []model.SegmentSpan, from core.Offset) []model.SegmentSpan {
	xs := w.view.Extents
	var files [8]uint64 // a bit of each, by its number
	for i := range xs {
		x := &xs[i]
		if x.Tier != core.TierHot || x.End <= from {
			continue
		}
		n := x.Segment ^ x.Segment>>32
		if set, bit := &files[n>>6&7], uint64(1)<<(n&63); *set&bit != 0 {
			w.sameFile(spans, i, from)
		} else {
			*set |= bit
		}
		s := model.SegmentSpan{First: max(x.First, from), End: x.End, Bytes: x.Bytes}
		if x.End == core.EndNone {
			s.Active, s.End, s.Bytes = true, w.log.End(), w.process.bytes
		}
		w.age(&s)
		spans = append(spans, s)
	}
	// A file's age is that of its newest batch, which may be void here and live in a later extent.
	// Where the clock stepped back that one may be older.
	for i := len(spans) - 2; i >= 0; i-- {
		spans[i].Newest = min(spans[i].Newest, spans[i+1].Newest)
	}
	return spans
}

// sameFile takes the bytes of the file of the extent at i off the span before it that has them.
func (w *World) sameFile(spans []model.SegmentSpan, i int, from core.Offset) {
	xs := w.view.Extents
	for j, n := i-1, len(spans)-1; j >= 0; j-- {
		if xs[j].Tier != core.TierHot || xs[j].End <= from {
			continue
		}
		if xs[j].Segment == xs[i].Segment {
			spans[n].Bytes, spans[n].File = 0, xs[j].Bytes
			return
		}
		n--
	}
}

// policy returns the limits of a configuration, as far as they can be judged.
func (w *World) policy(config int64) model.Retention {
	r := retentionOf(&w.h.Config[config])
	if r != noRetention && w.damaged() {
		r.Age = -2 // damaged spans go with what lies before them
	}
	return r
}

// retention tells the checker what the policy allows now.
func (w *World) retention() {
	if r := w.policy(w.process.config); r != noRetention && w.process.opened {
		if w.Trace != nil {
			w.say(trackLog, Note, "retention may run: wall %d, %+v of %+v", w.clock.now().Wall, r, w.segments())
		}
		w.check.RetentionRuns(w.clock.mono, w.clock.now().Wall, r, w.segments())
	}
	if r := localOf(&w.h.Config[w.process.config]); r != noRetention && w.process.opened {
		w.mayGo = w.filesOf(w.mayGo[:0], -1)
		w.check.EvictionRuns(w.clock.mono, w.clock.now().Wall, r, w.mayGo)
	}
}

// evicted tells the checker where what is on disk begins now. What is damaged there is served from
// elsewhere, and leaves the disk for that.
func (w *World) evicted() {
	p := &w.process
	if !w.h.Cold() || p.hotView == w.log.ViewVersion() {
		return
	}
	first := p.hotView == 0
	p.hotView = w.log.ViewVersion()
	if hot := w.log.HotStart(); hot != p.hot {
		if !first && !w.damaged() && !w.log.Marks().Has(core.MarkRelieved) {
			w.left(max(p.hot, w.log.Start()), hot)
		}
		p.hot = hot
		if !w.damaged() && !w.log.Marks().Has(core.MarkRelieved) { // where space is short more goes, sooner
			w.check.HotStartMoved(w.clock.mono, hot, w.onDisk)
		}
	}
	w.refreshView()
	w.onDisk = w.filesOf(w.onDisk[:0], -1)
}

// startMoved tells the checker of a new Start, before the files below it go.
func (w *World) startMoved() {
	p, l := &w.process, w.log
	if l.Start() == p.start && l.ViewVersion() == w.view.Version || !w.serving() {
		return
	}
	if l.Start() != p.start {
		w.check.StartMoved(w.clock.mono, l.Start(), w.spans)
		p.start = l.Start()
		if p.trim > 0 && p.start >= p.trim {
			w.check.TrimReturned(w.clock.mono, p.trim)
			p.trim = 0
		}
	}
	if w.view.Version != l.ViewVersion() {
		w.refreshView()
		if w.limited {
			w.segments()
		}
	}
}

// marked is what the log and the checker said when they were last compared.
type marked struct {
	start, end, committed, model core.Offset
	life                         int32
}

// agree compares the log's watermarks with the checker's.
func (w *World) agree() {
	if !w.serving() {
		return
	}
	p, l := &w.process, w.log
	w.startMoved()
	w.evicted()
	if l.Frontier() > w.check.ProvenEnd() {
		w.fail("K1", "the log claims to be durable what no sync has covered")
	}
	end := l.End()
	if l.Phase() == core.Poisoned {
		end = w.check.End() // offsets are given out no more; their appends have failed
	}
	now := marked{l.Start(), end, l.Committed(), w.check.End(), p.life}
	if a := &w.agreed; now.end != a.end || now.committed != a.committed || now.model != a.model ||
		now.start != a.start || now.life != a.life {
		*a = now
		w.check.Agree(w.clock.mono, now.start, now.end, now.committed)
	}
	if !p.judged && l.Phase() == core.Ready && w.idle(core.Uploads) {
		p.judged = true
		// An append that failed may have left an empty segment: then it is no longer right after the recovery.
		if l.End() == p.recovered && l.End() > 0 && p.bytes == 0 && !p.hurt(w) && (!w.planned || w.rng.Chance(8192)) {
			w.planned = true
			w.planner.again()
		}
	}
}

// beginLiveness ends all faults: from here everything has to resolve.
func (w *World) beginLiveness() {
	w.stage = stageLiveness
	w.disk.Heal()
	w.disk.SetCapacity(0)
	w.healBucket()
	w.healServer()
	w.warm.restAt = 0
	if w.h.Warm() {
		w.looksSoon()
	}
	w.fs.SetCallBudget(-1, false)
	p := &w.process
	p.faults, p.recovery, p.failed, p.saves = false, [2]int64{}, 0, 0
	p.bound = w.clock.mono + livenessBound
	w.slow = [core.LaneCount]int64{}
	w.rng.Seed(sub(w.h.Seed, 5))
	if w.Trace != nil {
		w.say(TrackWorld, Healed, "all faults are over")
	}
	if w.rival.alive {
		w.rival.born++
		w.wakeRivalIn(1)
	}
	if !p.up && !w.opening() {
		w.queue.push(entry{at: w.clock.mono + 1, kind: wakeOpen, life: p.life})
	}
}

// opening reports whether the process will start by itself.
func (w *World) opening() bool {
	for i := range w.queue.heap {
		if e := &w.queue.heap[i]; e.kind == wakeOpen && e.life == w.process.life {
			return true
		}
	}
	return false
}

// progress moves the run through its last stages.
func (w *World) progress() {
	p := &w.process
	if w.stage == stageSafety || w.stage >= stageClosing || !p.up || !p.opened || !w.quiet() {
		return
	}
	switch {
	case !p.final && w.rests():
	case !p.final:
		p.final = true
		if w.warm.rested {
			w.auditWarm()
		}
		w.appendNow(0, attempt{records: 1}, 24, ContentPattern)
		if w.h.Warm() { // it may be refused, and then nothing else happens
			w.queue.push(entry{at: w.clock.mono + 1, kind: wakeTimer, life: p.life})
		}
		w.ask = askAll
		w.pump()
		w.deadline()
	case w.stage == stageLiveness:
		if w.rival.alive || w.followersBehind() || w.exports() || w.clock.mono < w.warm.restAt {
			return
		}
		w.stage = stageRetain
		r := retentionOf(&w.h.Config[p.config])
		if r == noRetention && localOf(&w.h.Config[p.config]) == noRetention || w.h.Damaging() {
			w.close()
			return
		}
		w.wantRetained()
	case w.stage == stageRetain && w.clock.mono >= p.retainAt:
		if w.retainMore() {
			return
		}
		w.check.RetentionDone(w.clock.mono, w.retainWall, retentionOf(&w.h.Config[p.config]), w.retain)
		if !w.missed() {
			w.check.EvictionDone(w.clock.mono, w.retainWall, localOf(&w.h.Config[p.config]), w.letGo, w.log.HotStart())
		}
		w.res.Marks.add(MarkRetained)
		w.close()
	}
}

// quiet reports whether nothing is under way.
func (w *World) quiet() bool {
	if w.log.Phase() != core.Ready || w.wait < len(w.waiting) || !w.idle(core.LaneCount) {
		return false
	}
	if w.h.Warm() && !w.damaged() {
		if _, end, failing := w.log.WarmSpan(); failing || min(end, w.log.Committed()) < w.log.End() {
			return false
		}
	}
	for i := range w.readers {
		if w.readers[i].fetch != nil {
			return false
		}
	}
	return true
}

// followersBehind sends the first follower on if it has not seen the end yet.
func (w *World) followersBehind() bool {
	r := w.follower()
	if r == nil || r.pos.Offset >= w.log.Committed() {
		return false
	}
	r.left, r.bytes, r.until = 1<<30, 16384, core.EndNone
	w.plan(r)
	return r.fetch != nil
}

// follower returns the follower that has to see the whole log in the end, nil if nobody follows.
func (w *World) follower() *reader {
	for i := range clientsMax {
		if r := &w.readers[i]; r.begun {
			return r
		}
	}
	return nil
}

// retainedByNow judges that a life, however short, has let go of what its open found too much of. The
// age of what is inherited is not beyond doubt then, and another tier may not have answered.
func (w *World) retainedByNow() {
	p := &w.process
	if r := w.policy(w.lastConfig); r.Bytes != model.Unlimited && !w.h.other() && !w.damaged() && !p.hurt(w) {
		r.Age = model.Unlimited
		w.check.RetentionDone(w.clock.mono, p.wallReady, r, w.atOpen)
	}
}

// wantRetained notes what retention has to delete, of the segments whose age is beyond doubt.
func (w *World) wantRetained() {
	p := &w.process
	w.retainWall = w.clock.now().Wall
	w.retain = append(w.retain[:0], w.segments()...)
	w.letGo = w.filesOf(w.letGo[:0], -1)
	w.certain(w.retain)
	w.certain(w.letGo)
	if w.h.Cold() { // what is sealed meanwhile becomes an object, which is smaller
		for i := range w.retain {
			if s := &w.retain[i]; s.End > w.log.Exported() {
				s.Bytes = 0
			}
		}
	}
	p.retainAt = w.clock.mono + 3*w.h.Config[p.config].RetentionCheckInterval
	if p.hurt(w) {
		p.retainAt += 300 * millisecond // what failed is tried again after a while
	}
	w.queue.push(entry{at: p.retainAt, kind: wakeTimer, life: p.life})
	p.retries = 0
}

// certain leaves of the ages of segments what is beyond doubt.
func (w *World) certain(spans []model.SegmentSpan) {
	for i := range spans {
		s := &spans[i]
		if s.End > 0 && s.End <= int64(len(w.walls)) {
			s.Newest = w.walls[s.End-1]
		}
		if w.inherited(s.First) {
			s.Newest = w.process.wallReady // the log saw it then at the latest
		}
		if w.h.Cold() && len(w.backs) > 0 {
			s.Newest = w.retainWall // it may have become an object at any time since
		}
		if w.h.Warm() && w.res.Marks.Sim>>MarkRival&1 != 0 {
			s.Newest = w.retainWall // the host before may have committed it later, by clocks of its own
		}
		s.Seen = s.Newest
	}
}

// inherited reports whether a file on disk that serves an offset is of an earlier life.
func (w *World) inherited(o core.Offset) bool {
	for i := range w.view.Extents {
		if x := &w.view.Extents[i]; x.First <= o && o < x.End {
			return x.Segment.Owner() != w.log.Epoch()
		}
	}
	return true
}

// retainMore gives retention more time while it moves: a step may be slow.
func (w *World) retainMore() bool {
	p := &w.process
	if p.retries == 4 {
		return false
	}
	p.retries++
	p.retainAt = w.clock.mono + w.h.Config[p.config].RetentionCheckInterval + 50*millisecond
	w.queue.push(entry{at: p.retainAt, kind: wakeTimer, life: p.life})
	for i := range w.retain {
		if s := &w.retain[i]; s.First < w.log.Start() || s.Active {
			continue
		}
		return true
	}
	for i := range w.letGo {
		if s := &w.letGo[i]; w.h.Cold() && s.First >= w.log.HotStart() && !s.Active {
			return true
		}
	}
	return false
}

// close begins the last close, after a look at everything.
func (w *World) close() {
	w.stage = stageClosing
	w.audit()
	w.auditCold()
	w.auditWarm()
	if r := w.follower(); r != nil && r.pos.Offset >= w.log.Start() {
		w.check.ReaderDone(w.clock.mono, r.id)
	}
	w.process.leaving = true
	w.log.Close(w.clock.now())
	w.ask = askAll
	w.pump()
	w.deadline()
}

// missed reports whether a file stays on disk because it is the last copy of its records.
func (w *World) missed() bool {
	_, err := w.log.Misses()
	x, ok := err.(*core.CorruptError)
	return ok && w.cold.spoiledAt(x.Offset)
}

// finish ends the run.
func (w *World) finish() {
	w.check.Finish(w.clock.mono)
	w.gone(true)
	if v := w.check.Violation(); v != nil {
		w.fail(v.Check.String(), v.Error())
	}
	w.stage = stageDone
}

// stuck is K19: the faults are over, and things do not resolve.
func (w *World) stuck() {
	p := &w.process
	switch {
	case !p.up:
		w.fail("K19", "the process is down for good")
	case !p.opened:
		w.fail("K19", "the log does not open; it is "+w.log.Phase().String())
	case w.wait < len(w.waiting):
		w.fail("K19", "appends have no outcome; the log is "+w.log.Phase().String())
	default:
		w.fail("K19", "the log does not come to rest; it is "+w.log.Phase().String())
	}
}
