package model

import "slices"

// Append says that a client calls the log. The id names the call, and the values of its records
// unless it is a retry.
func (c *Checker) Append(now Time, a Append) OpID {
	c.event(now)
	id := OpID(len(c.ops))
	c.ops = append(c.ops, op{
		call: c.stamp, returned: Never, floor: c.acked, origin: id, client: a.Client,
		records: a.Records, life: c.current(),
		producer: a.Producer.ID, room: a.Room,
	})
	if a.Retry > 0 && a.Retry < id {
		c.ops[id].origin = c.ops[a.Retry].origin
	}
	return id
}

// Accepted says that the log took the append and gave it a ticket.
func (c *Checker) Accepted(now Time, id OpID, t Ticket) {
	if !c.event(now) {
		return
	}
	p := c.op(id)
	if p.state != opCalled {
		c.fail(K4, "an append was accepted after it had an answer", id, t.First, int64(opCalled), int64(p.state))
		return
	}
	p.state, p.cohort, p.life, p.epoch = opAccepted, t.Cohort, c.current(), t.Epoch
	p.first, p.end, p.duplicate = t.First, t.End, t.Duplicate
	if t.End-t.First != Offset(p.records) {
		c.fail(K17, "a ticket's span does not hold the batch's records", id, t.First, int64(p.records), t.End-t.First)
		return
	}
	if t.Duplicate {
		c.acceptedDuplicate(id, p)
		return
	}
	origin := &c.ops[p.origin]
	switch {
	case t.First < p.floor:
		c.fail(K5, "an append got an offset below one acked before it was called", id, t.First, p.floor, t.First)
	case t.First != c.End():
		c.fail(K16, "an append did not get the next offset", id, t.First, c.End(), t.First)
	case len(c.lives) == 0 || t.Epoch != c.lives[c.current()].epoch:
		c.fail(K17, "a ticket's epoch is not that of the life", id, t.First, c.epoch(), int64(t.Epoch))
	case p.producer != 0 && origin.holder != 0 && c.remembered(p, origin.holder):
		c.fail(K4, "a batch that is in the log was appended again", id, t.First, c.ops[origin.holder].first, t.First)
	}
	if t.First != c.End() {
		return // only with the check off: it stays out of the reference log
	}
	for range p.records {
		c.log = append(c.log, id)
	}
	c.linear.Append(p.records, p.call)
	p.inLog, origin.holder = true, id
}

// remembered reports whether the log must know a batch that is in it, by the holder of its records: since
// then no more others than there is room for have come between one batch of its producer and the next. A
// batch that failed is not in the log, and makes nobody forgotten.
func (c *Checker) remembered(p *op, holder OpID) bool {
	if p.room == 0 {
		return true
	}
	var others [8]int64
	n, room := int32(0), min(p.room, int32(len(others)))
	for o := len(c.log) - 1; o >= 0; o-- {
		switch id := c.ops[c.log[o]].producer; {
		case c.log[o] == holder:
			return n < room
		case id == p.producer:
			n = 0
		case id != 0 && !slices.Contains(others[:n], id):
			others[n] = id
			if n++; n >= room {
				return false
			}
		}
	}
	return false
}

func (c *Checker) epoch() int64 {
	if len(c.lives) == 0 {
		return 0
	}
	return int64(c.lives[c.current()].epoch)
}

func (c *Checker) acceptedDuplicate(id OpID, p *op) {
	p.target = c.ops[p.origin].holder
	for t := &c.ops[p.target]; p.target != 0 && t.first != p.first && c.damagedIn(t.first, t.end); t = &c.ops[p.target] {
		p.target = c.olderHolder(p.origin, p.target) // what is damaged is not remembered
	}
	t := &c.ops[p.target]
	switch {
	case p.target == 0:
		c.fail(K4, "an append was taken for a duplicate of a batch that is not in the log", id, p.first, -1, p.first)
	case t.first != p.first || t.end != p.end:
		c.fail(K4, "a duplicate got another span than its original", id, p.first, t.first, p.first)
	}
}

// Acked says that the client was told: it is in the log, at its ticket's span.
func (c *Checker) Acked(now Time, id OpID) {
	if !c.event(now) {
		return
	}
	p := c.op(id)
	switch p.state {
	case opAcked, opUnknown:
		c.fail(K4, "an append was acked after another outcome", id, p.first, int64(p.state), int64(opAcked))
		return
	case opCalled:
		c.fail(K4, "an append was acked without a ticket", id, -1, 0, 1)
		return
	case opFailed:
		c.fail(K23, "an append was acked after a definite failure", id, p.first, int64(opFailed), int64(opAcked))
		return
	case opOut, opLost:
		if !c.ackedLate(id, p) {
			c.fail(K7, "an append was acked after it was found to be out", id, p.first, int64(p.state), int64(opAcked))
		}
		return
	}
	if p.life >= 0 && c.lives[p.life].poisoned {
		c.fail(K9, "an append was acked after a failed sync", id, p.first, 0, 1)
	}
	c.ackedLate(id, p)
	if p.duplicate {
		c.ackedDuplicate(id, p)
		return
	}
	if !c.holds(id, p) {
		return
	}
	c.ackedInPolicy(id, p)
	p.state, p.returned, p.ackTime = opAcked, c.stamp, now
	c.acked = max(c.acked, p.end)
	c.committed = max(c.committed, p.end)
	c.linear.Seen(p.end-1, c.stamp)
	if l := &c.lives[p.life]; p.first < l.firstAcked {
		l.firstAcked = p.first
	}
}

