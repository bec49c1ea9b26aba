package core

import (
	"errors"

	"varve/core/manifest"
	"varve/core/segment"
)

// coldState is the cold tier while the log runs: the newest manifest that is known, and what is to
// change in it. Invariants: segments are exported in order, one at a time; a file goes only below
// exported, after a look at its objects; an object is deleted only once a won swap has given its entry up; every upload has a key
// of its own and every swap a sequence of its own.
type coldState struct {
	m        manifest.Manifest // newest that was read or won
	tag      string            // of its object; "": there is none yet
	sequence uint64            // highest seen or tried
	attempt  uint64            // highest seen or tried
	exported Offset            // everything below is in objects, or below Start
	began    Offset            // exported when this life began
	seen     Offset            // objects below were looked at, in this life, before files leave for them
	missed   *CorruptError     // the object that the last look did not find whole
	looks    int               // objects found since files left
	misses   int               // looks in a row that did not find theirs
	lookAt   Time              // Mono; the next one

	next    manifest.Manifest // of the swap in flight
	doubt   bool              // a swap's outcome is unknown: the manifest is read back first
	list    catalogue
	pending upload           // the upload of our STARTED entry
	after   upload           // wanted: starts in the swap that records the end of pending
	orphans bool             // m has started entries that are not the pending upload's
	delete  bool             // m may have objects to delete
	dead    int              // attempts in m that were given up and are not deleted yet
	blocked segment.ID       // the upload of this segment met damage
	quiet   quiet            // since when there is nothing to export
	retryAt [LaneCount]Time  // Mono; after a failure of the bucket, by lane
	fails   [LaneCount]int   // failures in a row, by lane
	failure [LaneCount]error // the last of them, nil after a success

	load   LoadManifest
	swap   SwapManifest
	upload Upload
	remove Delete
	look   ScanObject
	buf    []byte
}

// quiet says that nothing can be exported before something changes, so that an append costs no search.
type quiet struct {
	valid bool
	view  uint64 // version of the View
	limit Offset // nothing before this is proven and committed
}

// upload is where the upload of the newest entry stands.
type upload struct {
	state uploadState
	entry manifest.Segment // as far as it is known
}

type uploadState uint8

const (
	uploadNone   uploadState = iota
	uploadWanted             // a swap shall record that it starts
	uploadReady              // that is recorded: the object may be written
	uploadDone               // the object is whole; a swap shall record it
	uploadFailed             // nobody knows what is there; a swap shall give the attempt up
)

func (c *coldState) reset() {
	c.forget()
	c.next.CopyFrom(&manifest.Manifest{})
	c.sequence = 0
}

// forget begins anew with what is known of the tier, apart from what was just read and from the
// sequences that were used.
func (c *coldState) forget() {
	c.m.CopyFrom(&manifest.Manifest{})
	c.tag, c.attempt, c.exported = "", 0, 0
	c.began, c.seen, c.missed, c.looks, c.misses, c.lookAt = 0, 0, nil, 0, 0, 0
	c.list.reset()
	c.doubt, c.pending, c.after = false, upload{}, upload{}
	c.orphans, c.delete, c.dead, c.quiet, c.blocked = false, false, 0, quiet{}, 0
	c.retryAt, c.fails, c.failure = [LaneCount]Time{}, [LaneCount]int{}, [LaneCount]error{}
}

// ErrOwnerFenced poisons a log whose place another owner has taken.
var ErrOwnerFenced = errors.New("core: another owner has taken the log over; close it")

// Why the bucket's answer was of no use.
var errOddManifest = errors.New("core: the manifest in the bucket is missing, damaged, older than before or of another log")

// backoff notes a failure of the bucket on a lane: the next try waits longer each time.
func (c *coldState) backoff(now Now, lane Lane, err error) {
	c.failure[lane] = err
	wait := retryDelay << min(c.fails[lane], 6)
	c.fails[lane]++
	c.retryAt[lane] = now.Mono + wait
}

func (c *coldState) succeeded(lane Lane) {
	c.fails[lane], c.retryAt[lane], c.failure[lane] = 0, 0, nil
}

