package disk

import (
	"strings"

	"varve/core"
	"varve/core/segment"
)

// Names of the files that are no segments.
const (
	tmpSuffix  = ".tmp"
	lockName   = "lock"
	superName0 = "super.0"
	superName1 = "super.1"
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

func (s *Store) segmentName(base core.Offset, id segment.ID) string {
	var b nameBuf
	return s.name(segment.AppendName(b[:0], base, id))
}

func (s *Store) indexName(base core.Offset, id segment.ID) string {
	var b nameBuf
	return s.name(segment.AppendIndexName(b[:0], base, id))
}

// tmpName returns the name under which a file is made before it is renamed.
func (s *Store) tmpName(name string) string {
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
	return ours || stem == superName0 || stem == superName1
}
