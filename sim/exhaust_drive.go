package sim

import (
	"varve/core"
	"varve/faultfs"
	"varve/model"
)

// run runs a case from an empty disk; its last operation is watched.
func (x *Explorer) run(c *Case) {
	w, l := x.worlds[0], &x.lenses[0]
	x.header.Header = Header{Seed: exhaustSeed, Switches: 1 << SwTrim, Write: 1, Sync: 1}
	x.header.Header.Config[0] = smallConfig(c.Config)
	x.header.Header.Config[1] = x.header.Header.Config[0]
	w.reset(&x.header)
	x.guard(w, func() {
		l.begin(c.Len == 0)
		x.open(w, l)
		for i := range c.Len {
			if w.res.Violation != "" || x.found != nil {
				return
			}
			l.begin(i == c.Len-1)
			x.operate(w, l, c.Ops[i])
		}
	})
	l.on = false
}

// guard runs a part of a run; a panic of the log is a violation. It takes what was found.
func (x *Explorer) guard(w *World, f func()) {
	func() {
		defer w.caught()
		f()
	}()
	if w.res.Violation != "" && x.found == nil {
		x.found = &Found{Case: x.at, Check: w.res.Check, Text: w.res.Violation}
	}
}

// leave makes what a crash leaves, in the next world.
func (x *Explorer) leave(l *lens, p CrashPoint) *World {
	w := x.worlds[l.level+1]
	w.inherit(l.w, l.level+1)
	if w.Trace != nil {
		l.sayCrash(p)
	}
	if p.Kill {
		w.disk.TakeKilled(l.w.disk, &l.doubt)
		w.check.Crash(w.clock.mono, model.ProcessKill)
		return w
	}
	w.disk.TakeImage(&l.doubt, p.Image)
	w.check.Crash(w.clock.mono, model.PowerLoss)
	w.decodeImages()
	return w
}

// recover opens what a crash leaves and judges it; a lens, if there is one, watches. It reports whether
// what was recovered has not been met before.
func (x *Explorer) recover(l *lens, p CrashPoint, next *lens) (new bool) {
	w := x.worlds[l.level+1]
	x.guard(w, func() {
		x.leave(l, p)
		next.begin(true)
		x.open(w, next)
		next.end()
		if w.res.Violation == "" && x.found == nil {
			w.disk.Doubts(&x.rested)
			new = x.target != nil || x.new(RecoveredOnce+StateKind(l.level), w.disk.KilledHash(&x.rested), promisesOf(w, false))
		}
		if new {
			x.finish(w)
		}
	})
	next.end()
	return new && x.target == nil
}

// recoverThen does the same with another operation after the recovery, which is watched.
func (x *Explorer) recoverThen(l *lens, p CrashPoint, o SmallOp) {
	w, next := x.worlds[l.level+1], &x.lenses[1]
	x.at.More, x.at.Then = true, o
	x.guard(w, func() {
		x.leave(l, p)
		x.open(w, nil)
		next.begin(true)
		x.operate(w, next, o)
		next.end()
		x.finish(w)
	})
	next.end()
	x.at.More = x.target != nil
}

// open begins a life and lets the log come to rest.
func (x *Explorer) open(w *World, l *lens) {
	w.planned = false // K10 is judged after each recovery
	w.rng.Seed(exhaustSeed)
	w.disk.Seed(exhaustSeed)
	w.start()
	x.rest(w, l)
	if w.res.Violation == "" && !w.process.opened {
		w.fail("K19", "the log does not open; it is "+w.log.Phase().String())
		return
	}
	x.follow(w, l)
	l.rest()
}

// finish judges that a recovered log takes an append, keeps it, and closes cleanly.
func (x *Explorer) finish(w *World) {
	if w.res.Violation != "" || x.found != nil {
		return
	}
	w.appendNow(0, attempt{records: 1}, 24, ContentPattern)
	x.rest(w, nil)
	x.follow(w, nil)
	w.stage = stageClosing
	w.process.leaving = true
	w.log.Close(w.clock.now())
	x.rest(w, nil)
	if w.res.Violation == "" && w.stage != stageDone {
		w.fail("K19", "the log does not close; it is "+w.log.Phase().String())
	}
}

// operate carries out one operation and what follows of it.
func (x *Explorer) operate(w *World, l *lens, o SmallOp) {
	if w.res.Violation != "" {
		return
	}
	if w.Trace != nil {
		w.say(TrackWorld, Note, "> %s", o)
	}
	switch o {
	case SmallAppend:
		w.appendNow(0, attempt{records: 1}, 24, ContentPattern)
	case SmallLarge:
		w.appendNow(0, attempt{records: 1}, 1200, ContentPattern)
	case SmallBatch:
		w.appendNow(0, attempt{records: 2}, 200, ContentPattern)
		w.appendNow(0, attempt{records: 2}, 300, ContentPattern)
	case SmallSync:
		x.pass(w, 6*millisecond)
		if w.h.Config[0].Sync == 2 {
			w.disk.Flush()
		}
	case SmallRoll:
		_ = w.log.Roll(w.clock.now())
	case SmallTrim:
		if n := w.log.Committed() - w.log.Start(); n > 0 {
			w.trim(&Event{A: ((n+1)/2*1000 + n - 1) / n})
		}
	case SmallClose:
		w.process.leaving = true
		w.log.Close(w.clock.now())
		x.rest(w, l)
		x.reopen(w, l)
		return
	case SmallReopen:
		w.die(DeathKill)
		x.reopen(w, l)
		return
	case SmallRetain:
		x.pass(w, 20*second)
	}
	x.rest(w, l)
	x.follow(w, l)
	l.rest()
}

