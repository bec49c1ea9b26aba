package node

// Value is the content of a record: the produce that first carried it, and which of its records it is.
type Value uint64

const valueBits = 20

// MakeValue returns the content of record i of a produce.
func MakeValue(op OpID, i int32) Value { return Value(op)<<valueBits | Value(i) }

// Op returns the produce that first carried a value.
func (v Value) Op() OpID { return OpID(v >> valueBits) }

// partition is the reference log of one partition.
type partition struct {
	topic  OpID
	number int32
	slots  []Value // by offset; 0: unknown
	epochs []int32 // of the leader that wrote them; -1: unknown
	floors []floor
	given  int64 // records below it were given up, or may have been
}

// floor says that from some time on everything below an offset is owed, and that no leader of an epoch
// below epoch answers, and nothing below start comes back.
type floor struct {
	at    Stamp
	end   int64
	start int64
	epoch int32
}

// part returns the reference log of a partition.
func (c *Checker) part(topic OpID, number int32) (int32, *partition) {
	for i := range c.parts[:c.used] {
		if p := &c.parts[i]; p.topic == topic && p.number == number {
			return int32(i), p
		}
	}
	if c.used == len(c.parts) {
		c.parts = append(c.parts, partition{})
	}
	p := &c.parts[c.used]
	*p = partition{topic: topic, number: number, slots: p.slots[:0], epochs: p.epochs[:0], floors: p.floors[:0]}
	c.used++
	return int32(c.used - 1), p
}

// at returns what was certain of a partition at some time.
func (p *partition) at(t Stamp) (f floor) {
	lo, hi := 0, len(p.floors)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if p.floors[mid].at <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return floor{}
	}
	return p.floors[lo-1]
}

// raise notes what is certain from now on.
func (p *partition) raise(now Stamp, end, start int64, epoch int32) {
	f := p.at(now)
	if end <= f.end && start <= f.start && epoch <= f.epoch {
		return
	}
	p.floors = append(p.floors, floor{now, max(end, f.end), max(start, f.start), max(epoch, f.epoch)})
}

// seen judges the epoch and the end that an answer shows.
func (c *Checker) seen(id OpID, p *partition, end int64, epoch int32) {
	f := p.at(c.ops[id].call)
	switch {
	case c.damaged:
		return
	case epoch < f.epoch:
		c.fail("N6", "the leader's epoch went back", id, int64(f.epoch), int64(epoch))
	case end < f.end:
		c.fail("K1", "a partition ends before what was acked or read", id, f.end, end)
	}
	p.raise(c.stamp, end, 0, epoch)
}

// GivenUp says that a partition's records below an offset may go from now on.
func (c *Checker) GivenUp(topic OpID, number int32, before int64) {
	_, p := c.part(topic, number)
	p.given = max(p.given, before)
}

// begins judges where an answer says that a partition begins.
func (c *Checker) begins(id OpID, p *partition, start int64) {
	f := p.at(c.ops[id].call)
	switch {
	case c.damaged:
		return
	case start > p.given:
		c.fail("N9", "records are gone that nobody gave up", id, p.given, start)
	case start < f.start:
		c.fail("N9", "records that were given up are back", id, f.start, start)
	}
	p.raise(c.stamp, 0, start, 0)
}

// strayed judges that a client is told that it reads where nothing is: nothing is lost here but what is given up.
func (c *Checker) strayed(id OpID, a *Answer) {
	o := &c.ops[id]
	_, p := c.part(a.Topic, o.Partition)
	if f := p.at(o.call); !c.damaged && a.Offset >= p.given && a.Offset <= f.end {
		c.fail("N8", "a client is told that what it has read is not there", id, f.end, a.Offset)
	}
}

// epochEnd judges where the records of a leader's epoch end: behind all of it and of those before, and before all of
// later ones. Below zero: it is still to come.
func (c *Checker) epochEnd(id OpID, a *Answer) {
	o := &c.ops[id]
	_, p := c.part(a.Topic, o.Partition)
	f := p.at(o.call)
	if c.damaged {
		return
	}
	if a.Offset < 0 {
		if o.Leader <= f.epoch {
			c.fail("N8", "an epoch that there was has no end", id, int64(f.epoch), int64(o.Leader))
		}
		return
	}
	for i := p.given; i < int64(len(p.slots)); i++ {
		switch epoch := p.epochs[i]; {
		case epoch < 0:
		case epoch <= o.Leader && i < f.end && i >= a.Offset:
			c.fail("N8", "an epoch ends before a record of it", id, i+1, a.Offset)
		case epoch > o.Leader && i < a.Offset:
			c.fail("N8", "an epoch ends behind a record of a later one", id, i, a.Offset)
		}
	}
}

func (c *Checker) produced(id OpID, a *Answer) {
	o := &c.ops[id]
	at, p := c.part(a.Topic, o.Partition)
	origin := id
	if o.Retry != 0 {
		origin = o.Retry
	}
	first := &c.ops[origin]
	if f := p.at(first.call); a.Offset < f.end && !c.damaged {
		c.fail("K5", "a batch lies before what was acked when it was sent", id, f.end, a.Offset)
	}
	for i := range o.Records {
		c.place(id, at, a.Offset+int64(i), MakeValue(origin, i), -1)
	}
	first = &c.ops[origin]
	first.acked = true
	p.raise(c.stamp, a.Offset+int64(o.Records), 0, 0)
}

