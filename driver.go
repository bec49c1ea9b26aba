package varve

import (
	"context"
	"runtime"
	"time"

	"varve/core"
)

// lane runs effects one after the other. Invariant: busy from the moment an effect is taken from
// the core (or the Tail lane is claimed) until its completion was settled; only then may another be
// sent, so the channel's one slot always has room.
type lane struct {
	work chan core.Effect // nil on the Tail lane: claimed, go and look
	busy bool
}

// now reads both clocks.
func (l *Log) now() core.Now {
	t := time.Now()
	return core.Now{Mono: int64(t.Sub(l.began)), Wall: t.UnixNano()}
}

// enter takes the mutex and reads the clocks.
func (l *Log) enter() core.Now {
	l.mu.Lock()
	return l.notBack(l.now())
}

// notBack makes a reading of the clocks that may be older than the mutex's last holder's fit for
// the core, whose durations never go back.
func (l *Log) notBack(now core.Now) core.Now {
	l.latest = max(l.latest, now.Mono)
	now.Mono = l.latest
	return now
}

// start launches the lanes and the timer, and hands out the first effect.
func (l *Log) start() {
	for i := range l.lanes {
		l.lanes[i].work = make(chan core.Effect, 1)
	}
	l.timer = time.NewTimer(time.Hour)
	l.view.Store(new(core.View))
	l.lanesDone.Add(4)
	go l.runTail()
	go l.runLane(core.Syncs, l.store.Run)
	go l.runLane(core.Hot, l.store.Run)
	if l.cold != nil {
		l.lanesDone.Add(2)
		go l.runLane(core.Uploads, l.cold.Run)
		go l.runLane(core.Catalogue, l.cold.Run)
	}
	if l.warm != nil {
		l.lanesDone.Add(1)
		go l.runLane(core.Warm, l.warm.Run)
	}
	go l.runTimer()
	l.settle(l.enter())
}

// settle ends every critical section: it carries the core's state outside, as the package comment
// says, and gives the mutex back.
func (l *Log) settle(now core.Now) {
	for i := range l.lanes {
		l.dispatch(now, core.Lane(i))
	}
	wake := l.cohorts.resolve(l.core)
	news := l.publish()
	l.reportStall()
	l.arm(now)
	l.stop()
	l.mu.Unlock()
	wake.wake(false)
	l.tell(news)
}

// dispatch hands an idle lane its next effect.
func (l *Log) dispatch(now core.Now, id core.Lane) {
	n := &l.lanes[id]
	if n.busy || l.stopped {
		return
	}
	if e := l.next(now, id); e != nil {
		switch {
		case l.phase != core.Opening:
		case id < core.Catalogue: // it has what it wanted of the tiers, for now
			l.asked = 0
		case l.asked == 0:
			l.asked = max(now.Mono, 1)
		}
		n.busy = true
		n.work <- e
	}
}

// next takes an effect from the core. At a cut nobody has joined the next commit yet.
func (l *Log) next(now core.Now, id core.Lane) core.Effect {
	e := l.core.Next(now, id)
	if _, ok := e.(*core.Commit); ok {
		l.gathering.Store(0)
	}
	return e
}

// publish makes watermarks and view visible. What it returns is for tell, once the mutex is given back.
func (l *Log) publish() (n news) {
	changed := false
	if v := l.view.Load(); v.Version != l.core.ViewVersion() {
		v = new(core.View)
		l.core.FillView(v)
		l.view.Store(v)
		changed = true
	}
	if c := l.core.Committed(); c != l.committed.Load() {
		l.committed.Store(c)
		changed = true
	}
	if p := l.core.Phase(); p != l.phase {
		l.phase, changed = p, true
		if p == core.Poisoned {
			l.logger.Error("varve: log is poisoned: close it and open it again", "dir", l.name, "cause", l.core.Err())
		}
	}
	if changed {
		n.moved, l.moved = l.moved, nil
		n.any = true
	}
	return n
}

// arm sets the timer if the core wants it earlier than it is set for. It is never set back: to
// fire early is harmless and cheaper than to move it with every append.
func (l *Log) arm(now core.Now) {
	at, ok := l.core.Deadline()
	if !ok || l.stopped || l.armed != 0 && l.armed <= at {
		return
	}
	wait := max(time.Duration(at-now.Mono), timerFloor)
	l.armed = now.Mono + int64(wait)
	l.timer.Reset(wait)
}

// timerFloor bounds how often the timer fires while something that is due has to wait for a lane.
const timerFloor = time.Millisecond

// stop ends the lanes once the core is closed and no effect is in flight.
func (l *Log) stop() {
	if l.stopped || l.phase != core.Closed && l.phase != core.Failed {
		return
	}
	if l.warm != nil { // a WAIT may last, and means nothing any more
		l.links.cut()
	}
	for i := range l.lanes {
		if l.lanes[i].busy {
			return
		}
	}
	l.stopped = true
	for i := range l.lanes {
		close(l.lanes[i].work)
	}
	close(l.idle)
}

func (l *Log) runTimer() {
	defer l.lanesDone.Done()
	defer l.timer.Stop()
	for {
		select {
		case <-l.idle:
			return
		case <-l.timer.C:
			now := l.enter()
			l.armed = 0
			if at, ok := l.core.Deadline(); ok && at <= now.Mono {
				l.core.Tick(now)
			}
			l.settle(now)
		}
	}
}

