package varve_test

import (
	"errors"
	"testing"

	"varve"
)

// TestBudget: two logs share what may be pending, one batch that is larger than all of it may come alone,
// and all is given back, whatever the outcome.
func TestBudget(t *testing.T) {
	ctx := t.Context()
	o := varve.Options{MaxBatchBytes: 4000, Budget: varve.NewBudget(1000)}
	hooks := [2]*hookFS{hooked(t.TempDir()), hooked(t.TempDir())}
	logs := [2]*varve.Log{openHooked(t, hooks[0], o), openHooked(t, hooks[1], o)}
	batch := func(i, bytes int) (varve.Pending, error) {
		return logs[i].AppendBatch(varve.Batch{Kind: varve.KindKafka, Records: 1, Payload: make([]byte, bytes)})
	}
	used := func(want int64, err error) {
		t.Helper()
		if got := o.Budget.Used(); err != nil || got != want {
			t.Fatalf("%v, %d bytes are in use, want %d", err, got, want)
		}
	}
	g := newGate()
	on(&hooks[0].sync, g.hook)
	first, err := batch(0, 600)
	used(600, err)
	if _, err := batch(1, 600); !errors.Is(err, varve.ErrOverloaded) {
		t.Fatalf("a batch beyond the budget: %v", err)
	}
	second, err := batch(1, 400)
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.Wait(ctx)
	used(600, err)
	on(&hooks[0].sync, nil)
	close(g.open)
	_, err = first.Wait(ctx)
	used(0, err)
	large, err := batch(1, 3000)
	if err != nil {
		t.Fatal(err)
	}
	_, err = large.Wait(ctx)
	used(0, err)
	if _, err := batch(1, 5000); !errors.Is(err, varve.ErrTooLarge) {
		t.Fatalf("a batch that no log takes: %v", err)
	}
	used(0, nil)
	on(&hooks[1].write, func() error { return errDisk })
	failed, err := batch(1, 500)
	if err == nil {
		_, err = failed.Wait(ctx)
	}
	if err == nil {
		t.Fatal("a write that failed is acked")
	}
	on(&hooks[1].write, nil)
	used(0, nil)
	last, err := batch(0, 100)
	if err == nil {
		_, err = last.Wait(ctx)
	}
	used(0, err)
}
