package core

import (
	"errors"

	"varve/core/segment"
)

// boot is the state of an open: discovery (List, LoadSuper, Scan each file), the plan, and the
// effects that carry it out. Until the plan is complete nothing of the directory is written.
type boot struct {
	step    bootStep
	at      int  // file, rescue or slot within the step
	tries   int  // plans made anew because a source changed
	retryAt Time // Mono; waiting for free space
	began   Time

	manifest bool               // the cold tier has one
	fenced   Epoch              // of the marker in the warm tier; the next one of this life has no less
	looks    int                // at the tiers, because of a hole
	absent   bool               // there is no directory, or an empty one: the cold tier says what the log is
	degraded bool               // a tier does not answer: the plan is made without the tiers, and served, not carried out
	taken    bool               // a claim was refused, and nobody has said yet who has the log
	objects  []segment.FileInfo // of objects whose footers were read, newest first
	scanned  int                // of them, in this try
	loads    int                // manifests in a row that did not verify, or were not there although objects are

	found FoundSuper
	plan  Plan
	tmp   []string

	object  ScanObject
	own     Epoch // that the directory's own lineage ends with
	list    List
	load    LoadSuper
	declare Create
	aside   Quarantine
	scan    Scan
	replace Replace
	supers  [2]segment.Superblock
}

// FoundSuper is what LoadSuper found.
type FoundSuper struct {
	Present  [2]bool // the file exists
	Valid    [2]bool
	Winner   int // slot; -1: none valid
	Newer    bool
	Problems [2]error // why a present slot is not valid
	Spare    bool     // there is a spare as long as the slots
}

type bootStep uint8

const (
	bootList bootStep = iota
	bootSuper
	bootManifest
	bootPages
	bootProbe // the warm tier: a look, the marker, what is there
	bootFence
	bootWarm
	bootObjects  // producers of what is not on disk
	bootIdentify // repair: find the log's id in a segment header
	bootScan
	bootRescan // files above evidence, batch by batch
	bootAside  // repair: move damaged slots to quarantine
	bootCreate // new log: both slots
	bootRaise  // claim the epoch
	bootReplace
	bootDeclare // repair: mark spans as lost
	bootClaim   // the manifest names this life as the owner
	bootTell    // and so does a marker in the warm tier, with what this life begins with
	bootFinish  // record the recovered end, in both slots
)

func (b *boot) reset(now Now) {
	b.step, b.at, b.tries, b.retryAt = bootList, 0, 0, 0
	b.absent, b.degraded, b.taken, b.loads = false, false, false, 0
	b.manifest, b.fenced, b.looks = false, 0, 0
	b.objects, b.scanned, b.own = b.objects[:0], 0, 0
	b.began = now.Mono
	b.plan.reset()
	b.tmp = b.tmp[:0]
}

// fail ends an open, or a log that can go no further.
func (l *Log) fail(err error) {
	l.phase, l.err = Failed, err
	l.resolveAll(ErrUnknown, ErrPoisoned)
}

// nextBoot hands out the next effect of an open.
func (l *Log) nextBoot(now Now) Effect {
	b := &l.boot
	if now.Mono < b.retryAt {
		return nil
	}
	b.retryAt = 0
	switch b.step {
	case bootList:
		b.list.Files, b.list.Tmp = b.list.Files[:0], b.list.Tmp[:0]
		b.list.Orphans, b.list.Unknown = b.list.Orphans[:0], b.list.Unknown[:0]
		b.list.Missing, b.list.Super = false, [2]bool{}
		return &b.list
	case bootSuper:
		b.load.Slots[0], b.load.Slots[1] = b.load.Slots[0][:0], b.load.Slots[1][:0]
		return &b.load
	case bootIdentify, bootScan, bootRescan:
		f := &b.plan.Files[b.at]
		b.scan.File, b.scan.LogID = f.Entry, l.id
		b.scan.SectorBytes = int(l.super.state.SectorBytes)
		if b.step == bootIdentify { // no superblock says
			b.scan.SectorBytes = l.cfg.SectorBytes
		}
		b.scan.Lineage = l.super.state.Lineage
		b.scan.Whole = b.step == bootRescan || l.cfg.VerifyAllOnOpen
		return &b.scan
	case bootAside:
		return &b.aside
	case bootCreate, bootRaise, bootFinish:
		return l.save(b.step == bootCreate || b.absent)
	case bootReplace:
		return l.issueReplace(now)
	}
	return nil
}

