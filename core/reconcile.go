package core

import (
	"fmt"

	"varve/core/manifest"
	"varve/core/segment"
)

// reconcile makes the plan. It is pure and idempotent; it may ask for files to be verified batch by
// batch first (rescan), and is called again afterwards.
func (p *Plan) reconcile(s *segment.Superblock, cfg *Config, marks *MarkSet) {
	r := reconciler{p: p, s: s, cfg: cfg, marks: marks}
	p.Extents, p.Rescues, p.Damage = p.Extents[:0], p.Rescues[:0], p.Damage[:0]
	p.quarantines, p.Declared = p.quarantines[:0], p.Declared[:0]
	p.Refused, p.Torn, p.TornBytes = nil, false, 0
	p.Start, p.HotStart = s.Start, s.HotStart
	switch {
	case p.cold != nil: // the manifest's moves first; what an entry of the warm tier says, a fenced owner may only have wanted
		p.Start = max(p.Start, p.cold.Start)
	case p.warm != nil:
		p.Start = max(p.Start, p.warm.start)
	}
	r.measureFiles()
	r.claimEpoch()
	if p.Refused != nil {
		return
	}
	r.gatherEvidence()
	if r.wantsRescans() {
		return
	}
	r.walk()
	if r.again || p.Refused != nil {
		return
	}
	r.rescue()
	r.judgeFiles()
}

type reconciler struct {
	p     *Plan
	s     *segment.Superblock
	cfg   *Config
	marks *MarkSet
	again bool // a rescan is wanted
}

func (r *reconciler) refuse(f *PlanFile, why, next string) {
	r.p.refusal = RefusedError{Name: segment.Name(f.Entry.Base, f.Entry.ID), Why: why, Next: next}
	r.p.Refused = &r.p.refusal
}

// measureFiles notes each file's end and age, and refuses what is not ours to read.
func (r *reconciler) measureFiles() {
	reach := Offset(0)
	for i := range r.p.Files {
		f := &r.p.Files[i]
		f.end, f.appendTime, f.rescan = f.Entry.Base, 0, false
		switch f.Info.Verdict {
		case segment.HeaderForeign:
			r.marks.Add(MarkForeign)
			r.refuse(f, "it belongs to another log", "move it out of the directory")
			return
		case segment.HeaderNewer:
			r.marks.Add(MarkSuperNewer)
			r.refuse(f, fmt.Sprintf("its format is of version %d, and this program reads up to %d", f.Info.Version, segment.FormatVersion), "use a newer varve")
			return
		case segment.HeaderDamaged:
			if f.batches() {
				r.marks.Add(MarkHeaderByName)
			}
		}
		if f.quick() {
			f.end, f.appendTime = f.Info.Footer.End, f.Info.Footer.AppendTime
		}
		if f.lost() {
			f.end = f.Info.Header.End
		}
		for j := range f.Info.Runs {
			f.end = max(f.end, f.Info.Runs[j].End)
			f.appendTime = max(f.appendTime, f.Info.Runs[j].AppendTime)
		}
		reach = max(reach, f.end)
		if f.replacement() {
			reach = max(reach, f.Info.Header.End)
		}
		f.reach = reach
		if r.p.twins && f.usable() && f.batches() && r.hasTwin(i) {
			r.refuse(f, "another file has its segment id", "move one of the two out of the directory")
			return
		}
		if max(f.end, f.Info.Evidence) > offsetMax && (f.batches() || f.lost()) {
			r.refuse(f, "it holds offsets beyond the greatest that a log gives out", "move it out of the directory")
			return
		}
	}
}

// hasTwin reports whether a file before the i-th holds batches under the same segment id.
func (r *reconciler) hasTwin(i int) bool {
	for j := range r.p.Files[:i] {
		if f := &r.p.Files[j]; f.Entry.ID == r.p.Files[i].Entry.ID && f.usable() && f.batches() {
			return true
		}
	}
	return false
}

