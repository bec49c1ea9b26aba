package varve_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"varve"
)

// The tests of the bugs_*_test.go files carry the ids of failures that users of other logs reported;
// the table "Failures of other logs" in TESTING.md says which class each belongs to.

// TestFS2WholeGroupFails: the sync of a group commit fails while others queue behind it. Every waiter
// of the group and everyone behind gets an error, nobody an ack, and after reopening no offset that
// was acked is given again.
func TestFS2WholeGroupFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		fs := hooked(dir)
		l := openHooked(t, fs, varve.Options{NoPreallocate: true})
		for i := range int64(3) {
			mustAppend(t, l, i)
		}
		held := make(chan struct{})
		on(&fs.sync, func() error { <-held; return errDisk })
		errs := make(chan error, 40)
		for range 40 {
			go func() {
				_, err := l.Append(context.Background(), varve.Record{Value: []byte("lost?")})
				errs <- err
			}()
			synctest.Wait() // one in flight, then a queue
		}
		close(held)
		for range 40 {
			if err := <-errs; !errors.Is(err, varve.ErrUnknown) && !errors.Is(err, varve.ErrPoisoned) {
				t.Errorf("an append gets %v", err)
			}
		}
		on(&fs.sync, nil)
		if n := readAll(t, l, 0); n != 3 {
			t.Errorf("%d records are served", n)
		}
		_ = l.Close(t.Context())
		l = open(t, dir, varve.Options{})
		end := l.Committed()
		if end < 3 || end > 4 {
			t.Fatalf("%d records after reopening; one was in flight", end)
		}
		mustAppend(t, l, end)
	})
}

// TestFS5BackgroundSyncFails: under periodic the timer's sync fails between appends. The next append,
// trim, roll and close say so, and so do Stats and Err: it is no line in a log.
func TestFS5BackgroundSyncFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		fs := hooked(dir)
		l := openHooked(t, fs, varve.Options{Fsync: varve.Periodic, NoPreallocate: true})
		mustAppend(t, l, 0)
		time.Sleep(time.Second)
		mustAppend(t, l, 1)
		on(&fs.sync, func() error { return errDisk })
		time.Sleep(time.Second)
		synctest.Wait()
		on(&fs.sync, nil)
		if s := l.Stats(); !s.Poisoned || s.SyncFailures != 1 || s.Phase != "poisoned" || !errors.Is(l.Err(), errDisk) {
			t.Errorf("stats %+v, %v", s, l.Err())
		}
		_, err := l.Append(t.Context(), rec(2))
		for what, err := range map[string]error{
			"append": err, "trim": l.Trim(t.Context(), 1), "roll": l.Roll(t.Context()),
		} {
			if !errors.Is(err, varve.ErrPoisoned) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := l.Close(t.Context()); err == nil {
			t.Error("the close says nothing")
		}
	})
}

// TestCO1NoLostWakeUp: a follower that has found nothing waits, and a record is acked at whatever moment
// in between, also with a roll. It is woken at once: in a bubble whose clock stands still while
// anybody has something to do, no time passes.
func TestCO1NoLostWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := hooked(t.TempDir())
		l := openHooked(t, fs, varve.Options{NoPreallocate: true, SegmentAge: varve.Unlimited})
		mustAppend(t, l, 0)
		const rounds = 300
		var seen atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				r := l.NewReader(varve.Position{}, varve.ReadOptions{})
				defer r.Close()
				for n := range int64(rounds) {
					for range n % 5 { // another moment between "nothing there" and "registered"
						runtime.Gosched()
					}
					b, err := r.Next(ctx)
					if err != nil || b.Span.First != n {
						t.Errorf("record %d: %v, %v", n, b.Span, err)
						return
					}
					seen.Add(1)
				}
			})
		}
		began := time.Now()
		for i := int64(1); i < rounds; i++ {
			if i%3 == 0 {
				synctest.Wait() // all of them wait
			}
			for range i % 7 {
				runtime.Gosched()
			}
			if i%11 == 0 {
				if err := l.Roll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			mustAppend(t, l, i)
		}
		synctest.Wait()
		if n := seen.Load(); n != 3*rounds || time.Since(began) > 200*time.Millisecond {
			t.Errorf("%d of %d records were seen, after %v", n, 3*rounds, time.Since(began))
		}
		cancel()
		readers.Wait()
	})
}

