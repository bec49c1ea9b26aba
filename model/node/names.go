package node

// state is what a name stands for, over some time.
type state struct {
	topic      OpID // 0: nothing
	partitions int32
	until      Stamp // in the past of a config: it may have lasted so long
}

// config is one way in which things may have gone so far.
type config struct {
	now  state
	did  uint64 // open calls that have taken effect
	past [pastMax]state
	old  int8  // past[:old], oldest first: as far as open calls may have seen them
	lost Stamp // there were others before, which lasted until then
}

// pastMax bounds the states that are kept for open calls. A call that may have seen an older one is
// judged no more.
const pastMax = 6

// configsMax bounds the ways that are followed. Beyond it everything is allowed.
const configsMax = 256

// name is what is known of one name.
type name struct {
	configs []config
	calls   [64]OpID // open calls by bit; 0: free
	lost    bool     // too many ways
}

func (n *name) reset() {
	n.configs = append(n.configs[:0], config{})
	n.calls, n.lost = [64]OpID{}, false
}

func (n *name) open(c *Checker, id OpID) {
	for i := range n.calls {
		if n.calls[i] == 0 {
			n.calls[i], c.ops[id].bit = id, int8(i)
			return
		}
	}
	n.lost = true
}

// close takes a call out that has ended.
func (n *name) close(id OpID, bit int8) {
	if bit >= 0 && n.calls[bit] == id {
		n.calls[bit] = 0
	}
	open := false
	for _, x := range n.calls {
		open = open || x != 0
	}
	for i := range n.configs {
		if n.configs[i].did &^= 1 << bit; !open {
			n.configs[i].past, n.configs[i].old, n.configs[i].lost = [pastMax]state{}, 0, 0
		}
	}
	n.merge()
}

// merge drops ways that are the same.
func (n *name) merge() {
	kept := n.configs[:0]
	for i := range n.configs {
		x, twice := n.configs[i], false
		for j := range kept {
			twice = twice || kept[j] == x
		}
		if !twice {
			kept = append(kept, x)
		}
	}
	n.configs = kept
}

// apply lets an open call take effect; false if it would be refused.
func (x *config) apply(c *Checker, id OpID) bool {
	o := &c.ops[id]
	to := x.now
	switch {
	case o.Kind == Create && x.now.topic == 0:
		to = state{topic: id, partitions: o.Partitions}
	case o.Kind == Delete && x.now.topic != 0:
		to = state{}
	case o.Kind == Grow && x.now.topic != 0 && x.now.partitions < o.Partitions:
		to.partitions = o.Partitions
	default:
		return false
	}
	if x.old == pastMax {
		x.lost = x.past[0].until
		copy(x.past[:], x.past[1:])
		x.old--
	}
	before := x.now
	before.until = c.stamp
	x.past[x.old] = before
	x.old++
	x.now = to
	x.did |= 1 << o.bit
	return true
}

// reach adds to the ways all those in which open calls take effect now.
func (n *name) reach(c *Checker) {
	for i := 0; i < len(n.configs); i++ {
		for bit, id := range n.calls {
			if id == 0 || c.ops[id].Kind > Grow || n.configs[i].did>>bit&1 != 0 {
				continue
			}
			x := n.configs[i]
			if !x.apply(c, id) {
				continue
			}
			known := false
			for j := range n.configs {
				known = known || n.configs[j] == x
			}
			if !known {
				n.configs = append(n.configs, x)
			}
			if len(n.configs) > configsMax {
				n.lost = true
				return
			}
		}
	}
}

// settle keeps the ways in which a call could be answered like this.
func (n *name) settle(c *Checker, id OpID, a *Answer) {
	if n.lost {
		return
	}
	if n.reach(c); n.lost { // not all ways are known
		return
	}
	kept := c.work[:0]
	for i := range n.configs {
		if x := &n.configs[i]; x.allows(&c.ops[id], id, a) {
			kept = append(kept, *x)
		}
	}
	if len(kept) > 0 || c.damaged {
		if c.damaged && len(kept) == 0 {
			n.lost = true
			return
		}
		c.work = n.configs
		n.configs = kept
		return
	}
	c.work = kept
	c.refuse(n, id, a)
}

// refuse says what no way allows.
func (c *Checker) refuse(n *name, id OpID, a *Answer) {
	now := n.configs[0].now
	why := [...]string{
		Create: "the answer to a create fits no order of what was asked", Delete: "the answer to a delete fits no order of what was asked",
		Grow: "the answer about more partitions fits no order of what was asked", Look: "a request met a topic that the name cannot stand for",
	}[min(c.ops[id].Kind, Look)]
	want, found := int64(now.topic), int64(a.Topic)
	check := "N1" // acked topics are there
	switch {
	case now.topic == 0 && a.Result != Missing:
		check = "N2" // what was deleted stays away
	case now.topic != 0 && a.Topic != 0 && a.Topic != now.topic:
		check = "N3" // another topic of the same name
	case a.Topic == now.topic && a.Result == Done:
		want, found = int64(now.partitions), int64(a.Partitions)
	}
	if a.Result != Done {
		found = -int64(a.Result)
	}
	c.fail(check, why, id, want, found)
}

// allows reports whether in this way a call can be answered like this.
func (x *config) allows(o *op, id OpID, a *Answer) bool {
	did := o.Kind <= Grow && x.did>>o.bit&1 != 0
	switch {
	case a.Result == Failed:
		return !did
	case a.Result == Done && o.Kind == Create:
		return did && a.Topic == id && a.Partitions == o.Partitions
	case a.Result == Done && o.Kind <= Grow:
		return did
	case did:
		return false
	}
	if x.now.fits(o, a) || x.lost >= o.call {
		return true
	}
	for i := range x.old {
		if s := &x.past[i]; s.until >= o.call && s.fits(o, a) {
			return true
		}
	}
	return false
}

// fits reports whether a state explains an answer that changed nothing.
func (s *state) fits(o *op, a *Answer) bool {
	switch a.Result {
	case Exists:
		return s.topic != 0
	case Missing:
		return s.topic == 0
	case Refused:
		if o.Kind == Grow {
			return s.topic != 0 && s.partitions >= o.Partitions
		}
		return s.topic != 0 && s.partitions <= o.Partition
	}
	if s.topic == 0 || s.topic != a.Topic {
		return false
	}
	if o.Kind == Look {
		return s.partitions == a.Partitions
	}
	return s.partitions > o.Partition
}

// doubt adds the ways in which a call has taken effect that nobody will hear of.
func (n *name) doubt(c *Checker, id OpID) {
	if !n.lost {
		n.reach(c)
	}
}
