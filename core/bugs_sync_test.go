package core_test

import (
	"errors"
	"strings"
	"testing"

	"varve/core"
	"varve/faultfs"
	"varve/tiers/disk"
)

// TestFS1FailedSyncIsNeverRetried: a sync fails once, the kernel drops the dirty pages, the next sync
// of the file would succeed. The log is poisoned until it is opened again: no append is taken, reads
// go on, and after a power loss all that was acked is there.
func TestFS1FailedSyncIsNeverRetried(t *testing.T) {
	for _, fault := range []faultfs.Fault{faultfs.D17Clean, faultfs.D17Revert, faultfs.D17Next} {
		for _, end := range []string{"kill", "pressure", "power"} {
			t.Run(fault.String()+"/"+end, func(t *testing.T) {
				r, cfg := ready(t, 3, nil)
				r.disk.FailNext(faultfs.OpSync, fault)
				r.append(3)
				r.pump()
				if fault == faultfs.D17Next { // this one succeeds; the next one reports
					r.append(4)
					r.pump()
				}
				syncs := r.disk.Counts().Calls[faultfs.OpSync]
				for range 5 {
					if _, err := r.log.Append(r.now, ref(batchOf(9))); !errors.Is(err, core.ErrPoisoned) {
						t.Fatalf("an append gets %v", err)
					}
					r.pass(1e9)
				}
				if n := r.disk.Counts().Calls[faultfs.OpSync]; n != syncs {
					t.Errorf("%d more syncs after the one that failed", n-syncs)
				}
				if !r.log.Stats().Poisoned || r.log.Err() == nil {
					t.Error("it is not told")
				}
				r.wantRecords(0, int(r.log.Committed()))
				r.wantAfterPoison(cfg, end, true)
			})
		}
	}
}

// TestFS8EverySyncThatFailsIsTold: the sync of a seal, of the superblock at the end of a close, of an
// index and of its name fails once. Close says so, a segment whose seal failed is not sealed, and
// the next open has everything.
func TestFS8EverySyncThatFailsIsTold(t *testing.T) {
	cfg := tableConfig()
	for _, tt := range []struct {
		name     string
		op       faultfs.Op
		fault    faultfs.Fault
		suffixes []string
		index    bool // while the index of an earlier life's segment is derived
	}{
		{"seal", faultfs.OpSync, faultfs.D17Clean, []string{".seg"}, false},
		{"superblock", faultfs.OpSync, faultfs.D17Clean, []string{"super.0", "super.1"}, false},
		{"index", faultfs.OpSync, faultfs.D17Clean, []string{".idx.tmp"}, true},
		{"name of the index", faultfs.OpSyncDir, faultfs.D22DirSync, []string{""}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := ready(t, 3, nil)
			r.pass(cfg.IdleSave)
			r.kill() // without a footer: the next life owes an index
			r.recover(cfg)
			if !tt.index {
				r.pump()
				r.put(3, 4, 60)
			}
			for _, suffix := range tt.suffixes {
				r.disk.Arm(tt.op, tt.fault, 0, suffix)
			}
			r.pump()
			r.log.Close(r.now)
			r.pump()
			if r.disk.Armed() == len(tt.suffixes) {
				t.Fatal("the sync never came")
			}
			if r.log.Phase() != core.Closed || r.log.Err() == nil || r.log.Marks().Has(core.MarkCloseClean) {
				t.Fatalf("close ends in %v: %v", r.log.Phase(), r.log.Err())
			}
			r.log.FillView(&r.view)
			if x := r.view.Extents[len(r.view.Extents)-1]; tt.name == "seal" && (r.log.Stats().Rolls != 0 || x.End != core.EndNone) {
				t.Errorf("the segment counts as sealed, its end is %d", x.End)
			}
			acked := int(r.log.Committed())
			r.disk.Heal()
			r.power()
			r.open(cfg)
			r.wantRecords(0, acked)
		})
	}
}

