package ideal

import (
	"testing"

	"varve/model"
)

func options(seed uint64, bug Bug) Options {
	return Options{
		Steps: 60 + int(seed%200), Clients: 2 + int(seed%5), Policy: model.Policy(seed % 3),
		Lives: 1 + int(seed%6), Trims: seed%2 == 0, Bug: bug,
	}
}

func TestLegalRunsPass(t *testing.T) {
	var c model.Checker
	var l Log
	for seed := range uint64(20000) {
		l.Run(&c, seed, options(seed, NoBug))
		if v := c.Violation(); v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
	}
}

// Each bug must be found in a fair share of runs; the run prints by which checks.
func TestEachBugIsFound(t *testing.T) {
	const seeds = 3000
	var c model.Checker
	var l Log
	for bug := AckEarly; bug < BugCount; bug++ {
		var by [32]int
		found := 0
		for seed := range uint64(seeds) {
			l.Run(&c, seed, options(seed, bug))
			if v := c.Violation(); v != nil {
				by[v.Check]++
				found++
			}
		}
		t.Logf("bug %d: found in %d of %d", bug, found, seeds)
		for k, n := range by {
			if n > 0 {
				t.Logf("    %v: %d", model.Check(k), n)
			}
		}
		if found < seeds/100 {
			t.Errorf("bug %d: found in %d of %d", bug, found, seeds)
		}
	}
}

func TestSameSeedSameRunAndNoAllocation(t *testing.T) {
	var c, fresh model.Checker
	var l, other Log
	for seed := range uint64(200) {
		l.Run(&c, seed, options(seed, NoBug))
		hash := c.ClientHash()
		other = Log{}
		fresh = model.Checker{}
		other.Run(&fresh, seed, options(seed, NoBug))
		if fresh.ClientHash() != hash {
			t.Fatalf("seed %d: a used checker and a fresh one disagree", seed)
		}
	}
	seed := uint64(0)
	if n := testing.AllocsPerRun(150, func() { l.Run(&c, seed%200, options(seed%200, NoBug)); seed++ }); n > 0 {
		t.Fatalf("%v allocations a run", n)
	}
}

func BenchmarkRun(b *testing.B) {
	var c model.Checker
	var l Log
	o := Options{Steps: 170, Clients: 4, Lives: 3}
	events := int64(0)
	b.ReportAllocs()
	for i := range b.N {
		l.Run(&c, uint64(i%64), o)
		events += int64(c.Stamp())
	}
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}