// onBoot takes the answer to a boot effect and moves on.
func (l *Log) onBoot(now Now, e Effect, err error) {
	if e.Lane() == Catalogue {
		l.onMerge(now, e, err)
		return
	}
	if e.Lane() == Warm {
		l.onWarmBoot(now, e, err)
		return
	}
	if err != nil {
		l.onBootError(now, e, err)
		return
	}
	switch e := e.(type) {
	case *List:
		l.onList(e)
	case *LoadSuper:
		l.onLoadSuper(now, e)
	case *Scan:
		l.onScan(now, e)
	case *Replace:
		l.onReplace(e)
	case *Create:
		l.boot.plan.declared(l.boot.at, e)
		l.boot.at++
		l.afterReplace()
	case *Quarantine:
		l.beginClaim()
	case *SaveSuper:
		l.saved(e)
		l.onBootSave(now)
	default:
		check(false, "an effect of an open")
	}
}

// onBootError: a failed sync ends the open (only a new open may try again); no space waits; a
// source that changed is planned anew; the rest ends the open.
func (l *Log) onBootError(now Now, e Effect, err error) {
	b, r := &l.boot, e.Result()
	if x, ok := e.(*Replace); ok && x.Object.Tier == TierWarm && r.Failed == StepRead { // the warm tier, not the disk
		l.ioError = IOError{Effect: "read the warm tier", Err: err}
		l.err = &l.ioError
		l.warm.backoff(now, l.err)
		b.retryAt = l.warm.retryAt
		b.restart()
		return
	}
	switch {
	case r.Failed == StepSync || r.Failed == StepRead:
		l.mark(MarkOpenIOError)
		l.ioError = IOError{Effect: effectName(e), Err: err}
		l.fail(&l.ioError)
	case r.Failed == StepCheck && b.tries < 3:
		l.mark(MarkReplan)
		b.tries++
		b.restart()
	case r.NoSpace && b.step != bootCreate:
		l.mark(MarkOpenNoSpace)
		l.recovering(now)
	default:
		l.mark(MarkOpenIOError)
		l.ioError = IOError{Effect: effectName(e), Err: err}
		l.fail(&l.ioError)
	}
}

func effectName(e Effect) string {
	switch e.(type) {
	case *List:
		return "list directory"
	case *LoadSuper:
		return "read superblock"
	case *SaveSuper:
		return "save superblock"
	case *Scan:
		return "scan segment"
	case *Replace:
		return "rescue"
	case *Create:
		return "declare a span lost"
	case *Quarantine:
		return "move a superblock slot to quarantine"
	}
	return "effect"
}

// recovering serves what is proven while the open waits for free space.
func (l *Log) recovering(now Now) {
	b := &l.boot
	b.retryAt = now.Mono + second
	l.waiting = nil
	if l.phase == Recovering {
		return
	}
	l.phase = Recovering
	l.adoptPlan(b.plan.Evidence)
}

func (l *Log) onList(e *List) {
	b := &l.boot
	b.found = FoundSuper{Present: e.Super, Winner: -1}
	b.tmp = append(append(b.tmp[:0], e.Tmp...), e.Orphans...)
	if len(b.tmp) > 0 {
		l.mark(MarkTmp)
	}
	b.plan.addFiles(e.Files)
	b.plan.Unknown = append(b.plan.Unknown[:0], e.Unknown...)
	if e.Super[0] || e.Super[1] {
		b.step = bootSuper
		return
	}
	switch {
	case len(e.Files) > 0 && l.cfg.Repair:
		b.step, b.at = bootIdentify, 0
	case len(e.Files) > 0:
		l.mark(MarkSuperRefused)
		l.refuseOpen(segment.Name(e.Files[0].Base, e.Files[0].ID),
			"the directory holds segments but no superblock", "run: varve log repair")
	case len(e.Unknown) > 0:
		next := "choose an empty directory"
		if l.cfg.ReadOnly {
			next = "name the directory of a log"
		}
		l.refuseOpen("", "it is not empty and holds no log (found "+e.Unknown[0]+")", next)
	case l.cfg.Existing && !l.cfg.Cold && !l.cfg.Warm:
		l.refuseOpen("", "it is missing or empty, and should hold a log", "restore it from a copy")
	case l.cfg.Cold:
		b.absent, b.step = true, bootManifest
	case l.cfg.Warm:
		b.absent = true
		l.askWarm()
	default:
		l.newLog()
	}
}

func (l *Log) refuseOpen(name, why, next string) {
	l.fail(&RefusedError{Name: name, Why: why, Next: next})
}

