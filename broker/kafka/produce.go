package kafka

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"varve"
	"varve/broker"
	"varve/broker/kafka/batch"
	"varve/broker/kafka/verdict"
)

// produced is a produce request on its way: what it asked for, in order, and what became of it. Its
// batches lie in the frame until all of them have their outcome.
type produced struct {
	s        *Server
	version  int16
	acks     int16
	deadline time.Time
	frame    frame
	late     []varve.Pending // their outcomes did not come in time: the log may still read from the frame
	topics   []producedTopic
	parts    []producedPart
}

type producedTopic struct {
	name  []byte // in the frame
	count int    // of its parts, which come one after the other
}

type producedPart struct {
	number   int32
	code     code
	why      error
	waits    bool
	pending  varve.Pending
	producer varve.Producer
	log      *varve.Log // nil: it was never asked
	bytes    int64
	base     int64
	start    int64
	time     int64 // that the records got, -1: they keep their producer's
}

var producedPool = sync.Pool{New: func() any { return new(produced) }}

// produce appends the batches of a request.
func (c *conn) produce(r *request) error {
	p := producedPool.Get().(*produced)
	p.s, p.version = c.s, r.version
	d := decoder{b: r.body, flexible: r.flexible}
	transaction := d.string()
	p.acks = d.int16()
	timeout := time.Duration(d.int32()) * time.Millisecond
	p.deadline = time.Now().Add(min(max(timeout, produceWaitMin), produceWaitMax))
	if d.bad {
		return c.badProduce(p, r)
	}
	// Nothing is appended before all of it is known to be a request.
	if check := d; !check.produceEnds() {
		return c.badProduce(p, r)
	}
	for range d.array(1) {
		t := producedTopic{name: d.string()}
		t.count = d.array(1)
		topic, err := c.s.broker.Topic(string(t.name))
		for range t.count {
			p.parts = append(p.parts, producedPart{number: d.int32(), base: -1, start: -1, time: -1})
			records := d.bytes()
			d.tags()
			part := &p.parts[len(p.parts)-1]
			switch {
			case err != nil:
				part.fail(unknownTopicOrPartition, nil)
			case p.acks < -1 || p.acks > 1:
				part.fail(invalidRequiredAcks, nil)
			case transaction != nil:
				part.fail(transactionalIDNotAuthorized, errTransactions)
			default:
				c.produceTo(p, part, topic, records)
			}
		}
		d.tags()
		p.topics = append(p.topics, t)
	}
	p.frame = r.frame.take()
	counted := p.settled() || p.count()
	if err := c.answers.send(answer{correlation: r.correlation, flexible: r.flexible, produced: p}); err != nil || counted {
		return err
	}
	return c.answers.drain()
}

// count takes what a request keeps while it waits off the budget, beyond what is taken already. Where it is
// not there, the connection reads on only behind its answer: so one of each connection is not counted.
func (p *produced) count() bool {
	bytes := int64(len(p.parts)) * partBytes
	if p.frame.held == 0 {
		bytes += frameSmall
	}
	return p.frame.tryCount(&p.s.requests, bytes)
}

// A client's own timeout says how long it waits for an outcome, within reason.
const (
	produceWaitMin = time.Second
	produceWaitMax = 2 * time.Minute
)

// partsMax bounds the topics and partitions of one request, each of which takes about partBytes.
const (
	partsMax  = 8 << 10
	partBytes = 128
)

var errTransactions = errors.New("kafka: transactions are not supported")

func (c *conn) badProduce(p *produced, r *request) error {
	p.release()
	return &malformedError{what: "body of Produce", size: len(r.frame.body)}
}

// produceEnds passes over the topics of a produce request and reports whether it ends with them.
func (d *decoder) produceEnds() bool {
	parts := 0
	for n := d.array(1); n > 0 && !d.bad; n-- {
		d.string()
		m := d.array(1)
		if parts += m + 1; parts > partsMax {
			return false
		}
		for ; m > 0 && !d.bad; m-- {
			d.int32()
			d.bytes()
			d.tags()
		}
		d.tags()
	}
	d.tags()
	return !d.bad && len(d.b) == 0
}