// claimEpoch takes the highest epoch that verified fields name, plus one. A batch of an epoch that
// no superblock ever completed means that the superblock itself went back.
func (r *reconciler) claimEpoch() {
	p := r.p
	top := r.s.Epoch
	last := Epoch(0)
	if n := len(r.s.Lineage); n > 0 {
		last = r.s.Lineage[n-1].Epoch
	}
	for i := range p.Files {
		f := &p.Files[i]
		top = max(top, f.Info.Epoch)
		if f.Info.Verdict == segment.HeaderGood {
			top = max(top, f.Entry.ID.Owner())
		}
		if f.Info.Epoch > last {
			r.marks.Add(MarkEpochAhead)
			r.refuse(f, "its batches are of an epoch that the superblock does not know: the superblock went back",
				"move super.0 and super.1 out of the directory, then run: varve log repair")
			return
		}
	}
	if p.floor > 0 {
		top = max(top, p.floor-1)
	}
	if top >= segment.EpochMax-1 {
		p.refusal = RefusedError{Why: "its epochs are used up", Next: "copy its records into a new log"}
		p.Refused = &p.refusal
		return
	}
	p.Epoch = top + 1
}

// gatherEvidence finds the greatest proven offset: the superblock's frontier and every placement
// header's, each capped where a later epoch begins.
func (r *reconciler) gatherEvidence() {
	ev := max(r.s.Frontier, r.s.Start)
	for i := range r.p.Files {
		f := &r.p.Files[i]
		if f.usable() && f.Info.Epoch != 0 {
			ev = max(ev, min(f.Info.Evidence, laterFirst(r.s.Lineage, f.Info.Epoch)))
		}
	}
	r.p.Evidence = ev
}

// wantsRescans asks for batch by batch verification of files that only a footer vouches for and
// that reach above evidence: a footer is no evidence. The one that reaches farthest comes first: its
// headers usually prove all the others, so that a crash between two segments does not make an open
// read the whole log. It also asks for a file whose footer reaches into the next one of its epoch: a
// life's segments follow each other, so that footer is wrong, whatever its checksum.
func (r *reconciler) wantsRescans() bool {
	far := r.p.Evidence
	at := -1
	for i := range r.p.Files {
		f := &r.p.Files[i]
		if r.overlaps(i) {
			f.rescan, r.again = true, true
			return true
		}
		if f.usable() && f.quick() && f.Info.Footer.End > far {
			at, far = i, f.Info.Footer.End
		}
	}
	if at >= 0 {
		r.p.Files[at].rescan, r.again = true, true
	}
	return r.again
}

// overlaps reports whether the footer of a created file claims offsets at which another file of its
// epoch was created.
func (r *reconciler) overlaps(at int) bool {
	files := r.p.Files
	f := &files[at]
	if !f.usable() || !f.quick() || f.replacement() {
		return false
	}
	for i := at + 1; i < len(files) && files[i].Entry.Base < f.Info.Footer.End; i++ {
		if n := &files[i]; n.usable() && !n.replacement() && n.epoch() == f.epoch() && n.batches() {
			return true
		}
	}
	return false
}

// walk goes from HotStart to the recovered end, taking at each offset the file that may serve it.
func (r *reconciler) walk() {
	p := r.p
	r.coldPrefix()
	o := p.HotStart
	for !r.again && p.Refused == nil {
		epoch, limit := ownerOf(r.s.Lineage, o)
		at, end := r.pick(o, epoch)
		if at < 0 {
			if held, ok := r.held(o, epoch); ok {
				r.marks.Add(MarkColdServes)
				o = min(held, limit, r.nextServed(o))
				continue
			}
			if held, at := r.warmHeld(o, epoch); at >= 0 {
				held = min(held, limit, r.nextServed(o))
				s := &p.warm.spans[at]
				x := Extent{First: o, End: held, Base: o, Epoch: epoch, Tier: TierWarm, Generation: s.Generation}
				if len(p.Extents) == 0 && o <= p.Start {
					x.Base = s.First // Start may lie inside a batch
				}
				p.Extents = append(p.Extents, x)
				o = held
				continue
			}
			next, more := r.gap(o, epoch)
			if !more {
				next, more = r.warmGap(o)
			}
			if !more {
				break
			}
			o = next
			continue
		}
		end = min(end, limit)
		if f := &p.Files[at]; f.lost() {
			p.Extents = append(p.Extents, lostExtent(f, epoch, o, end))
		} else {
			r.extend(at, epoch, o, end)
		}
		o = end
	}
	p.End = o
	if p.cold == nil {
		return
	}
	p.HotStart = o
	if len(p.Extents) > 0 {
		p.HotStart = p.Extents[0].First
	}
}

