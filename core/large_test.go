package core_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"varve/core"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/tiertest"
)

// manySegments returns a rig with an open log of n sealed segments of one record each.
func manySegments(t testing.TB, n int) (*rig, core.Config) {
	cfg := smokeConfig()
	cfg.SegmentBytes, cfg.Preallocate = 1024, false
	r := newRig(t)
	r.open(cfg)
	for i := range n {
		r.append(i)
		r.runTail()
	}
	if err := r.log.Roll(r.now); err != nil {
		t.Fatal(err)
	}
	r.runTail()
	return r, cfg
}

// runTail runs the Tail lane alone until it has nothing to do.
func (r *rig) runTail() {
	for e := r.log.Next(r.now, core.Tail); e != nil; e = r.log.Next(r.now, core.Tail) {
		r.finish(e)
	}
}

func TestOpenOfManySegments(t *testing.T) {
	const n, filesMax = 1000, 8
	r, cfg := manySegments(t, n)
	r.close()
	files := r.files()
	if got := len(segmentsOf(files)); got != n {
		t.Fatalf("%d segments, want %d", got, n)
	}

	began := time.Now()
	if err := r.log.Reopen(cfg, r.now); err != nil {
		t.Fatal(err)
	}
	for r.log.Phase() == core.Opening {
		r.finish(r.issue(core.Hot))
		if open := r.disk.OpenFiles(); open > filesMax {
			t.Fatalf("%d files are open at a time", open)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("open took %v on the simulated disk", took)
	}
	r.wantRecords(0, n)

	// The same directory on the real disk.
	dir := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	store := disk.NewStore(osfs.New(dir))
	before, most := tiertest.Descriptors(t), 0
	began = time.Now()
	l, err := core.Open(cfg, r.now)
	if err != nil {
		t.Fatal(err)
	}
	for l.Phase() == core.Opening {
		e := l.Next(r.now, core.Hot)
		l.Complete(r.now, e, store.Run(e))
		if _, ok := e.(*core.SaveSuper); ok { // what an open keeps shows at its end
			most = max(most, tiertest.Descriptors(t)-before)
		}
	}
	took := time.Since(began)
	if l.Phase() != core.Ready || l.End() != n {
		t.Fatalf("phase %v, end %d: %v", l.Phase(), l.End(), l.Err())
	}
	if took > time.Second || most > filesMax {
		t.Errorf("open took %v and %d descriptors on the real disk", took, most)
	}
	t.Logf("%d segments: %v on the real disk, %d descriptors", n, took, most)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// A kill just behind a Seal leaves no file without a footer, and under load a superblock whose
// frontier is old: the newest file must be enough to prove the others.
func TestKilledBetweenSegmentsReadsOneOfThem(t *testing.T) {
	r, cfg := manySegments(t, 20)
	r.kill()
	if err := r.log.Reopen(cfg, r.now); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for r.log.Phase() == core.Opening {
		e := r.issue(core.Hot)
		if s, ok := e.(*core.Scan); ok && s.Whole {
			whole++
		}
		r.finish(e)
	}
	r.pump()
	r.wantRecords(0, 20)
	if whole > 1 {
		t.Fatalf("%d of 20 files were read whole", whole)
	}
	if n := len(r.log.Plan().Rescues); n != 1 {
		t.Fatalf("%d rescues, want that of the last batch", n)
	}
}

func TestTrimOfManySegments(t *testing.T) {
	const n = 500
	r, cfg := manySegments(t, n)
	for _, before := range []core.Offset{1, 7, 300, n} {
		if err := r.log.Trim(r.now, before); err != nil {
			t.Fatal(err)
		}
		r.pump()
		if left := core.Offset(len(segmentsOf(r.files()))); left != n-before {
			t.Fatalf("%d files are left after a trim to %d", left, before)
		}
		r.wantRecords(int(before), n)
	}
	r.close()
	r.open(cfg)
	r.wantRecords(n, n)
}
