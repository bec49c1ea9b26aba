package model

// Copy makes the checker what another one is, so that a run can be taken on from the same point in
// more than one way. Which checks are off stays as it is. It keeps memory.
func (c *Checker) Copy(from *Checker) {
	to := *from
	to.off = c.off
	to.ops = append(c.ops[:0], from.ops...)
	to.log = append(c.log[:0], from.log...)
	to.lives = append(c.lives[:0], from.lives...)
	to.lineage = append(c.lineage[:0], from.lineage...)
	to.damages = append(c.damages[:0], from.damages...)
	to.readers = append(c.readers[:0], from.readers...)
	to.linear = Linear{
		call: append(c.linear.call[:0], from.linear.call...),
		tail: append(c.linear.tail[:0], from.linear.tail...),
		ret:  append(c.linear.ret[:0], from.linear.ret...),
	}
	to.history = History{
		Calls:  append(c.history.Calls[:0], from.history.Calls...),
		Values: append(c.history.Values[:0], from.history.Values...),
		Final:  append(c.history.Final[:0], from.history.Final...),
	}
	*c = to
}

// Promises identifies all that a log must keep from here on, should the process end now and the
// device alone survive, or with lossy false what the kernel shows: which records it holds and may
// hold, what of them it owes, who owns them, how far Start may be, where readers stand, and how many
// appends there were, by which the next one's values are named. After equal
// promises the same log is judged alike, but for K6, which also knows the order of calls.
func (c *Checker) Promises(lossy bool) uint64 {
	h := mixed(fnvOffset, uint64(len(c.ops)))
	was := c.lossy
	c.lossy = true
	owed, _ := c.owed()
	h = mixed(h, uint64(owed))
	c.lossy = was || lossy
	owed, _ = c.owed()
	h = mixed(h, uint64(owed))
	c.lossy = was
	for o := Offset(0); o < c.End(); {
		p := &c.ops[c.log[o]]
		h = mixed(mixed(h, uint64(c.log[o])), uint64(p.epoch)<<32|uint64(p.records))
		o = p.end
	}
	for _, w := range [...]Offset{c.acked, c.seen, c.committed, c.proven, c.recovered, c.start, c.trimTo, c.retainTo} {
		h = mixed(h, uint64(w))
	}
	for i := range c.lineage {
		h = mixed(h, uint64(c.lineage[i].epoch)<<32|uint64(c.lineage[i].first))
	}
	if n := c.current(); n >= 0 {
		l := &c.lives[n]
		h = mixed(h, uint64(l.epoch)<<8|uint64(l.policy))
	}
	for i := range c.readers {
		r := &c.readers[i]
		h = mixed(h, uint64(r.pos.Offset)<<32|uint64(r.pos.Epoch))
	}
	return h
}

func mixed(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
