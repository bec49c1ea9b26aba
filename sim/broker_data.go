package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"varve/broker/kafka/batch"
	"varve/broker/kafka/verdict"
	"varve/core"
	"varve/core/segment"
	"varve/model/node"
	"varve/tiers/disk"
)

// nodeReader is a client's cursor of one fetch.
type nodeReader struct {
	cursor core.Cursor
	handle disk.Handle
	unit   int32 // -1: free
}

// valueAt is where the value of a record stands in it: behind length, attributes, two deltas, the length
// of no key, and its own length.
const valueAt = 6

// buildBatch makes a record batch of format 2 in the arena, as a client does. Each record's value begins
// with what the checker knows it by.
func (b *broker) buildBatch(id node.OpID, records int32, size int64, p node.Request) {
	w, r := b.w, &b.requests[id]
	from := len(w.arena)
	a := append(w.arena, make([]byte, batch.HeaderBytes)...)
	size = min(max(size, 8), 56) // so that lengths take one byte
	for i := range records {
		length := valueAt - 1 + size + 1
		a = append(a, byte(length<<1), 0, 0, byte(i<<1), 1, byte(size<<1))
		a = binary.LittleEndian.AppendUint64(a, uint64(node.MakeValue(id, i)))
		for range size - 8 {
			a = append(a, byte(id))
		}
		a = append(a, 0)
	}
	w.arena = a
	x := a[from:]
	be := binary.BigEndian
	be.PutUint32(x[8:], uint32(len(x)-12))
	be.PutUint32(x[12:], 1<<32-1)
	x[16] = 2
	be.PutUint32(x[23:], uint32(records-1))
	now := w.clock.now().Wall / millisecond
	be.PutUint64(x[27:], uint64(now))
	be.PutUint64(x[35:], uint64(now))
	be.PutUint64(x[43:], uint64(p.Producer))
	be.PutUint16(x[51:], uint16(p.Epoch))
	be.PutUint32(x[53:], uint32(p.Sequence))
	be.PutUint32(x[57:], uint32(records))
	be.PutUint32(x[17:], crc32.Checksum(x[21:], castagnoli))
	r.at, r.n, r.records = int32(from), int32(len(x)), records
}

func (b *broker) bytesOf(r *request) []byte { return b.w.arena[r.at : r.at+r.n : r.at+r.n] }

// produceEvent sends a batch, or what a producer has to do first: get an id, send a batch again that
// nobody knows of, or begin a new epoch. It may also send the batch behind one that nobody knows of.
func (b *broker) produceEvent(client uint8, e *Event) {
	w := b.w
	name, part, records := int8(e.A), int32(e.B&3), int32(1+e.C>>16&3)
	q := node.Request{Kind: node.Produce, Name: name, Partition: part, Records: records, Producer: -1, Epoch: -1, Sequence: -1}
	q.Made = w.clock.now().Wall / millisecond * millisecond
	number := int8(e.D)
	if number > 0 {
		p := &b.producers[number-1]
		ahead := int32(0)
		switch {
		case p.id < 0 && !p.asked:
			p.asked = true
			b.reserve(client, number)
			return
		case p.id < 0 || p.busy[name][part]:
			return
		case p.doubt[name][part] != 0 && w.rng.Chance(6000): // as clients do that lost count
			p.again()
			w.res.Marks.add(MarkProducerAgain)
		case p.doubt[name][part] != 0 && w.rng.Chance(20000): // as clients do that have several batches under way
			before := b.check.Asked(p.doubt[name][part])
			ahead = before.Sequence + before.Records - p.next[name][part]
			w.res.Marks.add(MarkProducerAhead)
		case p.doubt[name][part] != 0:
			b.again(client, number, name, part)
			return
		}
		q.Producer, q.Epoch, q.Sequence = p.id, p.epoch, p.next[name][part]+ahead
		p.busy[name][part] = true
	}
	id := b.call(client, Produce, q)
	b.requests[id].producer = number
	b.buildBatch(id, records, e.C&0xffff, q)
	b.send(id)
}

