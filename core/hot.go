package core

import "varve/core/segment"

// hotState is the Hot lane while the log runs: superblock saves, zero-filling, removals, indexes.
type hotState struct {
	lowSpace bool
	spaceAt  Time // Mono; look at the free space again

	removals    []FileEntry // to remove
	names       []string    // to remove: *.tmp, orphaned sidecars
	quarantines []FileEntry // to move aside
	removing    int         // of removals, in flight
	removeAt    Time        // Mono; after a failed removal
	heals       []Span      // to copy back from the cold tier
	indexes     []FileEntry // served files without an index
	rate        rate
	closeSave   bool // the save in flight is the last one of a clean close

	prepare Prepare
	remove  Remove
	aside   Quarantine
	index   SaveIndex
	heal    Replace
	space   Space
}

// rate measures how many bytes a second the tail takes.
type rate struct {
	since       Time
	bytes, last int64
}

const (
	second      Time = 1_000_000_000
	spacePoll        = second
	prepareMax       = 8 << 20  // one step of zero-filling
	prepareTill      = 64 << 10 // larger commits gain nothing from written blocks
)

func (h *hotState) reset() {
	h.lowSpace, h.spaceAt = false, 0
	h.removals, h.removing, h.removeAt = h.removals[:0], 0, 0
	h.names, h.quarantines = h.names[:0], h.quarantines[:0]
	h.indexes, h.heals = h.indexes[:0], h.heals[:0]
	h.rate, h.closeSave = rate{}, false
}

func (h *hotState) removeLater(f FileEntry) { h.removals = append(h.removals, f) }

// observeSpace keeps lowSpace from what effects saw of the free space. What only helps, and can be
// done without, says nothing about room for an append.
func (l *Log) observeSpace(now Now, e Effect) {
	h, r := &l.hot, e.Result()
	if r.Failed == StepNone && r.FreeBytes < 0 {
		return // nothing was seen
	}
	optional := false
	switch e.(type) {
	case *Prepare, *SaveIndex:
		optional = true
	}
	switch {
	case r.Failed != StepNone && r.NoSpace && !optional:
		h.lowSpace, h.spaceAt = true, now.Mono+spacePoll
		l.relieve(r.FreeBytes)
	case r.FreeBytes >= 0 && r.FreeBytes < l.cfg.MinFreeBytes:
		if !h.lowSpace {
			h.lowSpace, h.spaceAt = true, now.Mono+spacePoll
		}
		l.relieve(r.FreeBytes)
	case r.FreeBytes >= 0 && h.lowSpace:
		l.mark(MarkSpaceBack)
		h.lowSpace = false
	}
}

// nextHot decides what the Hot lane does, most urgent first.
func (l *Log) nextHot(now Now) Effect {
	if e := l.nextPrepare(); e != nil {
		return e
	}
	if e := l.nextSave(now); e != nil {
		return e
	}
	if e := l.nextRemove(now); e != nil {
		return e
	}
	if e := l.nextIndex(); e != nil {
		return e
	}
	if e := l.nextHeal(now); e != nil {
		return e
	}
	if h := &l.hot; h.lowSpace && now.Mono >= h.spaceAt && l.phase == Ready {
		h.spaceAt = now.Mono + spacePoll
		h.space = Space{}
		return &h.space
	}
	return nil
}

// nextPrepare writes zeros ahead of a tail that syncs small commits: about a second of traffic.
func (l *Log) nextPrepare() Effect {
	t, a, h := &l.tail, &l.tail.active, &l.hot
	if !l.cfg.Preallocate || l.cfg.Sync != segment.OnCommit || !a.open || a.prepareOff || l.phase != Ready ||
		h.lowSpace || t.rollbackTo > 0 || t.rollWanted || a.pos == a.dataPos && l.flight[Tail] == nil {
		return nil
	}
	if t.write.Bytes >= prepareTill {
		return nil
	}
	pos := a.pos
	switch f := l.flight[Tail].(type) {
	case nil:
	case *Commit:
		pos = f.Pos + f.Bytes
	default:
		return nil
	}
	step := min(max(l.cfg.PrepareBytes, h.rate.last), max(prepareMax, l.cfg.PrepareBytes))
	from := roundUp(max(pos, a.prepared), int64(a.header.SectorBytes))
	if from-pos >= step/2 || from >= l.cfg.SegmentBytes {
		return nil
	}
	to := min(from+step, roundUp(l.cfg.SegmentBytes, int64(a.header.SectorBytes)))
	h.prepare = Prepare{Segment: a.header.ID, Base: a.header.Base, Pos: from, Bytes: to - from}
	return &h.prepare
}

