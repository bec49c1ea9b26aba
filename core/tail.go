package core

import "varve/core/segment"

// tail is the state of everything that appends.
type tail struct {
	active  active
	pending ring[pendingBatch] // accepted, not landed; the flying cohort's batches first
	cohorts ring[cohort]       // unresolved; landed ones first, then at most one flying, then gathering

	pendingBytes int64
	lastCohort   uint64
	lastWall     Time
	lastActivity Time // Mono

	nextN       uint32 // counter of the next segment id of this life
	commit      uint64 // placement counter; never repeats within a life, also after a roll-back
	rollWanted  bool
	rollbackTo  int64 // size to cut the active segment to; 0: none needed
	rollbackErr error // what the cohorts get once the cut is durable
	sealFailed  bool  // the roll-back undoes a footer
	retryAt     Time  // Mono; after a failed Seal or Create, not before that

	create   Create
	write    Commit
	rollback Rollback
	seal     Seal
	headers  []byte // batch headers of the Commit in flight
	header   []byte // segment header of the Create in flight
	footer   []byte // footer of the Seal in flight
}

// active is the segment that takes appends.
type active struct {
	open    bool
	header  segment.Header
	footer  segment.FooterBuilder
	dataPos int64
	pos     int64 // where the next batch goes
	round   bool  // a sync was issued: the next batch starts at a sector boundary

	prepared    int64  // zero-filled up to here
	prepareOff  bool   // zero-filling failed once; not tried again in this segment
	encoded     Offset // the frontier in the newest placement header
	chain       uint32
	seed        uint32
	createdMono Time
	firstWall   Time // append time of its first batch
}

func (t *tail) reset(now Now) {
	for t.pending.len() > 0 {
		t.pending.pop().payload = nil
	}
	t.cohorts.reset()
	t.active.open = false
	t.pendingBytes, t.lastCohort, t.lastWall = 0, 0, 0
	t.lastActivity = now.Mono
	t.nextN, t.commit = 1, 0
	t.rollWanted, t.rollbackTo, t.rollbackErr, t.sealFailed, t.retryAt = false, 0, nil, false, 0
	clear(t.write.Bufs)
	t.write.Bufs = t.write.Bufs[:0]
}

// nextTail decides what the Tail lane does: undo before anything else, then roll, then append.
func (l *Log) nextTail(now Now) Effect {
	t := &l.tail
	if t.rollbackTo > 0 {
		if l.flight[Syncs] != nil || l.preparing() {
			return nil
		}
		return l.issueRollback()
	}
	if now.Mono < t.retryAt {
		return nil
	}
	if l.phase == Closing && t.active.open && t.active.pos == t.active.dataPos && t.firstGathering() == nil {
		l.discardActive()
		return nil
	}
	if t.active.open && l.wantsSeal() {
		if l.flight[Syncs] != nil || l.preparing() {
			return nil
		}
		return l.issueSeal()
	}
	if t.cohorts.len() == 0 || t.cohorts.at(t.cohorts.len()-1).state != gathering {
		return nil
	}
	if l.HoldsCut(now) {
		l.mark(MarkCutHeld)
		return nil
	}
	if !t.active.open {
		if l.dirBusy() {
			return nil
		}
		return l.issueCreate(now)
	}
	return l.issueCommit(now)
}

func (l *Log) preparing() bool {
	_, ok := l.flight[Hot].(*Prepare)
	return ok
}

// firstGathering returns the cohort that the next Commit takes, nil if there is none.
func (t *tail) firstGathering() *cohort {
	for i := range t.cohorts.len() {
		if c := t.cohorts.at(i); c.state == gathering {
			return c
		}
	}
	return nil
}