// again sends a batch again that nobody knows of.
func (b *broker) again(client uint8, number, name int8, part int32) {
	p := &b.producers[number-1]
	origin := p.doubt[name][part]
	q := b.check.Asked(origin)
	q.Retry = origin
	p.busy[name][part] = true
	id := b.call(client, Produce, q)
	r, first := &b.requests[id], &b.requests[origin]
	r.producer, r.origin = number, origin
	r.at, r.n, r.records = first.at, first.n, first.records
	b.w.res.Marks.add(MarkRetry)
	b.send(id)
}

func (b *broker) reserve(client uint8, number int8) {
	b.topicRequest(client, producerInit, node.Request{Kind: node.Reserve})
	b.requests[b.clients[client].busy].producer = number
}

// partition returns the log of a partition that a request is about. Without one the request is answered.
func (b *broker) partition(id node.OpID) (*unit, found) {
	r := &b.requests[id]
	f, ok := b.lookup(r.name)
	switch {
	case !ok:
		b.reply(id, node.Answer{Result: node.Failed})
	case f.topic == 0:
		b.reply(id, node.Answer{Result: node.Missing})
	case r.part >= f.partitions:
		b.reply(id, node.Answer{Result: node.Refused})
	default:
		if u := b.unitAt(placeOf(int(r.name), f.incarnation, r.part)); u != nil && u.serving() {
			r.topic, u.topic = f.topic, f.topic
			return u, f
		}
		b.reply(id, node.Answer{Result: node.Failed})
	}
	return nil, f
}

// send is the node's side of a produce: the batch is verified and appended as it is.
func (b *broker) send(id node.OpID) {
	w, r := b.w, &b.requests[id]
	w.res.Appends++
	u, _ := b.partition(id)
	if u == nil {
		return
	}
	payload := b.bytesOf(r)
	h, err := batch.Parse(payload)
	if err != nil {
		w.fail("N7", "a good batch was refused: "+err.Error())
		return
	}
	if id%spoiltEvery == 0 {
		b.spoilt(payload)
	}
	now := w.clock.now()
	x := core.Batch{
		Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindKafka,
		Records: h.Records, MaxTime: h.MaxTime * millisecond,
		Producer: verdict.Producer(&h),
	}
	t, err := u.log.Append(now, &x)
	u.ask = true
	if err != nil {
		b.appended(id, err)
		return
	}
	r.answer.Offset, r.cohort = t.First, t.Cohort
	if t.Duplicate {
		w.res.Marks.add(MarkDuplicateAnswered)
	}
	if t.Cohort == 0 {
		b.appended(id, nil)
		return
	}
	u.waiting = append(u.waiting, id)
}

// spoiltEvery is of how many batches one also comes with a bit flipped on its way.
const spoiltEvery = 8

// spoilt judges that a batch in which a bit was flipped is refused. What the broker itself fills in, base
// offset and epoch, is nothing to the checksum.
func (b *broker) spoilt(payload []byte) {
	w := b.w
	w.spoilt = append(w.spoilt[:0], payload...)
	at := 16 + w.rng.Below(int64(len(payload))-16)
	w.spoilt[at] ^= 1 << w.rng.Below(8)
	if _, err := batch.Parse(w.spoilt); err == nil {
		w.fail("N7", "a batch with a flipped bit was taken")
	}
}

// appended ends a produce. A client takes the code for what Kafka's documentation says: done, begin anew,
// perhaps done, or definitely not.
func (b *broker) appended(id node.OpID, err error) {
	r := &b.requests[id]
	switch code, base := verdict.Outcome(r.answer.Offset, err); code {
	case verdict.None:
		b.reply(id, node.Answer{Result: node.Done, Topic: r.topic, Offset: base})
	case verdict.OutOfOrderSequence, verdict.InvalidProducerEpoch:
		b.w.res.Marks.add(MarkProducerRefused)
		b.reply(id, node.Answer{Result: node.Failed, ID: refusedSequence})
	case verdict.NotEnoughReplicasAfterAppend, verdict.RequestTimedOut:
		b.check.End(id)
		b.unknown(id)
	default:
		b.reply(id, node.Answer{Result: node.Failed})
	}
}

