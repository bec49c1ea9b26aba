package varve

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"varve/core"
	"varve/core/segment"
)

// cohort is the batches that share one commit and one outcome. Until the outcome everything is
// guarded by the log's mutex; then err may be read by whoever saw resolved set or one of the
// channels closed, and the rest belongs to whoever resolved it.
type cohort struct {
	id       uint64
	batches  int32 // that are in it
	resolved bool
	err      error
	seats    []chan struct{}  // closed with the outcome: one for so many waiters, the first for Pendings, too
	one      [1]chan struct{} // where seats starts out: mostly one is enough
	seated   int              // waiters
	buffers  *buffer          // recycled with the outcome
	bytes    int64            // of payload, given back to the budget with the outcome
	next     *cohort          // in the list of those to wake
}

// portion is how many waiters share a channel, and so are woken at once.
const portion = 16

// seat returns a channel for one more waiter, closed with the outcome. The mutex is held.
func (c *cohort) seat() chan struct{} {
	if c.resolved {
		return closedChannel
	}
	if c.seats == nil {
		c.seats = c.one[:0]
	}
	if c.seated == portion*len(c.seats) {
		c.seats = append(c.seats, make(chan struct{}))
	}
	c.seated++
	return c.seats[len(c.seats)-1]
}

// channel returns the channel of whoever may ask again and again. The mutex is held.
func (c *cohort) channel() chan struct{} {
	if c.resolved || len(c.seats) == 0 {
		return c.seat()
	}
	return c.seats[0]
}

// cohorts are those without outcome, in the order of their ids.
type cohorts struct {
	list []*cohort
	head int
	kept woken // resolved, not woken yet

	budget *Budget // nil: none
}

func (q *cohorts) len() int { return len(q.list) - q.head }

// join returns the cohort of a ticket, nil if it was acked already.
func (q *cohorts) join(id uint64) *cohort {
	if id == 0 {
		return nil
	}
	if n := len(q.list); q.len() == 0 || q.list[n-1].id < id {
		q.list = append(q.list, &cohort{id: id})
		return q.list[n]
	}
	for i := len(q.list) - 1; i >= q.head; i-- {
		if q.list[i].id == id {
			return q.list[i]
		}
	}
	panic("varve: ticket of a cohort that is gone")
}

// woken is a list of cohorts with outcomes.
type woken struct {
	first, last *cohort
	batches     int32 // in all of them
}

func (w *woken) add(c *cohort) {
	w.batches += c.batches
	if w.first == nil {
		w.first = c
	} else {
		w.last.next = c
	}
	w.last = c
}

// many reports whether more wait than are woken at once.
func (w woken) many() bool {
	return w.first != nil && (w.first != w.last || len(w.first.seats) > 1)
}

// wake wakes who waits for these cohorts and recycles their memory. The mutex is not held. With
// yield it offers the processor between portions of waiters: whichever processor is free first
// wakes the next portion and runs it, so that all of them share the work. Woken at once, all
// waiters would queue up behind one.
func (w woken) wake(yield bool) {
	first := true
	for c := w.first; c != nil; {
		next := c.next
		c.next = nil
		for b := c.buffers; b != nil; {
			after := b.next
			b.release()
			b = after
		}
		c.buffers = nil
		for _, s := range c.seats {
			if yield && !first {
				runtime.Gosched()
			}
			close(s)
			first = false
		}
		c.seats = nil
		c = next
	}
}

// rejoin keeps resolved cohorts for the next resolve to return.
func (q *cohorts) rejoin(w woken) {
	if w.first != nil {
		q.kept = w
	}
}

