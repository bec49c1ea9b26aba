package disk

import (
	"strings"

	"varve/core"
	"varve/core/segment"
)

// Names of the files that are no segments.
const (
	tmpSuffix     = ".tmp"
	segmentSuffix = ".seg"
	rescueTmp     = "rescue" + tmpSuffix
	lockName      = "lock"
	superName0    = "super.0"
	superName1    = "super.1"
)

var superNames = [2]string{superName0, superName1}

// nameBuf holds the longest name that is made here: quarantine/<segment>.seg.4294967295.
type nameBuf [80]byte

// name turns bytes into a string that is made only once.
func (s *Store) name(b []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.names[string(b)]; ok {
		return n
	}
	if len(s.names) >= namesMax {
		clear(s.names)
	}
	n := string(b)
	s.names[n] = n
	return n
}

// nameSlot remembers the name of one segment. A segment's name is needed again and again for a
// while: the slots spare making it and looking it up.
type nameSlot struct {
	base core.Offset
	id   segment.ID
	name string
}

// The slots begin as few, because a node has many logs with few segments each, and become twice as many
// when two names meet in one.
const (
	nameSlotBitsMin = 4
	nameSlotBitsMax = 11
)

// slot returns where the name of a segment is remembered. The mutex is held.
func (s *Store) slot(base core.Offset, id segment.ID) *nameSlot {
	const spread = 0x9e3779b97f4a7c15
	return &s.segments[(uint64(base)*spread^uint64(id))*spread>>(64-s.slotBits)]
}

// remember puts a name into its slot.
func (s *Store) remember(n nameSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.slot(n.base, n.id)
	if at.name != "" && (at.base != n.base || at.id != n.id) && s.slotBits < nameSlotBitsMax {
		old := s.segments
		s.slotBits++
		s.segments = make([]nameSlot, 1<<s.slotBits)
		for _, o := range old {
			if o.name != "" {
				*s.slot(o.base, o.id) = o
			}
		}
		at = s.slot(n.base, n.id)
	}
	*at = n
}

// SegmentName returns the file name of a segment. It is made once and kept.
func (s *Store) SegmentName(base core.Offset, id segment.ID) string { return s.segmentName(base, id) }

func (s *Store) segmentName(base core.Offset, id segment.ID) string {
	s.mu.Lock()
	if n := s.slot(base, id); n.name != "" && n.base == base && n.id == id {
		name := n.name
		s.mu.Unlock()
		return name
	}
	s.mu.Unlock()
	var b nameBuf
	name := s.name(segment.AppendName(b[:0], base, id))
	s.remember(nameSlot{base, id, name})
	return name
}

func (s *Store) indexName(base core.Offset, id segment.ID) string {
	var b nameBuf
	return s.name(segment.AppendIndexName(b[:0], base, id))
}

// tmpName returns the name under which a file is made before it is renamed. For segments it is always
// the same: an open that dies in its rescue, again and again, leaves one unfinished copy, not one
// each time.
func (s *Store) tmpName(name string) string {
	switch name {
	case superName0:
		return superName0 + tmpSuffix
	case superName1:
		return superName1 + tmpSuffix
	}
	if strings.HasSuffix(name, segmentSuffix) {
		return rescueTmp
	}
	var b nameBuf
	return s.name(append(append(b[:0], name...), tmpSuffix...))
}

// ours reports whether a *.tmp is one that the store makes.
func oursTmp(name string) bool {
	stem, ok := strings.CutSuffix(name, tmpSuffix)
	if !ok {
		return false
	}
	_, _, _, ours := segment.ParseName(stem)
	return ours || stem == superName0 || stem == superName1 || name == rescueTmp
}
