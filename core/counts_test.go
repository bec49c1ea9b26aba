package core_test

import (
	"fmt"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// calls returns the calls made since the counters were reset, those that were not made left out.
func calls(r *rig) string {
	text := ""
	for op, n := range r.disk.Counts().Calls {
		if n > 0 {
			text += fmt.Sprintf("%v %d ", faultfs.Op(op), n)
		}
	}
	return text
}

// run carries out what one lane has to do, nothing else.
func (r *rig) run(lane core.Lane) {
	for e := r.log.Next(r.now, lane); e != nil; e = r.log.Next(r.now, lane) {
		r.finish(e)
	}
}

func countsConfig(mode segment.SyncMode) core.Config {
	cfg := smokeConfig()
	cfg.Sync = mode
	cfg.SegmentBytes, cfg.PendingBytes = 1<<20, 1<<20
	cfg.Preallocate = false
	return cfg
}

// TestCountsOfACommit: one write and one sync a commit under on_commit, one write otherwise, and
// nothing else at all.
func TestCountsOfACommit(t *testing.T) {
	for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic, segment.NoSync} {
		want := "write 100 "
		if mode == segment.OnCommit {
			want = "write 100 sync 100 "
		}
		r := newRig(t)
		r.open(countsConfig(mode))
		r.write(0, 1) // creates the segment
		r.disk.ResetCounts()
		r.write(1, 101)
		if got := calls(r); got != want {
			t.Errorf("%v: 100 commits make the calls %q, want %q", mode, got, want)
		}
		if got := r.log.Stats().Commits; got != 101 {
			t.Errorf("%v: %d commits", mode, got)
		}
	}
}

// TestCountsBetweenRolls: with everything switched on, between two rolls no name is made, moved or
// removed, no file cut, no directory synced; superblocks are saved in place.
func TestCountsBetweenRolls(t *testing.T) {
	r := newRig(t)
	cfg := countsConfig(segment.OnCommit)
	cfg.Preallocate, cfg.PrepareBytes, cfg.IdleSave = true, 2048, 1_000_000_000
	r.open(cfg)
	r.now.Mono += 10_000_000_000
	r.write(0, 1)
	r.disk.ResetCounts()
	for i := 1; i < 201; i++ {
		r.now.Mono += 10_000_000
		r.write(i, i+1)
		if i%10 == 0 {
			r.pass(cfg.IdleSave)
		}
	}
	c := r.disk.Counts()
	for _, op := range []faultfs.Op{
		faultfs.OpCreate, faultfs.OpRemove, faultfs.OpRename, faultfs.OpTruncate,
		faultfs.OpSyncDir, faultfs.OpMkdir, faultfs.OpOpen, faultfs.OpList,
	} {
		if c.Calls[op] != 0 {
			t.Errorf("%v: %d", op, c.Calls[op])
		}
	}
	if r.log.Stats().Rolls != 0 {
		t.Fatal("it rolled")
	}
	saves := c.Calls[faultfs.OpWrite] - 200
	if saves != 20 || c.Calls[faultfs.OpSync] != 200+saves {
		t.Errorf("200 commits and 20 idle times: %s", calls(r))
	}
	if c.Calls[faultfs.OpZero] == 0 {
		t.Error("nothing was written ahead")
	}
	t.Logf("200 commits, 20 idle saves: %s", calls(r))
}

// TestCountsOfARoll: footer, cut, sync; then create, header, sync, directory sync; then the commit.
func TestCountsOfARoll(t *testing.T) {
	r := newRig(t)
	cfg := countsConfig(segment.OnCommit)
	r.open(cfg)
	r.write(0, 5)
	r.disk.ResetCounts()
	if err := r.log.Roll(r.now); err != nil {
		t.Fatal(err)
	}
	r.run(core.Tail)
	if got, want := calls(r), "write 1 truncate 1 sync 1 "; got != want {
		t.Errorf("sealing makes the calls %q, want %q", got, want)
	}
	r.disk.ResetCounts()
	r.append(5)
	r.run(core.Tail)
	if got, want := calls(r), "create 1 write 2 sync 2 syncdir 1 free 1 "; got != want {
		t.Errorf("the first commit of a segment makes the calls %q, want %q", got, want)
	}
	if r.log.Stats().Rolls != 1 || r.log.Committed() != 6 {
		t.Errorf("%d rolls, committed %d", r.log.Stats().Rolls, r.log.Committed())
	}
}

