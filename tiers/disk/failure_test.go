package disk_test

import (
	"bytes"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

// Every failing call ends its effect in the step that it belongs to, and only a lack of space is
// called one.
func TestFailuresNameTheirStep(t *testing.T) {
	source := core.FileEntry{ID: segment.MakeID(3, 1)}
	replacement := segment.Header{Kind: segment.Replacement, SectorBytes: 512, LogID: logID, ID: segment.MakeID(8, 1), Epoch: 3, End: 6}
	type effects func(w *writer) core.Effect
	create := func(w *writer) core.Effect { return w.create(2) }
	commit := func(w *writer) core.Effect { return w.cut([]byte("abc"), true) }
	seal := func(w *writer) core.Effect { return w.seal() }
	rollback := func(w *writer) core.Effect { return &core.Rollback{Segment: w.h.ID, Bytes: 512} }
	fresh := func(*writer) core.Effect { return &core.SaveSuper{Fresh: true, NewLog: true, Bytes: []byte("x")} }
	inPlace := func(*writer) core.Effect { return &core.SaveSuper{Bytes: []byte("x")} }
	replace := func(*writer) core.Effect {
		return &core.Replace{Header: replacement, Source: source, SourceEpoch: 3, IndexSpacingBytes: 1}
	}
	index := func(*writer) core.Effect {
		return &core.SaveIndex{File: source, LogID: logID, End: 6, IndexSpacingBytes: 1}
	}
	remove := func(*writer) core.Effect { return &core.Remove{Files: []core.FileEntry{source}} }
	quarantine := func(*writer) core.Effect { return &core.Quarantine{Files: []core.FileEntry{source}} }
	scan := func(*writer) core.Effect { return &core.Scan{File: source, LogID: logID, SectorBytes: 512} }
	for _, c := range []struct {
		effect effects
		op     faultfs.Op
		skip   int // calls of that class that go well
		want   core.Step
	}{
		{create, faultfs.OpCreate, 0, core.StepOpen},
		{create, faultfs.OpWrite, 0, core.StepWrite},
		{create, faultfs.OpSync, 0, core.StepSync},
		{create, faultfs.OpSyncDir, 0, core.StepSync},
		{commit, faultfs.OpWrite, 0, core.StepWrite},
		{commit, faultfs.OpSync, 0, core.StepSync},
		{rollback, faultfs.OpTruncate, 0, core.StepWrite},
		{rollback, faultfs.OpSync, 0, core.StepSync},
		{seal, faultfs.OpWrite, 0, core.StepWrite},
		{seal, faultfs.OpTruncate, 0, core.StepWrite},
		{seal, faultfs.OpSync, 0, core.StepSync},
		{func(w *writer) core.Effect { return &core.Sync{Segment: w.h.ID} }, faultfs.OpSync, 0, core.StepSync},
		{func(w *writer) core.Effect { return &core.Prepare{Segment: w.h.ID, Pos: 8192, Bytes: 512} }, faultfs.OpZero, 0, core.StepWrite},
		{func(*writer) core.Effect { return &core.List{} }, faultfs.OpList, 0, core.StepRead},
		{func(*writer) core.Effect { return &core.LoadSuper{} }, faultfs.OpOpen, 0, core.StepOpen},
		{func(*writer) core.Effect { return &core.LoadSuper{} }, faultfs.OpRead, 0, core.StepRead},
		{fresh, faultfs.OpMkdir, 0, core.StepWrite},
		{fresh, faultfs.OpCreate, 0, core.StepOpen},
		{fresh, faultfs.OpWrite, 0, core.StepWrite},
		{fresh, faultfs.OpSync, 0, core.StepSync},
		{fresh, faultfs.OpRename, 0, core.StepWrite},
		{fresh, faultfs.OpSyncDir, 0, core.StepSync},
		{fresh, faultfs.OpSyncDir, 1, core.StepSync},
		{inPlace, faultfs.OpWrite, 0, core.StepWrite},
		{inPlace, faultfs.OpSync, 0, core.StepSync},
		{scan, faultfs.OpOpen, 0, core.StepOpen},
		{scan, faultfs.OpRead, 0, core.StepRead},
		{replace, faultfs.OpOpen, 0, core.StepOpen},
		{replace, faultfs.OpRead, 0, core.StepRead},
		{replace, faultfs.OpWrite, 0, core.StepWrite},
		{replace, faultfs.OpSync, 0, core.StepSync},
		{replace, faultfs.OpRename, 0, core.StepWrite},
		{replace, faultfs.OpSyncDir, 0, core.StepSync},
		{index, faultfs.OpRead, 0, core.StepRead},
		{index, faultfs.OpWrite, 0, core.StepWrite},
		{index, faultfs.OpSync, 0, core.StepSync},
		{index, faultfs.OpSyncDir, 0, core.StepSync},
		{remove, faultfs.OpRemove, 0, core.StepWrite},
		{remove, faultfs.OpSyncDir, 0, core.StepSync},
		{quarantine, faultfs.OpMkdir, 0, core.StepWrite},
		{quarantine, faultfs.OpRename, 0, core.StepWrite},
		{quarantine, faultfs.OpSyncDir, 0, core.StepSync},
		{quarantine, faultfs.OpSyncDir, 1, core.StepSync},
		{func(*writer) core.Effect { return &core.Space{} }, faultfs.OpFree, 0, core.StepRead},
	} {
		struck := 0
		for _, fault := range []faultfs.Fault{faultfs.D15Error, faultfs.D13NoSpace, faultfs.D14ReadOnce, faultfs.D17Clean, faultfs.D22DirSync} {
			if !faultfs.CallFaults(c.op).Has(fault) {
				continue
			}
			struck++
			d := faultfs.New()
			s := disk.NewStore(d.FS(0))
			w := newWriter(t, s)
			w.segment(1, 3, false)
			e := c.effect(w)
			_ = d.FS(0).Remove("spare") // else a save takes it where there is no space
			d.Arm(c.op, fault, c.skip, "")
			err := s.Run(e)
			r := e.Result()
			if err == nil || r.Failed != c.want || r.NoSpace != (fault == faultfs.D13NoSpace) {
				t.Errorf("%T, %v fails with %v: error %v, step %d (want %d), no space %v", e, c.op, fault, err, r.Failed, c.want, r.NoSpace)
			}
			if d.Armed() != 0 {
				t.Errorf("%T: %v was never called", e, c.op)
			}
			if err := s.Close(); err != nil {
				t.Errorf("%T: close: %v", e, err)
			}
			if d.OpenFiles() != 0 {
				t.Errorf("%T, %v fails: %d files left open", e, c.op, d.OpenFiles())
			}
		}
		if struck == 0 {
			t.Errorf("no fault strikes %v", c.op)
		}
	}
}

// A short write is a failure, although some bytes are there.
func TestShortWriteFails(t *testing.T) {
	d := faultfs.New()
	s := disk.NewStore(d.FS(0))
	w := newWriter(t, s)
	w.segment(1, 1, false)
	d.FailNext(faultfs.OpWrite, faultfs.D11Short)
	e := w.cut(bytes.Repeat([]byte{9}, 2000), true)
	if err := s.Run(e); err == nil || e.Failed != core.StepWrite || e.Stage != 1 {
		t.Errorf("error %v, step %d", err, e.Failed)
	}
}

// An effect on a segment that is not the active one is refused, not carried out on another.
func TestOnlyTheActiveSegmentIsWritten(t *testing.T) {
	d := faultfs.New()
	s := disk.NewStore(d.FS(0))
	w := newWriter(t, s)
	w.segment(1, 1, true)
	for _, e := range []core.Effect{w.cut([]byte("x"), false), &core.Sync{Segment: w.h.ID}, &core.Rollback{Segment: w.h.ID}, w.seal()} {
		if err := s.Run(e); err == nil || e.Result().Failed != core.StepOpen {
			t.Errorf("%T on a sealed segment: %v", e, err)
		}
	}
}
