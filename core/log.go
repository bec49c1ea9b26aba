package core

import "varve/core/segment"

// Phase is where a log stands in its life.
type Phase uint8

// Phases. Opening leads to Ready or Failed (or Planned with Config.ReadOnly); Ready to Poisoned or
// Closing; Closing to Closed. Recovering is an open that waits for free space: proven records are
// readable, appends answer ErrNoSpace.
const (
	Opening Phase = iota
	Recovering
	Planned
	Ready
	Poisoned
	Closing
	Closed
	Failed
)

// String returns the phase's name.
func (p Phase) String() string {
	return [...]string{"opening", "recovering", "planned", "ready", "poisoned", "closing", "closed", "failed"}[p]
}

// Log is the pure log: it decides, the driver acts. It is not safe for concurrent use.
type Log struct {
	cfg   Config
	phase Phase
	err   error
	marks MarkSet
	stats Stats

	id           segment.LogID
	epoch        Epoch
	identitySeed uint32

	// Watermarks. Invariant: start <= frontier <= written <= end, start <= committed <= written.
	// frontier never passes what a completed sync covered; committed never falls.
	start     Offset
	hotStart  Offset // first offset that is kept on disk; what lies before it is in the cold tier
	frontier  Offset // proven on the device
	committed Offset // acked; readers stop here
	written   Offset // a completed Commit holds it
	end       Offset // next offset to give out

	flight [LaneCount]Effect
	ticked Time // Mono of the last Tick

	tail  tail
	sync  syncState
	hot   hotState
	boot  boot
	super superState
	keep  retention
	cold  coldState
	warm  warmState

	producers producers
	outcomes  ring[Outcome]

	files       []file
	extents     []Extent
	lineage     []segment.Lineage
	viewVersion uint64

	ioError IOError
	waiting error // why the log takes no appends while it is Recovering; nil: no space
}

// Stats counts what the log did since Open.
type Stats struct {
	Commits, CommitBatches, CommitRecords, CommitBytes uint64
	Syncs, SyncFailures, Rolls, Rollbacks, SuperSaves  uint64
	Duplicates, Refused                                uint64
	PendingBytes, UnsyncedBytes                        int64
	Poisoned                                           bool
	LowSpace                                           bool // appends are refused for want of space on disk
	RescuedBytes                                       int64
	TornBytes                                          int64
	Corruptions                                        uint64
	RecoveredAt                                        Time // Mono time at which the log became ready, since Open
	NoSpare                                            bool // the superblock has no spare: without a free byte an open has to wait for room
	SealedSegments                                     int
	SegmentBytes                                       int64 // of all files that are served

	// Of the cold tier; zero without one. Exported and the lag are -1 until the log is open and the bucket has answered.
	HotStart        Offset // first offset on local disk
	Exported        Offset // everything below is in the cold tier, or below Start
	ColdLagBytes    int64  // of the files that hold more than that, the active one with them
	ColdLagSegments int
	ColdError       error // why the bucket's last answer was none, nil while it answers

	// Of the warm tier; zero without one.
	WarmFrom, WarmEnd Offset // [WarmFrom, WarmEnd) is in it, confirmed
	WarmWaived        Offset // what lies between WarmEnd and this was acked without it, because the policy says so
	WarmBytes         int64  // of the entries that hold that
	WarmLagBytes      int64  // of what is written and not confirmed there
	WarmStalled       bool   // what is written has waited too long: appends are refused, or do without it
	WarmError         error  // why its last answer was of no use, nil after one that was
	WarmUnsafe        uint32 // why it may lose what it confirmed: bits of the executor
}

// Open starts a log: its first effects are discovery. An error names a configuration value.
func Open(cfg Config, now Now) (*Log, error) {
	l := new(Log)
	return l, l.Reopen(cfg, now)
}