// TestCountsOfRollsBySize: a roll because the segment is full costs the same.
func TestCountsOfRollsBySize(t *testing.T) {
	r := newRig(t)
	cfg := countsConfig(segment.OnCommit)
	cfg.SegmentBytes = 4096
	r.open(cfg)
	r.write(0, 1)
	r.disk.ResetCounts()
	const n = 60
	r.write(1, n+1)
	c, rolls := r.disk.Counts().Calls, r.log.Stats().Rolls
	r.wantMarks(core.MarkRollSize)
	if rolls == 0 || c[faultfs.OpCreate] != rolls || c[faultfs.OpSyncDir] != rolls || c[faultfs.OpTruncate] != rolls ||
		c[faultfs.OpWrite] != n+2*rolls || c[faultfs.OpSync] != n+2*rolls || c[faultfs.OpRename]+c[faultfs.OpRemove] != 0 {
		t.Errorf("%d commits and %d rolls: %s", n, rolls, calls(r))
	}
}

// TestCountsOfAClose: a close seals, saves one slot, and makes no name unless a slot was never
// saved in this life.
func TestCountsOfAClose(t *testing.T) {
	r := newRig(t)
	r.open(countsConfig(segment.OnCommit))
	r.write(0, 3)
	r.disk.ResetCounts()
	r.close()
	if got, want := calls(r), "write 2 truncate 1 sync 2 "; got != want {
		t.Errorf("a close makes the calls %q, want %q", got, want)
	}
	r.disk.ResetCounts()
	r.open(countsConfig(segment.OnCommit))
	// List and free; both slots read; the segment opened by its footer, not read through.
	// Then both slots through tmp, sync, rename, directory sync.
	c := r.disk.Counts().Calls
	if c[faultfs.OpSync] != 2 || c[faultfs.OpRename] != 2 || c[faultfs.OpSyncDir] != 2 || c[faultfs.OpCreate] != 2 ||
		c[faultfs.OpWrite] != 2 || c[faultfs.OpOpen] != 3 || c[faultfs.OpRead] > 4 || c[faultfs.OpRemove]+c[faultfs.OpTruncate] != 0 {
		t.Errorf("opening a cleanly closed log makes the calls %q", calls(r))
	}
}

// TestRecordsACommit: what arrives while a commit flies goes into the next one, all of it.
func TestRecordsACommit(t *testing.T) {
	r := newRig(t)
	r.open(countsConfig(segment.OnCommit))
	r.write(0, 1)
	n := 1
	for _, k := range []int{1, 2, 8, 64, 256} {
		r.append(n)
		n++
		e := r.issue(core.Tail).(*core.Commit)
		if e.First != core.Offset(n-1) || e.End != core.Offset(n) {
			t.Fatalf("a lone append is committed as [%d, %d)", e.First, e.End)
		}
		r.disk.ResetCounts()
		for range k {
			r.append(n)
			n++
		}
		if r.log.Next(r.now, core.Tail) != nil {
			t.Fatal("two commits in flight")
		}
		r.finish(e)
		e = r.issue(core.Tail).(*core.Commit)
		if e.First != core.Offset(n-k) || e.End != core.Offset(n) {
			t.Errorf("%d appends arrived during a commit; the next one takes [%d, %d)", k, e.First, e.End)
		}
		before := len(r.acked)
		r.finish(e)
		if len(r.acked) != before+1 || r.log.Committed() != core.Offset(n) {
			t.Errorf("%d appends, one commit: %d outcomes, committed %d of %d", k, len(r.acked)-before, r.log.Committed(), n)
		}
		if got, want := calls(r), "write 2 sync 2 "; got != want {
			t.Errorf("1 and %d appends make the calls %q, want %q", k, got, want)
		}
	}
}

