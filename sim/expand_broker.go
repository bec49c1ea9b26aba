package sim

import (
	"varve/core"
	"varve/core/segment"
)

// nodeHeader draws what happens to a node. What damages a disk stays out of most of these seeds: with it
// an open may refuse, and the seed proves less.
func (x *expander) nodeHeader() {
	h := &x.s.Header
	h.Node = true
	x.topics = x.pick(1, 1, 2, 2, 3, topicsMax)
	if x.percent(85) {
		h.Faults &^= damage
	}
	if h.Capacity > 0 {
		h.Capacity *= 6
	}
	x.turn(SwReplies, 60)
	x.turn(SwDeleteRecords, 40)
	x.set(SwProducers)
	x.gap = x.pick(20, 60, 150, 300, 600, 1000) * microsecond
	h.Clients = x.r.Between(2, 6)
	h.Switches &^= 1<<SwTrim | 1<<SwRoll | 1<<SwZeros | 1<<SwBig
}

// nodeConfig draws the configuration of a node's logs.
func (x *expander) nodeConfig(c *core.Config) {
	c.Sync = segment.SyncMode(x.pick(0, 0, 0, 0, 0, 0, 1, 1, 2))
	c.RetentionBytes, c.RetentionAge = core.Unlimited, core.Unlimited
	if x.percent(15) {
		c.RetentionBytes = x.pick(core.Unlimited, 2048, 8192)
		c.RetentionAge = x.pick(core.Unlimited, 5*millisecond, 50*millisecond)
	}
	c.LocalRetentionBytes, c.LocalRetentionAge = core.Unlimited, core.Unlimited
	c.SegmentBytes = max(c.SegmentBytes, 2048)
	c.MaxBatchBytes = 16 << 10
	c.PendingBytes = max(c.PendingBytes, c.MaxBatchBytes)
	c.ProducersMax = 64
	c.AllowDamaged, c.RepairChecksumTail = false, false
}

// nodeTopics makes the first topics, as a rule.
func (x *expander) nodeTopics() {
	for name := range x.topics {
		if x.percent(80) {
			x.emit(Event{Kind: TopicCreate, Client: uint8(name % x.s.Header.Clients), A: name, B: x.pick(1, 1, 1, 2, 2, 3)})
			x.at += x.pick(0, 1, 2) * max(0, x.openTime()-millisecond)
		}
	}
}

// nodeOperation is a call of a node's client.
func (x *expander) nodeOperation(client uint8) {
	e := Event{Client: client, A: x.r.Below(x.topics), B: x.r.Below(x.pick(1, 2, 2, 3))}
	switch kind := x.r.Below(100); {
	case kind < 15:
		e.Kind, e.B = TopicCreate, x.pick(1, 1, 1, 2, 2, 3)
	case kind < 22:
		e.Kind, e.B = TopicDelete, 0
	case kind < 27:
		e.Kind, e.B = TopicGrow, x.r.Between(2, 3)
	case kind < 29:
		e.Kind, e.B = TopicConfigure, x.r.Below(int64(len(configurations)))
	case kind < 70:
		e.Kind, e.C = Produce, x.r.Between(8, 56)
		if x.percent(30) {
			e.C |= x.r.Between(1, 3) << 16
		}
		if x.percent(60) {
			e.D = 1 + x.r.Below(producersMax)
		}
	case kind < 85:
		e.Kind, e.C, e.D = Fetch, min(x.r.Below(1600), 1001), x.pick(512, 4096, 16384)
	case kind < 92:
		e.Kind, e.B = Metadata, 0
	case kind < 95:
		e.Kind, e.C = EpochEnds, max(0, x.r.Between(-4, 6))
	case kind < 97:
		if e.Kind = ListEnds; x.s.Header.On(SwDeleteRecords) {
			e.Kind, e.C = DeleteRecords, min(x.r.Below(1100), 1001)
		}
	default:
		e.Kind = ListEnds
	}
	x.emit(e)
}
