package disk_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// writer makes effects as the core does, for one segment after the other.
type writer struct {
	t      testing.TB
	s      *disk.Store
	h      segment.Header
	pos    int64
	chain  uint32
	commit uint64
	next   core.Offset
	footer segment.FooterBuilder
	record map[core.Offset][]byte
}

var logID = segment.LogID{4, 5, 6}

// onEach runs a test on the simulated disk and on the real one.
func onEach(t *testing.T, test func(t *testing.T, fs disk.FS)) {
	t.Run("faultfs", func(t *testing.T) {
		d := faultfs.New()
		test(t, d.FS(0))
		if d.OpenFiles() != 0 {
			t.Errorf("%d files left open", d.OpenFiles())
		}
		if v := d.Violation(); v != "" {
			t.Error(v)
		}
	})
	t.Run("osfs", func(t *testing.T) { test(t, osfs.New(t.TempDir()+"/a/log")) })
}

func newWriter(t testing.TB, s *disk.Store) *writer {
	w := &writer{t: t, s: s, record: map[core.Offset][]byte{}}
	w.run(&core.SaveSuper{Slot: 0, Fresh: true, NewLog: true, Bytes: []byte("first")})
	return w
}

func (w *writer) run(e core.Effect) {
	w.t.Helper()
	if err := w.s.Run(e); err != nil {
		w.t.Fatalf("%T: %v", e, err)
	}
	if r := e.Result(); r.Failed != core.StepNone || r.NoSpace {
		w.t.Fatalf("%T succeeded, but says %+v", e, r)
	}
}

func (w *writer) create(n uint32) *core.Create {
	w.h = segment.Header{Kind: segment.Created, SectorBytes: 512, LogID: logID, ID: segment.MakeID(3, n), Epoch: 3, Base: w.next}
	b := make([]byte, 512)
	w.chain = segment.PutHeader(b, &w.h)
	w.pos, w.commit = 512, 0
	w.footer.Reset(&w.h, w.chain, 1)
	return &core.Create{Header: w.h, Bytes: b}
}

// cut makes a Commit of one batch.
func (w *writer) cut(payload []byte, sync bool) *core.Commit {
	i := segment.Identity{
		PayloadBytes: uint32(len(payload)), Kind: segment.KindRecords, Records: 2, Base: w.next, Epoch: w.h.Epoch,
		MaxTime: 100 * w.next, ProducerID: -1, ProducerEpoch: -1, Sequence: -1, PayloadCRC: segment.PayloadCRC(payload),
	}
	w.commit++
	p := segment.Placement{ID: w.h.ID, Commit: w.commit, Chain: w.chain}
	head := make([]byte, segment.BatchHeaderBytes)
	w.chain = segment.PutBatchHeader(head, &p, &i, segment.PlacementSeed(logID, w.h.ID), segment.IdentitySeed(logID))
	e := &core.Commit{
		Segment: w.h.ID, Base: w.h.Base, Pos: w.pos, Bufs: [][]byte{head, payload},
		Bytes: int64(len(head) + len(payload)), Sync: sync, First: w.next, End: i.End(),
	}
	w.footer.Add(w.pos, &i, w.commit, w.chain)
	w.record[w.next] = payload
	w.next, w.pos = i.End(), w.pos+e.Bytes
	if sync {
		w.pos = (w.pos + 511) &^ 511
	}
	return e
}

func (w *writer) seal() *core.Seal {
	f := w.footer.Append(nil)
	pos := w.footer.Pos()
	return &core.Seal{Segment: w.h.ID, Base: w.h.Base, Pos: pos, Footer: f, Bytes: pos + int64(len(f))}
}

// segment writes one whole segment of some batches and leaves it open or sealed.
func (w *writer) segment(n uint32, batches int, seal bool) {
	w.t.Helper()
	w.run(w.create(n))
	for k := range batches {
		w.run(w.cut(bytes.Repeat([]byte{byte(k + 1)}, 100+k%7*30), k%3 == 0))
	}
	if seal {
		w.run(w.seal())
	}
}