// ackedLate judges an ack by a life that a later one has followed.
func (c *Checker) ackedLate(id OpID, p *op) bool {
	for i := int(p.life) + 1; i < len(c.lives); i++ {
		if l := &c.lives[i]; l.firstAcked < p.end {
			c.fail(K8, "an ack at or above an offset that a later epoch has acked", id, p.first, l.firstAcked, p.end-1)
			return true
		}
	}
	return false
}

// holds reports whether the append's records are in the reference log, where its ticket says.
func (c *Checker) holds(id OpID, p *op) bool {
	if p.inLog && p.end <= c.End() && c.log[p.first] == id {
		return true
	}
	var other OpID
	if p.first >= 0 && p.first < c.End() {
		other = c.log[p.first]
	}
	if other != 0 && c.ops[other].state == opAcked {
		c.fail(K4, "an offset was acked twice", id, p.first, int64(other), int64(id))
	} else {
		c.fail(K1, "an append was acked whose records are not in the log", id, p.first, int64(id), int64(other))
	}
	return false
}

// ackedInPolicy judges whether the policy allows the ack now.
func (c *Checker) ackedInPolicy(id OpID, p *op) {
	l := &c.lives[p.life]
	switch {
	case p.life != c.current():
	case l.policy == OnCommit && p.end > c.proven:
		c.fail(K1, "an append was acked before the device held it", id, p.first, p.end, c.proven)
	case l.policy == Periodic && c.proven < p.first:
		// Acks are owed in order, so the oldest ack not on the device is at the proven end.
		oldest := &c.ops[c.log[c.proven]]
		if oldest.state == opAcked && c.now-oldest.ackTime > 2*l.interval {
			c.fail(K1, "an append was acked while an older ack waited for its sync longer than two intervals",
				id, p.first, 2*l.interval, c.now-oldest.ackTime)
		}
	}
}

func (c *Checker) ackedDuplicate(id OpID, p *op) {
	t := &c.ops[p.target]
	if !t.inLog {
		c.fail(K1, "a duplicate was acked whose original is not in the log", id, p.first, p.first, c.End())
		return
	}
	settled := t.state == opAcked || t.state == opIn || (p.cohort != 0 && p.cohort == t.cohort) ||
		t.state == opUnknown && t.end <= c.committed // another tier has it since
	if !settled && t.end > c.proven {
		c.fail(K1, "a duplicate was acked before its original", id, p.first, p.end, c.proven)
		return
	}
	if c.policy() == OnCommit && t.end > c.proven {
		c.fail(K1, "a duplicate was acked before the device held it", id, p.first, p.end, c.proven)
		return
	}
	p.state, p.returned = opAcked, c.stamp
	c.acked = max(c.acked, t.end)
	c.committed = max(c.committed, t.end)
	c.linear.Seen(t.end-1, c.stamp)
}

// Failed says that the client was told: it is not in the log and never will be. A failure of an
// accepted append fails all that were accepted after it; report those too.
func (c *Checker) Failed(now Time, id OpID) {
	if !c.event(now) {
		return
	}
	p := c.op(id)
	switch p.state {
	case opAcked, opFailed:
		c.fail(K4, "an append had a second outcome", id, p.first, int64(p.state), int64(opFailed))
		return
	case opIn:
		c.fail(K23, "an append failed for sure and is in the log", id, p.first, int64(opIn), int64(opFailed))
		return
	}
	p.state, p.returned = opFailed, c.stamp
	if !p.inLog {
		return
	}
	switch {
	case p.first < c.acked:
		c.fail(K16, "an append failed below one that was acked", id, p.first, c.acked, p.first)
	case p.first < c.seen:
		c.fail(K23, "an append failed for sure after a reader had seen it", id, p.first, c.seen, p.first)
	case p.first < c.committed:
		c.fail(K17, "an append failed below Committed", id, p.first, c.committed, p.first)
	}
	c.cut(p.first)
	c.linear.Drop(p.first)
}

// Unknown says that the client was told: in or out, look after reopening.
func (c *Checker) Unknown(now Time, id OpID) {
	if !c.event(now) {
		return
	}
	p := c.op(id)
	if p.state != opCalled && p.state != opAccepted {
		if p.state == opAcked || p.state == opFailed || p.state == opUnknown {
			c.fail(K4, "an append had a second outcome", id, p.first, int64(p.state), int64(opUnknown))
		}
		return
	}
	p.state = opUnknown
}
