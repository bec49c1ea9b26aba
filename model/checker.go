package model

type opState uint8

// Fates of an append. An append that has no outcome when its life ends is unknown; the next
// finished open decides between in and out.
const (
	opCalled   opState = iota
	opAccepted         // has a ticket
	opAcked
	opFailed  // for sure not in the log
	opUnknown // in or out
	opIn      // was unknown; the records are there
	opOut     // was unknown; they are not
	opLost    // was there; a crash took it, as the policy allows
)

type op struct {
	call       Stamp
	returned   Stamp // of the outcome, Never without one
	ackTime    Time
	first, end Offset
	floor      Offset // end of what was acked when it was called
	cohort     uint64
	origin     OpID // the attempt that made the values
	holder     OpID // of an origin: the attempt whose records are in the reference log, 0 if none
	target     OpID // of a duplicate: the attempt that it repeats
	records    int32
	client     int32
	life       int32 // index of the life that accepted it, or was there when it was called
	epoch      Epoch
	state      opState
	inLog      bool // its records are in the reference log
	duplicate  bool
	producer   int64 // 0: not idempotent
	room       int32 // for producers; see Append
}

type life struct {
	epoch      Epoch
	policy     Policy
	interval   Time
	poisoned   bool   // a sync failed
	firstAcked Offset // least offset acked in this life; offsetNone without
}

const offsetNone Offset = 1<<63 - 1

type ownership struct {
	epoch Epoch
	first Offset
}

type damage struct {
	first, end Offset
	excused    bool
}

type reader struct {
	pos    Position
	begun  bool
	follow bool
}

// Checker judges one run at a time. The zero value is not ready: call Reset first.
type Checker struct {
	// Record keeps reads and looks at the tail too, for History. Set it before Reset.
	Record bool

	off    uint32 // checks switched off, by bit
	failed bool
	bad    Violation
	now    Time
	stamp  Stamp
	who    int32 // reader of the event at hand, -1 if none

	ops     []op   // by OpID; [0] is not used
	settled int    // ops below it have a fate
	log     []OpID // the reference log: the attempt that holds each offset
	lives   []life // the last one is current
	lineage []ownership
	damages []damage
	readers []reader
	linear  Linear
	history History

	// Watermarks of the reference log; each is at most len(log).
	acked     Offset // end of what was acked
	seen      Offset // end of what readers have seen
	committed Offset // greatest Committed seen in this life
	proven    Offset // end of what the device holds
	recovered Offset // end at the last open
	waits     bool   // Committed may be below that until another tier has it

	crashed bool // since the last open
	lossy   bool // a crash since then kept only the device
	lost    bool // the disk was lost since then; other tiers hold [0, kept)
	kept    Offset
	crashAt Stamp // first crash since the last open

	start      Offset
	startStamp Stamp  // of the last move
	trimTo     Offset // greatest trim asked for
	retainTo   Offset // greatest Start that retention ever allowed
	evictTo    Offset // greatest HotStart that offloads and the limits of the disk allowed in this life

	auditNext Offset
	auditing  bool

	excusedLosses int64
}

// Reset forgets the run, keeping memory and which checks are off.
func (c *Checker) Reset() {
	*c = Checker{
		Record: c.Record, off: c.off, who: -1,
		ops: append(c.ops[:0], op{}), settled: 1, log: c.log[:0], lives: c.lives[:0],
		lineage: c.lineage[:0], damages: c.damages[:0], readers: c.readers[:0],
		linear: c.linear, history: c.history,
	}
	c.linear.Reset()
	c.history.Reset()
}

// Disable switches a check off, until Enable.
func (c *Checker) Disable(k Check) { c.off |= 1 << k }

// Enable switches a check on again.
func (c *Checker) Enable(k Check) { c.off &^= 1 << k }

// Violation returns the first violation of the run, nil if there is none. It is valid until Reset.
func (c *Checker) Violation() *Violation {
	if !c.failed {
		return nil
	}
	return &c.bad
}

// Stamp takes a place in the order of events: the begin of a call that takes time.
func (c *Checker) Stamp() Stamp {
	c.stamp++
	return c.stamp
}