// TestBytesARecord: at most 128 bytes a batch and 3 a record over the values themselves, and less
// than a sector a sync.
func TestBytesARecord(t *testing.T) {
	const values = 100
	for _, records := range []int{1, 10, 100, 1000} {
		recs := make([]segment.Record, records)
		for i := range recs {
			recs[i].Value, recs[i].Time = make([]byte, values), 1_700_000_000_000_000_000
		}
		payload, maxTime := segment.AppendRecords(nil, recs)
		overhead := len(payload) - records*values
		if segment.BatchHeaderBytes+8 > 128 {
			t.Errorf("%d bytes a batch", segment.BatchHeaderBytes+8)
		}
		if overhead > 128-segment.BatchHeaderBytes+3*records {
			t.Errorf("%d records: payload overhead is %d bytes", records, overhead)
		}
		r := newRig(t)
		cfg := countsConfig(segment.OnCommit)
		cfg.MaxBatchBytes = 1 << 20
		r.open(cfg)
		r.write(0, 1)
		size := r.log.Stats().SegmentBytes
		r.disk.ResetCounts()
		b := core.Batch{
			Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindRecords,
			Records: uint32(records), MaxTime: maxTime, Producer: core.NoProducer,
		}
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
		r.pump()
		written := int(r.disk.Counts().WriteBytes)
		if over := written - records*values; over > 128+3*records {
			t.Errorf("%d records: %d bytes over the values", records, over)
		}
		if grown := int(r.log.Stats().SegmentBytes - size); grown-written >= 512 {
			t.Errorf("%d records: the segment grew by %d for %d bytes", records, grown, written)
		}
		t.Logf("%d records of %d bytes: %d bytes written, %.2f over each value", records, values, written,
			float64(written-records*values)/float64(records))
	}
}

// TestCoreAllocatesNothing: neither a commit of one batch nor one of many, in any mode.
func TestCoreAllocatesNothing(t *testing.T) {
	for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic, segment.NoSync} {
		for _, k := range []int{1, 64} {
			n := newNull(t, mode)
			if got := testing.AllocsPerRun(200, func() { n.commit(k) }); got != 0 {
				t.Errorf("%v: %v allocations for a commit of %d", mode, got, k)
			}
		}
	}
}

// null runs a core whose effects succeed at once without doing anything.
type null struct {
	log *core.Log
	now core.Now
	b   core.Batch
}

func newNull(tb testing.TB, mode segment.SyncMode) *null {
	cfg := core.DefaultConfig()
	cfg.LogID, cfg.Sync, cfg.MinFreeBytes = segment.LogID{1}, mode, 0
	cfg.SegmentBytes = 1 << 40
	n := &null{b: batchOf(7)}
	n.b.Payload = make([]byte, 128)
	n.now.Mono = 1
	log, err := core.Open(cfg, n.now)
	if err != nil {
		tb.Fatal(err)
	}
	n.log = log
	for log.Phase() == core.Opening {
		n.run(core.Hot)
	}
	for range 2000 { // the index of the active segment, queues and buffers get their size
		n.commit(64)
	}
	return n
}

func (n *null) run(lane core.Lane) {
	if e := n.log.Next(n.now, lane); e != nil {
		n.log.Complete(n.now, e, nil)
	}
}

// commit appends k batches and commits them at once.
func (n *null) commit(k int) {
	n.now.Mono += 1000
	for range k {
		if _, err := n.log.Append(n.now, &n.b); err != nil {
			panic(err)
		}
	}
	before := n.log.Committed()
	for range 4 {
		n.run(core.Tail)
		if n.log.Committed() > before {
			break
		}
	}
	for _, ok := n.log.NextOutcome(); ok; _, ok = n.log.NextOutcome() {
	}
	if n.log.Committed() != n.log.End() {
		panic("not committed")
	}
}

// BenchmarkCore is Append, Next and Complete for one batch, in commits of 1 and of 64; the budget is
// 100 ns a batch at 64 and no allocation.
func BenchmarkCore(b *testing.B) {
	for _, k := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("batches=%d", k), func(b *testing.B) {
			n := newNull(b, segment.OnCommit)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				n.commit(k)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(k), "ns/batch")
		})
	}
}
