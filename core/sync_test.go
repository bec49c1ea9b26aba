package core_test

import (
	"testing"

	"varve/core"
	"varve/core/segment"
)

// A writer that never pauses keeps a Commit in flight whenever a Sync is due, so every Sync claims
// only a part. That must neither make the timer's syncs follow each other without an interval in
// between, nor stop the acks.
func TestPeriodicSyncsKeepTheirIntervalUnderLoad(t *testing.T) {
	cfg := smokeConfig()
	cfg.Sync, cfg.SegmentBytes = segment.Periodic, 1<<30
	r := newRig(t)
	r.open(cfg)
	const step = 1_000_000 // a Commit takes 1 ms, a Sync 3 ms
	took, stalled := core.Time(2_000_000_000), 0
	var commit, sync core.Effect
	var syncEnds core.Time
	r.append(0)
	r.finish(r.issue(core.Tail)) // Create
	begin := r.now.Mono
	for i := 1; r.now.Mono < begin+took; i++ {
		r.append(i)
		if commit == nil {
			if commit = r.log.Next(r.now, core.Tail); commit == nil {
				stalled++
			}
		}
		if sync == nil {
			if sync = r.log.Next(r.now, core.Syncs); sync != nil {
				syncEnds = r.now.Mono + 3*step
			}
		}
		r.now.Mono += step
		r.now.Wall += step
		r.log.Tick(r.now)
		if commit != nil {
			next := commit
			err := r.store.Run(next)
			r.log.Complete(r.now, next, err)
			r.append(1_000_000 + i)
			commit = r.log.Next(r.now, core.Tail) // before the Sync lane is asked
		}
		if sync != nil && r.now.Mono >= syncEnds {
			r.log.Complete(r.now, sync, r.store.Run(sync))
			sync = nil
		}
		r.drain()
	}
	r.wantMarks(core.MarkSyncPartial)
	syncs := r.log.Stats().Syncs
	if want := uint64(took / cfg.SyncInterval); syncs > 2*want || syncs < want/2 || stalled > 0 {
		t.Fatalf("%d syncs in %d intervals, writer stalled %d times", syncs, want, stalled)
	}
}