// End returns the end of the reference log.
func (c *Checker) End() Offset { return Offset(len(c.log)) }

// AckedEnd returns the end of what was acked and is still owed.
func (c *Checker) AckedEnd() Offset { return c.acked }

// ProvenEnd returns the end of what the device holds.
func (c *Checker) ProvenEnd() Offset { return c.proven }

// Start returns the first offset of the reference log.
func (c *Checker) Start() Offset { return c.start }

// ExcusedLosses counts reopens that came up short of what was owed because of excused damage.
func (c *Checker) ExcusedLosses() int64 { return c.excusedLosses }

// At returns the record that must be at an offset; 0 where there is none.
func (c *Checker) At(o Offset) (v Value, e Epoch) {
	if o < 0 || o >= c.End() {
		return 0, 0
	}
	p := &c.ops[c.log[o]]
	return MakeValue(p.origin, int(o-p.first)), p.epoch
}

// Ticket returns the span that an append was promised; ok is false if it was not accepted.
func (c *Checker) Ticket(id OpID) (first, end Offset, ok bool) {
	p := c.op(id)
	return p.first, p.end, p.end > p.first
}

// Holds reports whether the records of an append are in the log.
func (c *Checker) Holds(id OpID) bool {
	p := c.op(id)
	if p.duplicate {
		p = &c.ops[p.target]
	}
	return p.inLog && p.end <= c.End()
}

// event opens an event; false means that the run is over.
func (c *Checker) event(now Time) bool {
	c.stamp++
	c.now, c.who = now, -1
	return !c.failed
}

// fail records the first violation, unless the check is off.
func (c *Checker) fail(k Check, why string, id OpID, o Offset, want, found int64) {
	if c.failed || c.off&(1<<k) != 0 {
		return
	}
	c.failed = true
	c.bad = Violation{
		Check: k, Why: why, Time: c.now, Stamp: c.stamp, Op: id, Reader: c.who,
		Offset: o, Want: want, Found: found,
	}
}

// op returns an append; an id that was never given stands for an empty one.
func (c *Checker) op(id OpID) *op {
	if id < 0 || int(id) >= len(c.ops) {
		id = 0
	}
	return &c.ops[id]
}

// current returns the index of the current life, -1 before the first open.
func (c *Checker) current() int32 { return int32(len(c.lives)) - 1 }

func (c *Checker) policy() Policy {
	if len(c.lives) == 0 {
		return OnCommit
	}
	return c.lives[len(c.lives)-1].policy
}

// cut takes the records from end on out of the reference log. Their fate is the caller's to set.
func (c *Checker) cut(end Offset) {
	for o := end; o < c.End(); {
		p := &c.ops[c.log[o]]
		p.inLog = false
		if origin := &c.ops[p.origin]; origin.holder == c.log[o] {
			origin.holder = c.olderHolder(p.origin, c.log[o])
		}
		o = p.end
	}
	c.log = c.log[:end]
	c.acked = min(c.acked, end)
	c.seen = min(c.seen, end)
	c.committed = min(c.committed, end)
	c.proven = min(c.proven, end)
	c.recovered = min(c.recovered, end)
}

// olderHolder returns another attempt at a batch whose records are in the log, the newest one below
// an id, 0 if there is none: of a producer that was forgotten in between.
func (c *Checker) olderHolder(origin, below OpID) OpID {
	for id := below - 1; id >= origin; id-- {
		if p := &c.ops[id]; p.origin == origin && p.inLog {
			return id
		}
	}
	return 0
}

// diverged reports whether the record before p is another one now: some newer epoch begins below
// p, or p's epoch was never known.
func (c *Checker) diverged(p Position) bool {
	if p.Epoch == 0 {
		return false
	}
	for i := range c.lineage {
		if c.lineage[i].epoch > p.Epoch && c.lineage[i].first < p.Offset {
			return true
		}
	}
	return len(c.lives) == 0 || p.Epoch > c.lives[len(c.lives)-1].epoch
}

// damagedIn reports damage that overlaps [first, end).
func (c *Checker) damagedIn(first, end Offset) bool {
	for i := range c.damages {
		if d := &c.damages[i]; d.first < end && first < d.end {
			return true
		}
	}
	return false
}
