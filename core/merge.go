package core

import (
	"errors"

	"varve/core/manifest"
	"varve/core/segment"
)

// loadTries is how often a manifest that does not verify is read before the open is refused: a
// reply can be damaged on its way.
const loadTries = 3

// nextMerge hands out what an open asks of the cold tier: the manifest, and the swap that claims it.
func (l *Log) nextMerge(now Now) Effect {
	b := &l.boot
	if now.Mono < b.retryAt || b.step != bootManifest && b.step != bootPages && b.step != bootObjects && b.step != bootClaim {
		return nil
	}
	b.retryAt = 0
	switch {
	case b.step == bootPages:
		return l.nextPage()
	case b.step == bootObjects:
		return l.nextObject()
	case b.step == bootManifest || l.cold.doubt:
		return l.issueLoad()
	}
	l.claimManifest()
	return l.issueSwap()
}

// mergeNext goes on after the superblock: to the manifest where there is a cold tier, else to the
// files.
func (l *Log) mergeNext(now Now) {
	b := &l.boot
	s := &l.super.state
	switch {
	case l.cfg.Cold:
		b.step = bootManifest
	case s.HotStart > s.Start && !l.cfg.ReadOnly && !l.cfg.AcceptLoss:
		l.mark(MarkColdMissing)
		l.refuseOpen("", "its first records are in a cold tier, and none is configured",
			"configure cold.url; accept_loss gives those records up")
	default:
		b.own = owner(s.Lineage)
		if s.HotStart > s.Start && l.cfg.AcceptLoss {
			l.mark(MarkAcceptLoss)
			s.Start = s.HotStart
		}
		l.warmNext(now)
	}
}

func (l *Log) scanFiles(now Now) {
	b := &l.boot
	b.step, b.at = bootScan, 0
	if len(b.plan.Files) == 0 {
		l.planned(now)
	}
}

// onMerge takes the answer of the Catalogue lane while a log opens.
func (l *Log) onMerge(now Now, e Effect, err error) {
	switch e := e.(type) {
	case *LoadManifest:
		switch {
		case l.boot.step == bootClaim:
			l.onClaimLoad(now, e, err)
		case err != nil:
			l.ioError = IOError{Effect: "load manifest", Err: err}
			l.coldDown(now, &l.ioError)
		default:
			l.onManifest(now, e)
		}
	case *ScanObject:
		l.onObject(now, e, err)
	case *LoadPage:
		if err != nil {
			l.ioError = IOError{Effect: "load a page of the manifest", Err: err}
			l.coldDown(now, &l.ioError)
			return
		}
		l.onPage(now, e)
	case *SwapManifest:
		if err != nil {
			l.mark(MarkSwapDoubt)
			l.cold.doubt = true
			if e.Lost { // to somebody else, or it was ours after all: not for want of an answer
				l.boot.taken = true
				l.cold.backoff(now, Catalogue, err)
				l.boot.retryAt = l.cold.retryAt[Catalogue]
				return
			}
			l.ioError = IOError{Effect: "claim the manifest", Err: err}
			l.coldRefuses(now, &l.ioError)
			return
		}
		l.claimed(&l.cold.next, e.NewTag, now)
	default:
		check(false, "an effect of an open")
	}
}

// onManifest merges what the bucket says with what the directory says.
func (l *Log) onManifest(now Now, e *LoadManifest) {
	b, c := &l.boot, &l.cold
	gone := e.Missing && (e.Objects || l.super.state.ManifestSequence > 0)
	if gone && b.degraded && !l.cfg.AcceptLoss { // still: it is asked for less and less often
		l.coldDown(now, l.goneManifest(e.Objects))
		return
	}
	if b.loads == 0 {
		c.succeeded(Catalogue)
	}
	switch {
	case b.degraded: // the cold tier is back: look at everything again, with it
		b.degraded = false
		b.restart()
	case !e.Missing:
		l.manifestThere(now, e)
	case b.absent && e.Objects:
		l.manifestLost(now)
	case b.absent:
		l.noLog()
	case gone && !l.cfg.AcceptLoss:
		if e.Objects {
			l.mark(MarkManifestGone)
		}
		l.coldDown(now, l.goneManifest(e.Objects)) // it may be a lie of the moment
	default:
		l.firstManifest(now)
	}
}

