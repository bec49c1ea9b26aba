package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"varve/core"
	"varve/faultfs"
)

// worldsToOpen are images whose opens differ: by footer, by sidecar, by scan, with a rescue, with
// things to remove and to move aside.
func worldsToOpen(t *testing.T) map[string]image {
	sealed := rolled(t)
	names := segments(sealed)
	open := crashed(t, tableConfig(), 6, 20)
	return map[string]image{
		"sealed":    sealed,
		"crashed":   open,
		"sidecar":   opened(t, open),
		"one slot":  sealed.without("super.0"),
		"leftovers": sealed.with(segName(0, 1, 9), sealed.get(names[0]).data).with(segName(6, 1, 8), nil).with("super.0.tmp", nil),
	}
}

const recordsToOpen = 6

// failEach runs try for each call of a class that an open makes, that call failing. It stops once
// the fault meets no call any more and returns how many calls it struck.
func failEach(t *testing.T, img image, op faultfs.Op, f faultfs.Fault, try func(t *testing.T, r *rig)) int {
	t.Helper()
	for skip := 0; ; skip++ {
		r := newRig(t)
		r.restore(img)
		r.disk.Arm(op, f, skip, "")
		r.start(tableConfig())
		if r.disk.Armed() > 0 {
			return skip
		}
		t.Run(fmt.Sprintf("%v/%d", op, skip), func(t *testing.T) {
			r.t = t
			try(t, r)
			if v := r.disk.Violation(); v != "" {
				t.Error(v)
			}
		})
	}
}

// TestReadErrorDuringOpen: an I/O error is never taken for damage or for an end. The open fails and
// changes no segment; one that fails before it claimed its epoch changes nothing at all. What is
// derived may fail to be read: the open does without. Trying again succeeds.
func TestReadErrorDuringOpen(t *testing.T) {
	for name, img := range worldsToOpen(t) {
		t.Run(name, func(t *testing.T) {
			struck := 0
			for _, op := range []faultfs.Op{faultfs.OpList, faultfs.OpOpen, faultfs.OpRead, faultfs.OpSize} {
				struck += failEach(t, img, op, faultfs.D14ReadOnce, func(t *testing.T, r *rig) {
					claimed := writes(r.disk) > 0
					switch r.log.Phase() {
					case core.Ready:
						if !claimed || r.log.Marks().Has(core.MarkTornTail) {
							t.Errorf("ready after an I/O error; claimed %v", claimed)
						}
						r.wantRecords(0, recordsToOpen)
					case core.Failed:
						r.wantMarks(core.MarkOpenIOError)
						var e *core.IOError
						if !errors.As(r.log.Err(), &e) || !errors.Is(e, faultfs.ErrIO) || e.Effect == "" {
							t.Errorf("error %v", r.log.Err())
						}
						if !claimed {
							wantSame(t, img, imageOf(r))
						}
						r.wantUnchanged(img, nil, nil)
					default:
						t.Errorf("phase %v", r.log.Phase())
					}
					r.again()
				})
			}
			if struck < 4 {
				t.Errorf("only %d calls were struck", struck)
			}
		})
	}
}

// again starts another life, which must open and hold every record, in this process image and after
// a power loss.
func (r *rig) again() {
	r.t.Helper()
	r.disk.Heal()
	r.kill()
	r.open(tableConfig())
	r.wantRecords(0, recordsToOpen)
	r.power()
	r.open(tableConfig())
	r.wantRecords(0, recordsToOpen)
}

func wantSame(t *testing.T, before, after image) {
	t.Helper()
	if len(before) != len(after) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
	for _, f := range before {
		if g := after.get(f.name); g == nil || string(g.data) != string(f.data) {
			t.Errorf("%s was changed", f.name)
		}
	}
}

// TestUnreadableSectorDuringOpen: a segment that cannot be read stays an error until it can.
func TestUnreadableSectorDuringOpen(t *testing.T) {
	img := crashed(t, tableConfig(), recordsToOpen, 20)
	r := newRig(t)
	r.restore(img)
	for range 3 {
		r.disk.Arm(faultfs.OpRead, faultfs.D14ReadBad, 0, ".seg")
		r.start(tableConfig())
		r.wantMarks(core.MarkOpenIOError)
		if r.log.Phase() != core.Failed || writes(r.disk) != 0 {
			t.Fatalf("phase %v, calls %s", r.log.Phase(), calls(r))
		}
		r.kill()
	}
}