// adopt takes over a manifest that was read or won.
func (l *Log) adopt(m *manifest.Manifest, tag string, wall Time) {
	c := &l.cold
	if m != &c.m {
		c.m, *m = *m, c.m
	}
	c.tag = tag
	c.sequence = max(c.sequence, c.m.Sequence)
	c.orphans, c.delete, c.quiet.valid = false, true, false
	c.dead = 0
	for i := range c.m.Segments {
		s := &c.m.Segments[i]
		if s.State == manifest.Dead {
			c.dead++
		}
		c.attempt = max(c.attempt, s.Attempt)
		c.orphans = c.orphans || s.State == manifest.Started && !c.isPending(s.Attempt)
	}
	c.list.flatten(&c.m, wall)
	for i := range c.list.whole.Segments {
		c.attempt = max(c.attempt, c.list.whole.Segments[i].Attempt)
	}
	l.raiseExported()
	if l.phase == Ready || l.phase == Closing {
		l.viewVersion++
	}
}

// raiseExported moves exported to the end of the contiguous span of entries from Start on: a greatest
// end would let files go whose records are in no object.
func (l *Log) raiseExported() {
	l.cold.exported = max(l.cold.exported, exportedEnd(&l.cold.list.whole, l.start))
}

// nextCatalogue decides what the Catalogue lane does: settle a doubt, record what has changed,
// delete what was given up.
func (l *Log) nextCatalogue(now Now) Effect {
	c := &l.cold
	if now.Mono < c.retryAt[Catalogue] || l.phase != Ready {
		return nil
	}
	if c.doubt {
		return l.issueLoad()
	}
	c.wantUpload(l)
	if l.changed() {
		if c.list.wantPage(&c.m, l.cfg.ColdPageSegments) {
			l.mark(MarkPage)
			return c.list.issuePage()
		}
		l.desired()
		return l.issueSwap()
	}
	if e := l.nextLook(now); e != nil {
		return e
	}
	return l.nextDelete()
}

func (l *Log) issueLoad() Effect {
	c := &l.cold
	c.load.Bytes, c.load.Missing, c.load.Tag, c.load.Objects = c.load.Bytes[:0], false, "", false
	c.load.Look = l.boot.step == bootManifest
	return &c.load
}

// changed reports whether the manifest that should be differs from the one that is.
func (l *Log) changed() bool {
	c := &l.cold
	switch c.pending.state {
	case uploadWanted, uploadDone, uploadFailed:
		return true
	}
	return c.orphans || c.list.fresh || l.startWanted() > c.m.Start
}

// desired builds the manifest that should be.
func (l *Log) desired() {
	c := &l.cold
	n := &c.next
	n.CopyFrom(&c.m)
	if to := l.startWanted(); to > n.Start {
		n.Start = to
		n.Lineage = trimLineage(n.Lineage, to)
	}
	for i := range n.Segments {
		s := &n.Segments[i]
		switch {
		case s.State != manifest.Started:
		case !c.isPending(s.Attempt):
			l.mark(MarkUploadOrphan) // of an earlier life or a fenced owner
			s.State = manifest.Dead
		case c.pending.state == uploadDone:
			*s = c.pending.entry
		case c.pending.state == uploadFailed:
			s.State = manifest.Dead
		}
	}
	for _, p := range [...]*upload{&c.pending, &c.after} {
		if p.state == uploadWanted {
			n.Segments = insert(n.Segments, p.entry)
		}
	}
	c.list.paged(n)
	c.list.dropped(n)
}

// insert puts an entry into its place: by base, then attempt.
func insert(all []manifest.Segment, s manifest.Segment) []manifest.Segment {
	all = append(all, s)
	i := len(all) - 1
	for ; i > 0 && (all[i-1].Base > s.Base || all[i-1].Base == s.Base && all[i-1].Attempt > s.Attempt); i-- {
		all[i] = all[i-1]
	}
	all[i] = s
	return all
}

// isPending reports whether an attempt is one whose upload this life has in hand.
func (c *coldState) isPending(attempt uint64) bool {
	return c.pending.state != uploadNone && c.pending.entry.Attempt == attempt ||
		c.after.state != uploadNone && c.after.entry.Attempt == attempt
}

// startWanted is how far Start may move in the manifest now.
func (l *Log) startWanted() Offset { return min(l.keep.want, l.frontier, l.committed) }

