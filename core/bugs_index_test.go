package core_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

// forgeEntry changes the k-th entry of a sidecar's first block and makes the block's checksum right.
func forgeEntry(t *testing.T, cfg core.Config, name string, b []byte, k int, edit func(entry []byte)) []byte {
	t.Helper()
	_, id, _, _ := segment.ParseName(name)
	f, l, ok := segment.ReadTrailer(b, int64(len(b)), cfg.LogID, id, true)
	if !ok {
		t.Fatal("not a sidecar")
	}
	const head, entry = 16, 24
	edit(b[head+entry*k : head+entry*(k+1)])
	table := crc32.MakeTable(crc32.Castagnoli)
	var seed []byte
	seed = binary.LittleEndian.AppendUint64(seed, uint64(l.Pos))
	seed = binary.LittleEndian.AppendUint64(seed, uint64(f.DataEnd))
	seed = binary.LittleEndian.AppendUint32(seed, f.Chain)
	crc := crc32.Update(segment.PlacementSeed(cfg.LogID, id), table, seed)
	block := b[:head+entry*int(l.Entries)]
	crc = crc32.Update(crc, table, block[:12])
	binary.LittleEndian.PutUint32(b[12:], crc32.Update(crc, table, block[head:]))
	return b
}

// TestIX8IndexEntriesThatAreOff: entries of an index, its checksum right, that point some bytes
// beside the batch, into a payload, or to another batch; or that claim other offsets. No read is
// ever misled, and none takes bytes of a payload for a length.
func TestIX8IndexEntriesThatAreOff(t *testing.T) {
	cfg := tableConfig()
	cfg.IndexSpacingBytes = 1
	img := withSidecar(t, cfg)
	name := img.derived()[0]
	le := binary.LittleEndian
	lies := []struct {
		name string
		edit func(e []byte, by int64)
	}{
		{"position", func(e []byte, by int64) { le.PutUint64(e[8:], le.Uint64(e[8:])+uint64(by)) }},
		{"offset", func(e []byte, by int64) { le.PutUint64(e, le.Uint64(e)+uint64(by)) }},
		{"both", func(e []byte, by int64) {
			le.PutUint64(e, le.Uint64(e)+uint64(by))
			le.PutUint64(e[8:], le.Uint64(e[8:])+uint64(by))
		}},
	}
	for _, lie := range lies {
		t.Run(lie.name, func(t *testing.T) {
			for _, k := range []int{0, 1, 17, 38} {
				for _, by := range []int64{1, 2, 7, 39, 40, 41, 111, 112, 113, 512, 1024, 1 << 40, -1, -40, -512, -1 << 62} {
					r := newRig(t)
					r.restore(img.edited(name, func(b []byte) []byte {
						return forgeEntry(t, cfg, name, b, k, func(e []byte) { lie.edit(e, by) })
					}))
					r.open(cfg)
					r.wantMarks(core.MarkSidecarUsed)
					for o := range core.Offset(40) {
						before := r.disk.Counts().ReadBytes
						got, err := r.readSome(o, 1)
						if err != nil || len(got) == 0 || got[0] != uint64(o) {
							t.Fatalf("entry %d off by %d: offset %d: %v, %v", k, by, o, got, err)
						}
						if n := r.disk.Counts().ReadBytes - before; n > 128<<10 {
							t.Fatalf("entry %d off by %d: offset %d costs %d bytes", k, by, o, n)
						}
					}
				}
			}
		})
	}
}

