package sim

import (
	"bytes"
	"encoding/binary"
	"errors"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/model"
)

// attempt is one call of Append, by the checker's number. A retry has the payload of its origin.
type attempt struct {
	at, n    int32 // payload in the arena
	records  uint32
	cohort   uint64
	origin   model.OpID
	producer int8 // number + 1; 0: none
	epoch    int16
	sequence int32
	resolved bool
	client   uint8
	zombie   bool // sent under an epoch that its producer has left
}

// sequence is what an idempotent producer knows of itself.
type sequence struct {
	epoch   int16
	next    int32
	acked   model.OpID    // newest acked batch
	unknown [8]model.OpID // batches whose outcome nobody told, oldest first
	count   int
	flying  model.OpID // newest batch on its way
	busy    bool       // a retry is on its way
}

// again starts the producer's sequence over, under a new epoch.
func (s *sequence) again() { *s = sequence{epoch: s.epoch + 1} }

// begin takes up one event of the schedule: all draws from now on come from its seed.
func (w *World) begin(e *Event) {
	w.rng.Seed(e.Sub)
	w.dice.Seed(sub(e.Sub, 6))
	w.disk.Seed(sub(e.Sub, 7))
	w.warm.rng.Seed(sub(e.Sub, 12))
	w.note(hashEvent, uint64(e.Kind), e.Sub)
	if e.Kind.IsOp() {
		w.res.Ops++
	}
	if w.Trace != nil {
		w.say(trackEvent(e), Asked, "> %s", bytes.TrimSpace(e.appendText(nil)))
	}
}

// schedule carries out one event of the schedule.
func (w *World) schedule(e *Event) {
	w.begin(e)
	p := &w.process
	switch e.Kind {
	case Append, Retry:
		w.ask |= askTail
	case Read, Poll, Query, FindTime, Arm, Hurt, Heal, Clock, WriteBack, Rot, Second, Slow, Idle:
	default:
		w.ask = askAll
	}
	switch e.Kind {
	case Append:
		w.appendEvent(e)
	case Retry:
		w.retry(int8(e.A), e.Client)
	case Read:
		w.read(e)
	case Poll:
		w.poll(e)
	case Query:
		w.query(e)
	case Trim:
		w.trim(e)
	case RollNow:
		if p.up {
			_ = w.log.Roll(w.clock.now())
		}
	case FindTime:
		w.findTime(e)
	case Offload:
		w.offload(e)
	case Restart:
		w.restart(e)
	default:
		w.happen(e)
	}
}

// happen carries out what is no call of a client.
func (w *World) happen(e *Event) {
	p := &w.process
	switch e.Kind {
	case Crash:
		w.crash(e)
	case Doom:
		switch {
		case !p.up || w.spared():
		case e.C > 0:
			p.saves = e.C
		default:
			p.doom = e.B
			w.fs.SetCallBudget(e.A, w.rng.Next()&1 == 0)
		}
	case Arm:
		if f := faultfs.Fault(e.A); w.strikes(f) {
			w.disk.Arm(faultfs.Op(e.B), f, int(e.C), "")
		}
	case Hurt:
		w.disk.SetRates(&w.h.Rates)
		w.hurtBucket(true)
		w.hurtServer(true)
		p.faults = true
	case Heal:
		w.disk.Heal()
		w.hurtBucket(false)
		w.hurtServer(false)
		p.faults = false
	case Clock:
		w.clock.jump(e.A, e.B)
		if e.A == ClockBack {
			w.backs = append(w.backs, back{end: w.check.End(), wall: w.clock.now().Wall})
		}
		w.res.Marks.add(MarkClock + Mark(e.A))
	case Pause:
		w.clock.mono += e.A
		w.shift += e.A
		w.res.Marks.add(MarkPause)
	case WriteBack:
		w.disk.WriteBack(&w.dice)
		if w.h.On(SwBack) && w.rng.Chance(6554) && w.process.faults {
			w.ghosts = w.disk.FailWriteBack(&w.dice) || w.ghosts
		}
	case Rot:
		w.rot(e)
	case Second:
		w.second()
	case Lose:
		w.lose(e)
	case Move:
		w.move(e)
	case Spoil:
		w.spoil(e)
	case Outage:
		w.outage(e)
	case Server:
		w.serverEvent(e)
	case Slow:
		w.slow[e.A] = max(w.slow[e.A], e.B)
		if e.B >= second {
			w.res.Marks.add(MarkHang)
		}
	}
}

// second is another process that tries to open the same directory.
func (w *World) second() {
	other := w.disk.FS(1)
	lock, err := other.Lock("lock")
	switch {
	case err == nil && w.process.up && w.lock != nil:
		w.fail("D21", "two processes hold the lock of one directory")
	case err == nil:
		_ = lock.Close()
	case w.process.up:
		w.res.Marks.add(MarkSecond)
	}
	other.Kill()
}