// wantUpload chooses what is exported next: the first sealed span that is proven, committed and not
// in an object yet. While a swap records the end of an upload it takes the start of the next one along.
func (c *coldState) wantUpload(l *Log) {
	if c.dead >= deadMax { // failed attempts are deleted first: a manifest has an end
		return
	}
	to, from := &c.pending, c.exported
	switch c.pending.state {
	case uploadNone:
	case uploadDone:
		if to = &c.after; to.state != uploadNone {
			return
		}
		from = max(from, c.pending.entry.End)
	default:
		return
	}
	x := l.nextExport(from)
	if x == nil {
		if c.pending.state == uploadNone && c.fails[Uploads] > 0 && c.blocked == 0 { // what could not be exported was trimmed
			c.succeeded(Uploads)
		}
		return
	}
	base, end := x.First, Offset(0) // where an object ends a batch does; at Start one may not
	switch all, pages := c.list.whole.Segments, c.m.Pages; {
	case to == &c.after:
		end = c.pending.entry.End
	case len(all) > 0:
		end = all[len(all)-1].End
	case len(pages) > 0: // wholly below Start, and its objects are deleted: it stands in the manifest still
		end = pages[len(pages)-1].End
	}
	if base < end && end < x.End {
		base = end
	}
	e := manifest.Segment{Base: base, End: x.End, Epoch: x.Epoch}
	if x.Lost {
		l.mark(MarkExportLost)
		e.State = manifest.Lost
	} else {
		c.attempt++
		e.State, e.Attempt, e.ID = manifest.Started, c.attempt, x.Segment
	}
	*to = upload{state: uploadWanted, entry: e}
}

// nextExport returns the extent that is exported next, when all below an offset is, nil if there is
// none. An extent that cannot be read, and was not declared lost, stops the export: what lies behind
// it must not pass it.
func (l *Log) nextExport(from Offset) *Extent {
	c := &l.cold
	limit := min(l.frontier, l.committed)
	if q := &c.quiet; q.valid && q.view == l.viewVersion && limit < q.limit {
		return nil
	}
	c.quiet = quiet{valid: true, view: l.viewVersion, limit: EndNone}
	for i := range l.extents {
		x := &l.extents[i]
		switch {
		case x.End <= from:
			continue
		case x.End == EndNone:
		case x.End > limit:
			c.quiet.limit = x.End
		case x.Damage != segment.BreakNone && !x.Lost || x.Segment == c.blocked:
			l.mark(MarkExportBlocked)
		default:
			c.quiet.valid = false
			return x
		}
		return nil
	}
	return nil
}

func (l *Log) issueSwap() Effect {
	c := &l.cold
	c.sequence++
	n := &c.next
	n.LogID, n.Epoch, n.Nonce, n.Sequence = l.id, l.epoch, l.cfg.Nonce, c.sequence
	c.buf = manifest.Append(c.buf[:0], n)
	c.swap = SwapManifest{Bytes: c.buf, Tag: c.tag}
	return &c.swap
}

// nextDelete deletes the objects of entries that were given up: dead attempts, and what lies below a
// Start that manifest and superblock hold.
func (l *Log) nextDelete() Effect {
	c := &l.cold
	if !c.delete {
		return nil
	}
	d := &c.remove
	d.Objects = d.Objects[:0]
	take := func(s *manifest.Segment) {
		if len(d.Objects) < deleteMax && s.State != manifest.Lost && !c.isPending(s.Attempt) && !c.list.isGone(s.Attempt) {
			d.Objects = append(d.Objects, Object{Base: s.Base, End: s.End, Epoch: s.Epoch, Attempt: s.Attempt})
		}
	}
	for i := range c.m.Segments {
		if s := &c.m.Segments[i]; s.State == manifest.Dead {
			take(s)
		}
	}
	start := min(l.start, c.m.Start)
	for i := range c.list.whole.Segments {
		s := &c.list.whole.Segments[i]
		if s.End > start {
			break
		}
		take(s)
	}
	d.Pages = d.Pages[:0]
	if len(d.Objects) == 0 {
		c.list.deletedPages(&c.m, start, d)
	}
	if len(d.Objects)+len(d.Pages) == 0 {
		c.delete = false
		return nil
	}
	return d
}

