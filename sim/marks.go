package sim

import (
	"math/bits"

	"varve/core"
	"varve/faultfs"
)

// Mark is something that the simulator itself reached.
type Mark uint8

// Marks of the simulator.
const (
	MarkKill Mark = iota
	MarkPower
	MarkPressure
	MarkRecoveryCrash      // D20
	MarkRecoveryCrashTwice // D20, in the recovery after that
	MarkSaveCrash          // D19, in a save of the superblock
	MarkSlow               // D16
	MarkHang               // D16: seconds
	MarkSecond             // D21
	MarkClock              // C1; C2, C3, C4 follow
	markClockBack
	markClockFreeze
	markClockSkew
	MarkConfig    // X1
	MarkPause     // X2
	MarkStale     // X3
	MarkBadConfig // a configuration was refused
	MarkMisuse    // a call that no log can carry out was refused
	MarkOpenFailed
	MarkOpenRefused
	MarkPoisoned
	MarkClosed
	MarkRetry
	MarkTrimmed
	MarkDiverged
	MarkReadError
	MarkReadCorrupt
	MarkRot
	MarkSecondPlan // K10 was judged
	MarkRetained   // K14 was judged both ways
	MarkSame       // K17 was judged over several configurations
	markCount
)

var markNames = [markCount]string{
	"kill", "power", "pressure", "crash-in-recovery", "crash-in-recovery-twice", "crash-in-save", "slow", "hang",
	"second-process", "clock-forward", "clock-back", "clock-freeze", "clock-skew", "config-changed",
	"pause", "stale-completion", "bad-config", "misuse", "open-failed", "open-refused", "poisoned", "closed",
	"retry", "trimmed", "diverged", "read-error", "read-corrupt", "rot", "second-plan", "retained", "same-calls",
}

// Marks is what a run, or many, reached: of the disk, the core and the simulator.
type Marks struct {
	Disk faultfs.FaultSet
	Core core.MarkSet
	Sim  uint64
}

func (m *Marks) add(x Mark) { m.Sim |= 1 << x }

// Join adds what others reached.
func (m *Marks) Join(o *Marks) {
	m.Disk |= o.Disk
	for i := range m.Core {
		m.Core[i] |= o.Core[i]
	}
	m.Sim |= o.Sim
}

func (w *World) collectMarks() {
	w.res.Marks.Disk |= w.disk.Marks()
	w.joinCore()
}

func (w *World) joinCore() {
	m := w.log.Marks()
	for i := range m {
		w.res.Marks.Core[i] |= m[i]
	}
}

// markEntry names one mark of the registry.
type markEntry struct {
	name string
	has  func(m *Marks) bool
}

// registry lists every mark that a run of the disk profile has to reach.
func registry() []markEntry {
	var all []markEntry
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		all = append(all, markEntry{"disk " + f.String(), func(m *Marks) bool { return m.Disk.Has(f) }})
	}
	for c := core.Mark(0); c < core.MarkCount; c++ {
		all = append(all, markEntry{"core " + coreMarkName(c), func(m *Marks) bool { return m.Core.Has(c) }})
	}
	for s := Mark(0); s < markCount; s++ {
		all = append(all, markEntry{"sim " + markNames[s], func(m *Marks) bool { return m.Sim>>s&1 != 0 }})
	}
	return all
}

// Names returns the marks that were reached, and those that were not and that a run must reach.
func (m *Marks) Names() (reached, missing []string) {
	for _, e := range registry() {
		if e.has(m) {
			reached = append(reached, e.name)
		} else if Unreachable[e.name] == "" {
			missing = append(missing, e.name)
		}
	}
	return reached, missing
}

// Count returns how many marks were reached.
func (m *Marks) Count() int {
	n := bits.OnesCount64(uint64(m.Disk)) + bits.OnesCount64(m.Sim)
	for _, w := range m.Core {
		n += bits.OnesCount64(w)
	}
	return n
}

// Unreachable lists the marks that the simulator cannot reach, each with the reason and what covers
// it instead.
var Unreachable = map[string]string{
	"core super-newer":    "the simulator writes one format version; core tests read a newer one",
	"core foreign":        "no file of another log gets into the directory; core tests put one there",
	"core roll-producers": "4,096 producers in one segment; TestRollsWhenTheFooterIsFull",
	"core repair-lost":    "varve log repair, a command of the operator; core and command tests",
	"core repair-suffix":  "varve log repair; core and command tests",
	"core rebuilt":        "varve log repair; core and command tests",
}