// manifestThere takes a manifest that was read.
func (l *Log) manifestThere(now Now, e *LoadManifest) {
	b, c, s := &l.boot, &l.cold, &l.super.state
	if err := manifest.Parse(e.Bytes, &c.next); err != nil {
		l.badManifest(now, manifest.ManifestKey, err)
		return
	}
	b.loads = 0
	c.forget()
	c.sequence = max(c.sequence, c.next.Sequence, s.ManifestSequence)
	if !b.absent && c.next.LogID != s.LogID {
		l.mark(MarkForeign)
		l.refuseCold(now, manifest.ManifestKey, "it belongs to another log", "check cold.url and cold.name: a log needs a place of its own")
		return
	}
	if !b.absent && c.next.Sequence < s.ManifestSequence {
		l.mark(MarkManifestOdd)
		l.coldDown(now, errOldManifest)
		return
	}
	c.tag, b.taken = e.Tag, false
	if len(c.next.Pages) > 0 {
		b.step, b.at = bootPages, 0
		return
	}
	l.merge(now)
}

// manifestLost refuses a directory without a log where the bucket holds objects and no manifest. A new log would give
// its objects the same keys. It may be a lie of the moment: the bucket is asked again first.
func (l *Log) manifestLost(now Now) {
	b, c := &l.boot, &l.cold
	l.mark(MarkManifestGone)
	lost := lostManifest()
	if b.loads++; b.loads < loadTries {
		c.backoff(now, Catalogue, lost)
		b.retryAt = c.retryAt[Catalogue]
		return
	}
	if l.cfg.Create {
		lost.Next += "; for a new log set another cold.name"
	}
	l.fail(lost)
}

// noLog goes on where neither directory nor bucket holds a log.
func (l *Log) noLog() {
	switch {
	case l.cfg.Warm:
		l.cold.forget()
		l.askWarm()
	case l.cfg.Create:
		l.newLog()
	default:
		l.mark(MarkColdAbsent)
		next := "check cold.url and the directory; to begin a new log: --create"
		if l.cfg.ReadOnly {
			next = "name the directory of a log, or what it is called in the bucket"
		}
		l.refuseOpen("", "neither the directory nor the bucket holds a log", next)
	}
}

// firstManifest lets this life claim a manifest where there is none: the log had no cold tier, or what was in that
// bucket alone is given up.
func (l *Log) firstManifest(now Now) {
	c, s := &l.cold, &l.super.state
	if s.ManifestSequence > 0 {
		l.mark(MarkAcceptLoss)
		s.Start = max(s.Start, s.HotStart)
	}
	c.forget()
	c.sequence = max(c.sequence, s.ManifestSequence)
	l.boot.own = owner(s.Lineage)
	l.warmNext(now)
}

// badManifest reads a manifest or page again that does not verify: the reply may have been damaged on
// its way. In the end it is refused.
func (l *Log) badManifest(now Now, name string, err error) {
	b, c := &l.boot, &l.cold
	b.loads++
	switch {
	case errors.Is(err, manifest.ErrNewer):
		l.mark(MarkManifestNewer)
		l.refuseCold(now, name, err.Error(), "use a newer varve")
	case b.loads < loadTries:
		c.backoff(now, Catalogue, err)
		b.retryAt = c.retryAt[Catalogue]
	default:
		l.mark(MarkManifestDamaged)
		l.refuseCold(now, name, err.Error(), "run: varve cold rebuild-manifest")
	}
}

// refuseCold refuses a log for what is in its bucket. A look shows what is on disk all the same.
func (l *Log) refuseCold(now Now, name, why, next string) {
	if !l.looks() {
		l.refuseOpen(name, why, next)
		return
	}
	l.coldDown(now, &RefusedError{Name: name, Why: why, Next: next})
}

// looks reports whether nothing but a look at a directory that holds a log is wanted.
func (l *Log) looks() bool { return l.cfg.ReadOnly && !l.boot.absent }

