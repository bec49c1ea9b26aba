package node

import "testing"

// run judges one story: calls and answers, one after the other.
type run struct {
	*testing.T
	c *Checker
}

func story(t *testing.T) *run {
	t.Helper()
	c := &Checker{}
	c.Reset()
	return &run{t, c}
}

func (r *run) wants(check string) {
	r.Helper()
	if got := r.c.Check(); got != check {
		r.Errorf("check %q (%s), want %q", got, r.c.Violation(), check)
	}
}

// create makes a topic under name 1.
func (r *run) create(partitions int32) OpID {
	op := r.c.Call(Request{Kind: Create, Name: 1, Partitions: partitions})
	r.c.Return(op, Answer{Result: Done, Topic: op, Partitions: partitions})
	return op
}

// lost lets a partition lose its two records, whose end clients have read, and get others; then a client at that end is
// answered.
func (r *run) lost(topic OpID, end int64, a Answer) {
	r.read(topic, 0, 2, 1, r.acked(r.send(2), topic, 0))
	r.c.Unproven(topic, 0, 0)
	r.c.Leads(topic, 0, 0, 2)
	r.acked(r.send(int32(end)), topic, 0)
	r.c.Return(r.c.Call(Request{Kind: Fetch, Name: 1}), a)
}

func (r *run) look(topic OpID, partitions int32) {
	op := r.c.Call(Request{Kind: Look, Name: 1})
	if topic == 0 {
		r.c.Return(op, Answer{Result: Missing})
		return
	}
	r.c.Return(op, Answer{Result: Done, Topic: topic, Partitions: partitions})
}

func (r *run) remove(result Result) {
	op := r.c.Call(Request{Kind: Delete, Name: 1})
	r.c.Return(op, Answer{Result: result})
}

// A check that is switched off lets the others judge what comes after, also in the next run.
func TestDisable(t *testing.T) {
	r := story(t)
	r.c.Disable([]string{"N1", "N5"})
	for range 2 {
		r.look(r.create(1), 2)
		r.wants("")
		r.remove(Done)
		r.remove(Done)
		r.wants("N2")
		r.c.Reset()
	}
}

