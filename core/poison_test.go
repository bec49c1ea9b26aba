package core_test

import (
	"errors"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// TestPoison: whichever sync fails, the log is never written again, what was acked is there for
// readers at once, and after a new open, with or without a power loss in between.
func TestPoison(t *testing.T) {
	periodic := func(c *core.Config) { c.Sync = segment.Periodic }
	roll := func(r *rig) { _ = r.log.Roll(r.now); r.pump() }
	tests := []struct {
		name    string
		cfg     func(*core.Config)
		op      faultfs.Op
		suffix  string
		before  int // records acked before
		do      func(r *rig)
		mark    core.Mark
		pending error // what the append in do ends with; nil: it is acked, or there is none
	}{
		{
			name: "commit", op: faultfs.OpSync, suffix: ".seg", before: 3, do: func(r *rig) { r.append(3); r.pump() },
			mark: core.MarkPoisonSync, pending: core.ErrUnknown,
		},
		{
			name: "new segment, file", op: faultfs.OpSync, suffix: ".seg", do: func(r *rig) { r.append(0); r.pump() },
			mark: core.MarkPoisonDir, pending: core.ErrPoisoned,
		},
		{
			name: "new segment, directory", op: faultfs.OpSyncDir, do: func(r *rig) { r.append(0); r.pump() },
			mark: core.MarkPoisonDir, pending: core.ErrPoisoned,
		},
		{name: "seal", op: faultfs.OpSync, suffix: ".seg", before: 3, do: roll, mark: core.MarkPoisonSync},
		{
			name: "superblock", op: faultfs.OpSync, suffix: "super.0", before: 3,
			do: func(r *rig) { r.pass(1 << 30) }, mark: core.MarkPoisonDir,
		},
		{
			name: "timer", cfg: periodic, op: faultfs.OpSync, suffix: ".seg", before: 3,
			do: func(r *rig) { r.pass(1 << 30) }, mark: core.MarkPoisonSync,
		},
		{
			name: "trim under periodic", cfg: periodic, op: faultfs.OpSync, suffix: ".seg", before: 3,
			do: func(r *rig) { _ = r.log.Trim(r.now, 2); r.pump() }, mark: core.MarkPoisonSync,
		},
		{
			name: "roll-back", op: faultfs.OpSync, suffix: ".seg", before: 3,
			do: func(r *rig) {
				r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 0, ".seg")
				r.append(3)
				r.pump()
			}, mark: core.MarkRollbackFailed, pending: core.ErrUnknown,
		},
		{
			name: "removal", cfg: func(c *core.Config) { c.SegmentBytes = 2048 }, op: faultfs.OpSyncDir, before: 6,
			do: func(r *rig) { _ = r.log.Trim(r.now, 5); r.pump() }, mark: core.MarkPoisonDir,
		},
	}
	for _, tt := range tests {
		for _, fault := range []faultfs.Fault{
			faultfs.D17Clean, faultfs.D17Revert, faultfs.D17ReadOnly, faultfs.D13NoSpace,
			faultfs.D12Applied, faultfs.D22DirSync,
		} {
			if !faultfs.CallFaults(tt.op).Has(fault) {
				continue
			}
			for _, end := range []string{"kill", "pressure", "power"} {
				t.Run(tt.name+"/"+fault.String()+"/"+end, func(t *testing.T) {
					cfg := tableConfig()
					if tt.cfg != nil {
						tt.cfg(&cfg)
					}
					r := newRig(t)
					r.open(cfg)
					r.put(0, tt.before, 20)
					r.disk.Arm(tt.op, fault, 0, tt.suffix)
					n := len(r.acked)
					tt.do(r)
					r.wantPoisoned(tt.mark, n, tt.pending)
					r.wantAfterPoison(cfg, end, errors.Is(tt.pending, core.ErrUnknown))
				})
			}
		}
	}
}