// What keeps an open waiting though the bucket answers.
var (
	errNoManifest  = errors.New("core: the bucket holds no manifest, and it did; check cold.url and cold.name; accept_loss begins a new one, without what was in that bucket alone")
	errOldManifest = errors.New("core: the bucket gives an older manifest than before")
)

// goneManifest says of a manifest that was there what to do, which depends on whether objects are. Those that a log
// without a manifest so far meets may be another one's.
func (l *Log) goneManifest(objects bool) error {
	if !objects {
		return errNoManifest
	}
	lost := lostManifest()
	if l.super.state.ManifestSequence == 0 {
		lost.Next += "; if they are another log's, set another cold.name"
	}
	return lost
}

func lostManifest() *RefusedError {
	return &RefusedError{Name: manifest.ManifestKey, Why: "it is not there, and objects of the log are", Next: "run: varve cold rebuild-manifest"}
}

// merge takes the manifest over. The lineage of the highest owner epoch is taken whole, never a
// union: a fenced owner's epoch would void what others have adopted since.
func (l *Log) merge(now Now) {
	b, c, s := &l.boot, &l.cold, &l.super.state
	m := &c.next
	if b.absent {
		l.mark(MarkRebuild)
		*s = segment.Superblock{
			LogID: m.LogID, Sync: l.cfg.Sync, SectorBytes: uint32(l.cfg.SectorBytes), Created: now.Wall,
			Start: m.Start, Frontier: m.Start, Lineage: append(s.Lineage[:0], m.Lineage...),
		}
		s.HotStart = s.Lineage[0].First // for a save before what the warm tier holds is copied
		l.id = m.LogID
	}
	b.own, b.manifest = owner(s.Lineage), true
	l.takeLineage(m.Lineage)
	s.Epoch = max(s.Epoch, m.Epoch)
	s.ManifestSequence = max(s.ManifestSequence, m.Sequence)
	l.adopt(m, c.tag, now.Wall)
	l.warmNext(now)
}

// takeLineage takes a lineage whole if it names a higher owner.
func (l *Log) takeLineage(lineage []segment.Lineage) {
	s := &l.super.state
	own := owner(s.Lineage)
	if owner(lineage) <= own {
		return
	}
	l.mark(MarkTakenOver)
	s.Lineage = append(s.Lineage[:0], lineage...)
	s.Frontier = min(s.Frontier, laterFirst(s.Lineage, own))
	s.HotStart = max(s.HotStart, s.Lineage[0].First)
}

// merged goes on once manifest and warm tier have said whose the log is.
func (l *Log) merged(now Now) {
	b, c := &l.boot, &l.cold
	if !b.manifest {
		l.scanFiles(now)
		return
	}
	if !l.listFits() {
		l.mark(MarkManifestOdd)
		l.refuseOpen(manifest.ManifestKey, "it lists records of an epoch that does not own them here: the log was written without its cold tier",
			"give the log a new prefix in cold.url, and accept_loss for one open, so that it is exported again")
		return
	}
	b.plan.cold = &c.list.whole
	b.objects, b.scanned = b.objects[:0], 0
	l.scanObjects(now)
}

// listFits reports whether all that the manifest lists belongs to the epochs that own it.
func (l *Log) listFits() bool {
	lineage := l.super.state.Lineage
	for i := range l.cold.list.whole.Segments {
		e := &l.cold.list.whole.Segments[i]
		if e.Base < lineage[0].First || e.State != manifest.Finished {
			continue
		}
		if epoch, limit := ownerOf(lineage, e.Base); epoch != e.Epoch || e.End > limit {
			return false
		}
	}
	return true
}

// scanObjects asks for the footers of the newest objects that are not on disk, one after the other:
// what producers sent last may be there. Who was silent for longer is forgotten.
func (l *Log) scanObjects(now Now) {
	b := &l.boot
	b.step, b.at = bootObjects, l.objectBelow(len(l.cold.list.whole.Segments))
	if b.at < 0 || l.cfg.ReadOnly {
		l.scanFiles(now)
	}
}

