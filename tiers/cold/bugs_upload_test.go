package cold_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"varve/core"
	"varve/core/manifest"
	"varve/faultfs"
	"varve/sim/fakebucket"
	"varve/tiers/cold/scrub"
	"varve/tiers/disk"
)

// life is one that exports, makes pages, trims and deletes.
func life(r *rig) {
	r.fill(20)
	if !r.dead {
		r.trim(8)
	}
	r.fill(4)
	r.pass(10 * second)
}

// atEveryChange runs a life that ends at each change of the bucket in turn, and the next one.
func atEveryChange(t *testing.T, then func(r *rig)) {
	t.Helper()
	cfg := smallConfig()
	cfg.ColdPageSegments = 2
	for n := 1; ; n++ {
		r := newRig(t, cfg)
		r.sees.dying = n
		life(r)
		died := r.dead
		then(r)
		if !died {
			if n < 20 {
				t.Fatalf("only %d changes", n)
			}
			return
		}
	}
}

// TestUP1CrashBetweenManifestAndDelete: the process ends after each change of the bucket in turn. No published
// manifest ever lists an object that is not there, and the next life goes on with what was left.
func TestUP1CrashBetweenManifestAndDelete(t *testing.T) {
	atEveryChange(t, func(r *rig) {
		r.restart()
		r.pass(120 * second)
		r.readAll()
		r.wantTidy()
	})
}

// TestUP2UploadedAgain: an upload whose end nobody knows, or whose object nobody recorded, is done again under
// a key of its own, and what is deleted afterwards is the one before.
func TestUP2UploadedAgain(t *testing.T) {
	for _, fault := range []fakebucket.Fault{fakebucket.O1Before, fakebucket.O2Applied, fakebucket.O3Late, fakebucket.O5Own, fakebucket.O4Throttled} {
		t.Run(fault.String(), func(t *testing.T) {
			r := newRig(t, smallConfig())
			for skip := range 3 {
				r.bucket.Arm(fakebucket.OpPut, fault, skip, ".seg")
			}
			r.fill(10)
			r.restart()
			r.pass(300 * second)
			r.bucket.Settle()
			r.restart() // what came late belongs to an attempt that was given up
			r.pass(120 * second)
			if r.bucket.Armed() > 0 || r.sees.segmentsPut() < 6 {
				t.Fatalf("%d faults left, %d objects put", r.bucket.Armed(), r.sees.segmentsPut())
			}
			r.offload()
			r.readAll()
		})
	}
}

// TestUP3OrphansOfCrashes: a hundred times the process ends between the put of an object and the swap that
// records it. A scrub takes none of them for an orphan as long as the upload may be going on, and the lives
// that follow leave nothing behind.
func TestUP3OrphansOfCrashes(t *testing.T) {
	r := newRig(t, smallConfig())
	r.fill(4)
	r.restart()
	for n := range 100 {
		r.sees.after = func(_ fakebucket.Op, key string) {
			r.dead = r.dead || strings.HasSuffix(key, ".seg") && r.sees.there(key)
		}
		r.fill(8)
		r.pass(300 * second)
		if !r.dead {
			t.Fatal("no object was put")
		}
		r.sees.after = nil
		if n%20 == 0 {
			report, err := scrub.Run(t.Context(), r.bucket, "log/", func(int64, int64) {})
			if err != nil {
				t.Fatal(err)
			}
			before := r.bucket.Changes()
			if _, err := report.Repair(t.Context(), r.bucket, 0); err != nil || r.bucket.Changes() != before {
				t.Fatalf("the scrub changes what an upload may still be at: %v, %v", report.Anomalies, err)
			}
		}
		r.restart()
	}
	r.pass(300 * second)
	r.readAll()
	r.wantTidy()
}

func (w *witness) there(key string) bool {
	_, _, there := w.Find([]byte(key))
	return there
}

