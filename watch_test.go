package varve

import (
	"context"
	"testing"
	"time"
)

// A watched log tells of every commit, also when nobody looks in between, and of its end; after
// Unwatch it tells nothing.
func TestWatch(t *testing.T) {
	ctx := t.Context()
	l, err := Open(ctx, t.TempDir(), Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{}, 1)
	other := make(chan struct{}, 1)
	l.Watch(told)
	l.Watch(other)
	l.Unwatch(other)
	wait := func(what string) {
		t.Helper()
		select {
		case <-told:
		case <-time.After(10 * time.Second):
			t.Fatal(what + " was not told")
		}
	}
	for i := range 3 {
		if _, err := l.Append(ctx, Record{Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
		wait("a commit")
		if got := l.Committed(); got != int64(i+1) {
			t.Errorf("committed %d", got)
		}
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	wait("the end")
	l.Unwatch(told)
	if len(other) > 0 || l.watchers.list != nil {
		t.Error("one that does not watch any more was told, or is kept")
	}
}

// Epochs of a log that was opened three times: each ends where the next begins, the last at Committed.
func TestEpochEnd(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var epochs []uint64
	for range 3 {
		l, err := Open(ctx, dir, Options{MinFreeBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := l.Append(ctx, Record{}, Record{}); err != nil {
				t.Fatal(err)
			}
		}
		epochs = append(epochs, l.Stats().Epoch)
		if len(epochs) == 3 {
			if found, end := l.EpochEnd(epochs[0] - 1); found != 0 || end != 0 {
				t.Errorf("before the first epoch: %d, %d", found, end)
			}
			for i, e := range epochs {
				if found, end := l.EpochEnd(e); found != e || end != int64(4*(i+1)) {
					t.Errorf("epoch %d: %d, %d", e, found, end)
				}
				if got := l.EpochOf(int64(4 * i)); got != e {
					t.Errorf("epoch of offset %d is %d, want %d", 4*i, got, e)
				}
			}
			if found, end := l.EpochEnd(epochs[2] + 9); found != epochs[2] || end != 12 {
				t.Errorf("above the last epoch: %d, %d", found, end)
			}
		}
		if err := l.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// Times that fall: the search from an offset finds what is behind it, and not the record before.
func TestOffsetFrom(t *testing.T) {
	ctx := t.Context()
	l, err := Open(ctx, t.TempDir(), Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(ctx) //nolint:errcheck // nothing is asked of it any more
	for _, s := range []int64{10, 50, 20, 40, 30} {
		if _, err := l.Append(ctx, Record{Time: time.Unix(s, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range []int64{1, 1, 3, 3, 5} {
		if p, err := l.OffsetFrom(ctx, int64(from), time.Unix(40, 0)); err != nil || p.Offset != want {
			t.Errorf("from %d: %d, %v; want %d", from, p.Offset, err, want)
		}
	}
}
