package core_test

import (
	"errors"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// TestNS1NoSpaceAtEveryByte: the disk is full after every number of bytes of an append. The append fails
// for good, no byte of it is left or appears later, and what is acked once space is back survives.
func TestNS1NoSpaceAtEveryByte(t *testing.T) {
	for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic} {
		for room := int64(0); ; room++ {
			r, cfg := ready(t, 3, func(c *core.Config) { c.Sync = mode })
			r.disk.SetCapacity(r.disk.Used() + room)
			n := len(r.acked)
			b := numbered(1000, 1, 300)
			if _, err := r.log.Append(r.now, &b); err != nil {
				t.Fatal(err)
			}
			r.pump()
			if len(r.acked) != n+1 {
				t.Fatalf("room for %d bytes: outcomes %v", room, r.acked[n:])
			}
			if r.acked[n].Err == nil { // it fits
				if room < 300 {
					t.Fatalf("acked with room for %d bytes", room)
				}
				break
			}
			if !errors.Is(r.acked[n].Err, core.ErrNoSpace) {
				t.Fatalf("room for %d bytes: %v", room, r.acked[n].Err)
			}
			r.wantRecords(0, 3)
			r.disk.SetCapacity(0)
			r.pass(2e9)
			r.put(3, 6, 40)
			r.kill()
			r.open(cfg)
			r.wantRecords(0, 6)
			if room%16 == 0 {
				r.power()
				r.open(cfg)
				r.wantRecords(0, 6)
			}
		}
	}
}

// TestNS2NoSpaceAndNoWayBack: part of a batch is written, then ENOSPC, and the cut fails too. The log is
// poisoned, no other byte goes into that file, and what was acked can be read.
func TestNS2NoSpaceAndNoWayBack(t *testing.T) {
	for _, cut := range []faultfs.Fault{faultfs.D15Error, faultfs.D12Applied} {
		for _, end := range []string{"kill", "power"} {
			r, cfg := ready(t, 3, nil)
			r.disk.Arm(faultfs.OpWrite, faultfs.D13Short, 0, ".seg")
			r.disk.Arm(faultfs.OpTruncate, cut, 0, ".seg")
			n := len(r.acked)
			b := numbered(3, 1, 900)
			if _, err := r.log.Append(r.now, &b); err != nil {
				t.Fatal(err)
			}
			r.pump()
			r.wantPoisonedByWrite(n)
			r.wantRecords(0, 3)
			r.wantAfterPoison(cfg, end, true)
		}
	}
}

// wantPoisonedByWrite wants the log poisoned with one append of unknown outcome, and no other write.
func (r *rig) wantPoisonedByWrite(outcomes int) {
	r.t.Helper()
	if r.log.Phase() != core.Poisoned || len(r.acked) != outcomes+1 || !errors.Is(r.acked[outcomes].Err, core.ErrUnknown) {
		r.t.Fatalf("phase %v, outcomes %v", r.log.Phase(), r.acked[outcomes:])
	}
	r.wantMarks(core.MarkRollbackFailed)
	before := writes(r.disk)
	for range 3 {
		if _, err := r.log.Append(r.now, ref(batchOf(9))); !errors.Is(err, core.ErrPoisoned) {
			r.t.Fatalf("an append gets %v", err)
		}
		r.pass(2e9)
	}
	if writes(r.disk) != before {
		r.t.Error("a poisoned log writes")
	}
}

