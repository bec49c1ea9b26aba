package core_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

func wantText(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %q", w, err)
		}
	}
}

// failCommit lets the write of one append fail: a segment is made for it, and stays empty.
func (r *rig) failCommit() {
	r.t.Helper()
	r.disk.Arm(faultfs.OpWrite, faultfs.D15Error, 1, ".seg") // behind the one of the header
	r.append(999)
	r.pump()
	if last := r.acked[len(r.acked)-1]; r.disk.Armed() > 0 || !errors.Is(last.Err, core.ErrWriteFailed) {
		r.t.Fatalf("the write did not fail: %v", last)
	}
}

// TestSR3OffsetsFarApart: batches of more than 2^31 and 2^32 records in one segment, and offsets at the
// end of their range. Nothing is cut to 32 bits, and what does not fit is refused.
func TestSR3OffsetsFarApart(t *testing.T) {
	huge := func(i int, records uint32) *core.Batch {
		b := batchOf(i)
		b.Kind, b.Records = segment.KindKafka, records
		return &b
	}
	r, cfg := ready(t, 1, nil)
	ends := []core.Offset{1}
	for i, records := range []uint32{1<<31 - 1, 1<<31 + 5, math.MaxUint32, 1, math.MaxUint32} {
		ticket, err := r.log.Append(r.now, huge(i, records))
		if err != nil || ticket.First != ends[i] || ticket.End != ends[i]+core.Offset(records) {
			t.Fatalf("%+v, %v", ticket, err)
		}
		ends = append(ends, ticket.End)
		r.pump()
	}
	look := func() {
		t.Helper()
		r.log.FillView(&r.view)
		for _, o := range []core.Offset{0, 1, 1 << 31, 1<<31 + 1, ends[2], ends[3] - 1, ends[4], ends[5] - 1} {
			r.cursor.Reset(core.Position{Offset: o})
			for range 10 {
				f, err := r.cursor.Next(&r.view, r.log.Committed(), 512)
				if err != nil {
					t.Fatal(o, err)
				}
				if f.Pos == 0 && f.Extent.Index == core.IndexCore {
					f.Pos, _, _ = r.log.Locate(f.Extent.Segment, f.From)
				}
				if err := r.cursor.Complete(f, r.store.Fetch(f, &r.handle)); err != nil {
					t.Fatal(o, err)
				}
				if b, ok := r.cursor.Batch(); ok {
					if o < b.Base || o >= b.End() {
						t.Fatalf("offset %d: batch [%d, %d)", o, b.Base, b.End())
					}
					break
				}
			}
		}
		_ = r.handle.Close()
	}
	look()
	_ = r.log.Roll(r.now)
	r.pump()
	look()
	r.kill()
	r.open(cfg)
	if r.log.End() != ends[5] {
		t.Fatalf("end %d, want %d", r.log.End(), ends[5])
	}
	look()
	if err := r.log.Trim(r.now, ends[4]); err != nil {
		t.Fatal(err)
	}
	r.pump()
	r.close()

	// A log that was trimmed up to the end of the range.
	files := r.files()
	for _, room := range []core.Offset{0, 1, 10} {
		const limit = core.Offset(1<<62 - 1)
		s := superOf(t, files, 0)
		s.Start, s.HotStart, s.Frontier, s.Committed = limit-room, limit-room, limit-room, limit-room
		s.Lineage = append(s.Lineage[:0], segment.Lineage{Epoch: s.Epoch, First: 0})
		kept := append([]savedFile(nil), image(files).without(segments(files)...)...)
		setSupers(t, kept, s)
		r.restore(kept)
		r.open(cfg)
		if _, err := r.log.Append(r.now, huge(1, uint32(room)+1)); !errors.Is(err, core.ErrOutOfRange) {
			t.Errorf("room for %d records: %v", room, err)
		}
		if room > 0 {
			if ticket, err := r.log.Append(r.now, huge(1, uint32(room))); err != nil || ticket.End != limit {
				t.Errorf("the last %d records: %+v, %v", room, ticket, err)
			}
			r.pump()
		}
		if _, err := r.log.Append(r.now, huge(1, 1)); !errors.Is(err, core.ErrOutOfRange) {
			t.Errorf("behind the last offset: %v", err)
		}
		r.close()
		r.open(cfg)
		if r.log.End() != limit {
			t.Errorf("end %d after a restart", r.log.End())
		}
	}
}