func (p *producedPart) fail(why code, err error) { p.code, p.why = why, err }

// ends takes the outcome of an append.
func (p *producedPart) ends(first int64, err error) {
	p.code, p.base = verdict.Outcome(first, err)
	p.why = err
}

// produceTo appends one batch.
func (c *conn) produceTo(p *produced, part *producedPart, t *broker.Topic, records []byte) {
	to, err := t.Partition(part.number)
	if err != nil {
		part.fail(unknownTopicOrPartition, nil)
		return
	}
	h, err := c.checker.check(&c.s.codecs, records)
	if h.Attributes.Codec() == batch.Zstd && p.version < zstdVersion {
		part.fail(unsupportedCompression, nil)
		return
	}
	if err != nil {
		part.fail(verdict.Batch(err), err)
		return
	}
	b := varve.Batch{Payload: records, Kind: varve.KindKafka, Records: h.Records, MaxTime: time.UnixMilli(h.MaxTime)}
	part.producer = verdict.Producer(&h)
	b.Producer = &part.producer
	if part.log = to.Log(); part.log == nil {
		part.fail(kafkaStorageError, to.Err())
		return
	}
	if t.AppendTime() {
		part.stamp(&b, &h)
	}
	pending, err := part.log.AppendBatch(b)
	if errors.Is(err, varve.ErrOverloaded) || errors.Is(err, varve.ErrClosed) {
		pending, err = c.produceLater(p, part, to, b, &h)
	}
	if err != nil {
		part.time = -1
		part.ends(-1, err)
		return
	}
	part.pending, part.waits = pending, true
	part.bytes = int64(len(records))
}

// zstdVersion is the first version of Produce whose clients know zstd.
const zstdVersion = 7

// stamp gives the records of a batch the time of now, as Kafka does: in the header alone, which clients
// believe; so the checksum is made anew, and what is stored is what everybody gets.
func (p *producedPart) stamp(b *varve.Batch, h *batch.Header) {
	p.time = time.Now().UnixMilli()
	batch.SetMaxTime(b.Payload, h, p.time, true)
	b.MaxTime = time.UnixMilli(p.time)
}

// produceLater appends a batch to a log that has too much to do, or that is being opened anew. It
// keeps the connection's requests waiting, since they may not pass.
func (c *conn) produceLater(p *produced, part *producedPart, to *broker.Partition, b varve.Batch, h *batch.Header) (varve.Pending, error) {
	log := part.log
	log.Watch(c.wake)
	defer func() { log.Unwatch(c.wake) }()
	for {
		if h.Attributes.AppendTime() {
			part.stamp(&b, h)
		}
		pending, err := log.AppendBatch(b)
		if errors.Is(err, varve.ErrClosed) {
			if now := to.Log(); now != nil && now != log {
				log.Unwatch(c.wake)
				log, part.log = now, now
				log.Watch(c.wake)
				continue
			}
			return pending, err
		}
		wait := time.Until(p.deadline)
		if !errors.Is(err, varve.ErrOverloaded) || wait <= 0 || c.s.ctx.Err() != nil {
			return pending, err
		}
		c.sleep(min(wait, overloadPause))
	}
}

// overloadPause is how long a log is left alone at most that has too much to do.
const overloadPause = 100 * time.Millisecond

// settled reports whether every outcome is known.
func (p *produced) settled() bool {
	for i := range p.parts {
		if p.parts[i].waits {
			return false
		}
	}
	return true
}