// TestUP5SourceCutDuringItsUpload: the file is cut, or other bytes stand in it, between two parts of its upload.
// What was sent of it becomes no object.
func TestUP5SourceCutDuringItsUpload(t *testing.T) {
	for name, harm := range map[string]func(f disk.File) error{
		"cut": func(f disk.File) error { return f.Truncate(1_500_000) },
		"other": func(f disk.File) error {
			_, err := f.WriteAt([][]byte{bytes.Repeat([]byte{1}, 1000)}, 1_500_000)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := inParts(t)
			harmed := false
			r.sees.after = func(op fakebucket.Op, key string) {
				if op != fakebucket.OpBegin || harmed {
					return
				}
				harmed = true
				f, err := r.disk.FS(1).Open(r.firstSegment(), disk.Write)
				if err := errors.Join(err, harm(f), f.Close()); err != nil {
					t.Fatal(err)
				}
			}
			r.fill(2500)
			r.pass(300 * second)
			if !harmed {
				t.Fatal("there was no upload in parts")
			}
			m := r.sees.published(func(key string, _ int64, _ uint32) { t.Errorf("%s is published", key) })
			if s := r.log.Stats(); s.Exported != 0 || r.bucket.Open() != 0 || len(m.Segments) > 1 || s.ColdError == nil {
				t.Fatalf("%d exported, %d uploads open, %d entries, %v", s.Exported, r.bucket.Open(), len(m.Segments), s.ColdError)
			}
			if r.log.HotStart() != 0 {
				t.Fatal("the file is gone")
			}
		})
	}
}

// inParts is a log of segments of 2 MiB, which are uploaded in parts of 256 KiB.
func inParts(t *testing.T) *rig {
	t.Helper()
	o, p := partOptions()
	o.PartBytes = 256 << 10
	cfg := smallConfig()
	cfg.SegmentBytes = 2 << 20
	return newRigWith(t, cfg, o, p)
}