// objectBelow returns the index of the next older object to read, -1 if there is none.
func (l *Log) objectBelow(at int) int {
	b, all := &l.boot, l.cold.list.whole.Segments
	for at--; at >= 0; at-- {
		s := &all[at]
		if b.scanned >= l.cfg.ColdScanObjects || s.End <= l.boot.plan.cold.Start {
			return -1
		}
		if s.State == manifest.Finished && (b.absent || s.Base < l.super.state.HotStart || owner(l.super.state.Lineage) != b.own) {
			return at
		}
	}
	return -1
}

func (l *Log) nextObject() Effect {
	b := &l.boot
	s := &l.cold.list.whole.Segments[b.at]
	b.object = ScanObject{Extent: coldExtent(s), LogID: l.id, Lineage: l.super.state.Lineage, Info: b.object.Info}
	return &b.object
}

// onObject keeps what a footer names. A bucket that does not answer is asked again; an object that is
// not there, or not whole, costs what is known of producers, and nothing else.
func (l *Log) onObject(now Now, e *ScanObject, err error) {
	b, c := &l.boot, &l.cold
	if err != nil {
		l.mark(MarkObjectWait)
		if c.fails[Catalogue] >= loadTries { // it may answer for the manifest alone, and for good
			l.ioError = IOError{Effect: "read the footer of an object", Err: err}
			l.coldDown(now, &l.ioError)
			return
		}
		c.backoff(now, Catalogue, err)
		b.retryAt = c.retryAt[Catalogue]
		return
	}
	c.succeeded(Catalogue)
	if e.Info.Sealed {
		l.mark(MarkObjectScanned)
		info := segment.FileInfo{Footer: e.Info.Footer}
		info.Producers = append(info.Producers, e.Info.Producers...)
		b.objects = append(b.objects, info)
	} else {
		l.mark(MarkObjectUnread)
	}
	b.scanned++
	if b.at = l.objectBelow(b.at); b.at < 0 {
		l.scanFiles(now)
	}
}

// owner returns the epoch that owns what comes last, 0 for an empty lineage.
func owner(lineage []segment.Lineage) Epoch {
	if n := len(lineage); n > 0 {
		return lineage[n-1].Epoch
	}
	return 0
}

// coldDown waits for the cold tier. A log whose last life kept what it acked on its own disk serves
// meanwhile what is proven there; any other waits, because what it would serve, or give out again,
// may be somebody else's now.
func (l *Log) coldDown(now Now, err error) {
	c := &l.cold
	c.backoff(now, Catalogue, err)
	l.tierDown(now, err, c.retryAt[Catalogue])
}

// tierDown is coldDown for either tier.
func (l *Log) tierDown(now Now, err error, retryAt Time) {
	b, c, s := &l.boot, &l.cold, &l.super.state
	l.err = err
	b.retryAt = retryAt
	wait := b.absent || b.degraded || b.taken || l.cfg.Repair || !s.Complete || !s.Clean && s.Sync != segment.OnCommit
	switch {
	case l.cfg.ReadOnly && b.absent:
		l.fail(err)
		return
	case wait && !l.cfg.ReadOnly: // a look waits for nothing: it shows what is on disk, and Err why that is all
		l.mark(MarkColdWait)
		return
	}
	b.degraded = true
	b.retryAt = 0
	if !b.manifest || !l.listFits() { // else it is the warm tier that does not answer: what the bucket holds is served
		c.list.reset()
	}
	l.scanFiles(now)
}

// degrade serves what is proven on disk, and waits for the tiers.
func (l *Log) degrade(now Now) {
	b, p := &l.boot, &l.boot.plan
	if p.Refused == nil {
		l.mark(MarkDegraded)
		l.phase = Recovering
		l.waiting = l.err
		end := min(p.Evidence, p.End)
		if l.cfg.Warm { // what is on disk may wait for the warm tier, and somebody else may own it
			end = min(end, max(l.super.state.Committed, l.super.state.Start))
		}
		l.adoptPlan(end)
		l.adoptColdStart()
	}
	b.step, b.at = bootProbe, 0
	if l.cfg.Cold {
		b.step = bootManifest
	}
	b.retryAt = max(l.cold.retryAt[Catalogue], l.warm.retryAt, now.Mono+1)
}

