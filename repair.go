package varve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"varve/core"
	"varve/core/segment"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// RepairPlan is what Repair found to do beyond an ordinary open.
type RepairPlan struct {
	// Superblock is what replaces two slots of which none verifies, derived from the segments; nil
	// if one verifies. Problems says what is wrong with each slot that is there.
	Superblock *segment.Superblock
	Problems   []string
	Evidence   int64 // what the segments prove
}

// PlanRepair finds out whether the superblock of a directory has to be rebuilt, and writes nothing.
func PlanRepair(ctx context.Context, dir string) (*RepairPlan, error) {
	p, err := planRepair(ctx, osfs.New(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return p, nil
}

// Repair rebuilds the superblock if none verifies and then lets an ordinary open recover the log,
// which it closes again. What it replaces goes to quarantine/. With o.RepairChecksumTail a last batch
// with a wrong payload checksum is given up. Damage that nothing can heal is an error as Open's.
func Repair(ctx context.Context, dir string, o Options) (*RepairPlan, error) {
	fs := osfs.New(dir)
	if _, err := planRepair(ctx, fs); err != nil { // before anything is made
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	p, err := rebuild(ctx, fs, dir)
	if err != nil {
		return nil, err
	}
	l, err := Open(ctx, dir, o)
	if err != nil {
		return p, err
	}
	return p, l.Close(ctx)
}

// rebuild writes the planned superblock, under the directory's lock.
func rebuild(ctx context.Context, fs disk.FS, name string) (*RepairPlan, error) {
	lock, undo, err := takeLock(ctx, fs, name)
	if err != nil {
		return nil, err
	}
	p, err := planRepair(ctx, fs)
	if err == nil && p.Superblock != nil {
		err = writeSupers(fs, p.Superblock)
	}
	if err != nil {
		undo()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, lock.Close()
}

// planRepair looks at the superblock, and at the segments if they have to stand in for it.
func planRepair(ctx context.Context, fs disk.FS) (*RepairPlan, error) {
	store := disk.NewStore(fs)
	var list core.List
	if err := store.Run(&list); err != nil {
		return nil, err
	}
	if !list.Super[0] && !list.Super[1] && len(list.Files) == 0 {
		return nil, &RefusedError{Why: "it holds no log", Next: "name the directory of a log"}
	}
	var load core.LoadSuper
	if err := store.Run(&load); err != nil {
		return nil, err
	}
	p := &RepairPlan{}
	for i, b := range load.Slots {
		if !list.Super[i] {
			p.Problems = append(p.Problems, fmt.Sprintf("super.%d is missing", i))
			continue
		}
		var s segment.Superblock
		err := segment.ReadSuper(b, &s)
		if err == nil || errors.Is(err, segment.ErrSuperNewer) {
			return &RepairPlan{}, nil // Open's to judge
		}
		p.Problems = append(p.Problems, fmt.Sprintf("super.%d: %v", i, err))
	}
	return p, p.derive(ctx, fs, list.Files)
}

// derive makes a superblock from what the segments say. Start is the first record there is: what
// was trimmed within a file comes back, because nothing else remembers it.
func (p *RepairPlan) derive(ctx context.Context, fs disk.FS, files []core.FileEntry) error {
	s := &segment.Superblock{Sequence: 1, Complete: true, Start: core.EndNone}
	slices.SortFunc(files, func(a, b core.FileEntry) int { return int(min(max(a.Base-b.Base, -1), 1)) })
	first := map[core.Epoch]core.Offset{}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := scanFile(fs, f, &s.LogID)
		if err != nil {
			return err
		}
		s.Epoch = max(s.Epoch, f.ID.Owner(), info.Epoch)
		if len(info.Runs) == 0 {
			continue
		}
		base := info.Runs[0].First
		s.Start = min(s.Start, base)
		p.Evidence = max(p.Evidence, info.Evidence)
		if old, ok := first[info.Epoch]; !ok || base < old {
			first[info.Epoch] = base
		}
		if info.Verdict == segment.HeaderGood {
			s.Sync, s.SectorBytes = info.Header.Sync, info.Header.SectorBytes
		}
	}
	if s.SectorBytes == 0 || s.Start == core.EndNone {
		return &RefusedError{
			Why:  "no superblock verifies, and no segment has a header and a batch that verify",
			Next: "restore it from a copy",
		}
	}
	s.Lineage = lineageOf(first)
	s.HotStart = s.Start
	s.Frontier = max(p.Evidence, s.Start)
	s.Committed = s.Frontier
	for _, l := range s.Lineage {
		if l.First < s.Committed {
			s.CommittedEpoch = l.Epoch
		}
	}
	p.Superblock = s
	return nil
}

// lineageOf orders epochs by where they begin; an epoch voids what an older one has from there on.
func lineageOf(first map[core.Epoch]core.Offset) []segment.Lineage {
	epochs := make([]core.Epoch, 0, len(first))
	for e := range first {
		epochs = append(epochs, e)
	}
	slices.Sort(epochs)
	var l []segment.Lineage
	for _, e := range epochs {
		for len(l) > 0 && l[len(l)-1].First >= first[e] {
			l = l[:len(l)-1]
		}
		l = append(l, segment.Lineage{Epoch: e, First: first[e]})
	}
	return l
}

// scanFile verifies one segment file. The first header that verifies gives the log's id; all others
// must have the same.
func scanFile(fs disk.FS, entry core.FileEntry, id *segment.LogID) (*segment.FileInfo, error) {
	name := segment.Name(entry.Base, entry.ID)
	f, err := fs.Open(name, disk.Read)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	head := make([]byte, segment.HeaderBytes)
	if entry.Bytes >= segment.HeaderBytes {
		if _, err := f.ReadAt(head, 0); err != nil {
			return nil, err
		}
	}
	if h, _, v, _ := segment.ReadHeader(head); v == segment.HeaderGood {
		if *id != (segment.LogID{}) && *id != h.LogID {
			return nil, &RefusedError{
				Name: name, Why: "it belongs to another log than the files before it",
				Next: "move what does not belong here out of the directory",
			}
		}
		*id = h.LogID
	}
	info := new(segment.FileInfo)
	var scan segment.Scanner
	err = scan.Scan(&segment.ScanFile{
		Source: f, Bytes: entry.Bytes, ID: entry.ID, Base: entry.Base, LogID: *id,
		SectorBytes: 512,
	}, true, info)
	return info, err
}

// writeSupers puts a superblock into both slots. What was there goes to quarantine/ first.
func writeSupers(fs disk.FS, s *segment.Superblock) error {
	if err := fs.Mkdir(disk.DirQuarantine); err != nil {
		return err
	}
	for _, name := range []string{"super.0", "super.1"} {
		if err := putAside(fs, name); err != nil && !errors.Is(err, disk.ErrNotExist) {
			return err
		}
	}
	for _, dir := range []string{disk.DirQuarantine, disk.DirLog} {
		if err := fs.SyncDir(dir); err != nil {
			return err
		}
	}
	store := disk.NewStore(fs)
	for slot := range 2 {
		b, err := segment.AppendSuper(nil, s)
		if err != nil {
			return err
		}
		if err := store.Run(&core.SaveSuper{Slot: slot, Fresh: true, Bytes: b}); err != nil {
			return err
		}
		s.Sequence++
	}
	return store.Close()
}

// putAside moves a file into quarantine/, under a name that is free there.
func putAside(fs disk.FS, name string) error {
	for n := 0; ; n++ {
		to := fmt.Sprintf("%s/%s.%d", disk.DirQuarantine, name, n)
		f, err := fs.Open(to, disk.Read)
		if errors.Is(err, disk.ErrNotExist) {
			return fs.Rename(name, to)
		}
		if err != nil {
			return err
		}
		_ = f.Close()
	}
}
