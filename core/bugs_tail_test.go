package core_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// The tests of the bugs_*_test.go files carry the ids of failures that users of other logs reported;
// the table "Failures of other logs" in TESTING.md says which class each belongs to.

var allModes = []segment.SyncMode{segment.OnCommit, segment.Periodic, segment.NoSync}

// TestTT1CutAtEveryByte: R1..R5, each synced; the last one cut at every byte of header, payload and
// checksums. It opens, R1..R4 are there, the next offset is that of R5, and what was cut is told
// once, with file, position and bytes.
func TestTT1CutAtEveryByte(t *testing.T) {
	cfg := tableConfig()
	img := crashed(t, cfg, 5, 40)
	name := segments(img)[0]
	before, last := img.batches(t, name)[3], img.batches(t, name)[4]
	for pos := last.pos + 1; pos < last.end; pos++ {
		at := before.end // no header verifies: what follows the record before it is torn
		if pos >= last.pos+segment.BatchHeaderBytes {
			at = last.pos
		}
		r := newRig(t)
		r.restore(img.cut(name, pos))
		r.open(cfg)
		p := r.log.Plan()
		if !p.Torn || p.Files[p.TornFile].Entry.ID != segment.MakeID(1, 1) || p.TornPos != at ||
			p.TornBytes != pos-at || r.log.Stats().TornBytes != pos-at {
			t.Fatalf("cut at %d: torn %v at %d, %d bytes; want at %d", pos, p.Torn, p.TornPos, p.TornBytes, at)
		}
		r.wantRecords(0, 4)
		if r.log.End() != 4 {
			t.Fatalf("cut at %d: the next offset is %d", pos-last.pos, r.log.End())
		}
		r.close()
		r.open(cfg)
		if p := r.log.Plan(); p.Torn {
			t.Fatalf("cut at %d: it is told again", pos-last.pos)
		}
		r.put(4, 5, 40)
		r.wantRecords(0, 5)
	}
}

// TestTT2AppendsAfterATornTail: append and sync, tear the next batch, reopen, append and sync, crash:
// over and over. All that was acked is there, with dense offsets.
func TestTT2AppendsAfterATornTail(t *testing.T) {
	for _, end := range []string{"kill", "power"} {
		cfg := tableConfig()
		r := newRig(t)
		r.disk.SetFaults(faultfs.Set(faultfs.D1Sectors, faultfs.D2Torn, faultfs.D3Size))
		var draw faultfs.Rand
		draw.Seed(7)
		r.open(cfg)
		n, torn := 0, 0
		for range 8 {
			r.put(n, n+2, 300)
			n += 2
			b := numbered(n, 1, 1500) // its write goes out, its sync never comes
			if _, err := r.log.Append(r.now, &b); err != nil {
				t.Fatal(err)
			}
			e := r.issue(core.Tail).(*core.Commit)
			if done, err := r.store.Step(e); done || err != nil {
				t.Fatalf("the write alone: done %v, %v", done, err)
			}
			r.kill()
			if end == "power" {
				r.disk.PowerLoss(&draw, true)
				r.store.Reset(r.disk.FS(0))
			} else {
				r.restore(imageOf(r).cut(segment.Name(e.Base, e.Segment), e.Pos+e.Bytes/2))
			}
			r.open(cfg)
			if r.log.Marks().Has(core.MarkTornTail) {
				torn++
			}
			if got := int(r.log.End()); got < n || got > n+1 {
				t.Fatalf("%d records, %d acked", got, n)
			}
			n = int(r.log.End())
			r.wantRecords(0, n)
		}
		if torn < 3 {
			t.Errorf("%s: only %d tails were torn", end, torn)
		}
		r.close()
		r.open(cfg)
		r.wantRecords(0, n)
	}
}

// TestTT4EndAndReadsAgree: the last commit, a gathered write of three batches, split at every sector
// and at every byte of the first ones. After each open every offset in [Start, End) can be read, and
// none behind.
func TestTT4EndAndReadsAgree(t *testing.T) {
	for _, mode := range allModes {
		cfg := tableConfig()
		cfg.Sync = mode
		r := newRig(t)
		r.open(cfg)
		r.put(0, 3, 700)
		for i := 3; i < 6; i++ {
			b := numbered(i, 1, 700)
			if _, err := r.log.Append(r.now, &b); err != nil {
				t.Fatal(err)
			}
		}
		commit := r.issue(core.Tail).(*core.Commit)
		from, bytes := commit.Pos, commit.Bytes
		r.finish(commit)
		r.kill()
		img := imageOf(r)
		name := segments(img)[0]
		for cut := from; cut <= from+bytes; cut++ {
			if cut > from+200 && cut%512 > 1 && cut%512 < 511 {
				continue
			}
			r := newRig(t)
			r.restore(img.cut(name, cut))
			r.open(cfg)
			end := r.log.End()
			if end < 3 || end > 6 || end != r.log.Committed() {
				t.Fatalf("%v, cut at %d: end %d, committed %d", mode, cut, end, r.log.Committed())
			}
			for o := r.log.Start(); o < end; o++ {
				if got, err := r.readSome(o, 1); err != nil || len(got) == 0 || got[0] != uint64(o) {
					t.Fatalf("%v, cut at %d: offset %d of %d: %v, %v", mode, cut, o, end, got, err)
				}
			}
			if got, err := r.readUntil(end); err != nil || len(got) > 0 {
				t.Fatalf("%v, cut at %d: behind the end: %v, %v", mode, cut, got, err)
			}
			if r.append(9).First != end {
				t.Fatalf("%v, cut at %d: the next append does not get offset %d", mode, cut, end)
			}
		}
	}
}