// coldRefuses waits for a bucket that was read and does not take the claim: it may not be written to, or be full.
func (l *Log) coldRefuses(now Now, err error) {
	l.cold.backoff(now, Catalogue, err)
	l.boot.retryAt = l.cold.retryAt[Catalogue]
	l.unclaimed(err)
}

// unclaimed serves what is proven while a tier does not take the claim of this life. The plan is carried out
// but for that; of a log that is new there is nothing to serve, and a repair has only done its work at the end. Where
// somebody else may have claimed the log first, what is on disk may be void: it waits.
func (l *Log) unclaimed(err error) {
	p, s := &l.boot.plan, &l.super.state
	l.err = err
	if p.New || l.cfg.Repair || l.boot.taken || errors.Is(err, errWarmTaken) {
		l.mark(MarkColdWait)
		return
	}
	l.mark(MarkUnclaimed)
	l.phase, l.waiting = Recovering, err
	end := min(max(p.Evidence, l.cold.list.end(s.Start)), p.End)
	if l.cfg.Warm { // complete has bounded Committed by what was known of it
		end = min(end, max(s.Committed, l.cold.list.end(s.Start)))
	}
	l.adoptPlan(max(end, s.Start))
}

// adoptColdStart takes Start from the manifest in a plan that was made without it: objects below may be gone.
func (l *Log) adoptColdStart() {
	if to := min(l.cold.list.whole.Start, l.end); to > l.start {
		l.start = to
		l.hotStart = max(l.hotStart, to)
	}
}

// claimManifest builds the manifest that claims the log for this life: its epoch, and where that
// begins, before any of its records exists.
func (l *Log) claimManifest() {
	c, s := &l.cold, &l.super.state
	n := &c.next
	n.CopyFrom(&c.m)
	n.Start = max(n.Start, s.Start)
	n.Lineage = trimLineage(append(n.Lineage[:0], s.Lineage...), n.Start)
	for i := range n.Segments {
		if n.Segments[i].State == manifest.Started {
			l.mark(MarkUploadOrphan)
			n.Segments[i].State = manifest.Dead
		}
	}
}

// onClaimLoad settles what became of a claim whose swap did not simply succeed.
func (l *Log) onClaimLoad(now Now, e *LoadManifest, err error) {
	b, c := &l.boot, &l.cold
	if err == nil && e.Missing && c.tag == "" {
		c.doubt, b.taken = false, false // nothing there yet: try again
		return
	}
	if err == nil && (e.Missing || manifest.Parse(e.Bytes, &c.next) != nil) {
		err = errOddManifest
	}
	if err != nil {
		l.ioError = IOError{Effect: "look whether the manifest is claimed", Err: err}
		l.coldRefuses(now, &l.ioError)
		return
	}
	switch m := &c.next; {
	case m.LogID == l.id && m.Epoch == l.epoch && m.Nonce == l.cfg.Nonce:
		l.mark(MarkSwapOurs)
		b.taken = false
		l.claimed(m, e.Tag, now)
	case e.Tag == c.tag:
		c.doubt, b.taken = false, false
	default:
		l.mark(MarkClaimLost)
		c.doubt = false
		b.restart()
	}
}

// claimed goes on after the manifest names this life as the owner.
func (l *Log) claimed(m *manifest.Manifest, tag string, now Now) {
	b, c := &l.boot, &l.cold
	c.doubt = false
	c.succeeded(Catalogue)
	l.adopt(m, tag, now.Wall)
	c.began = c.exported
	l.super.state.ManifestSequence = c.m.Sequence
	if b.plan.New {
		b.step, b.at = bootCreate, 0
		return
	}
	l.tellWarm()
}

// restart begins discovery again.
func (b *boot) restart() {
	b.step, b.at = bootList, 0
	b.absent, b.manifest = false, false
	b.objects, b.scanned = b.objects[:0], 0
	b.plan.reset()
	b.tmp = b.tmp[:0]
}
