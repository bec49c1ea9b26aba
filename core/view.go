package core

import (
	"varve/core/manifest"
	"varve/core/segment"
)

// Tier is where records are.
type Tier uint8

// Tiers.
const (
	TierHot  Tier = iota // local disk
	TierCold             // object store
	TierWarm             // in memory elsewhere
	TierCount
)

// String returns the tier's name.
func (t Tier) String() string { return [...]string{"hot", "cold", "warm"}[t] }

// Extent is a span of offsets that one segment file, or one object, serves.
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
	Tier       Tier
	Attempt    uint64 // cold: the upload that made the object
	Until      Offset // cold: where the object ends

	FooterBytes int64 // cold: of the object's footer, at its end

	Generation uint64 // warm: of the entries
}

// Object names the object of a cold extent.
func (x *Extent) Object() Object {
	return Object{Base: x.Base, End: x.Until, Epoch: x.Epoch, Attempt: x.Attempt}
}

// same reports whether two extents are of one file or object.
func (x *Extent) same(y *Extent) bool {
	return x.Segment == y.Segment && x.Tier == y.Tier && x.Attempt == y.Attempt
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
	Extents  []Extent // in offset order, dense; the cold ones are missing while that tier does not answer
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

// EpochEnd returns the greatest epoch of the log that is not above the one asked for, and where its
// records end: where the next epoch begins, or at committed. A log whose first epoch is above has
// none: 0, and its start.
func (v *View) EpochEnd(epoch Epoch, committed Offset) (found Epoch, end Offset) {
	end = v.Start
	for i := range v.Lineage {
		e := &v.Lineage[i]
		if e.Epoch > epoch {
			return found, min(max(e.First, v.Start), committed)
		}
		found, end = e.Epoch, committed
	}
	return found, end
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

// fillExtents appends the extents of all tiers: those on disk, and what the cold tier holds before
// and between them.
func (l *Log) fillExtents(dst []Extent) []Extent {
	if !l.cfg.Cold {
		return append(dst, l.extents...)
	}
	o := l.start
	for i := range l.extents {
		x := &l.extents[i]
		dst = l.coldExtents(dst, o, x.First)
		dst = append(dst, *x)
		o = max(o, x.End)
	}
	return l.coldExtents(dst, o, l.written)
}

// ColdExtents appends what the cold tier holds, whether it is on disk as well or not.
func (l *Log) ColdExtents(dst []Extent) []Extent { return l.coldExtents(dst, l.start, l.cold.exported) }

// coldExtents appends what the cold tier holds of [from, to).
func (l *Log) coldExtents(dst []Extent, from, to Offset) []Extent {
	for from < to {
		s := covering(&l.cold.list.whole, from)
		if s == nil {
			return dst
		}
		x := coldExtent(s)
		x.First, x.End = max(s.Base, from), min(s.End, to)
		if from == l.start {
			x.First = s.Base // Start may lie inside
		}
		dst = append(dst, x)
		from = s.End
	}
	return dst
}

// coldExtent returns the extent of an entry.
func coldExtent(s *manifest.Segment) Extent {
	x := Extent{
		First: s.Base, End: s.End, Segment: s.ID, Base: s.Base, Epoch: s.Epoch, Bytes: s.Bytes,
		DataPos: segment.SectorBytesMin, Sector: segment.SectorBytesMin, Index: IndexFooter,
		MinTime: s.MinTime, MaxTime: s.MaxTime, Tier: TierCold, Attempt: s.Attempt, Until: s.End,
		FooterBytes: s.FooterBytes,
	}
	if s.State == manifest.Lost {
		x.Damage, x.DamagePos, x.Lost = segment.BreakTorn, -1, true
	}
	return x
}

// healFromCold serves what a damaged file held from the cold tier, if that holds all of it, and plans a
// copy on disk. The file is kept as one that serves nothing.
func (l *Log) healFromCold(id segment.ID, at Offset) {
	for i := range l.extents {
		x := &l.extents[i]
		if x.Segment != id || at < x.First || at >= x.End || x.End == EndNone || x.Damage != segment.BreakNone {
			continue
		}
		for o := x.First; o < x.End; {
			s := covering(&l.cold.list.whole, o)
			if s == nil || s.State != manifest.Finished || s.Epoch != x.Epoch {
				return
			}
			o = s.End
		}
		l.mark(MarkHealed)
		f := l.fileOf(x.Segment)
		l.hot.heals = append(l.hot.heals, Span{Epoch: x.Epoch, First: x.First, End: x.End})
		l.extents = append(l.extents[:i], l.extents[i+1:]...)
		if f != nil && !l.serves(f) {
			f.void = true
		}
		l.viewVersion++
		return
	}
}

// nextHeal copies back from the cold tier what a damaged file held, object by object, into a file that
// wins within its span from then on.
func (l *Log) nextHeal(now Now) Effect {
	h := &l.hot
	if len(h.heals) == 0 || l.dirBusy() || l.phase != Ready || h.lowSpace || l.tail.nextN == segment.EpochMax {
		return nil
	}
	x := &h.heals[0]
	var s *manifest.Segment
	for x.First < x.End && s == nil { // what went meanwhile needs no copy
		if s = covering(&l.cold.list.whole, x.First); s == nil || x.End <= max(l.start, l.hotStart) {
			x.First, s = x.End, nil
		}
	}
	if s == nil {
		h.heals = append(h.heals[:0], h.heals[1:]...)
		return nil
	}
	h.heal = Replace{
		Header: segment.Header{
			Kind: segment.Replacement, Sync: l.cfg.Sync, SectorBytes: l.super.state.SectorBytes, LogID: l.id,
			ID: segment.MakeID(l.epoch, l.tail.nextN), Epoch: x.Epoch, Base: x.First, End: min(x.End, s.End),
			Created: now.Wall, Nonce: l.cfg.Nonce,
		},
		Object: coldExtent(s), SourceEpoch: x.Epoch, Frontier: x.First, IndexSpacingBytes: l.cfg.IndexSpacingBytes,
	}
	l.tail.nextN++
	return &h.heal
}

// onHeal puts a copy that was made into its place. One that could not be made is done without: the cold
// tier goes on serving.
func (l *Log) onHeal(now Now, e *Replace, err error) {
	h := &l.hot
	x := &h.heals[0]
	if err != nil {
		l.mark(MarkHealFailed)
		h.heals = append(h.heals[:0], h.heals[1:]...)
		return
	}
	first, end := e.Header.Base, e.Header.End
	x.First = end
	entry := FileEntry{ID: e.Header.ID, Base: first, Bytes: e.Bytes}
	l.files = append(l.files, file{entry: entry, end: end, ageFrom: now.Wall})
	if end <= max(l.start, l.hotStart) { // trimmed or evicted meanwhile
		l.dropFiles()
		return
	}
	l.mark(MarkHealedOnDisk)
	sector := int64(e.Header.SectorBytes)
	at := 0
	for at < len(l.extents) && l.extents[at].First < first {
		at++
	}
	l.extents = append(l.extents, Extent{})
	copy(l.extents[at+1:], l.extents[at:])
	l.extents[at] = Extent{
		First: first, End: end, Segment: entry.ID, Base: first, Epoch: e.Header.Epoch, Bytes: e.Bytes,
		DataPos: sector, Sector: sector, Index: IndexFooter, MinTime: e.Object.MinTime, MaxTime: e.Object.MaxTime,
	}
	l.viewVersion++
}
