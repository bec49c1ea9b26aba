package disk_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// extent describes the writer's segment to readers.
func (w *writer) extent(index core.IndexKind) core.Extent {
	w.t.Helper()
	for _, x := range w.list().Files {
		if x.ID == w.h.ID {
			return core.Extent{First: w.h.Base, End: w.next, Segment: x.ID, Base: x.Base, Epoch: 3, Bytes: x.Bytes, DataPos: 512, Sector: 512, Index: index}
		}
	}
	w.t.Fatal("the segment is not there")
	return core.Extent{}
}

// first decodes the batch at the start of a fetch.
func first(t *testing.T, f *core.Fetch) segment.Identity {
	t.Helper()
	_, i, _, ok := segment.ReadBatchHeader(f.Buf, segment.PlacementSeed(logID, f.Extent.Segment), segment.IdentitySeed(logID))
	if !ok {
		t.Fatalf("no batch at %d", f.At)
	}
	return i
}

func TestFetchFindsOffsets(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		w.segment(1, 600, true)
		entry := w.list().Files[0]
		w.run(&core.SaveIndex{File: entry, LogID: logID, End: w.next, IndexSpacingBytes: 1})
		var h disk.Handle
		f := &core.Fetch{LogID: logID, Bytes: 200}
		for _, index := range []core.IndexKind{core.IndexFooter, core.IndexSidecar, core.IndexNone, core.IndexCore} {
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			for o := core.Offset(0); o < w.next; o += 37 {
				f.Extent, f.From, f.Pos = w.extent(index), o, 0
				if err := s.Fetch(f, &h); err != nil {
					t.Fatal(err)
				}
				i := first(t, f)
				exact := index == core.IndexFooter || index == core.IndexSidecar
				if exact && (i.Base > o || i.End() <= o) || !exact && f.At != 512 {
					t.Fatalf("index %d: offset %d: starts at %d, byte %d", index, o, i.Base, f.At)
				}
				if want := w.record[i.Base]; !bytes.Equal(f.Buf[112:112+min(len(want), len(f.Buf)-112)], want) {
					t.Fatalf("offset %d: other bytes", o)
				}
			}
		}
		f.Extent, f.From, f.NoIndex = w.extent(core.IndexFooter), 700, true
		if err := s.Fetch(f, &h); err != nil || f.At != 512 {
			t.Errorf("without the index: at %d, %v", f.At, err)
		}
		f.NoIndex, f.Pos = false, 1024
		if err := s.Fetch(f, &h); err != nil || f.At != 1024 {
			t.Errorf("with a position: at %d, %v", f.At, err)
		}
		_ = h.Close()
		_ = s.Close()
	})
}

func TestFetchBounds(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		w.run(w.create(1))
		w.run(w.cut(bytes.Repeat([]byte{7}, 9000), true))
		w.run(w.cut(bytes.Repeat([]byte{8}, 30), true))
		var h disk.Handle
		f := &core.Fetch{Extent: w.extent(core.IndexCore), LogID: logID, Bytes: 1}
		fetch := func(pos int64, n int) {
			t.Helper()
			f.Pos, f.Bytes = pos, n
			if err := s.Fetch(f, &h); err != nil {
				t.Fatal(err)
			}
		}
		fetch(512, 1)
		if len(f.Buf) != 9112 || f.EOF {
			t.Errorf("a long batch: %d bytes, EOF %v", len(f.Buf), f.EOF)
		}
		fetch(512, 1<<20)
		if end := w.pos - 512; int64(len(f.Buf)) > end || !f.EOF {
			t.Errorf("the whole file: %d bytes, EOF %v", len(f.Buf), f.EOF)
		}
		fetch(1<<20, 100)
		if len(f.Buf) != 0 || !f.EOF {
			t.Errorf("beyond the end: %d bytes, EOF %v", len(f.Buf), f.EOF)
		}
		fetch(9728, 100)
		if i := first(t, f); i.Base != 2 || len(f.Buf) < 142 {
			t.Errorf("the last batch: base %d, %d bytes", i.Base, len(f.Buf))
		}
		x := f.Extent
		f.Extent.Segment, f.Pos = 99, 0
		if err := s.Fetch(f, &h); !errors.Is(err, disk.ErrNotExist) || !f.Missing {
			t.Errorf("a file that is gone: %v, missing %v", err, f.Missing)
		}
		f.Extent = x
		if fetch(512, 10); f.Missing {
			t.Error("missing stays set")
		}
		_ = h.Close()
		_ = s.Close()
	})
}

