package core

import "varve/core/segment"

// pendingBatch is an accepted batch until its Commit has an outcome.
type pendingBatch struct {
	payload  []byte
	identity segment.Identity
	pos      int64  // given at the cut
	chain    uint32 // CRC of its placement header, given at the cut
}

// cohort is the unit of outcome: the batches of one Commit. Invariant: a cohort's bytes fit into
// an empty segment unless it is a single batch.
type cohort struct {
	id         uint64
	first, end Offset
	bytes      int64
	batches    int
	state      cohortState
}

type cohortState uint8

const (
	gathering cohortState = iota // in pending; the last one takes more batches
	flying                       // its Commit is in flight
	landed                       // written; acked once Committed covers it
)

// Append accepts a batch, or refuses it definitely. O(1), no I/O. The payload belongs to the log
// until the cohort's outcome.
func (l *Log) Append(now Now, b *Batch) (Ticket, error) {
	if err := l.refuse(); err != nil {
		l.stats.Refused++
		return Ticket{}, err
	}
	if err := l.validate(b); err != nil {
		l.stats.Refused++
		return Ticket{}, err
	}
	if b.Producer.ID >= 0 {
		first, end, verdict := l.producers.look(b.Producer, b.Records)
		switch verdict {
		case producerDuplicate:
			return l.duplicate(first, end)
		case producerGap:
			l.mark(MarkSequenceGap)
			l.stats.Refused++
			return Ticket{}, ErrSequence
		case producerOld:
			l.mark(MarkProducerFenced)
			l.stats.Refused++
			return Ticket{}, ErrFenced
		}
	}
	if l.cfg.Warm && l.warm.stalled && !l.cfg.WarmAckOnTimeout {
		l.stats.Refused++
		return Ticket{}, ErrTierDown
	}
	if l.hot.lowSpace {
		l.mark(MarkLowSpace)
		l.stats.Refused++
		return Ticket{}, ErrNoSpace
	}
	bytes := int64(len(b.Payload)) + segment.BatchHeaderBytes
	if l.tail.pendingBytes+bytes > l.cfg.PendingBytes+segment.BatchHeaderBytes {
		l.mark(MarkOverloaded)
		l.stats.Refused++
		return Ticket{}, ErrOverloaded
	}
	return l.accept(now, b, bytes), nil
}

func (l *Log) validate(b *Batch) error {
	switch {
	case b.Records == 0:
		return ErrEmpty
	case int64(len(b.Payload)) > l.cfg.MaxBatchBytes:
		return ErrTooLarge
	case b.Kind != segment.KindRecords && b.Kind != segment.KindKafka:
		return ErrBadKind
	case l.end > offsetMax-Offset(b.Records):
		return ErrOutOfRange
	}
	return nil
}

// offsetMax leaves room so that no sum of an offset and a count overflows.
const offsetMax = Offset(1<<62 - 1)

func (l *Log) accept(now Now, b *Batch, bytes int64) Ticket {
	t := &l.tail
	if now.Wall < t.lastWall {
		l.mark(MarkClockBack)
	}
	t.lastWall = now.Wall
	p := t.pending.push()
	p.payload = b.Payload
	i := &p.identity // field by field: a literal is built first and copied then
	i.PayloadBytes, i.PayloadCRC = uint32(len(b.Payload)), b.PayloadCRC
	i.Kind, i.Records, i.Base = b.Kind, b.Records, l.end
	i.Epoch, i.Nonce = l.epoch, l.cfg.Nonce
	i.AppendTime, i.MaxTime = now.Wall, b.MaxTime
	i.ProducerID, i.ProducerEpoch, i.Sequence = b.Producer.ID, b.Producer.Epoch, b.Producer.Sequence
	if b.Producer.ID < 0 {
		i.ProducerID, i.ProducerEpoch, i.Sequence = -1, -1, -1
	} else if l.producers.add(i) {
		l.mark(MarkProducerForgotten)
	}
	c := l.joinCohort(bytes)
	l.end += Offset(b.Records)
	c.end = l.end
	c.bytes += bytes
	c.batches++
	t.pendingBytes += bytes
	t.lastActivity = now.Mono
	return Ticket{First: i.Base, End: l.end, Epoch: l.epoch, Cohort: c.id}
}

