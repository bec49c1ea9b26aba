package sim

import (
	"fmt"
	"slices"
	"strings"

	"varve/faultfs"
	"varve/model"
)

// Without is what a World leaves out, so that it can be seen what each fault and each checker is good
// for. All that is drawn from other events stays as it is: a fault is drawn and does not strike, an
// event takes place or is taken out of the schedule.
type Without struct {
	faults   faultfs.FaultSet
	switches uint64
	again    int // recoveries that die in a row, at most; below 0: as many as the schedule says
	checks   []string
}

// The two halves of D20, which have a mark each and no switch.
const (
	recoveryCrash = "crash-in-recovery"
	recoveryTwice = "crash-in-recovery-twice"
)

// Checks that the world itself makes and those of a node, beside those of package model.
var worldChecks = []string{
	"K1", "K9", "K10", "K12", "K13", "K14", "K17", "K19", "K20", "K22", "K24", "K25", "assert", "disk", "sector", "exclusion", "config", "X3", "D21",
	"N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9",
}

// WithoutFaults lists what may be left out of what happens: faults, switches, crashes in recovery.
func WithoutFaults() []string {
	var names []string
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		names = append(names, f.String())
	}
	return append(append(names, switchNames[:]...), recoveryCrash, recoveryTwice)
}

// switchMarks are what the switches of faults set off. The other switches are features.
var switchMarks = map[string]Mark{
	switchNames[SwSlow]: MarkSlow, switchNames[SwHang]: MarkHang, switchNames[SwPressure]: MarkPressure,
	switchNames[SwPower]: MarkPower, switchNames[SwSecond]: MarkSecond, switchNames[SwForward]: MarkClock,
	switchNames[SwBackward]: markClockBack, switchNames[SwFreeze]: markClockFreeze, switchNames[SwSkew]: markClockSkew,
	switchNames[SwConfig]: MarkConfig, switchNames[SwPause]: MarkPause,
	switchNames[SwLose]: MarkDiskLost, switchNames[SwOutage]: MarkOutage,
	switchNames[SwMove]: MarkMoved, switchNames[SwSpoil]: MarkSpoiled, switchNames[SwServer]: MarkServer,
	switchNames[SwAnother]: MarkAnother,
	recoveryCrash:          MarkRecoveryCrash, recoveryTwice: MarkRecoveryCrashTwice,
}

// IsFault reports whether a name of WithoutFaults is that of a fault; the others are features.
func IsFault(name string) bool {
	if _, ok := faultfs.ParseFault(name); ok {
		return true
	}
	_, ok := switchMarks[name]
	return ok
}

// WithoutChecks lists the checkers that may be left out.
func WithoutChecks() []string {
	names := slices.Clone(worldChecks)
	for _, k := range model.Checks {
		if !slices.Contains(names, k.String()) {
			names = append(names, k.String())
		}
	}
	return names
}

// CheckPrefix may stand before the name of a checker, and has to if a switch has that name too.
const CheckPrefix = "check."

// ParseWithout reads names of WithoutFaults and WithoutChecks.
func ParseWithout(names []string) (*Without, error) {
	x := &Without{again: -1}
	for _, name := range names {
		f, isFault := faultfs.ParseFault(name)
		check := strings.TrimPrefix(name, CheckPrefix)
		sw := slices.Index(switchNames[:], name)
		switch {
		case isFault && f != faultfs.NoFault:
			x.faults |= f.Bit()
		case sw >= 0:
			x.switches |= 1 << sw
		case name == recoveryCrash:
			x.again = 0
		case name == recoveryTwice:
			x.again = max(x.again, 1)
			if slices.Contains(names, recoveryCrash) {
				x.again = 0
			}
		case slices.Contains(WithoutChecks(), check):
			x.checks = append(x.checks, check)
		default:
			return nil, fmt.Errorf("%q: no fault, switch or checker; expected one of %s, %s", name,
				strings.Join(WithoutFaults(), ", "), strings.Join(WithoutChecks(), ", "))
		}
	}
	return x, nil
}

// Faults and switches that change a run in ways which their mark does not tell: what a power loss draws
// for one changes what it draws for the others, a doom that is taken out lets a process live on, a
// disk that is nearly full is one on which a log makes room in time, and a second process is told of only
// where it is kept out.
var (
	untoldFaults = faultfs.Set(faultfs.D1Sectors, faultfs.D2Torn, faultfs.D5DirOps, faultfs.D5RenameHalf, faultfs.D5Parent,
		faultfs.D10WriteBack, faultfs.D13Capacity, faultfs.D19Dead)
	untoldSwitches = uint64(1<<SwSlow | 1<<SwConfig | 1<<SwSpoil | 1<<SwSecond)
)