// wantPoisoned wants the log poisoned: nothing is given out any more, reads go on.
func (r *rig) wantPoisoned(mark core.Mark, outcomes int, pending error) {
	r.t.Helper()
	if r.log.Phase() != core.Poisoned || r.disk.Armed() > 0 {
		r.t.Fatalf("phase %v, armed %d", r.log.Phase(), r.disk.Armed())
	}
	r.wantMarks(mark)
	if pending != nil && (len(r.acked) != outcomes+1 || !errors.Is(r.acked[outcomes].Err, pending)) {
		r.t.Errorf("outcomes %v, want one more: %v", r.acked[outcomes:], pending)
	}
	if _, err := r.log.Append(r.now, ref(batchOf(9))); !errors.Is(err, core.ErrPoisoned) {
		r.t.Errorf("an append gets %v", err)
	}
	before := writes(r.disk)
	r.pass(1 << 40)
	if writes(r.disk) != before {
		r.t.Error("a poisoned log writes")
	}
	if r.log.Stats().SyncFailures == 0 || r.log.Err() == nil {
		r.t.Error("the failure is not counted or not told")
	}
	got, err := r.readUntil(r.log.Start())
	var gone *core.CorruptError
	if errors.As(err, &gone) && gone.Offset >= r.log.Frontier() && r.disk.Marks().Has(faultfs.D17Revert) {
		return // under periodic: acked, not durable, and the kernel took it back
	}
	if err != nil {
		r.t.Errorf("reading goes wrong: %v", err)
	}
	if len(got) != int(r.log.Committed()-r.log.Start()) {
		r.t.Errorf("%d records, committed [%d, %d)", len(got), r.log.Start(), r.log.Committed())
	}
}

// wantAfterPoison opens again and wants what was acked: rescued, not taken from a page cache that
// the device never saw. An append of unknown outcome may be there, and stays so.
func (r *rig) wantAfterPoison(cfg core.Config, end string, unknown bool) {
	r.t.Helper()
	acked, frontier := int(r.log.Committed()), int(r.log.Frontier())
	start := int(r.log.Start())
	var draw faultfs.Rand
	draw.Seed(3)
	r.disk.Heal()
	must := acked
	if cfg.Sync != segment.OnCommit {
		must = frontier // after a failed sync nothing more is promised, by any end
	}
	switch end {
	case "pressure": // pages that a failed sync left clean are dropped, with no crash
		r.kill()
		for range 8 {
			r.disk.MemoryPressure(&draw)
		}
	case "power":
		r.power()
	default:
		r.kill()
	}
	r.open(cfg)
	n := int(r.log.Committed())
	if n < must || n > acked && !(unknown && n == acked+1) {
		r.t.Fatalf("%d records after reopen, acked %d, needed %d", n, acked, must)
	}
	r.wantRecords(max(start, int(r.log.Start())), n)
	// From now on it is durable, whatever the page cache pretended.
	r.power()
	r.open(cfg)
	r.wantRecords(int(r.log.Start()), n)
	r.put(n, n+1, 20)
}

// TestRollback: a write that fails, in part or whole, is undone before anyone hears of it. Its
// records never appear, and their offsets are given again.
func TestRollback(t *testing.T) {
	for _, fault := range []faultfs.Fault{
		faultfs.D15Error, faultfs.D12Applied, faultfs.D11Short, faultfs.D11Interrupt,
		faultfs.D13NoSpace, faultfs.D13Short,
	} {
		for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic} {
			for _, end := range []string{"go on", "kill", "power"} {
				t.Run(fault.String()+"/"+mode.String()+"/"+end, func(t *testing.T) { rollback(t, fault, mode, end) })
			}
		}
	}
}

