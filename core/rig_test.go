package core_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

// rig runs a core on a simulated disk, one effect at a time, without a driver.
type rig struct {
	t     testing.TB
	disk  *faultfs.Disk
	log   *core.Log
	store *disk.Store
	now   core.Now
	acked []core.Outcome

	view   core.View
	cursor core.Cursor
	handle disk.Handle
	got    []uint64

	stepping core.Effect // in flight, some of its steps done
}

// newRig returns a rig on a fresh disk without a log directory.
func newRig(t testing.TB) *rig {
	r := &rig{t: t, disk: faultfs.New()}
	r.store = disk.NewStore(r.disk.FS(0))
	r.now = core.Now{Mono: 1, Wall: 1_700_000_000_000_000_000}
	return r
}

// issue takes the next effect of a lane, which must have one.
func (r *rig) issue(lane core.Lane) core.Effect {
	r.t.Helper()
	e := r.log.Next(r.now, lane)
	if e == nil {
		r.t.Fatalf("lane %d has nothing to do", lane)
	}
	return e
}

// finish carries an effect out and completes it.
func (r *rig) finish(e core.Effect) {
	err := r.store.Run(e)
	r.now.Mono += 1000
	r.now.Wall += 1000
	r.log.Complete(r.now, e, err)
	r.drain()
}

func (r *rig) drain() {
	for o, ok := r.log.NextOutcome(); ok; o, ok = r.log.NextOutcome() {
		r.acked = append(r.acked, o)
	}
}

// pump runs every lane until none has anything to do.
func (r *rig) pump() {
	r.t.Helper()
	for range 10000 {
		busy := false
		for lane := range core.LaneCount {
			if e := r.log.Next(r.now, lane); e != nil {
				busy = true
				r.finish(e)
			}
		}
		r.drain()
		if !busy {
			return
		}
	}
	r.t.Fatal("the core never comes to rest")
}

// pass lets time go by, to the next deadline but at least by d, and runs what is due.
func (r *rig) pass(d core.Time) {
	r.t.Helper()
	r.now.Mono += d
	r.now.Wall += d
	r.log.Tick(r.now)
	r.pump()
}

// batchOf makes a batch of one record that holds i.
func batchOf(i int) core.Batch {
	payload := binary.LittleEndian.AppendUint64(nil, uint64(i))
	return core.Batch{
		Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindRecords,
		Records: 1, Producer: core.NoProducer,
	}
}

