package cold_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/sim/fakebucket"
	"varve/tiers/cold"
	"varve/tiers/disk"
)

const (
	second core.Time = 1_000_000_000
	hour             = 3600 * second
)

// rig runs a log over a simulated disk and a simulated bucket in virtual time, one effect at a time.
type rig struct {
	t       *testing.T
	disk    *faultfs.Disk
	bucket  *fakebucket.Bucket
	sees    witness // what the log sees of the bucket
	files   *disk.Store
	cold    *cold.Store
	options cold.Options
	log     *core.Log
	cfg     core.Config
	now     core.Now
	dead    bool                // the process: nothing of it runs on
	step    func(e core.Effect) // before each effect; may be nil

	next    uint64 // record to append
	acked   uint64 // records, all below
	refused int    // appends for want of space
}

func newRig(t *testing.T, cfg core.Config) *rig {
	t.Helper()
	return newRigWith(t, cfg, cold.DefaultOptions(), fakebucket.Params{})
}

func newRigWith(t *testing.T, cfg core.Config, o cold.Options, p fakebucket.Params) *rig {
	t.Helper()
	r := &rig{t: t, options: o, disk: faultfs.New(), bucket: fakebucket.New(), now: core.Now{Mono: 1, Wall: 1_700_000_000 * second}}
	r.bucket.Reset(p)
	r.sees = witness{Bucket: r.bucket, r: r, put: map[string]bool{}}
	r.files = disk.NewStore(r.disk.FS(0))
	r.cold = cold.NewStore(&r.sees, "log/", r.files, o)
	r.files.SetObjects(r.cold)
	r.log = new(core.Log)
	r.open(cfg)
	return r
}

func (r *rig) open(cfg core.Config) {
	r.t.Helper()
	r.cfg = cfg
	if err := r.log.Reopen(cfg, r.now); err != nil {
		r.t.Fatal(err)
	}
	for range 1000 {
		if r.pump(); r.log.Phase() == core.Ready || r.dead {
			return
		}
		r.pass(second)
	}
	r.t.Fatalf("the log is %v: %v", r.log.Phase(), r.log.Err())
}

// pump runs every lane until none has anything to do.
func (r *rig) pump() {
	r.t.Helper()
	for range 100_000 {
		busy := false
		for lane := range core.LaneCount {
			e := r.log.Next(r.now, lane)
			if e == nil {
				continue
			}
			busy = true
			if r.step != nil {
				r.step(e)
			}
			run := r.files.Run
			if lane == core.Uploads || lane == core.Catalogue {
				run = r.cold.Run
			}
			err := run(e)
			if r.dead {
				return
			}
			r.now.Mono += 1000
			r.now.Wall += 1000
			r.log.Complete(r.now, e, err)
		}
		for o, ok := r.log.NextOutcome(); ok; o, ok = r.log.NextOutcome() {
			switch {
			case o.Err == nil:
				r.acked++
			case errors.Is(o.Err, core.ErrNoSpace):
				r.refused++
				r.next--
			case errors.Is(r.log.Err(), core.ErrOwnerFenced): // nobody was told that it is there
			default:
				r.t.Fatal(o.Err)
			}
		}
		if !busy {
			return
		}
	}
	r.t.Fatal("the core never comes to rest")
}

// pass lets time go by and does what is due meanwhile.
func (r *rig) pass(d core.Time) {
	r.t.Helper()
	for end := r.now.Mono + d; r.now.Mono < end && !r.dead; {
		step := end - r.now.Mono
		if at, ok := r.log.Deadline(); ok {
			step = min(step, max(at-r.now.Mono, second/10))
		}
		r.now.Mono += step
		r.now.Wall += step
		r.log.Tick(r.now)
		r.pump()
	}
}