// resolve takes the core's outcomes and returns the cohorts to wake.
func (q *cohorts) resolve(l *core.Log) woken {
	w := q.kept
	q.kept = woken{}
	for o, ok := l.NextOutcome(); ok; o, ok = l.NextOutcome() {
		c := q.list[q.head]
		if c.id != o.Cohort {
			panic("varve: outcomes out of order")
		}
		q.list[q.head] = nil
		q.head++
		c.resolved, c.err = true, o.Err
		q.budget.give(c.bytes)
		w.add(c)
	}
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if q.head > 64 && 2*q.head > len(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return w
}

// Append appends records as one indivisible batch and returns when the policy acks them. Errors
// are definite unless they are ErrUnknown. When too much is pending, Append waits. If the context
// ends first, the batch may be in flight: the error then is ErrUnknown and the context's. A context
// that can be cancelled costs a hand-over to another goroutine for each commit.
func (l *Log) Append(ctx context.Context, recs ...Record) (Span, error) {
	if err := ctx.Err(); err != nil {
		return Span{}, err
	}
	buf, now := buffers.Get().(*buffer), l.now()
	b := buf.encode(recs, now.Wall)
	for {
		span, overload, err := l.appendOnce(ctx, now, &b, buf)
		if overload == nil {
			return span, err
		}
		select {
		case <-overload:
		case <-ctx.Done():
			buf.release()
			return Span{}, ctx.Err()
		}
	}
}

// appendOnce appends and waits for the outcome. When too much is pending it returns a channel that
// is closed when less is.
//
// Accepting a batch moves nothing but the end: whatever else the core has to do it can do when the
// batch's commit completes, so there is nothing to settle.
func (l *Log) appendOnce(ctx context.Context, now core.Now, b *core.Batch, buf *buffer) (span Span, overload <-chan struct{}, err error) {
	l.mu.Lock()
	c, t, err := l.admit(now, b, buf)
	if err != nil {
		if errors.Is(err, ErrOverloaded) && l.cohorts.len() > 0 {
			overload = l.cohorts.list[l.cohorts.head].channel()
			l.mu.Unlock()
			return Span{}, overload, nil
		}
		l.mu.Unlock()
		buf.release()
		return Span{}, nil, err
	}
	span = Span{First: t.First, End: t.End}
	if c == nil {
		l.mu.Unlock()
		return span, nil, nil
	}
	now = l.notBack(now)
	if tail := &l.lanes[core.Tail]; !tail.busy && ctx.Done() == nil && !l.core.HoldsCut(now) {
		tail.busy = true
		if l.expected.Load() > l.gathering.Load() {
			l.mu.Unlock()
			l.gather()
			now = l.enter()
		}
		if e := l.begin(l.notBack(now)); e != nil && l.lead(e, c) {
			return l.outcome(span, c)
		}
		l.mu.Lock()
	}
	done := c.seat()
	l.claim(now)
	l.mu.Unlock()
	if ctx.Done() == nil {
		<-done
		return l.outcome(span, c)
	}
	if !settled(ctx, done) {
		return span, nil, cancelled(span, ctx.Err())
	}
	return l.outcome(span, c)
}

// settled waits for an outcome. An outcome that is known counts more than a context that has ended.
func settled(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (l *Log) outcome(span Span, c *cohort) (Span, <-chan struct{}, error) {
	if c.err != nil {
		return Span{}, nil, c.err
	}
	return span, nil, nil
}

// admit hands a batch to the core and joins its cohort. The mutex is held; now was read before.
func (l *Log) admit(now core.Now, b *core.Batch, buf *buffer) (*cohort, core.Ticket, error) {
	if l.kafka && b.Kind != KindKafka {
		return nil, core.Ticket{}, &KindError{Holds: KindKafka, Got: b.Kind}
	}
	bytes := int64(len(b.Payload))
	if !l.cohorts.budget.take(bytes) {
		return nil, core.Ticket{}, ErrOverloaded
	}
	t, err := l.core.Append(l.notBack(now), b)
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%w: it has %d payload bytes", err, len(b.Payload))
	}
	if err != nil {
		l.cohorts.budget.give(bytes)
		return nil, t, err
	}
	l.kafka = b.Kind == KindKafka
	c := l.cohorts.join(t.Cohort)
	if c == nil || t.Duplicate {
		l.cohorts.budget.give(bytes)
	}
	switch {
	case c != nil && !t.Duplicate:
		c.bytes += bytes
		l.gathering.Add(1)
		c.batches++
		if buf != nil {
			buf.next, c.buffers = c.buffers, buf
		}
	case buf != nil: // acked, or another batch's payload is the one that counts
		buf.release()
	}
	return c, t, nil
}

// claim hands the Tail lane to its goroutine if nobody has it, and there may be something to do. The mutex is held.
func (l *Log) claim(now core.Now) {
	if tail := &l.lanes[core.Tail]; !tail.busy && !l.stopped && !l.core.HoldsCut(l.notBack(now)) {
		tail.busy = true
		tail.work <- nil
	}
}

// Pending is an append whose outcome is still to come. The zero value is of no use.
type Pending struct {
	Span      Span // the offsets that the batch has if it is acked
	Duplicate bool // the producer has sent it before: they are those of the first

	log    *Log
	cohort *cohort // nil: acked already
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done returns a channel that is closed when the outcome is known.
func (p Pending) Done() <-chan struct{} {
	if p.cohort == nil {
		return closedChannel
	}
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return p.cohort.channel()
}

// Wait waits for the outcome. If the context ends first, the outcome is still to come: the error is
// ErrUnknown and the context's, and Wait may be called again.
func (p Pending) Wait(ctx context.Context) (Span, error) {
	if !settled(ctx, p.Done()) {
		return p.Span, cancelled(p.Span, ctx.Err())
	}
	if p.cohort != nil && p.cohort.err != nil {
		return Span{}, p.cohort.err
	}
	return p.Span, nil
}

// AppendAsync appends records as one indivisible batch and does not wait: ErrOverloaded says that
// too much is pending. Pendings resolve in the order of their appends.
func (l *Log) AppendAsync(recs ...Record) (Pending, error) {
	buf, now := buffers.Get().(*buffer), l.now()
	b := buf.encode(recs, now.Wall)
	p, err := l.appendAsync(now, &b, buf)
	if err != nil {
		buf.release()
	}
	return p, err
}

// AppendBatch appends an encoded batch, like AppendAsync. The payload must not change until the
// outcome is known. One of KindRecords that does not hold exactly the records it says is refused
// with a *segment.RecordsError: nobody could read it.
func (l *Log) AppendBatch(b Batch) (Pending, error) {
	if b.Kind == KindRecords {
		if err := checkRecords(b.Payload, b.Records); err != nil {
			return Pending{}, fmt.Errorf("varve: batch refused: %w", err)
		}
	}
	cb := core.Batch{
		Payload: b.Payload, PayloadCRC: segment.PayloadCRC(b.Payload), Kind: b.Kind, Records: b.Records,
		Producer: core.NoProducer,
	}
	if b.Producer != nil {
		cb.Producer = *b.Producer
	}
	if !b.MaxTime.IsZero() {
		cb.MaxTime = nanos(b.MaxTime)
	}
	return l.appendAsync(l.now(), &cb, nil)
}

// checkRecords walks a payload of records.
func checkRecords(payload []byte, records uint32) error {
	var it segment.RecordIter
	var r segment.Record
	it.Reset(payload, records)
	for it.Next(&r) {
	}
	return it.Err()
}

func (l *Log) appendAsync(now core.Now, b *core.Batch, buf *buffer) (Pending, error) {
	l.mu.Lock()
	c, t, err := l.admit(now, b, buf)
	if c != nil {
		l.claim(now)
	}
	l.mu.Unlock()
	if err != nil {
		return Pending{}, err
	}
	return Pending{Span: Span{First: t.First, End: t.End}, Duplicate: t.Duplicate, log: l, cohort: c}, nil
}