func (x *Explorer) reopen(w *World, l *lens) {
	if w.res.Violation != "" {
		return
	}
	if w.process.up {
		w.fail("K19", "the log does not close; it is "+w.log.Phase().String())
		return
	}
	l.rest()
	x.open(w, l)
}

// pass lets time pass until the log's timers are due.
func (x *Explorer) pass(w *World, by int64) {
	w.clock.mono += by
	w.process.spins = 0
	w.tick()
}

// roundsMax is far above what any operation or recovery of a small scope takes.
const roundsMax = 10_000

// rest lets the log act until it has nothing more to do: each lane in turn takes one step.
func (x *Explorer) rest(w *World, l *lens) {
	for round := 0; w.process.up && w.res.Violation == ""; round++ {
		w.outcomes()
		w.phase()
		w.startMoved()
		moved := false
		for lane := core.Lane(0); lane < core.LaneCount && w.process.up; lane++ {
			moved = x.stepOf(w, l, lane) || moved
		}
		w.judge()
		if !moved && w.log.Phase() == w.process.phase { // a new phase may have come of deciding
			break
		}
		if round == roundsMax {
			w.fail("K19", "the log does not come to rest; it is "+w.log.Phase().String())
		}
	}
	if w.process.up {
		w.agree()
		if w.wait < len(w.waiting) && w.process.opened {
			w.fail("K19", "an append has no outcome although nothing is under way")
		}
	}
	w.judge()
	w.queue.reset() // what the random engine would do about it later
}

// stepOf takes one step of a lane's effect, and reports whether there was one.
func (x *Explorer) stepOf(w *World, l *lens, lane core.Lane) bool {
	f := &w.flights[lane]
	if f.effect == nil {
		e := w.log.Next(w.clock.now(), lane)
		if e == nil {
			return false
		}
		*f = flight{effect: e, traits: traitsOf(e)}
	}
	f.done, f.err, f.sync = false, nil, f.syncing()
	w.exclusive(lane)
	w.execute(f)
	l.after()
	if f.done || f.err != nil {
		w.completed(lane)
	}
	return true
}

// follow lets the follower read on to the end.
func (x *Explorer) follow(w *World, l *lens) {
	if w.res.Violation != "" || !w.serving() {
		return
	}
	on := l.pause()
	r := &w.readers[0]
	w.poll(&Event{A: 16384, B: 1 << 30})
	for r.fetch != nil && w.res.Violation == "" {
		w.fetched(r)
	}
	w.queue.reset()
	w.judge()
	l.resume(on)
}

// inherit makes the world what is left of another one whose process has just died, all but the disk.
func (w *World) inherit(from *World, crashes int) {
	w.s, w.h = from.s, from.h
	w.res = Result{Lives: from.res.Lives}
	w.disk.SetFaults(0)
	w.check.Copy(from.check)
	// Time and the number of the life are those of no sequence, so that what follows depends on what is
	// left and owed alone. The wall clock starts over: nothing is old enough for retention.
	w.clock.reset()
	w.clock.mono = int64(crashes) * 3600 * second
	w.clock.monoBase = w.clock.mono
	w.queue.reset()
	w.hashes = w.hashes[:0]
	w.late = [core.LaneCount]late{}
	w.stage = stageSafety
	w.process = process{life: int32(10 * crashes)}
	for i := range w.readers {
		w.readers[i].forget()
	}
	r, f := &w.readers[0], &from.readers[0]
	r.begun, r.pos, r.id, r.follow = f.begun, f.pos, f.id, f.follow
	r.cursor.Reset(r.pos)
	w.appends = append(w.appends[:0], from.appends...)
	w.waiting, w.wait = append(w.waiting[:0], from.waiting...), from.wait
	w.arena = append(w.arena[:0], from.arena...)
	w.unresolved()
	w.sequence = from.sequence
	w.decoder.reset(w.h.Config[0].LogID)
	w.room, w.limited = from.room, from.limited
	w.hits, w.places, w.tainted, w.struck = w.hits[:0], w.places[:0], 0, 0
	w.backs = append(w.backs[:0], back{end: w.check.End(), wall: wallStart})
	w.epoch, w.agreed, w.evidence = from.epoch, marked{}, 0
	w.ask, w.due = 0, 1<<62-1
	w.diedInOpen, w.lastConfig = false, 0
	w.walls = append(w.walls[:0], from.walls...)
	w.spans = w.spans[:0]
}

func (l *lens) end() {
	if l != nil {
		l.on = false
	}
}

func (l *lens) pause() bool {
	if l == nil {
		return false
	}
	on := l.on
	l.on = false
	return on
}

func (l *lens) resume(on bool) {
	if l != nil {
		l.on = on
	}
}

var _ faultfs.Observer = (*lens)(nil)
