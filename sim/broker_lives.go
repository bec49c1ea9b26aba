package sim

import (
	"errors"

	"varve/core"
	"varve/core/topics"
	"varve/faultfs"
	"varve/model/node"
)

// finalStage is how far a run is once all faults are over.
type finalStage uint8

const (
	finalRest    finalStage = iota // everything comes to rest
	finalReopen                    // it is closed and opened once more
	finalLook                      // and looked at
	finalClosing                   // and closed for good
)

// start begins a life of the node.
func (b *broker) start() {
	w := b.w
	p := &w.process
	*p = process{
		life: p.life + 1, config: p.config, recovery: p.recovery, failed: p.failed, bound: p.bound, doom: p.doom,
		delay: millisecond, faults: p.faults, injected: w.disk.Counts().Injected, up: true,
	}
	w.res.Lives++
	if n := p.recovery[0]; n > 0 && w.stage == stageSafety {
		w.fs.SetCallBudget(n, w.rng.Next()&1 == 0)
		p.recovery = [2]int64{p.recovery[1]}
		p.doom = DeathKill
		if w.rng.Next()&1 == 0 {
			p.doom = DeathPower
		}
	}
	w.note(hashPhase, uint64(p.life), uint64(w.clock.mono))
	if w.Trace != nil {
		w.say(TrackWorld, Started, "node starts, configuration %d", p.config)
	}
	if p.life > 1 && p.config != w.lastConfig {
		w.res.Marks.add(MarkConfig)
	}
	w.lastConfig = p.config
	b.units[catalogueUnit].fs = w.fs
	b.version, b.known = 0, [topicsMax]found{}
	cfg := topics.DefaultConfig()
	cfg.PartitionsMax = 10
	cfg.ProducersBlock = 2
	cfg.SnapshotEntries = 6
	b.machine.Begin(cfg)
}

// restart is an orderly end of the node, and a start afterwards.
func (b *broker) restart(e *Event) {
	p := &b.w.process
	if !p.up || p.leaving || p.exiting {
		return
	}
	p.delay = e.B
	if b.w.h.On(SwConfig) {
		p.config = e.A
	}
	b.leave()
}

func (b *broker) leave() {
	b.w.process.leaving = true
	b.machine.Close()
	b.units[catalogueUnit].ask = true
}

// leaving closes the logs once the machine has ended, and ends the process once they are closed.
func (b *broker) leaving() (moved bool) {
	w, p := b.w, &b.w.process
	if !p.up || !p.leaving || b.machine.Phase() != topics.Closed {
		return false
	}
	open := false
	for i := len(b.units) - 1; i >= 0; i-- {
		u := b.units[i]
		if u.slot == catalogueUnit && open {
			break // the last one
		}
		switch u.state {
		case unitOpen, unitOpening:
			u.state, u.ask = unitClosing, true
			u.log.Close(w.clock.now())
			open, moved = true, true
		case unitClosing:
			open = true
		}
	}
	if open {
		return moved
	}
	w.res.Marks.add(MarkClosed)
	if n := w.disk.OpenFiles(); n != 0 {
		w.fail("K20", "files are still open after a close")
	}
	b.gone()
	if b.final == finalClosing {
		w.stage = stageDone
		return true
	}
	b.reopenLater()
	return true
}

func (b *broker) reopenLater() {
	w := b.w
	w.queue.push(entry{at: w.clock.mono + w.process.delay, kind: wakeOpen, life: w.process.life})
}

// exit ends a process that cannot go on; an operator starts it again.
func (b *broker) exit() {
	if b.w.process.up {
		b.gone()
		b.reopenLater()
	}
}