// TookPart reports whether anything of what x names may have taken part in a run that left none of it
// out. If it did not, leaving it out gives a run that ends the same: this one.
func (x *Without) TookPart(r *Result) bool {
	if (r.Marks.Disk|untoldFaults)&x.faults != 0 || untoldSwitches&x.switches != 0 || x.again >= 0 || slices.Contains(x.checks, r.Check) {
		return true
	}
	for sw, name := range switchNames {
		if mark, ok := switchMarks[name]; x.switches>>sw&1 != 0 && (!ok || r.Marks.Sim>>mark&1 != 0) {
			return true
		}
	}
	return false
}

// Leave makes the world leave things out from its next run on. The schedules that it runs are changed.
func (w *World) Leave(x *Without) {
	w.without = x
	for _, k := range model.Checks {
		w.check.Enable(k)
		if slices.Contains(x.checks, k.String()) {
			w.check.Disable(k)
		}
	}
}

// checkers returns the names of those that are left out.
func (x *Without) checkers() []string {
	if x == nil {
		return nil
	}
	return x.checks
}

// silenced reports whether a violation of a checker is not to be reported. A run that cannot go on
// ends there.
func (w *World) silenced(check string) bool {
	if !slices.Contains(w.without.checkers(), check) {
		return false
	}
	if check == "K19" || check == "K25" || check == "assert" {
		w.stage = stageDone
	}
	return true
}

// spared reports whether the process may not die now, because it recovers.
func (w *World) spared() bool {
	return w.process.up && !w.process.opened && w.sparesOpen()
}

// sparesOpen reports whether the next recovery, or the one at hand, has to live.
func (w *World) sparesOpen() bool {
	x := w.without
	return x != nil && x.again >= 0 && (x.again == 0 || w.diedInOpen)
}

// apply takes out of a schedule what is left out of all that happens.
func (x *Without) apply(s *Schedule) {
	s.Header.Switches &^= x.switches
	if x.faults.Has(faultfs.D13Capacity) {
		s.Header.Capacity = 0
	}
	s.Events = slices.DeleteFunc(s.Events, func(e Event) bool {
		sw, ok := switchOf(&e)
		return ok && x.switches>>sw&1 != 0 || e.Kind == Doom && x.faults.Has(faultfs.D19Dead) ||
			e.Kind == Second && x.faults.Has(faultfs.D21Locked)
	})
	for i := range s.Events {
		x.tame(&s.Events[i])
	}
}

// switchOf returns the switch that an event takes place by.
func switchOf(e *Event) (Switch, bool) {
	switch e.Kind {
	case Retry:
		return SwProducers, true
	case Trim:
		return SwTrim, true
	case RollNow:
		return SwRoll, true
	case Clock:
		return SwForward + Switch(e.A), true
	case Pause:
		return SwPause, true
	case WriteBack:
		return SwBack, true
	case Second:
		return SwSecond, true
	case Idle:
		return SwIdle, true
	case Offload:
		return SwOffload, true
	case Lose:
		return SwLose, true
	case Outage:
		return SwOutage, true
	case Move:
		return SwMove, true
	case Spoil:
		return SwSpoil, true
	case Server:
		if e.A == ServerAnother {
			return SwAnother, true
		}
		return SwServer, true
	case Slow:
		if e.B >= second {
			return SwHang, true
		}
		return SwSlow, true
	}
	return 0, false
}

// tame takes what is left out of an event that stays.
func (x *Without) tame(e *Event) {
	off := func(sw Switch) bool { return x.switches>>sw&1 != 0 }
	switch e.Kind {
	case Append:
		if off(SwProducers) {
			e.D = 0
		}
		if off(SwZeros) {
			e.C = ContentPattern
		}
		if off(SwBig) {
			e.A = min(e.A, 256)
		}
	case Restart:
		if off(SwConfig) {
			e.A = 0
		}
	case Doom:
		e.B = x.death(e.B)
	case Crash:
		e.A = x.death(e.A)
		if off(SwConfig) {
			e.D &^= 0xff
		}
		if x.faults.Has(faultfs.D19Dead) {
			e.B, e.D = 0, e.D&0xff
		}
	}
}

// death is how a process ends if not by power losses, or with no memory pressure.
func (x *Without) death(how Death) Death {
	if x.switches>>SwPower&1 != 0 {
		switch how {
		case DeathPower, DeathKillPower, DeathPowerPower:
			how = DeathKill
		case DeathKillPressurePower:
			how = DeathKillPressure
		}
	}
	if x.switches>>SwPressure&1 != 0 {
		switch how {
		case DeathKillPressure:
			how = DeathKill
		case DeathKillPressurePower:
			how = DeathKillPower
		}
	}
	return how
}