func (w *writer) list() *core.List {
	w.t.Helper()
	e := &core.List{}
	w.run(e)
	return e
}

func (w *writer) scan(x core.FileEntry, whole bool) *segment.FileInfo {
	w.t.Helper()
	e := &core.Scan{File: x, LogID: logID, SectorBytes: 512, Whole: whole}
	w.run(e)
	return &e.Info
}

func TestSegmentLife(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		w.run(&core.SaveSuper{Slot: 1, Fresh: true, Bytes: []byte("other")})
		w.segment(1, 5, false)
		w.run(&core.Prepare{Segment: w.h.ID, Pos: w.pos + 4096, Bytes: 4096})
		w.run(&core.Sync{Segment: w.h.ID, Base: 0, End: w.next})
		w.run(w.seal())

		list := w.list()
		x := list.Files[0]
		if len(list.Files) != 1 || x.ID != w.h.ID || x.Bytes != w.footer.Pos()+w.footer.Bytes() || !list.Super[0] || !list.Super[1] || list.FreeBytes <= 0 {
			t.Fatalf("list: %+v", list)
		}
		if i := w.scan(x, false); !i.Sealed || i.Scanned || i.Footer != w.footer.Summary() {
			t.Errorf("quick scan: %+v", i)
		}
		if i := w.scan(x, true); len(i.Runs) != 1 || i.Runs[0].End != w.next || i.Tail {
			t.Errorf("whole scan: %+v", i)
		}

		w.segment(2, 4, false)
		end, records := w.pos, w.next
		w.run(w.cut(make([]byte, 900), false))
		w.run(&core.Rollback{Segment: w.h.ID, Base: w.h.Base, Bytes: end})
		if i := w.scan(w.list().Files[1], true); i.Bytes != end || i.Runs[0].End != records || i.Tail {
			t.Errorf("after the roll-back: %+v", i)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestSuperblocks(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		load := &core.LoadSuper{}
		if list := (&core.List{}); s.Run(list) != nil || !list.Missing {
			t.Fatal("a missing directory is not reported as missing")
		}
		w := newWriter(t, s)
		w.run(load)
		if string(load.Slots[0]) != "first" || len(load.Slots[1]) != 0 {
			t.Fatalf("slots %q", load.Slots)
		}
		w.run(&core.SaveSuper{Slot: 1, Fresh: true, Bytes: []byte("second")})
		w.run(&core.SaveSuper{Slot: 0, Bytes: []byte("third")})
		w.run(&core.SaveSuper{Slot: 1, Bytes: []byte("FOURTH")})
		w.run(load)
		if string(load.Slots[0]) != "third" || string(load.Slots[1]) != "FOURTH" {
			t.Fatalf("slots %q", load.Slots)
		}
		// The next life has no file open yet.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		w.run(&core.SaveSuper{Slot: 1, Bytes: []byte("5")})
		w.run(&core.SaveSuper{Slot: 0, Fresh: true, Bytes: []byte("6")})
		w.run(load)
		if string(load.Slots[0]) != "6" || string(load.Slots[1]) != "5OURTH" {
			t.Fatalf("slots %q", load.Slots)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestListSorts(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		make := func(name string) {
			f, err := fs.Open(name, disk.Create)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		seg := segment.Name(7, 9)
		idx := string(segment.AppendIndexName(nil, 7, 9))
		lone := string(segment.AppendIndexName(nil, 8, 9))
		for _, name := range []string{
			seg, idx, lone, segment.Name(7, 3), seg + ".tmp", idx + ".tmp", "super.1.tmp", "lock",
			"notes.txt", "x.tmp", "+7.seg", "super.2",
		} {
			make(name)
		}
		if err := fs.Mkdir(disk.DirQuarantine); err != nil {
			t.Fatal(err)
		}
		e := w.list()
		want := []core.FileEntry{{ID: 3, Base: 7}, {ID: 9, Base: 7, Index: true}}
		if !reflect.DeepEqual(e.Files, want) {
			t.Errorf("files %+v", e.Files)
		}
		if want := []string{seg[:len(seg)-4] + ".idx.tmp", seg + ".tmp", "super.1.tmp"}; !reflect.DeepEqual(e.Tmp, want) {
			t.Errorf("tmp %q", e.Tmp)
		}
		if !reflect.DeepEqual(e.Orphans, []string{lone}) {
			t.Errorf("orphans %q", e.Orphans)
		}
		if want := []string{"+7.seg", "notes.txt", "super.2", "x.tmp"}; !reflect.DeepEqual(e.Unknown, want) {
			t.Errorf("unknown %q", e.Unknown)
		}
		_ = s.Close()
	})
}

func TestReplace(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		w.segment(1, 9, false)
		source := w.list().Files[0]
		h := w.h
		h.Kind, h.ID, h.Base, h.End = segment.Replacement, segment.MakeID(8, 1), 4, 14
		e := &core.Replace{Header: h, Source: source, SourceEpoch: 3, Frontier: 6, IndexSpacingBytes: 1}
		w.run(e)
		list := w.list()
		if len(list.Files) != 2 || len(list.Tmp) != 0 || list.Files[1].ID != h.ID || list.Files[1].Bytes != e.Bytes {
			t.Fatalf("list %+v", list)
		}
		i := w.scan(list.Files[1], true)
		if i.Header != h || !i.Sealed || len(i.Runs) != 1 || i.Runs[0].First != 4 || i.Runs[0].End != 14 || i.Evidence != 6 {
			t.Errorf("replacement: %+v", i)
		}
		for name, edit := range map[string]func(e *core.Replace){
			"not at a batch":   func(e *core.Replace) { e.Header.Base = 5 },
			"ends in a batch":  func(e *core.Replace) { e.Header.End = 13 },
			"beyond its end":   func(e *core.Replace) { e.Header.End = 99 },
			"of another epoch": func(e *core.Replace) { e.SourceEpoch = 4 },
		} {
			x := &core.Replace{Header: h, Source: source, SourceEpoch: 3, IndexSpacingBytes: 1}
			x.Header.ID++
			edit(x)
			if err := s.Run(x); err == nil || x.Failed != core.StepCheck {
				t.Errorf("%s: error %v in step %d", name, err, x.Failed)
			}
		}
		// A break inside the span, although offsets go on behind it.
		w.run(w.cut([]byte("a"), true))
		w.chain++
		w.run(w.cut([]byte("b"), true))
		x := &core.Replace{Header: h, Source: w.list().Files[0], SourceEpoch: 3, IndexSpacingBytes: 1}
		x.Header.ID, x.Header.End = x.Header.ID+1, w.next
		if err := s.Run(x); err == nil || x.Failed != core.StepCheck {
			t.Errorf("over a break: error %v in step %d", err, x.Failed)
		}
		x.Header.Base, x.Failed, x.Stage = w.next-2, core.StepNone, 0
		x.Header.ID++
		w.run(x) // behind it
		w.run(&core.Remove{Files: []core.FileEntry{{ID: x.Header.ID, Base: x.Header.Base}}})
		if list = w.list(); len(list.Files) != 2 || len(list.Tmp) != 0 {
			t.Errorf("a refused replacement left %+v", list)
		}
		_ = s.Close()
	})
}

// A replacement larger than what is gathered before a write is written in parts, and is the same.
func TestReplaceInParts(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		w.segment(1, 1, false)
		block := bytes.Repeat([]byte{7}, 300<<10)
		for range 8 {
			w.run(w.cut(block, true))
		}
		source, h := w.list().Files[0], w.h
		h.Kind, h.ID, h.End = segment.Replacement, segment.MakeID(8, 1), w.next
		w.run(&core.Replace{Header: h, Source: source, SourceEpoch: 3, IndexSpacingBytes: 1})
		for _, f := range w.list().Files {
			if i := w.scan(f, true); len(i.Runs) != 1 || i.Runs[0].End != w.next || f.Bytes < 8*int64(len(block)) {
				t.Errorf("file %+v: runs %+v, want one to %d", f, i.Runs, w.next)
			}
		}
		_ = s.Close()
	})
}