// failed reacts to a machine that has given up.
func (b *broker) failed() {
	w, p := b.w, &b.w.process
	if !p.up || p.exiting || b.machine.Phase() != topics.Failed {
		return
	}
	p.exiting = true
	p.failed++
	err := b.machine.Err()
	if w.Trace != nil {
		w.say(TrackWorld, Failed, "the node does not open: %v", err)
	}
	var strange *topics.CatalogueError
	var unknown *topics.UnknownDirError
	if (errors.As(err, &strange) || errors.As(err, &unknown)) && !b.damaged() {
		w.fail("N1", "a node refuses its own directory: "+err.Error())
	}
	if w.stage != stageSafety && p.failed > 3 && !b.damaged() && !w.disk.Marks().Has(faultfs.D14ReadBad) {
		w.fail("K19", "the node does not open although all faults are over: "+err.Error())
	}
	if w.stage != stageSafety && p.failed > 3 {
		w.res.Refused = true
		w.stage = stageDone
		return
	}
	w.healAfter(p.failed)
	p.delay = w.rng.Between(microsecond, millisecond)
	w.queue.push(entry{at: w.clock.mono + w.rng.Between(0, 2*millisecond), kind: wakeExit, life: p.life})
}

// gone is the end of a process.
func (b *broker) gone() {
	w := b.w
	for _, u := range b.units {
		if u.state != unitFree {
			w.res.Marks.joinCore(u.log)
		}
		b.leaderless(u, u.unsynced || u.phase == core.Poisoned)
		u.forget()
	}
	for _, x := range b.readers {
		x.handle.Forget()
		x.unit = -1
	}
	for _, op := range b.doubts {
		b.check.End(op)
	}
	b.doubts, b.tickets = b.doubts[:0], b.tickets[:0]
	for c := range b.clients {
		id := b.clients[c].busy
		if r := &b.requests[id]; id != 0 && r.open {
			r.read = nil
			b.check.End(id)
			b.gaveUp(id)
		}
	}
	for i := range b.tasks {
		b.tasks[i] = task{unit: -1}
	}
	w.res.Marks.Topics |= b.machine.Marks()
	w.fs.Kill()
	w.process.up = false
}

// crash ends a life as the schedule says.
func (b *broker) crash(e *Event) {
	w, p := b.w, &b.w.process
	if p.up {
		p.delay = e.C
		if w.h.On(SwConfig) {
			p.config = e.D & 1
		}
		p.recovery = [2]int64{e.D >> 8 & 255, e.D >> 16 & 255}
		p.doom = e.A
		w.fs.SetCallBudget(e.B, w.rng.Next()&1 == 0)
		b.spendBudget()
		b.die(e.A)
		return
	}
	switch e.A {
	case DeathPower, DeathKillPower, DeathKillPressurePower, DeathPowerPower:
		b.powerWhileDown()
	case DeathKillPressure:
		b.pressure()
	}
}

// spendBudget lets the effects in flight go on until the calls that the crash leaves them are used up.
func (b *broker) spendBudget() {
	w := b.w
	first := int(w.rng.Below(int64(len(b.units))))
	for i := range b.units {
		u := b.units[(first+i)%len(b.units)]
		for lane := range u.flights {
			f := &u.flights[lane]
			for f.effect != nil && !w.fs.Dead() && !(f.executed && (f.done || f.err != nil)) {
				b.execute(u, f)
			}
		}
	}
	for i := range b.tasks {
		if e, ok := b.tasks[i].effect.(*topics.Remove); ok && b.tasks[i].stage%3 == 1 && !w.fs.Dead() {
			w.fs.Beside(&b.rest, b.paths.name(placeOf(topicIndex(e.Topic), e.Incarnation, e.From+int32(b.tasks[i].stage/3))))
			_ = b.rest.RemoveDir()
		}
	}
}

func (b *broker) pressure() {
	w := b.w
	w.disk.MemoryPressure(&w.dice)
	if w.ghosts {
		b.unproven()
	}
	b.damaged()
}

// die ends the process at once.
func (b *broker) die(how Death) {
	w, p := b.w, &b.w.process
	w.note(hashCrash, uint64(how), uint64(w.clock.mono))
	if w.Trace != nil {
		w.say(TrackWorld, Died, "CRASH: %s", deathNames[how])
	}
	inOpen := b.machine.Phase() < topics.Ready
	if inOpen {
		w.res.Marks.add(MarkRecoveryCrash)
		if w.diedInOpen {
			w.res.Marks.add(MarkRecoveryCrashTwice)
		}
	}
	w.diedInOpen = inOpen
	p.failed = 0
	b.gone()
	if (how == DeathPower || how == DeathPowerPower) && w.h.On(SwPower) {
		b.powerWhileDown()
	} else {
		w.res.Marks.add(MarkKill)
	}
	if how == DeathKillPressure || how == DeathKillPressurePower {
		b.pressure()
		w.res.Marks.add(MarkPressure)
	}
	if how != DeathKill && how != DeathPower && how != DeathKillPressure {
		w.queue.push(entry{at: w.clock.mono + p.delay/2, kind: wakePower, life: p.life})
	}
	b.reopenLater()
}

