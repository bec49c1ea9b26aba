package sim

import (
	"errors"

	"varve/core"
	"varve/faultfs"
	"varve/model"
	"varve/tiers/disk"
)

// process is the one process that runs the log, in its present life.
type process struct {
	up      bool
	opened  bool // this life's recovery has finished
	leaving bool // a close was asked for
	exiting bool // the operator's exit is planned
	judged  bool // K10 was asked in this life
	final   bool // the last append was made
	life    int32
	config  int64
	rescue  bool // the operator opens with allow_damaged and repair_checksum_tail
	accept  bool // and with accept_loss: what only a lost disk held is given up
	loaded  bool // the open has read the manifest
	tried   bool // and tried to claim it
	refused bool // which the bucket did not take
	faults  bool // random faults are on

	doom     Death
	nonce    uint64
	saves    int64    // lives, from this one on, that end in a save of the superblock
	lives    int64    // brief lives to come
	recovery [2]int64 // call budgets of the lives to come
	delay    int64    // before the reopen
	failed   int      // opens in a row that ended in an error
	bound    int64    // virtual time at which everything must have resolved
	spins    int
	phase    core.Phase

	written   core.Offset // records whose write into the active segment succeeded
	start     core.Offset
	hot       core.Offset // HotStart
	hotView   uint64      // of the view in which that was looked at
	trim      core.Offset // greatest trim that waits
	recovered core.Offset
	bytes     int64     // of the active segment
	wallReady core.Time // when the recovery finished
	injected  uint64    // errors of calls before this life
	retainAt  int64
	retries   int
}

// start begins a life.
func (w *World) start() {
	p := &w.process
	w.dead, w.log = w.log, w.dead
	w.ask = askAll
	*p = process{
		life: p.life + 1, config: p.config, rescue: p.rescue, accept: p.accept, recovery: p.recovery, failed: p.failed,
		bound: p.bound, doom: p.doom, saves: p.saves, lives: p.lives, final: p.final, delay: millisecond,
		faults: p.faults, injected: w.disk.Counts().Injected,
	}
	w.res.Lives++
	w.flights = [core.LaneCount]flight{}
	w.spoiled = 0
	w.store.Reset(w.fs)
	w.cold.begin(w)
	w.warm.begin(w)
	w.cold.told = w.cold.told[:0]
	w.view.Version, w.cold.view.Version = 1<<64-1, 1<<64-1 // of another log
	if n := p.recovery[0]; n > 0 && w.stage == stageSafety {
		if torn := w.rng.Next()&1 == 0; !w.sparesOpen() {
			w.fs.SetCallBudget(n, torn)
		}
		p.recovery = [2]int64{p.recovery[1]}
		p.doom = DeathKill
		if w.rng.Next()&1 == 0 { // what an earlier life left unsynced goes with what this one writes
			p.doom = DeathPower
		}
	}
	w.note(hashPhase, uint64(p.life), uint64(w.clock.mono))
	if w.Trace != nil {
		w.say(TrackWorld, Started, "process starts, configuration %d", p.config)
	}
	if p.life > 1 && p.config != w.lastConfig {
		w.res.Marks.add(MarkConfig)
	}
	w.lastConfig = p.config
	if err := w.takeLock(); err != nil {
		w.noLock(err)
		return
	}
	p.up = true
	cfg := w.h.Config[p.config]
	p.nonce = sub(w.h.Seed, uint64(p.life)<<32) | 1
	cfg.Nonce = p.nonce
	cfg.AcceptLoss = p.accept
	if p.rescue {
		cfg.AllowDamaged, cfg.RepairChecksumTail = true, true
	}
	if w.h.On(SwConfig) && w.rng.Chance(8192) {
		w.tryBadConfig(cfg)
	}
	if err := w.log.Reopen(cfg, w.clock.now()); err != nil {
		w.fail("config", err.Error())
	}
	w.planLate()
}

