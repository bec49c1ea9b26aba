package sim

import (
	"testing"

	"varve/faultfs"
)

// runWithout runs seeds with things left out and returns what they reached.
func runWithout(t *testing.T, seeds uint64, names ...string) Marks {
	t.Helper()
	x, err := ParseWithout(names)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld()
	w.Leave(x)
	var s Schedule
	var m Marks
	for seed := range seeds {
		Expand(&s, seed, 30)
		r := w.Run(&s)
		if r.Violation != "" {
			t.Fatalf("without %v: seed %d: %s", names, seed, r.Violation)
		}
		m.Join(&r.Marks)
	}
	return m
}

// What is left out does not strike, all else goes on, and a right log still violates nothing.
func TestWithout(t *testing.T) {
	const seeds = 150
	whole := runWithout(t, seeds)
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		if f == faultfs.D19Dead { // a crash still ends the call at hand
			continue
		}
		if m := runWithout(t, seeds, f.String()); m.Disk.Has(f) {
			t.Errorf("without %v: it struck", f)
		} else if lost := whole.Disk &^ m.Disk &^ f.Bit(); lost.Len() > 4 {
			t.Errorf("without %v: %d other faults never struck", f, lost.Len())
		}
	}
	for name, mark := range switchMarks {
		names := []string{name}
		switch name {
		case switchNames[SwSlow]: // a step that takes seconds is slow too
			names = append(names, switchNames[SwHang])
		}
		if m := runWithout(t, seeds, names...); m.Sim>>mark&1 != 0 {
			t.Errorf("without %v: %s is marked", names, markNames[mark])
		}
	}
	runWithout(t, seeds, "producers", "trim", "roll", "big", "zeros", "idle", "writeback")
}

// Leaving out what does not occur in a seed leaves the run as it is.
func TestWithoutChangesNothingElse(t *testing.T) {
	a, b := NewWorld(), NewWorld()
	x, err := ParseWithout([]string{"D7.rot", "K1", "sector", "second"})
	if err != nil {
		t.Fatal(err)
	}
	b.Leave(x)
	var s Schedule
	same := 0
	for seed := range uint64(300) {
		Expand(&s, seed, 20)
		hash, marks := a.Run(&s).Hash, a.res.Marks
		if marks.Disk.Has(faultfs.D7Rot) || s.Header.On(SwSecond) {
			continue
		}
		same++
		if r := b.Run(&s); r.Hash != hash {
			t.Fatalf("seed %d is another run", seed)
		}
	}
	if same < 100 {
		t.Errorf("%d seeds compared", same)
	}
}

// What took no part in a run may be left out of it: it ends the same, for each fault and each profile.
func TestWithoutWhatTookNoPart(t *testing.T) {
	const seeds = 60
	whole, spared := NewWorld(), NewWorld()
	var s Schedule
	var results [seeds]Result
	for _, mix := range []Mix{MixDisk, MixCold, MixWarm, MixTiers, MixBroker} {
		for seed := range uint64(seeds) {
			ExpandMix(&s, mix, seed, 30)
			results[seed] = *whole.Run(&s)
		}
		for _, name := range WithoutFaults() {
			x, err := ParseWithout([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			spared.Leave(x)
			for seed := range uint64(seeds) {
				want := results[seed]
				if x.TookPart(&want) {
					continue
				}
				ExpandMix(&s, mix, seed, 30)
				got := *spared.Run(&s)
				got.Hash, got.Events, want.Hash, want.Events = 0, 0, 0, 0 // events that do nothing may be gone
				if got != want {
					t.Errorf("%s: seed %d without %s, which took no part:\n%+v\nand with it:\n%+v", mix, seed, name, got, want)
					break
				}
			}
		}
	}
}

// A checker that is left out is silent, and another one may report instead.
func TestWithoutChecks(t *testing.T) {
	for _, check := range WithoutChecks() {
		x, err := ParseWithout([]string{CheckPrefix + check})
		if err != nil {
			t.Fatal(err)
		}
		w, other := NewWorld(), "K2"
		if check == other {
			other = "K3"
		}
		w.Leave(x)
		var s Schedule
		Expand(&s, 1, 10)
		w.reset(&s)
		if w.fail(check, "planted"); w.res.Violation != "" {
			t.Errorf("without %s: %s", check, w.res.Violation)
		}
		if w.fail(other, "planted"); w.res.Check != other {
			t.Errorf("without %s: no other check reports", check)
		}
	}
	if _, err := ParseWithout([]string{"K99"}); err == nil {
		t.Error("K99 is left out")
	}
}
