package sim

import (
	"bytes"
	"testing"
)

// run expands and runs one seed; on a violation it prints the line that replays it.
func run(t *testing.T, w *World, seed uint64, ops int) *Result {
	t.Helper()
	var s Schedule
	Expand(&s, seed, ops)
	r := w.Run(&s)
	if r.Violation != "" {
		t.Errorf("seed %d: %s; replay: varve-sim replay %d --profile disk --ops %d", seed, r.Violation, seed, ops)
	}
	return r
}

func TestSeeds(t *testing.T) {
	w := NewWorld()
	for seed := range uint64(2000) {
		if run(t, w, seed, 0); t.Failed() {
			var b bytes.Buffer
			w.Trace = &b
			run(t, w, seed, 0)
			t.Log(b.String())
			return
		}
	}
}
