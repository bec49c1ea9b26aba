package core_test

import (
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

func TestLivesOnASimulatedDisk(t *testing.T) {
	for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic, segment.NoSync} {
		for _, end := range []string{"close", "kill", "power"} {
			t.Run(mode.String()+"/"+end, func(t *testing.T) { liveAndDie(t, mode, end) })
		}
	}
}

func liveAndDie(t *testing.T, mode segment.SyncMode, end string) {
	d := faultfs.New()
	d.Reset(faultfs.Params{})
	r := &rig{t: t}
	r.now = core.Now{Mono: 1, Wall: 1_700_000_000_000_000_000}
	cfg := smokeConfig()
	cfg.Sync = mode
	n := 0
	for life := range 6 {
		r.store = disk.NewStore(d.FS(0))
		r.open(cfg)
		got := r.read(0)
		if end != "power" || mode == segment.OnCommit {
			if len(got) != n {
				t.Fatalf("life %d: %d records, want %d", life, len(got), n)
			}
		} else {
			n = len(got)
		}
		for i, v := range got {
			if v != uint64(i) {
				t.Fatalf("life %d: record %d is %d", life, i, v)
			}
		}
		for range 40 {
			r.append(n)
			n++
			if n%3 == 0 {
				r.pump()
			}
		}
		r.pump()
		if r.log.Committed() != core.Offset(n) {
			t.Fatalf("life %d: committed %d, want %d", life, r.log.Committed(), n)
		}
		if end == "close" {
			r.log.Close(r.now)
			r.pump()
			if r.log.Phase() != core.Closed || r.log.Err() != nil {
				t.Fatalf("close ends in %v: %v", r.log.Phase(), r.log.Err())
			}
			if !r.log.Marks().Has(core.MarkCloseClean) {
				t.Fatal("not clean")
			}
			continue
		}
		crash(d, end)
	}
}