// joinCohort returns the gathering cohort, or a new one if the batch would make it too large for
// one write into one segment.
func (l *Log) joinCohort(bytes int64) *cohort {
	t := &l.tail
	if n := t.cohorts.len(); n > 0 {
		c := t.cohorts.at(n - 1)
		if c.state == gathering && c.bytes+bytes <= l.cohortBytesMax() {
			return c
		}
	}
	t.lastCohort++
	c := t.cohorts.push()
	*c = cohort{id: t.lastCohort, first: l.end, end: l.end}
	return c
}

// cohortBytesMax bounds one gathered write, so that a roll wastes little and every cohort of more
// than one batch fits into an empty segment.
func (l *Log) cohortBytesMax() int64 {
	room := l.cfg.SegmentBytes - int64(l.cfg.SectorBytes)
	return min(room/4+segment.BatchHeaderBytes, commitBytesMax)
}

const commitBytesMax = 4 << 20

// duplicate answers a producer's repeated batch with the original span: acked at once if the
// original is, else with the original's cohort.
func (l *Log) duplicate(first, end Offset) (Ticket, error) {
	l.mark(MarkDuplicate)
	l.stats.Duplicates++
	t := Ticket{First: first, End: end, Epoch: l.epochAt(first), Duplicate: true}
	for i := range l.tail.cohorts.len() {
		if c := l.tail.cohorts.at(i); c.first <= first && first < c.end {
			l.mark(MarkDuplicateInFlight)
			t.Cohort = c.id
		}
	}
	if l.cfg.Warm && t.Cohort == 0 && end > l.committed { // it waits for the warm tier, and nobody tells when that is over
		l.stats.Refused++
		return Ticket{}, ErrTierDown
	}
	check(t.Cohort != 0 || end <= l.committed, "a remembered batch is acked or in a cohort")
	return t, nil
}

func (l *Log) epochAt(o Offset) Epoch {
	v := View{Lineage: l.lineage}
	return v.EpochAt(o)
}

// raiseCommitted moves Committed to what the ack policy allows and acks the cohorts below it.
func (l *Log) raiseCommitted(now Now) {
	to := l.written
	switch l.cfg.Sync {
	case segment.OnCommit:
		to = l.frontier
	case segment.Periodic:
		if l.sync.overdue(now, l.cfg.SyncInterval) {
			l.mark(MarkAckPaused)
			to = l.frontier
		}
	}
	if l.cfg.Warm {
		to = min(to, l.warmLimit(now))
		defer l.giveUpWarm()
	}
	if to <= l.committed {
		return
	}
	l.committed = to
	c := &l.tail.cohorts
	for c.len() > 0 && c.at(0).state == landed && c.at(0).end <= to {
		*l.outcomes.push() = Outcome{Cohort: c.pop().id}
	}
}

// failPending ends every cohort that has not landed with a definite error, gives their offsets
// back and restores the producers.
func (l *Log) failPending(err error) {
	t := &l.tail
	for t.pending.len() > 0 {
		p := t.pending.popBack()
		p.payload = nil
		if p.identity.ProducerID >= 0 {
			l.mark(MarkProducerUndone)
			l.producers.undo()
		}
	}
	for i := range t.cohorts.len() {
		if c := t.cohorts.at(i); c.state != landed {
			*l.outcomes.push() = Outcome{Cohort: c.id, Err: err}
		}
	}
	for t.cohorts.len() > 0 && t.cohorts.at(t.cohorts.len()-1).state != landed {
		t.cohorts.popBack()
	}
	t.pendingBytes = 0
	l.end = l.written
}

// resolveAll ends every cohort: those that a Commit may have written with one error, those that
// none has seen with the other.
func (l *Log) resolveAll(written, unseen error) {
	t := &l.tail
	for t.cohorts.len() > 0 {
		c := t.cohorts.pop()
		err := written
		if c.state == gathering {
			err = unseen
		}
		*l.outcomes.push() = Outcome{Cohort: c.id, Err: err}
	}
	for t.pending.len() > 0 {
		t.pending.pop().payload = nil
	}
	t.pendingBytes = 0
}
