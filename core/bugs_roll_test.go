package core_test

import (
	"fmt"
	"math"
	"syscall"
	"testing"

	"varve/core"
	"varve/core/segment"
)

// TestSR1RollOfAnEmptySegment: the active segment took no batch, because its first write failed; it grows
// old, and is rolled by hand, again and again, and after a restart. Nothing happens, and appends work.
func TestSR1RollOfAnEmptySegment(t *testing.T) {
	cfg := tableConfig()
	r := newRig(t)
	r.open(cfg)
	for life := range 3 {
		r.failCommit()
		for range 5 {
			r.pass(2 * cfg.SegmentAge)
			if err := r.log.Roll(r.now); err != nil {
				t.Fatal(err)
			}
			r.pump()
		}
		if s := r.log.Stats(); s.Rolls != 0 || len(segments(r.files())) != life+1 {
			t.Fatalf("life %d: %d rolls, %v", life, s.Rolls, segments(r.files()))
		}
		r.put(life, life+1, 30)
		r.wantRecords(0, life+1)
		r.close()
		r.open(cfg)
	}
	r.failCommit() // and a close or a kill of an empty one
	r.close()
	r.open(cfg)
	r.failCommit()
	r.kill()
	r.open(cfg)
	r.put(3, 5, 30)
	r.wantRecords(0, 5)
}

// TestSR6SegmentAge: ages of nothing, below nothing, or so small that each append would roll. They are
// refused, by name.
func TestSR6SegmentAge(t *testing.T) {
	for _, age := range []core.Time{0, -2, math.MinInt64, 1, 999_999, math.MaxInt64} {
		cfg := tableConfig()
		cfg.SegmentAge = age
		if _, err := core.Open(cfg, core.Now{}); err == nil {
			t.Errorf("segment_age %d is accepted", age)
		} else {
			wantText(t, err, "segment_age", fmt.Sprint(age))
		}
	}
	cfg := tableConfig()
	cfg.SegmentAge = 1_000_000
	r := newRig(t)
	r.open(cfg)
	for i := range 200 { // 20 ms of a busy writer
		r.append(i)
		r.pump()
		r.pass(100_000)
	}
	if n := r.log.Stats().Rolls; n > 30 {
		t.Errorf("%d segments in 20 ms", n)
	}
	for _, bytes := range []int64{0, 1, 512, 1023} {
		cfg := tableConfig()
		cfg.SegmentBytes = bytes
		if _, err := core.Open(cfg, core.Now{}); err == nil {
			t.Errorf("segment_bytes %d is accepted", bytes)
		}
	}
}

// TestSR7AlternatingTimes: records of now and of a month ago by turns, 10,000 of them. Rolls go by the
// clock of the appends: there is one segment.
func TestSR7AlternatingTimes(t *testing.T) {
	cfg := tableConfig()
	cfg.SegmentBytes = 64 << 20
	r := newRig(t)
	r.open(cfg)
	for i := range 10_000 {
		b := batchOf(i)
		b.MaxTime = r.now.Wall - core.Time(i%2)*30*24*hour
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			r.pump()
			r.now.Mono++
			r.now.Wall++
		}
	}
	r.pump()
	r.log.Tick(r.now)
	r.pump()
	if n := len(segments(r.files())); n != 1 || r.log.Stats().Rolls != 0 {
		t.Errorf("%d segments", n)
	}
}

// TestSR9CrashInASegmentHeader: the creation of a segment, cut at each byte of its header. The next open
// does without it, makes a new one, and gives the same offset.
func TestSR9CrashInASegmentHeader(t *testing.T) {
	whole := unfinished(t, nil)
	name := segName(2, 2, 2)
	size := int64(len(whole.get(name).data))
	if size != 512 {
		t.Fatalf("a header of %d bytes", size)
	}
	for cut := int64(0); cut <= size; cut++ {
		if cut > 160 && cut < size-2 {
			cut += 15 // padding
		}
		for _, zeros := range []bool{false, true} { // cut short; or its blocks never written
			img := whole.cut(name, cut)
			if zeros {
				img = whole.edited(name, func(b []byte) []byte { clear(b[cut:]); return b })
			}
			r := newRig(t)
			r.restore(img)
			r.open(tableConfig())
			r.wantMarks(core.MarkUnfinished)
			if r.append(2).First != 2 {
				t.Fatalf("cut at %d: offset 2 is not given again", cut)
			}
			r.pump()
			r.wantRecords(0, 3)
			if imageOf(r).get(name) != nil {
				t.Fatalf("cut at %d: %s is still there", cut, name)
			}
		}
	}
}

// TestSR10LargeFiles: commits, seals and look-ups in a segment that passes 2 GiB and 4 GiB. No disk is
// written: every effect is only looked at.
func TestSR10LargeFiles(t *testing.T) {
	const most = 1 << 30
	memory, err := syscall.Mmap(-1, 0, most, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE) // never touched
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory) //nolint:errcheck // it is there
	payload := memory[:most-segment.BatchHeaderBytes]
	cfg := tableConfig()
	cfg.SegmentBytes, cfg.MaxBatchBytes, cfg.PendingBytes = 1<<40, 1<<30, 4<<30
	r := newRig(t)
	r.open(cfg)
	at, want := int64(0), int64(512)
	for i := range 6 {
		p := payload
		if i == 2 {
			p = payload[:len(payload)-511] // passes 2^31 and 2^32 off a boundary
		}
		b := core.Batch{Payload: p, Kind: segment.KindRecords, Records: 1, Producer: core.NoProducer}
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
		for r.log.End() != r.log.Committed() {
			e := r.issue(core.Tail)
			if c, ok := e.(*core.Commit); ok {
				if c.Pos != want || c.Bytes != int64(len(p))+segment.BatchHeaderBytes {
					t.Fatalf("batch %d: %d bytes at %d, want at %d", i, c.Bytes, c.Pos, want)
				}
				at = c.Pos
				want = (c.Pos + c.Bytes + 511) &^ 511
				r.log.Complete(r.now, e, nil)
				continue
			}
			r.finish(e)
		}
		pos, base, ok := r.log.Locate(segment.MakeID(1, 1), core.Offset(i))
		if !ok || pos != at || base != core.Offset(i) {
			t.Fatalf("offset %d is looked up at %d, want %d", i, pos, at)
		}
	}
	_ = r.log.Roll(r.now)
	seal, ok := r.issue(core.Tail).(*core.Seal)
	if !ok || seal.Pos != want || seal.Bytes != want+int64(len(seal.Footer)) || seal.Pos < 5<<30 {
		t.Fatalf("seal at %d, to %d bytes, want at %d", seal.Pos, seal.Bytes, want)
	}
	f, l, ok := segment.ReadTrailer(seal.Footer, seal.Bytes, cfg.LogID, segment.MakeID(1, 1), false)
	if !ok || f.DataEnd != at+1<<30 || f.Batches != 6 || l.Pos != seal.Pos {
		t.Fatalf("footer %+v", f)
	}
	if _, _, ok := segment.ReadTrailer(seal.Footer, seal.Bytes-1<<32, cfg.LogID, segment.MakeID(1, 1), false); ok {
		t.Error("the footer verifies in a file 4 GiB shorter")
	}
}