// deadMax bounds the attempts that were given up and wait to be deleted.
const deadMax = 4 * deleteMax

// deleteMax bounds the objects that one Delete takes.
const deleteMax = 16

// onCatalogue takes the answer of the Catalogue lane while the log runs.
func (l *Log) onCatalogue(now Now, e Effect, err error) {
	c := &l.cold
	switch e := e.(type) {
	case *SwapManifest:
		if err != nil {
			l.mark(MarkSwapDoubt)
			c.doubt = true // also where the bucket says no: it may have answered to an earlier try of its own
			if !e.Lost {
				c.backoff(now, Catalogue, err)
			}
			return
		}
		c.succeeded(Catalogue)
		l.swapped(now, e.NewTag)
	case *LoadManifest:
		if err != nil {
			c.backoff(now, Catalogue, err)
			return
		}
		l.onReadBack(now, e)
	case *Delete:
		if err != nil {
			c.backoff(now, Catalogue, err)
			return
		}
		c.succeeded(Catalogue)
		l.mark(MarkObjectDeleted)
		for i := range e.Objects {
			c.list.gone = append(c.list.gone, e.Objects[i].Attempt)
		}
		for i := range e.Pages {
			c.list.left = append(c.list.left, e.Pages[i].Number)
		}
		c.list.fresh = true
	case *ScanObject:
		l.onLook(now, e, err)
	case *SavePage:
		if err != nil { // it may be there: the next one has another number
			l.mark(MarkPageFailed)
			c.list.page.Number = 0
			c.backoff(now, Catalogue, err)
			return
		}
		c.succeeded(Catalogue)
		c.list.written = true
	default:
		check(false, "an effect of the Catalogue lane")
	}
}

// swapped moves on after a won swap.
func (l *Log) swapped(now Now, tag string) {
	c := &l.cold
	l.adopt(&c.next, tag, now.Wall)
	c.list.forget(&c.m)
	l.followManifest()
}

// followManifest brings the pending upload to where the manifest is now, and then the one after it.
func (l *Log) followManifest() {
	c := &l.cold
	l.follow(&c.pending)
	if c.pending.state == uploadNone {
		c.pending, c.after = c.after, upload{}
		l.follow(&c.pending)
	}
}

func (l *Log) follow(p *upload) {
	c := &l.cold
	if p.state == uploadNone {
		return
	}
	var s *manifest.Segment
	for i := range c.m.Segments {
		if e := &c.m.Segments[i]; e.Attempt == p.entry.Attempt && e.Base == p.entry.Base {
			s = e
		}
	}
	switch {
	case s == nil: // not recorded yet, or dropped
		if p.state != uploadWanted {
			p.state = uploadNone
		}
	case s.State == manifest.Started && p.state == uploadWanted:
		p.state = uploadReady
	case s.State == manifest.Finished || s.State == manifest.Lost:
		l.mark(MarkExported)
		p.state = uploadNone
	case s.State == manifest.Dead:
		p.state = uploadNone
	}
}

// onReadBack settles a doubt: the manifest is ours, or another owner's, or an older one.
func (l *Log) onReadBack(now Now, e *LoadManifest) {
	c := &l.cold
	m := &c.next
	if e.Missing || manifest.Parse(e.Bytes, m) != nil || m.LogID != l.id {
		l.mark(MarkManifestOdd)
		c.backoff(now, Catalogue, errOddManifest) // a bucket that forgets, or damage: nothing is decided by it
		return
	}
	switch {
	case m.Epoch > l.epoch || m.Epoch == l.epoch && m.Nonce != l.cfg.Nonce:
		l.mark(MarkFenced)
		l.poison(ErrOwnerFenced)
	case m.Epoch < l.epoch || m.Sequence < c.m.Sequence:
		l.mark(MarkManifestOdd)
		c.backoff(now, Catalogue, errOddManifest)
	default:
		won := m.Sequence != c.m.Sequence
		if won {
			l.mark(MarkSwapOurs) // the reply was lost
		}
		c.doubt = false
		c.succeeded(Catalogue)
		l.adopt(m, e.Tag, now.Wall)
		if won {
			c.list.forget(&c.m)
			c.list.fresh = len(c.list.gone)+len(c.list.left) > 0
		}
		l.followManifest()
	}
}