// runLane carries out the effects of a lane other than Tail.
func (l *Log) runLane(id core.Lane, run func(core.Effect) error) {
	defer l.lanesDone.Done()
	for e := range l.lanes[id].work {
		err := run(e)
		now := l.enter()
		l.core.Complete(now, e, err)
		l.lanes[id].busy = false
		if l.phase == core.Opening && id >= core.Catalogue {
			if s := l.core.Stats(); s.ColdError == nil && s.WarmError == nil {
				l.asked = 0
			}
		}
		switch id {
		case core.Uploads, core.Catalogue:
			l.reportCold()
		case core.Warm:
			l.reportWarm()
			l.regather()
		}
		l.settle(now)
	}
}

// reportCold logs that the cold tier has ceased to answer, or answers again. One failure is none. The
// mutex is held.
func (l *Log) reportCold() {
	s := l.core.Stats()
	switch {
	case l.core.Phase() == core.Failed: // with this very error
	case s.ColdError != nil:
		if l.coldFails++; l.coldFails == tierFailsMax {
			exported, bytes, segments := any(s.Exported), any(s.ColdLagBytes), any(s.ColdLagSegments)
			if s.Exported < 0 {
				exported, bytes, segments = "unknown", "unknown", "unknown"
			}
			l.logger.Warn("varve: the cold tier does not answer as it should", "dir", l.name, "error", s.ColdError, "exported", exported,
				"lag_bytes", bytes, "lag_segments", segments)
		}
	case l.coldFails >= tierFailsMax:
		l.logger.Info("varve: the cold tier answers again", "dir", l.name)
		fallthrough
	default:
		l.coldFails = 0
	}
}

// tierFailsMax is after how many failures in a row a tier counts as one that does not answer.
const tierFailsMax = 3

// runTail carries out the Tail lane's effects that no caller carries out itself.
func (l *Log) runTail() {
	defer l.lanesDone.Done()
	for e := range l.lanes[core.Tail].work {
		if e == nil {
			now := l.enter()
			wake := l.handed
			l.handed = woken{}
			if e = l.begin(l.rouse(now, wake)); e == nil {
				continue
			}
		}
		l.lead(e, nil)
	}
}

// begin takes the first effect for who has claimed the Tail lane, nil if there is none: then the
// lane is given back. The mutex is held, and given back.
func (l *Log) begin(now core.Now) core.Effect {
	e := l.next(now, core.Tail)
	if e == nil {
		l.yieldTail(now)
		return nil
	}
	l.settle(now)
	return e
}

// lead carries out effects of the Tail lane, which the caller has claimed: e first, then what the
// core has, until there is nothing left, or own has its outcome: then it reports true.
func (l *Log) lead(e core.Effect, own *cohort) bool {
	for e != nil {
		err := l.store.Run(e)
		now := l.enter()
		l.core.Complete(now, e, err)
		wake := l.cohorts.resolve(l.core)
		l.expected.Store(wake.batches + l.gathering.Load())
		if own != nil && own.resolved {
			l.passOn(now, wake)
			return true
		}
		if own == nil && wake.first != nil && (l.cohorts.len() > 0 || wake.many()) {
			now, wake = l.rouse(now, wake), woken{}
		}
		l.cohorts.rejoin(wake)
		e = l.begin(now)
	}
	return false
}

// rouse wakes those that are acked and lets them join the next commit, for which they are about to
// append again. The mutex is held, and given back meanwhile.
func (l *Log) rouse(now core.Now, wake woken) core.Now {
	if wake.first == nil && l.expected.Load() <= l.gathering.Load() {
		return now
	}
	news := l.publish()
	l.mu.Unlock()
	l.tell(news) // first: those that append again keep the processors
	wake.wake(true)
	l.gather()
	return l.enter()
}

// passOn ends the lead of a caller whose batch has its outcome. What gathered meanwhile, and many
// waiters, are the Tail goroutine's.
func (l *Log) passOn(now core.Now, wake woken) {
	if l.cohorts.len() == 0 && !wake.many() {
		l.cohorts.rejoin(wake)
		l.yieldTail(now)
		return
	}
	l.handed = wake
	l.lanes[core.Tail].work <- nil
	l.settle(now)
}

// regather hands those that the warm tier has acked to the Tail goroutine, as passOn does: the next commit
// has waited for them. The mutex is held.
func (l *Log) regather() {
	tail := &l.lanes[core.Tail]
	if tail.busy || l.stopped {
		return
	}
	wake := l.cohorts.resolve(l.core)
	l.expected.Store(wake.batches + l.gathering.Load())
	if l.cohorts.len() == 0 && !wake.many() {
		l.cohorts.rejoin(wake)
		return
	}
	l.handed, tail.busy = wake, true
	tail.work <- nil
}

// yieldTail gives the Tail lane back.
func (l *Log) yieldTail(now core.Now) {
	l.lanes[core.Tail].busy = false
	l.settle(now)
}

// gatherIdle is how many yields of the processor in a row without a writer that joins end the wait
// before a cut.
const gatherIdle = 16

// gather lets writers join the next commit: as many as waited during the last one are likely to
// come. A lone writer waits for nobody.
func (l *Log) gather() {
	want, have := l.expected.Load(), l.gathering.Load()
	for idle := 0; have < want && idle < gatherIdle; idle++ {
		runtime.Gosched()
		if now := l.gathering.Load(); now > have {
			have, idle = now, 0
		}
	}
}

// await waits until done reports true or an error. done is called with the mutex held, again
// whenever watermarks, view or phase have changed. It registers before it looks, so nothing that
// happens in between is lost.
func (l *Log) await(ctx context.Context, done func() (bool, error)) error {
	for {
		l.mu.Lock()
		ok, err := done()
		if ok || err != nil {
			l.mu.Unlock()
			return err
		}
		if l.moved == nil {
			l.moved = make(chan struct{})
		}
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
