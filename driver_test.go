package varve_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"varve"
)

// gate lets a hook wait until the test opens it.
type gate struct{ open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{})} }

func (g *gate) hook() error {
	<-g.open
	return nil
}

func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := hooked(t.TempDir())
		l := openHooked(t, fs, varve.Options{NoPreallocate: true})
		mustAppend(t, l, 0)
		g := newGate()
		on(&fs.sync, g.hook)
		var wg sync.WaitGroup
		spans := make([]varve.Span, 65)
		start := func(i int) {
			wg.Go(func() {
				var err error
				if spans[i], err = l.Append(context.Background(), rec(0)); err != nil {
					t.Error(err)
				}
			})
		}
		before := l.Stats()
		writes, syncs := fs.writes.Load(), fs.syncs.Load()
		start(0)
		synctest.Wait() // its sync is held
		for i := 1; i <= 64; i++ {
			start(i)
		}
		synctest.Wait()
		if c := l.Stats().Commits; c != before.Commits || l.Committed() != 1 {
			t.Fatalf("%d commits, committed %d while the first sync is held", c-before.Commits, l.Committed())
		}
		on(&fs.sync, nil)
		close(g.open)
		wg.Wait()
		seen := map[int64]bool{}
		for _, s := range spans {
			if s.End != s.First+1 || s.First < 1 || s.First > 65 || seen[s.First] {
				t.Fatalf("span %v", s)
			}
			seen[s.First] = true
		}
		if w, s := fs.writes.Load()-writes, fs.syncs.Load()-syncs; w != 2 || s != 2 {
			t.Fatalf("%d writes and %d syncs for 1 + 64 appends, want 2 and 2", w, s)
		}
		after := l.Stats()
		if n := after.CommitRecords - before.CommitRecords; n != 65 {
			t.Fatalf("%d records committed", n)
		}
	})
}

func TestCancelledAppendIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := hooked(t.TempDir())
		l := openHooked(t, fs, varve.Options{})
		mustAppend(t, l, 0)
		g := newGate()
		on(&fs.sync, g.hook)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Append(ctx, rec(1))
		if !errors.Is(err, varve.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("cancelled in flight: %v", err)
		}
		if _, err := l.Append(ctx, rec(2)); errors.Is(err, varve.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("cancelled before: %v", err)
		}
		on(&fs.sync, nil)
		close(g.open)
		mustAppend(t, l, 2) // the one that nobody waited for got its offset
		if n := readAll(t, l, 0); n != 3 {
			t.Fatalf("%d records", n)
		}
	})
}

func TestFailedSyncPoisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		fs := hooked(dir)
		l := openHooked(t, fs, varve.Options{})
		mustAppend(t, l, 0)
		follower := make(chan error, 1)
		go func() {
			for _, err := range l.Follow(context.Background(), varve.Position{}) {
				if err != nil {
					follower <- err
				}
			}
		}()
		synctest.Wait()
		on(&fs.sync, func() error { return errDisk })
		_, err := l.Append(t.Context(), rec(1))
		if !errors.Is(err, varve.ErrUnknown) {
			t.Fatalf("append whose sync failed: %v", err)
		}
		on(&fs.sync, nil)
		if _, err := l.Append(t.Context(), rec(1)); !errors.Is(err, varve.ErrPoisoned) || errors.Is(err, varve.ErrUnknown) {
			t.Fatalf("append to a poisoned log: %v", err)
		}
		if _, err := l.AppendAsync(rec(1)); !errors.Is(err, varve.ErrPoisoned) {
			t.Fatalf("append to a poisoned log: %v", err)
		}
		if err := <-follower; !errors.Is(err, varve.ErrPoisoned) || !errors.Is(err, errDisk) {
			t.Fatalf("follower: %v", err)
		}
		if n := readAll(t, l, 0); n != 1 {
			t.Fatalf("%d records readable", n)
		}
		if err := l.Trim(t.Context(), 1); !errors.Is(err, varve.ErrPoisoned) {
			t.Fatalf("trim: %v", err)
		}
		_ = l.Close(t.Context())
		l = open(t, dir, varve.Options{})
		n := readAll(t, l, 0)
		mustAppend(t, l, n)
		if n < 1 || n > 2 {
			t.Fatalf("%d records after reopening", n)
		}
	})
}