// nextSave saves the superblock: for a Start that moves (both slots), at the end of a close, or
// because the frontier in it is behind after some quiet.
func (l *Log) nextSave(now Now) Effect {
	s := &l.super
	if now.Mono < s.retryAt || l.dirBusy() && (!s.renamed[0] || !s.renamed[1]) {
		return nil
	}
	// At an open Start may come from the manifest: what lies wholly below it leaves the disk then.
	if target := max(l.startTarget(), l.start); target > l.start || l.cfg.Cold && l.hotStartAt(target) > l.hotStart {
		l.snapshot()
		s.state.Start = target
		s.state.HotStart = l.hotStartAt(target)
		s.state.Lineage = trimLineage(append(s.state.Lineage[:0], l.lineage...), target)
		return l.saveUnlessDirBusy()
	}
	if l.phase == Closing {
		return l.nextCloseSave()
	}
	t := &l.tail
	if l.frontier > s.lastSavedFrontier() && t.cohorts.len() == 0 && l.flight[Tail] == nil &&
		now.Mono >= t.lastActivity+l.cfg.IdleSave {
		l.mark(MarkIdleSave)
		l.snapshot()
		return l.saveUnlessDirBusy()
	}
	return nil
}

// saveUnlessDirBusy issues a save; one that outgrew its file renames, and waits for the directory.
func (l *Log) saveUnlessDirBusy() Effect {
	e := l.save(false)
	if e != nil && syncsDir(e) && l.dirBusy() {
		return nil
	}
	return e
}

// nextCloseSave ends a clean close, once the tail has ended and nothing is left to remove.
func (l *Log) nextCloseSave() Effect {
	t, h := &l.tail, &l.hot
	if t.active.open || t.cohorts.len() > 0 || l.flight[Tail] != nil || l.flight[Syncs] != nil ||
		h.tidying() && h.removeAt == 0 {
		return nil
	}
	check(l.frontier == l.end, "a sealed log is durable to its end")
	l.snapshot()
	l.super.state.Clean = true
	h.closeSave = true
	return l.save(false)
}

func (l *Log) nextRemove(now Now) Effect {
	h := &l.hot
	if !h.tidying() || l.dirBusy() || now.Mono < h.removeAt || l.phase == Closing && h.removeAt > 0 {
		return nil
	}
	if len(h.removals)+len(h.names) == 0 { // retention does not wait for a quarantine that fails
		h.aside = Quarantine{Files: h.quarantines}
		return &h.aside
	}
	h.removing = len(h.removals)
	h.remove = Remove{Files: h.removals[:h.removing:h.removing], Names: h.names}
	return &h.remove
}

// tidying reports whether files wait to be removed or moved aside.
func (h *hotState) tidying() bool {
	return len(h.removals)+len(h.names)+len(h.quarantines) > 0
}

func (l *Log) nextIndex() Effect {
	h := &l.hot
	if len(h.indexes) == 0 || l.dirBusy() || l.phase != Ready || h.lowSpace {
		return nil
	}
	f := h.indexes[len(h.indexes)-1]
	h.indexes = h.indexes[:len(h.indexes)-1]
	end := l.extentEnd(f)
	if end <= f.Base || l.damaged(f) {
		return nil
	}
	h.index = SaveIndex{File: f, LogID: l.id, End: end, IndexSpacingBytes: l.cfg.IndexSpacingBytes}
	return &h.index
}

// extentEnd returns the end of the last span that a file serves, 0 if it serves none.
func (l *Log) extentEnd(f FileEntry) Offset {
	var end Offset
	for i := range l.extents {
		if x := &l.extents[i]; x.Segment == f.ID && x.End != EndNone {
			end = x.End
		}
	}
	return end
}