// TestTT5TornInAPreparedSegment: the file is zero-filled ahead, so that its size does not end at the
// tear. Only the first n sectors of the last batch are there, the rest zeros or bytes of an earlier
// use; that is torn, never damage inside.
func TestTT5TornInAPreparedSegment(t *testing.T) {
	cfg := tableConfig()
	cfg.Preallocate, cfg.PrepareBytes = true, 8192
	img := crashed(t, cfg, 4, 2500)
	name := segments(img)[0]
	list := img.batches(t, name)
	last := list[3]
	stale := bytes.Repeat([]byte("an earlier life "), 32)
	if size := int64(len(img.get(name).data)); size < last.end+512 {
		t.Fatalf("nothing is prepared behind the last batch: %d bytes, it ends at %d", size, last.end)
	}
	for n := int64(0); n < (last.end-last.pos+511)/512; n++ {
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d sectors, stale %v", n, old), func(t *testing.T) {
				torn := img.edited(name, func(b []byte) []byte {
					for pos := last.pos + 512*n; pos < last.end; pos += 512 {
						sector := b[pos:min(pos+512, int64(len(b)))]
						clear(sector)
						if old && pos+512 < last.end { // the last one stays zero: fresh blocks
							copy(sector, stale)
						}
					}
					return b
				})
				c := row{img: torn, want: want{records: 3, absent: []core.Mark{core.MarkCorrupt, core.MarkRefusedChecksum}}}
				c.check(t)
			})
		}
	}
}

// TestTT8StaleBatchesAreNotAdopted: batches of an earlier life, or of the same life before a
// roll-back, lie whole behind the tear. None is served, no offset is given twice, and every state
// that recovery leaves opens again.
func TestTT8StaleBatchesAreNotAdopted(t *testing.T) {
	long := crashed(t, tableConfig(), 6, 300)
	name := segments(long)[0]
	t.Run("of an earlier life", func(t *testing.T) {
		cfg := tableConfig()
		r := newRig(t)
		r.restore(long.cut(name, long.batches(t, name)[3].pos))
		r.open(cfg)
		r.put(3, 5, 100)
		r.kill()
		img := imageOf(r)
		second := segments(img)[1]
		tail := long.get(name).data[long.batches(t, name)[3].pos:]
		for shift := range int64(3) { // at the same boundary and at others
			dirty := img.edited(second, func(b []byte) []byte {
				b = append(b, make([]byte, (512-len(b)%512)%512+512*int(shift))...)
				return append(b, tail...)
			})
			c := row{img: dirty, want: want{records: 5}}
			c.check(t)
		}
	})
	t.Run("of the same file", func(t *testing.T) {
		list := long.batches(t, name)
		// The log is cut at the fourth batch and shorter ones are written over it: the old sixth
		// batch is still whole behind them.
		dirty := long.edited(name, func(b []byte) []byte {
			clear(b[list[3].pos:list[5].pos])
			return b
		})
		r := newRig(t)
		r.restore(dirty)
		r.start(tableConfig())
		var damage *core.CorruptError
		if !errors.As(r.log.Err(), &damage) || damage.Offset != 3 {
			t.Fatalf("what the sixth batch proves is gone: phase %v, %v", r.log.Phase(), r.log.Err())
		}
		if writes(r.disk) != 0 {
			t.Error("it was written to")
		}
	})
	t.Run("every state opens again", func(t *testing.T) {
		r := newRig(t)
		r.open(tableConfig())
		n := 0
		for life := range 12 {
			r.put(n, n+2, 200)
			n += 2
			r.kill()
			img := imageOf(r)
			names := segments(img)
			last := names[len(names)-1]
			list := img.batches(t, last)
			if life%2 == 0 { // torn, and something stale behind
				cut := list[len(list)-1].pos
				n--
				r.restore(img.edited(last, func(b []byte) []byte {
					clear(b[cut+100:])
					return append(b, long.get(name).data[:2048]...)
				}))
			}
			r.open(tableConfig())
			r.wantRecords(0, n)
		}
	})
}