// TestNS3FullDiskAndARestart: not a byte is free. The log that runs serves reads and lets go by Trim and by
// retention, which gives space back, and appends go on. One that is opened on a full disk changes
// nothing, serves what is proven, and ends its open once there is room.
func TestNS3FullDiskAndARestart(t *testing.T) {
	for _, retention := range []bool{false, true} {
		r, cfg := fortyRecords(t, retention)
		if retention { // later than at the open
			cfg.RetentionBytes, cfg.RetentionAge = core.Unlimited, 2*hour
		}
		r.kill()
		r.open(cfg)
		r.disk.SetCapacity(r.disk.Used())
		n := len(r.acked)
		r.append(40)
		r.pump()
		if !errors.Is(r.acked[n].Err, core.ErrNoSpace) {
			t.Fatalf("an append on a full disk: %v", r.acked[n].Err)
		}
		r.wantRecords(0, 40)
		if !retention {
			if err := r.log.Trim(r.now, 20); err != nil {
				t.Fatal(err)
			}
		}
		r.pass(hour + cfg.RetentionCheckInterval)
		r.pass(2e9)
		start := int(r.log.Start())
		if start < 15 {
			t.Fatalf("start %d", start)
		}
		r.put(40, 41, 300) // there is room again
		r.wantRecords(start, 41)
		r.kill()
		img := imageOf(r)
		r.restore(img)
		r.disk.SetCapacity(r.disk.Used())
		r.start(cfg)
		if r.log.Phase() != core.Recovering {
			t.Fatalf("an open on a full disk: %v, %v", r.log.Phase(), r.log.Err())
		}
		got := r.read(core.Offset(start))
		if len(got) < 40-start || got[0] != uint64(start) {
			t.Errorf("%d records are served", len(got))
		}
		r.wantUnchanged(img, nil, nil)
		r.disk.SetCapacity(0)
		r.pass(2e9)
		r.wantRecords(start, 41)
		r.put(41, 43, 300)
	}
}

// fortyRecords returns a log of some segments, half of them an hour older, and the configuration of
// lives to come: with retention they keep two segments.
func fortyRecords(t *testing.T, retention bool) (*rig, core.Config) {
	t.Helper()
	r := newRig(t)
	cfg := tableConfig()
	cfg.SegmentBytes = 4096
	r.open(cfg)
	r.put(0, 20, 300)
	r.now.Wall += hour
	r.put(20, 40, 300)
	if retention {
		cfg.RetentionBytes = 8192
	}
	return r, cfg
}

// TestNS3TrimAfterARestartOnAFullDisk: not a byte is free when a log is opened that has nothing to
// rescue. The open ends, and trim and retention work, again and again: the saves of the superblock take
// the blocks of the spare.
func TestNS3TrimAfterARestartOnAFullDisk(t *testing.T) {
	for _, retention := range []bool{false, true} {
		r, cfg := fortyRecords(t, retention)
		r.close()
		start := 0
		for n := 1; n == 1 || n <= 3 && !retention; n++ {
			r.disk.SetCapacity(r.disk.Used())
			r.open(cfg)
			if !retention { // which works at the open
				r.wantRecords(start, 39+n)
				if err := r.log.Trim(r.now, core.Offset(10*n)); err != nil {
					t.Fatal(err)
				}
			}
			r.pass(2e9)
			if start = int(r.log.Start()); !retention && start != 10*n || start == 0 {
				t.Fatalf("open %d: start %d", n, start)
			}
			r.put(39+n, 40+n, 100)
			r.close()
		}
		r.disk.SetCapacity(0)
		r.open(cfg)
		r.wantRecords(int(r.log.Start()), int(r.log.End()))
	}
}

// TestNS3NoSpareOnAFullDisk: without the spare such an open waits for room, and nothing is lost.
func TestNS3NoSpareOnAFullDisk(t *testing.T) {
	for _, retention := range []bool{false, true} {
		r, cfg := fortyRecords(t, retention)
		r.close()
		if err := r.disk.FS(0).Remove("spare"); err != nil {
			t.Fatal(err)
		}
		r.disk.SetCapacity(r.disk.Used())
		r.start(cfg)
		if r.log.Phase() != core.Recovering {
			t.Fatalf("an open on a full disk without a spare: %v, %v", r.log.Phase(), r.log.Err())
		}
		r.wantRecords(0, 40)
		r.disk.SetCapacity(0)
		r.pass(2e9)
		if r.log.Phase() != core.Ready || r.log.End() != 40 {
			t.Fatalf("with room: %v, end %d", r.log.Phase(), r.log.End())
		}
		r.wantRecords(int(r.log.Start()), 40)
	}
}