// story is a life of every call that names, moves or cuts files: creation, commits, rolls, a trim, and
// maybe a close. It ends early where the process dies, and returns what was acked and where Start was.
func (r *rig) story(cfg core.Config, close bool) (acked int, start core.Offset) {
	r.t.Helper()
	r.start(cfg)
	if r.log.Phase() != core.Ready {
		return 0, 0
	}
	acked = int(r.log.Committed())
	note := func() bool {
		if !r.disk.FS(0).Dead() {
			acked, start = max(acked, int(r.log.Committed())), max(start, r.log.Start())
		}
		return r.log.Phase() == core.Ready
	}
	put := func(count int) bool {
		for range count {
			b := batchOf(int(r.log.End()))
			if _, err := r.log.Append(r.now, &b); err != nil {
				return false
			}
			r.pump()
			if !note() {
				return false
			}
		}
		return true
	}
	roll := func() bool { _ = r.log.Roll(r.now); r.pump(); return note() }
	trim := func(to core.Offset) bool { _ = r.log.Trim(r.now, to); r.pump(); return note() }
	if put(2) && roll() && put(2) && roll() && trim(r.log.End()-1) && put(1) {
		r.pass(cfg.IdleSave)
		if note() && close {
			r.log.Close(r.now)
			r.pump()
		}
	}
	return acked, start
}

// directoryCrashes runs the story over two lives, the second of which recovers and rescues, and lets
// the process die at each call, and after that lose what was not synced, in many ways.
func directoryCrashes(t *testing.T, faults faultfs.FaultSet, seeds uint64, end func(r *rig, draw *faultfs.Rand), check func(r *rig, call int64)) {
	t.Helper()
	cfg := tableConfig()
	cfg.Preallocate, cfg.PrepareBytes = true, 1024
	for call := int64(0); ; call++ {
		for seed := range seeds {
			r := newRig(t)
			r.disk.SetFaults(faults)
			acked, start := 0, core.Offset(0)
			fs := r.disk.FS(0)
			fs.SetCallBudget(call, seed%2 == 1)
			dead := false
			left := call
			for life := 0; life < 2 && !dead; life++ {
				a, s := r.story(cfg, life == 1)
				acked, start, dead = max(acked, a), max(start, s), fs.Dead()
				if left -= int64(fs.Calls()); !dead {
					r.kill()
					fs.SetCallBudget(left, seed%2 == 1)
				}
			}
			if !dead {
				if call < 80 {
					t.Fatalf("the story has only %d calls", call)
				}
				return
			}
			r.kill()
			var draw faultfs.Rand
			draw.Seed(uint64(call)*8 + seed)
			end(r, &draw)
			r.open(cfg)
			if got := int(r.log.End()); got < acked || r.log.Start() < start && start > 0 {
				t.Fatalf("call %d, seed %d: end %d, start %d; acked %d, start %d", call, seed, got, r.log.Start(), acked, start)
			}
			r.wantRecords(int(r.log.Start()), int(r.log.End()))
			check(r, call)
			r.put(int(r.log.End()), int(r.log.End())+1, 20)
			r.close()
			if v := r.disk.Violation(); v != "" {
				t.Fatalf("call %d: %s", call, v)
			}
		}
	}
}

func powerLoss(r *rig, draw *faultfs.Rand) {
	r.disk.PowerLoss(draw, true)
	r.store.Reset(r.disk.FS(0))
}

// TestDF3NamesLostAtEveryCall: power fails at every call of create, roll, seal, rename, trim, remove
// and close, and any subset of the names that no directory sync covered is undone, renames by halves
// too. What was acked is there (DF-1: the first records of a new segment; DF-2: after a roll, and a
// rename that is undone leaves no second superblock).
func TestDF3NamesLostAtEveryCall(t *testing.T) {
	directoryCrashes(t, faultfs.Set(faultfs.D5DirOps, faultfs.D5RenameHalf, faultfs.D5Parent, faultfs.D3Size), 3, powerLoss, func(*rig, int64) {})
}

// TestDF6ReplacedOrNotAtEveryCall: the process dies at each call, those that replace one file by
// another among them: old or new, never neither, and nothing unfinished is left.
func TestDF6ReplacedOrNotAtEveryCall(t *testing.T) {
	directoryCrashes(t, 0, 2, func(*rig, *faultfs.Rand) {}, func(r *rig, call int64) {
		for _, f := range r.files() {
			if strings.HasSuffix(f.name, ".tmp") {
				r.t.Fatalf("call %d: %s is left", call, f.name)
			}
		}
	})
}