// newLog begins a log in an absent or empty directory.
func (l *Log) newLog() {
	b := &l.boot
	b.plan.New = true
	l.id, l.epoch = l.cfg.LogID, 1
	s := &l.super.state
	*s = segment.Superblock{
		LogID: l.id, Epoch: 1, Nonce: l.cfg.Nonce, Sync: l.cfg.Sync, SectorBytes: uint32(l.cfg.SectorBytes),
		Complete: true, Lineage: append(s.Lineage[:0], segment.Lineage{Epoch: 1, First: 0}),
	}
	b.plan.Epoch = 1
	if l.cfg.ReadOnly {
		l.phase = Planned
		return
	}
	b.step, b.at = bootCreate, 0
	if l.cfg.Cold {
		l.cold.forget()
		b.step = bootClaim
	}
	l.mark(MarkNewLog)
}

func (l *Log) onLoadSuper(now Now, e *LoadSuper) {
	b := &l.boot
	f := &b.found
	for i := range 2 {
		f.Present[i] = f.Present[i] || len(e.Slots[i]) > 0
		if !f.Present[i] {
			continue
		}
		err := segment.ReadSuper(e.Slots[i], &b.supers[i])
		if err == nil {
			err = contradiction(&b.supers[i])
		}
		f.Valid[i], f.Problems[i] = err == nil, err
		if errors.Is(err, segment.ErrSuperNewer) {
			f.Newer = true
			l.mark(MarkSuperNewer)
			l.refuseOpen(superName(i), err.Error(), "use a newer varve")
			return
		}
		l.super.bytes[i] = len(e.Slots[i])
		f.Spare = b.list.Spare >= int64(max(l.super.bytes[0], l.super.bytes[1]))
		if f.Valid[i] && (f.Winner < 0 || b.supers[i].Sequence > b.supers[f.Winner].Sequence) {
			f.Winner = i
		}
	}
	if f.Winner < 0 && l.cfg.Repair && len(b.plan.Files) > 0 {
		b.step, b.at = bootIdentify, 0
		return
	}
	if f.Winner < 0 {
		l.mark(MarkSuperRefused)
		next := "run: varve log repair"
		if len(b.plan.Files) == 0 {
			next = "there is no segment to derive one from: restore the directory from a copy, or choose an empty one"
		}
		l.refuseOpen(superName(0), "no superblock slot verifies: "+slotProblem(f), next)
		return
	}
	if !f.Valid[1-f.Winner] {
		l.mark(MarkSuperOneSlot)
	} else if b.supers[0].LogID != b.supers[1].LogID {
		l.mark(MarkForeign)
		l.refuseOpen(superName(1-f.Winner), "its log id is not that of "+superName(f.Winner), "move the one that does not belong here out of the directory")
		return
	}
	l.takeSuper(&b.supers[f.Winner])
	l.mergeNext(now)
}

func superName(slot int) string {
	if slot == 0 {
		return "super.0"
	}
	return "super.1"
}

func slotProblem(f *FoundSuper) string {
	for i := range 2 {
		if f.Problems[i] != nil {
			return f.Problems[i].Error()
		}
	}
	return "the files are empty"
}

// takeSuper makes the winning slot the state that this life goes on from; the other slot is
// written next.
func (l *Log) takeSuper(w *segment.Superblock) {
	s := &l.super.state
	lineage := append(s.Lineage[:0], w.Lineage...)
	*s = *w
	s.Lineage = lineage
	l.super.next = 1 - l.boot.found.Winner
	l.id = w.LogID
	if !w.Complete {
		l.mark(MarkIncompleteOpen)
	}
}

// onScan files what a scan found; after the last file the plan is made, and made again after files
// that it wants verified batch by batch.
func (l *Log) onScan(now Now, e *Scan) {
	b := &l.boot
	if b.step == bootIdentify {
		l.onIdentify(e)
		return
	}
	f := &b.plan.Files[b.at]
	f.Info, e.Info = e.Info, f.Info
	f.rescan = false
	b.at++
	if b.step == bootRescan {
		b.at = b.plan.nextRescan(b.at)
	}
	if b.at < len(b.plan.Files) {
		return
	}
	l.planned(now)
}