// wantsSeal decides the roll: on request, at Close, or because the next cohort does not fit. The
// footer counts, so that a sealed file keeps to segment_bytes.
func (l *Log) wantsSeal() bool {
	t, a := &l.tail, &l.tail.active
	c := t.firstGathering()
	if a.pos == a.dataPos {
		return false // never an empty segment
	}
	switch {
	case t.rollWanted:
		return true
	case l.phase == Closing && c == nil:
		return true
	case c == nil:
		return false
	case a.footer.ProducersFull():
		l.mark(MarkRollProducers)
		return true
	case l.cutPos()+c.bytes+a.footer.Bytes() > l.cfg.SegmentBytes:
		l.mark(MarkRollSize)
		return true
	}
	return false
}

// cutPos is where the next Commit starts. Invariant: no write touches a sector that holds synced
// bytes, and a raised frontier is first written at a sector boundary, where a scan that walks on
// behind damage finds it.
func (l *Log) cutPos() int64 {
	a := &l.tail.active
	if a.round || a.encoded != l.frontier {
		return roundUp(a.pos, int64(a.header.SectorBytes))
	}
	return a.pos
}

func (l *Log) issueCreate(now Now) Effect {
	t := &l.tail
	if t.nextN == segment.EpochMax {
		l.failPending(&RefusedError{Why: "segment numbers of this epoch are used up", Next: "reopen the log"})
		return nil
	}
	h := segment.Header{
		Kind: segment.Created, Sync: l.cfg.Sync, SectorBytes: l.super.state.SectorBytes, LogID: l.id,
		ID: segment.MakeID(l.epoch, t.nextN), Epoch: l.epoch, Base: t.firstGathering().first,
		Created: now.Wall, Nonce: l.cfg.Nonce,
	}
	t.nextN++
	t.header = grown(t.header, int(h.SectorBytes))
	a := &t.active
	a.chain = segment.PutHeader(t.header, &h)
	a.header = h
	t.create = Create{Header: h, Bytes: t.header}
	return &t.create
}

func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

func (l *Log) onCreate(now Now, e *Create, err error) {
	t, a := &l.tail, &l.tail.active
	if err != nil {
		if e.Failed == StepSync {
			l.mark(MarkPoisonDir)
			l.poison(err)
			return
		}
		l.mark(MarkCreateFailed)
		l.hot.removeLater(FileEntry{ID: e.Header.ID, Base: e.Header.Base})
		t.retryAt = now.Mono + retryDelay
		l.failPending(l.writeError(e.NoSpace))
		return
	}
	h := e.Header
	a.open = true
	a.dataPos = int64(h.SectorBytes)
	a.pos = a.dataPos
	a.round = false
	a.prepared, a.prepareOff = a.dataPos, false
	a.encoded = l.frontier
	a.seed = segment.PlacementSeedOf(l.identitySeed, h.ID)
	a.createdMono, a.firstWall = now.Mono, now.Wall
	a.footer.Reset(&h, a.chain, l.cfg.IndexSpacingBytes)
	check(h.Base == l.written, "a new segment begins where the log ends")
	l.extents = append(l.extents, Extent{
		First: h.Base, End: EndNone, Segment: h.ID, Base: h.Base, Epoch: h.Epoch,
		DataPos: a.dataPos, Sector: int64(h.SectorBytes), Index: IndexCore,
	})
	l.viewVersion++
}

func (l *Log) issueCommit(now Now) Effect {
	t, a := &l.tail, &l.tail.active
	c := t.firstGathering()
	if l.cfg.Sync == segment.Periodic && l.sync.overdue(now, l.cfg.SyncInterval) {
		return nil // acks are paused; the Sync that ends it will be due
	}
	if l.cfg.Sync == segment.OnCommit && l.flight[Syncs] != nil {
		return nil
	}
	pos := l.cutPos()
	if p, ok := l.flight[Hot].(*Prepare); ok && pos+c.bytes > p.Pos {
		l.mark(MarkPrepareWait)
		return nil
	}
	if pos+c.bytes+a.footer.Bytes() > l.cfg.SegmentBytes {
		l.mark(MarkOwnSegment)
	}
	w := &t.write
	w.Segment, w.Base, w.Pos, w.Bytes = a.header.ID, a.header.Base, pos, c.bytes
	w.Sync = l.cfg.Sync == segment.OnCommit
	w.First, w.End = c.first, c.end
	l.encode(c, pos)
	c.state = flying
	l.sync.cut(pos, int64(a.header.SectorBytes), w.Sync)
	a.encoded, a.round = l.frontier, false
	return w
}