// append tries to append the next record and reports whether it was taken.
func (r *rig) append() bool {
	r.t.Helper()
	payload := make([]byte, 1000)
	binary.LittleEndian.PutUint64(payload, r.next)
	_, err := r.log.Append(r.now, batchOf(payload))
	if errors.Is(err, core.ErrNoSpace) {
		r.refused++
		return false
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.next++
	r.pump()
	return true
}

func batchOf(payload []byte) *core.Batch {
	return &core.Batch{
		Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindRecords, Records: 1, Producer: core.NoProducer,
	}
}

// readAll wants every acked record from Start on, in order, whichever tier holds it.
func (r *rig) readAll() {
	r.t.Helper()
	var view core.View
	var c core.Cursor
	var h disk.Handle
	defer func() { _ = h.Close() }()
	r.log.FillView(&view)
	c.Reset(core.Position{Offset: r.log.Start()})
	for next := uint64(r.log.Start()); next < r.acked; {
		f, err := c.Next(&view, r.log.Committed(), 64<<10)
		if f == nil {
			r.t.Fatalf("record %d of %d: %v", next, r.acked, err)
		}
		if f.Pos == 0 && f.Extent.Index == core.IndexCore {
			f.Pos, _, _ = r.log.Locate(f.Extent.Segment, f.From)
		}
		if err := c.Complete(f, r.files.Fetch(f, &h)); err != nil {
			r.t.Fatal(err)
		}
		for b, ok := c.Batch(); ok; b, ok = c.Batch() {
			if got := binary.LittleEndian.Uint64(b.Payload); uint64(b.Base) != next || got != next {
				r.t.Fatalf("offset %d is record %d, want %d", b.Base, got, next)
			}
			next++
		}
	}
}

func outageConfig() core.Config {
	cfg := core.DefaultConfig()
	cfg.LogID, cfg.Nonce, cfg.Create, cfg.Cold = segment.LogID{1}, 7, true, true
	cfg.SegmentBytes, cfg.MinFreeBytes, cfg.SegmentAge = 64<<10, 256<<10, 24*hour
	return cfg
}

// TestOutageOfADay: the bucket is down for a day. Appends go on as long as the disk has room, for which
// files go that the bucket holds, then they are refused. When the bucket is back the log recovers by
// itself: what waits is exported, files go, appends are taken. Nothing is lost, and none of it needs
// anybody to do anything.
func TestOutageOfADay(t *testing.T) {
	for _, fault := range []fakebucket.Fault{fakebucket.O1Before, fakebucket.O4Throttled, fakebucket.O11Denied} {
		t.Run(fault.String(), func(t *testing.T) {
			r := newRig(t, outageConfig())
			const capacity = 4 << 20
			r.disk.SetCapacity(capacity)
			for range 2000 { // most of the disk, all but the active segment in the bucket
				r.append()
			}
			r.pass(second)
			before := r.log.Exported()
			if before < 1900 || r.refused > 0 {
				t.Fatalf("exported %d of %d, %d refused", before, r.acked, r.refused)
			}

			r.bucket.SetDown(fault)
			taken, hours := r.acked, 0
			for hours = range 24 {
				for range 3600 / 10 {
					r.append()
					r.pass(10 * second)
				}
				if hours == 0 && r.refused > 0 {
					t.Fatal("appends are refused in the first hour, though the bucket holds what fills the disk")
				}
			}
			if r.log.Exported() != before {
				t.Fatalf("exported %d without a bucket", r.log.Exported())
			}
			t.Logf("%d records before the outage, %d taken and %d refused in %d hours; %d bytes of %d in use",
				taken, r.acked-taken, r.refused, hours+1, r.disk.Used(), capacity)
			if r.refused == 0 || r.disk.Used() > capacity-outageConfig().MinFreeBytes+2*outageConfig().SegmentBytes {
				t.Fatal("appends were to be refused at min_free_bytes")
			}
			if lost := r.acked - taken; lost < 1900 { // the room of the disk, not what the exported files left of it
				t.Fatalf("only %d records were taken", lost)
			}

			r.bucket.SetDown(fakebucket.NoFault)
			r.pass(120 * second)
			refused := r.refused
			for range 5000 { // more than the disk holds
				if !r.append() {
					t.Fatalf("refused after the outage: exported %d of %d", r.log.Exported(), r.acked)
				}
				r.pass(second)
			}
			if r.refused != refused {
				t.Fatalf("%d refused after the outage", r.refused-refused)
			}
			r.readAll()

			r.restart() // and the next life finds all of it
			r.readAll()
		})
	}
}

// TestErrorOfWhatWasTrimmed: an upload fails, and before it is tried again its segment is trimmed. Nothing
// is left that the bucket has to take, and nothing is wrong with it.
func TestErrorOfWhatWasTrimmed(t *testing.T) {
	r := newRig(t, outageConfig())
	for range 80 { // a segment, and the begin of another one
		r.append()
	}
	r.pass(second)
	r.bucket.Arm(fakebucket.OpPut, fakebucket.O4Throttled, 0, ".seg")
	if err := r.log.Roll(r.now); err != nil {
		t.Fatal(err)
	}
	r.pump()
	if !r.log.Marks().Has(core.MarkUploadFailed) || r.log.Stats().ColdError == nil {
		t.Fatalf("the upload was to fail: %v", r.log.Stats().ColdError)
	}
	if err := r.log.Trim(r.now, r.log.Committed()); err != nil {
		t.Fatal(err)
	}
	r.pump()
	r.pass(120 * second)
	if s := r.log.Stats(); s.ColdError != nil || r.log.Start() != 80 || s.ColdLagSegments != 0 {
		t.Fatalf("start %d, %d segments behind, %v", r.log.Start(), s.ColdLagSegments, s.ColdError)
	}
}