// Reopen is Open on a Log that nobody uses any more: it starts a new life in the memory of the old.
// Effects of the old life must not be completed; errors that it returned are overwritten.
func (l *Log) Reopen(cfg Config, now Now) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	l.cfg, l.phase, l.err = cfg, Opening, nil
	l.marks, l.stats = MarkSet{}, Stats{}
	l.id, l.epoch, l.identitySeed = segment.LogID{}, 0, 0
	l.start, l.hotStart, l.frontier, l.committed, l.written, l.end = 0, 0, 0, 0, 0, 0
	l.waiting = nil
	l.flight, l.ticked = [LaneCount]Effect{}, 0
	l.tail.reset(now)
	l.sync = syncState{effect: l.sync.effect, bounds: l.sync.bounds}
	l.sync.bounds.reset()
	l.hot.reset()
	l.boot.reset(now)
	l.super.reset()
	l.cold.reset()
	l.warm.reset()
	l.keep = retention{nextCheck: now.Mono + cfg.RetentionCheckInterval}
	l.producers.reset(cfg.ProducersMax)
	l.outcomes.reset()
	l.files, l.extents, l.lineage = l.files[:0], l.extents[:0], l.lineage[:0]
	l.viewVersion++
	return nil
}

// Phase returns where the log stands.
func (l *Log) Phase() Phase { return l.phase }

// Err returns why the log failed, was poisoned, or closed uncleanly.
func (l *Log) Err() error { return l.err }

// Start returns the first offset that may be read.
func (l *Log) Start() Offset { return l.start }

// HotStart returns the first offset on local disk.
func (l *Log) HotStart() Offset {
	if len(l.extents) > 0 {
		return l.extents[0].First
	}
	return l.written
}

// Exported returns the offset up to which every record is in the cold tier, or below Start.
func (l *Log) Exported() Offset { return l.cold.exported }

// Frontier returns the offset up to which records are proven to be on the device.
func (l *Log) Frontier() Offset { return l.frontier }

// Committed returns the offset at which readers stop.
func (l *Log) Committed() Offset { return l.committed }

// End returns the next offset that an append will get.
func (l *Log) End() Offset { return l.end }

// Epoch returns the epoch that this life claimed.
func (l *Log) Epoch() Epoch { return l.epoch }

// LogID returns the log's identity, once it is known.
func (l *Log) LogID() segment.LogID { return l.id }

// Stats returns counters and gauges.
func (l *Log) Stats() Stats {
	s := l.stats
	s.PendingBytes = l.tail.pendingBytes
	s.UnsyncedBytes = l.sync.unsyncedBytes
	s.Poisoned, s.LowSpace = l.phase == Poisoned, l.LowSpace()
	s.SealedSegments = len(l.files)
	for i := range l.files {
		s.SegmentBytes += l.files[i].entry.Bytes
	}
	if l.tail.active.open {
		s.SegmentBytes += l.tail.active.pos
	}
	if l.cfg.Cold {
		l.coldStats(&s)
	}
	if l.cfg.Warm {
		l.warmStats(&s)
	}
	return s
}

// LowSpace reports whether appends are refused for want of space on disk.
func (l *Log) LowSpace() bool { return l.hot.lowSpace || l.phase == Recovering && l.waiting == nil }

// NextOutcome pops the next resolved cohort. Outcomes come in cohort order, each once.
func (l *Log) NextOutcome() (Outcome, bool) {
	if l.outcomes.len() == 0 {
		return Outcome{}, false
	}
	return *l.outcomes.pop(), true
}

// ViewVersion changes whenever FillView would give another view.
func (l *Log) ViewVersion() uint64 { return l.viewVersion }

// FillView copies the current view into v, reusing its slices.
func (l *Log) FillView(v *View) {
	v.Version, v.LogID = l.viewVersion, l.id
	v.Start, v.HotStart, v.Epoch = l.start, l.HotStart(), l.epoch
	v.Extents = l.fillExtents(v.Extents[:0])
	v.Lineage = append(v.Lineage[:0], l.lineage...)
}

// Locate returns the batch boundary at or before an offset in the active segment.
func (l *Log) Locate(id segment.ID, o Offset) (pos int64, base Offset, ok bool) {
	a := &l.tail.active
	if !a.open || a.header.ID != id {
		return 0, 0, false
	}
	return a.footer.Lookup(o)
}

// LocateTime returns where to start looking for the first record of the active segment that is not
// older than t: a batch boundary before which every record is older; the end of what is written if
// all are. Not ok: the segment is not active any more.
func (l *Log) LocateTime(id segment.ID, t Time) (base Offset, ok bool) {
	a := &l.tail.active
	if !a.open || a.header.ID != id {
		return 0, false
	}
	if f := a.footer.Summary(); f.Batches == 0 || f.MaxTime < t {
		return l.written, true
	}
	_, base, ok = a.footer.LookupTime(t)
	return base, ok
}