// TestXT1ReaderBesideATrim: a reader stands at offset 6 while [4, 6] is let go. Whatever the order of
// the reader's steps and the trim's, it gets its records or *TrimmedError with the new start: never
// another error, never a record twice.
func TestXT1ReaderBesideATrim(t *testing.T) {
	for before := range 12 { // steps of the trim before the reader plans
		for between := range 12 { // and between its plan and its fetch
			r := newRig(t)
			r.restore(rolledBy(t, 12, 3))
			r.open(tableConfig())
			if err := r.log.Trim(r.now, 9); err != nil {
				t.Fatal(err)
			}
			r.steps(before)
			var v core.View
			var c core.Cursor
			c.Reset(core.Position{Offset: 6})
			next, trimmed := core.Offset(6), false
			for round := 0; next < 12 && !trimmed; round++ {
				if round > 20 {
					t.Fatalf("%d and %d steps: the reader does not get on at %d", before, between, next)
				}
				r.log.FillView(&v)
				f, err := c.Next(&v, r.log.Committed(), 4096)
				var gone *core.TrimmedError
				if errors.As(err, &gone) {
					if gone.Requested != next || gone.Start != 9 {
						t.Fatalf("%v at %d", gone, next)
					}
					trimmed = true
					break
				}
				if err != nil {
					t.Fatalf("%d and %d steps: %v", before, between, err)
				}
				r.steps(between)
				if err := c.Complete(f, r.store.Fetch(f, &r.handle)); err != nil {
					t.Fatalf("%d and %d steps: %v", before, between, err)
				}
				for b, ok := c.Batch(); ok; b, ok = c.Batch() {
					if b.Base != next || binary.LittleEndian.Uint64(b.Payload) != uint64(next) {
						t.Fatalf("record %d at %d", b.Base, next)
					}
					next = b.End()
				}
			}
			for r.stepping != nil {
				r.steps(1)
			}
			r.pump()
			if r.log.Start() != 9 || len(segments(r.files())) != 1 {
				t.Fatalf("start %d, segments %v", r.log.Start(), segments(r.files()))
			}
			r.wantRecords(9, 12)
			_ = r.handle.Close()
		}
	}
}

// steps runs n steps of effects, of whatever lane has one.
func (r *rig) steps(n int) {
	for range n {
		if r.stepping == nil {
			for lane := range core.LaneCount {
				if e := r.log.Next(r.now, lane); e != nil {
					r.stepping = e
					break
				}
			}
		}
		if r.stepping == nil {
			return
		}
		done, err := r.store.Step(r.stepping)
		if done || err != nil {
			e := r.stepping
			r.stepping = nil
			r.log.Complete(r.now, e, err)
		}
	}
}

// rolledBy is a closed log of n records, so many a segment.
func rolledBy(t *testing.T, n, each int) image {
	t.Helper()
	r := newRig(t)
	r.open(tableConfig())
	for i := 0; i < n; i += each {
		r.put(i, i+each, 40)
		if err := r.log.Roll(r.now); err != nil {
			t.Fatal(err)
		}
		r.pump()
	}
	r.close()
	return imageOf(r)
}

// TestXT2EveryReadGetsOn: whatever a read leaves out - records before the offset asked for, records
// below Start inside a batch, a budget of one byte - each fetch ends in records or in the next way to
// find them, and a reader at the end has nothing to fetch.
func TestXT2EveryReadGetsOn(t *testing.T) {
	r, cfg := ready(t, 0, nil)
	for i := range 8 {
		b := numbered(7*i, 7, 1200)
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
		r.pump()
	}
	if err := r.log.Trim(r.now, 10); err != nil { // inside the second batch
		t.Fatal(err)
	}
	r.pump()
	r.kill()
	img := imageOf(r)
	for _, spoilt := range []image{img, img.without(img.derived()...)} {
		r.restore(spoilt)
		r.open(cfg)
		var v core.View
		var c core.Cursor
		r.log.FillView(&v)
		for from := core.Offset(10); from <= 56; from++ {
			for _, bytes := range []int{1, 512, 1 << 20} {
				c.Reset(core.Position{Offset: from})
				idle := 0
				for next := from; next < 56; {
					f, err := c.Next(&v, r.log.Committed(), bytes)
					if err != nil || f == nil {
						t.Fatalf("from %d, %d bytes, at %d: %v, %v", from, bytes, next, f, err)
					}
					if err := c.Complete(f, r.store.Fetch(f, &r.handle)); err != nil {
						t.Fatal(err)
					}
					idle++
					for b, ok := c.Batch(); ok; b, ok = c.Batch() {
						next, idle = b.End(), 0
					}
					if idle > 40 { // 8 batches, walked from the first one in pieces of a header
						t.Fatalf("from %d, %d bytes: stuck at %d", from, bytes, next)
					}
				}
				if f, err := c.Next(&v, r.log.Committed(), bytes); f != nil || err != nil {
					t.Fatalf("at the end: %v, %v", f, err)
				}
			}
		}
		_ = r.handle.Close()
		r.kill()
	}
}