// powerWhileDown is a power loss while no process runs.
func (b *broker) powerWhileDown() {
	w := b.w
	if w.process.up {
		return
	}
	w.dice.Seed(w.rng.Next())
	w.disk.PowerLoss(&w.dice, w.judged())
	w.ghosts = false
	w.res.Marks.add(MarkPower)
	if w.Trace != nil {
		w.say(TrackWorld, Lost, "power loss")
	}
	b.unproven()
	b.damaged()
}

// unproven tells the checker that what the last leaders did not prove may be gone.
func (b *broker) unproven() {
	for i := range b.leaders {
		x := &b.leaders[i]
		b.check.Unproven(x.topic, x.part, x.proven)
	}
}

// retryLater lets the machine try again what failed, and opens what is poisoned, as the driver does every
// now and then.
func (b *broker) retryLater() {
	w := b.w
	if !b.retrying {
		b.retrying = true
		w.queue.push(entry{at: w.clock.mono + 10*millisecond, kind: wakeRetry, life: -1})
	}
}

func (b *broker) retry() {
	b.retrying = false
	if !b.w.process.up || b.w.process.leaving {
		return
	}
	b.machine.Retry()
	for _, u := range b.units[1:] {
		if u.state == unitOffline { // it was poisoned, or could not be opened
			_, incarnation, _ := b.paths.parts(u.place)
			b.machine.Reopen(incarnation)
		}
	}
	b.units[catalogueUnit].ask = true
	if b.unrest() != "" {
		b.retryLater()
	}
}

// beginLiveness ends all faults: from here everything has to resolve.
func (b *broker) beginLiveness() {
	w, p := b.w, &b.w.process
	w.stage = stageLiveness
	w.disk.Heal()
	w.disk.SetCapacity(0)
	w.fs.SetCallBudget(-1, false)
	p.faults, p.recovery, p.failed = false, [2]int64{}, 0
	p.bound = w.clock.mono + livenessBound
	w.rng.Seed(sub(w.h.Seed, 5))
	if w.Trace != nil {
		w.say(TrackWorld, Healed, "all faults are over")
	}
	for _, u := range b.units {
		u.slow = 0
	}
	b.retryLater()
	if !p.up && !w.opening() {
		w.queue.push(entry{at: w.clock.mono + 1, kind: wakeOpen, life: p.life})
	}
}

// unrest says what is under way or not online, "" if nothing is.
func (b *broker) unrest() string {
	switch {
	case !b.w.process.up || b.w.process.leaving:
		return "the node is down"
	case b.machine.Phase() != topics.Ready:
		return "the machine is " + b.machine.Phase().String()
	case len(b.tickets) > 0:
		return "a request about a topic has no answer"
	}
	for i := range b.tasks {
		if b.tasks[i].effect != nil {
			return "an effect of the machine is under way"
		}
	}
	for i := range b.machine.State().Incarnations {
		if t := &b.machine.State().Incarnations[i]; t.Status != topics.Live || t.Growing != 0 {
			return "something is still to be removed"
		}
	}
	for c := range b.clients {
		if b.clients[c].busy != 0 {
			return "a client waits"
		}
	}
	for _, u := range b.units {
		switch {
		case u.state == unitFree:
		case u.slot == catalogueUnit && u.state == unitOffline && b.final == finalRest:
			// poisoned while nobody wrote: the next entry, or the next open, will tell
		case u.state != unitOpen || u.phase != core.Ready:
			return "a log is offline"
		case !u.idle():
			return "a log has work to do"
		}
	}
	return ""
}