// encode writes the headers of a cohort and gathers the buffers of its Commit.
func (l *Log) encode(c *cohort, pos int64) {
	t, a := &l.tail, &l.tail.active
	t.commit++
	t.headers = grown(t.headers, c.batches*segment.BatchHeaderBytes)
	w := &t.write
	w.Bufs = w.Bufs[:0]
	p := segment.Placement{ID: a.header.ID, Commit: t.commit, Chain: a.chain, Frontier: l.frontier}
	for i := range c.batches {
		b := t.pending.at(i)
		h := t.headers[i*segment.BatchHeaderBytes : (i+1)*segment.BatchHeaderBytes]
		p.Chain = segment.PutBatchHeader(h, &p, &b.identity, a.seed, l.identitySeed)
		b.pos, b.chain = pos, p.Chain
		pos += segment.BatchHeaderBytes + int64(len(b.payload))
		w.Bufs = append(w.Bufs, h)
		if len(b.payload) > 0 {
			w.Bufs = append(w.Bufs, b.payload)
		}
	}
}

func (l *Log) onCommit(now Now, e *Commit, err error) {
	t, a := &l.tail, &l.tail.active
	if err != nil {
		if e.Failed == StepSync {
			l.mark(MarkPoisonSync)
			l.poison(err)
			return
		}
		t.rollbackTo = e.Pos
		t.rollbackErr = l.writeError(e.NoSpace)
		return
	}
	c := t.firstFlying()
	for range c.batches {
		b := t.pending.pop()
		a.footer.Add(b.pos, &b.identity, t.commit, b.chain)
		a.chain = b.chain
		if b.identity.ProducerID >= 0 {
			l.producers.settle()
		}
		b.payload = nil
	}
	if a.pos == a.dataPos {
		a.firstWall = now.Wall
	}
	a.pos = e.Pos + e.Bytes
	c.state = landed
	l.written = c.end
	t.pendingBytes -= c.bytes
	t.lastActivity = now.Mono
	l.countCommit(c)
	if e.Sync {
		l.frontier, a.round = l.written, true
		l.stats.Syncs++
	} else {
		l.sync.wrote(now, a.pos, l.written, e.Bytes)
	}
	if l.cfg.Warm {
		l.rollForWarm()
	}
	l.raiseCommitted(now)
}

func (t *tail) firstFlying() *cohort {
	for i := range t.cohorts.len() {
		if c := t.cohorts.at(i); c.state == flying {
			return c
		}
	}
	check(false, "a Commit in flight has a cohort")
	return nil
}

func (l *Log) countCommit(c *cohort) {
	l.stats.Commits++
	l.stats.CommitBatches += uint64(c.batches)
	l.stats.CommitRecords += uint64(c.end - c.first)
	l.stats.CommitBytes += uint64(c.bytes)
}

// writeError is the definite error of a write that was undone.
func (l *Log) writeError(noSpace bool) error {
	if noSpace {
		l.mark(MarkNoSpace)
		return ErrNoSpace
	}
	return ErrWriteFailed
}

func (l *Log) issueRollback() Effect {
	t, a := &l.tail, &l.tail.active
	t.rollback = Rollback{Segment: a.header.ID, Base: a.header.Base, Bytes: t.rollbackTo}
	return &t.rollback
}

