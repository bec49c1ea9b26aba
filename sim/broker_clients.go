package sim

import (
	"encoding/binary"
	"errors"

	"varve/core"
	"varve/core/topics"
	"varve/model/node"
)

// request is one call of a client, by its number in the checker.
type request struct {
	kind   Kind
	client uint8
	name   int8
	ticket topics.Ticket
	open   bool // the node has not ended it yet
	told   bool // the answer is on its way; else it is lost
	done   bool // the client knows, or has given up
	answer node.Answer

	// Of a produce.
	at, n    int32 // batch in the arena
	records  int32
	producer int8 // number + 1; 0: none
	part     int32
	cohort   uint64
	topic    node.OpID
	origin   node.OpID // the first one with this batch

	// Of a fetch.
	place  int32
	offset core.Offset
	bytes  int
	last   int32 // epoch of the last record that it brings, -1: none
	stood  int32 // and of the one before its offset, as the client knows it
	read   *nodeReader
	fetch  *core.Fetch
}

// client asks for one thing at a time.
type client struct{ busy node.OpID }

// stand is where the clients of a partition have got to: the next offset, and the epoch of the record before
// it, -1 without one.
type stand struct {
	topic node.OpID
	next  core.Offset
	epoch int32
}

// stoodAt notes where clients have got to.
func (b *broker) stoodAt(r *request) {
	if !r.told || r.answer.Result != node.Done {
		return
	}
	s := &b.stands[r.name][r.part]
	if r.last >= 0 || s.topic != r.topic {
		*s = stand{r.topic, r.answer.Next, r.last}
	}
}

// producer is an idempotent producer, which any client may be.
type producer struct {
	id    int64 // -1: not reserved yet
	asked bool
	epoch int16
	next  [topicsMax][partitionsMax]int32     // sequence
	doubt [topicsMax][partitionsMax]node.OpID // a batch that nobody knows of
	busy  [topicsMax][partitionsMax]bool
}

// again begins all sequences anew under the next epoch.
func (p *producer) again() {
	p.epoch++
	p.next = [topicsMax][partitionsMax]int32{}
	p.doubt = [topicsMax][partitionsMax]node.OpID{}
}

// found is what clients see of a name.
type found struct {
	topic       node.OpID
	incarnation uint64
	partitions  int32
}

// publish takes what the machine's state says for clients.
func (b *broker) publish() {
	if b.version == b.machine.Version() {
		return
	}
	b.version = b.machine.Version()
	for i := range topicNames {
		b.known[i] = found{}
		if t := b.machine.State().Named(topicNames[i]); t != nil {
			b.known[i] = found{node.OpID(binary.LittleEndian.Uint32(t.ID[:])), t.Incarnation, t.Partitions}
		}
	}
	for _, op := range b.doubts { // the catalogue is open again: it is so, or not
		b.check.End(op)
	}
	b.doubts = b.doubts[:0]
}

// operation is a call of a client.
func (b *broker) operation(e *Event) {
	w := b.w
	if e.Kind == Restart {
		b.restart(e)
		return
	}
	client := e.Client
	for range w.h.Clients { // one that waits does not ask
		if b.clients[client].busy == 0 {
			break
		}
		client = uint8((int64(client) + 1) % w.h.Clients)
	}
	if b.clients[client].busy != 0 {
		return
	}
	name, part := int8(e.A), int32(e.B)
	switch e.Kind {
	case TopicCreate:
		b.topicRequest(client, e.Kind, node.Request{Kind: node.Create, Name: name, Partitions: part})
	case TopicDelete:
		b.topicRequest(client, e.Kind, node.Request{Kind: node.Delete, Name: name})
	case TopicGrow:
		b.topicRequest(client, e.Kind, node.Request{Kind: node.Grow, Name: name, Partitions: part})
	case TopicConfigure:
		b.configure(name, e.B)
	case Metadata:
		id := b.call(client, e.Kind, node.Request{Kind: node.Look, Name: name})
		b.metadata(id)
	case Produce:
		b.produceEvent(client, e)
	case Fetch:
		b.fetch(client, e)
	case ListEnds:
		b.listEnds(client, e)
	case EpochEnds:
		b.epochEnds(client, e)
	case DeleteRecords:
		b.deleteRecords(client, e)
	}
}

