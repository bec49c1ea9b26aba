package core

import "varve/core/segment"

// Extent is a span of offsets that one segment file serves.
type Extent struct {
	First, End Offset // [First, End); the active extent has no end yet: EndNone
	Segment    segment.ID
	Base       Offset        // base offset of the file, for its name
	Epoch      Epoch         // of the batches
	Bytes      int64         // size of the file; 0 while active
	DataPos    int64         // where the first batch of the file starts
	Sector     int64         // sector size of the file
	Index      IndexKind     // where to look up positions
	Damage     segment.Break // not BreakNone: this span cannot be served (allow_damaged); DamagePos says where
	DamagePos  int64
	Lost       bool // damaged, because a repair declared the span lost
	MinTime    Time // least and greatest timestamp of the records; of a sealed file
	MaxTime    Time
}

// EndNone is the end of the active extent: reads are bounded by Committed alone.
const EndNone Offset = 1<<63 - 1

// IndexKind says where positions within a file are looked up.
type IndexKind uint8

// Index kinds.
const (
	IndexNone    IndexKind = iota // scan from the first batch
	IndexFooter                   // the file's own footer
	IndexSidecar                  // the .idx file beside it
	IndexCore                     // the core's own: Log.Locate
)

// Lineage says which epoch owns which offsets: an entry owns [First, First of the next).
type Lineage = []segment.Lineage

// View is what readers plan by: a snapshot that never changes once published. Watermarks move
// without a new View; the driver publishes them beside it.
type View struct {
	Version  uint64
	LogID    segment.LogID
	Start    Offset // first offset that may be read
	HotStart Offset // first offset on local disk
	Epoch    Epoch
	Extents  []Extent // dense, in offset order, from HotStart on
	Lineage  Lineage
}

// Position is where a reader stands: the next offset, and the epoch of the record before it
// (0: do not check).
type Position struct {
	Offset Offset
	Epoch  Epoch
}

// Diverged reports whether the record before p is not the one that the reader saw: some newer
// epoch begins below p, or p's epoch is one that this log never had.
func (v *View) Diverged(p Position) bool {
	if p.Epoch == 0 {
		return false
	}
	known := p.Epoch <= v.Epoch
	for i := range v.Lineage {
		if v.Lineage[i].Epoch > p.Epoch && v.Lineage[i].First < p.Offset {
			return true
		}
	}
	return !known
}

// EpochAt returns the epoch that owns an offset, 0 if none does.
func (v *View) EpochAt(o Offset) Epoch {
	var e Epoch
	for i := range v.Lineage {
		if v.Lineage[i].First > o {
			break
		}
		e = v.Lineage[i].Epoch
	}
	return e
}
