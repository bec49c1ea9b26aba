package sim

import (
	"varve/broker/kafka/verdict"
	"varve/core"
	"varve/model/node"
)

// epochEnd returns what a log says of an epoch.
func (b *broker) epochEnd(u *unit, epoch int32) (core.Epoch, core.Offset) {
	if u.view.Version != u.log.ViewVersion() {
		u.log.FillView(&u.view)
	}
	return u.view.EpochEnd(core.Epoch(max(epoch, 0)), u.log.Committed())
}

// resume lets a fetch go on where clients have got to, if it is still the same topic. It reports false if the
// client is told that it cannot.
func (b *broker) resume(id node.OpID, u *unit) bool {
	w, r := b.w, &b.requests[id]
	s := &b.stands[r.name][r.part]
	if s.topic != r.topic {
		return true
	}
	w.res.Marks.add(MarkStoodAt)
	if s.epoch != int32(u.log.Epoch()) {
		w.res.Marks.add(MarkStoodBefore)
	}
	r.offset, r.stood = s.next, s.epoch
	found, end := b.epochEnd(u, s.epoch)
	code := verdict.Fetch(s.next, u.log.Start(), u.log.Committed(), false)
	if code == verdict.None && !verdict.Diverged(s.next, s.epoch, found, end) {
		return true
	}
	b.stands[r.name][r.part] = stand{epoch: -1}
	b.reply(id, node.Answer{Result: node.Strayed, Topic: r.topic, Offset: r.offset, Stood: r.stood})
	return false
}

// epochEnds asks where the records of an epoch end.
func (b *broker) epochEnds(client uint8, e *Event) {
	name, part, asked := int8(e.A), int32(e.B), int32(e.C)-1
	if s := &b.stands[name][part]; asked < 0 && s.topic != 0 {
		asked = max(s.epoch, 0)
	}
	asked = max(asked, 0)
	id := b.call(client, EpochEnds, node.Request{Kind: node.Epochs, Name: name, Partition: part, Leader: asked})
	u, f := b.partition(id)
	if u == nil {
		return
	}
	current := int32(u.log.Epoch())
	if asked < current {
		b.w.res.Marks.add(MarkEpochEnd)
	}
	found, end := b.epochEnd(u, asked)
	_, epoch, end := verdict.EpochEnd(asked, current, found, end, u.log.Committed(), false)
	b.reply(id, node.Answer{Result: node.Done, Topic: f.topic, Offset: end, Epoch: epoch})
}

// deleteRecords gives up the records of a partition below an offset.
func (b *broker) deleteRecords(client uint8, e *Event) {
	id := b.call(client, DeleteRecords, node.Request{Kind: node.Forget, Name: int8(e.A), Partition: int32(e.B)})
	u, f := b.partition(id)
	if u == nil {
		return
	}
	start, committed := u.log.Start(), u.log.Committed()
	before := start + (committed-start)*min(e.C, 1000)/1000 // it is within
	given := before
	if e.C > 1000 {
		before, given = -1, committed
	}
	r := &b.requests[id]
	b.check.GivenUp(f.topic, r.part, given)
	before, _ = verdict.Trim(before, committed)
	r.offset = before
	if err := u.log.Trim(b.w.clock.now(), before); err != nil {
		b.reply(id, node.Answer{Result: node.Failed})
		return
	}
	u.trims, u.ask = append(u.trims, id), true
}

// trimmed answers the deletions of records that are done.
func (b *broker) trimmed(u *unit) {
	kept := u.trims[:0]
	for _, id := range u.trims {
		r := &b.requests[id]
		if u.log.Start() < r.offset {
			kept = append(kept, id)
			continue
		}
		b.w.res.Marks.add(MarkRecordsDeleted)
		b.reply(id, node.Answer{Result: node.Done, Topic: r.topic, Start: u.log.Start()})
	}
	u.trims = kept
}
