package core_test

import (
	"strings"
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

// A rescue that rots before the original is removed: what only the original holds stays.
func TestSupersededFileStaysWhereItsRescueIsDamaged(t *testing.T) {
	for _, allow := range []bool{false, true} {
		cfg := smokeConfig()
		cfg.Sync = segment.NoSync
		r := newRig(t)
		r.open(cfg)
		r.append(0)
		for e := r.log.Next(r.now, core.Tail); e != nil; e = r.log.Next(r.now, core.Tail) {
			r.finish(e)
		}
		for i := 1; i < 5; i++ {
			r.append(i)
			r.finish(r.issue(core.Tail))
		}
		r.kill()
		original := r.files()[segmentsOf(r.files())[0]].name
		if err := r.log.Reopen(cfg, r.now); err != nil {
			t.Fatal(err)
		}
		for replaced := false; !replaced; {
			e := r.issue(core.Hot)
			_, replaced = e.(*core.Replace)
			r.finish(e)
		}
		files := r.files()
		at := segmentsOf(files)
		if len(at) != 2 {
			t.Fatalf("%d files", len(at))
		}
		for _, i := range at {
			if files[i].name != original {
				files[i].data[512+2*120+115] ^= 1 // the payload of a middle batch
			}
		}
		r.restore(files)
		cfg.AllowDamaged, cfg.VerifyAllOnOpen = allow, true
		r.open(cfg)
		r.pass(1e9)
		r.close()
		found := false
		for _, f := range r.files() {
			found = found || strings.HasSuffix(f.name, original)
		}
		if !found {
			t.Fatalf("the file with the only good copy is gone; allow_damaged %v, end %d", allow, r.log.End())
		}
		r.open(cfg)
		if !r.log.Plan().Empty() {
			t.Fatal("the second plan is not empty")
		}
	}
}