// TestDF1FirstAckInANewFile: a segment is made, a record in it acked, and power fails with every name
// lost that was not synced.
func TestDF1FirstAckInANewFile(t *testing.T) {
	cfg := tableConfig()
	for seed := range uint64(8) {
		r := newRig(t)
		r.disk.SetFaults(faultfs.Set(faultfs.D5DirOps))
		var draw faultfs.Rand
		draw.Seed(seed)
		r.open(cfg)
		for i := range 5 {
			r.put(i, i+1, 20) // each in a file of its own, made for it
			if len(r.acked) != 1 || r.acked[0].Err != nil {
				t.Fatalf("outcomes %v", r.acked)
			}
			r.kill()
			powerLoss(r, &draw)
			r.open(cfg)
			r.wantRecords(0, i+1)
		}
	}
}

// TestDF2RenameUndoneAfterARoll: a roll, an acked record, and a power loss that undoes renames which
// no directory sync covered: the old temporary name is there again. It is adopted or removed, never
// both, and nothing is lost.
func TestDF2RenameUndoneAfterARoll(t *testing.T) {
	cfg := tableConfig()
	for _, unsynced := range []bool{true, false} {
		for seed := range uint64(20) {
			r := newRig(t)
			r.disk.SetFaults(faultfs.Set(faultfs.D5DirOps, faultfs.D5RenameHalf))
			r.open(cfg)
			r.put(0, 3, 20)
			r.kill()
			if unsynced { // die between the rename of a rescue and its directory sync
				r.disk.Arm(faultfs.OpSyncDir, faultfs.D22DirSync, 0, "")
				r.start(cfg)
				r.kill()
			} else {
				r.open(cfg)
				_ = r.log.Roll(r.now)
				r.pump()
				r.put(3, 4, 20)
				r.kill()
			}
			want := 3
			if !unsynced {
				want = 4
			}
			var draw faultfs.Rand
			draw.Seed(seed)
			powerLoss(r, &draw)
			r.disk.Heal()
			r.open(cfg)
			r.wantRecords(0, want)
			seen := map[string]bool{}
			for _, f := range r.files() {
				stem := strings.TrimSuffix(f.name, ".tmp")
				if stem != f.name || seen[stem] {
					t.Fatalf("seed %d: %s is left", seed, f.name)
				}
				seen[stem] = true
			}
		}
	}
}

// unsyncable is a file system that cannot sync directories, or files.
type unsyncable struct {
	disk.FS
	dirs, files error
}

type unsyncableFile struct {
	disk.File
	err error
}

func (u unsyncable) SyncDir(dir string) error {
	if u.dirs != nil {
		return u.dirs
	}
	return u.FS.SyncDir(dir)
}

func (u unsyncable) Open(name string, mode disk.Mode) (disk.File, error) {
	f, err := u.FS.Open(name, mode)
	if err != nil || u.files == nil {
		return f, err
	}
	return unsyncableFile{f, u.files}, nil
}

func (f unsyncableFile) Sync() error { return f.err }

// TestFS6SyncUnsupported: the file system answers EINVAL or ENOTSUP to every sync of a directory, or of
// a file. A new log is not made and an old one not opened; the error names the call and the cause.
// There is no way to run without.
func TestFS6SyncUnsupported(t *testing.T) {
	cause := errors.New("sync: invalid argument")
	for _, mode := range allModes {
		cfg := tableConfig()
		cfg.Sync = mode
		for _, img := range []image{nil, rolled(t), crashed(t, cfg, 3, 20)} {
			for _, u := range []unsyncable{{dirs: cause}, {files: cause}} {
				r := newRig(t)
				if img != nil {
					r.restore(img)
				}
				u.FS = r.disk.FS(0)
				r.store.Reset(u)
				r.start(cfg)
				var e *core.IOError
				if r.log.Phase() != core.Failed || !errors.As(r.log.Err(), &e) || !errors.Is(e, cause) || e.Effect == "" {
					t.Errorf("%v: %v, %v", mode, r.log.Phase(), r.log.Err())
				}
				r.kill()
				r.open(cfg) // on a file system that can
				if img != nil {
					r.wantRecords(0, int(r.log.End()))
				}
			}
		}
	}
}
