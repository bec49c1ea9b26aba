package sim

import "testing"

// The calls of every seed give clients one history under three configurations; a run compares a
// sample of them.
func TestSameCallsSameHistory(t *testing.T) {
	w := NewWorld()
	var s Schedule
	for seed := range uint64(400) {
		Expand(&s, seed, 0)
		w.res = Result{}
		w.same(&s)
		if w.res.Violation != "" {
			t.Fatalf("seed %d: %s", seed, w.res.Violation)
		}
		if !w.calls.Header.On(SwTrim) && !w.calls.Header.On(SwProducers) && len(w.calls.Events) < 8 {
			t.Fatalf("seed %d: only %d calls are compared", seed, len(w.calls.Events))
		}
	}
}

// What a configuration refuses is part of the history.
func TestSameCallsAnotherHistory(t *testing.T) {
	w := NewWorld()
	var s Schedule
	Expand(&s, 3, 50)
	w.calm(&s)
	histories := map[uint64]bool{}
	for _, most := range []int64{32, 64} {
		w.calmConfig(&s, 0)
		w.calls.Header.Config[0].MaxBatchBytes = most
		w.reset(&w.calls)
		w.run()
		if w.res.Violation != "" {
			t.Fatal(w.res.Violation)
		}
		histories[w.check.ClientHash()] = true
	}
	if len(histories) != 2 {
		t.Error("batches were refused and the history is the same")
	}
}