// TestNoSpaceDuringOpen: no space at each call. Where nothing was synced yet the open waits, serves
// what is proven, and goes on by itself; after a sync only a new open may.
func TestNoSpaceDuringOpen(t *testing.T) {
	for name, img := range worldsToOpen(t) {
		t.Run(name, func(t *testing.T) {
			waited, failed := 0, 0
			for _, op := range []faultfs.Op{
				faultfs.OpCreate, faultfs.OpWrite, faultfs.OpRename, faultfs.OpSync,
				faultfs.OpSyncDir, faultfs.OpMkdir,
			} {
				failEach(t, img, op, faultfs.D13NoSpace, func(t *testing.T, r *rig) {
					switch r.log.Phase() {
					case core.Recovering:
						waited++
						r.wantMarks(core.MarkOpenNoSpace)
						r.wantProven()
						if _, err := r.log.Append(r.now, ref(batchOf(9))); !errors.Is(err, core.ErrNoSpace) {
							t.Errorf("an append gets %v", err)
						}
						r.pass(2_000_000_000)
						if r.log.Phase() != core.Ready {
							t.Errorf("space is back; phase %v: %v", r.log.Phase(), r.log.Err())
						} else {
							r.wantRecords(0, recordsToOpen)
						}
					case core.Ready, core.Poisoned: // what followed the open failed
						r.wantRecords(0, recordsToOpen)
					case core.Failed:
						failed++
						if op != faultfs.OpSync && op != faultfs.OpSyncDir {
							t.Errorf("failed: %v", r.log.Err())
						}
					default:
						t.Errorf("phase %v", r.log.Phase())
					}
					r.again()
				})
			}
			if waited == 0 || failed == 0 {
				t.Errorf("waited %d times, failed %d times", waited, failed)
			}
		})
	}
}

func ref(b core.Batch) *core.Batch { return &b }

// wantProven wants the records that are served to be the first ones, and not too few.
func (r *rig) wantProven() {
	r.t.Helper()
	got := r.read(0)
	if len(got) < recordsToOpen-1 {
		r.t.Errorf("%d records are served", len(got))
	}
	for i, v := range got {
		if v != uint64(i) {
			r.t.Errorf("record %d is %d", i, v)
		}
	}
}

// TestOpenOnAFullDisk: not a byte is free; what is proven is served, nothing is lost, and an open that
// has something to rescue ends by itself once there is room. The others end at once.
func TestOpenOnAFullDisk(t *testing.T) {
	for name, img := range worldsToOpen(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.restore(img)
			r.disk.SetCapacity(r.disk.Used())
			r.start(tableConfig())
			for range 5 {
				if len(r.log.Plan().Rescues) == 0 {
					break
				}
				if r.log.Phase() != core.Recovering {
					t.Fatalf("phase %v: %v", r.log.Phase(), r.log.Err())
				}
				r.wantProven()
				r.pass(1_500_000_000)
			}
			if r.log.Phase() == core.Recovering {
				var gone []string
				if name == "one slot" { // the save that claims the epoch replaced no file, which would have given space back
					gone = []string{"spare"}
				}
				r.wantUnchanged(img, gone, nil)
			}
			r.disk.SetCapacity(0)
			r.pass(1_500_000_000)
			if r.log.Phase() != core.Ready {
				t.Fatalf("phase %v: %v", r.log.Phase(), r.log.Err())
			}
			r.put(recordsToOpen, recordsToOpen+1, 20)
			r.wantRecords(0, recordsToOpen+1)
		})
	}
}

// TestNewLogFaults: each call of a creation fails; nothing is left that hinders the next one.
func TestNewLogFaults(t *testing.T) {
	for _, op := range []faultfs.Op{
		faultfs.OpMkdir, faultfs.OpCreate, faultfs.OpWrite, faultfs.OpSync, faultfs.OpRename,
		faultfs.OpSyncDir, faultfs.OpList,
	} {
		for _, f := range []faultfs.Fault{faultfs.D13NoSpace, faultfs.D15Error, faultfs.D17Clean, faultfs.D22DirSync, faultfs.D14ReadOnce} {
			if !faultfs.CallFaults(op).Has(f) {
				continue
			}
			for skip := 0; ; skip++ {
				r := newRig(t)
				r.disk.Arm(op, f, skip, "")
				r.start(tableConfig())
				if r.disk.Armed() > 0 {
					break
				}
				spare := f == faultfs.D13NoSpace && (op == faultfs.OpCreate || op == faultfs.OpWrite) || op == faultfs.OpCreate && skip == 1
				if p := r.log.Phase(); p == core.Ready && !spare {
					t.Errorf("%v %v %d: ready in spite of it", op, f, skip)
				}
				r.power()
				r.start(tableConfig())
				if r.log.Phase() == core.Failed && strings.Contains(r.log.Err().Error(), "no superblock slot") {
					t.Errorf("%v %v %d: %v", op, f, skip, r.log.Err())
					continue
				}
				if r.log.Phase() != core.Ready {
					t.Errorf("%v %v %d: the next open ends in %v: %v", op, f, skip, r.log.Phase(), r.log.Err())
					continue
				}
				r.put(0, 2, 20)
				r.power()
				r.open(tableConfig())
				r.wantRecords(0, 2)
			}
		}
	}
}
