package core_test

import (
	"errors"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/core/warmentry"
	"varve/faultfs"
	"varve/tiers/disk"
)

// warmRig is a rig whose Warm lane has a stream that takes everything, and in which every effect takes its
// time: a Commit and a Mirror may be in flight at once.
type warmRig struct {
	*rig
	stream []core.WarmEntry
	flying [core.LaneCount]core.Effect
	ends   [core.LaneCount]core.Time
	takes  [core.LaneCount]core.Time
	cuts   []core.Offset // records of each Commit
}

func newWarmRig(t testing.TB, commit, mirror core.Time) *warmRig {
	r := &warmRig{rig: newRig(t)}
	r.disk.Reset(faultfs.Params{})
	r.store = disk.NewStore(r.disk.FS(0))
	r.takes[core.Tail], r.takes[core.Warm] = commit, mirror
	cfg := countsConfig(segment.OnCommit)
	cfg.Create, cfg.Warm, cfg.PendingBytes = true, true, 8<<20
	cfg.SegmentBytes, cfg.MaxBatchBytes = 64<<20, 1<<20
	r.log = new(core.Log)
	if err := r.log.Reopen(cfg, r.now); err != nil {
		t.Fatal(err)
	}
	for r.log.Phase() != core.Ready || r.busy() {
		r.step()
	}
	return r
}

// busy asks, and reports whether anything is in flight.
func (r *warmRig) busy() bool {
	r.ask()
	return r.flying != [core.LaneCount]core.Effect{}
}

// ask asks every lane.
func (r *warmRig) ask() {
	for lane := range core.LaneCount {
		if r.flying[lane] != nil {
			continue
		}
		if e := r.log.Next(r.now, lane); e != nil {
			r.flying[lane], r.ends[lane] = e, r.now.Mono+r.takes[lane]
			if c, ok := e.(*core.Commit); ok {
				r.cuts = append(r.cuts, c.End-c.First)
			}
		}
	}
}

// step asks, and completes what ends next; of two at once that of the lane which comes first.
func (r *warmRig) step() {
	r.t.Helper()
	r.ask()
	next := core.LaneCount
	for lane, e := range r.flying {
		if e != nil && (next == core.LaneCount || r.ends[lane] < r.ends[next]) {
			next = core.Lane(lane)
		}
	}
	if next == core.LaneCount {
		r.t.Fatal("nothing is in flight")
	}
	r.complete(next)
}

func (r *warmRig) complete(lane core.Lane) {
	e := r.flying[lane]
	r.flying[lane] = nil
	r.now.Wall += max(r.ends[lane]-r.now.Mono, 0)
	r.now.Mono = max(r.ends[lane], r.now.Mono)
	err := error(nil)
	if lane != core.Warm {
		err = r.store.Run(e)
	} else {
		r.answer(e)
	}
	r.log.Complete(r.now, e, err)
	r.drain()
}

// answer is the stream's: it takes everything, and a replica confirms it.
func (r *warmRig) answer(e core.Effect) {
	top := func() core.WarmEntry {
		if n := len(r.stream); n > 0 {
			return r.stream[n-1]
		}
		return core.WarmEntry{State: core.WarmNone}
	}
	switch e := e.(type) {
	case *core.ProbeWarm:
		e.Top = top()
		e.LastID = e.Top.ID
	case *core.FenceWarm:
		r.stream = append(r.stream, core.WarmEntry{ID: core.WarmID{Generation: e.Marker.Generation}, Header: e.Marker})
		e.Top, e.Confirmed, e.On = top(), e.Replicas, 1
	case *core.ReadWarm:
		for _, n := range r.stream {
			if n.ID.Generation > e.From.Generation || n.ID.Generation == e.From.Generation && n.ID.End >= e.From.End {
				e.Entries = append(e.Entries, n)
			}
		}
		e.First, e.More = r.stream[0], false
	case *core.Mirror:
		e.Predecessor, e.Confirmed, e.Bytes = top(), e.Replicas, 100
		h := e.Entry
		h.Kind = warmentry.Data
		r.stream = append(r.stream, core.WarmEntry{ID: core.WarmID{Generation: h.Generation, End: h.End}, Header: h, Epoch: e.SourceEpoch})
	}
}

// TestWritersOfAMirrorAreCommittedTogether: writers that append again when they are acked are in one
// commit, and in one mirror, all of them, however long either takes and however they came. Cut while a
// mirror is in flight they would be two groups, each of which waits for the mirror of the other.
func TestWritersOfAMirrorAreCommittedTogether(t *testing.T) {
	const writers, rounds = 64, 20
	for _, times := range [][2]core.Time{{250, 400}, {400, 250}, {100, 5000}} {
		r := newWarmRig(t, times[0]*1000, times[1]*1000)
		waiting := map[uint64]int{}
		join := func() { waiting[r.append(0).Cohort]++ }
		join()
		for began := false; len(r.cuts) < rounds; {
			r.step()
			if !began && len(r.cuts) == 1 { // the others come while the first one's record is written
				for range writers - 1 {
					join()
				}
				began = true
			}
			for _, o := range r.acked {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
				for range waiting[o.Cohort] {
					join()
				}
			}
			r.acked = r.acked[:0]
		}
		if r.cuts[0] != 1 {
			t.Errorf("commit %v mirror %v: the first commit has %d records", times[0], times[1], r.cuts[0])
		}
		for i, n := range r.cuts[1:] {
			if n != writers {
				t.Fatalf("commit %v mirror %v: commit %d has %d records, want %d: %v", times[0], times[1], i+1, n, writers, r.cuts)
			}
		}
	}
}

