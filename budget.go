package varve

import "sync/atomic"

// Budget bounds the bytes of payload that are accepted and not written yet, over several logs: each has its
// own Options.PendingBytes as well.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// Used returns how much of it is in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// take takes bytes if they are there; a batch that is larger than the whole budget may come alone. Nil has
// no limit.
func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if used := b.used.Add(n); used > b.limit && used != n {
		b.used.Add(-n)
		return false
	}
	return true
}

// give gives bytes back.
func (b *Budget) give(n int64) {
	if b != nil && n != 0 {
		b.used.Add(-n)
	}
}
