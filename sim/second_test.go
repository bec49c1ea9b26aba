package sim

import (
	"strings"
	"testing"
)

// A process that loses its lock and goes on is found when another one gets it.
func TestSecondProcessGetsTheLock(t *testing.T) {
	var s Schedule
	Expand(&s, 12, 60)
	w := NewWorld()
	w.reset(&s)
	w.start()
	w.second()
	if w.res.Violation != "" {
		t.Fatal(w.res.Violation)
	}
	if w.res.Marks.Sim>>MarkSecond&1 == 0 {
		t.Fatal("the other process was not kept out")
	}
	if err := w.lock.Close(); err != nil {
		t.Fatal(err)
	}
	w.second()
	if w.res.Check != "D21" || !strings.Contains(w.res.Violation, "two processes") {
		t.Errorf("reported %q, %q", w.res.Check, w.res.Violation)
	}
}
