package core

import (
	"varve/core/manifest"
	"varve/core/segment"
)

// file is a sealed or inherited segment file.
type file struct {
	entry   FileEntry
	end     Offset // after its last record
	ageFrom Time   // wall time from which its age counts: append time, at most the time of first sight
	void    bool   // serves nothing: its epoch does not own its offsets; kept until retention
}

// retention is what moves Start: Trim, and the limits on size and age.
type retention struct {
	want      Offset // Start shall reach it
	hot       Offset // with a cold tier: HotStart shall reach it, as far as the cold tier holds what lies below
	relief    Offset // because space is short, so far
	nextCheck Time   // Mono
}

// Trim lets everything below an offset go. Start moves, in both superblock slots, before anyone
// sees it and before any file is removed; it is done when View.Start has reached the offset.
func (l *Log) Trim(_ Now, before Offset) error {
	if err := l.refuse(); err != nil {
		return err
	}
	if before > l.committed {
		return ErrOutOfRange
	}
	if before > l.frontier {
		l.mark(MarkTrimSync)
	}
	if before > l.keep.want {
		l.keep.want = before
	}
	return nil
}

// Export lets the cold tier have everything below an offset: a segment that is still active is sealed
// for it. It is done when Exported has reached the offset.
func (l *Log) Export(_ Now, before Offset) error {
	if err := l.refuse(); err != nil {
		return err
	}
	if !l.cfg.Cold {
		return ErrNoColdTier
	}
	if before > l.committed {
		return ErrOutOfRange
	}
	a := &l.tail.active
	if a.open && before > a.header.Base && a.pos > a.dataPos {
		l.tail.rollWanted = true
	}
	return nil
}

// Offload lets everything below an offset leave the local disk once the cold tier holds it. Whole files
// go; it is done when View.HotStart has come as near to the offset as files allow.
func (l *Log) Offload(now Now, before Offset) error {
	if err := l.Export(now, before); err != nil {
		return err
	}
	l.mark(MarkOffload)
	l.keep.hot = max(l.keep.hot, before)
	l.cold.lookAt = 0
	return nil
}

// Offloaded reports whether no file is left on disk whose records are all below an offset.
func (l *Log) Offloaded(before Offset) bool {
	if a := &l.tail.active; a.open && l.tail.rollWanted {
		return false
	}
	return len(l.extents) == 0 || l.extents[0].End > before
}

// startTarget is how far Start may move now: never past what is proven and acked, and with a cold
// tier never past what the manifest says, because another owner may have taken the log over.
func (l *Log) startTarget() Offset {
	to := min(l.keep.want, l.frontier, l.committed)
	if l.cfg.Warm && !l.cfg.Cold {
		to = min(to, l.warm.said.start)
	}
	if l.cfg.Cold {
		to = min(to, l.cold.m.Start)
	}
	return to
}

// hotTarget is how far files may leave the disk now, with a cold tier: a file goes only once the
// manifest lists verified objects for all of its span and a look has just found them, and never above
// what is committed. Files go together, for each move costs saves of the superblock.
func (l *Log) hotTarget() Offset {
	c := &l.cold
	to, seen := l.wholeFiles(l.leaving()), c.seen
	if l.keep.relief > seen && c.fails[Catalogue] > 0 && c.missed == nil && max(seen, l.hotStart) >= c.began {
		l.mark(MarkRelieved)                  // space is short, and the bucket does not answer:
		seen = min(l.keep.relief, c.exported) // what this life wrote there itself is taken for whole
	}
	if seen >= to || c.missed != nil || c.looks >= looksMax || l.keep.relief > l.hotStart {
		return min(to, l.wholeFiles(seen))
	}
	return 0
}

// looksMax bounds how many objects are looked at before files go.
const looksMax = 64

// leaving is how far files are to leave the disk.
func (l *Log) leaving() Offset { return min(l.keep.hot, l.cold.exported, l.committed) }

// wholeFiles returns the end of the last file that ends at an offset or below.
func (l *Log) wholeFiles(limit Offset) Offset {
	to := Offset(0)
	for i := range l.extents {
		if x := &l.extents[i]; x.End <= limit && x.End != EndNone {
			to = x.End
		} else {
			break
		}
	}
	return to
}

// nextLook looks at the next object that a file is about to leave its records to. It was whole when it
// was written; since then a rule or a hand may have deleted it, and the file would be the last copy.
func (l *Log) nextLook(now Now) Effect {
	c := &l.cold
	from := max(c.seen, l.hotStart, l.start)
	if l.leaving() <= from || now.Mono < c.lookAt {
		return nil
	}
	to := l.wholeFiles(l.leaving())
	for ; from < to; from = c.seen {
		s := covering(&c.list.whole, from)
		if s == nil { // Start is on its way past it
			return nil
		}
		if s.State == manifest.Finished {
			c.look = ScanObject{Extent: coldExtent(s), LogID: l.id, Lineage: l.lineage, Info: c.look.Info}
			return &c.look
		}
		c.seen = s.End // what a repair gave up
	}
	return nil
}