func TestWhatIsToldOfNames(t *testing.T) {
	for _, test := range []struct {
		name, check string
		do          func(r *run)
	}{
		{"an acked topic is there", "", func(r *run) { r.look(r.create(2), 2) }},
		{"it is gone", "N1", func(r *run) { r.create(2); r.look(0, 0) }},
		{"it has fewer partitions", "N1", func(r *run) { r.look(r.create(2), 1) }},
		{"a deleted one is away", "", func(r *run) { r.create(1); r.remove(Done); r.look(0, 0) }},
		{"it is back", "N2", func(r *run) { op := r.create(1); r.remove(Done); r.look(op, 1) }},
		{"another one in its place", "", func(r *run) { r.create(1); r.remove(Done); r.look(r.create(3), 3) }},
		{"the one before shows", "N3", func(r *run) { op := r.create(1); r.remove(Done); r.create(3); r.look(op, 1) }},
		{"made twice", "N3", func(r *run) { r.create(1); r.create(1) }},
		{"nothing to delete", "N1", func(r *run) { r.create(1); r.remove(Missing) }},
		{"deleted twice", "N2", func(r *run) { r.create(1); r.remove(Done); r.remove(Done) }},
		{"a create in doubt is there", "", func(r *run) {
			op := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1})
			r.c.End(op)
			r.look(op, 1)
			r.look(op, 1)
		}},
		{"or is not", "", func(r *run) {
			r.c.End(r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1}))
			r.look(0, 0)
			r.look(0, 0)
		}},
		{"or is not, and is there later", "N2", func(r *run) {
			op := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1})
			r.c.End(op)
			r.look(0, 0)
			r.look(op, 1)
		}},
		{"a delete in doubt, and the topic stays away once it was", "N2", func(r *run) {
			op := r.create(1)
			r.c.End(r.c.Call(Request{Kind: Delete, Name: 1}))
			r.look(0, 0)
			r.look(op, 1)
		}},
		{"a definite failure did nothing", "", func(r *run) {
			op := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1})
			r.c.Return(op, Answer{Result: Failed})
			r.look(0, 0)
		}},
		{"a definite failure made a topic", "N2", func(r *run) {
			op := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1})
			r.c.Return(op, Answer{Result: Failed})
			r.look(op, 1)
		}},
		{"a late answer shows what was there meanwhile", "", func(r *run) {
			op := r.create(1)
			late := r.c.Call(Request{Kind: Look, Name: 1})
			r.remove(Done)
			r.create(2)
			r.c.Return(late, Answer{Result: Done, Topic: op, Partitions: 1})
		}},
		{"and not what was gone before", "N3", func(r *run) {
			op := r.create(1)
			r.remove(Done)
			late := r.c.Call(Request{Kind: Look, Name: 1})
			r.create(2)
			r.c.Return(late, Answer{Result: Done, Topic: op, Partitions: 1})
		}},
		{"two at once: one wins", "", func(r *run) {
			a := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1})
			b := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 2})
			r.c.Return(a, Answer{Result: Exists})
			r.c.Return(b, Answer{Result: Done, Topic: b, Partitions: 2})
			r.look(b, 2)
		}},
		{"two at once: both win", "N3", func(r *run) {
			a := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1})
			b := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 2})
			r.c.Return(a, Answer{Result: Done, Topic: a, Partitions: 1})
			r.c.Return(b, Answer{Result: Done, Topic: b, Partitions: 2})
		}},
		{"more partitions", "", func(r *run) {
			op := r.create(1)
			grow := r.c.Call(Request{Kind: Grow, Name: 1, Partitions: 3})
			r.c.Return(grow, Answer{Result: Done, Topic: op})
			r.look(op, 3)
		}},
		{"more partitions that are not there", "N1", func(r *run) {
			op := r.create(1)
			grow := r.c.Call(Request{Kind: Grow, Name: 1, Partitions: 3})
			r.c.Return(grow, Answer{Result: Done, Topic: op})
			r.look(op, 1)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := story(t)
			test.do(r)
			r.wants(test.check)
		})
	}
}

// send sends a batch to partition 0 of name 1.
func (r *run) send(records int32) OpID {
	return r.c.Call(Request{Kind: Produce, Name: 1, Records: records, Producer: -1})
}

func (r *run) acked(op, topic OpID, offset int64) OpID {
	r.c.Return(op, Answer{Result: Done, Topic: topic, Offset: offset})
	return op
}

// read brings the records of batches, from an offset on.
func (r *run) read(topic OpID, offset, high int64, epoch int32, batches ...OpID) {
	op := r.c.Call(Request{Kind: Fetch, Name: 1})
	next := offset
	for _, b := range batches {
		for i := range r.c.Asked(b).Records {
			r.c.Record(op, topic, next, epoch, MakeValue(b, i))
			next++
		}
	}
	r.c.Return(op, Answer{Result: Done, Topic: topic, Offset: offset, Next: next, High: high, Epoch: epoch})
}

func (r *run) epochEnd(topic OpID, epoch int32, end int64) {
	r.c.Return(r.c.Call(Request{Kind: Epochs, Name: 1, Leader: epoch}), Answer{Result: Done, Topic: topic, Offset: end})
}

// forget gives records up.
func (r *run) forget(topic OpID, before, start int64) {
	op := r.c.Call(Request{Kind: Forget, Name: 1})
	r.c.GivenUp(topic, 0, before)
	r.c.Return(op, Answer{Result: Done, Topic: topic, Start: start})
}

func (r *run) begins(topic OpID, start int64) {
	r.c.Return(r.c.Call(Request{Kind: Ends, Name: 1}), Answer{Result: Done, Topic: topic, Offset: 2, Start: start})
}

