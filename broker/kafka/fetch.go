package kafka

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve"
	"varve/broker"
	"varve/broker/kafka/verdict"
	"varve/core"
)

// fetched is an answer to Fetch as it grows. Batches lie in pieces of memory of their own and go out
// from there.
type fetched struct {
	s       *Server
	req     *kmsg.FetchRequest // the connection's, until the answer is sealed
	version int16
	code    code
	parts   []fetchedPart // in the order of the request
	pieces  [][]byte      // of batches, in order
	chunks  []*chunk
	bytes   int64
	small   int64 // taken off that half of the budget, up to shareBytes
	large   int64 // taken off the other
	until   time.Time
	full    bool // no more bytes, whatever there is
	told    bool // a part has an error: the answer goes out at once

	sealed net.Buffers // the whole answer
}

type fetchedPart struct {
	topic string
	p     *broker.Partition
	log   *varve.Log
	code  code
	next  int64 // offset that is read next
	bytes int64
	limit int64
	rest  int64 // of the limit, where a batch was left behind that is longer
	end   int64 // Committed
	start int64

	divergedEpoch int32 // -1: not diverged
	divergedEnd   int64
	pieces        []pieceRange
}

// pieceRange is which pieces belong to a part: a part grows in several rounds, between others.
type pieceRange struct{ from, to int }

// fetch reads what a request asks for, and waits for it as long as the request wants to.
func (c *conn) fetch(r *request) error {
	if len(r.body) > bodyBytesMax {
		return &malformedError{what: "Fetch: too long", size: len(r.frame.body)}
	}
	req := &c.asked
	req.SetVersion(r.version)
	if !r.api.measure(r.version, r.body) || req.UnsafeReadFrom(r.body) != nil {
		*req = kmsg.FetchRequest{}
		return &malformedError{what: "body of Fetch", size: len(r.frame.body)}
	}
	f := &fetched{s: c.s, req: req, version: r.version}
	if req.SessionID != 0 { // no session was ever given out
		f.code, f.told, req.Topics = fetchSessionIDNotFound, true, nil
	}
	c.await(f)
	f.seal(r)
	c.readers.sweep()
	if len(r.body) > smallBodyBytes {
		c.asked = kmsg.FetchRequest{} // not to be held by an idle connection
	}
	r.frame.release() // topics' names were in it
	c.s.counts.sent.Add(f.bytes)
	return c.answers.send(answer{fetched: f})
}

// fetchWaitMax bounds what a client may ask a connection to be silent for.
const fetchWaitMax = 5 * time.Minute

// await fills an answer until it is worth sending, or the time is over.
func (c *conn) await(f *fetched) {
	wait := min(time.Duration(f.req.MaxWaitMillis)*time.Millisecond, fetchWaitMax)
	f.until = time.Now().Add(wait)
	c.begin(f)
	if c.fill(f); f.enough() || wait <= 0 {
		return
	}
	for i := range f.parts {
		f.parts[i].log.Watch(c.wake)
	}
	for {
		c.fill(f)
		left := time.Until(f.until)
		if f.enough() || left <= 0 || c.s.ctx.Err() != nil {
			break
		}
		c.sleep(left)
	}
	for i := range f.parts {
		f.parts[i].log.Unwatch(c.wake)
	}
}

// enough reports whether an answer need not wait for more. As with Kafka, what a part leaves behind for
// its limit counts up to the limit, and nobody waits for more than an answer may have: else a client that
// is behind would wait although there is all that it can get.
func (f *fetched) enough() bool {
	if f.told || f.full {
		return true
	}
	bytes := f.bytes
	for i := range f.parts {
		bytes += f.parts[i].rest
	}
	return bytes >= min(int64(f.req.MinBytes), f.limit())
}

// begin looks up what is asked for.
func (c *conn) begin(f *fetched) {
	clear(c.named)
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		for j := range t.Partitions {
			asked := &t.Partitions[j]
			part := fetchedPart{topic: t.Topic, next: asked.FetchOffset, limit: int64(asked.PartitionMaxBytes), end: -1, start: -1, divergedEpoch: -1}
			part.p, part.log, part.code = c.s.partition(t.Topic, asked.Partition)
			if _, again := c.named[part.p]; again && part.p != nil {
				part.code = invalidRequest // each would be watched: one request could make all appends slow
			} else {
				c.named[part.p] = struct{}{}
			}
			if part.code == none {
				part.code = verdict.Leader(asked.CurrentLeaderEpoch, part.p.Epoch())
			}
			if part.code == none {
				part.look(asked.LastFetchedEpoch)
			}
			f.told = f.told || part.code != none || part.divergedEpoch >= 0
			f.parts = append(f.parts, part)
		}
	}
}

// look compares where a client stands with the log.
func (p *fetchedPart) look(lastEpoch int32) {
	recovering := p.log.Phase() == core.Recovering // asked first: what is found afterwards is then all there is
	p.start, p.end = p.log.Start(), p.log.Committed()
	if p.code = verdict.Fetch(p.next, p.start, p.end, recovering); p.code != none || p.next > p.end {
		return
	}
	if epoch, end := p.log.EpochEnd(uint64(max(lastEpoch, 0))); verdict.Diverged(p.next, lastEpoch, core.Epoch(epoch), end) {
		p.divergedEpoch, p.divergedEnd = int32(epoch), end
	}
}

