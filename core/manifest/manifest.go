package manifest

import (
	"errors"
	"fmt"

	"varve/core/segment"
)

// Version is the version of the text that this package writes, and the newest that it reads.
const Version = 1

// Limits. What goes beyond is refused; the bytes bound what a reader has to take from a store.
const (
	SegmentsMax = 1000      // finished segments that a manifest lists itself; older ones go to pages
	EntriesMax  = 2000      // entries of a manifest or a page: attempts and dead objects count here, too
	PagesMax    = 1 << 16   // at 500 segments each
	LineageMax  = 1 << 17   // epochs
	BytesMax    = 32 << 20  // of a text; no valid one is longer
	ObjectMax   = 5 << 40   // bytes of an object
	NumberMax   = 1<<62 - 1 // of offsets, sequences, attempts, page numbers and sums of bytes
	ObjectMin   = segment.SectorBytesMin + segment.BatchHeaderBytes + FooterMin
	FooterMin   = segment.TrailerBytes + 16 + 24 // one block with one entry, no producers
)

// State is what is known of an object.
type State uint8

// States.
const (
	Started  State = iota + 1 // an upload was announced: the object may or may not be there
	Finished                  // the object is durable and was verified
	Dead                      // nobody reads it any more; it is about to be deleted
	Lost                      // no object: a repair declared the span lost
)

var stateNames = [...]string{Started: "started", Finished: "finished", Dead: "dead", Lost: "lost"}

// String returns the state as the manifest spells it.
func (s State) String() string {
	if s < Started || s > Lost {
		return "unknown"
	}
	return stateNames[s]
}

// Covers reports whether an entry stands for its span in the log.
func (s State) Covers() bool { return s == Finished || s == Lost }

// Manifest is the root of the cold tier. It changes only by compare-and-swap, and every attempt to
// change it takes a sequence that was never used before.
type Manifest struct {
	LogID     segment.LogID
	Epoch     segment.Epoch // who wrote it: the highest epoch claimed
	Nonce     uint64        // of the writer
	Sequence  uint64
	Start     segment.Offset // first offset of the log
	DeletedTo segment.Offset // objects wholly below are gone; the rest is listed without a gap
	Lineage   []segment.Lineage
	Segments  []Segment // by base, then attempt
	Pages     []Page    // by base; before the segments
}

// Segment is an object, or a span without one.
type Segment struct {
	Base, End   segment.Offset
	Epoch       segment.Epoch // of the batches
	State       State
	Attempt     uint64     // of the upload; no two of a log are equal. 0 in a lost span
	ID          segment.ID // in the header of the object: seeds its checksums
	Bytes       int64      // of the object; the footer is its last FooterBytes, so that one read gets it
	FooterBytes int64
	CRC         uint32       // CRC32C of the object
	MinTime     segment.Time // least and greatest max-timestamp of the batches
	MaxTime     segment.Time
	AppendTime  segment.Time // of the newest batch
}

// Page is what a manifest says of a page: an immutable object that lists older segments.
type Page struct {
	Base, End   segment.Offset
	Number      uint64 // no two of a log are equal
	Count       int    // segments in it
	Bytes       int64  // of the text, and its CRC32C
	CRC         uint32
	ObjectBytes int64        // sum over the segments
	MinTime     segment.Time // over the segments
	MaxTime     segment.Time
	AppendTime  segment.Time // the greatest
}

// PageText is the content of a page.
type PageText struct {
	LogID    segment.LogID
	Number   uint64
	Segments []Segment // finished or lost, without a gap
}

// ErrNewer says that a manifest or a page is of a newer version: refused by it, untouched.
var ErrNewer = errors.New("manifest: of a newer version")

// Error says why a text, or the manifest that it says, does not count.
type Error struct {
	What     string // "manifest" or "page"
	Line     int    // in the text, from 1
	Field    string // "" where no field was reached
	Expected string
	Found    string
}

func (e *Error) Error() string {
	field := ""
	if e.Field != "" {
		field = ", " + e.Field
	}
	return fmt.Sprintf("manifest: %s, line %d%s: expected %s, found %s", e.What, e.Line, field, e.Expected, e.Found)
}

// Exported returns the end of what is in objects without a gap, DeletedTo if nothing is.
func (m *Manifest) Exported() segment.Offset {
	for i := len(m.Segments) - 1; i >= 0; i-- {
		if m.Segments[i].State.Covers() {
			return m.Segments[i].End
		}
	}
	if n := len(m.Pages); n > 0 {
		return m.Pages[n-1].End
	}
	return m.DeletedTo
}

// CopyFrom makes m equal to another manifest and keeps its own memory.
func (m *Manifest) CopyFrom(o *Manifest) {
	lineage, segments, pages := m.Lineage, m.Segments, m.Pages
	*m = *o
	m.Lineage = append(lineage[:0], o.Lineage...)
	m.Segments = append(segments[:0], o.Segments...)
	m.Pages = append(pages[:0], o.Pages...)
}

// reset empties m and keeps its memory.
func (m *Manifest) reset() {
	*m = Manifest{Lineage: m.Lineage[:0], Segments: m.Segments[:0], Pages: m.Pages[:0]}
}

// check panics on a broken invariant of our own code; never on what a store holds.
func check(cond bool, text string) {
	if !cond {
		panic("manifest: " + text)
	}
}
