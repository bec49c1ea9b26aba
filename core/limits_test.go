package core_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// superOf decodes a superblock slot of saved files.
func superOf(t *testing.T, files []savedFile, slot int) *segment.Superblock {
	t.Helper()
	for _, f := range files {
		if f.name == fmt.Sprintf("super.%d", slot) {
			s := new(segment.Superblock)
			if err := segment.ReadSuper(f.data, s); err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatal("no such slot")
	return nil
}

// setSupers encodes a superblock into both slots.
func setSupers(t *testing.T, files []savedFile, s *segment.Superblock) {
	t.Helper()
	for i := range files {
		if strings.HasPrefix(files[i].name, "super.") {
			b, err := segment.AppendSuper(nil, s)
			if err != nil {
				t.Fatal(err)
			}
			files[i].data = b
			s.Sequence++
		}
	}
}

func segmentsOf(files []savedFile) []int {
	var at []int
	for i := range files {
		if strings.HasSuffix(files[i].name, ".seg") {
			at = append(at, i)
		}
	}
	return at
}

// oneLife returns the files of a log of n records.
func oneLife(t *testing.T, cfg core.Config, n int) (*rig, []savedFile) {
	r := newRig(t)
	r.open(cfg)
	r.write(0, n)
	r.close()
	return r, r.files()
}

func TestUsedUpEpochsAreRefused(t *testing.T) {
	r, files := oneLife(t, smokeConfig(), 5)
	for _, epoch := range []core.Epoch{segment.EpochMax, segment.EpochMax - 1} {
		s := superOf(t, files, 0)
		s.Epoch = epoch
		setSupers(t, files, s)
		r.restore(files)
		r.start(smokeConfig())
		var refused *core.RefusedError
		if !errors.As(r.log.Err(), &refused) {
			t.Fatalf("superblock of epoch %d: phase %v, epoch %d, %v", epoch, r.log.Phase(), r.log.Epoch(), r.log.Err())
		}
		r.kill()
	}
}

func TestRepairWithoutAnyHeader(t *testing.T) {
	r, files := oneLife(t, smokeConfig(), 60)
	var kept []savedFile
	for _, f := range files {
		if strings.HasPrefix(f.name, "super.") {
			continue
		}
		if len(kept) == 0 {
			f.data[20] ^= 1
		}
		kept = append(kept, f)
	}
	r.restore(kept)
	r.open(repairConfig())
	r.wantRecords(0, 60)
}

func TestRepairNewestHeaderDamaged(t *testing.T) {
	r := newRig(t)
	for life := range 3 {
		r.open(smokeConfig())
		r.write(life*3, life*3+3)
		r.close()
	}
	files := r.files()
	var kept []savedFile
	for _, f := range files {
		if !strings.HasPrefix(f.name, "super.") {
			kept = append(kept, f)
		}
	}
	kept[len(kept)-1].data[20] ^= 1
	r.restore(kept)
	r.open(repairConfig())
	r.wantRecords(0, 9)
	if r.log.Epoch() <= 3 {
		t.Fatalf("claims epoch %d, which was used", r.log.Epoch())
	}
	r.write(9, 15)
	r.close()
	r.open(smokeConfig())
	r.wantRecords(0, 15)
}

func TestRepairDestroysNothing(t *testing.T) {
	r, files := oneLife(t, smokeConfig(), 60)
	at := segmentsOf(files)
	last := files[at[len(at)-1]]
	for i := 512; i < len(last.data); i++ {
		last.data[i] ^= 0x55
	}
	r.restore(files)
	r.start(smokeConfig())
	t.Log(r.log.Err())
	if r.log.Phase() != core.Failed {
		t.Fatal("opens")
	}
	r.kill()
	r.open(repairConfig())
	r.pump()
	r.close()
	for _, f := range r.files() {
		if strings.Contains(f.name, last.name) {
			return
		}
	}
	t.Fatalf("repair destroyed %s", last.name)
}

func TestDamageBelowStartIsNoError(t *testing.T) {
	r := newRig(t)
	r.open(smokeConfig())
	r.write(0, 10)
	if err := r.log.Trim(r.now, 6); err != nil {
		t.Fatal(err)
	}
	r.pump()
	if r.log.Start() != 6 {
		t.Fatal("start", r.log.Start())
	}
	r.close()
	files := r.files()
	seg := files[segmentsOf(files)[0]]
	seg.data[3*512+115] ^= 1 // third record or so
	cfg := smokeConfig()
	cfg.VerifyAllOnOpen = true
	r.restore(files)
	r.open(cfg)
	r.wantRecords(6, 10)
	r.close()
	r.open(cfg)
	r.wantRecords(6, 10)
}

func TestMissingBelowStartIsNoError(t *testing.T) {
	r := newRig(t)
	r.open(smokeConfig())
	r.write(0, 10)
	if err := r.log.Trim(r.now, 10); err != nil {
		t.Fatal(err)
	}
	r.pump()
	r.kill()
	files := r.files()
	for _, i := range segmentsOf(files) {
		t.Log(files[i].name)
	}
	at := segmentsOf(files)[0]
	files = append(files[:at], files[at+1:]...)
	r.restore(files)
	r.open(smokeConfig())
	if r.log.Start() != 10 || r.log.End() != 10 {
		t.Fatal(r.log.Start(), r.log.End())
	}
}

func TestCloseLeavesNoAppendWithoutOutcome(t *testing.T) {
	r := newRig(t)
	r.open(smokeConfig())
	r.write(0, 5)
	if err := r.log.Roll(r.now); err != nil {
		t.Fatal(err)
	}
	r.pump()
	// The next segment cannot be created at once: the append after it waits.
	r.disk.FailNext(faultfs.OpCreate, faultfs.D15Error)
	r.append(5)
	r.finish(r.issue(core.Tail))
	r.append(5)
	if err := r.log.Trim(r.now, 3); err != nil {
		t.Fatal(err)
	}
	for {
		e := r.issue(core.Hot)
		if _, ok := e.(*core.SaveSuper); ok {
			r.log.Close(r.now)
			r.disk.FailNext(faultfs.OpWrite, faultfs.D15Error)
			r.finish(e)
			break
		}
		r.finish(e)
	}
	r.pump()
	r.pass(1e9)
	if r.log.Phase() != core.Closed {
		t.Fatalf("phase %v", r.log.Phase())
	}
	if len(r.acked) != 7 {
		t.Fatalf("%d outcomes, want 7", len(r.acked))
	}
}

// What a configuration may hold works, up to the greatest value; what would overflow is refused.
func TestGreatestConfig(t *testing.T) {
	greatest := []func(*core.Config, int64){
		func(c *core.Config, v int64) { c.SyncInterval = v },
		func(c *core.Config, v int64) { c.SegmentAge = v },
		func(c *core.Config, v int64) { c.RetentionCheckInterval = v },
		func(c *core.Config, v int64) { c.PendingBytes = v },
		func(c *core.Config, v int64) { c.IdleSave = v },
		func(c *core.Config, v int64) { c.PrepareBytes = v },
		func(c *core.Config, v int64) { c.RetentionBytes, c.RetentionAge = v, v },
	}
	for i, set := range greatest {
		for _, v := range []int64{math.MaxInt64, 1 << 62, 1 << 60, 1 << 40} {
			cfg := smokeConfig()
			set(&cfg, v)
			if cfg.Validate() != nil {
				continue
			}
			for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic} {
				cfg.Sync = mode
				r := newRig(t)
				r.open(cfg)
				for k := range 60 {
					r.append(k)
					r.pump()
					r.pass(1e6)
				}
				if r.log.Committed() != 60 || r.log.Marks().Has(core.MarkRollAge) {
					t.Fatalf("value %d of case %d: committed %d", v, i, r.log.Committed())
				}
			}
		}
	}
}

func TestRetentionKeepsDamage(t *testing.T) {
	cfg := smokeConfig()
	r, files := oneLife(t, cfg, 60)
	seg := files[segmentsOf(files)[0]]
	seg.data[512+115] ^= 1
	r.restore(files)
	cfg.VerifyAllOnOpen, cfg.AllowDamaged = true, true
	cfg.RetentionBytes = 1 << 30
	r.open(cfg)
	r.pass(cfg.RetentionCheckInterval + 1)
	r.pass(cfg.RetentionCheckInterval + 1)
	if r.log.Start() != 0 {
		t.Fatalf("start moved to %d, with no limit reached", r.log.Start())
	}
}