func (r *rig) append(i int) core.Ticket {
	r.t.Helper()
	b := batchOf(i)
	t, err := r.log.Append(r.now, &b)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// write appends the records [from, to), each in a commit of its own.
func (r *rig) write(from, to int) {
	r.t.Helper()
	for i := from; i < to; i++ {
		r.append(i)
		r.pump()
	}
}

// start begins a life and runs it until it rests, whatever that leads to.
func (r *rig) start(cfg core.Config) {
	r.t.Helper()
	if r.log == nil {
		r.log = new(core.Log)
	}
	if err := r.log.Reopen(cfg, r.now); err != nil {
		r.t.Fatal(err)
	}
	r.acked = r.acked[:0]
	r.pump()
}

// recover begins a life and runs its recovery alone: nothing that serving would start.
func (r *rig) recover(cfg core.Config) {
	r.t.Helper()
	if err := r.log.Reopen(cfg, r.now); err != nil {
		r.t.Fatal(err)
	}
	for r.log.Phase() == core.Opening {
		r.finish(r.issue(core.Hot))
	}
}

// open begins a life that must become ready.
func (r *rig) open(cfg core.Config) {
	r.t.Helper()
	r.start(cfg)
	if r.log.Phase() != core.Ready {
		r.t.Fatalf("open ends in phase %v: %v", r.log.Phase(), r.log.Err())
	}
}

// close ends a life cleanly.
func (r *rig) close() {
	r.t.Helper()
	r.log.Close(r.now)
	r.pump()
	if r.log.Phase() != core.Closed || r.log.Err() != nil || !r.log.Marks().Has(core.MarkCloseClean) {
		r.t.Fatalf("close ends in %v: %v", r.log.Phase(), r.log.Err())
	}
	r.kill()
}

// kill ends the process; what the kernel has stays.
func (r *rig) kill() {
	r.handle.Forget()
	r.disk.FS(0).Kill()
	r.store.Reset(r.disk.FS(0))
}

// power ends the process and leaves what the device holds: nothing that was not synced.
func (r *rig) power() {
	r.handle.Forget()
	crash(r.disk, "power")
	r.store.Reset(r.disk.FS(0))
}

func crash(d *faultfs.Disk, how string) {
	d.FS(0).Kill()
	if how == "power" {
		var r faultfs.Rand
		r.Seed(42)
		d.PowerLoss(&r, true)
	}
}

// read returns all records from an offset on.
func (r *rig) read(from core.Offset) []uint64 {
	r.t.Helper()
	got, err := r.readUntil(from)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// errStuck says that a reader went round and round.
var errStuck = errors.New("the reader does not get on")

// readUntil returns the records from an offset on, up to the first error.
func (r *rig) readUntil(from core.Offset) ([]uint64, error) { return r.readSome(from, 1<<30) }

// readSome returns about n records from an offset on, up to the first error. A batch of several
// records holds the number of the first one; the others follow it.
func (r *rig) readSome(from core.Offset, n int) ([]uint64, error) {
	r.got = r.got[:0]
	r.log.FillView(&r.view)
	r.cursor.Reset(core.Position{Offset: from})
	defer r.handle.Close()
	next := from
	bytes := 64 << 10
	if n == 1 {
		bytes = 4096
	}
	for range 100000 {
		f, err := r.cursor.Next(&r.view, r.log.Committed(), bytes)
		if f == nil {
			return r.got, err
		}
		if f.Pos == 0 && f.Extent.Index == core.IndexCore {
			f.Pos, _, _ = r.log.Locate(f.Extent.Segment, f.From)
		}
		if err := r.cursor.Complete(f, r.store.Fetch(f, &r.handle)); err != nil {
			return r.got, err
		}
		for b, ok := r.cursor.Batch(); ok; b, ok = r.cursor.Batch() {
			first := binary.LittleEndian.Uint64(b.Payload)
			for k := max(b.Base, next); k < b.End(); k++ {
				r.got = append(r.got, first+uint64(k-b.Base))
			}
			next = b.End()
		}
		if len(r.got) >= n {
			return r.got, nil
		}
	}
	return r.got, errStuck
}

// wantRecords wants exactly the records [first, end) from the log's start on.
func (r *rig) wantRecords(first, end int) {
	r.t.Helper()
	got := r.read(r.log.Start())
	if len(got) != end-first {
		r.t.Fatalf("%d records, want %d", len(got), end-first)
	}
	for i, v := range got {
		if v != uint64(first+i) {
			r.t.Fatalf("record %d is %d, want %d", i, v, first+i)
		}
	}
}

func (r *rig) wantMarks(marks ...core.Mark) {
	r.t.Helper()
	for _, m := range marks {
		if !r.log.Marks().Has(m) {
			r.t.Errorf("mark %d is not set", m)
		}
	}
}

func (r *rig) wantNoMarks(marks ...core.Mark) {
	r.t.Helper()
	for _, m := range marks {
		if r.log.Marks().Has(m) {
			r.t.Errorf("mark %d is set", m)
		}
	}
}

// files returns the content of every file, as processes see it.
func (r *rig) files() []savedFile {
	var out []savedFile
	for _, m := range r.disk.Images(nil) {
		name := m.Name
		if m.Dir != disk.DirLog {
			name = m.Dir + "/" + name
		}
		out = append(out, savedFile{name, append([]byte(nil), m.Kernel...)})
	}
	return out
}

type savedFile struct {
	name string
	data []byte
}

// restore makes a disk hold exactly these files, durably, as an earlier life left them.
func (r *rig) restore(files []savedFile) {
	r.t.Helper()
	r.handle.Forget()
	r.disk.Reset(faultfs.Params{LogDir: true})
	fs := r.disk.FS(0)
	var bufs [1][]byte
	for i := range files {
		f, err := fs.Open(files[i].name, disk.Create)
		if err != nil {
			r.t.Fatal(err)
		}
		bufs[0] = files[i].data
		if _, err := f.WriteAt(bufs[:], 0); err != nil {
			r.t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := fs.SyncDir(disk.DirLog); err != nil {
		r.t.Fatal(err)
	}
	r.kill()
	r.disk.ResetCounts()
}

func smokeConfig() core.Config {
	cfg := core.DefaultConfig()
	cfg.LogID, cfg.Nonce = segment.LogID{1, 2, 3}, 7
	cfg.SegmentBytes, cfg.MaxBatchBytes, cfg.PendingBytes = 4096, 1024, 4096
	cfg.PrepareBytes, cfg.MinFreeBytes = 512, 0
	return cfg
}
