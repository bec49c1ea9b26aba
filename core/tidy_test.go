package core_test

import (
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// A quarantine that cannot be made keeps no trimmed file on disk.
func TestRemovalsDoNotWaitForQuarantine(t *testing.T) {
	r, files := oneLife(t, smokeConfig(), 30)
	copied := savedFile{segment.Name(1000, segment.MakeID(1, 1)), files[segmentsOf(files)[0]].data}
	r.restore(append(files, copied))
	r.disk.FailNext(faultfs.OpMkdir, faultfs.D15Error)
	r.open(smokeConfig())
	before := len(segmentsOf(r.files()))
	if err := r.log.Trim(r.now, 30); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r.disk.FailNext(faultfs.OpMkdir, faultfs.D15Error)
		r.pass(1e9)
	}
	r.wantMarks(core.MarkRemoveFailed)
	if left := len(segmentsOf(r.files())); left != 1 {
		t.Fatalf("%d of %d segments are left, want the copy alone", left, before)
	}
}

// A rescue that rots before its original is removed: the original holds the only good copy and stays.
func TestOriginalOfADamagedRescueStays(t *testing.T) {
	cfg := smokeConfig()
	cfg.Sync = segment.NoSync
	r := newRig(t)
	r.open(cfg)
	r.write(0, 5)
	r.kill()
	original := r.files()[segmentsOf(r.files())[0]].name
	r.recover(cfg)
	files := r.files() // recovered, nothing removed yet
	at := segmentsOf(files)
	if len(at) != 2 {
		t.Fatalf("%d files, want the original and its rescue", len(at))
	}
	for _, i := range at {
		if files[i].name != original {
			files[i].data[512+2*120+115] ^= 1 // the payload of the third batch
		}
	}
	r.restore(files)
	cfg.AllowDamaged, cfg.VerifyAllOnOpen = true, true
	for range 2 {
		r.open(cfg)
		r.pass(1e9)
		if got, err := r.readUntil(0); err == nil || len(got) != 2 {
			t.Fatalf("%d records before the damage, want 2; %v", len(got), err)
		}
		r.close()
		found := false
		for _, f := range r.files() {
			found = found || f.name == original
		}
		if !found {
			t.Fatal("the file with the only good copy is gone")
		}
	}
	if !r.log.Plan().Empty() {
		t.Fatal("the second plan is not empty")
	}
}

// A damaged file that is served in part counts like any other: its producers are remembered, and it
// goes when Start has passed it.
func TestDamagedFileIsServedInPart(t *testing.T) {
	cfg := smokeConfig()
	r := newRig(t)
	r.open(cfg)
	for sequence := range int32(5) {
		if _, err := r.appendOf(7, sequence); err != nil {
			t.Fatal(err)
		}
	}
	r.write(5, 30)
	r.close()
	files := r.files()
	damaged := files[segmentsOf(files)[0]]
	damaged.data[512+5*512+115] ^= 1 // a batch of its middle, of no producer
	r.restore(files)
	cfg.AllowDamaged, cfg.VerifyAllOnOpen = true, true
	r.open(cfg)
	r.wantMarks(core.MarkAllowDamaged)
	got, err := r.appendOf(7, 4)
	if err != nil || !got.Duplicate || got.First != 4 {
		t.Fatalf("a batch sent again gets %+v, %v", got, err)
	}
	has := func() bool {
		for _, f := range r.files() {
			if f.name == damaged.name {
				return true
			}
		}
		return false
	}
	for _, before := range []core.Offset{4, 6} {
		if err := r.log.Trim(r.now, before); err != nil {
			t.Fatal(err)
		}
		r.pump()
		if !has() {
			t.Fatalf("the damaged file is gone with Start at %d", before)
		}
	}
	if err := r.log.Trim(r.now, 20); err != nil {
		t.Fatal(err)
	}
	r.pump()
	if has() {
		t.Fatal("the damaged file stays, although Start has passed it")
	}
}
