package node

import "math"

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
	losses []loss
	proven int64 // what lies at it and above may be gone when the next leader begins; -1: nothing may be
	kept   int64 // what the leader before began with: it is never lost
}

// loss is that a leader began with less than the one before had shown.
type loss struct {
	at    Stamp
	end   int64 // what had lain at it and above is gone
	epoch int32 // of the leader that began there
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
	*p = partition{topic: topic, number: number, slots: p.slots[:0], epochs: p.epochs[:0], floors: p.floors[:0], losses: p.losses[:0], proven: -1}
	c.used++
	return int32(c.used - 1), p
}

// at returns what was certain of a partition at some time, and was not lost since.
func (p *partition) at(t Stamp) floor {
	f := p.then(t)
	f.end = min(f.end, p.since(t))
	return f
}

// since returns below which offset nothing was lost since some time.
func (p *partition) since(t Stamp) int64 {
	end := int64(math.MaxInt64)
	for i := len(p.losses) - 1; i >= 0 && p.losses[i].at > t; i-- {
		end = min(end, p.losses[i].end)
	}
	return end
}

// overtaken reports whether what a client has read up to an offset, the last of it from a leader of an epoch, was
// lost in part.
func (p *partition) overtaken(t Stamp, offset int64, epoch int32) bool {
	for i := range p.losses {
		if x := &p.losses[i]; x.at <= t && epoch >= 0 && epoch < x.epoch && offset > x.end {
			return true
		}
	}
	return false
}

// then returns what was certain at some time.
func (p *partition) then(t Stamp) (f floor) {
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
	f := p.then(now)
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
	p.raise(c.stamp, min(end, p.since(c.ops[id].call)), 0, epoch)
}

// Unproven says that a partition has no leader any more, and that the policy allows to lose what was not proven to be on
// the device: what lies at an offset and above.
func (c *Checker) Unproven(topic OpID, number int32, proven int64) {
	_, p := c.part(topic, number)
	if p.proven < 0 || proven < p.proven {
		p.proven = proven
	}
}

// Leads says that a leader of an epoch begins with the records below an offset. What it has is on the device. It
// reports whether something is lost that was acked or read.
func (c *Checker) Leads(topic OpID, number int32, end int64, epoch int32) (lost bool) {
	c.stamp++
	_, p := c.part(topic, number)
	f := p.then(c.stamp)
	owed := f.end
	if p.proven >= 0 {
		owed = min(owed, max(p.proven, p.kept))
	}
	if end < owed && !c.damaged {
		c.fail("K1", "a partition ends before what was acked or read, and was to be kept", topic, owed, end)
	}
	if p.proven >= 0 || end < f.end { // answers that are on their way may tell of more
		c.cut(topic, p, end)
		p.losses = append(p.losses, loss{c.stamp, end, epoch})
		p.floors = append(p.floors, floor{c.stamp, min(f.end, end), f.start, f.epoch})
	}
	p.proven, p.kept = -1, end
	return end < f.end
}

// cut forgets what lay at an offset and above.
func (c *Checker) cut(topic OpID, p *partition, end int64) {
	if end >= int64(len(p.slots)) {
		return
	}
	for _, v := range p.slots[end:] {
		if v == 0 {
			continue
		}
		x := &c.ops[v.Op()]
		if x.bound && x.at < end && !c.damaged {
			c.fail("K3", "a partition ends inside a batch", topic, x.at, end)
		}
		x.bound = false
	}
	p.slots, p.epochs = p.slots[:end], p.epochs[:end]
}

// Retained says that the policy let go of a partition's records below an offset: of all that were made before some
// time.
func (c *Checker) Retained(topic OpID, number int32, before, made int64) {
	_, p := c.part(topic, number)
	for o := p.given; o < min(before, int64(len(p.slots))) && !c.damaged; o++ {
		if x := &c.ops[p.slots[o].Op()]; p.slots[o] != 0 && x.Made > made {
			c.fail("K14", "retention let go of a record before its time", topic, made, x.Made)
			break
		}
	}
	p.given = max(p.given, before)
}

// Given returns below which offset a partition's records may be gone.
func (c *Checker) Given(topic OpID, number int32) int64 {
	_, p := c.part(topic, number)
	return p.given
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

// strayed judges that a client is told that it reads where nothing is: what it has read was given up, or lost.
func (c *Checker) strayed(id OpID, a *Answer) {
	o := &c.ops[id]
	_, p := c.part(a.Topic, o.Partition)
	if f := p.at(o.call); !c.damaged && a.Offset >= p.given && a.Offset <= f.end && !p.overtaken(c.stamp, a.Offset, a.Stood) {
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
	for i := p.given; i < min(int64(len(p.slots)), p.since(o.call)); i++ {
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
	if a.Offset+int64(o.Records) > p.since(o.call) { // it was there, and is lost since
		c.ops[origin].acked = true
		return
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
	case x.bound && (x.part != at || x.at != first) && !c.damaged && !c.elsewhere(x, at) && !c.expired(x, at):
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

// expired reports whether a batch was given up, and sent again: a log whose last files go knows nothing of the producers
// whose batches they held once it is opened again.
func (c *Checker) expired(x *op, at int32) bool {
	return x.again && x.part == at && x.at+int64(x.Records) <= c.parts[at].given
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
	case p.overtaken(o.call, a.Offset, a.Stood):
		c.fail("N8", "a client goes on behind records that are lost, and is not told", id, a.Offset, a.Next)
	}
	p.raise(c.stamp, min(a.Next, p.since(o.call)), 0, a.Epoch)
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
	for _, v := range p.slots[min(p.given, int64(len(p.slots))):] { // see expired
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