func rollback(t *testing.T, fault faultfs.Fault, mode segment.SyncMode, end string) {
	cfg := tableConfig()
	cfg.Sync = mode
	r := newRig(t)
	r.open(cfg)
	r.put(0, 3, 600)
	r.disk.Arm(faultfs.OpWrite, fault, 0, ".seg")
	n := len(r.acked)
	first := r.append(1000)
	e := r.issue(core.Tail)
	second := r.append(1001) // gathers behind the one that fails
	r.finish(e)
	r.pump()
	r.wantMarks(core.MarkRollback)
	want := core.ErrWriteFailed
	if fault == faultfs.D13NoSpace || fault == faultfs.D13Short {
		want = core.ErrNoSpace
		r.wantMarks(core.MarkNoSpace)
	}
	if len(r.acked) != n+2 || r.acked[n].Cohort != first.Cohort || r.acked[n+1].Cohort != second.Cohort ||
		!errors.Is(r.acked[n].Err, want) || !errors.Is(r.acked[n+1].Err, want) {
		t.Fatalf("outcomes %v, want two of %v", r.acked[n:], want)
	}
	r.wantRecords(0, 3)
	switch end {
	case "kill":
		r.kill()
		r.open(cfg)
	case "power":
		r.power()
		r.open(cfg)
	default:
		r.pass(2_000_000_000) // free space is looked at again
	}
	r.wantRecords(0, 3)
	if got := r.append(3); got.First != first.First {
		t.Errorf("the next append gets offset %d, want %d again", got.First, first.First)
	}
	r.pump()
	r.put(4, 6, 600)
	r.wantRecords(0, 6)
	r.kill()
	r.open(cfg)
	r.wantRecords(0, 6)
	if v := r.disk.Violation(); v != "" {
		t.Error(v)
	}
}

// TestFailedCalls: what else can fail while a log runs, and goes on.
func TestFailedCalls(t *testing.T) {
	open := func(t *testing.T) *rig {
		r := newRig(t)
		r.open(tableConfig())
		r.put(0, 3, 20)
		return r
	}
	t.Run("create", func(t *testing.T) {
		r := newRig(t)
		r.open(tableConfig())
		r.disk.Arm(faultfs.OpCreate, faultfs.D15Error, 0, ".seg")
		r.append(0)
		r.pump()
		r.wantMarks(core.MarkCreateFailed)
		if len(r.acked) != 1 || !errors.Is(r.acked[0].Err, core.ErrWriteFailed) {
			t.Errorf("outcomes %v", r.acked)
		}
		r.pass(1 << 30)
		r.put(0, 2, 20)
		r.wantRecords(0, 2)
	})
	t.Run("footer", func(t *testing.T) {
		r := open(t)
		r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 0, ".seg")
		_ = r.log.Roll(r.now)
		r.pump()
		r.wantMarks(core.MarkSealFailed, core.MarkRollback)
		r.pass(1 << 30)
		if r.log.Stats().Rolls != 1 {
			t.Errorf("%d rolls", r.log.Stats().Rolls)
		}
		r.put(3, 5, 20)
		r.wantRecords(0, 5)
	})
	t.Run("superblock", func(t *testing.T) {
		r := open(t)
		r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 0, "super.0")
		r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 0, "super.1")
		r.pass(1 << 30)
		r.put(3, 4, 20)
		r.pass(1 << 30)
		r.wantMarks(core.MarkSuperRetry)
		r.pass(1 << 30)
		r.kill()
		r.open(tableConfig())
		r.wantRecords(0, 4)
		r.wantNoMarks(core.MarkRescue)
	})
	t.Run("clean close", func(t *testing.T) {
		r := open(t)
		r.close()
		r.open(tableConfig())
		r.wantMarks(core.MarkCleanOpen)
		r.wantNoMarks(core.MarkRescue, core.MarkTornTail, core.MarkFooterDerived)
		if p := r.log.Plan(); !p.Empty() || p.Evidence != 3 {
			t.Errorf("plan %+v", p)
		}
	})
	t.Run("removal", func(t *testing.T) {
		r := newRig(t)
		r.restore(rolled(t))
		r.open(tableConfig())
		r.disk.Arm(faultfs.OpRemove, faultfs.D15Error, 0, "")
		_ = r.log.Trim(r.now, 4)
		r.pump()
		r.wantMarks(core.MarkRemoveFailed)
		r.pass(1 << 30)
		r.wantMarks(core.MarkRemoved)
		if n := len(segments(r.files())); n != 1 {
			t.Errorf("%d segments are left", n)
		}
		r.wantRecords(4, 6)
	})
}