// TestOF1OffsetsGivenAgain: ten records are acked from the page cache, four of them on the device; power
// fails, and others are appended. No (epoch, offset) ever names two records, and a reader that saw
// what is gone is told.
func TestOF1OffsetsGivenAgain(t *testing.T) {
	for _, mode := range []segment.SyncMode{segment.Periodic, segment.NoSync} {
		r, cfg := ready(t, 4, func(c *core.Config) { c.Sync = mode })
		if err := r.log.Trim(r.now, 1); err != nil { // syncs the four
			t.Fatal(err)
		}
		r.pump()
		r.put(4, 10, 20)
		if len(r.acked) != 10 {
			t.Fatalf("%d acks", len(r.acked))
		}
		epoch := r.log.Epoch()
		r.power()
		r.open(cfg)
		if r.log.End() != 4 || r.log.Epoch() <= epoch {
			t.Fatalf("end %d, epoch %d after %d", r.log.End(), r.log.Epoch(), epoch)
		}
		for o := range core.Offset(7) {
			if ticket := r.append(100 + int(o)); ticket.First != 4+o || ticket.Epoch == epoch {
				t.Fatalf("%+v", ticket)
			}
			r.pump()
		}
		var v core.View
		r.log.FillView(&v)
		for o := core.Offset(2); o <= 12; o++ {
			var c core.Cursor
			c.Reset(core.Position{Offset: o, Epoch: epoch}) // saw the record before o in the first life
			_, err := c.Next(&v, r.log.Committed(), 512)
			var diverged *core.DivergedError
			if gone := o > 4; errors.As(err, &diverged) != gone {
				t.Errorf("%v, a reader at %d: %v", mode, o, err)
			}
		}
	}
}

// everyCall runs do with the process dying at its n-th call, for every n until it outlives the call. do
// begins on a log that was opened.
func everyCall(t *testing.T, cfg core.Config, img image, do func(r *rig), check func(r *rig, call int64)) {
	t.Helper()
	for call := int64(0); ; call++ {
		for _, power := range []bool{false, true} {
			r := newRig(t)
			r.restore(img)
			r.open(cfg)
			r.disk.FS(0).SetCallBudget(call, false)
			do(r)
			if !r.disk.FS(0).Dead() {
				if call == 0 {
					t.Fatal("no call was made")
				}
				return
			}
			if power {
				r.power()
			} else {
				r.kill()
			}
			r.disk.Heal()
			r.open(cfg)
			check(r, call)
		}
	}
}

// TestOF2EmptyLogKeepsItsEnd: every record is trimmed away, and the process dies at each step. The next
// offset is the old end, also in a log that holds no segment any more.
func TestOF2EmptyLogKeepsItsEnd(t *testing.T) {
	everyCall(t, tableConfig(), rolled(t), func(r *rig) {
		_ = r.log.Trim(r.now, 6)
		r.pump()
		r.log.Close(r.now)
		r.pump()
	}, func(r *rig, call int64) {
		if r.log.End() != 6 || r.log.Start() != 0 && r.log.Start() != 6 {
			r.t.Fatalf("call %d: [%d, %d)", call, r.log.Start(), r.log.End())
		}
		if got := r.append(6).First; got != 6 {
			r.t.Fatalf("call %d: the next append gets %d", call, got)
		}
		r.pump()
		r.wantRecords(int(r.log.Start()), 7)
	})
	r := newRig(t)
	r.restore(rolled(t))
	r.open(tableConfig())
	_ = r.log.Trim(r.now, 6)
	r.pump()
	r.close()
	if n := len(segments(r.files())); n != 0 {
		t.Fatalf("%d segments are left", n)
	}
	for range 3 {
		r.open(tableConfig())
		if r.log.Start() != 6 || r.log.End() != 6 {
			t.Fatalf("[%d, %d)", r.log.Start(), r.log.End())
		}
		r.kill()
	}
}

