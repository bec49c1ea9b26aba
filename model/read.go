package model

// Agree compares the log's own watermarks with the reference log's. Call it after each operation,
// once outcomes are drained, in a life that serves.
func (c *Checker) Agree(now Time, start, end, committed Offset) {
	if !c.event(now) {
		return
	}
	poisoned := len(c.lives) > 0 && c.lives[c.current()].poisoned
	switch {
	case end != c.End() && !poisoned:
		c.fail(K17, "the log's end is not that of the reference log", 0, end, c.End(), end)
	case start != c.start:
		c.fail(K17, "the log's Start is not that of the reference log", 0, start, c.start, start)
	case committed < c.committed:
		c.fail(K17, "Committed went back", 0, committed, c.committed, committed)
	default:
		c.raise(committed)
	}
}

// raise takes a Committed that the log claims now.
func (c *Checker) raise(committed Offset) {
	switch {
	case committed > c.End():
		c.fail(K17, "Committed is above the end", 0, committed, c.End(), committed)
	case committed > c.proven && c.policy() == OnCommit:
		c.fail(K17, "Committed is above what the device holds", 0, committed, c.proven, committed)
	}
	c.committed = max(c.committed, min(committed, c.End()))
}

// TailSeen says that a client looked at Committed between call and now.
func (c *Checker) TailSeen(now Time, client int32, call Stamp, committed Offset) {
	if !c.event(now) {
		return
	}
	c.tail(client, call, committed)
}

func (c *Checker) tail(client int32, call Stamp, committed Offset) {
	c.raise(committed)
	if c.waits && committed < c.recovered {
		return // the log does not know yet what is committed, and whoever reads waits
	}
	c.linear.Tail(committed, call, c.stamp)
	c.seen = max(c.seen, min(committed, c.End()))
	c.history.tail(c, client, call, committed)
}

// ReaderStart says that a reader begins, or begins again, at a position. Readers have small numbers.
// A follow reader waits for more at the end.
func (c *Checker) ReaderStart(now Time, id int32, from Position, follow bool) {
	c.event(now)
	for int(id) >= len(c.readers) {
		c.readers = append(c.readers, reader{})
	}
	c.readers[id] = reader{pos: from, begun: true, follow: follow}
}

func (c *Checker) reader(id int32) *reader {
	c.who = id
	if id < 0 || int(id) >= len(c.readers) || !c.readers[id].begun {
		panic("model: event of a reader that was not started")
	}
	return &c.readers[id]
}

// Read says that a reader got a record, by a call that began at call: when the reader looked at the
// log's Start and Committed and planned.
func (c *Checker) Read(now Time, id int32, call Stamp, o Offset, e Epoch, v Value) {
	if !c.event(now) {
		return
	}
	r := c.reader(id)
	switch {
	case o != r.pos.Offset && r.follow:
		c.fail(K15, "follow did not deliver the next record", 0, o, r.pos.Offset, o)
	case o != r.pos.Offset:
		c.fail(K16, "a reader did not get the next record", 0, o, r.pos.Offset, o)
	case c.diverged(r.pos):
		c.fail(K15, "a record was served behind one that is no longer in the log", 0, o, int64(c.epochBefore(o)), int64(r.pos.Epoch))
	case o < c.start && call > c.startStamp:
		c.fail(K14, "a record below Start was served", 0, o, c.start, o)
	}
	c.matchSeen(o, e, v)
	if o >= c.committed {
		c.fail(K2, "a reader got a record at or above Committed", 0, o, c.committed, o)
	}
	r.pos = Position{o + 1, e}
	c.seen = max(c.seen, min(o+1, c.End()))
	c.linear.Seen(o, c.stamp)
	c.history.read(c, id, call, o, v)
}

func (c *Checker) epochBefore(o Offset) Epoch {
	_, e := c.At(o - 1)
	return e
}

// ReadEnd says that a reader found nothing at its position, by a call that began at call and saw
// this Committed.
func (c *Checker) ReadEnd(now Time, id int32, call Stamp, committed Offset) {
	if !c.event(now) {
		return
	}
	r := c.reader(id)
	if r.pos.Offset < committed {
		if r.follow {
			c.fail(K15, "follow stopped below Committed", 0, r.pos.Offset, committed, r.pos.Offset)
		} else {
			c.fail(K16, "a reader found nothing below Committed", 0, r.pos.Offset, committed, r.pos.Offset)
		}
	}
	if c.diverged(r.pos) {
		c.fail(K15, "a reader waits behind a record that is no longer in the log", 0, r.pos.Offset,
			int64(c.epochBefore(r.pos.Offset)), int64(r.pos.Epoch))
	}
	c.tail(id, call, committed)
}