// coldPrefix checks that what lies before HotStart is in the cold tier, without a gap.
func (r *reconciler) coldPrefix() {
	p := r.p
	if p.cold == nil {
		return
	}
	for o := p.Start; o < p.HotStart; {
		s := covering(p.cold, o)
		if s != nil {
			o = s.End
			continue
		}
		if r.cfg.AcceptLoss {
			r.marks.Add(MarkAcceptLoss)
			p.Start = min(nextCovered(p.cold, o), p.HotStart)
			o = p.Start
			continue
		}
		r.marks.Add(MarkTierGap)
		p.refusal = RefusedError{
			Why:  fmt.Sprintf("records [%d, %d) are neither on disk nor in the cold tier", o, min(nextCovered(p.cold, o), p.HotStart)),
			Next: "give the bucket its objects back; accept_loss gives these records and what lies before them up",
		}
		p.Refused = &p.refusal
		return
	}
}

// held returns how far the cold tier holds an offset under the epoch that owns it.
func (r *reconciler) held(o Offset, epoch Epoch) (end Offset, ok bool) {
	if r.p.cold == nil {
		return 0, false
	}
	s := covering(r.p.cold, o)
	if s == nil || s.State == manifest.Finished && s.Epoch != epoch {
		return 0, false
	}
	return s.End, true
}

// warmHeld returns how far the warm tier holds an offset under the epoch that owns it.
func (r *reconciler) warmHeld(o Offset, epoch Epoch) (end Offset, at int) {
	if r.p.warm == nil {
		return 0, -1
	}
	return r.p.warm.holds(o, epoch)
}

// warmGap judges an offset at which the log seems to end. It does not, if the warm tier holds what comes
// later, or says that it was committed: then records are in no tier. accept_loss gives up what lies before
// a hole, or the end that is missing.
func (r *reconciler) warmGap(o Offset) (next Offset, more bool) {
	p := r.p
	if p.warm == nil || r.again || p.Refused != nil {
		return 0, false
	}
	next, held := p.warm.nextHeld(o, r.s.Lineage)
	told := min(p.warm.told, laterFirst(r.s.Lineage, p.warm.toldEpoch))
	if !held && (told <= o || r.s.Sync != segment.OnCommit && !p.absent) {
		return 0, false // under the other policies a disk may lose what it had not synced
	}
	if r.cfg.AcceptLoss {
		r.marks.Add(MarkAcceptLoss)
		if !held {
			return 0, false
		}
		p.Torn, p.TornBytes, p.Extents = false, 0, p.Extents[:0]
		p.Start, p.HotStart = next, next
		return next, true
	}
	if !held {
		next = told
	}
	r.marks.Add(MarkTierGap)
	p.refusal = RefusedError{
		Why:  fmt.Sprintf("records [%d, %d) were committed and are neither on disk nor in the warm tier", o, next),
		Next: "give the directory its files back; accept_loss gives up these records, and what lies before them if others follow",
	}
	p.Refused, p.hole = &p.refusal, true
	return 0, false
}

// pick returns the file that serves an offset, and how far. A replacement wins within its span,
// whatever it holds; the highest id among several. Files are ordered by base, so that a log of many
// segments is planned in a time that grows with their number and not with its square.
func (r *reconciler) pick(o Offset, epoch Epoch) (at int, end Offset) {
	files := r.p.Files
	above := r.above(o)
	best, claimed := -1, false
	for i := above - 1; i >= 0 && files[i].reach > o; i-- {
		f := &files[i]
		if !f.usable() || f.epoch() != epoch {
			continue
		}
		claims := f.replacement()
		if claims && o >= f.Info.Header.End {
			continue
		}
		if _, ok := f.run(o); !ok && !claims {
			continue
		}
		if best < 0 || claims && !claimed || claims == claimed && f.Entry.ID > files[best].Entry.ID {
			best, claimed = i, claims
		}
	}
	if best < 0 {
		return -1, 0
	}
	f := &files[best]
	end, ok := f.run(o)
	if f.lost() {
		end, ok = f.Info.Header.End, true
	}
	if !ok {
		return -1, 0
	}
	if claimed {
		end = min(end, f.Info.Header.End)
	}
	for i := above; i < len(files) && files[i].Entry.Base < end; i++ {
		if n := &files[i]; n.usable() && n.replacement() && n.epoch() == epoch && n.Entry.ID > f.Entry.ID {
			end = n.Entry.Base
		}
	}
	return best, end
}

