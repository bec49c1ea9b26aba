package varve_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"varve"
)

// The exact budgets: they hold on a busy machine, too.

func TestAllocationsOfAppend(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{Fsync: varve.None})
	r := varve.Record{Value: make([]byte, 128)}
	batch := make([]varve.Record, 100)
	for i := range batch {
		batch[i] = r
	}
	ctx := context.Background()
	cancellable, cancel := context.WithCancel(ctx)
	defer cancel()
	append1 := func(recs ...varve.Record) func() {
		return func() {
			if _, err := l.Append(ctx, recs...); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		run  func()
		most float64
	}{
		"lone append": {append1(r), 2},
		"lone append, cancellable": {func() {
			if _, err := l.Append(cancellable, r); err != nil {
				t.Fatal(err)
			}
		}, 2},
		"batch of hundred": {append1(batch...), 10},
	} {
		c.run()
		if n := testing.AllocsPerRun(500, c.run); n > c.most && !raceEnabled {
			t.Errorf("%s: %v allocations, want at most %v", name, n, c.most)
		}
	}
}

func TestReadAllocatesNothingARecord(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{Fsync: varve.None, SegmentBytes: 1 << 20})
	recs := make([]varve.Record, 100)
	for i := range recs {
		recs[i].Value = make([]byte, 128)
	}
	const batches = 1000
	for range batches {
		if _, err := l.Append(context.Background(), recs...); err != nil {
			t.Fatal(err)
		}
	}
	read := func() {
		n := 0
		for _, err := range l.Records(context.Background(), varve.Position{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 100*batches {
			t.Fatalf("%d records", n)
		}
	}
	read()
	// What is allocated belongs to the reader and to the files it opens, not to the records.
	if n := testing.AllocsPerRun(3, read); n > 300 && !raceEnabled {
		t.Fatalf("%v allocations for %d records", n, 100*batches)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Fatalf("a reader of 13 MB allocated %d bytes", n)
	}
}

func TestOneWriteAndOneSyncACommit(t *testing.T) {
	fs := hooked(t.TempDir())
	l := openHooked(t, fs, varve.Options{})
	mustAppend(t, l, 0)
	time.Sleep(50 * time.Millisecond) // what opening leaves to do
	meta, writes, syncs, before := fs.meta.Load(), fs.writes.Load(), fs.syncs.Load(), l.Stats()
	for i := range int64(200) {
		mustAppend(t, l, i+1)
	}
	after := l.Stats()
	commits := int64(after.Commits - before.Commits)
	if commits != 200 || fs.writes.Load()-writes != commits || fs.syncs.Load()-syncs != commits {
		t.Fatalf("%d commits, %d writes, %d syncs", commits, fs.writes.Load()-writes, fs.syncs.Load()-syncs)
	}
	if n := fs.meta.Load() - meta; n != 0 {
		t.Fatalf("%d metadata operations between rolls", n)
	}
	// 112 B of headers, 8 of base time and 2 a record, plus less than a sector for the sync.
	if n := after.CommitBytes - before.CommitBytes; n > 200*(112+8+2+12) {
		t.Fatalf("%d bytes written for 200 small records", n)
	}
}