// fill reads what is committed by now, as far as there is room.
func (c *conn) fill(f *fetched) {
	for i := range f.parts {
		p := &f.parts[i]
		if p.code == none && p.divergedEpoch < 0 && !f.full {
			c.fillPart(f, p)
		}
	}
}

func (c *conn) fillPart(f *fetched, p *fetchedPart) {
	if p.p.Log() != p.log { // the topic is gone, or its log was opened again
		p.code, f.told = notLeaderOrFollower, true
		return
	}
	p.start, p.end = p.log.Start(), p.log.Committed()
	if p.next >= p.end || p.limit <= p.bytes && f.bytes > 0 {
		return
	}
	r := c.readers.of(p.p, p.log, p.next)
	from := len(f.pieces)
	for !f.full {
		b, err := r.peek()
		if err == nil && b != nil {
			c.s.standIn(p.p, b)
		}
		if err != nil {
			if p.bytes == 0 { // else the next request will meet it
				f.fail(p, err)
			}
			break
		}
		if b == nil || !f.fits(p, len(b.Payload)) {
			break
		}
		if !f.take(b) {
			f.full = true
			break
		}
		if r.have = false; r.lost {
			c.s.passed(p.p, b)
		}
		p.bytes += int64(len(b.Payload))
		p.next = b.Span.End
	}
	if to := len(f.pieces); to > from {
		p.pieces = append(p.pieces, pieceRange{from, to})
	}
}

// fail ends a part with an error that it was read with.
func (f *fetched) fail(p *fetchedPart, err error) {
	p.code, f.told = verdict.Read(err), true
	if p.code != kafkaStorageError && p.code != corruptMessage {
		return
	}
	if skipped, tell := f.s.lines.fetch.tell(time.Now()); tell {
		f.s.o.Logger.Warn("kafka: a fetch failed", "topic", p.topic, "partition", p.p.Number, "offset", p.next, "error", err, "not_told", skipped)
	}
}

// fits reports whether a batch may go into a part. The first one of an answer goes out however long it is:
// else nobody would ever get past it.
func (f *fetched) fits(p *fetchedPart, bytes int) bool {
	switch {
	case f.bytes == 0:
		return true
	case f.bytes+int64(bytes) > f.limit():
		f.full = true
	case p.bytes+int64(bytes) > p.limit:
		p.rest = max(p.limit-p.bytes, 0)
		f.full = bytes > longBatchBytes // each further part might read such a one in vain
	default:
		return true
	}
	return false
}

// limit is how many bytes the answer may have.
func (f *fetched) limit() int64 {
	if f.req.MaxBytes > 0 {
		return min(f.s.o.FetchBytesMax, int64(f.req.MaxBytes))
	}
	return f.s.o.FetchBytesMax
}

// seal writes what is not batches, and lays the pieces of the whole answer in order. Lengths are known
// beforehand, so nothing is moved. The request's memory is the connection's again after that.
func (f *fetched) seal(r *request) {
	e := encoder{b: make([]byte, 4, 64*(1+len(f.parts))), flexible: r.flexible}
	e.int32(r.correlation)
	e.tags()
	cuts := make([]int, 0, len(f.parts))
	e.int32(0) // throttled for
	if f.version >= 7 {
		e.int16(f.code)
		e.int32(0) // no session
	}
	e.array(len(f.req.Topics))
	next := 0
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		e.text(t.Topic)
		e.array(len(t.Partitions))
		for j := range t.Partitions {
			p := &f.parts[next]
			next++
			f.encodePart(&e, p, t.Partitions[j].Partition)
			cuts = append(cuts, len(e.b))
			e.tagsOf(p)
		}
		e.tags()
	}
	e.tags()
	binary.BigEndian.PutUint32(e.b, uint32(int64(len(e.b)-4)+f.bytes))
	list := make(net.Buffers, 0, len(f.pieces)+len(cuts)+1)
	from := 0
	for i, cut := range cuts {
		if len(f.parts[i].pieces) == 0 {
			continue
		}
		list = append(list, e.b[from:cut])
		from = cut
		for _, r := range f.parts[i].pieces {
			list = append(list, f.pieces[r.from:r.to]...)
		}
	}
	f.sealed = append(list, e.b[from:])
	f.req = nil
}

// encodePart writes a part up to where its batches are.
func (f *fetched) encodePart(e *encoder, p *fetchedPart, number int32) {
	e.int32(number)
	e.int16(p.code)
	e.int64(p.end)
	e.int64(p.end) // last stable offset: there are no transactions
	if f.version >= 5 {
		e.int64(p.start)
	}
	e.array(-1) // aborted transactions
	if f.version >= 11 {
		e.int32(-1) // preferred replica
	}
	e.array(int(p.bytes))
}

// tagsOf writes the tagged fields of a part: where its log has diverged from what the client has.
func (e *encoder) tagsOf(p *fetchedPart) {
	if !e.flexible || p.divergedEpoch < 0 {
		e.tags()
		return
	}
	e.b = append(e.b, 1, 0, 13) // one tag, number 0, of 13 bytes
	e.int32(p.divergedEpoch)
	e.int64(p.divergedEnd)
	e.tags()
}