// Damaged reports that a reader or a scrubber met damage in an extent. What the cold tier holds is
// served from there from now on; for anything else the reader has its error.
func (l *Log) Damaged(_ Now, d *CorruptError) {
	l.mark(MarkDamagedReader)
	l.stats.Corruptions++
	if d.Tier == TierHot && l.cfg.Cold && (l.phase == Ready || l.phase == Planned) {
		l.healFromCold(d.Segment, d.Offset)
	}
}

// Next hands out the next effect of a lane, nil if the lane is busy or has nothing to do.
func (l *Log) Next(now Now, lane Lane) Effect {
	if l.flight[lane] != nil {
		return nil
	}
	e := l.decide(now, lane)
	if e == nil {
		return nil
	}
	check(e.Lane() == lane, "effect on its lane")
	*e.Result() = Result{FreeBytes: -1}
	l.checkExclusion(e)
	l.flight[lane] = e
	return e
}

func (l *Log) decide(now Now, lane Lane) Effect {
	switch l.phase {
	case Opening, Recovering:
		switch {
		case lane == Hot:
			return l.nextBoot(now)
		case lane == Tail && l.boot.step == bootDeclare:
			return l.issueDeclare(now)
		case lane == Catalogue && l.cfg.Cold:
			return l.nextMerge(now)
		case lane == Warm && l.cfg.Warm:
			return l.nextWarmBoot(now)
		}
	case Ready, Closing:
		switch lane {
		case Tail:
			return l.nextTail(now)
		case Syncs:
			return l.nextSync(now)
		case Hot:
			return l.nextHot(now)
		}
		if lane == Warm && l.cfg.Warm {
			return l.nextWarm(now)
		}
		if !l.cfg.Cold || lane == Warm {
			return nil
		}
		if lane == Uploads {
			return l.nextUpload(now)
		}
		return l.nextCatalogue(now)
	}
	return nil
}

// checkExclusion asserts that two lanes never write one file at a time (Prepare apart) and that at
// most one sync of one file or of the directory is outstanding.
func (l *Log) checkExclusion(e Effect) {
	switch e := e.(type) {
	case *Commit: // the most frequent by far
		check(!e.Sync || l.flight[Syncs] == nil, "one sync of a file at a time")
		return
	case *Seal, *Rollback:
		check(l.flight[Syncs] == nil, "no Sync beside Seal or Rollback")
		check(!l.preparing(), "no Prepare beside Seal or Rollback")
	case *Sync, *Prepare:
		c, commit := l.flight[Tail].(*Commit)
		check(commit || l.flight[Tail] == nil, "Sync and Prepare only beside Commit")
		check(!commit || !c.Sync || e.Lane() != Syncs, "one sync of a file at a time")
	}
	check(!syncsDir(e) || !l.dirBusy(), "one directory sync at a time")
}

// syncsDir reports whether an effect syncs the log directory.
func syncsDir(e Effect) bool {
	switch e := e.(type) {
	case *Create, *Replace, *Remove, *Quarantine, *SaveIndex:
		return true
	case *SaveSuper:
		return e.Fresh
	}
	return false
}

// dirBusy reports whether another lane holds the directory's sync.
func (l *Log) dirBusy() bool {
	for _, f := range l.flight {
		if f != nil && syncsDir(f) {
			return true
		}
	}
	return false
}

// Complete takes an effect's answer. e must be the pointer that Next gave in this life.
func (l *Log) Complete(now Now, e Effect, err error) {
	lane := e.Lane()
	check(l.flight[lane] == e, "completion of the effect in flight")
	l.flight[lane] = nil
	r := e.Result()
	check((err == nil) == (r.Failed == StepNone), "a failure names its step")
	l.observeSpace(now, e)
	if err != nil && r.Failed == StepSync {
		l.stats.SyncFailures++
	}
	switch l.phase {
	case Opening, Recovering:
		l.onBoot(now, e, err)
		return
	case Closed, Failed, Poisoned:
		if lane == Tail {
			l.resolveAll(ErrUnknown, ErrPoisoned) // the payloads are free again only now
		}
		return
	}
	switch e := e.(type) {
	case *Create:
		l.onCreate(now, e, err)
	case *Commit:
		l.onCommit(now, e, err)
	case *Rollback:
		l.onRollback(now, e, err)
	case *Seal:
		l.onSeal(now, e, err)
	case *Sync:
		l.onSync(now, e, err)
	case *Upload:
		l.onUpload(now, e, err)
	case *LoadManifest, *SwapManifest, *SavePage, *Delete, *ScanObject:
		l.onCatalogue(now, e, err)
	case *FenceWarm, *ReadWarm, *Mirror, *TrimWarm:
		l.onWarm(now, e, err)
	default:
		l.onHot(now, e, err)
	}
}