// A damaged footer or sidecar costs time, not records.
func TestFetchWithDamagedIndex(t *testing.T) {
	for _, index := range []core.IndexKind{core.IndexFooter, core.IndexSidecar} {
		d := faultfs.New()
		s := disk.NewStore(d.FS(0))
		w := newWriter(t, s)
		w.segment(1, 400, true)
		w.run(&core.SaveIndex{File: w.list().Files[0], LogID: logID, End: w.next, IndexSpacingBytes: 1})
		name, pos := segment.Name(0, w.h.ID), w.footer.Pos()
		if index == core.IndexSidecar {
			name, pos = string(segment.AppendIndexName(nil, 0, w.h.ID)), 0
		}
		file, err := d.FS(0).Open(name, disk.Write)
		if err != nil {
			t.Fatal(err)
		}
		n := w.footer.Bytes()
		b := make([]byte, n)
		if _, err := file.ReadAt(b, pos); err != nil {
			t.Fatal(err)
		}
		f := &core.Fetch{Extent: w.extent(index), LogID: logID, From: 500, Bytes: 100}
		fallen := 0
		for at := range b {
			b[at] ^= 16
			if _, err := file.WriteAt([][]byte{b}, pos); err != nil {
				t.Fatal(err)
			}
			var h disk.Handle
			if err := s.Fetch(f, &h); err != nil {
				t.Fatal(err)
			}
			if i := first(t, f); i.Base != 500 && f.At != 512 {
				t.Fatalf("damage at byte %d of the footer: led to offset %d at %d", at, i.Base, f.At)
			}
			if f.At == 512 {
				fallen++
			}
			_ = h.Close()
			b[at] ^= 16
		}
		if fallen < segment.TrailerBytes {
			t.Errorf("only %d damaged bytes were noticed", fallen)
		}
	}
}

func TestOffsetForTime(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		w.segment(1, 300, true)
		var h disk.Handle
		x := w.extent(core.IndexFooter)
		for _, c := range []struct {
			time core.Time
			want core.Offset
		}{{-1, 0}, {0, 0}, {1, 2}, {20000, 200}, {20001, 202}, {1 << 60, 598}} {
			pos, base, err := s.OffsetForTime(&x, logID, c.time, &h)
			if err != nil || base != c.want || pos < 512 {
				t.Errorf("time %d: offset %d at %d, want %d: %v", c.time, base, pos, c.want, err)
			}
		}
		none := w.extent(core.IndexNone)
		if pos, base, err := s.OffsetForTime(&none, logID, 20000, &h); err != nil || pos != 512 || base != 0 {
			t.Errorf("without an index: offset %d at %d: %v", base, pos, err)
		}
		gone := x
		gone.Segment = 99
		if _, _, err := s.OffsetForTime(&gone, logID, 1, &h); !errors.Is(err, disk.ErrNotExist) {
			t.Errorf("a file that is gone: %v", err)
		}
		_ = h.Close()
		_ = s.Close()
	})
}

// Lanes and readers on a real disk at once; the race detector watches.
func TestLanesInParallel(t *testing.T) {
	s := disk.NewStore(osfs.New(t.TempDir() + "/log"))
	w := newWriter(t, s)
	w.segment(1, 3, false)
	id, end := w.h.ID, w.pos
	x := w.extent(core.IndexCore)
	var wg sync.WaitGroup
	each := func(do func(n int) error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range 50 {
				if err := do(n); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	var commits []*core.Commit
	for range 50 {
		commits = append(commits, w.cut(make([]byte, 50), false))
	}
	each(func(n int) error { return s.Run(commits[n]) })
	each(func(int) error { return s.Run(&core.Sync{Segment: id}) })
	each(func(n int) error {
		if n%2 == 0 {
			return s.Run(&core.Prepare{Segment: id, Pos: end + 1<<20 + int64(n)*512, Bytes: 512})
		}
		return s.Run(&core.SaveSuper{Slot: 0, Fresh: n == 1, Bytes: make([]byte, 4096)})
	})
	for range 3 {
		var h disk.Handle
		f := &core.Fetch{Extent: x, LogID: logID, Bytes: 300}
		each(func(n int) error {
			if n%10 == 9 {
				if err := h.Close(); err != nil {
					return err
				}
			}
			return s.Fetch(f, &h)
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkCommitOnSimulatedDisk(b *testing.B) {
	d := faultfs.New()
	s := disk.NewStore(d.FS(0))
	w := newWriter(b, s)
	w.segment(1, 1, false)
	e := w.cut(make([]byte, 64), true)
	b.ReportAllocs()
	for range b.N {
		e.Stage = 0
		e.Pos += 512
		if e.Pos > 1<<16 {
			e.Pos = 1024
		}
		if err := s.Run(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFetch64K(b *testing.B) {
	s := disk.NewStore(osfs.New(b.TempDir() + "/log"))
	w := newWriter(b, s)
	w.run(w.create(1))
	for range 64 {
		w.run(w.cut(make([]byte, 16<<10), false))
	}
	w.run(w.seal())
	var h disk.Handle
	f := &core.Fetch{Extent: w.extent(core.IndexFooter), LogID: logID, Bytes: 64 << 10}
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	for n := range b.N {
		f.Pos = w.h.Base + 512 + int64(n%12)*4*(16<<10+112)
		if err := s.Fetch(f, &h); err != nil {
			b.Fatal(err)
		}
	}
	_ = h.Close()
	_ = s.Close()
}