// finish waits for the outcomes. It reports that no answer is wanted; an error then is a failure that
// the producer has to learn of nevertheless.
func (p *produced) finish(t *timer) (silent bool, err error) {
	for i := range p.parts {
		if part := &p.parts[i]; part.waits {
			p.outcome(part, t)
		}
		if part := &p.parts[i]; part.code != none {
			p.refused(i)
			err = errSilent
		} else if part.log != nil {
			part.start = part.log.Start()
			p.s.counts.produced.Add(part.bytes)
		}
	}
	if p.acks == 0 {
		return true, err
	}
	return false, nil
}

// refused counts a batch that was not appended, and tells in the log what is no fault of its producer.
func (p *produced) refused(i int) {
	part := &p.parts[i]
	p.s.counts.refused.Add(1)
	level := slog.LevelDebug
	var skipped int64
	switch part.code {
	case kafkaStorageError, notEnoughReplicas, notEnoughReplicasAfterAppend, requestTimedOut:
		var tell bool
		if skipped, tell = p.s.lines.refused.tell(time.Now()); tell {
			level = slog.LevelWarn
		}
	}
	if !p.s.o.Logger.Enabled(context.Background(), level) {
		return
	}
	topic := 0
	for before := i; before >= p.topics[topic].count; topic++ {
		before -= p.topics[topic].count
	}
	p.s.o.Logger.Log(context.Background(), level, "kafka: a batch was not appended", "topic", string(p.topics[topic].name),
		"partition", part.number, "code", part.code, "error", part.why, "not_told", skipped)
}

func (p *produced) outcome(part *producedPart, t *timer) {
	part.waits = false
	at := part.time
	part.time = -1
	done := part.pending.Done()
	select {
	case <-done:
	default:
		select {
		case <-done:
			t.stop()
		case <-t.after(time.Until(p.deadline)):
			p.late = append(p.late, part.pending)
			part.fail(requestTimedOut, nil) // clients take that for "may have been appended", too
			return
		}
	}
	span, err := part.pending.Wait(context.Background())
	if part.ends(span.First, err); err != nil {
		return
	}
	if part.time = at; at >= 0 && part.pending.Duplicate {
		part.time = timeOf(part.log, span.First)
	}
}

// timeOf returns the greatest time of the batch at an offset, -1 if it cannot be read any more.
func timeOf(log *varve.Log, offset int64) int64 {
	r := log.NewReader(varve.Position{Offset: offset}, varve.ReadOptions{Bytes: readAheadBytes})
	defer r.Close() //nolint:errcheck // opened for reading only
	b, ok, err := r.Poll()
	if err != nil || !ok {
		return -1
	}
	return b.MaxTime.UnixMilli()
}

// append encodes the answer.
func (p *produced) append(b []byte) []byte {
	e := encoder{b: b, flexible: p.version >= 9}
	e.array(len(p.topics))
	next := 0
	for _, t := range p.topics {
		e.string(t.name)
		e.array(t.count)
		for range t.count {
			part := &p.parts[next]
			next++
			e.int32(part.number)
			e.int16(part.code)
			e.int64(part.base)
			e.int64(part.time)
			if p.version >= 5 {
				e.int64(part.start)
			}
			if p.version >= 8 {
				e.array(0) // records that were refused alone: none ever
				e.nullableText(part.why)
			}
			e.tags()
		}
		e.tags()
	}
	e.int32(0) // throttled for
	e.tags()
	return e.b
}

// release gives back frame and memory; a frame that the log may still read from, with the last outcome.
func (p *produced) release() {
	if len(p.late) > 0 {
		go func(f frame, late []varve.Pending) {
			for i := range late {
				<-late[i].Done()
			}
			f.release()
		}(p.frame.take(), p.late)
		p.late = nil
	}
	p.frame.release()
	clear(p.parts)
	clear(p.topics)
	p.parts, p.topics = p.parts[:0], p.topics[:0]
	if cap(p.parts) <= partsKept {
		producedPool.Put(p)
	}
}

// partsKept is how many parts a produced may have room for that is kept.
const partsKept = 1024