// Deadline returns the Mono time at which Tick is due, and whether there is one.
func (l *Log) Deadline() (Time, bool) {
	d := deadline{after: l.ticked}
	switch l.phase {
	case Opening, Recovering:
		if l.boot.retryAt > 0 {
			d.add(l.boot.retryAt)
		}
	case Ready, Closing:
		l.tailDeadline(&d)
		l.syncDeadline(&d)
		l.hotDeadline(&d)
		if l.cfg.Cold {
			l.coldDeadline(&d)
		}
		if l.cfg.Warm {
			l.warmDeadline(&d)
		}
	}
	return d.at, d.set
}

// deadline gathers the earliest time that lies after the last Tick: what was due then has had its
// chance, and waits for a completion.
type deadline struct {
	after, at Time
	set       bool
}

func (d *deadline) add(t Time) {
	if t > d.after && (!d.set || t < d.at) {
		d.at, d.set = t, true
	}
}

// Tick lets timers act. The driver calls it when Deadline has passed; calling it early is harmless.
// Afterwards it asks every lane for its next effect.
func (l *Log) Tick(now Now) {
	l.ticked = now.Mono
	if l.phase == Closing && l.cfg.Warm { // a close waits for the warm tier no longer than an append does
		l.raiseCommitted(now)
	}
	if l.phase != Ready {
		return
	}
	l.tickRoll(now)
	l.tickRetention(now)
	l.raiseCommitted(now)
}

// Roll asks for the active segment to be sealed; an empty one is left alone.
func (l *Log) Roll(_ Now) error {
	if err := l.refuse(); err != nil {
		return err
	}
	if l.tail.active.open && l.tail.active.pos > l.tail.active.dataPos {
		l.mark(MarkRollExplicit)
		l.tail.rollWanted = true
	}
	return nil
}

// Close begins a clean close: what is pending is committed, the active segment sealed, the
// superblock saved. The phase becomes Closed when it is done; a log that cannot be written any
// more, or is not open yet, closes at once. Effects in flight still have to be completed.
func (l *Log) Close(_ Now) {
	switch l.phase {
	case Ready:
		l.phase = Closing
	case Closing, Closed, Failed:
	case Poisoned:
		l.phase = Closed
	default:
		l.mark(MarkCloseEarly)
		l.phase, l.err = Closed, ErrClosed
	}
}

// refuse returns why the log takes no requests, nil if it does.
func (l *Log) refuse() error {
	switch l.phase {
	case Ready:
		return nil
	case Opening, Planned:
		return ErrNotOpen
	case Recovering:
		if l.waiting != nil {
			return ErrTierDown
		}
		return ErrNoSpace
	case Poisoned:
		return ErrPoisoned
	case Failed:
		return l.err
	}
	return ErrClosed
}

// poison ends all writing: no Tail effect is ever issued again, what a Commit may have written is
// ErrUnknown, and what never reached one is definitely out. Reads below Committed go on. With a
// Commit in flight the outcomes wait for its completion, because it still reads the payloads.
func (l *Log) poison(err error) {
	if l.phase == Poisoned || l.phase == Closed {
		return
	}
	closing := l.phase == Closing
	l.phase, l.err = Poisoned, err
	if l.flight[Tail] == nil {
		l.resolveAll(ErrUnknown, ErrPoisoned)
	}
	if closing {
		l.mark(MarkCloseUnclean)
		l.phase = Closed
	}
}

// Plan returns what recovery found and decided, valid once every file has been looked at. It is
// overwritten by Reopen.
func (l *Log) Plan() *Plan { return &l.boot.plan }

// Found returns what was found of the superblock.
func (l *Log) Found() *FoundSuper { return &l.boot.found }