// TestNothingElseHoldsACut: a commit that is long, a tier that has stalled or is in doubt, and a close do not
// wait for the mirror in flight.
func TestNothingElseHoldsACut(t *testing.T) {
	held := func(t *testing.T) *warmRig {
		r := newWarmRig(t, 100_000, 200_000)
		r.append(0)
		for len(r.cuts) == 0 || r.flying[core.Tail] != nil {
			r.step()
		}
		r.append(1)
		r.ask()
		if r.flying[core.Warm] == nil || r.flying[core.Tail] != nil || !r.log.HoldsCut(r.now) {
			t.Fatal("the cut is not held while a mirror is in flight")
		}
		return r
	}
	cut := func(t *testing.T, r *warmRig) {
		t.Helper()
		if r.ask(); r.log.HoldsCut(r.now) || r.flying[core.Tail] == nil {
			t.Fatal("the cut is held")
		}
	}
	t.Run("long", func(t *testing.T) {
		r := held(t)
		b := core.Batch{Payload: make([]byte, 128<<10), Kind: segment.KindRecords, Records: 1, Producer: core.NoProducer}
		b.PayloadCRC = segment.PayloadCRC(b.Payload)
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
		cut(t, r)
	})
	t.Run("stalled", func(t *testing.T) {
		r := held(t)
		at, ok := r.log.Deadline()
		if !ok || at > r.now.Mono+core.DefaultConfig().WarmWait {
			t.Fatal("nobody looks when the wait is over", at, ok)
		}
		r.now.Mono = r.now.Mono + core.DefaultConfig().WarmWait
		r.log.Tick(r.now)
		r.drain()
		if len(r.acked) != 1 || !errors.Is(r.acked[0].Err, core.ErrUnknown) {
			t.Fatal(r.acked)
		}
		cut(t, r)
	})
	t.Run("doubt", func(t *testing.T) {
		r := held(t)
		e := r.flying[core.Warm].(*core.Mirror)
		r.flying[core.Warm] = nil
		e.Refusal = core.WarmFull
		r.log.Complete(r.now, e, nil)
		cut(t, r)
	})
	t.Run("close", func(t *testing.T) {
		r := held(t)
		r.log.Close(r.now)
		cut(t, r)
	})
	t.Run("mirrored", func(t *testing.T) {
		r := held(t)
		r.complete(core.Warm)
		cut(t, r)
	})
}

// TestABatchThatCannotBeReadIsPassedOver: what the disk does not give back for its mirror is asked for three
// times. Then it is passed over: who waited for it has an unknown outcome, the error names file and position,
// and what is appended next, into a file of its own, is mirrored and acked as ever.
func TestABatchThatCannotBeReadIsPassedOver(t *testing.T) {
	r := newWarmRig(t, 100_000, 200_000)
	damage := &core.CorruptError{Segment: 1, Pos: 512}
	r.append(0)
	failed := core.Offset(1)
	for tries := 0; tries < 3; {
		r.ask()
		m, ok := r.flying[core.Warm].(*core.Mirror)
		if !ok {
			if r.flying == [core.LaneCount]core.Effect{} {
				r.now.Mono += 500_000_000
				r.log.Tick(r.now)
				r.drain()
				continue
			}
			r.step()
			continue
		}
		if tries++; m.Entry.First != 0 {
			t.Fatalf("try %d: %+v", tries, m.Entry)
		}
		r.flying[core.Warm] = nil
		m.Failed = core.StepRead
		r.log.Complete(r.now, m, damage)
		r.drain()
		s := r.log.Stats()
		if tries < 3 && (!errors.Is(s.WarmError, damage) || s.WarmEnd != 0) {
			t.Fatalf("try %d: %+v", tries, s)
		}
	}
	s := r.log.Stats()
	lost := (*core.UnmirroredError)(nil)
	if !errors.As(s.WarmError, &lost) || lost.First != 0 || lost.End != failed || !errors.Is(lost, damage) {
		t.Fatal(s.WarmError)
	}
	if len(r.acked) != 1 || !errors.Is(r.acked[0].Err, core.ErrUnknown) || s.WarmStalled || r.log.Committed() != failed || s.Corruptions != 1 {
		t.Fatalf("%v %+v", r.acked, s)
	}
	r.acked = r.acked[:0]
	r.append(1)
	for len(r.acked) == 0 {
		r.step()
	}
	if s := r.log.Stats(); r.acked[0].Err != nil || s.WarmFrom != failed || s.WarmEnd != 2 || s.WarmError != nil || s.Rolls != 1 {
		t.Fatalf("%v %+v", r.acked, s)
	}
}