// outcomes takes what a log tells of its cohorts.
func (b *broker) outcomes(u *unit) {
	for {
		o, ok := u.log.NextOutcome()
		if !ok {
			return
		}
		if u.slot == catalogueUnit {
			if u.entry == o.Cohort {
				b.entryOutcome(u, o.Err)
			}
			continue
		}
		kept := u.waiting[:0]
		for _, id := range u.waiting {
			if r := &b.requests[id]; r.cohort != o.Cohort {
				kept = append(kept, id)
				continue
			}
			b.appended(id, o.Err)
		}
		u.waiting = kept
	}
}

// listEnds asks where a partition ends.
func (b *broker) listEnds(client uint8, e *Event) {
	id := b.call(client, ListEnds, node.Request{Kind: node.Ends, Name: int8(e.A), Partition: int32(e.B)})
	if u, f := b.partition(id); u != nil {
		b.reply(id, node.Answer{
			Result: node.Done, Topic: f.topic, Offset: u.log.Committed(), Start: u.log.Start(), Epoch: int32(u.log.Epoch()),
		})
	}
}

// fetch reads a partition from somewhere on.
func (b *broker) fetch(client uint8, e *Event) {
	id := b.call(client, Fetch, node.Request{Kind: node.Fetch, Name: int8(e.A), Partition: int32(e.B)})
	u, _ := b.partition(id)
	if u == nil {
		return
	}
	r := &b.requests[id]
	r.place, r.bytes = u.place, int(e.D)
	start, committed := u.log.Start(), u.log.Committed()
	r.offset, r.last = start+(committed-start)*min(e.C, 1000)/1000, -1
	r.stood = -1
	if e.C > 1000 && !b.resume(id, u) {
		return
	}
	r.read = b.reader(u)
	r.read.cursor.Reset(core.Position{Offset: r.offset})
	b.plan(id, u)
}

// reader returns a free reader for a log.
func (b *broker) reader(u *unit) *nodeReader {
	for _, x := range b.readers {
		if x.unit < 0 {
			x.unit = u.slot
			return x
		}
	}
	x := &nodeReader{unit: u.slot}
	b.readers = append(b.readers, x)
	return x
}

func (b *broker) free(r *request) {
	if r.read != nil {
		_ = r.read.handle.Close()
		r.read.unit = -1
		r.read = nil
	}
}

// readersLose ends the fetches from a log that is closed.
func (b *broker) readersLose(u *unit) {
	for _, c := range b.clients {
		r := &b.requests[c.busy]
		if c.busy != 0 && r.read != nil && r.read.unit == u.slot {
			b.free(r)
			b.reply(c.busy, node.Answer{Result: node.Failed})
		}
	}
}

// plan asks the cursor of a fetch for its next bytes.
func (b *broker) plan(id node.OpID, u *unit) {
	w, r := b.w, &b.requests[id]
	if u.view.Version != u.log.ViewVersion() {
		u.log.FillView(&u.view)
	}
	f, err := r.read.cursor.Next(&u.view, u.log.Committed(), r.bytes)
	switch {
	case err != nil:
		b.readFailed(id, u, err)
	case f == nil:
		b.brought(id, u, r.offset)
	default:
		b.locate(u, f)
		r.fetch = f
		w.queue.push(entry{at: w.clock.mono + 1 + w.rng.Below(2*w.h.Write), kind: wakeFetch, arg: int32(id), life: w.process.life})
	}
}

// brought answers a fetch.
func (b *broker) brought(id node.OpID, u *unit, next core.Offset) {
	r := &b.requests[id]
	b.free(r)
	b.reply(id, node.Answer{
		Result: node.Done, Topic: r.topic, Offset: r.offset, Next: next,
		Start: u.log.Start(), High: u.log.Committed(), Epoch: int32(u.log.Epoch()), Stood: r.stood,
	})
}

func (b *broker) readFailed(id node.OpID, u *unit, err error) {
	w := b.w
	b.free(&b.requests[id])
	var corrupt *core.CorruptError
	if errors.As(err, &corrupt) {
		w.res.Marks.add(MarkReadCorrupt)
		if !b.damaged() && u.phase != core.Poisoned && !b.hurting() {
			w.fail("K11", "a partition is damaged and nothing was: "+err.Error())
		}
		u.log.Damaged(w.clock.now(), corrupt)
	} else {
		w.res.Marks.add(MarkReadError)
	}
	if r := &b.requests[id]; verdict.Read(err) == verdict.OffsetOutOfRange {
		b.reply(id, node.Answer{Result: node.Strayed, Topic: r.topic, Offset: r.offset, Stood: r.stood})
		return
	}
	b.reply(id, node.Answer{Result: node.Failed})
}

