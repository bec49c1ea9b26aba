package fakebucket

import "varve/tiers"

// landRate is how often a call meets a late change that lands before it, in 1/65,536.
const landRate = 1 << 14

// change is a write that the client gave up, and that is still on its way.
type change struct {
	op      Op
	key     string
	content content
	cond    tiers.Condition
	upload  string
	number  int
	parts   []tiers.Part
}

// later queues a change and returns what the client sees.
func (b *Bucket) later(c change) error {
	b.mark(O3Late)
	b.late = append(b.late, c)
	return ErrTimeout
}

// Late returns how many changes are on their way.
func (b *Bucket) Late() int { return len(b.late) }

// Settle lets all that is late land, in the order in which it was sent.
func (b *Bucket) Settle() {
	for len(b.late) > 0 {
		b.land(0)
	}
}

// land applies a late change, whose answer nobody waits for.
func (b *Bucket) land(i int) {
	c := b.late[i]
	b.late = append(b.late[:i], b.late[i+1:]...)
	switch c.op {
	case OpPut:
		_, _ = b.put(c.key, c.content, c.cond)
	case OpPart:
		_ = b.putPart(c.key, c.upload, c.number, c.content)
	case OpFinish:
		_, _ = b.finish(NoFault, c.key, c.upload, c.parts, c.cond)
	case OpAbort:
		b.abort(c.key, c.upload)
	case OpDelete:
		b.remove(c.key)
	}
	c.content = content{} // which the bucket owns now
	b.drop(&c)
}

// drop takes the memory of a change back.
func (b *Bucket) drop(c *change) {
	b.free(&c.content)
	if c.parts != nil {
		b.orders = append(b.orders, c.parts[:0])
	}
	*c = change{}
}

// order returns memory for a list of parts.
func (b *Bucket) order() []tiers.Part {
	n := len(b.orders)
	if n == 0 {
		return nil
	}
	list := b.orders[n-1]
	b.orders = b.orders[:n-1]
	return list
}