// TestXT4RetentionOvertakesAReader: the file of a fetch that is planned goes before it is carried
// out. That reader gets *TrimmedError with what it asked for and what is oldest; another one that
// reads further on notices nothing.
func TestXT4RetentionOvertakesAReader(t *testing.T) {
	cfg := tableConfig()
	cfg.RetentionAge = hour
	r := newRig(t)
	r.restore(rolledBy(t, 12, 3))
	r.open(cfg)
	r.put(12, 14, 40)
	var v core.View
	var slow, fast core.Cursor
	r.log.FillView(&v)
	slow.Reset(core.Position{Offset: 1})
	fast.Reset(core.Position{Offset: 12})
	f1, err1 := slow.Next(&v, r.log.Committed(), 4096)
	f2, err2 := fast.Next(&v, r.log.Committed(), 4096)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	r.pass(hour + cfg.RetentionCheckInterval)
	r.wantMarks(core.MarkRetentionAge, core.MarkRemoved)
	if err := errors.Join(slow.Complete(f1, r.store.Fetch(f1, &r.handle)), r.handle.Close(),
		fast.Complete(f2, r.store.Fetch(f2, &r.handle)), r.handle.Close()); err != nil {
		t.Fatal(err)
	}
	if b, ok := fast.Batch(); !ok || b.Base != 12 {
		t.Errorf("the other reader gets %v, %v", b, ok)
	}
	r.log.FillView(&v)
	for range 2 { // it stands where it stood
		var gone *core.TrimmedError
		if _, err := slow.Next(&v, r.log.Committed(), 4096); !errors.As(err, &gone) || gone.Requested != 1 || gone.Start != r.log.Start() {
			t.Fatalf("%v", err)
		}
	}
	slow.Reset(core.Position{Offset: r.log.Start()})
	if f, err := slow.Next(&v, r.log.Committed(), 4096); f == nil || err != nil {
		t.Fatalf("after it resumed at the oldest: %v", err)
	}
}

// TestXT6HoleBetweenSegments: the next offset lies in no file. Recovery refuses it, and names it;
// with allow_damaged a reader gets an error that says where the records go on.
func TestXT6HoleBetweenSegments(t *testing.T) {
	img := rolledBy(t, 12, 3)
	names := segments(img)
	for k := 1; k < 3; k++ {
		c := row{
			img:  img.without(names[k]),
			want: want{corrupt: corruptAt(names[k-1], img.batches(t, names[k-1])[2].end, core.Offset(3*k)), marks: []core.Mark{core.MarkCorrupt}},
		}
		c.check(t)
		cfg := tableConfig()
		cfg.AllowDamaged = true
		r := newRig(t)
		r.restore(c.img)
		r.open(cfg)
		got, err := r.readUntil(0)
		var damage *core.CorruptError
		if len(got) != 3*k || !errors.As(err, &damage) || damage.Offset != core.Offset(3*k) || damage.End != core.Offset(3*k+3) {
			t.Fatalf("%d records, %v", len(got), err)
		}
		if got, err = r.readUntil(damage.End); err != nil || len(got) != 12-3*k-3 {
			t.Fatalf("behind the hole: %d records, %v", len(got), err)
		}
	}
}

// TestXT9FileShorterThanPromised: a segment ends one record, or some bytes, before the view says. The
// reader says so after a bounded number of fetches and serves everything else.
func TestXT9FileShorterThanPromised(t *testing.T) {
	img := rolledBy(t, 12, 3)
	name := segments(img)[1]
	list := img.batches(t, name)
	for _, size := range []int64{list[2].pos, list[2].pos + 50, list[2].pos + 120, list[1].pos, 512, 0} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r := newRig(t)
			r.restore(img)
			r.open(tableConfig())
			r.cutLive(name, size)
			r.disk.ResetCounts()
			_, err := r.readUntil(0)
			var damage *core.CorruptError
			if !errors.As(err, &damage) || damage.Name() != name || damage.Offset < 3 || damage.Offset > 5 {
				t.Fatalf("%v", err)
			}
			if n := r.disk.Counts().Calls[faultfs.OpRead]; n > 40 {
				t.Errorf("%d reads until it says so", n)
			}
			if got, err := r.readUntil(6); err != nil || len(got) != 6 {
				t.Errorf("the other segments: %d records, %v", len(got), err)
			}
		})
	}
}

// cutLive cuts a file under a running log, as a broken disk or an operator may.
func (r *rig) cutLive(name string, size int64) {
	r.t.Helper()
	f, err := r.disk.FS(1).Open(name, disk.Write)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
