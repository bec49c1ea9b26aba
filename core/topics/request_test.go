package topics

import (
	"errors"
	"fmt"
	"testing"
)

// ask makes a request and returns where its outcome will be.
func (w *world) ask(t Ticket, err error) *Outcome {
	o := &Outcome{Err: errTest}
	w.request(t, err, func(x Outcome) { *o = x })
	return o
}

func ready(t *testing.T, cfg Config, topics int, partitions int32) *world {
	t.Helper()
	w := newWorld(cfg)
	w.settle(first)
	for i := range topics {
		o := w.ask(w.m.Create(fmt.Sprintf("t%d", i), partitions, nil, ID{byte(i + 1)}, 0))
		w.settle(first)
		must(t, o.Err)
	}
	return w
}

// TestChangesAtOnce: of two configurations that were made of the same one, the second is refused: what the first
// set is not lost. So is one that was made of another incarnation's.
func TestChangesAtOnce(t *testing.T) {
	w := ready(t, testConfig, 1, 1)
	one, two := []Pair{{RetentionMs, "7"}}, []Pair{{SegmentBytes, "2048"}}
	a, b := w.ask(w.m.Configure("t0", nil, one)), w.ask(w.m.Configure("t0", nil, two))
	w.settle(first)
	if a.Err != nil || !errors.Is(b.Err, ErrChanged) || !w.m.Marks().Has(MarkChanged) {
		t.Fatalf("%v, %v", a.Err, b.Err)
	}
	b = w.ask(w.m.Configure("t0", one, []Pair{one[0], two[0]}))
	w.settle(first)
	if got := w.m.State().Named("t0").Config; b.Err != nil || len(got) != 2 {
		t.Fatalf("%v: %v", b.Err, got)
	}
	w.ask(w.m.Delete("t0", 0))
	w.ask(w.m.Create("t0", 1, nil, ID{9}, 0))
	b = w.ask(w.m.Configure("t0", []Pair{one[0], two[0]}, one))
	w.settle(first)
	if got := w.m.State().Named("t0").Config; !errors.Is(b.Err, ErrChanged) || len(got) != 0 {
		t.Fatalf("%v: %v", b.Err, got)
	}
}

// TestDeleteMeansOne: a topic that took the name of the one to be deleted stays.
func TestDeleteMeansOne(t *testing.T) {
	w := ready(t, testConfig, 1, 1)
	a, b := w.ask(w.m.Delete("t0", 1)), w.ask(w.m.Create("t0", 1, nil, ID{9}, 0))
	c := w.ask(w.m.Delete("t0", 1))
	w.settle(first)
	if a.Err != nil || b.Err != nil || !errors.Is(c.Err, ErrNotFound) || !w.m.Marks().Has(MarkAnother) {
		t.Fatalf("%v, %v, %v", a.Err, b.Err, c.Err)
	}
	if x := w.m.State().Named("t0"); x == nil || x.Incarnation != 2 {
		t.Fatalf("%+v", x)
	}
	if c = w.ask(w.m.Delete("t0", 2)); !w.step(first) || c.Err != nil {
		t.Fatal(c.Err)
	}
}

// TestReopensLeaveRoom: logs that are opened again, and hang, keep nobody from asking, and leave half of what may be
// in flight to everything else.
func TestReopensLeaveRoom(t *testing.T) {
	cfg := testConfig
	cfg.RequestsMax = 3
	w := ready(t, cfg, 8, 2)
	for i := range uint64(8) {
		w.m.Reopen(i + 1)
	}
	w.ask(w.m.Configure("t7", nil, []Pair{{RetentionMs, "7"}}))
	w.startAll()
	if len(w.flight) != cfg.InFlightMax/2 { // and they stay there
		t.Fatalf("%d opens are in flight", len(w.flight))
	}
	a, b := w.ask(w.m.Create("new", 1, nil, ID{9}, 0)), w.ask(w.m.Producer())
	for range 4 { // what is in flight last
		w.step(func(n int) int { return n - 1 })
	}
	if a.Err != nil || b.Err != nil {
		t.Fatalf("%v, %v", a.Err, b.Err)
	}
	for range 3 {
		w.ask(w.m.Create("many", 1, nil, ID{8}, 0))
	}
	if _, err := w.m.Delete("t7", 0); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	w.settle(first)
	if w.err != nil {
		t.Fatal(w.err)
	}
	if w.m.reopening != 0 || w.m.flying != 0 || len(w.m.works) != 0 {
		t.Errorf("%d, %d, %d are left", w.m.reopening, w.m.flying, len(w.m.works))
	}
}