// planned makes the plan once every file has been looked at.
func (l *Log) planned(now Now) {
	b := &l.boot
	p := &b.plan
	if b.found.Winner < 0 && !b.absent {
		l.rebuildSuper()
	}
	p.floor, p.absent = b.fenced, b.absent
	p.reconcile(&l.super.state, &l.cfg, &l.marks)
	if at := p.nextRescan(0); at < len(p.Files) {
		b.step, b.at = bootRescan, at
		return
	}
	l.id = l.super.state.LogID
	l.identitySeed = segment.IdentitySeed(l.id)
	l.epoch = p.Epoch
	if p.Refused == nil && b.fenced > 0 && p.Epoch != b.fenced { // a file knows of a later owner than the marker is of
		b.fenced = p.Epoch
		b.restart()
		return
	}
	if b.degraded && !l.cfg.ReadOnly {
		l.degrade(now)
		return
	}
	if p.hole && l.cfg.Cold && b.looks < loadTries { // the owner before may have exported it since the manifest was read
		b.looks++
		b.restart()
		return
	}
	if p.Refused != nil {
		l.fail(p.Refused)
		return
	}
	l.stats.TornBytes = p.TornBytes
	if l.super.state.Clean && len(p.Rescues) == 0 {
		l.mark(MarkCleanOpen)
	}
	if l.cfg.ReadOnly {
		l.adoptPlan(p.End)
		if b.degraded {
			l.adoptColdStart()
		}
		l.raiseExported()
		l.frontier = max(p.Evidence, min(l.cold.exported, p.End))
		if p.warm != nil {
			l.measureWarm()
		}
		l.phase = Planned
		return
	}
	l.claim()
	if l.cfg.Repair && l.planAside() {
		b.step, b.at = bootAside, 0
		return
	}
	l.beginClaim()
}

// beginClaim begins to carry the plan out.
func (l *Log) beginClaim() {
	b, p := &l.boot, &l.boot.plan
	b.step, b.at = bootRaise, 0
	if len(p.Rescues)+len(p.Declared) == 0 {
		l.complete()
	}
}

// claim prepares the epoch-raising save. With nothing to rescue it and the finishing save are one.
func (l *Log) claim() {
	s := &l.super.state
	s.Epoch, s.Nonce, s.Sync = l.epoch, l.cfg.Nonce, l.cfg.Sync
	s.Clean, s.Complete = false, false
	if start := l.boot.plan.Start; start <= s.Frontier { // else it is saved with the recovered end
		s.Start = max(s.Start, start)
	}
}

// complete prepares the save that ends recovery: from the recovered end on, this epoch owns the
// log, and everything that older files hold there is void.
func (l *Log) complete() {
	s, p := &l.super.state, &l.boot.plan
	s.Complete = true
	s.Frontier = p.End
	if l.cfg.Warm && len(p.Extents) > 0 {
		p.HotStart = p.Extents[0].First
	}
	s.Start, s.HotStart = max(s.Start, p.Start), p.HotStart
	n := len(s.Lineage)
	for n > 0 && s.Lineage[n-1].First >= p.End {
		n--
	}
	s.Lineage = append(s.Lineage[:n], segment.Lineage{Epoch: l.epoch, First: p.End})
	if l.cfg.Warm { // what else was recovered is committed once the warm tier has it
		s.Committed = min(max(s.Committed, s.Start), p.End)
	} else {
		s.Committed = p.End
	}
	s.CommittedEpoch = l.epoch
	if n > 0 {
		s.CommittedEpoch = s.Lineage[n-1].Epoch
	}
	if l.cfg.Cold {
		l.boot.step, l.boot.at = bootClaim, 0
		return
	}
	l.tellWarm()
}

// onBootSave moves on after a superblock save: creation and finishing write both slots.
func (l *Log) onBootSave(now Now) {
	b := &l.boot
	if b.step == bootRaise {
		b.step, b.at = bootReplace, 0
		l.afterReplace()
		return
	}
	b.at++
	if b.at == 2 {
		l.ready(now)
	}
}

func (l *Log) issueReplace(now Now) Effect {
	b, p := &l.boot, &l.boot.plan
	r := &p.Rescues[b.at]
	var source FileEntry
	var object Extent
	if r.File < 0 {
		object = Extent{First: r.First, End: r.End, Base: r.First, Epoch: r.Epoch, Tier: TierWarm, Generation: r.Generation}
	} else {
		src := &p.Files[r.File]
		source = src.Entry
		l.mark(MarkRescue)
		if src.Info.Header.Kind == segment.Replacement {
			l.mark(MarkRescueReplacement)
		}
	}
	b.replace = Replace{
		Producers: b.replace.Producers[:0],
		Header: segment.Header{
			Kind: segment.Replacement, Sync: l.cfg.Sync, SectorBytes: l.super.state.SectorBytes, LogID: l.id,
			ID: segment.MakeID(l.epoch, l.tail.nextN), Epoch: r.Epoch, Base: r.First, End: r.End,
			Created: now.Wall, Nonce: l.cfg.Nonce,
		},
		Source: source, Object: object, SourceEpoch: r.Epoch, Frontier: min(p.Evidence, r.First),
		IndexSpacingBytes: l.cfg.IndexSpacingBytes,
	}
	l.tail.nextN++
	return &b.replace
}

