package core

import "varve/core/segment"

// A repair is an open that may give up what cannot be had, and says what: it derives a lost
// superblock from the segments, marks damaged spans as lost by files of kind Lost, and accepts a
// missing end. Nothing is destroyed: what serves nothing any more goes to quarantine/.

// onIdentify looks for the log's identity in the first segment header that verifies.
func (l *Log) onIdentify(e *Scan) {
	b := &l.boot
	if e.Info.Verdict == segment.HeaderForeign || e.Info.Verdict == segment.HeaderGood {
		h := &e.Info.Header
		s := &l.super.state
		*s = segment.Superblock{
			LogID: h.LogID, SectorBytes: h.SectorBytes, Sync: h.Sync, Complete: true,
			Created: h.Created, Lineage: s.Lineage[:0],
		}
		l.id = h.LogID
		b.step, b.at = bootScan, 0
		return
	}
	b.at++
	if b.at == len(b.plan.Files) {
		l.mark(MarkSuperRefused)
		l.refuseOpen("", "no superblock and no segment header verifies", "restore the directory from a copy")
	}
}

// rebuildSuper derives what the superblock held from the segments: the epochs and where each began,
// the first offset. Evidence is what the batches themselves carry.
func (l *Log) rebuildSuper() {
	l.mark(MarkRebuilt)
	p, s := &l.boot.plan, &l.super.state
	p.Rebuilt = true
	s.Lineage = s.Lineage[:0]
	start := EndNone
	for i := range p.Files {
		f := &p.Files[i]
		if f.Info.Verdict == segment.HeaderGood {
			s.Epoch = max(s.Epoch, f.Entry.ID.Owner())
		}
		if !f.usable() || !f.batches() {
			continue
		}
		start = min(start, f.Entry.Base)
		s.Lineage = noteEpoch(s.Lineage, f.epoch(), f.Entry.Base)
	}
	if start == EndNone {
		start = 0
	}
	// An epoch that begins at or behind a later one's first offset owns nothing.
	keep := len(s.Lineage)
	for i := len(s.Lineage) - 1; i >= 0; i-- {
		if keep == len(s.Lineage) || s.Lineage[i].First < s.Lineage[keep].First {
			keep--
			s.Lineage[keep] = s.Lineage[i]
		}
	}
	s.Lineage = append(s.Lineage[:0], s.Lineage[keep:]...)
	s.Start, s.HotStart, s.Frontier = start, start, start
}

// planAside gathers the slots that are there and do not verify, and reports whether there are any.
// They are kept, because the slots that this open writes take their names.
func (l *Log) planAside() bool {
	b := &l.boot
	b.aside = Quarantine{Names: b.aside.Names[:0]}
	for i := range 2 {
		if b.found.Present[i] && !b.found.Valid[i] {
			b.aside.Names = append(b.aside.Names, superName(i))
		}
	}
	return len(b.aside.Names) > 0
}

// noteEpoch keeps the least first offset of each epoch, sorted by epoch.
func noteEpoch(lineage Lineage, e Epoch, first Offset) Lineage {
	i := 0
	for i < len(lineage) && lineage[i].Epoch < e {
		i++
	}
	if i < len(lineage) && lineage[i].Epoch == e {
		lineage[i].First = min(lineage[i].First, first)
		return lineage
	}
	lineage = append(lineage, segment.Lineage{})
	copy(lineage[i+1:], lineage[i:])
	lineage[i] = segment.Lineage{Epoch: e, First: first}
	return lineage
}

// issueDeclare writes a file that declares a span lost, while the log is opening.
func (l *Log) issueDeclare(now Now) Effect {
	b := &l.boot
	if now.Mono < b.retryAt || b.at >= len(b.plan.Declared) {
		return nil
	}
	d := b.plan.Declared[b.at]
	h := segment.Header{
		Kind: segment.Lost, Sync: l.cfg.Sync, SectorBytes: l.super.state.SectorBytes, LogID: l.id,
		ID: segment.MakeID(l.epoch, l.tail.nextN), Epoch: d.Epoch, Base: d.First, End: d.End,
		Created: now.Wall, Nonce: l.cfg.Nonce,
	}
	l.tail.nextN++
	l.tail.header = grown(l.tail.header, int(h.SectorBytes))
	segment.PutHeader(l.tail.header, &h)
	b.declare = Create{Header: h, Bytes: l.tail.header}
	return &b.declare
}

// declared lets the file that was just written stand for the span.
func (p *Plan) declared(at int, e *Create) {
	d := p.Declared[at]
	f := p.addFile(FileEntry{ID: e.Header.ID, Base: d.First, Bytes: int64(e.Header.SectorBytes)})
	f.Fate, f.replaced, f.end = FateServe, true, d.End
	f.Info.Verdict, f.Info.Header = segment.HeaderGood, e.Header
	for i := range p.Extents {
		if x := &p.Extents[i]; x.First == d.First && x.End == d.End {
			old := FileEntry{ID: x.Segment, Base: x.Base}
			*x = lostExtent(f, d.Epoch, d.First, d.End)
			p.giveUp(&old)
		}
	}
}

// giveUp moves a damaged file aside that serves nothing any more.
func (p *Plan) giveUp(e *FileEntry) {
	if p.serves(e) {
		return
	}
	for i := range p.Files {
		if f := &p.Files[i]; f.Entry.ID == e.ID && f.Entry.Base == e.Base && f.Fate == FateDamaged {
			f.Fate = FateQuarantine
		}
	}
}