func (w *World) appendEvent(e *Event) {
	if e.Sub>>32%misuseEvery == 0 {
		w.misuse(e.Sub >> 48)
	}
	p := int8(e.D)
	if p > 0 {
		s := &w.sequence[p-1]
		if s.count > 0 && !s.busy {
			w.retry(p-1, e.Client)
			return
		}
		if s.busy {
			p = 0
		}
	}
	a := attempt{records: uint32(max(1, e.B)), producer: p}
	if p > 0 {
		a.epoch, a.sequence = w.sequence[p-1].epoch, w.sequence[p-1].next
	}
	w.appendNow(e.Client, a, max(8, e.A), e.C)
}

// appendNow calls the log with a new batch.
func (w *World) appendNow(client uint8, a attempt, bytes int64, content Content) {
	id := w.check.Append(w.clock.mono, w.modelAppend(client, &a, 0))
	a.origin, a.client = id, client
	a.at, a.n = int32(len(w.arena)), int32(bytes)
	w.fill(id, bytes, content)
	w.send(id, a)
}

// retry sends a producer's oldest batch of unknown outcome again, or its newest acked one.
func (w *World) retry(producer int8, client uint8) {
	s := &w.sequence[producer]
	origin := s.acked
	switch {
	case s.count > 0:
		origin = s.unknown[0]
	case s.flying != 0:
		origin = s.flying // impatient
	case w.rng.Chance(8192):
		s.again()
		return
	case s.epoch > 0 && w.rng.Chance(16384):
		w.appendNow(client, attempt{records: 1, producer: producer + 1, epoch: s.epoch - 1, sequence: 1<<20 + 8*int32(len(w.appends)), zombie: true}, 16, ContentPattern)
		return
	}
	if origin == 0 || s.busy {
		return
	}
	a := w.appends[origin]
	a.resolved, a.origin, a.client = false, origin, client
	id := w.check.Append(w.clock.mono, w.modelAppend(client, &a, origin))
	s.busy = true
	w.res.Marks.add(MarkRetry)
	w.send(id, a)
}

func (w *World) modelAppend(client uint8, a *attempt, origin model.OpID) model.Append {
	m := model.Append{Client: int32(client), Records: int32(a.records), Retry: origin}
	if a.producer > 0 {
		m.Producer = model.Producer{ID: int64(a.producer), Epoch: a.epoch, Sequence: a.sequence}
		m.Room = w.room
	}
	return m
}

// producersRoom returns how many producers the log remembers in any life; -1 where their batches may be
// trimmed or damaged.
func (w *World) producersRoom() int32 {
	least := producersMax
	for i := range w.h.Config {
		c := &w.h.Config[i]
		if retentionOf(c) != noRetention {
			return -1
		}
		least = min(least, c.ProducersMax)
	}
	if w.h.On(SwTrim) || w.h.On(SwLose) || w.h.On(SwMove) || w.h.On(SwSpoil) || w.h.Damaging() {
		return -1
	}
	return int32(least)
}

// fill makes the payload of an append: its value, then bytes that depend on it.
func (w *World) fill(id model.OpID, bytes int64, content Content) {
	from, whole := len(w.arena), int(bytes+7)&^7
	if cap(w.arena) < from+whole {
		w.arena = append(make([]byte, 0, 2*(from+whole)), w.arena...)
	}
	b := w.arena[from : from+whole]
	w.arena = w.arena[:from+int(bytes)]
	binary.LittleEndian.PutUint64(b, uint64(model.MakeValue(id, 0)))
	if content == ContentZeros {
		clear(b[8:])
		return
	}
	pattern := (uint64(id)<<16 + 8) * golden
	for rest := b[8:]; len(rest) >= 8; rest = rest[8:] {
		binary.LittleEndian.PutUint64(rest, pattern|0x0101010101010101)
		pattern += 8 * (golden & (1<<61 - 1)) // modulo 2^64
	}
	for at := 512; content == ContentMixed && at < len(b); at += 1024 {
		clear(b[at:min(at+512, len(b))])
	}
}

func (w *World) payload(a *attempt) []byte { return w.arena[a.at : a.at+a.n : a.at+a.n] }

// send calls the log and takes its first answer.
func (w *World) send(id model.OpID, a attempt) {
	w.res.Appends++
	for len(w.appends) <= int(id) {
		w.appends = append(w.appends, attempt{resolved: true})
	}
	w.appends[id] = a
	payload := w.payload(&a)
	now := w.clock.now()
	b := core.Batch{
		Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindRecords,
		Records: a.records, MaxTime: now.Wall, Producer: core.NoProducer,
	}
	if a.producer > 0 {
		b.Producer = core.Producer{ID: int64(a.producer), Epoch: a.epoch, Sequence: a.sequence}
	}
	if !w.process.up {
		w.refused(id, core.ErrClosed)
		return
	}
	t, err := w.log.Append(now, &b)
	if w.Trace != nil && a.producer > 0 {
		w.say(w.trackAppend(id), Note, "append %d of %d: producer %d, epoch %d, sequence %d: %v, %v", id, a.origin, a.producer, a.epoch, a.sequence, t, err)
	}
	if err != nil {
		w.refused(id, err)
		return
	}
	w.check.Accepted(w.clock.mono, id, model.Ticket{
		First: t.First, End: t.End, Epoch: t.Epoch, Cohort: t.Cohort, Duplicate: t.Duplicate,
	})
	if a.producer > 0 && id == a.origin && !a.zombie {
		s := &w.sequence[a.producer-1]
		s.next += int32(a.records)
		s.flying = id
	}
	p := &w.appends[id]
	p.cohort = t.Cohort
	if !t.Duplicate {
		w.appended(t, now)
	}
	if t.Cohort == 0 {
		w.resolve(id, nil)
		return
	}
	w.waiting = append(w.waiting, id)
}

