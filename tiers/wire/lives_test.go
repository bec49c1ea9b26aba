package wire_test

import (
	"errors"

	"varve/core"
	"varve/faultfs"
	"varve/model"
	"varve/sim"
)

// begin starts a life on the host that has the log.
func (w *world) begin() {
	h := w.host
	w.reopen = never
	w.counts[lives]++
	cfg := w.h.Config[w.config]
	w.nonce++
	cfg.Nonce = w.h.Seed<<16 | w.nonce
	if n := w.doom[0]; n > 0 {
		h.fs.SetCallBudget(n, w.rng.Chance(1<<15))
	}
	w.doom = [2]int64{w.doom[1]}
	w.leaving = false
	w.note("life begins, configuration %d", w.config)
	if err := h.start(cfg, w.now); err != nil {
		if !h.fs.Dead() {
			w.fail("K25: a life does not begin: %w", err)
		}
		w.die(sim.DeathKill)
	}
}

// phase reacts to where the log stands.
func (w *world) phase() {
	h := w.host
	if !h.up {
		return
	}
	switch h.log.Phase() {
	case core.Ready:
		if !h.opened {
			w.opened()
		}
	case core.Poisoned:
		w.fail("K19: the log is poisoned, and nothing but servers failed: %w", h.log.Err())
	case core.Failed:
		w.openFailed(h.log.Err())
	case core.Closed:
		if h.idle() {
			w.closed()
		}
	}
}

// openFailed takes an open that failed. Only what servers did can be the reason, and that ends.
func (w *world) openFailed(err error) {
	var corrupt *core.CorruptError
	var lost *core.LostSuffixError
	var refused *core.RefusedError
	if errors.As(err, &corrupt) || errors.As(err, &lost) || errors.As(err, &refused) {
		w.fail("K25: an open was refused although nothing was damaged: %w", err)
		return
	}
	w.note("open failed: %v", err)
	if w.failed++; w.failed > 4 {
		w.heal()
	}
	if w.failed > 12 {
		w.fail("K19: open fails again and again although all faults are over: %w", err)
		return
	}
	w.check.Crash(w.now.Mono, model.ProcessKill)
	w.host.end()
	w.reopen = w.now.Mono + w.delay
}

// opened takes what a finished recovery claims, and looks at what it really holds.
func (w *world) opened() {
	h, l := w.host, w.host.log
	h.opened, w.failed = true, 0
	w.counts[opens]++
	h.fs.SetCallBudget(-1, false) // it was for the recovery
	h.written, w.start, w.trim = l.End(), l.Start(), 0
	if w.exposed {
		kept := w.kept()
		w.note("other tiers hold the log up to %d", kept)
		w.check.DiskLost(w.now.Mono, kept)
		w.exposed = false
	}
	cfg := &w.h.Config[w.config]
	w.note("open: start %d, committed %d, end %d, epoch %d", l.Start(), l.Committed(), l.End(), l.Epoch())
	w.check.Opened(w.now.Mono, model.Life{
		Epoch: l.Epoch(), Policy: model.Policy(cfg.Sync), SyncInterval: cfg.SyncInterval,
		Start: l.Start(), End: l.End(), Committed: l.Committed(), Waits: w.h.Warm(),
	})
	w.audit()
}

// kept returns how far the tiers that are no disk hold what was acked.
func (w *world) kept() core.Offset {
	if w.h.Warm() {
		return w.check.AckedEnd() // by promise
	}
	return w.exported()
}

// closed ends a life whose close is complete.
func (w *world) closed() {
	h := w.host
	w.outcomes(h)
	if h.opened && h.log.Err() == nil {
		w.check.Closed(w.now.Mono)
		w.counts[restarts]++
	} else {
		w.check.Crash(w.now.Mono, model.ProcessKill)
	}
	if err := h.files.Close(); err != nil {
		w.fail("K20: files: %w", err)
	}
	w.forget()
	h.end()
	w.reopen = w.now.Mono + w.delay
}

// die ends the process at once. What is in flight to a server may have left or not.
func (w *world) die(how sim.Death) {
	h := w.host
	if !h.up {
		h.end()
		w.reopen = w.now.Mono + w.delay
		return
	}
	for lane := range h.flights {
		f := &h.flights[lane]
		if f.e == nil || f.executed {
			continue
		}
		h.execute(f, w.rng.Below(5))
	}
	w.note("the process dies: %d", how)
	w.counts[kills]++
	w.forget()
	h.end()
	w.check.Crash(w.now.Mono, model.ProcessKill)
	if how != sim.DeathKill && how != sim.DeathKillPressure {
		w.power()
	}
	w.reopen = w.now.Mono + w.delay
}

