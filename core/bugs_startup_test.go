package core_test

import (
	"strings"
	"testing"

	"varve/core"
	"varve/faultfs"
)

// TestSU1OpenOfManySegments: 10,000 sealed segments. An open reads what does not depend on their size,
// the header and the end of each, and the active one.
func TestSU1OpenOfManySegments(t *testing.T) {
	const n = 10_000
	r, cfg := manySegments(t, n)
	r.put(n, n+3, 20) // in an active segment, without a footer
	r.kill()
	r.disk.ResetCounts()
	r.recover(cfg)
	if r.log.Phase() != core.Ready || r.log.End() != n+3 {
		t.Fatalf("%v, end %d: %v", r.log.Phase(), r.log.End(), r.log.Err())
	}
	c := r.disk.Counts()
	if perFile := c.ReadBytes / n; perFile > 4096 || c.Calls[faultfs.OpRead] > 2*n+100 {
		t.Errorf("%d bytes and %d reads for %d segments", c.ReadBytes, c.Calls[faultfs.OpRead], n)
	}
	for _, o := range []core.Offset{0, 1, n / 2, n - 1, n, n + 2} {
		if got, err := r.readSome(o, 1); err != nil || len(got) == 0 || got[0] != uint64(o) {
			t.Fatalf("offset %d: %v, %v", o, got, err)
		}
	}

	// The same number of larger segments costs no more.
	cost := func(bytes int) uint64 {
		r := newRig(t)
		cfg := tableConfig()
		r.open(cfg)
		for i := range 50 {
			for k := range 8 {
				r.put(8*i+k, 8*i+k+1, bytes)
			}
			_ = r.log.Roll(r.now)
			r.pump()
		}
		r.close()
		r.disk.ResetCounts()
		r.recover(cfg)
		return r.disk.Counts().ReadBytes
	}
	if small, large := cost(1000), cost(7500); large > small {
		t.Errorf("segments of 8 KB cost %d bytes to open, of 64 KB %d", small, large)
	}
}

// TestSU3KilledInRecoveryAgainAndAgain: a service manager kills each recovery at some call before it is
// done. It costs no more the next time, nothing piles up, and the first one that is let alone ends.
func TestSU3KilledInRecoveryAgainAndAgain(t *testing.T) {
	cfg := tableConfig()
	img := crashed(t, cfg, 30, 700)
	r := newRig(t)
	r.restore(img)
	r.open(cfg)
	calls, read := int64(r.disk.FS(0).Calls()), r.disk.Counts().ReadBytes
	for budget := int64(1); budget < calls; budget++ {
		r := newRig(t)
		r.restore(img)
		for range 20 {
			r.disk.FS(0).SetCallBudget(budget, false)
			r.start(cfg)
			r.kill()
			if n := len(r.files()); n > len(img)+5 { // two rescues, an unfinished one, two sidecars
				t.Fatalf("after %d calls: %d files", budget, n)
			}
		}
		r.disk.ResetCounts()
		r.open(cfg)
		if c := r.disk.Counts().ReadBytes; c > read+64<<10 {
			t.Errorf("killed after %d calls: %d bytes are read, %d without", budget, c, read)
		}
		r.wantRecords(0, 30)
		for _, f := range r.files() {
			if strings.HasSuffix(f.name, ".tmp") {
				t.Errorf("killed after %d calls: %s is left", budget, f.name)
			}
		}
		if s := superOf(t, r.files(), 0); len(s.Lineage) > 3 {
			t.Errorf("killed after %d calls: a lineage of %d entries", budget, len(s.Lineage))
		}
		r.wantSecondPlanEmpty(cfg, 0, 30)
	}
}
