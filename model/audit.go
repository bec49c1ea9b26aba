package model

// AuditBegin starts a look at everything a recovered log holds, from Start on, by any means: a
// reader, or a decoder of its own. An audit is no reader: it may see beyond Committed.
func (c *Checker) AuditBegin(now Time) {
	if c.event(now) {
		c.auditNext, c.auditing = c.start, true
	}
}

// AuditRecord says that the log holds this record. Records come in offset order.
func (c *Checker) AuditRecord(now Time, o Offset, e Epoch, v Value) {
	if !c.event(now) || !c.auditing {
		return
	}
	if o != c.auditNext {
		c.fail(K3, "the recovered log has a hole or a repetition", c.holder(o), o, c.auditNext, o)
	}
	c.auditNext = o + 1
	if c.matches(o, e, v) {
		return
	}
	id := c.holder(o)
	switch {
	case c.damagedIn(o, o+1):
		c.fail(K11, "damaged bytes were served", id, o, int64(c.value(o)), int64(v))
	case id != 0 && c.ops[id].state == opAcked:
		c.fail(K1, "an acked record has other content after recovery", id, o, int64(c.value(o)), int64(v))
	case o < c.seen:
		c.fail(K2, "a record that a reader saw has changed after recovery", id, o, int64(c.value(o)), int64(v))
	default:
		c.stranger(o, e, v)
	}
}

// AuditDamage says that the audit was told of damage to [first, end) and went on behind it.
func (c *Checker) AuditDamage(now Time, first, end Offset) {
	if !c.event(now) || !c.auditing {
		return
	}
	if first != c.auditNext || end <= first {
		c.fail(K3, "the recovered log has a hole or a repetition", 0, first, c.auditNext, first)
	}
	for o := first; o < end; o++ {
		if !c.damagedIn(o, o+1) {
			c.fail(K11, "damage was reported where there is none", c.holder(o), o, 0, 1)
			break
		}
	}
	c.auditNext = end
}

// AuditEnd says that the audit found nothing more. What it looked at, the log or one tier of it, has to
// end there.
func (c *Checker) AuditEnd(now Time, end Offset) {
	if !c.event(now) || !c.auditing {
		return
	}
	c.auditing = false
	if c.auditNext != end {
		c.fail(K3, "the recovered log does not end where it said", 0, c.auditNext, end, c.auditNext)
	}
}
