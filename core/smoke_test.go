package core_test

import (
	"encoding/binary"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

// rig runs a core on a simulated disk, one effect at a time, without a driver.
type rig struct {
	t     *testing.T
	log   *core.Log
	store *disk.Store
	now   core.Now
	acked []core.Outcome
}

func (r *rig) pump() {
	r.t.Helper()
	for i := 0; i < 10000; i++ {
		busy := false
		for lane := core.Lane(0); lane < core.LaneCount; lane++ {
			if e := r.log.Next(r.now, lane); e != nil {
				busy = true
				err := r.store.Run(e)
				r.now.Mono += 1000
				r.now.Wall += 1000
				r.log.Complete(r.now, e, err)
			}
		}
		for {
			o, ok := r.log.NextOutcome()
			if !ok {
				break
			}
			r.acked = append(r.acked, o)
		}
		if !busy {
			return
		}
	}
	r.t.Fatal("the core never comes to rest")
}

func (r *rig) append(i int) core.Ticket {
	r.t.Helper()
	payload := binary.LittleEndian.AppendUint64(nil, uint64(i))
	b := core.Batch{Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindRecords, Records: 1, Producer: core.NoProducer}
	t, err := r.log.Append(r.now, &b)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

func (r *rig) open(cfg core.Config) {
	r.t.Helper()
	log, err := core.Open(cfg, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	r.log = log
	r.pump()
	if log.Phase() != core.Ready {
		r.t.Fatalf("open ends in phase %v: %v", log.Phase(), log.Err())
	}
}

func (r *rig) read(from core.Offset) (got []uint64) {
	r.t.Helper()
	var v core.View
	var c core.Cursor
	var h disk.Handle
	r.log.FillView(&v)
	c.Reset(core.Position{Offset: from})
	for {
		f, err := c.Next(&v, r.log.Committed(), 4096)
		if err != nil {
			r.t.Fatal(err)
		}
		if f == nil {
			return got
		}
		if f.Pos == 0 && f.Extent.Index == core.IndexCore {
			f.Pos, _, _ = r.log.Locate(f.Extent.Segment, f.From)
		}
		if err := c.Complete(f, r.store.Fetch(f, &h)); err != nil {
			r.t.Fatal(err)
		}
		for {
			b, ok := c.Batch()
			if !ok {
				break
			}
			got = append(got, binary.LittleEndian.Uint64(b.Payload))
		}
	}
}

func smokeConfig() core.Config {
	cfg := core.DefaultConfig()
	cfg.LogID, cfg.Nonce = segment.LogID{1, 2, 3}, 7
	cfg.SegmentBytes, cfg.MaxBatchBytes, cfg.PendingBytes = 4096, 1024, 4096
	cfg.PrepareBytes, cfg.MinFreeBytes = 512, 0
	return cfg
}

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

func crash(d *faultfs.Disk, how string) {
	d.FS(0).Kill()
	if how == "power" {
		var r faultfs.Rand
		r.Seed(42)
		d.PowerLoss(&r, true)
	}
}