func TestWhatIsToldOfRecords(t *testing.T) {
	for _, test := range []struct {
		name, check string
		do          func(r *run, topic OpID)
	}{
		{"acked is read", "", func(r *run, topic OpID) {
			r.read(topic, 0, 3, 1, r.acked(r.send(2), topic, 0), r.acked(r.send(1), topic, 2))
			r.c.Audited(topic, 0, 0, 3)
		}},
		{"acked is lost", "K1", func(r *run, topic OpID) { r.acked(r.send(2), topic, 0); r.read(topic, 0, 0, 1) }},
		{"a fetch of it brings nothing", "K15", func(r *run, topic OpID) { r.acked(r.send(2), topic, 0); r.read(topic, 0, 2, 1) }},
		{"one offset for two", "K2", func(r *run, topic OpID) {
			a, b := r.send(1), r.send(1)
			r.acked(a, topic, 0)
			r.acked(b, topic, 0)
		}},
		{"another record than was acked", "K2", func(r *run, topic OpID) {
			a, b := r.send(1), r.send(1)
			r.acked(a, topic, 0)
			r.read(topic, 0, 1, 1, b)
		}},
		{"a batch is there twice", "K4", func(r *run, topic OpID) { a := r.send(1); r.read(topic, 0, 2, 1, a, a) }},
		{"a retry gets its offset", "", func(r *run, topic OpID) {
			a := r.send(1)
			r.c.End(a)
			again := r.c.Call(Request{Kind: Produce, Name: 1, Records: 1, Producer: -1, Retry: a})
			r.acked(again, topic, 0)
			r.read(topic, 0, 1, 1, a)
		}},
		{"a retry gets another", "K4", func(r *run, topic OpID) {
			a := r.send(1)
			r.read(topic, 0, 1, 1, a)
			r.c.End(a)
			again := r.c.Call(Request{Kind: Produce, Name: 1, Records: 1, Producer: -1, Retry: a})
			r.acked(again, topic, 1)
		}},
		{"sent later, lies before", "K5", func(r *run, topic OpID) {
			r.acked(r.send(1), topic, 5)
			r.acked(r.send(1), topic, 4)
		}},
		{"refused, and there", "K23", func(r *run, topic OpID) {
			a := r.send(1)
			r.c.Return(a, Answer{Result: Failed})
			r.read(topic, 0, 1, 1, a)
		}},
		{"in doubt, and there", "", func(r *run, topic OpID) { a := r.send(1); r.c.End(a); r.read(topic, 0, 1, 1, a) }},
		{"beyond the end", "K2", func(r *run, topic OpID) { r.read(topic, 0, 0, 1, r.send(1)) }},
		{"sent to another partition", "N4", func(r *run, topic OpID) {
			r.read(topic, 0, 1, 1, r.c.Call(Request{Kind: Produce, Name: 1, Partition: 1, Records: 1, Producer: -1}))
		}},
		{"sent to an earlier topic", "N4", func(r *run, topic OpID) {
			a := r.acked(r.send(1), topic, 0)
			r.remove(Done)
			r.read(r.create(2), 0, 1, 1, a)
		}},
		{"in doubt, and in the next topic", "N4", func(r *run, _ OpID) {
			a := r.send(1)
			r.c.End(a)
			r.remove(Done)
			r.read(r.create(2), 0, 1, 1, a)
		}},
		{"sent again to the next topic", "", func(r *run, topic OpID) {
			a := r.send(1)
			r.read(topic, 0, 1, 1, a)
			r.c.End(a)
			r.remove(Done)
			next := r.create(2)
			again := r.c.Call(Request{Kind: Produce, Name: 1, Records: 1, Producer: -1, Retry: a})
			r.acked(again, next, 0)
		}},
		{"sent again, and there twice", "K4", func(r *run, topic OpID) {
			a := r.acked(r.send(1), topic, 0)
			r.acked(r.c.Call(Request{Kind: Produce, Name: 1, Records: 1, Producer: -1, Retry: a}), topic, 1)
		}},
		{"sent again after it was given up", "", func(r *run, topic OpID) {
			a := r.acked(r.send(1), topic, 0)
			r.c.GivenUp(topic, 0, 1)
			r.acked(r.c.Call(Request{Kind: Produce, Name: 1, Records: 1, Producer: -1, Retry: a}), topic, 1)
		}},
		{"a hole", "K16", func(r *run, topic OpID) { r.acked(r.send(1), topic, 1); r.c.Audited(topic, 0, 0, 2) }},
		{"an epoch goes back", "N6", func(r *run, topic OpID) { r.read(topic, 0, 0, 2); r.read(topic, 0, 0, 1) }},
		{"an epoch goes back within", "N6", func(r *run, topic OpID) {
			a, b := r.send(1), r.send(1)
			op := r.c.Call(Request{Kind: Fetch, Name: 1})
			r.c.Record(op, topic, 0, 2, MakeValue(a, 0))
			r.c.Record(op, topic, 1, 1, MakeValue(b, 0))
		}},
		{"a partition that the topic does not have", "N1", func(r *run, topic OpID) {
			op := r.c.Call(Request{Kind: Produce, Name: 1, Partition: 5, Records: 1, Producer: -1})
			r.acked(op, topic, 0)
		}},
		{"a producer's batches out of order", "K5", func(r *run, topic OpID) {
			send := func(sequence int32) OpID {
				return r.c.Call(Request{Kind: Produce, Name: 1, Records: 1, Producer: 7, Sequence: sequence})
			}
			a, b := send(0), send(1)
			r.read(topic, 0, 2, 1, b, a)
			r.c.Audited(topic, 0, 0, 2)
		}},
		{"an epoch ends behind its last record", "", func(r *run, topic OpID) {
			r.read(topic, 0, 2, 2, r.acked(r.send(1), topic, 0), r.acked(r.send(1), topic, 1))
			r.epochEnd(topic, 1, 0)
			r.epochEnd(topic, 2, 2)
			r.epochEnd(topic, 3, -1)
		}},
		{"an epoch ends before its last record", "N8", func(r *run, topic OpID) {
			r.read(topic, 0, 2, 2, r.acked(r.send(1), topic, 0), r.acked(r.send(1), topic, 1))
			r.epochEnd(topic, 2, 1)
		}},
		{"an epoch ends behind a later one's", "N8", func(r *run, topic OpID) {
			r.read(topic, 0, 2, 2, r.acked(r.send(1), topic, 0), r.acked(r.send(1), topic, 1))
			r.epochEnd(topic, 1, 1)
		}},
		{"the leader's epoch has no end", "N8", func(r *run, topic OpID) {
			r.read(topic, 0, 1, 2, r.acked(r.send(1), topic, 0))
			r.epochEnd(topic, 2, -1)
		}},
		{"a reader of what is there is told that it is not", "N8", func(r *run, topic OpID) {
			r.acked(r.send(2), topic, 0)
			r.c.Return(r.c.Call(Request{Kind: Fetch, Name: 1}), Answer{Result: Strayed, Topic: topic, Offset: 2})
		}},
		{"a reader of what was given up", "", func(r *run, topic OpID) {
			r.acked(r.send(2), topic, 0)
			r.c.GivenUp(topic, 0, 1)
			r.c.Return(r.c.Call(Request{Kind: Fetch, Name: 1}), Answer{Result: Strayed, Topic: topic})
		}},
		{"it begins where it was given up", "", func(r *run, topic OpID) { r.acked(r.send(2), topic, 0); r.forget(topic, 1, 1); r.begins(topic, 1) }},
		{"it begins before", "N9", func(r *run, topic OpID) { r.acked(r.send(2), topic, 0); r.forget(topic, 1, 1); r.begins(topic, 0) }},
		{"it begins behind", "N9", func(r *run, topic OpID) { r.acked(r.send(2), topic, 0); r.forget(topic, 1, 1); r.begins(topic, 2) }},
		{"what was not proven is lost", "", func(r *run, topic OpID) {
			r.c.Leads(topic, 0, 0, 1)
			r.acked(r.send(1), topic, 0)
			late := r.send(1)
			r.acked(r.send(1), topic, 1)
			r.c.Unproven(topic, 0, 1)
			r.c.Leads(topic, 0, 1, 2)
			r.acked(late, topic, 2) // an answer of before
			r.read(topic, 1, 2, 2, r.acked(r.send(1), topic, 1))
			r.c.Audited(topic, 0, 0, 2)
		}},
		{"what was proven is lost", "K1", func(r *run, topic OpID) {
			r.acked(r.send(1), topic, 0)
			r.c.Unproven(topic, 0, 1)
			r.c.Leads(topic, 0, 0, 2)
		}},
		{"what a leader began with is lost", "K1", func(r *run, topic OpID) {
			r.acked(r.send(1), topic, 0)
			r.c.Leads(topic, 0, 1, 2)
			r.c.Unproven(topic, 0, 0)
			r.c.Leads(topic, 0, 0, 3)
		}},
		{"an end is lost, and nothing allows it", "K1", func(r *run, topic OpID) { r.acked(r.send(1), topic, 0); r.c.Leads(topic, 0, 0, 2) }},
		{"half a batch is lost", "K3", func(r *run, topic OpID) {
			r.acked(r.send(2), topic, 0)
			r.c.Unproven(topic, 0, 0)
			r.c.Leads(topic, 0, 1, 2)
		}},
		{"who has read what is lost is told", "", func(r *run, topic OpID) { r.lost(topic, 4, Answer{Result: Strayed, Topic: topic, Offset: 2, Stood: 1}) }},
		{"and is not told", "N8", func(r *run, topic OpID) {
			r.lost(topic, 4, Answer{Result: Done, Topic: topic, Offset: 2, Next: 4, High: 4, Epoch: 2, Stood: 1})
		}},
		{"who has read what came instead is told", "N8", func(r *run, topic OpID) { r.lost(topic, 4, Answer{Result: Strayed, Topic: topic, Offset: 2, Stood: 2}) }},
		{"retention lets go of what is old enough", "", func(r *run, topic OpID) {
			r.acked(r.send(1), topic, 0)
			r.c.Retained(topic, 0, 1, 0)
			r.begins(topic, 1)
		}},
		{"and of what is not", "K14", func(r *run, topic OpID) { r.acked(r.send(1), topic, 0); r.c.Retained(topic, 0, 1, -1) }},
		{"after damage nothing is owed", "", func(r *run, topic OpID) {
			r.acked(r.send(2), topic, 0)
			r.c.Damaged()
			r.read(topic, 0, 0, 1)
			r.look(0, 0)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := story(t)
			test.do(r, r.create(2))
			r.wants(test.check)
		})
	}
}

func TestProducerIDs(t *testing.T) {
	r := story(t)
	give := func(id int64) { r.c.Return(r.c.Call(Request{Kind: Reserve}), Answer{Result: Done, ID: id}) }
	give(0)
	give(1)
	r.wants("")
	give(0)
	r.wants("N5")
}

// Where too many orders are possible nothing is judged, rather than those that were looked at.
func TestTooManyOrders(t *testing.T) {
	r := story(t)
	r.create(1)
	for range 6 {
		r.c.Call(Request{Kind: Create, Name: 1, Partitions: 1})
		r.c.Call(Request{Kind: Delete, Name: 1})
	}
	last := r.c.Call(Request{Kind: Create, Name: 1, Partitions: 2})
	r.c.Return(last, Answer{Result: Done, Topic: last, Partitions: 2})
	r.wants("")
	if !r.c.names[1].lost {
		t.Error("all orders were followed")
	}
}