// TestCO2SlowReaderHoldsNobody: one reader is stuck, ten follow. Appends and the ten go on; what the
// stuck one holds is its own buffer. TestCO3 is its end: it lags far more than any buffer holds,
// reads all of that from the files, and is live again with no gap and nothing twice.
func TestCO2SlowReaderHoldsNobody(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{Fsync: varve.None, SegmentBytes: 256 << 10})
	const total = 4000
	value := make([]byte, 1000)
	stuck := l.NewReader(varve.Position{}, varve.ReadOptions{Bytes: 4096})
	defer stuck.Close()
	put := func() {
		if _, err := l.Append(context.Background(), varve.Record{Value: value}); err != nil {
			t.Error(err)
		}
	}
	put()
	if _, ok, err := stuck.Poll(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	var fast sync.WaitGroup
	for range 10 {
		fast.Go(func() {
			r := l.NewReader(varve.Position{}, varve.ReadOptions{})
			defer r.Close()
			for n := range int64(total) {
				if b, err := r.Next(t.Context()); err != nil || b.Span.First != n {
					t.Errorf("record %d: %v, %v", n, b.Span, err)
					return
				}
			}
		})
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range total - 1 {
		put()
	}
	fast.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+4<<20 {
		t.Errorf("4 MB were appended beside a stuck reader, %d bytes are held", after.HeapAlloc-before.HeapAlloc)
	}
	t.Run("CO-3 it catches up and is live again", func(t *testing.T) {
		for n := int64(1); n < total+10; n++ {
			if n >= total {
				put()
			}
			if b, err := stuck.Next(t.Context()); err != nil || b.Span.First != n {
				t.Fatalf("record %d: %v, %v", n, b.Span, err)
			}
		}
	})
}

// TestCO5PositionIsTheNextRecord: a consumer keeps its position after 0, 1 and n records, is restarted
// with the log or without, and goes on: nothing twice, nothing left out, also at the start and at
// the end.
func TestCO5PositionIsTheNextRecord(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{SegmentBytes: 2048})
	const total = 30
	for i := range int64(total) {
		mustAppend(t, l, i)
	}
	for _, n := range []int64{0, 1, 2, total - 1, total} {
		r := l.NewReader(varve.Position{}, varve.ReadOptions{})
		for range n {
			if _, ok, err := r.Poll(); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		kept := r.Position()
		if kept.Offset != n {
			t.Fatalf("after %d records the position is %d", n, kept.Offset)
		}
		for _, restart := range []bool{false, true} {
			if restart {
				if err := errors.Join(r.Close(), l.Close(t.Context())); err != nil {
					t.Fatal(err)
				}
				l = open(t, dir, varve.Options{SegmentBytes: 2048})
			}
			next := n
			for rec, err := range l.Records(t.Context(), kept) {
				if err != nil || rec.Offset != next {
					t.Fatalf("resumed at %d: offset %d, want %d: %v", n, rec.Offset, next, err)
				}
				next++
				if rec.Position() != (varve.Position{Offset: next, Epoch: rec.Epoch}) {
					t.Fatalf("record %d says to go on at %v", rec.Offset, rec.Position())
				}
			}
			if next != total {
				t.Fatalf("resumed at %d: %d records", n, next)
			}
		}
	}
}

// TestCO9PositionWasTrimmed: a reader stands below Start. It is told what it asked for and what is
// oldest, stays where it is, and goes on only once it says where.
func TestCO9PositionWasTrimmed(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{SegmentBytes: 2048})
	for i := range int64(50) {
		mustAppend(t, l, i)
	}
	r := l.NewReader(varve.Position{Offset: 5}, varve.ReadOptions{Bytes: 1})
	defer r.Close()
	if err := l.Trim(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	var trimmed *varve.TrimmedError
	for range 3 {
		_, ok, err := r.Poll()
		if ok || !errors.As(err, &trimmed) || trimmed.Requested != 5 || trimmed.Start != 40 {
			t.Fatalf("%v, %v", ok, err)
		}
	}
	n := 0
	for _, err := range l.Follow(t.Context(), varve.Position{Offset: 5}) {
		if n++; !errors.As(err, &trimmed) {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("a follower is told %d times", n)
	}
	r.Seek(varve.Position{Offset: trimmed.Start})
	if b, ok, err := r.Poll(); !ok || err != nil || b.Span.End <= 40 {
		t.Fatalf("resumed: %v, %v, %v", b.Span, ok, err)
	}
}