// onRollback fails the cohorts once the cut is durable. A cut that is not durable would let the
// refused bytes come back after a power loss, so then the log is poisoned.
func (l *Log) onRollback(now Now, e *Rollback, err error) {
	t, a := &l.tail, &l.tail.active
	cause := t.rollbackErr
	t.rollbackTo, t.rollbackErr = 0, nil
	if err != nil {
		l.mark(MarkRollbackFailed)
		l.poison(err)
		return
	}
	l.mark(MarkRollback)
	l.stats.Rollbacks++
	a.pos = e.Bytes
	a.round = true
	a.prepared = min(a.prepared, a.pos)
	l.frontier = l.written
	l.sync.synced()
	l.raiseCommitted(now)
	l.failPending(cause)
	if l.phase == Closing && t.sealFailed {
		l.closeUnclean(cause)
	}
	t.sealFailed = false
}

func (l *Log) issueSeal() Effect {
	t, a := &l.tail, &l.tail.active
	pos := roundUp(a.pos, int64(a.header.SectorBytes))
	t.footer = a.footer.Append(t.footer[:0])
	t.seal = Seal{
		Segment: a.header.ID, Base: a.header.Base, Pos: pos, Footer: t.footer,
		Bytes: pos + int64(len(t.footer)),
	}
	return &t.seal
}

// discardActive gives up a segment that never took a batch: the close leaves no empty file.
func (l *Log) discardActive() {
	l.mark(MarkEmptySegment)
	a := &l.tail.active
	a.open = false
	l.hot.removeLater(FileEntry{ID: a.header.ID, Base: a.header.Base})
	l.extents = l.extents[:len(l.extents)-1]
	l.viewVersion++
}

func (l *Log) onSeal(now Now, e *Seal, err error) {
	t, a := &l.tail, &l.tail.active
	if err != nil {
		if e.Failed == StepSync {
			l.mark(MarkPoisonSync)
			l.poison(err)
			return
		}
		l.mark(MarkSealFailed)
		t.sealFailed = true
		t.rollbackTo = e.Pos
		t.rollbackErr = l.writeError(e.NoSpace)
		t.retryAt = now.Mono + retryDelay
		return
	}
	l.stats.Rolls++
	t.rollWanted = false
	a.open = false
	l.frontier = l.written
	l.sync.synced()
	l.raiseCommitted(now)
	f := a.footer.Summary()
	l.files = append(l.files, file{
		entry: FileEntry{ID: e.Segment, Base: e.Base, Bytes: e.Bytes},
		end:   l.written, ageFrom: min(f.AppendTime, now.Wall),
	})
	x := &l.extents[len(l.extents)-1]
	check(x.Segment == e.Segment, "the active extent is the last")
	x.End, x.Bytes, x.Index = l.written, e.Bytes, IndexFooter
	x.MinTime, x.MaxTime = f.MinTime, f.MaxTime
	l.viewVersion++
}

// retryDelay is the pause before a failed Seal, Create, removal or superblock save is tried again.
const retryDelay Time = 100_000_000

// rollAge is the age at which an active segment rolls, Unlimited for none.
func (l *Log) rollAge() Time {
	if l.cfg.Cold {
		return tighter(l.cfg.SegmentAge, l.cfg.ColdMaxUploadAge)
	}
	return l.cfg.SegmentAge
}

func (l *Log) tickRoll(now Now) {
	t, a := &l.tail, &l.tail.active
	if age := l.rollAge(); a.open && a.pos > a.dataPos && !t.rollWanted && age != Unlimited && now.Mono >= a.createdMono+age {
		l.mark(MarkRollAge)
		t.rollWanted = true
	}
}

func (l *Log) tailDeadline(d *deadline) {
	t, a := &l.tail, &l.tail.active
	if t.retryAt > 0 && l.flight[Tail] == nil && (t.firstGathering() != nil || t.rollWanted || l.phase == Closing) {
		d.add(t.retryAt)
	}
	if age := l.rollAge(); a.open && a.pos > a.dataPos && !t.rollWanted && age != Unlimited {
		d.add(a.createdMono + age)
	}
}