// TestOF5CutRightAfterARoll: the first commit of a new segment is undone (the only way in which a log of
// this kind ever gets shorter), and the process dies at each step. The sealed segment before it has
// its footer, and the open is clean.
func TestOF5CutRightAfterARoll(t *testing.T) {
	everyCall(t, tableConfig(), rolled(t), func(r *rig) {
		r.disk.Arm(faultfs.OpWrite, faultfs.D12Applied, 1, ".seg")
		_, _ = r.log.Append(r.now, ref(numbered(6, 1, 900)))
		r.pump()
		r.log.Close(r.now)
		r.pump()
	}, func(r *rig, call int64) {
		r.wantNoMarks(core.MarkFooterDerived, core.MarkCorrupt)
		end := int(r.log.End())
		if end > 7 {
			r.t.Fatalf("call %d: end %d", call, end)
		}
		r.wantRecords(0, end)
		r.put(end, end+2, 20)
		r.close()
		r.open(tableConfig())
		r.wantMarks(core.MarkCleanOpen)
		r.wantRecords(0, end+2)
	})
}

// TestOF7RetryAfterUnknownOutcome: the process dies at each call of an append; the producer sends the
// same sequence again in the next life, and once more. The log holds it once, at one offset.
func TestOF7RetryAfterUnknownOutcome(t *testing.T) {
	send := func(r *rig) (core.Ticket, error) {
		b := batchOf(6)
		b.Producer = core.Producer{ID: 5, Epoch: 1, Sequence: 0}
		return r.log.Append(r.now, &b)
	}
	everyCall(t, tableConfig(), rolled(t), func(r *rig) {
		_, _ = send(r)
		r.pump()
		r.log.Close(r.now)
		r.pump()
	}, func(r *rig, call int64) {
		for range 2 {
			ticket, err := send(r)
			if err != nil || ticket.First != 6 {
				r.t.Fatalf("call %d: %+v, %v", call, ticket, err)
			}
			r.pump()
		}
		r.wantRecords(0, 7)
		r.kill()
		r.open(tableConfig())
		if ticket, err := send(r); err != nil || !ticket.Duplicate || ticket.First != 6 {
			r.t.Fatalf("call %d, in a third life: %+v, %v", call, ticket, err)
		}
		r.wantRecords(0, 7)
	})
}

// TestOF8OldSegmentsComeBack: files that were removed are there again, because an unlink was undone or
// somebody restored them: below Start, void by lineage, or superseded. None is served, and order and
// offsets stay what they were.
func TestOF8OldSegmentsComeBack(t *testing.T) {
	img := rolled(t)
	leftover, start := trimmed(t, img)
	whole := crashed(t, tableConfig(), 1, 20)
	for _, c := range []row{
		{
			name: "below Start", img: leftover,
			want: want{start: start, records: 6, gone: []string{segments(img)[0]}, marks: []core.Mark{core.MarkLeftover}},
		},
		{name: "void by lineage", img: voided(t), want: want{records: 5, marks: []core.Mark{core.MarkVoidFile}}},
		{
			name: "superseded", img: opened(t, whole).with(segName(0, 1, 1), whole.get(segName(0, 1, 1)).data),
			want: want{records: 1, gone: []string{segName(0, 1, 1)}, marks: []core.Mark{core.MarkSuperseded}},
		},
	} {
		t.Run(c.name, c.check)
	}
}