// ReadTrimmed says that a reader was told that its position is below this Start.
func (c *Checker) ReadTrimmed(now Time, id int32, start Offset) {
	if !c.event(now) {
		return
	}
	r := c.reader(id)
	switch {
	case r.pos.Offset >= start:
		c.fail(K14, "a position at or above Start was called trimmed", 0, r.pos.Offset, start, r.pos.Offset)
	case start > c.start:
		c.fail(K14, "a reader was told of a Start that nobody had seen", 0, start, c.start, start)
	}
}

// ReadDiverged says that a reader was told that its position diverged.
func (c *Checker) ReadDiverged(now Time, id int32) {
	if !c.event(now) {
		return
	}
	if r := c.reader(id); !c.diverged(r.pos) {
		c.fail(K15, "a reader was told to have diverged from a record that is in the log", 0,
			r.pos.Offset, int64(c.epochBefore(r.pos.Offset)), int64(r.pos.Epoch))
	}
}

// ReadCorrupt says that a reader was told of damage at an offset. After a failed sync, what was not
// proven may be unreadable under periodic and none.
func (c *Checker) ReadCorrupt(now Time, id int32, o Offset) {
	if !c.event(now) {
		return
	}
	c.reader(id)
	lost := len(c.lives) > 0 && c.lives[c.current()].poisoned && c.policy() != OnCommit && o >= c.proven
	if !lost && !c.damagedIn(o, o+1) {
		c.fail(K11, "damage was reported where there is none", 0, o, 0, 1)
	}
}

// ReaderDone says that the log is quiet and the reader got all it could: a follow must be complete.
func (c *Checker) ReaderDone(now Time, id int32) {
	if !c.event(now) {
		return
	}
	if r := c.reader(id); r.follow && r.pos.Offset < c.committed {
		c.fail(K15, "follow is not complete", 0, r.pos.Offset, c.committed, r.pos.Offset)
	}
}

// matches reports whether the reference log has just this record.
func (c *Checker) matches(o Offset, e Epoch, v Value) bool {
	want, epoch := c.At(o)
	return v == want && e == epoch && v != 0
}

// matchSeen judges a record that a reader got.
func (c *Checker) matchSeen(o Offset, e Epoch, v Value) {
	if c.matches(o, e, v) {
		return
	}
	id := c.holder(o)
	switch {
	case c.damagedIn(o, o+1):
		c.fail(K11, "damaged bytes were served", id, o, int64(c.value(o)), int64(v))
	case o < c.seen:
		c.fail(K2, "a record that a reader saw has changed", id, o, int64(c.value(o)), int64(v))
	case id != 0 && c.ops[id].state == opAcked:
		c.fail(K1, "an acked record was served with other content", id, o, int64(c.value(o)), int64(v))
	default:
		c.stranger(o, e, v)
	}
}

// stranger says where a record comes from that the reference log does not have there.
func (c *Checker) stranger(o Offset, e Epoch, v Value) {
	for i := 1; i < len(c.ops); i++ {
		p := &c.ops[i]
		if p.origin != v.Op() || p.duplicate || p.epoch != e || o-p.first != Offset(v.Index()) ||
			v.Index() >= int(p.records) || p.end == p.first {
			continue
		}
		switch p.state {
		case opFailed:
			c.fail(K23, "a record of an append that failed for sure is in the log", OpID(i), o, int64(c.value(o)), int64(v))
			return
		case opOut, opLost:
			c.fail(K7, "a record of an append that was found to be out is in the log", OpID(i), o, int64(c.value(o)), int64(v))
			return
		}
	}
	c.fail(K4, "a record is in the log that was not put there", c.holder(o), o, int64(c.value(o)), int64(v))
}

func (c *Checker) holder(o Offset) OpID {
	if o < 0 || o >= c.End() {
		return 0
	}
	return c.log[o]
}

func (c *Checker) value(o Offset) Value {
	v, _ := c.At(o)
	return v
}