// firstSegment is the name of the oldest segment file.
func (r *rig) firstSegment() string {
	r.t.Helper()
	list, err := r.disk.FS(1).List(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	first := ""
	for _, e := range list {
		if strings.HasSuffix(e.Name, ".seg") && (first == "" || e.Name < first) {
			first = e.Name
		}
	}
	return first
}

// TestUP6SwapAnsweredTooLate: each swap of the manifest in turn is answered with an error and happens later, at
// each of the calls that follow. No object of it is ever deleted.
func TestUP6SwapAnsweredTooLate(t *testing.T) {
	for swap := range 8 {
		for calls := 1; calls < 12; calls++ {
			r := newRig(t, smallConfig())
			r.bucket.Arm(fakebucket.OpPut, fakebucket.O3Late, swap, manifest.ManifestKey)
			left := calls
			r.sees.before = func(fakebucket.Op, string) error {
				if r.bucket.Late() > 0 {
					if left--; left == 0 {
						r.bucket.Settle()
					}
				}
				return nil
			}
			r.fill(10)
			r.pass(300 * second)
			r.bucket.Settle()
			r.pass(120 * second)
			if r.bucket.Armed() > 0 {
				t.Fatalf("no swap %d", swap)
			}
			if r.log.Err() != nil {
				t.Fatalf("swap %d, late by %d calls: %v", swap, calls, r.log.Err())
			}
			r.offload()
			r.readAll()
			r.wantTidy()
		}
	}
}

// TestUP9HalfAnUpload: uploads in parts and deletes of several objects end at each change of the bucket. The
// manifest comes last and goes first: it never lists a half.
func TestUP9HalfAnUpload(t *testing.T) {
	o, p := partOptions()
	for n := 1; ; n++ {
		r := newRigWith(t, smallConfig(), o, p)
		r.sees.dying = n
		r.fill(13)
		if !r.dead {
			r.trim(10)
		}
		r.pass(10 * second)
		died := r.dead
		open := r.bucket.Open()
		r.restart()
		r.pass(120 * second)
		r.readAll()
		if !died {
			if open != 0 || n < 30 {
				t.Fatalf("%d uploads open after %d changes", open, n)
			}
			return
		}
	}
}

// TestUP11FailedParts: each call of an upload in parts fails in each way that it can. Nothing of it is left.
func TestUP11FailedParts(t *testing.T) {
	o, p := partOptions()
	for _, op := range []fakebucket.Op{fakebucket.OpBegin, fakebucket.OpPart, fakebucket.OpFinish} {
		for fault := range fakebucket.FaultCount {
			if !(fakebucket.CallFaults(op) &^ fakebucket.Damaging).Has(fault) || op == fakebucket.OpBegin && fault == fakebucket.O2Applied { // an upload that nobody has the id of: the scrub's
				continue
			}
			for skip := range 3 {
				r := newRigWith(t, smallConfig(), o, p)
				r.bucket.Arm(op, fault, skip, ".seg")
				r.fill(12)
				r.pass(300 * second)
				r.bucket.Settle()
				if r.bucket.Armed() > 0 || r.log.Exported() != 10 {
					t.Fatalf("%v %v: exported %d", op, fault, r.log.Exported())
				}
				if fault == fakebucket.O3Late && op == fakebucket.OpFinish {
					continue // it may appear after it was deleted, and is the scrub's then
				}
				r.readAll()
				r.wantTidy()
			}
		}
	}
}

// TestOS1OwnWriteRefused: a put with a condition takes effect and is answered with 412, as if sent twice. The log
// looks what is there: it goes on after its own swap, and takes nobody for another owner.
func TestOS1OwnWriteRefused(t *testing.T) {
	for _, suffix := range []string{".seg", manifest.ManifestKey} {
		for skip := range 8 {
			r := newRig(t, smallConfig())
			r.bucket.Arm(fakebucket.OpPut, fakebucket.O5Own, skip/2, suffix)
			r.fill(12)
			r.pass(60 * second)
			if r.bucket.Armed() > 0 || r.log.Err() != nil || r.log.Exported() != 10 {
				t.Fatalf("%s, %d: exported %d, %v", suffix, skip, r.log.Exported(), r.log.Err())
			}
			r.offload()
			r.readAll()
			r.wantTidy()
		}
	}
}

// TestOS7SourceFailsDuringItsUpload: the disk fails to read in the middle of an upload. Nothing comes under the
// key; a later attempt does it all.
func TestOS7SourceFailsDuringItsUpload(t *testing.T) {
	r := inParts(t)
	fails, aborts := 6, 0
	r.sees.after = func(op fakebucket.Op, _ string) {
		if op == fakebucket.OpAbort {
			aborts++
		}
	}
	r.step = func(e core.Effect) {
		if _, ok := e.(*core.Upload); ok && fails > 0 {
			fails--
			r.disk.Arm(faultfs.OpRead, faultfs.D14ReadOnce, fails, ".seg")
		}
	}
	r.fill(2500)
	r.pass(300 * second)
	if fails > 0 || aborts == 0 || len(r.sees.put) != aborts+1 || r.log.Exported() == 0 {
		t.Fatalf("%d faults left, exported %d, %d uploads begun, %d aborted", fails, r.log.Exported(), len(r.sees.put), aborts)
	}
	r.readAll()
	r.wantTidy()
}

// TestMC7RestartLoop: the newest segment ends in a torn batch, and the process is killed again and again while it
// starts or runs. Nothing that is in the bucket is sent again, and no object before recovery is decided.
func TestMC7RestartLoop(t *testing.T) {
	r := newRig(t, smallConfig())
	r.fill(20)
	r.pass(10 * second)
	r.wantTidy()
	sent := r.sees.segmentsPut()
	exported := r.log.Exported()
	for life := range 10 {
		r.disk.FS(0).Kill()
		name := r.lastSegment()
		f, err := r.disk.FS(1).Open(name, disk.Write)
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err == nil {
			_, err = f.WriteAt([][]byte{make([]byte, 100+life)}, size)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		r.step = func(e core.Effect) {
			u, ok := e.(*core.Upload)
			if !ok {
				return
			}
			if p := r.log.Phase(); p != core.Ready || u.Header.Base < exported {
				t.Errorf("life %d: an object from %d on, with %d exported, while the log is %v", life, u.Header.Base, exported, p)
			}
			exported = u.Header.End
		}
		r.restart()
		r.pass(5 * second)
		r.readAll()
	}
	if r.log.Exported() != exported {
		t.Fatalf("exported %d, not %d", r.log.Exported(), exported)
	}
	if n := r.sees.segmentsPut() - sent; n > 1 { // the one segment that was active
		t.Fatalf("%d objects were put", n)
	}
}

// lastSegment is the name of the newest segment file.
func (r *rig) lastSegment() (last string) {
	r.t.Helper()
	list, err := r.disk.FS(1).List(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name, ".seg") && e.Name > last {
			last = e.Name
		}
	}
	return last
}