// noLock ends a life that did not get as far as the log.
func (w *World) noLock(err error) {
	p := &w.process
	if w.Trace != nil {
		w.say(TrackWorld, Failed, "no lock: %v", err)
	}
	w.res.Marks.add(MarkOpenFailed)
	p.failed++
	if w.fs.Dead() {
		w.res.Marks.add(MarkRecoveryCrash)
	} else {
		w.judgeOpenError(err)
	}
	w.healAfter(p.failed)
	w.fs.Kill()
	w.reopenLater()
}

// healAfter ends the faults once opens have failed again and again: an operator reads the errors.
func (w *World) healAfter(failed int) {
	if failed > 4 && w.stage == stageSafety {
		w.disk.Heal()
		w.process.faults = false
	}
}

// takeLock takes the directory's lock as the driver does: the directory is made if it is missing.
func (w *World) takeLock() error {
	var err error
	w.lock, err = w.fs.Lock("lock")
	if errors.Is(err, disk.ErrNotExist) {
		if err = w.fs.Mkdir(disk.DirLog); err == nil {
			w.lock, err = w.fs.Lock("lock")
		}
	}
	return err
}

// couldNotOpen ends a life that never began to serve; the operator tries again after a while.
func (w *World) couldNotOpen(err error) {
	p := &w.process
	if w.fs.Dead() {
		w.die(p.doom)
		return
	}
	w.res.OpenFaults++
	w.res.Marks.add(MarkOpenFailed)
	p.failed++
	if w.Trace != nil {
		w.say(TrackWorld, Failed, "open failed: %v", err)
	}
	w.judgeOpenError(err)
	w.healAfter(p.failed)
	w.planExit()
}

// judgeOpenError tells I/O errors, which are injected, from refusals, which need damage.
func (w *World) judgeOpenError(err error) {
	p := &w.process
	switch err.(type) {
	case *core.CorruptError, *core.LostSuffixError, *core.RefusedError:
	default:
		if w.stage != stageSafety && p.failed > 3 {
			if w.disk.Marks().Has(faultfs.D14ReadBad) {
				w.refuse()
				return
			}
			w.fail("K19", "open fails again and again although all faults are over: "+err.Error())
		}
		return
	}
	w.res.Marks.add(MarkOpenRefused)
	if e, ok := err.(*core.CorruptError); ok && w.h.Cold() && !w.wild() && e.End > e.Offset && w.cold.covers(e.Offset, e.End) {
		w.fail("K11", "an open was refused for damage to records that whole objects hold: "+err.Error())
		return
	}
	_, refused := err.(*core.RefusedError)
	if refused && w.manifestHidden() {
		return // until it is there again
	}
	if refused && w.anotherThere() {
		w.refuse() // until the operator gives one of them another name
		return
	}
	if refused && w.lostInTwoPlaces() {
		return
	}
	if !w.damaged() || refused && w.oneSlotIsWhole() {
		w.fail("K25", "an open was refused although nothing was damaged: "+err.Error())
		return
	}
	if p.rescue && p.failed > 2 {
		w.refuse()
	}
	p.rescue = true
}

// refuse ends the run: what is damaged stays detected.
func (w *World) refuse() {
	w.res.Refused = true
	w.process.opened = false // nothing more is compared
	w.stage = stageDone
}

// phase reacts to where the log stands.
func (w *World) phase() {
	p := &w.process
	now := w.log.Phase()
	if now != p.phase {
		p.phase = now
		w.note(hashPhase, uint64(now), uint64(w.clock.mono))
		if w.Trace != nil {
			w.say(trackLog, Phased, "log is %s (start %d, committed %d, end %d, epoch %d) %v",
				now, w.log.Start(), w.log.Committed(), w.log.End(), w.log.Epoch(), w.log.Err())
		}
	}
	switch {
	case now == core.Recovering && p.refused:
		w.servesVoid()
	case now == core.Ready && !p.opened:
		w.opened()
	case now == core.Poisoned && !p.leaving:
		w.res.Marks.add(MarkPoisoned)
		if !p.hurt(w) && !(w.log.Err() == core.ErrOwnerFenced && (w.rival.marked || w.markersReturn())) {
			w.fail("K19", "a log is poisoned, and no call has failed but for want of space")
		}
		w.planExit()
	case now == core.Failed && !p.exiting:
		w.couldNotOpen(w.log.Err())
	case now == core.Closed && !p.exiting && w.idle(core.LaneCount):
		w.closed()
	}
}

