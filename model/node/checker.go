package node

import (
	"slices"
	"strconv"
)

// OpID names one call, from 1 on; 0 is none.
type OpID int32

// Stamp orders what the Checker is told.
type Stamp int64

// Kind is what a client asks for.
type Kind uint8

// Kinds of requests.
const (
	Create  Kind = iota
	Delete       // of whatever has the name
	Grow         // it shall have Partitions
	Look         // anything that shows which topic has the name, and how many partitions it has
	Produce      // a batch of Records
	Fetch
	Ends    // asks where a partition ends
	Reserve // a producer id
	Epochs  // asks where the records of a leader's epoch end
	Forget  // the records below an offset are given up
)

// Request is a call of a client.
type Request struct {
	Kind       Kind
	Name       int8
	Partitions int32 // of Create and Grow

	Partition int32 // of Produce, Fetch and Ends
	Records   int32 // of Produce
	Producer  int64 // an id that was reserved; below 0: none
	Epoch     int16
	Sequence  int32
	Retry     OpID  // the first produce that carried the batch, 0 for a new one
	Leader    int32 // of Epochs
	Made      int64 // of Produce: when
}

// Result is how a call ended.
type Result uint8

// Results.
const (
	Done    Result = iota // it took effect, or shows what it looked at
	Exists                // of Create: the name is taken
	Missing               // no topic has the name
	Refused               // Grow: it has as many; of Produce and others: no such partition
	Strayed               // of Fetch: the partition has no such offset, or it has another record before it
	Failed                // no effect, for certain
)

// Answer is what a client is told.
type Answer struct {
	Result     Result
	Topic      OpID  // the Create that made it
	Partitions int32 // Create, Grow and Look: how many it has
	Offset     int64 // Produce: of the first record. Fetch: that it asked for. Ends: the end. Epochs: of the epoch's
	Start      int64 // Fetch, Ends and Forget: where the partition begins
	High       int64 // Fetch: where the partition ends
	Next       int64 // Fetch: behind the last record that it brought
	Epoch      int32 // of the leader
	ID         int64 // Reserve
	Stood      int32 // of Fetch: epoch of the record before Offset, as the client knows it; -1: it does not
}

// op is a call and what is known of it.
type op struct {
	Request
	call   Stamp
	end    Stamp // 0: not yet
	bit    int8  // of its name's open calls, -1 none
	failed bool
	acked  bool
	again  bool // it was sent again
	bound  bool // the batch is known to be at part and at
	part   int32
	at     int64
}

// Checker judges one run after another. The zero value is not ready: call Reset first.
type Checker struct {
	stamp     Stamp
	ops       []op
	names     [NamesMax]name
	parts     []partition
	used      int
	ids       []int64
	damaged   bool
	check     string
	violation string
	off       []string
	work      []config
}

// NamesMax bounds the names of topics.
const NamesMax = 8

// Disable switches the checks of these names off, and no others.
func (c *Checker) Disable(checks []string) { c.off = checks }

// Reset begins a run. Which checks are off stays as it is.
func (c *Checker) Reset() {
	c.stamp, c.ops = 0, append(c.ops[:0], op{})
	for i := range c.names {
		c.names[i].reset()
	}
	c.used, c.ids, c.damaged = 0, c.ids[:0], false
	c.check, c.violation = "", ""
}

// Violation returns what was wrong first, "" if nothing was; Check by which rule.
func (c *Checker) Violation() string { return c.violation }

// Check names the rule that was broken.
func (c *Checker) Check() string { return c.check }

// Damaged says that the disk took back what it had promised: from now on nothing is owed, and what is
// served must still be what was sent there.
func (c *Checker) Damaged() { c.damaged = true }

// fail keeps the first violation.
func (c *Checker) fail(check, why string, id OpID, want, found int64) {
	if c.violation != "" || slices.Contains(c.off, check) {
		return
	}
	c.check = check
	o := &c.ops[id]
	b := append(make([]byte, 0, 160), why...)
	b = append(append(b, "; request "...), strconv.Itoa(int(id))...)
	b = append(append(b, " on name "...), strconv.Itoa(int(o.Name))...)
	b = append(append(b, ": expected "...), strconv.FormatInt(want, 10)...)
	c.violation = string(append(append(b, ", found "...), strconv.FormatInt(found, 10)...))
}

// Call says that a client asks.
func (c *Checker) Call(r Request) OpID {
	c.stamp++
	id := OpID(len(c.ops))
	c.ops = append(c.ops, op{Request: r, call: c.stamp, bit: -1})
	if r.Retry != 0 {
		c.ops[r.Retry].again, c.ops[r.Retry].end = true, 0
	}
	if r.Kind != Reserve {
		c.names[r.Name].open(c, id)
	}
	return id
}

// Return says what the client is told.
func (c *Checker) Return(id OpID, a Answer) {
	c.stamp++
	o := &c.ops[id]
	o.end, o.failed = c.stamp, a.Result != Done
	c.ops[o.Retry].end = c.stamp
	if o.Kind == Reserve {
		c.reserved(id, &a)
		return
	}
	if !c.damaged && a.Result != Failed || o.Kind <= Grow {
		c.names[o.Name].settle(c, id, &a)
	}
	c.names[o.Name].close(id, o.bit)
	switch {
	case c.violation != "":
		return
	case a.Result == Strayed:
		c.strayed(id, &a)
		return
	case a.Result != Done:
		return
	}
	switch o.Kind {
	case Produce:
		c.produced(id, &a)
	case Fetch:
		c.fetched(id, &a)
	case Ends:
		c.ends(id, &a)
	case Epochs:
		c.epochEnd(id, &a)
	case Forget:
		_, p := c.part(a.Topic, o.Partition)
		c.begins(id, p, a.Start)
	}
}

// End says that the client was never told and that nothing of the call will happen from now on.
func (c *Checker) End(id OpID) {
	c.stamp++
	o := &c.ops[id]
	o.end = c.stamp
	c.ops[o.Retry].end = c.stamp
	if o.Kind == Reserve {
		return
	}
	if o.Kind <= Grow {
		c.names[o.Name].doubt(c, id)
	}
	c.names[o.Name].close(id, o.bit)
}

func (c *Checker) reserved(id OpID, a *Answer) {
	if a.Result != Done || c.damaged {
		return
	}
	for _, x := range c.ids {
		if x == a.ID {
			c.fail("N5", "a producer id was given out twice", id, -1, a.ID)
			return
		}
	}
	c.ids = append(c.ids, a.ID)
}

// Topic returns the topic that certainly has a name now, and how many partitions it has; 0 if none does.
// Not certain: what was asked has no answer yet, or got none.
func (c *Checker) Topic(name int8) (topic OpID, partitions int32, certain bool) {
	n := &c.names[name]
	first := n.configs[0].now
	for i := range n.configs {
		if n.configs[i].now.topic != first.topic || n.configs[i].now.partitions != first.partitions {
			return 0, 0, false
		}
	}
	for _, id := range n.calls {
		if id != 0 && c.ops[id].Kind <= Grow {
			return 0, 0, false
		}
	}
	return first.topic, first.partitions, true
}

// Asked returns what a call asked for.
func (c *Checker) Asked(id OpID) Request { return c.ops[id].Request }