// damaged reports whether a file has a span that cannot be served.
func (l *Log) damaged(f FileEntry) bool {
	for i := range l.extents {
		if x := &l.extents[i]; x.Segment == f.ID && x.Damage != segment.BreakNone {
			return true
		}
	}
	return false
}

func (l *Log) onHot(now Now, e Effect, err error) {
	if err != nil && e.Result().Failed == StepSync {
		l.mark(MarkPoisonDir)
		l.poison(err)
		return
	}
	switch e := e.(type) {
	case *SaveSuper:
		l.onSaveSuper(now, e, err)
	case *Prepare:
		l.onPrepare(now, e, err)
	case *Remove:
		if l.tidied(now, err) {
			h := &l.hot
			h.removals = append(h.removals[:0], h.removals[h.removing:]...)
			h.names = h.names[:0]
		}
	case *Quarantine:
		if l.tidied(now, err) {
			l.hot.quarantines = l.hot.quarantines[:0]
		}
	case *SaveIndex:
		if err == nil {
			l.mark(MarkSidecarSaved)
			l.useSidecar(e)
		}
	case *Replace:
		l.onHeal(now, e, err)
	case *Space:
	default:
		check(false, "an effect of the Hot lane")
	}
}

func (l *Log) onSaveSuper(now Now, e *SaveSuper, err error) {
	closing := l.hot.closeSave
	l.hot.closeSave = false
	if err != nil {
		l.super.state.Clean = false
		if closing || l.phase == Closing {
			l.closeUnclean(err)
			return
		}
		l.mark(MarkSuperRetry)
		l.super.retryAt = now.Mono + retryDelay
		return
	}
	l.saved(e)
	if closing {
		l.mark(MarkCloseClean)
		l.phase, l.err = Closed, nil
		return
	}
	l.moveStart()
}

// closeUnclean gives the close up. Appends that still wait for their turn end with it; with a Tail
// effect in flight, at its completion.
func (l *Log) closeUnclean(err error) {
	l.mark(MarkCloseUnclean)
	l.phase, l.err = Closed, err
	if l.flight[Tail] == nil {
		l.resolveAll(ErrUnknown, ErrClosed)
	}
}

func (l *Log) onPrepare(now Now, e *Prepare, err error) {
	a, h := &l.tail.active, &l.hot
	if !a.open || a.header.ID != e.Segment {
		return
	}
	if err != nil {
		l.mark(MarkPrepareFailed)
		a.prepareOff = true
		return
	}
	l.mark(MarkPrepared)
	a.prepared = e.Pos + e.Bytes
	total := int64(l.stats.CommitBytes)
	if dt := now.Mono - h.rate.since; dt > 0 {
		h.rate.last = min((total-h.rate.bytes)*1000/max(dt/1_000_000, 1), prepareMax)
	}
	h.rate.since, h.rate.bytes = now.Mono, total
}

// tidied takes the answer to a Remove or Quarantine; a failure is tried again later.
func (l *Log) tidied(now Now, err error) bool {
	if err != nil {
		l.mark(MarkRemoveFailed)
		l.hot.removeAt = now.Mono + retryDelay
		return false
	}
	l.mark(MarkRemoved)
	l.hot.removeAt = 0
	return true
}

// useSidecar lets readers look positions up in a sidecar that was just written.
func (l *Log) useSidecar(e *SaveIndex) {
	for i := range l.extents {
		if x := &l.extents[i]; x.Segment == e.File.ID && x.Index == IndexNone && x.End <= e.End {
			x.Index = IndexSidecar
			l.viewVersion++
		}
	}
	for i := range l.files {
		if l.files[i].entry.ID == e.File.ID {
			l.files[i].entry.Index = true
		}
	}
}

func (l *Log) hotDeadline(d *deadline) {
	h, s, t := &l.hot, &l.super, &l.tail
	if l.flight[Hot] != nil {
		return
	}
	d.add(s.retryAt)
	d.add(h.removeAt)
	if l.phase != Ready {
		return
	}
	if h.lowSpace {
		d.add(h.spaceAt)
	}
	if l.frontier > s.lastSavedFrontier() && t.cohorts.len() == 0 {
		d.add(max(t.lastActivity+l.cfg.IdleSave, s.retryAt))
	}
	if l.retains() {
		d.add(l.keep.nextCheck)
	}
}