// idle reports whether no effect of the lanes before one is in flight.
func (w *World) idle(before core.Lane) bool {
	for i := range w.flights[:before] {
		if w.flights[i].effect != nil {
			return false
		}
	}
	return true
}

// opened takes what a finished recovery claims, and looks at what it really holds.
func (w *World) opened() {
	p, l := &w.process, w.log
	if w.anotherThere() && w.warm.otherIn < p.life && !w.damaged() {
		w.fail("K12", "a log was opened whose name in the warm tier another one has too")
		return
	}
	another := w.anotherLog()
	if p.accept && w.h.Warm() {
		w.gaveUp()
	}
	p.opened, p.failed, p.rescue, p.accept = true, 0, false, false
	w.keptStill()
	w.diedInOpen, w.cold.exposed = false, false
	if w.stage > stageLiveness {
		w.stage = stageLiveness // an old error came up in the last close: again
	}
	p.written, p.recovered, p.start = l.End(), l.End(), l.Start()
	p.wallReady = w.clock.now().Wall
	if w.Trace != nil {
		w.sayPlan(l.Plan())
	}
	w.excuse()
	cfg := &w.h.Config[p.config]
	if another || l.Epoch() <= w.epoch && !w.oneSlotIsWhole() || l.Start() < w.check.Start() && w.wild() {
		w.refuse() // a disk that lies takes the whole log with it, or both superblock slots back
		return
	}
	w.epoch = l.Epoch()
	w.cutEvidence()
	if w.h.Cold() {
		w.judgeClaim(l.Epoch(), p.nonce)
	}
	w.rival.claimed = true
	w.check.Opened(w.clock.mono, model.Life{
		Epoch: l.Epoch(), Policy: model.Policy(cfg.Sync), SyncInterval: cfg.SyncInterval,
		Start: l.Start(), End: l.End(), Committed: l.Committed(),
		Waits: w.h.Warm(),
	})
	w.rivalOwes()
	if l.Committed() < l.End() {
		w.res.Marks.add(MarkHidden)
	}
	if l.End() > 0 && p.lives%auditedLives == 0 {
		w.audit()
	}
	w.refreshView()
	p.hot, w.onDisk = l.HotStart(), w.onDisk[:0]
	w.check.HotStartFound(w.clock.mono, p.hot)
	w.retention()
	w.atOpen = append(w.atOpen[:0], w.segments()...)
	if p.lives > 0 {
		w.queue.push(entry{at: w.clock.mono, kind: wakeBrief, life: p.life})
	}
}

// livesMax bounds the brief lives after a restart: a run of so many lives has no more of them.
const livesMax = 400

// auditedLives is of how many brief lives one begins with an audit, and so does the life after them: what
// one of them loses is missing in all that follow.
const auditedLives = 16

// brief is a life of one append, between an open and a close: many of them make the lineage long.
func (w *World) brief() {
	p := &w.process
	if !p.up || p.leaving || p.exiting || w.stage != stageSafety {
		return
	}
	p.lives--
	w.appendNow(0, attempt{records: 1}, 8, ContentPattern)
	p.leaving = true
	w.log.Close(w.clock.now())
}

// planExit lets an operator end a process that cannot go on.
func (w *World) planExit() {
	p := &w.process
	if p.exiting {
		return
	}
	p.exiting = true
	p.delay = w.rng.Between(microsecond, millisecond)
	w.queue.push(entry{at: w.clock.mono + w.rng.Between(0, 2*millisecond), kind: wakeExit, life: p.life})
}