// TestNS5NoSpaceAtAnyCall: ENOSPC at each call that can meet it, one at a time, over a life of creations,
// commits, rolls, an index, superblocks and a trim. Reads go on, nothing is reset; appends answer
// ErrNoSpace and go on by themselves, or, after a sync that said so, once the log is opened again.
func TestNS5NoSpaceAtAnyCall(t *testing.T) {
	cfg := tableConfig()
	struck := 0
	for _, op := range []faultfs.Op{faultfs.OpCreate, faultfs.OpWrite, faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpRename, faultfs.OpTruncate} {
		for skip := 0; ; skip++ {
			r := newRig(t)
			r.restore(crashed(t, cfg, 3, 60))
			r.open(cfg) // with a rescue and an index to make
			r.disk.Arm(op, faultfs.D13NoSpace, skip, "")
			n, acked := 3, 3
			for i := 0; i < 8 && r.log.Phase() == core.Ready; i++ {
				before := len(r.acked)
				if _, err := r.log.Append(r.now, ref(batchOf(n))); err == nil {
					r.pump()
					switch err := r.acked[before].Err; {
					case err == nil:
						n, acked = n+1, acked+1
					case errors.Is(err, core.ErrNoSpace):
					case r.log.Phase() == core.Poisoned:
					default:
						t.Fatalf("%v %d: %v", op, skip, err)
					}
				} else if !errors.Is(err, core.ErrNoSpace) {
					t.Fatalf("%v %d: %v", op, skip, err)
				}
				switch i {
				case 2:
					_ = r.log.Roll(r.now)
				case 4:
					_ = r.log.Trim(r.now, 2)
				}
				r.pass(2e9)
				if got := int(r.log.Committed()); got < acked {
					t.Fatalf("%v %d: committed %d of %d", op, skip, got, acked)
				}
				r.wantRecords(int(r.log.Start()), int(r.log.Committed()))
			}
			if r.disk.Armed() > 0 {
				break
			}
			struck++
			poisoned := r.log.Phase() == core.Poisoned
			if sync := op == faultfs.OpSync || op == faultfs.OpSyncDir; poisoned != sync {
				t.Errorf("%v %d: poisoned %v: %v", op, skip, poisoned, r.log.Err())
			}
			if poisoned {
				r.kill()
				r.open(cfg)
			}
			if r.log.Start() > 2 || int(r.log.End()) < acked || int(r.log.End()) > n+1 {
				t.Fatalf("%v %d: [%d, %d), acked %d", op, skip, r.log.Start(), r.log.End(), acked)
			}
			n = int(r.log.End())
			r.pass(2e9) // it may have been the last call of all
			r.put(n, n+1, 40)
			r.wantRecords(int(r.log.Start()), n+1)
		}
	}
	if struck < 20 {
		t.Errorf("only %d calls were struck", struck)
	}
}

// TestNS8StateFilesCutByAFullDisk: every small file is cut to each of its lengths, one by one and the
// superblocks together. An open gives an error or all records; it never panics and changes no segment.
func TestNS8StateFilesCutByAFullDisk(t *testing.T) {
	cfg := tableConfig()
	img := withSidecar(t, cfg).with("lock", nil).with("super.0.tmp", rolled(t).get("super.0").data)
	index := img.derived()[0]
	for _, names := range [][]string{{"super.0"}, {"super.1"}, {"super.0.tmp"}, {index}, {"super.0", "super.1"}, {"super.0", "super.1", index}} {
		size := int64(len(img.get(names[0]).data))
		for cut := int64(0); cut < size; cut += 1 + cut/40 {
			bad := img
			for _, name := range names {
				bad = bad.cut(name, min(cut, int64(len(bad.get(name).data))))
			}
			r := newRig(t)
			r.restore(bad)
			r.start(cfg)
			var refused *core.RefusedError
			switch {
			case r.log.Phase() == core.Ready:
				r.wantRecords(0, 80)
			case len(names) == 1 || !errors.As(r.log.Err(), &refused) || writes(r.disk) > 0:
				t.Fatalf("%v cut to %d bytes: %v, %v", names, cut, r.log.Phase(), r.log.Err())
			}
			r.wantUnchanged(img, []string{"super.0.tmp"}, nil)
		}
	}
}