// above returns the index of the first file whose base is above an offset.
func (r *reconciler) above(o Offset) int {
	low, high := 0, len(r.p.Files)
	for low < high {
		if mid := int(uint(low+high) >> 1); r.p.Files[mid].Entry.Base > o {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// extend serves [first, end) from a file. A run of batches that begins at first is an extent of its
// own even where the offsets go on: a break lies before it, and a rescue copies one run.
func (r *reconciler) extend(at int, epoch Epoch, first, end Offset) {
	p := r.p
	f := &p.Files[at]
	if n := len(p.Extents); n > 0 && !f.runBegins(first) {
		if x := &p.Extents[n-1]; x.Segment == f.Entry.ID && x.End == first && x.Damage == segment.BreakNone {
			x.End = end
			return
		}
	}
	p.Extents = append(p.Extents, extentOf(f, epoch, first, end))
}

func lostExtent(f *PlanFile, epoch Epoch, first, end Offset) Extent {
	return Extent{
		First: first, End: end, Segment: f.Entry.ID, Base: f.Entry.Base, Epoch: epoch, Bytes: f.Entry.Bytes,
		Damage: segment.BreakTorn, DamagePos: -1, Lost: true,
	}
}

func extentOf(f *PlanFile, epoch Epoch, first, end Offset) Extent {
	sector := int64(f.Info.Header.SectorBytes)
	x := Extent{
		First: first, End: end, Segment: f.Entry.ID, Base: f.Entry.Base, Epoch: epoch,
		Bytes: f.Entry.Bytes, DataPos: sector, Sector: sector,
	}
	switch {
	case f.Info.Sealed:
		x.Index = IndexFooter
	case f.Info.Sidecar:
		x.Index = IndexSidecar
	}
	if f.quick() {
		x.MinTime, x.MaxTime = f.Info.Footer.MinTime, f.Info.Footer.MaxTime
		return x
	}
	x.MinTime, x.MaxTime = f.Info.Runs[0].MinTime, f.Info.Runs[0].MaxTime
	for i := range f.Info.Runs {
		x.MinTime = min(x.MinTime, f.Info.Runs[i].MinTime)
		x.MaxTime = max(x.MaxTime, f.Info.Runs[i].MaxTime)
	}
	return x
}

// gap judges an offset that nothing serves: below evidence it is damage or loss, above it the end.
// It returns where to go on, if the walk goes on.
func (r *reconciler) gap(o Offset, epoch Epoch) (next Offset, more bool) {
	p := r.p
	at := r.suspect(o, epoch)
	if at >= 0 && p.Files[at].quick() {
		if o >= p.Evidence && p.Files[at].Info.Sealed {
			return 0, false // a footer ends its file, and it ends below evidence: nothing follows
		}
		r.marks.Add(MarkGapRescan)
		p.Files[at].rescan, r.again = true, true
		return 0, false
	}
	if o < p.Start {
		return r.skip(o), true
	}
	if o < p.Evidence {
		return r.damage(o, at)
	}
	if at < 0 {
		return 0, false
	}
	f := &p.Files[at]
	why, pos := f.breakAt(o)
	switch why {
	case segment.BreakPayload:
		if r.syncMode(f) == segment.OnCommit && !r.cfg.RepairChecksumTail {
			r.marks.Add(MarkRefusedChecksum)
			r.corrupt(f, o, 0, pos, "payload checksum of the last batch",
				"another one in whole sectors; a torn write cannot leave that (repair_checksum_tail takes it as torn)")
			p.Refused = &p.Damage[len(p.Damage)-1]
			return 0, false
		}
		r.marks.Add(MarkTornChecksum)
		r.torn(at, pos)
	case segment.BreakTorn:
		r.marks.Add(MarkTornTail)
		r.torn(at, pos)
	}
	return 0, false
}

// skip goes on behind a span below Start that nothing serves: whoever trimmed gave it up. What lies
// before it goes as well, because extents are dense.
func (r *reconciler) skip(o Offset) (next Offset) {
	r.marks.Add(MarkBelowStart)
	p := r.p
	p.HotStart = min(r.nextServed(o), p.Start)
	p.Extents = p.Extents[:0]
	return p.HotStart
}

func (r *reconciler) syncMode(f *PlanFile) segment.SyncMode {
	if f.Info.Verdict == segment.HeaderGood {
		return f.Info.Header.Sync
	}
	return r.s.Sync
}

func (r *reconciler) torn(at int, pos int64) {
	r.p.Torn, r.p.TornFile, r.p.TornPos = true, at, pos
	r.p.TornBytes = max(0, r.p.Files[at].Info.Bytes-pos)
}

// suspect returns the file that should hold an offset: the replacement that claims it, else the
// last file of the epoch that begins at or below it.
func (r *reconciler) suspect(o Offset, epoch Epoch) int {
	best, claimed := -1, false
	for i := range r.p.Files {
		f := &r.p.Files[i]
		if !f.usable() || f.epoch() != epoch && f.epoch() != 0 || f.Entry.Base > o {
			continue
		}
		claims := f.replacement() && o < f.Info.Header.End
		if f.replacement() && !claims {
			continue
		}
		if best < 0 || claims && !claimed || claims == claimed && !before(&f.Entry, &r.p.Files[best].Entry) {
			best, claimed = i, claims
		}
	}
	return best
}

// damage records what is missing below evidence. With allow_damaged the walk goes on behind it.
func (r *reconciler) damage(o Offset, at int) (next Offset, more bool) {
	p := r.p
	next = r.nextServed(o)
	why, pos := segment.BreakNone, int64(-1)
	if at >= 0 {
		why, pos = p.Files[at].breakAt(o)
	}
	if next == EndNone && r.cfg.Repair {
		r.marks.Add(MarkRepairSuffix)
		r.recordDamage(o, p.Evidence, at, why, pos)
		p.Evidence = o
		return 0, false
	}
	if why == segment.BreakNone && next == EndNone && !r.cfg.AllowDamaged {
		r.marks.Add(MarkLostSuffix)
		p.Lost = LostSuffixError{End: o, Evidence: p.Evidence}
		if at >= 0 {
			f := &p.Files[at]
			p.Lost.Segment, p.Lost.Base, p.Lost.Pos = f.Entry.ID, f.Entry.Base, pos
		}
		p.Refused = &p.Lost
		return 0, false
	}
	if next == EndNone {
		next = p.Evidence
	} else {
		r.marks.Add(MarkEvidenceBehind)
	}
	r.marks.Add(MarkCorrupt)
	r.recordDamage(o, next, at, why, pos)
	if !r.cfg.AllowDamaged && !r.cfg.Repair {
		p.Refused = &p.Damage[0]
		return 0, false
	}
	epoch, limit := ownerOf(r.s.Lineage, o)
	next = min(next, limit, p.Evidence) // above evidence a gap is the end
	if r.cfg.Repair {
		r.marks.Add(MarkRepairLost)
		p.Declared = append(p.Declared, Span{Epoch: epoch, First: o, End: next})
	} else {
		r.marks.Add(MarkAllowDamaged)
	}
	x := Extent{First: o, End: next, Epoch: epoch, Damage: segment.BreakTorn, DamagePos: pos}
	if at >= 0 {
		f := &p.Files[at]
		x.Segment, x.Base, x.Bytes = f.Entry.ID, f.Entry.Base, f.Entry.Bytes
		f.Fate = FateDamaged
	}
	p.Extents = append(p.Extents, x)
	return next, true
}

func (r *reconciler) recordDamage(o, end Offset, at int, why segment.Break, pos int64) {
	missing := PlanFile{Entry: FileEntry{Base: o}}
	f := &missing
	if at >= 0 {
		f = &r.p.Files[at]
	}
	switch why {
	case segment.BreakPayload:
		r.corrupt(f, o, end, pos, "payload checksum of a committed batch", "another one")
	case segment.BreakTorn:
		r.corrupt(f, o, end, pos, "a committed batch", "bytes that do not verify")
	default:
		r.corrupt(f, o, end, pos, "a committed batch", "nothing")
	}
}

func (r *reconciler) corrupt(f *PlanFile, o, end Offset, pos int64, expected, found string) {
	r.p.Damage = append(r.p.Damage, CorruptError{
		Segment: f.Entry.ID, Base: f.Entry.Base, Pos: pos, Offset: o, End: end, Expected: expected, Found: found,
	})
}

// nextServed returns the least offset above o at which a file could serve again: where a run or what
// is declared lost begins, where the claim of a replacement ends, or where another epoch takes over.
func (r *reconciler) nextServed(o Offset) Offset {
	next := EndNone
	consider := func(epoch Epoch, first Offset) {
		if owner, _ := ownerOf(r.s.Lineage, first); first > o && first < next && owner == epoch {
			if at, _ := r.pick(first, epoch); at >= 0 {
				next = first
			}
		}
	}
	for i := range r.p.Files {
		f := &r.p.Files[i]
		if !f.usable() {
			continue
		}
		if f.quick() {
			consider(f.epoch(), f.Info.Footer.Base)
		}
		if f.lost() {
			consider(f.epoch(), f.Info.Header.Base)
		}
		if f.replacement() {
			consider(f.epoch(), f.Info.Header.End)
		}
		for j := range f.Info.Runs {
			consider(f.epoch(), f.Info.Runs[j].First)
		}
	}
	for _, l := range r.s.Lineage {
		consider(l.Epoch, l.First)
	}
	return next
}

// rescue plans a copy of everything above evidence: the page cache may hold what the device never
// got, and a fresh sync would not tell.
func (r *reconciler) rescue() {
	p := r.p
	for i := range p.Extents {
		x := &p.Extents[i]
		if x.Tier == TierWarm { // from memory elsewhere to the disk, before anything else happens
			r.marks.Add(MarkWarmRefill)
			p.Rescues = append(p.Rescues, Rescue{File: -1, Generation: x.Generation, Epoch: x.Epoch, First: x.Base, End: x.End})
			continue
		}
		if x.End <= p.Evidence || x.Damage != segment.BreakNone {
			continue
		}
		if p.cold != nil && x.End <= p.Start {
			continue // a log that was taken over where it started may be cut inside a batch
		}
		file, first := p.fileIndex(x.Segment), max(x.First, p.Evidence)
		if p.warm != nil && first <= p.Start { // the evidence of a rebuilt directory is a Start, which may lie inside a batch
			first = x.First
			if i == 0 { // and so may this one
				first = p.Files[file].runFirst(first)
			}
		}
		p.Rescues = append(p.Rescues, Rescue{File: file, Epoch: x.Epoch, First: first, End: x.End})
	}
}

func (p *Plan) fileIndex(id segment.ID) int {
	for i := range p.Files {
		if f := &p.Files[i]; f.Entry.ID == id && f.usable() { // a misnamed copy may have its name
			return i
		}
	}
	check(false, "an extent has a file")
	return -1
}

// rescued puts a replacement that was just written in the place of what it replaces.
func (p *Plan) rescued(at int, e *Replace) {
	r := p.Rescues[at]
	entry := FileEntry{ID: e.Header.ID, Base: e.Header.Base, Bytes: e.Bytes}
	appendTime := e.AppendTime
	if r.File >= 0 {
		appendTime = p.Files[r.File].appendTime
	}
	f := p.addFile(entry)
	f.Fate, f.replaced = FateServe, true
	f.end, f.appendTime = r.End, appendTime
	f.Info.Producers = append(f.Info.Producers[:0], e.Producers...) // a scan of the source may have ended before them
	f.Info.Verdict, f.Info.Header, f.Info.Epoch, f.Info.Sealed = segment.HeaderGood, e.Header, r.Epoch, true
	old := segment.ID(0)
	if r.File >= 0 {
		old = p.Files[r.File].Entry.ID
	}
	for i := range p.Extents {
		x := &p.Extents[i]
		if x.Segment != old || (x.Tier == TierWarm) != (r.File < 0) || x.End != r.End {
			continue
		}
		n := *x
		n.Tier, n.Generation = TierHot, 0
		n.First, n.Segment, n.Base, n.Bytes, n.Index = r.First, entry.ID, entry.Base, entry.Bytes, IndexFooter
		n.DataPos, n.Sector = int64(e.Header.SectorBytes), int64(e.Header.SectorBytes)
		if x.First >= r.First { // above it where Start lies inside of a batch
			*x = n
		} else {
			x.End = r.First
			p.Extents = append(p.Extents, Extent{})
			copy(p.Extents[i+2:], p.Extents[i+1:])
			p.Extents[i+1] = n
		}
		break
	}
	if r.File < 0 {
		return
	}
	if src := &p.Files[r.File]; !p.serves(&src.Entry) && src.Fate == FateServe {
		src.Fate = FateSuperseded
	}
}

func (p *Plan) serves(e *FileEntry) bool {
	for i := range p.Extents {
		if p.Extents[i].Segment == e.ID && p.Extents[i].Base == e.Base {
			return true
		}
	}
	return false
}

// judgeFiles decides what becomes of each file.
func (r *reconciler) judgeFiles() {
	p := r.p
	for i := range p.Files {
		p.Files[i].serving = false
	}
	for i := range p.Extents {
		r.serve(&p.Extents[i])
	}
	for i := range p.Files {
		f := &p.Files[i]
		if f.Fate != FateDamaged || !f.serving {
			f.Fate = r.fate(f)
		}
		if f.Fate == FateQuarantine {
			p.quarantines = append(p.quarantines, f.Entry)
		}
	}
}

// serve notes the file of an extent, if it has one.
func (r *reconciler) serve(x *Extent) {
	files := r.p.Files
	for i := r.above(x.Base) - 1; i >= 0 && files[i].Entry.Base == x.Base; i-- {
		if files[i].Entry.ID == x.Segment {
			files[i].serving = true
		}
	}
}

func (r *reconciler) fate(f *PlanFile) Fate {
	p := r.p
	switch {
	case f.Info.Verdict == segment.HeaderMisnamed:
		r.marks.Add(MarkQuarantine)
		return FateQuarantine
	case f.serving:
		return FateServe
	case !f.batches() && (f.Entry.Base >= p.End && !r.cfg.Repair || !f.Info.Tail):
		r.marks.Add(MarkUnfinished)
		return FateUnfinished
	case !f.batches():
		r.marks.Add(MarkQuarantine)
		return FateQuarantine
	case f.end <= p.HotStart && (f.Info.Sealed || !f.quick()): // a sidecar speaks of what was served
		return FateLeftover
	case r.superseded(f) && !r.spare(f):
		return FateSuperseded
	}
	r.marks.Add(MarkVoidFile)
	return FateVoid
}

// spare reports whether what took a file's place is damaged: then it may hold the only good copy.
func (r *reconciler) spare(f *PlanFile) bool {
	for i := range r.p.Extents {
		if x := &r.p.Extents[i]; x.Damage != segment.BreakNone && x.First < f.end && f.Entry.Base < x.End {
			return true
		}
	}
	return false
}

// superseded reports whether the file's epoch owns any offset that it holds below the recovered
// end: then others serve it. Otherwise the file is void.
func (r *reconciler) superseded(f *PlanFile) bool {
	own := func(first, end Offset) bool {
		for o := max(first, r.p.HotStart); o < min(end, r.p.End); {
			epoch, limit := ownerOf(r.s.Lineage, o)
			if epoch == f.epoch() {
				return true
			}
			o = limit
		}
		return false
	}
	if f.quick() {
		return own(f.Info.Footer.Base, f.Info.Footer.End)
	}
	for i := range f.Info.Runs {
		if own(f.Info.Runs[i].First, f.Info.Runs[i].End) {
			return true
		}
	}
	return false
}
