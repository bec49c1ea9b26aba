package sim

import (
	"encoding/binary"
	"math"

	"varve/core"
	"varve/core/segment"
	"varve/core/topics"
	"varve/model/node"
)

// leaderless is a partition whose log ended under a policy that does not sync each commit: what was not proven to be on
// the device goes with the power.
type leaderless struct {
	place  int32
	topic  node.OpID
	part   int32
	proven core.Offset
}

// topicOf returns the topic of a partition, and its number; 0 while the topic is being made: then nobody has asked for
// anything yet.
func (b *broker) topicOf(u *unit) (topic node.OpID, part int32) {
	_, incarnation, part := b.paths.parts(u.place)
	if t := b.machine.State().Find(incarnation); u.topic == 0 && t != nil { // kept: the catalogue may be read anew
		u.topic = node.OpID(binary.LittleEndian.Uint32(t.ID[:]))
	}
	return u.topic, part
}

// topicConfig applies what a topic sets, as the node does.
func (b *broker) topicConfig(u *unit, c *core.Config) {
	_, incarnation, _ := b.paths.parts(u.place)
	t := b.machine.State().Find(incarnation)
	if t == nil {
		return
	}
	if n, ok := topics.Number(t.Config, topics.RetentionBytes); ok {
		c.RetentionBytes = n
	}
	if n, ok := topics.Number(t.Config, topics.RetentionMs); ok {
		c.RetentionAge = n * millisecond
	}
}

// checkOpened tells the checker of a partition's log that has just been opened.
func (b *broker) checkOpened(u *unit) {
	if u.slot == catalogueUnit || u.leads {
		return
	}
	b.damaged()
	u.leads, u.start = true, u.log.Start()
	for i := range b.leaders {
		if b.leaders[i].place == u.place {
			b.leaders = append(b.leaders[:i], b.leaders[i+1:]...)
			break
		}
	}
	topic, part := b.topicOf(u)
	if topic == 0 {
		return
	}
	if b.check.Leads(topic, part, u.log.End(), int32(u.log.Epoch())) && !b.damaged() {
		b.w.res.Marks.add(MarkEndLost)
	}
	if b.retains { // a start that was saved when its life ended, which nobody saw
		b.check.Retained(topic, part, u.start, math.MaxInt64)
	}
}

// leaderless tells the checker that a partition's log has ended; unsynced: a sync of it has failed, so that what it did
// not prove may be gone with no loss of power.
func (b *broker) leaderless(u *unit, unsynced bool) {
	leads := u.leads
	u.leads = false
	topic, part := b.topicOf(u)
	if !leads || topic == 0 || u.syncing == segment.OnCommit {
		return
	}
	x := leaderless{u.place, topic, part, u.log.Frontier()}
	if unsynced {
		b.check.Unproven(x.topic, x.part, x.proven)
	}
	b.leaders = append(b.leaders, x)
}

// retained judges that retention has let go of no more than the policy says: without what went there are still so many
// bytes, or it is old enough.
func (b *broker) retained(u *unit) {
	if !u.leads {
		return
	}
	topic, part := b.topicOf(u)
	if u.log.Start() == u.start {
		return
	}
	u.start = u.log.Start()
	if topic == 0 || u.start <= b.check.Given(topic, part) {
		return
	}
	made := int64(-1)
	switch now := b.w.clock.now().Wall; {
	case u.keepBytes != core.Unlimited && u.log.Stats().SegmentBytes >= u.keepBytes, u.keepAge != core.Unlimited && b.clocks:
		made = math.MaxInt64
	case u.keepAge != core.Unlimited:
		made = now - u.keepAge
	}
	b.w.res.Marks.add(MarkLetGo)
	b.check.Retained(topic, part, u.start, made)
}