// call begins a request.
func (b *broker) call(client uint8, kind Kind, r node.Request) node.OpID {
	id := b.check.Call(r)
	for len(b.requests) <= int(id) {
		b.requests = append(b.requests, request{})
	}
	b.requests[id] = request{kind: kind, client: client, name: r.Name, part: r.Partition, open: true, origin: id}
	b.clients[client].busy = id
	return id
}

func (b *broker) topicRequest(client uint8, kind Kind, r node.Request) {
	id := b.call(client, kind, r)
	if !b.w.process.up {
		b.reply(id, node.Answer{Result: node.Failed})
		return
	}
	var err error
	x := &b.requests[id]
	switch r.Kind {
	case node.Create:
		var topic topics.ID
		binary.LittleEndian.PutUint32(topic[:], uint32(id))
		x.ticket, err = b.machine.Create(topicNames[r.Name], r.Partitions, nil, topic, b.w.clock.now().Wall/millisecond)
	case node.Delete:
		x.ticket, err = b.machine.Delete(topicNames[r.Name], b.known[r.Name].incarnation)
	case node.Grow:
		x.ticket, err = b.machine.Grow(topicNames[r.Name], r.Partitions)
	default:
		x.ticket, err = b.machine.Producer()
	}
	if err != nil {
		b.machineAnswer(id, &topics.Outcome{Err: err})
		return
	}
	b.tickets = append(b.tickets, id)
	b.units[catalogueUnit].ask = true
}

// configurations that a topic gets in turn.
var configurations = [...][]topics.Pair{
	nil,
	{{Name: "retention.ms", Value: "604800000"}},
	{{Name: "retention.ms", Value: "5"}},
	{{Name: "retention.bytes", Value: "4096"}},
	{{Name: "max.message.bytes", Value: "1000000"}, {Name: "message.timestamp.type", Value: "LogAppendTime"}, {Name: "retention.ms", Value: "604800000"}},
}

// configure changes a configuration; no client waits for it.
func (b *broker) configure(name int8, which int64) {
	if !b.w.process.up {
		return
	}
	var before []topics.Pair
	if t := b.machine.State().Named(topicNames[name]); t != nil {
		before = t.Config
	}
	if _, err := b.machine.Configure(topicNames[name], before, configurations[which]); err == nil {
		b.units[catalogueUnit].ask = true
	}
}

// answers takes the outcomes of the machine.
func (b *broker) answers() (any bool) {
	for {
		o, ok := b.machine.NextOutcome()
		if !ok {
			return any
		}
		any = true
		for i, id := range b.tickets {
			if b.requests[id].ticket == o.Ticket {
				b.tickets = append(b.tickets[:i], b.tickets[i+1:]...)
				b.machineAnswer(id, &o)
				break
			}
		}
	}
}

// machineAnswer answers a request about a topic.
func (b *broker) machineAnswer(id node.OpID, o *topics.Outcome) {
	w, r := b.w, &b.requests[id]
	a := node.Answer{Result: node.Failed}
	switch err := o.Err; {
	case err == nil:
		a = node.Answer{Result: node.Done, Topic: id, ID: o.Producer}
		if r.kind == TopicCreate {
			a.Partitions = b.partitionsOf(id)
		}
	case errors.Is(err, topics.ErrUnknown):
		w.res.Marks.add(MarkTopicUnknown)
		b.doubts = append(b.doubts, id)
		b.unknown(id)
		return
	case errors.Is(err, topics.ErrExists):
		a.Result = node.Exists
	case errors.Is(err, topics.ErrNotFound):
		a.Result = node.Missing
	case errors.Is(err, topics.ErrPartitions):
		a.Result = node.Refused
	}
	if w.Trace != nil {
		w.say(trackClients+Track(r.client), Note, "request %d ends: %v", id, o.Err)
	}
	b.reply(id, a)
}

func (b *broker) partitionsOf(id node.OpID) int32 { return b.check.Asked(id).Partitions }

