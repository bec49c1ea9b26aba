package sim

import (
	"strings"

	"varve/core"
)

// late is an effect that was in flight when its life ended.
type late struct {
	log    *core.Log // that issued it
	effect core.Effect
	err    error
}

// X3: a completion arrives after the next life has begun.
//
// In production that cannot happen. An effect is completed by the goroutine of its lane, on the core
// that issued it, under that core's mutex; Close ends only when every lane has (driver.go stop), the
// lock of the directory is given back after that, and no goroutine outlives its process. A
// hung call therefore holds the next open up. The simulator goes further than the driver lets it: a
// process ends with effects in flight, the next life opens the directory, and then they complete.
//
// The effects keep their pointers until the log that issued them is opened again, one life later.

// keepLate notes what is in flight as a process ends.
func (w *World) keepLate() {
	for i := range w.flights {
		w.late[i] = late{w.log, w.flights[i].effect, w.flights[i].err}
	}
}

// planLate lets the completions of the life before arrive in this one, at some time.
func (w *World) planLate() {
	for i := range w.late {
		if w.late[i].effect != nil {
			if w.rng.Chance(8192) {
				w.queue.push(entry{at: w.clock.mono + w.rng.Between(0, 2*millisecond), kind: wakeLate, life: w.process.life})
			}
			return
		}
	}
}

// completeLate delivers them: to the log that lives, which must know that they are not its own, and
// to the one that issued them, if that is closed or poisoned. (One that died with its process has no
// memory left that could change.)
func (w *World) completeLate() {
	for i := range w.late {
		l := w.late[i]
		if l.effect == nil {
			continue
		}
		w.late[i] = late{}
		if l.log != w.dead { // opened again since: its effects are the new life's
			continue
		}
		w.res.Marks.add(MarkStale)
		if w.Trace != nil {
			w.say(trackLane(core.Lane(i)), Note, "lane %d: a completion of the life before arrives: %v", i, l.err)
		}
		before, calls := stateOf(w.log), w.fs.Calls()
		if !refusesLate(w.log, w.clock.now(), &l) || stateOf(w.log) != before {
			w.fail("X3", "a log took the completion of an earlier life's effect")
			return
		}
		switch w.dead.Phase() {
		case core.Closed, core.Failed, core.Poisoned:
			w.endLate(&l)
		}
		if w.fs.Calls() != calls {
			w.fail("X3", "a late completion reached the disk")
		}
	}
}

// endLate completes an effect on the log that issued it and that has ended: it may only tell, of what
// it still owes an answer, that nobody knows.
func (w *World) endLate(l *late) {
	before := stateOf(w.dead)
	w.dead.Complete(w.clock.now(), l.effect, l.err)
	for o, ok := w.dead.NextOutcome(); ok; o, ok = w.dead.NextOutcome() {
		if o.Err == nil {
			w.fail("X3", "a late completion acked an append of a log that had ended")
		}
	}
	if stateOf(w.dead) != before {
		w.fail("X3", "a late completion moved a watermark of a log that had ended")
	}
	for lane := range core.LaneCount {
		if w.dead.Next(w.clock.now(), lane) != nil {
			w.fail("X3", "a late completion made a log that had ended go on")
		}
	}
}

// refusesLate reports whether a log asserts, before anything else, that an effect is the one that it
// has in flight.
func refusesLate(log *core.Log, now core.Now, l *late) (refused bool) {
	defer func() {
		why, _ := recover().(string)
		refused = strings.HasSuffix(why, "completion of the effect in flight")
	}()
	log.Complete(now, l.effect, l.err)
	return false
}

// logState is what a completion could change of a log.
type logState struct {
	phase                           core.Phase
	start, frontier, committed, end core.Offset
	view                            uint64
	commits, syncs, saves           uint64
}

func stateOf(l *core.Log) logState {
	s := l.Stats()
	return logState{
		phase: l.Phase(), start: l.Start(), frontier: l.Frontier(), committed: l.Committed(), end: l.End(), view: l.ViewVersion(),
		commits: s.Commits, syncs: s.Syncs, saves: s.SuperSaves,
	}
}