// onLook lets files go, or keeps them where the object is gone or another one.
func (l *Log) onLook(now Now, e *ScanObject, err error) {
	c := &l.cold
	x := &e.Extent
	switch {
	case err != nil:
		c.backoff(now, Catalogue, err)
	case e.Info.Sealed:
		c.succeeded(Catalogue)
		c.seen = max(c.seen, x.Until)
		c.missed, c.misses, c.lookAt = nil, 0, 0
		c.looks++
	default:
		c.succeeded(Catalogue)
		l.mark(MarkLookFailed)
		c.missed = &CorruptError{
			Segment: x.Segment, Base: x.Base, Pos: -1, Offset: x.First, End: x.End, Tier: TierCold,
			Object:   Object{Base: x.Base, End: x.Until, Epoch: x.Epoch, Attempt: x.Attempt},
			Expected: "the object that the manifest lists", Found: "none, or one that is not whole; the files of its records stay on disk",
		}
		c.lookAt = now.Mono + retryDelay<<min(c.misses, 6)
		c.misses++
	}
}

// Misses counts the looks in a row that did not find an object whole for which files are to leave the disk,
// and says which one it is.
func (l *Log) Misses() (n int, err error) {
	if l.cold.missed == nil {
		return 0, nil
	}
	return l.cold.misses, l.cold.missed
}

// relieve lets files go before their time while space is short, the oldest first, if the cold tier
// holds them: as many as make room for a segment above what is to stay free.
func (l *Log) relieve(free int64) {
	if !l.cfg.Cold || l.phase != Ready {
		return
	}
	need, limit := l.cfg.MinFreeBytes+l.cfg.SegmentBytes-max(free, 0), min(l.cold.exported, l.committed)
	for i := range l.extents {
		x := &l.extents[i]
		if need <= 0 || x.End > limit {
			return
		}
		if f := l.fileOf(x.Segment); f != nil && l.extentEnd(f.entry) == x.End {
			need -= f.entry.Bytes
		}
		if x.End > l.keep.hot {
			l.mark(MarkRelieved)
			l.keep.hot = x.End
		}
		l.keep.relief = max(l.keep.relief, x.End)
	}
}

// hotStartAt returns the first offset kept on disk when Start is at an offset: files go whole.
func (l *Log) hotStartAt(start Offset) Offset {
	if l.cfg.Cold {
		start = max(start, l.hotStart, l.hotTarget())
	}
	for i := range l.extents {
		if l.extents[i].End > start {
			return min(l.extents[i].First, start)
		}
	}
	return start
}

// moveStart makes a Start that both slots hold visible, and lets files go.
func (l *Log) moveStart() {
	s := &l.super
	to, hot := min(s.start[0], s.start[1]), min(s.hot[0], s.hot[1])
	if !s.renamed[0] || !s.renamed[1] || to <= l.start && (!l.cfg.Cold || hot <= l.hotStart) {
		return
	}
	l.hotStart = max(l.hotStart, hot)
	if to > l.start {
		l.mark(MarkTrim)
		l.start = to
		l.lineage = trimLineage(l.lineage, to)
		l.cold.delete = true
		if m := l.cold.missed; m != nil && m.End <= to { // nobody needs it any more
			l.cold.missed, l.cold.misses, l.cold.lookAt = nil, 0, 0
		}
		l.raiseExported()
	}
	floor := to
	if l.cfg.Cold {
		floor = max(to, l.hotStart)
	}
	n := 0
	l.cold.looks = 0
	for n < len(l.extents) && l.extents[n].End <= floor {
		n++
	}
	if n > 0 && floor > to {
		l.mark(MarkEvicted)
	}
	l.extents = append(l.extents[:0], l.extents[n:]...)
	if len(l.extents) > 0 && l.extents[0].First < to {
		l.mark(MarkTrimInside)
	}
	l.dropFiles()
	l.viewVersion++
}

// dropFiles hands every file to removal that serves nothing any more, void ones once they lie below
// what is kept on disk.
func (l *Log) dropFiles() {
	floor := l.start
	if l.cfg.Cold {
		floor = max(floor, l.HotStart())
	}
	keep := l.files[:0]
	for i := range l.files {
		f := l.files[i]
		if f.entry.Base < floor && !l.serves(&f) && (!f.void || f.end <= floor) {
			l.hot.removeLater(f.entry)
		} else {
			keep = append(keep, f)
		}
	}
	l.files = keep
}

// serves reports whether a file serves any offset still. Extents come in offset order.
func (l *Log) serves(f *file) bool {
	for i := range l.extents {
		x := &l.extents[i]
		if x.First >= f.end {
			break
		}
		if x.Segment == f.entry.ID {
			return true
		}
	}
	return false
}