// place notes that a record is at an offset.
func (c *Checker) place(id OpID, at int32, o int64, v Value, epoch int32) {
	p := &c.parts[at]
	for int64(len(p.slots)) <= o {
		p.slots, p.epochs = append(p.slots, 0), append(p.epochs, -1)
	}
	origin := v.Op()
	x, first := &c.ops[origin], o-int64(v&(1<<valueBits-1))
	switch {
	case p.slots[o] != 0 && p.slots[o] != v:
		if !c.damaged {
			c.fail("K2", "an offset has another record now", id, int64(p.slots[o].Op()), int64(origin))
		}
		return
	case x.bound && (x.part != at || x.at != first) && !c.damaged && !c.elsewhere(x, at):
		c.fail("K4", "a batch is there twice", id, x.at, first)
		return
	case epoch >= 0 && p.epochs[o] >= 0 && p.epochs[o] != epoch:
		c.fail("N6", "an offset has another leader epoch now", id, int64(p.epochs[o]), int64(epoch))
	}
	p.slots[o] = v
	if epoch >= 0 {
		p.epochs[o] = epoch
	}
	x.bound, x.part, x.at = true, at, first
}

// elsewhere reports whether a batch was sent again, and the topic was another one by then.
func (c *Checker) elsewhere(x *op, at int32) bool {
	return x.again && c.parts[x.part].topic != c.parts[at].topic
}

// Record says that a fetch brings a record: before its Return.
func (c *Checker) Record(id OpID, topic OpID, offset int64, epoch int32, v Value) {
	o := &c.ops[id]
	origin := v.Op()
	if origin <= 0 || int(origin) >= len(c.ops) {
		c.fail("K4", "a record that nobody sent", id, 0, int64(v))
		return
	}
	x := &c.ops[origin]
	switch {
	case x.Kind != Produce || x.Retry != 0 || int32(v&(1<<valueBits-1)) >= x.Records:
		c.fail("K4", "a record that nobody sent", id, 0, int64(v))
	case x.Name != o.Name || x.Partition != o.Partition:
		c.fail("N4", "a record that was sent to another partition", id, int64(o.Partition), int64(x.Partition))
	case x.failed && !x.bound && !x.acked:
		c.fail("K23", "a record of a produce that was refused", id, 0, int64(origin))
	case x.end != 0 && topic > 0 && x.end < c.ops[topic].call:
		c.fail("N4", "a record of an earlier topic of that name", id, int64(topic), int64(origin))
	}
	if c.violation != "" {
		return
	}
	if epoch < 0 {
		c.fail("N6", "a record without an epoch", id, 0, int64(epoch))
		return
	}
	at, p := c.part(topic, o.Partition)
	if offset > 0 && int64(len(p.epochs)) >= offset && p.epochs[offset-1] > epoch && !c.damaged {
		c.fail("N6", "the leader's epoch goes back from one record to the next", id, int64(p.epochs[offset-1]), int64(epoch))
		return
	}
	c.place(id, at, offset, v, epoch)
}

func (c *Checker) fetched(id OpID, a *Answer) {
	o := &c.ops[id]
	_, p := c.part(a.Topic, o.Partition)
	f := p.at(o.call)
	c.seen(id, p, a.High, a.Epoch)
	c.begins(id, p, a.Start)
	switch {
	case c.damaged || c.violation != "":
	case a.Offset < f.end && a.Next <= a.Offset:
		c.fail("K15", "a fetch of what is there brings nothing", id, a.Offset, a.Next)
	case a.Next > a.High:
		c.fail("K2", "a fetch brings what lies beyond the end", id, a.High, a.Next)
	}
	p.raise(c.stamp, a.Next, 0, a.Epoch)
}

func (c *Checker) ends(id OpID, a *Answer) {
	_, p := c.part(a.Topic, c.ops[id].Partition)
	c.seen(id, p, a.Offset, a.Epoch)
	c.begins(id, p, a.Start)
}

// Audited says that all of a partition was read, from its start to its end: each produce that may have gone there is
// there once or not at all. It judges what only the whole log shows.
func (c *Checker) Audited(topic OpID, number int32, start, end int64) {
	_, p := c.part(topic, number)
	if c.damaged || c.violation != "" {
		return
	}
	if int64(len(p.slots)) > end {
		c.fail("K1", "a partition lost its end", topic, int64(len(p.slots)), end)
		return
	}
	for o := start; o < end; o++ {
		if o >= int64(len(p.slots)) || p.slots[o] == 0 {
			c.fail("K16", "an offset without a record", topic, o, end)
			return
		}
	}
	c.order(topic, p)
}

// order judges that batches of one producer lie in the order of their sequences.
func (c *Checker) order(topic OpID, p *partition) {
	type last struct {
		id       int64
		epoch    int16
		sequence int32
	}
	var seen [16]last
	n := 0
	for _, v := range p.slots {
		x := &c.ops[v.Op()]
		if v == 0 || x.Producer < 0 || v&(1<<valueBits-1) != 0 {
			continue
		}
		i := 0
		for i < n && seen[i].id != x.Producer {
			i++
		}
		switch {
		case i == n && n == len(seen):
			return
		case i == n:
			n++
		case x.Epoch < seen[i].epoch || x.Epoch == seen[i].epoch && x.Sequence <= seen[i].sequence:
			c.fail("K5", "batches of a producer lie out of order", topic, int64(seen[i].sequence), int64(x.Sequence))
			return
		}
		seen[i] = last{x.Producer, x.Epoch, x.Sequence}
	}
}