func (l *Log) onReplace(e *Replace) {
	b, p := &l.boot, &l.boot.plan
	p.rescued(b.at, e)
	l.stats.RescuedBytes += e.Bytes
	b.at++
	l.afterReplace()
}

// afterReplace moves on once every rescue is done: to what a repair declares, then to the end.
func (l *Log) afterReplace() {
	b, p := &l.boot, &l.boot.plan
	if b.step == bootReplace && b.at == len(p.Rescues) {
		b.step, b.at = bootDeclare, 0
	}
	if b.step == bootDeclare && b.at == len(p.Declared) {
		l.complete()
	}
}

// ready begins the life: everything up to the recovered end is durable and recorded.
func (l *Log) ready(now Now) {
	p := &l.boot.plan
	l.phase, l.err, l.waiting = Ready, nil, nil
	l.identitySeed = segment.IdentitySeed(l.id)
	l.lineage = append(l.lineage[:0], l.super.state.Lineage...)
	l.adoptPlan(p.End)
	l.frontier = p.End
	l.adoptFiles(now)
	l.keep.want, l.keep.hot = l.start, l.hotStart
	l.raiseExported()
	if l.cfg.Warm {
		l.readyWarm(now)
	}
	l.keep.nextCheck = now.Mono // now: lives may be shorter than the interval
	l.tickRetention(now)
	l.stats.RecoveredAt = now.Mono - l.boot.began
	l.tail.lastActivity = now.Mono
}

// adoptPlan makes the planned extents the view, up to an offset.
func (l *Log) adoptPlan(end Offset) {
	p := &l.boot.plan
	l.start, l.hotStart = l.super.state.Start, p.HotStart
	l.extents = l.extents[:0]
	for _, x := range p.Extents {
		if x.First >= end {
			break
		}
		x.End = min(x.End, end)
		l.extents = append(l.extents, x)
	}
	if l.phase != Ready {
		l.lineage = append(l.lineage[:0], l.super.state.Lineage...)
	}
	l.frontier, l.committed, l.written, l.end = min(p.Evidence, end), end, end, end
	l.viewVersion++
}

// adoptFiles takes over the files that are kept, and plans their removal or their index.
func (l *Log) adoptFiles(now Now) {
	p := &l.boot.plan
	l.files = l.files[:0]
	for i := len(l.boot.objects) - 1; i >= 0; i-- { // in offset order
		o := &l.boot.objects[i]
		for j := range o.Producers {
			l.producers.merge(&o.Producers[j], o.Footer.Epoch, l.lineage)
		}
		l.producers.trim()
	}
	l.hot.names = append(l.hot.names[:0], l.boot.tmp...)
	for i := range p.Files {
		f := &p.Files[i]
		switch f.Fate {
		case FateServe, FateVoid, FateDamaged:
			end := f.end
			if f.Fate == FateDamaged { // damage may reach behind the last batch that verifies
				end = max(end, l.extentEnd(f.Entry))
			}
			l.files = append(l.files, file{
				entry: f.Entry, end: end, ageFrom: min(f.appendTime, now.Wall), void: f.Fate == FateVoid,
			})
			l.producersOf(f)
		case FateSuperseded:
			l.mark(MarkSuperseded)
			l.hot.removeLater(f.Entry)
			l.producersOf(f)
		case FateLeftover:
			l.mark(MarkLeftover)
			l.hot.removeLater(f.Entry)
		case FateUnfinished:
			l.hot.removeLater(f.Entry)
		case FateQuarantine:
			l.hot.quarantines = append(l.hot.quarantines, f.Entry)
		}
		if f.Fate == FateServe && !f.Info.Sealed && !f.Info.Sidecar && !f.replaced {
			l.mark(MarkFooterDerived)
			l.hot.indexes = append(l.hot.indexes, f.Entry)
		}
		if f.Fate == FateServe && f.Info.Sidecar {
			l.mark(MarkSidecarUsed)
		}
	}
}

// producersOf takes over what a file recorded of producers, as far as lineage lets it count.
func (l *Log) producersOf(f *PlanFile) {
	for i := range f.Info.Producers {
		l.producers.merge(&f.Info.Producers[i], f.epoch(), l.lineage)
	}
	l.producers.trim()
}