// nextUpload hands out the upload that the manifest records as started.
func (l *Log) nextUpload(now Now) Effect {
	c := &l.cold
	if c.pending.state != uploadReady || now.Mono < c.retryAt[Uploads] || l.phase != Ready {
		return nil
	}
	s := &c.pending.entry
	x := l.hotExtent(s.Base)
	var f *file
	if x != nil && x.Segment == s.ID {
		f = l.fileOf(x.Segment)
	}
	if f == nil { // trimmed meanwhile
		c.pending.state = uploadFailed
		return nil
	}
	c.upload = Upload{
		Header: segment.Header{
			Kind: segment.Replacement, Sync: l.cfg.Sync, SectorBytes: segment.SectorBytesMin, LogID: l.id,
			ID: s.ID, Epoch: s.Epoch, Base: s.Base, End: s.End, Created: now.Wall, Nonce: l.cfg.Nonce,
		},
		Attempt: s.Attempt, Source: f.entry, SourceEpoch: s.Epoch, SourceSectorBytes: l.super.state.SectorBytes,
		IndexSpacingBytes: l.cfg.IndexSpacingBytes,
	}
	return &c.upload
}

// hotExtent returns the extent on local disk that holds an offset, nil if none does.
func (l *Log) hotExtent(o Offset) *Extent {
	for i := range l.extents {
		if x := &l.extents[i]; x.First <= o && o < x.End {
			return x
		}
	}
	return nil
}

func (l *Log) onUpload(now Now, e *Upload, err error) {
	c := &l.cold
	p := &c.pending
	if p.state != uploadReady || p.entry.Attempt != e.Attempt {
		return
	}
	if err != nil {
		// It may be whole, or become so later: the attempt is given up, whatever is there, and the
		// next one has a key of its own.
		l.mark(MarkUploadFailed)
		p.state = uploadFailed
		c.backoff(now, Uploads, err)
		if e.Failed == StepCheck {
			l.mark(MarkExportBlocked)
			l.stats.Corruptions++
			c.blocked = p.entry.ID
		}
		return
	}
	c.succeeded(Uploads)
	p.state = uploadDone
	p.entry.State = manifest.Finished
	p.entry.Bytes, p.entry.FooterBytes, p.entry.CRC = e.Bytes, e.FooterBytes, e.CRC
	p.entry.MinTime, p.entry.MaxTime, p.entry.AppendTime = e.MinTime, e.MaxTime, e.AppendTime
}

func (l *Log) coldDeadline(d *deadline) {
	c := &l.cold
	for _, lane := range [...]Lane{Uploads, Catalogue} {
		if l.flight[lane] == nil {
			d.add(c.retryAt[lane])
		}
	}
	if c.missed != nil {
		d.add(c.lookAt)
	}
}

// coldStats says how far the cold tier is behind, and what keeps it.
func (l *Log) coldStats(s *Stats) {
	c := &l.cold
	s.HotStart, s.Exported = l.HotStart(), c.exported
	s.ColdLagBytes, s.ColdLagSegments = l.unexported()
	switch {
	case l.phase == Opening || l.phase == Recovering, c.m.Sequence == 0: // it is not known which files stay, or no manifest was read or written yet
		s.Exported, s.ColdLagBytes, s.ColdLagSegments = -1, -1, -1
	case s.ColdLagSegments == 0:
		s.ColdLagBytes = 0 // an empty active segment
	}
	for _, lane := range [...]Lane{Catalogue, Uploads} {
		if s.ColdError == nil {
			s.ColdError = kept(c.failure[lane])
		}
	}
	if s.ColdError == nil {
		_, s.ColdError = l.Misses()
	}
}

// unexported counts the files that hold more than the cold tier does, the active one with them.
func (l *Log) unexported() (bytes int64, segments int) {
	for i := range l.extents {
		if x := &l.extents[i]; x.End > l.cold.exported {
			if f := l.fileOf(x.Segment); f != nil && l.extentEnd(f.entry) == x.End {
				bytes += f.entry.Bytes
				segments++
			}
		}
	}
	if a := &l.tail.active; a.open {
		bytes += a.pos
		if a.pos > a.dataPos {
			segments++
		}
	}
	return bytes, segments
}