// power is a power loss of a machine on which no process runs.
func (w *world) power() {
	var dice faultfs.Rand
	dice.Seed(w.rng.Next())
	w.host.disk.PowerLoss(&dice, true)
	w.check.Crash(w.now.Mono, model.PowerLoss)
	w.counts[powerLosses]++
}

// crash ends a life as the schedule says.
func (w *world) crash(e *sim.Event) {
	if !w.host.up {
		if e.A == sim.DeathPower || e.A == sim.DeathKillPower || e.A == sim.DeathPowerPower {
			w.power()
		}
		return
	}
	w.delay = e.C
	if w.h.On(sim.SwConfig) {
		w.config = e.D & 1
	}
	w.doom = [2]int64{e.D >> 8 & 255, e.D >> 16 & 255}
	w.host.fs.SetCallBudget(e.B, w.rng.Chance(1<<15))
	w.die(e.A)
}

// restart is a clean close, and an open afterwards.
func (w *world) restart(e *sim.Event) {
	if !w.host.up || w.leaving {
		return
	}
	w.leaving, w.delay = true, e.B
	if w.h.On(sim.SwConfig) {
		w.config = e.A
	}
	w.host.log.Close(w.now)
}

// lose takes the disk away: the next open makes the log of what other tiers have.
func (w *world) lose(delay core.Time) {
	w.delay = delay
	if w.host.up {
		w.die(sim.DeathKill)
	}
	w.host.disk.Lose()
	w.exposed = true
	w.counts[disksLost]++
	w.note("the disk is lost")
}

// move lets another host open the log, on a disk of its own. The process here dies, or lives on.
func (w *world) move(e *sim.Event) {
	w.endRival()
	old := w.host
	lives := old.up && old.opened && !w.leaving && old.log.Phase() == core.Ready && w.rng.Below(3) > 0
	w.delay = e.A
	w.host = w.hosts[0]
	if old == w.host {
		w.host = w.hosts[1]
	}
	w.exposed = true
	w.counts[moves]++
	if !lives {
		if old.up {
			w.host, old = old, w.host
			w.die(sim.DeathKill)
			w.host = old
		}
		w.note("another host takes over")
		w.reopen = w.now.Mono + w.delay
		return
	}
	w.note("another host takes over; the one before lives on")
	w.forget()
	w.rival = old
	w.counts[rivals]++
	w.check.Crash(w.now.Mono, model.ProcessKill)
	w.reopen = w.now.Mono + w.delay
}

// rivalActs lets the host before do what its clients ask for.
func (w *world) rivalActs() {
	h := w.rival
	if h == nil || !w.host.opened || h.log.Phase() != core.Ready {
		return
	}
	switch w.rng.Below(6) {
	case 0:
		_ = h.log.Roll(w.now)
	case 1:
		_ = h.log.Trim(w.now, h.log.Committed())
	case 2:
		if w.h.Cold() {
			_ = h.log.Offload(w.now, h.log.Committed())
		}
	default:
		w.rivalAppends()
	}
}

// rivalAppends appends what no client of the log knows.
func (w *world) rivalAppends() {
	h := w.rival
	b := batch([]byte("nobody's"), 1, w.now)
	if t, err := h.log.Append(w.now, &b); err == nil && h.own == 0 {
		h.own = t.Cohort
	}
}

// rivalEnds ends the process of the host before once it has found out that it is none any more.
func (w *world) rivalEnds() {
	h := w.rival
	if h == nil || h.log.Phase() != core.Poisoned || !h.idle() {
		return
	}
	if h.log.Err() != core.ErrOwnerFenced { //nolint:errorlint // that very one
		w.fail("K8: the host before was to find another owner, and ended otherwise: %w", h.log.Err())
	}
	w.counts[fenced]++
	w.note("the host before is fenced")
	w.endRival()
}

func (w *world) endRival() {
	if w.rival != nil {
		w.rival.end()
		w.rival = nil
	}
}

// heal ends all faults of the servers.
func (w *world) heal() {
	w.hurting = false
	w.stream.strike(0, 0)
	w.stream.freeze(false)
	w.objects.hurt(0, false)
}