// reply sends an answer. The connection may lose it, or bring it late: then the node may have died and
// be back by the time that the client hears.
func (b *broker) reply(id node.OpID, a node.Answer) {
	w, r := b.w, &b.requests[id]
	r.open, r.answer = false, a
	if w.h.On(SwReplies) && w.process.faults && w.rng.Chance(6000) {
		w.res.Marks.add(MarkReplyLost)
		b.check.End(id)
		b.gaveUp(id)
		return
	}
	r.told = true
	took := 1 + w.rng.Below(2*w.h.Write)
	if w.h.On(SwReplies) && w.rng.Chance(4000) {
		took += w.rng.Below(20 * millisecond)
		w.res.Marks.add(MarkReplyLate)
	}
	w.queue.push(entry{at: w.clock.mono + took, kind: wakeReply, arg: int32(id), life: -1})
}

// unknown tells a client that nobody knows. The checker hears of the end where nothing of the request can
// happen any more.
func (b *broker) unknown(id node.OpID) { b.gaveUp(id) }

// gaveUp lets a client wait in vain.
func (b *broker) gaveUp(id node.OpID) {
	w := b.w
	b.requests[id].open, b.requests[id].told = false, false
	w.queue.push(entry{at: w.clock.mono + 1 + w.rng.Below(2*millisecond), kind: wakeReply, arg: int32(id), life: -1})
}

// delivered is a client that hears, or gives up.
func (b *broker) delivered(id node.OpID) {
	w, r := b.w, &b.requests[id]
	if r.done {
		return
	}
	r.done = true
	b.clients[r.client].busy = 0
	w.note(hashOutcome, uint64(id), boolHash(r.told)<<8|uint64(r.answer.Result))
	if w.Trace != nil {
		text, kind := "is told nothing", Unknown
		if r.told {
			text, kind = answerText(r), Acked
			if r.answer.Result != node.Done {
				kind = Failed
			}
		}
		w.say(trackClients+Track(r.client), kind, "client %d, request %d (%s %s): %s", r.client, id, r.kind, topicNames[r.name], text)
	}
	if r.told {
		b.check.Return(id, r.answer)
	}
	switch r.kind {
	case Produce:
		b.producedBy(id, r)
	case Fetch:
		b.stoodAt(r)
	case producerInit:
		p := &b.producers[r.producer-1]
		p.asked = false
		if r.told && r.answer.Result == node.Done {
			p.id = r.answer.ID
		}
	}
}

// producedBy is what a producer learns.
func (b *broker) producedBy(id node.OpID, r *request) {
	if r.told && r.answer.Result == node.Done {
		b.w.res.Acked++
	}
	if r.producer == 0 {
		return
	}
	p := &b.producers[r.producer-1]
	p.busy[r.name][r.part] = false
	asked := b.check.Asked(id)
	if asked.Producer != p.id || asked.Epoch != p.epoch {
		return
	}
	doubt, next := &p.doubt[r.name][r.part], &p.next[r.name][r.part]
	switch {
	case !r.told:
		*doubt = r.origin
	case r.answer.Result == node.Done:
		*doubt = 0
		*next = max(*next, asked.Sequence+r.records)
	case r.answer.ID == refusedSequence:
		p.again()
		b.w.res.Marks.add(MarkProducerAgain)
	case r.origin == id: // nothing of it happened: the sequence is free
	default:
		*doubt = r.origin
	}
}

// refusedSequence says in an answer that failed that the producer has to begin anew.
const refusedSequence = 1

// metadata answers what a name stands for.
func (b *broker) metadata(id node.OpID) {
	r := &b.requests[id]
	f, ok := b.lookup(r.name)
	switch {
	case !ok:
		b.reply(id, node.Answer{Result: node.Failed})
	case f.topic == 0:
		b.reply(id, node.Answer{Result: node.Missing})
	default:
		b.reply(id, node.Answer{Result: node.Done, Topic: f.topic, Partitions: f.partitions})
	}
}

// lookup returns what a name stands for; false before the catalogue is known.
func (b *broker) lookup(name int8) (found, bool) {
	if !b.w.process.up || b.version == 0 || b.w.process.leaving {
		return found{}, false
	}
	return b.known[name], true
}
