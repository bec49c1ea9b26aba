package model

// Content is what a recovered log holds, for comparing two recoveries.
type Content struct {
	Start  Offset
	values []Value
	epochs []Epoch
}

// Reset begins an empty content at a Start.
func (c *Content) Reset(start Offset) {
	c.Start, c.values, c.epochs = start, c.values[:0], c.epochs[:0]
}

// Add takes the next record.
func (c *Content) Add(e Epoch, v Value) {
	c.values, c.epochs = append(c.values, v), append(c.epochs, e)
}

// End returns the offset after the last record.
func (c *Content) End() Offset { return c.Start + Offset(len(c.values)) }

// Differs returns the first offset at which two contents are not the same.
func (c *Content) Differs(d *Content) (at Offset, differs bool) {
	if c.Start != d.Start {
		return min(c.Start, d.Start), true
	}
	n := min(len(c.values), len(d.values))
	for i := range n {
		if c.values[i] != d.values[i] || c.epochs[i] != d.epochs[i] {
			return c.Start + Offset(i), true
		}
	}
	return c.Start + Offset(n), len(c.values) != len(d.values)
}

// Hash is a 64-bit FNV-1a of the content, for traces.
func (c *Content) Hash() uint64 {
	h := hash(fnvOffset, uint64(c.Start))
	for i, v := range c.values {
		h = hash(hash(h, uint64(v)), uint64(c.epochs[i]))
	}
	return h
}

// ClientHash sums up what clients were told, append by append: two configurations that must give
// one client history give one hash; so do what readers saw and the ends of the log. Times and epochs
// are not in it.
func (c *Checker) ClientHash() uint64 {
	h := uint64(fnvOffset)
	for i := 1; i < len(c.ops); i++ {
		p := &c.ops[i]
		h = hash(hash(h, uint64(p.state)), uint64(p.origin))
		if p.state == opAcked || p.state == opIn {
			h = hash(h, uint64(p.first))
		}
	}
	return hash(hash(hash(h, uint64(c.seen)), uint64(c.start)), uint64(c.End()))
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hash(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ v&0xff) * fnvPrime
		v >>= 8
	}
	return h
}