// progress moves a close on, and the run through its last stages. It reports whether it did anything.
func (b *broker) progress() (moved bool) {
	w := b.w
	b.failed()
	moved = b.leaving()
	if w.stage != stageLiveness || w.res.Violation != "" || b.unrest() != "" {
		return moved
	}
	switch b.final {
	case finalRest:
		b.final = finalReopen
		w.process.delay = millisecond
		b.leave()
	case finalReopen:
		b.final = finalLook
		b.lookAtAll()
	case finalLook:
		b.final = finalClosing
		b.leave()
	}
	return true
}

// lookAtAll judges what is left as clients see it, and what lies on the disk.
func (b *broker) lookAtAll() {
	w := b.w
	w.disk.Pause()
	defer w.disk.Resume()
	places := 0
	for name := range topicNames {
		id := b.call(0, Metadata, node.Request{Kind: node.Look, Name: int8(name)})
		b.clients[0].busy = 0
		b.requests[id].open = false
		f := b.known[name]
		a := node.Answer{Result: node.Missing}
		if f.topic != 0 {
			a = node.Answer{Result: node.Done, Topic: f.topic, Partitions: f.partitions}
		}
		b.check.Return(id, a)
		for part := range f.partitions {
			places++
			b.lookAt(int8(name), part, f)
		}
	}
	names, err := w.fs.Dirs(b.dirs[:0])
	b.dirs = names
	switch {
	case err != nil:
		w.fail("K20", "the node's directory cannot be listed: "+err.Error())
	case len(names) != places && !b.damaged():
		w.fail("K20", "directories are left that no topic has")
	}
	if len(b.machine.Others()) > 0 && !b.damaged() {
		w.fail("K20", "an open found directories that no topic has: "+b.machine.Others()[0])
	}
}

// lookAt reads a partition whole.
func (b *broker) lookAt(name int8, part int32, f found) {
	w := b.w
	u := b.unitAt(placeOf(int(name), f.incarnation, part))
	if u == nil || !u.serving() {
		if !b.damaged() && !w.disk.Marks().Has(faultfs.D14ReadBad) {
			w.fail("K19", "a partition is offline although all faults are over")
		}
		return
	}
	id := b.call(0, Fetch, node.Request{Kind: node.Fetch, Name: name, Partition: part})
	b.clients[0].busy = 0
	r := &b.requests[id]
	r.open, r.topic = false, f.topic
	c := &w.auditor.cursor
	defer func() { _ = w.auditor.handle.Close() }()
	c.Reset(core.Position{Offset: u.log.Start()})
	next := u.log.Start()
	for {
		if u.view.Version != u.log.ViewVersion() {
			u.log.FillView(&u.view)
		}
		fetch, err := c.Next(&u.view, u.log.Committed(), 1<<16)
		if fetch == nil || err != nil {
			if err != nil && !b.damaged() {
				w.fail("K11", "a partition cannot be read: "+err.Error())
			}
			break
		}
		b.locate(u, fetch)
		if err := c.Complete(fetch, u.store.Fetch(fetch, &w.auditor.handle)); err != nil {
			if !w.disk.Marks().Has(faultfs.D14ReadBad) {
				w.fail("K3", "a partition cannot be read: "+err.Error())
			}
			return
		}
		for x, ok := c.Batch(); ok; x, ok = c.Batch() {
			b.shown(id, &x)
			next = x.End()
		}
	}
	b.check.Return(id, node.Answer{
		Result: node.Done, Topic: f.topic, Offset: u.log.Start(), Next: next,
		Start: u.log.Start(), High: u.log.Committed(), Epoch: int32(u.log.Epoch()), Stood: -1,
	})
	b.check.Audited(f.topic, part, u.log.Start(), u.log.Committed())
}

// stuck is K19: the faults are over, and things do not resolve.
func (b *broker) stuck() {
	w := b.w
	switch {
	case b.damaged() || w.disk.Marks().Has(faultfs.D14ReadBad):
		w.res.Refused = true
	case !w.process.up:
		w.fail("K19", "the node is down for good")
	default:
		w.fail("K19", "the node does not come to rest: "+b.unrest())
	}
	w.stage = stageDone
}
