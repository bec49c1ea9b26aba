package disk

import (
	"cmp"
	"errors"
	"slices"

	"varve/core"
	"varve/core/segment"
)

// list sorts what it finds, so that nothing depends on the order of a directory.
func (s *Store) list(r *core.Result, e *core.List) error {
	e.Missing, e.Super = false, [2]bool{}
	s.hot.spare, e.Spare = noSpare, noSpare
	e.Files, e.Tmp = e.Files[:0], e.Tmp[:0]
	e.Orphans, e.Unknown = e.Orphans[:0], e.Unknown[:0]
	s.free(r)
	var err error
	s.hot.entries, err = s.fs.List(s.hot.entries[:0])
	if errors.Is(err, ErrNotExist) {
		e.Missing = true
		return nil
	}
	if err != nil {
		return failed(r, core.StepRead, err)
	}
	s.hot.indexes = s.hot.indexes[:0]
	for i := range s.hot.entries {
		s.sortIn(e, &s.hot.entries[i])
	}
	slices.SortFunc(e.Files, compareEntries)
	for i := range s.hot.indexes {
		x := &s.hot.indexes[i]
		if at, ok := slices.BinarySearchFunc(e.Files, *x, compareEntries); ok {
			e.Files[at].Index = true
		} else {
			e.Orphans = append(e.Orphans, s.indexName(x.Base, x.ID))
		}
	}
	slices.Sort(e.Tmp)
	slices.Sort(e.Orphans)
	slices.Sort(e.Unknown)
	return nil
}

// sortIn puts one directory entry where it belongs.
func (s *Store) sortIn(e *core.List, x *Entry) {
	base, id, kind, ours := segment.ParseName(x.Name)
	switch {
	case x.Dir && x.Name == DirQuarantine:
	case x.Dir:
		e.Unknown = append(e.Unknown, x.Name)
	case ours && kind == segment.NameSegment:
		e.Files = append(e.Files, core.FileEntry{ID: id, Base: base, Bytes: x.Bytes})
	case ours:
		s.hot.indexes = append(s.hot.indexes, core.FileEntry{ID: id, Base: base})
	case x.Name == superName0:
		e.Super[0] = true
	case x.Name == superName1:
		e.Super[1] = true
	case x.Name == lockName:
	case x.Name == spareName:
		s.hot.spare, e.Spare = x.Bytes, x.Bytes
	case oursTmp(x.Name):
		e.Tmp = append(e.Tmp, x.Name)
	default:
		e.Unknown = append(e.Unknown, x.Name)
	}
}

func compareEntries(a, b core.FileEntry) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Base, b.Base))
}