// exit ends the process in order and plans the next one.
func (w *World) exit() {
	p := &w.process
	if !p.up {
		return
	}
	if p.opened && w.log.Phase() != core.Closed {
		w.log.Close(w.clock.now())
		w.outcomes()
	}
	w.check.Crash(w.clock.mono, model.ProcessKill)
	w.gone(false)
	w.reopenLater()
}

// restart is a client's close, and an open afterwards.
func (w *World) restart(e *Event) {
	p := &w.process
	if !p.up || p.leaving || p.exiting {
		return
	}
	p.leaving, p.delay = true, e.B
	p.lives = max(0, min(e.C, livesMax-int64(w.res.Lives)))
	if w.h.On(SwConfig) {
		p.config = e.A
	}
	w.log.Close(w.clock.now())
}

// closed ends a life whose close is complete.
func (w *World) closed() {
	p := &w.process
	w.outcomes()
	if p.opened && w.log.Err() == nil {
		w.retainedByNow()
		w.check.Closed(w.clock.mono)
		w.res.Marks.add(MarkClosed)
		if w.stage == stageClosing {
			if w.res.Lives > 1 && w.h.Seed&3 == 0 {
				w.planner.clean()
			}
			w.leftovers()
			w.decodeImages()
			w.finish()
			return
		}
	} else {
		w.check.Crash(w.clock.mono, model.ProcessKill)
	}
	w.gone(true)
	w.reopenLater()
}

func (w *World) reopenLater() {
	w.queue.push(entry{at: w.clock.mono + w.process.delay, kind: wakeOpen, life: w.process.life})
}

// gone is the end of a process: nothing of it is left but what the kernel and the device hold.
func (w *World) gone(orderly bool) {
	p := &w.process
	for i := range w.readers {
		w.readers[i].lose(w)
	}
	w.unresolved()
	w.joinCore()
	if orderly {
		_ = w.store.Close()
		_ = w.warm.store.Close()
	}
	if w.lock != nil {
		_ = w.lock.Close()
		w.lock = nil
	}
	if n := w.disk.OpenFiles(); orderly && n != 0 {
		w.fail("K20", "files are still open after a close")
	}
	w.fs.Kill()
	w.keepLate()
	w.supers(w.flights[core.Hot].effect, true)
	w.flights = [core.LaneCount]flight{}
	p.up, p.opened = false, false
}

// crash ends a life as the schedule says.
func (w *World) crash(e *Event) {
	p := &w.process
	if w.spared() {
		return
	}
	if p.up {
		p.delay = e.C
		if w.h.On(SwConfig) {
			p.config = e.D & 1
		}
		p.recovery = [2]int64{e.D >> 8 & 255, e.D >> 16 & 255}
		p.doom = e.A // a recovery that dies in its turn dies like this
		w.fs.SetCallBudget(e.B, w.rng.Next()&1 == 0)
		w.spendBudget()
		w.die(e.A)
		return
	}
	switch e.A {
	case DeathPower, DeathKillPower, DeathKillPressurePower, DeathPowerPower:
		w.powerWhileDown()
	case DeathKillPressure:
		w.pressure()
	}
}

// pressure makes the kernel drop clean pages: what failed, lying or misdirected writes left on the
// device is what processes see from now on.
func (w *World) pressure() {
	w.disk.MemoryPressure(&w.dice)
	if w.ghosts {
		w.check.Crash(w.clock.mono, model.PowerLoss)
	}
	w.wildDamage()
}

// spendBudget lets the effects in flight go on until the calls that the crash leaves them are used
// up: a crash falls at any call, also inside an effect.
func (w *World) spendBudget() {
	first := core.Lane(w.rng.Below(int64(w.lanes)))
	for i := range w.lanes {
		lane := (first + i) % w.lanes
		f := &w.flights[lane]
		if lane >= core.Uploads && w.rng.Next()&1 == 0 {
			continue // the call never left
		}
		for f.effect != nil && !w.fs.Dead() && !(f.executed && (f.done || f.err != nil)) {
			w.execute(f)
		}
	}
}