// trimLineage drops entries that own nothing from Start-1 on.
func trimLineage(lineage []segment.Lineage, start Offset) []segment.Lineage {
	n := 0
	for n+1 < len(lineage) && lineage[n+1].First <= start-1 {
		n++
	}
	return append(lineage[:0], lineage[n:]...)
}

// tickRetention checks the limits at an open and on their own timer, never on an append.
func (l *Log) tickRetention(now Now) {
	if now.Mono < l.keep.nextCheck || !l.retains() {
		return
	}
	l.keep.nextCheck = now.Mono + l.cfg.RetentionCheckInterval
	bytesMax, ageMax := l.cfg.RetentionBytes, l.cfg.RetentionAge
	if !l.cfg.Cold {
		bytesMax = tighter(bytesMax, l.cfg.LocalRetentionBytes)
		ageMax = tighter(ageMax, l.cfg.LocalRetentionAge)
	} else {
		to := l.retentionTarget(now, l.hotBytes(), l.cfg.LocalRetentionBytes, l.cfg.LocalRetentionAge)
		l.keep.hot = max(l.keep.hot, to)
		l.coldRetention(now, bytesMax, ageMax)
		return
	}
	if to := l.retentionTarget(now, l.hotBytes(), bytesMax, ageMax); to > l.keep.want && to > l.start {
		l.keep.want = to
	}
}

// coldRetention applies the total limits to what is in the cold tier and what is not there yet. Every
// byte counts once.
func (l *Log) coldRetention(now Now, bytesMax, ageMax int64) {
	c := &l.cold
	rest, _ := l.unexported()
	total := rest
	for i := range c.list.whole.Segments {
		if s := &c.list.whole.Segments[i]; s.State == manifest.Finished && s.End > l.keep.want {
			total += s.Bytes
		}
	}
	target := l.start
	for i := range c.list.whole.Segments {
		s := &c.list.whole.Segments[i]
		if s.End <= l.keep.want {
			continue
		}
		tooBig := bytesMax != Unlimited && total-s.Bytes >= bytesMax
		tooOld := ageMax != Unlimited && older(now.Wall, c.list.ages[i], ageMax)
		if s.State == manifest.Lost { // it goes with what follows it, never by itself
			continue
		}
		if !tooBig && !tooOld {
			l.keep.want = max(l.keep.want, target)
			return
		}
		l.mark(MarkRetentionCold)
		total -= s.Bytes
		target = s.End
	}
	l.keep.want = max(l.keep.want, target)
	if to := l.retentionTarget(now, rest, bytesMax, ageMax); to > l.keep.want && target >= c.exported {
		l.keep.want = to // the bucket is down for longer than records are kept
	}
}

// hotBytes returns the bytes of the files that serve.
func (l *Log) hotBytes() int64 {
	total := int64(0)
	for i := range l.files {
		if !l.files[i].void {
			total += l.files[i].entry.Bytes
		}
	}
	if l.tail.active.open {
		total += l.tail.active.pos
	}
	return total
}

// retains reports whether any limit is set. A repair is not the time to let go of anything.
func (l *Log) retains() bool {
	return !l.cfg.Repair && (l.cfg.RetentionBytes != Unlimited || l.cfg.LocalRetentionBytes != Unlimited ||
		l.cfg.RetentionAge != Unlimited || l.cfg.LocalRetentionAge != Unlimited)
}

// tighter returns the lesser limit.
func tighter(a, b int64) int64 {
	if a == Unlimited || b != Unlimited && b < a {
		return b
	}
	return a
}

// retentionTarget walks whole segments from the head: those that are too old, and those without which
// at least bytesMax are kept. The active segment and whatever is not proven stay.
func (l *Log) retentionTarget(now Now, total, bytesMax, ageMax int64) Offset {
	target := l.start
	for i := range l.extents {
		x := &l.extents[i]
		if x.End == EndNone || x.End > min(l.frontier, l.committed) {
			break
		}
		f := l.fileOf(x.Segment)
		if f == nil {
			continue // damaged: it goes with what follows it, never by itself
		}
		tooBig := bytesMax != Unlimited && total-f.entry.Bytes >= bytesMax
		tooOld := ageMax != Unlimited && older(now.Wall, f.ageFrom, ageMax)
		if !tooBig && !tooOld {
			break
		}
		if tooBig {
			l.mark(MarkRetentionSize)
		} else {
			l.mark(MarkRetentionAge)
		}
		target = x.End
		if l.extentEnd(f.entry) <= x.End {
			total -= f.entry.Bytes
		}
	}
	return target
}

// older reports whether from lies more than age before now. The difference of two readings of a clock
// need not fit into a Time.
func older(now, from, age Time) bool {
	return now > from && uint64(now)-uint64(from) > uint64(age)
}

func (l *Log) fileOf(id segment.ID) *file {
	for i := range l.files {
		if l.files[i].entry.ID == id {
			return &l.files[i]
		}
	}
	return nil
}