// refused takes a definite failure at the call.
func (w *World) refused(id model.OpID, err error) {
	w.check.Failed(w.clock.mono, id)
	w.note(hashOutcome, uint64(id), 2)
	a := &w.appends[id]
	a.resolved = true
	if w.Trace != nil {
		w.say(w.trackAppend(id), Failed, "append %d refused: %v", id, err)
	}
	if a.producer == 0 || a.zombie {
		return
	}
	s := &w.sequence[a.producer-1]
	s.busy = false
	if errors.Is(err, core.ErrSequence) || errors.Is(err, core.ErrFenced) {
		s.again()
	}
}

// outcomes takes what the log tells of its cohorts.
func (w *World) outcomes() {
	for {
		o, ok := w.log.NextOutcome()
		if !ok {
			return
		}
		for i := w.wait; i < len(w.waiting); i++ {
			if id := w.waiting[i]; !w.appends[id].resolved && w.appends[id].cohort == o.Cohort {
				w.resolve(id, o.Err)
			}
		}
		for w.wait < len(w.waiting) && w.appends[w.waiting[w.wait]].resolved {
			w.wait++
		}
	}
}

// resolve takes the outcome of an append.
func (w *World) resolve(id model.OpID, err error) {
	a := &w.appends[id]
	a.resolved = true
	now := w.clock.mono
	switch {
	case err == nil:
		w.check.Acked(now, id)
		w.res.Acked++
		w.note(hashOutcome, uint64(id), 0)
	case errors.Is(err, core.ErrUnknown):
		w.check.Unknown(now, id)
		w.note(hashOutcome, uint64(id), 1)
	default:
		w.check.Failed(now, id)
		w.note(hashOutcome, uint64(id), 2)
	}
	if w.Trace != nil {
		w.say(w.trackAppend(id), outcomeKind(err), "append %d: %s", id, outcomeText(err))
	}
	if a.producer > 0 {
		w.learn(id, a, err)
	}
}

func outcomeText(err error) string {
	if err == nil {
		return "acked"
	}
	return err.Error()
}

// learn is what a producer does with an outcome.
func (w *World) learn(id model.OpID, a *attempt, err error) {
	s := &w.sequence[a.producer-1]
	retry := id != a.origin
	if retry {
		s.busy = false
	}
	if s.flying == id {
		s.flying = 0
	}
	if a.epoch != s.epoch || a.zombie {
		return
	}
	switch {
	case err == nil:
		s.acked = a.origin
		if s.count > 0 && s.unknown[0] == a.origin {
			copy(s.unknown[:], s.unknown[1:s.count])
			s.count--
		}
	case errors.Is(err, core.ErrUnknown):
		if retry {
			return // the original is unknown still
		}
		if s.count == len(s.unknown) {
			s.again()
			return
		}
		s.unknown[s.count] = id
		s.count++
	case !retry:
		s.next = min(s.next, a.sequence)
	}
}

// unresolved ends every append that the process still owed an answer: nobody will ever tell.
func (w *World) unresolved() {
	for i := w.wait; i < len(w.waiting); i++ {
		id := w.waiting[i]
		a := &w.appends[id]
		if a.resolved {
			continue
		}
		a.resolved = true
		w.note(hashOutcome, uint64(id), 3)
		if a.producer > 0 {
			w.learn(id, a, core.ErrUnknown)
		}
	}
	w.waiting, w.wait = w.waiting[:0], 0
}

func (w *World) query(e *Event) {
	if !w.serving() {
		return
	}
	call := w.check.Stamp()
	w.check.TailSeen(w.clock.mono, int32(e.Client), call, w.log.Committed())
}

// serving reports whether clients may read.
func (w *World) serving() bool {
	if !w.process.up || !w.process.opened {
		return false
	}
	switch w.log.Phase() {
	case core.Ready, core.Poisoned, core.Closing:
		return true
	}
	return false
}

func (w *World) trim(e *Event) {
	if !w.serving() || !w.h.On(SwTrim) { // from the switch checkers know that Start may move
		return
	}
	start, committed := w.log.Start(), w.log.Committed()
	before := start + (committed-start)*e.A/1000
	w.check.TrimCalled(w.clock.mono, before)
	if err := w.log.Trim(w.clock.now(), before); err == nil {
		w.process.trim = max(w.process.trim, before)
	}
}