func TestFailedWriteIsDefinite(t *testing.T) {
	fs := hooked(t.TempDir())
	l := openHooked(t, fs, varve.Options{})
	mustAppend(t, l, 0)
	on(&fs.write, func() error { return errDisk })
	_, err := l.Append(t.Context(), rec(1))
	if err == nil || errors.Is(err, varve.ErrUnknown) || errors.Is(err, varve.ErrPoisoned) {
		t.Fatalf("append whose write failed: %v", err)
	}
	on(&fs.write, nil)
	mustAppend(t, l, 1)
	if n := readAll(t, l, 0); n != 2 {
		t.Fatalf("%d records", n)
	}
}

func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := hooked(t.TempDir())
		l := openHooked(t, fs, varve.Options{MaxBatchBytes: 1 << 10, PendingBytes: 4 << 10})
		mustAppend(t, l, 0)
		g := newGate()
		on(&fs.sync, g.hook)
		big := varve.Record{Value: make([]byte, 1000)}
		var pending []varve.Pending
		for {
			p, err := l.AppendAsync(big)
			if errors.Is(err, varve.ErrOverloaded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			pending = append(pending, p)
		}
		if len(pending) < 3 || len(pending) > 8 {
			t.Fatalf("%d batches of 1 KiB pending with a limit of 4 KiB", len(pending))
		}
		waited := make(chan error)
		go func() {
			_, err := l.Append(context.Background(), big)
			waited <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Append(ctx, big); errors.Is(err, varve.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("append that never got in: %v", err)
		}
		on(&fs.sync, nil)
		close(g.open)
		if err := <-waited; err != nil {
			t.Fatalf("append that waited: %v", err)
		}
		for i, p := range pending {
			if s, err := p.Wait(t.Context()); err != nil || s.First != int64(i)+1 {
				t.Fatalf("pending %d: %v %v", i, s, err)
			}
		}
	})
}

func TestCloseHonoursContextAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		fs := hooked(dir)
		l := openHooked(t, fs, varve.Options{})
		mustAppend(t, l, 0)
		g := newGate()
		on(&fs.sync, g.hook)
		p, err := l.AppendAsync(rec(1))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("close of a hung log: %v", err)
		}
		if _, err := l.Append(t.Context(), rec(2)); !errors.Is(err, varve.ErrClosed) {
			t.Fatalf("append after close: %v", err)
		}
		if _, err := varve.Open(t.Context(), dir, varve.Options{}); !errors.Is(err, varve.ErrInUse) {
			t.Fatalf("open of a log that is still closing: %v", err)
		}
		on(&fs.sync, nil)
		close(g.open)
		if err := l.Close(t.Context()); err != nil {
			t.Fatalf("second close: %v", err)
		}
		if s, err := p.Wait(t.Context()); err != nil || s.First != 1 {
			t.Fatalf("pending at close: %v %v", s, err)
		}
		for _, err := range l.Records(t.Context(), varve.Position{}) {
			if !errors.Is(err, varve.ErrClosed) {
				t.Fatalf("read after close: %v", err)
			}
		}
		l = open(t, dir, varve.Options{})
		if n := readAll(t, l, 0); n != 2 {
			t.Fatalf("%d records after a clean close", n)
		}
	})
}