// die ends the process at once.
func (w *World) die(how Death) {
	p := &w.process
	w.note(hashCrash, uint64(how), uint64(w.clock.mono))
	if w.Trace != nil {
		w.say(TrackWorld, Died, "CRASH: %s", deathNames[how])
	}
	for i := range w.flights {
		w.syncFailed(&w.flights[i])
	}
	inOpen := !p.opened && w.log.Phase() != core.Closed
	if inOpen {
		w.res.Marks.add(MarkRecoveryCrash)
		if w.diedInOpen {
			w.res.Marks.add(MarkRecoveryCrashTwice)
		}
	}
	w.diedInOpen = inOpen
	p.failed = 0
	w.gone(false)
	power := how == DeathPower || how == DeathPowerPower
	if power && w.h.On(SwPower) {
		w.powerWhileDown()
	} else {
		w.check.Crash(w.clock.mono, model.ProcessKill)
		w.res.Marks.add(MarkKill)
	}
	if how == DeathKillPressure || how == DeathKillPressurePower {
		w.pressure()
		w.res.Marks.add(MarkPressure)
	}
	if how != DeathKill && how != DeathPower && how != DeathKillPressure {
		w.queue.push(entry{at: w.clock.mono + p.delay/2, kind: wakePower, life: p.life})
	}
	w.reopenLater()
}

// savesMax bounds the lives in a row that end in a save of the superblock.
const savesMax = 3

// dieInSave ends the process in the sync of a superblock slot that is written: so do the next lives,
// and the last of them takes what none of them has synced.
func (w *World) dieInSave(e core.Effect, stage int) {
	p := &w.process
	if s, ok := e.(*core.SaveSuper); !ok || s.NewLog || stage != 1 || w.spared() {
		return
	}
	p.saves--
	p.doom = DeathKill
	if p.saves == 0 {
		p.doom = DeathPower
	}
	w.res.Marks.add(MarkSaveCrash)
	w.fs.SetCallBudget(0, w.rng.Next()&1 == 0)
}

// judged reports whether a power loss must leave a log that opens without an operator: no garbage
// and no stale bytes in sectors, writes torn at sector positions only.
func (w *World) judged() bool {
	return w.h.Faults&(faultfs.D1Garbage.Bit()|faultfs.D6Stale.Bit()) == 0
}

// damage returns the faults for which an open may be refused.
func (w *World) damage() faultfs.FaultSet {
	if w.judged() {
		return damage
	}
	return damage | faultfs.D2Torn.Bit()
}

// damaged reports whether one of them took effect.
func (w *World) damaged() bool { return w.disk.Marks()&w.damage() != 0 }

// powerWhileDown is a power loss while no process runs.
func (w *World) powerWhileDown() {
	if w.process.up {
		return
	}
	w.dice.Seed(w.rng.Next())
	w.disk.PowerLoss(&w.dice, w.judged())
	w.ghosts = false
	w.check.Crash(w.clock.mono, model.PowerLoss)
	w.res.Marks.add(MarkPower)
	if w.Trace != nil {
		w.say(TrackWorld, Lost, "power loss")
	}
	w.wildDamage()
	if w.rng.Chance(16384) {
		w.decodeImages()
	}
}

// wild reports whether the disk lied, misdirected a write or left garbage.
func (w *World) wild() bool { return w.disk.Marks()&w.damage()&^faultfs.D7Rot.Bit() != 0 }

// wildDamage tells the checker of damage whose place nobody knows.
func (w *World) wildDamage() {
	if w.wild() {
		w.check.DamageInjected(w.clock.mono, 0, w.check.End(), true)
	}
}
