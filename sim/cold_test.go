package sim

import "testing"

// TestColdSeeds runs seeds with a bucket.
func TestColdSeeds(t *testing.T) {
	w := NewWorld()
	var s Schedule
	for seed := range uint64(1000) {
		ExpandMix(&s, MixCold, seed, 0)
		if r := w.Run(&s); r.Violation != "" {
			t.Fatalf("seed %d: %s: %s", seed, r.Check, r.Violation)
		}
	}
}