// hurting reports whether a sync may have failed that a log has not heard of yet: what it did not prove
// may be gone from the page cache.
func (b *broker) hurting() bool { return b.w.disk.Counts().Injected > 0 }

// fetched carries out the read of a fetch.
func (b *broker) fetched(id node.OpID) {
	w, r := b.w, &b.requests[id]
	if r.read == nil {
		return
	}
	u, c := b.units[r.read.unit], &r.read.cursor
	f := r.fetch
	err := u.store.Fetch(f, &r.read.handle)
	if w.fs.Dead() {
		return
	}
	w.note(hashRead, uint64(id), boolHash(err != nil))
	if err = c.Complete(f, err); err != nil {
		b.readFailed(id, u, err)
		return
	}
	next := core.Offset(-1)
	for x, ok := c.Batch(); ok; x, ok = c.Batch() {
		b.shown(id, &x)
		next = x.End()
	}
	if next < 0 {
		b.plan(id, u)
		return
	}
	b.brought(id, u, next)
}

// shown is a batch as a client gets it: patched by the node, verified by the client.
func (b *broker) shown(id node.OpID, x *core.CursorBatch) {
	w, r := b.w, &b.requests[id]
	if x.Kind != segment.KindKafka || len(x.Payload) < batch.HeaderBytes {
		w.fail("N4", "a partition holds what no client sent")
		return
	}
	batch.Patch(x.Payload, x.Base, int32(x.Epoch))
	h, err := batch.Parse(x.Payload)
	if err != nil {
		w.fail("N7", "a client gets a batch that does not verify: "+err.Error())
		return
	}
	base := int64(binary.BigEndian.Uint64(x.Payload))
	r.last = int32(x.Epoch)
	epoch := int32(binary.BigEndian.Uint32(x.Payload[12:]))
	if len(x.Payload) < batch.HeaderBytes+valueAt+8 {
		w.fail("N4", "a partition holds what no client sent")
		return
	}
	origin := node.Value(binary.LittleEndian.Uint64(x.Payload[batch.HeaderBytes+valueAt:])).Op()
	if origin <= 0 || int(origin) >= len(b.requests) || b.requests[origin].n == 0 {
		w.fail("K4", "a record that nobody sent")
		return
	}
	if sent := b.bytesOf(&b.requests[origin]); string(sent[16:]) != string(x.Payload[16:]) {
		w.fail("K2", fmt.Sprintf("the batch of request %d is not what was sent", origin))
		return
	}
	for i := range h.Records {
		b.check.Record(id, r.topic, base+int64(i), epoch, node.MakeValue(origin, int32(i)))
	}
}

func answerText(r *request) string {
	a := &r.answer
	switch a.Result {
	case node.Done:
		switch r.kind {
		case Produce:
			return fmt.Sprintf("topic %d, offset %d", a.Topic, a.Offset)
		case Fetch:
			return fmt.Sprintf("topic %d, [%d, %d) of %d, epoch %d", a.Topic, a.Offset, a.Next, a.High, a.Epoch)
		case producerInit:
			return fmt.Sprintf("producer %d", a.ID)
		case ListEnds:
			return fmt.Sprintf("topic %d, end %d, epoch %d", a.Topic, a.Offset, a.Epoch)
		case EpochEnds:
			return fmt.Sprintf("topic %d, epoch %d ends at %d", a.Topic, a.Epoch, a.Offset)
		case DeleteRecords:
			return fmt.Sprintf("topic %d begins at %d", a.Topic, a.Start)
		}
		return fmt.Sprintf("done, topic %d with %d partitions", a.Topic, a.Partitions)
	case node.Exists:
		return "exists"
	case node.Missing:
		return "no such topic"
	case node.Refused:
		return "refused"
	case node.Strayed:
		return fmt.Sprintf("topic %d has no offset %d", a.Topic, a.Offset)
	}
	return "failed"
}