func TestOpenHonoursContext(t *testing.T) {
	dir := t.TempDir() + "/new"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := varve.Open(ctx, dir, varve.Options{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	wantAbsent(t, dir)
}

func TestPeriodicSyncsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := hooked(t.TempDir())
		l := openHooked(t, fs, varve.Options{Fsync: varve.Periodic, NoPreallocate: true})
		mustAppend(t, l, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		syncs := fs.syncs.Load()
		began := time.Now()
		mustAppend(t, l, 1)
		if fs.syncs.Load() != syncs || time.Since(began) != 0 {
			t.Fatal("an append waited for a sync")
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if n := fs.syncs.Load() - syncs; n != 1 {
			t.Fatalf("%d syncs in 300 ms", n)
		}
		if s := l.Stats(); s.Frontier != 2 {
			t.Fatalf("frontier %d", s.Frontier)
		}

		// A sync that hangs: acks pause at two intervals, and go on when it returns.
		g := newGate()
		on(&fs.sync, g.hook)
		mustAppend(t, l, 2)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Append(ctx, rec(3)); !errors.Is(err, varve.ErrUnknown) {
			t.Fatalf("append while a sync hangs: %v", err)
		}
		on(&fs.sync, nil)
		close(g.open)
		time.Sleep(time.Second)
		mustAppend(t, l, 4)
	})
}

func TestFollowWithoutGap(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{SegmentBytes: 16 << 10, Fsync: varve.None})
	const total = 3000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			next := int64(0)
			for r, err := range l.Follow(ctx, varve.Position{}) {
				if err != nil {
					if next != total || !errors.Is(err, context.Canceled) {
						t.Errorf("follower at %d: %v", next, err)
					}
					return
				}
				if r.Offset != next || string(r.Value) != string(value(next)) {
					t.Errorf("follower at %d got %d %q", next, r.Offset, r.Value)
					return
				}
				if next++; next == total {
					time.AfterFunc(10*time.Millisecond, cancel)
				}
			}
		})
	}
	for i := range int64(total) {
		mustAppend(t, l, i)
	}
	wg.Wait()
}

func TestManyGoroutines(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{SegmentBytes: 64 << 10, Fsync: varve.None})
	const writers, each = 16, 300
	var wg sync.WaitGroup
	acked := make([][]int64, writers)
	stop := make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				v := varve.Record{Key: value(int64(w)), Value: value(int64(i))}
				s, err := l.Append(context.Background(), v)
				if err != nil {
					t.Error(err)
					return
				}
				acked[w] = append(acked[w], s.First)
			}
		})
	}
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := l.Roll(context.Background()); err != nil {
				t.Error(err)
			}
			_ = l.Stats()
			if _, err := l.OffsetAt(context.Background(), time.Now().Add(-time.Second)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			next := int64(0)
			for r, err := range l.Records(context.Background(), varve.Position{}) {
				if err != nil || r.Offset != next {
					t.Errorf("reader at %d got %d: %v", next, r.Offset, err)
					return
				}
				next++
			}
		}
	})
	wg.Wait()
	close(stop)
	others.Wait()
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, varve.Options{})
	byOffset := map[int64][2]string{}
	for r, err := range l.Records(t.Context(), varve.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		byOffset[r.Offset] = [2]string{string(r.Key), string(r.Value)}
	}
	if len(byOffset) != writers*each {
		t.Fatalf("%d records", len(byOffset))
	}
	for w := range writers {
		for i, o := range acked[w] {
			if byOffset[o] != [2]string{string(value(int64(w))), string(value(int64(i)))} {
				t.Fatalf("writer %d append %d acked at %d: found %q", w, i, o, byOffset[o])
			}
			if i > 0 && o <= acked[w][i-1] {
				t.Fatalf("writer %d: offsets fall from %d to %d", w, acked[w][i-1], o)
			}
		}
	}
}

func TestInspectBesideABusyWriter(t *testing.T) {
	for _, o := range []varve.Options{
		{SegmentBytes: 4096, NoPreallocate: true},
		{SegmentBytes: 4096, Fsync: varve.None},
		{SegmentBytes: 1 << 20},
	} {
		dir := t.TempDir()
		l := open(t, dir, o)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for !stop.Load() {
					if _, err := l.Append(context.Background(), varve.Record{Value: make([]byte, 100)}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 30 {
			x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if x.Refused != nil {
				t.Fatalf("damage seen in a good log: %v", x.Refused)
			}
			n := int64(0)
			for _, err := range x.Records(t.Context(), varve.Position{}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != x.End {
				t.Fatalf("%d records up to %d", n, x.End)
			}
		}
		stop.Store(true)
		wg.Wait()
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoneRacesWithTheOutcome(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{Fsync: varve.None})
	for range 3000 {
		p, err := l.AppendAsync(rec(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