func TestRemoveAndQuarantine(t *testing.T) {
	onEach(t, func(t *testing.T, fs disk.FS) {
		s := disk.NewStore(fs)
		w := newWriter(t, s)
		w.segment(1, 2, true)
		w.segment(2, 2, true)
		w.segment(3, 2, false)
		files := append([]core.FileEntry(nil), w.list().Files...)
		w.run(&core.SaveIndex{File: files[0], LogID: logID, End: 4, IndexSpacingBytes: 1})
		files[0].Index = true
		w.run(&core.Remove{Files: files[:1], Names: []string{"nothing.tmp"}})
		w.run(&core.Remove{Files: files[:1]})
		w.run(&core.Quarantine{Files: files[1:2]})
		w.run(&core.Quarantine{Files: files[1:2]}) // gone already
		if list := w.list(); len(list.Files) != 1 || len(list.Orphans) != 0 {
			t.Errorf("left: %+v", list)
		}
		// The same name again: nothing in quarantine is overwritten.
		w.next = files[1].Base
		w.segment(2, 1, true)
		w.run(&core.Quarantine{Files: files[1:2]})
		for _, suffix := range []string{"", ".1"} {
			f, err := fs.Open("quarantine/"+segment.Name(files[1].Base, files[1].ID)+suffix, disk.Read)
			if err != nil {
				t.Errorf("quarantine%s: %v", suffix, err)
				continue
			}
			_ = f.Close()
		}
		w.run(&core.Remove{Files: files[2:]}) // the active one, given up
		space := &core.Space{}
		w.run(space)
		if space.FreeBytes <= 0 {
			t.Errorf("free %d", space.FreeBytes)
		}
		_ = s.Close()
	})
}

