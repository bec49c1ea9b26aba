package core_test

import (
	"errors"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// ready is a log of n records, in a configuration changed by edit.
func ready(t *testing.T, n int, edit func(*core.Config)) (*rig, core.Config) {
	t.Helper()
	cfg := tableConfig()
	if edit != nil {
		edit(&cfg)
	}
	r := newRig(t)
	r.open(cfg)
	r.put(0, n, 20)
	return r, cfg
}

// TestReplan: the source of a rescue goes bad between its scan and its copy. The plan is made anew
// and ends the log before it.
func TestReplan(t *testing.T) {
	img := crashed(t, tableConfig(), 3, 20)
	name := segments(img)[0]
	last := img.batches(t, name)[2]
	r := newRig(t)
	r.restore(img)
	log, err := core.Open(tableConfig(), r.now)
	if err != nil {
		t.Fatal(err)
	}
	r.log = log
	for range 4 { // list, superblock, scan, claim
		r.finish(r.issue(core.Hot))
	}
	if !r.disk.RotAt(name, last.pos+20, 1) {
		t.Fatal("no such byte")
	}
	r.pump()
	if log.Phase() != core.Ready {
		t.Fatalf("phase %v: %v", log.Phase(), log.Err())
	}
	r.wantMarks(core.MarkReplan, core.MarkTornTail)
	r.wantRecords(0, 2)
	r.wantSecondPlanEmpty(tableConfig(), 0, 2)
}

// TestSyncBesideACommit: a timer's sync claims only what ends before the first sector of a commit in
// flight, and that much is what a power loss leaves.
func TestSyncBesideACommit(t *testing.T) {
	r, cfg := ready(t, 0, func(c *core.Config) { c.Sync = segment.Periodic })
	r.put(0, 3, 600) // they end at 1224, 1936 and 2648
	r.append(3)
	commit := r.issue(core.Tail)
	r.now.Mono += cfg.SyncInterval
	sync := r.issue(core.Syncs).(*core.Sync)
	r.wantMarks(core.MarkSyncOverlap, core.MarkSyncPartial)
	if sync.End != 2 {
		t.Errorf("it claims [0, %d), want [0, 2)", sync.End)
	}
	r.finish(commit)
	r.finish(sync)
	if r.log.Frontier() != 2 || r.log.Committed() != 4 {
		t.Errorf("frontier %d, committed %d", r.log.Frontier(), r.log.Committed())
	}
	r.pass(cfg.SyncInterval)
	if r.log.Frontier() != 4 {
		t.Errorf("frontier %d after another interval", r.log.Frontier())
	}
}

// TestAcksPause: a sync that hangs must not widen the window that periodic promises.
func TestAcksPause(t *testing.T) {
	r, cfg := ready(t, 0, func(c *core.Config) { c.Sync = segment.Periodic })
	r.put(0, 1, 600)
	r.now.Mono += cfg.SyncInterval
	hung := r.issue(core.Syncs)
	r.append(1)
	commit := r.issue(core.Tail)
	r.now.Mono += 3 * cfg.SyncInterval
	r.finish(commit)
	r.wantMarks(core.MarkAckPaused)
	if r.log.Committed() != 1 || len(r.acked) != 1 {
		t.Errorf("committed %d, %d outcomes while a sync hangs", r.log.Committed(), len(r.acked))
	}
	r.append(2)
	if e := r.log.Next(r.now, core.Tail); e != nil {
		t.Errorf("%T is issued while acks pause", e)
	}
	r.finish(hung)
	r.pump()
	r.pass(cfg.SyncInterval)
	if r.log.Committed() != 3 || len(r.acked) != 3 {
		t.Errorf("committed %d, %d outcomes after the sync", r.log.Committed(), len(r.acked))
	}
}

func TestLowSpace(t *testing.T) {
	r, _ := ready(t, 0, func(c *core.Config) { c.MinFreeBytes = 10_000 })
	r.disk.SetCapacity(r.disk.Used() + 9000)
	r.put(0, 1, 20) // its Create sees how little is free
	if _, err := r.log.Append(r.now, ref(batchOf(1))); !errors.Is(err, core.ErrNoSpace) {
		t.Fatalf("an append gets %v", err)
	}
	r.wantRecords(0, 1)
	if err := r.log.Trim(r.now, 1); err != nil {
		t.Fatal(err)
	}
	r.pump()
	r.disk.SetCapacity(0)
	r.pass(1_500_000_000)
	r.wantMarks(core.MarkLowSpace, core.MarkSpaceBack)
	r.put(1, 2, 20)
}

// TestProducers: duplicates get the span that they had, in flight, acked and after a crash; what was
// rolled back is forgotten again.
func TestProducers(t *testing.T) {
	r, cfg := ready(t, 0, func(c *core.Config) { c.ProducersMax = 2 })
	send := func(id int64, epoch int16, seq int32) (core.Ticket, error) {
		b := batchOf(int(seq))
		b.Producer = core.Producer{ID: id, Epoch: epoch, Sequence: seq}
		return r.log.Append(r.now, &b)
	}
	first, err := send(7, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := send(7, 1, 0)
	if err != nil || !again.Duplicate || again.Cohort != first.Cohort || again.First != first.First {
		t.Errorf("a duplicate in flight: %+v, %v", again, err)
	}
	r.pump()
	if again, err = send(7, 1, 0); err != nil || !again.Duplicate || again.Cohort != 0 || again.End != first.End {
		t.Errorf("a duplicate of an acked batch: %+v, %v", again, err)
	}
	if _, err = send(7, 1, 2); !errors.Is(err, core.ErrSequence) {
		t.Errorf("a gap: %v", err)
	}
	if _, err = send(7, 0, 1); !errors.Is(err, core.ErrFenced) {
		t.Errorf("an old epoch: %v", err)
	}
	r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 0, ".seg")
	if _, err = send(7, 1, 1); err != nil {
		t.Fatal(err)
	}
	r.pump()
	second, err := send(7, 1, 1)
	if err != nil || second.Duplicate {
		t.Errorf("a batch that was rolled back, sent again: %+v, %v", second, err)
	}
	r.pump()
	r.wantMarks(core.MarkDuplicate, core.MarkDuplicateInFlight, core.MarkSequenceGap, core.MarkProducerFenced, core.MarkProducerUndone)
	for _, end := range []func(){r.kill, r.power, r.close} {
		end()
		r.open(cfg)
		if again, err = send(7, 1, 1); err != nil || !again.Duplicate || again.First != second.First {
			t.Errorf("a duplicate in another life: %+v, %v", again, err)
		}
	}
	for id := range int64(2) {
		if _, err = send(id, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	r.pump()
	r.wantMarks(core.MarkProducerForgotten)
}

func TestRollsAndRetention(t *testing.T) {
	t.Run("a batch larger than a segment", func(t *testing.T) {
		r, cfg := ready(t, 1, func(c *core.Config) { c.SegmentBytes = 2048 })
		r.put(1, 2, 6000)
		r.put(2, 4, 20)
		r.wantMarks(core.MarkOwnSegment)
		r.wantRecords(0, 4)
		r.kill()
		r.open(cfg)
		r.wantRecords(0, 4)
	})
	t.Run("age", func(t *testing.T) {
		r, cfg := ready(t, 1, nil)
		r.pass(cfg.SegmentAge)
		r.wantMarks(core.MarkRollAge)
		if r.log.Stats().Rolls != 1 {
			t.Errorf("%d rolls", r.log.Stats().Rolls)
		}
		r.pass(cfg.SegmentAge)
		if r.log.Stats().Rolls != 1 {
			t.Error("an empty segment was rolled")
		}
	})
	t.Run("retention by size", func(t *testing.T) {
		r, _ := ready(t, 40, func(c *core.Config) { c.SegmentBytes, c.RetentionBytes = 4096, 10_000 })
		r.pass(60_000_000_000)
		r.wantMarks(core.MarkRetentionSize, core.MarkRemoved)
		if s := r.log.Stats(); s.SegmentBytes < 10_000 || s.SegmentBytes > 10_000+4096 {
			t.Errorf("%d bytes are kept, want 10000 and up to a segment more", s.SegmentBytes)
		}
		r.wantRecords(int(r.log.Start()), 40)
	})
	t.Run("retention by age", func(t *testing.T) {
		const hour = 3600_000_000_000
		r, _ := ready(t, 20, func(c *core.Config) { c.SegmentBytes, c.RetentionAge = 4096, hour })
		r.pass(hour / 2)
		r.put(20, 40, 20)
		r.now.Wall -= hour // a clock that steps back deletes nothing
		r.pass(hour / 2)
		if r.log.Start() != 0 {
			t.Errorf("start %d after the clock stepped back", r.log.Start())
		}
		r.now.Wall += hour
		r.pass(60_000_000_000)
		r.wantMarks(core.MarkRetentionAge)
		if s := r.log.Start(); s == 0 || s > 20 {
			t.Errorf("start %d: records from 20 on are half as old as allowed", s)
		}
	})
	t.Run("trim needs a sync", func(t *testing.T) {
		r, cfg := ready(t, 5, func(c *core.Config) { c.Sync = segment.NoSync })
		if err := r.log.Trim(r.now, 3); err != nil {
			t.Fatal(err)
		}
		if e := r.log.Next(r.now, core.Hot); e != nil {
			t.Errorf("%T is issued before the trim is proven", e)
		}
		r.finish(r.issue(core.Syncs))
		for range 2 { // one slot, then the other
			if r.log.Start() != 0 {
				t.Errorf("start %d is seen before both slots hold it", r.log.Start())
			}
			r.finish(r.issue(core.Hot).(*core.SaveSuper))
		}
		if r.log.Start() != 3 {
			t.Errorf("start %d after both saves", r.log.Start())
		}
		r.pump()
		r.wantMarks(core.MarkTrimSync, core.MarkTrim)
		if r.log.Start() != 3 || r.log.Frontier() < 3 {
			t.Errorf("start %d, frontier %d", r.log.Start(), r.log.Frontier())
		}
		if err := r.log.Trim(r.now, 6); !errors.Is(err, core.ErrOutOfRange) {
			t.Errorf("a trim beyond the end: %v", err)
		}
		r.power()
		r.open(cfg)
		if r.log.Start() != 3 {
			t.Errorf("start %d after a power loss", r.log.Start())
		}
		r.wantRecords(3, int(r.log.Committed()))
		var gone *core.TrimmedError
		if _, err := r.readUntil(1); !errors.As(err, &gone) || gone.Start != 3 {
			t.Errorf("a read below: %v", err)
		}
	})
}

// TestDiverged: a power loss gives an offset to another record; who saw the first one is told.
func TestDiverged(t *testing.T) {
	r, cfg := ready(t, 4, func(c *core.Config) { c.Sync = segment.NoSync })
	old := r.log.Epoch()
	r.power()
	r.open(cfg)
	n := r.log.Committed()
	if n >= 4 {
		t.Fatalf("%d records survive without a sync", n)
	}
	r.put(int(n), 6, 30)
	var v core.View
	var c core.Cursor
	r.log.FillView(&v)
	for _, o := range []core.Offset{n + 1, 4, 6, 9} {
		c.Reset(core.Position{Offset: o, Epoch: old})
		var d *core.DivergedError
		if _, err := c.Next(&v, r.log.Committed(), 1); !errors.As(err, &d) || d.First != n {
			t.Errorf("position %d of epoch %d: %v", o, old, err)
		}
	}
}

// TestSuperblockGrows: more lives than fit into a superblock of one page.
func TestSuperblockGrows(t *testing.T) {
	r, cfg := ready(t, 1, nil)
	for n := 1; !r.log.Marks().Has(core.MarkSuperGrown); n++ {
		if n > 500 {
			t.Fatal("it never grows")
		}
		r.kill()
		r.open(cfg)
		r.put(n, n+1, 20)
	}
	lives := int(r.log.Epoch())
	r.kill()
	for slot := range 2 { // both slots were enlarged
		img := imageOf(r)
		r.restore(img.flipped([]string{"super.0", "super.1"}[slot], 40))
		r.open(cfg)
		r.wantRecords(0, lives)
		r.wantMarks(core.MarkSuperOneSlot)
		r.kill()
	}
}

func TestLimitsAndReports(t *testing.T) {
	r, cfg := ready(t, 1, func(c *core.Config) { c.MaxBatchBytes, c.PendingBytes = 1000, 1000 })
	b := numbered(1, 1, 900)
	for i, want := range []error{nil, core.ErrOverloaded} {
		if _, err := r.log.Append(r.now, &b); !errors.Is(err, want) {
			t.Errorf("append %d: %v, want %v", i, err, want)
		}
	}
	r.pump()
	r.wantMarks(core.MarkOverloaded)
	big, empty, odd := numbered(1, 1, 1001), batchOf(1), batchOf(1)
	empty.Records, odd.Kind = 0, 77
	for _, tt := range []struct {
		b    core.Batch
		want error
	}{{big, core.ErrTooLarge}, {empty, core.ErrEmpty}, {odd, core.ErrBadKind}} {
		if _, err := r.log.Append(r.now, &tt.b); !errors.Is(err, tt.want) {
			t.Errorf("%v, want %v", err, tt.want)
		}
	}
	r.now.Wall -= 1_000_000
	r.put(2, 3, 20)
	r.wantMarks(core.MarkClockBack)
	r.log.Damaged(r.now, new(core.CorruptError))
	r.wantMarks(core.MarkDamagedReader)
	if r.log.Stats().Corruptions != 1 {
		t.Error("the report is not counted")
	}
	r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 0, "super.0")
	r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 0, "super.1")
	r.log.Close(r.now)
	r.pump()
	r.wantMarks(core.MarkCloseUnclean)
	if r.log.Phase() != core.Closed || r.log.Err() == nil {
		t.Errorf("phase %v, %v", r.log.Phase(), r.log.Err())
	}
	r.disk.Heal()
	r.kill()
	r.open(cfg)
	r.wantRecords(0, 3)
}

// TestPrepareFails: zeros that cannot be written cost nothing but their speed.
func TestPrepareFails(t *testing.T) {
	r := newRig(t)
	cfg := tableConfig()
	cfg.Preallocate, cfg.PrepareBytes = true, 4096
	r.open(cfg)
	r.disk.Arm(faultfs.OpZero, faultfs.D15Error, 0, "")
	r.put(0, 3, 20)
	r.wantMarks(core.MarkPrepareFailed)
	r.wantRecords(0, 3)
	r.power()
	r.open(cfg)
	r.put(3, 6, 20)
	r.wantMarks(core.MarkPrepared)
	r.wantRecords(0, 6)
}