// The second seed on a reused world allocates nothing. The first one fills the pools of store and
// simulated disk.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	d := faultfs.New()
	s := disk.NewStore(d.FS(0))
	for seed := range 2 {
		d.Reset(faultfs.Params{})
		s.Reset(d.FS(0))
		w := newWriter(t, s)
		w.segment(1, 20, false)
		entry := w.list().Files[0]
		h := w.h
		h.Kind, h.ID, h.End = segment.Replacement, segment.MakeID(8, 1), 40
		effects := []core.Effect{
			w.cut(make([]byte, 64), true),
			&core.List{},
			&core.LoadSuper{},
			&core.Scan{File: entry, LogID: logID, SectorBytes: 512, Whole: true},
			&core.SaveSuper{Slot: 1, Fresh: true, Bytes: make([]byte, 4096)},
			&core.SaveSuper{Slot: 1, Bytes: make([]byte, 4096)},
			&core.Replace{Header: h, Source: entry, SourceEpoch: 3, IndexSpacingBytes: 1},
			&core.SaveIndex{File: entry, LogID: logID, End: 40, IndexSpacingBytes: 1},
			&core.Remove{Files: []core.FileEntry{{ID: h.ID, Base: h.Base}}},
		}
		for _, e := range effects {
			n := testing.AllocsPerRun(20, func() {
				e.Result().Stage = 0
				if err := s.Run(e); err != nil {
					t.Fatal(err)
				}
			})
			if seed == 1 && n != 0 {
				t.Errorf("%T: %v allocations", e, n)
			}
		}
	}
}

func TestMissingFile(t *testing.T) {
	d := faultfs.New()
	s := disk.NewStore(d.FS(0))
	newWriter(t, s)
	e := &core.Scan{File: core.FileEntry{ID: 77}, SectorBytes: 512}
	if err := s.Run(e); !errors.Is(err, disk.ErrNotExist) || e.Failed != core.StepOpen {
		t.Errorf("a missing file: %v in step %d", err, e.Failed)
	}
}
