package kafka

import (
	"context"
	"sync"
)

// budget is so many bytes of memory, shared by all connections. Who wants more than is left waits;
// waiters come in order, so that a large one is not passed by small ones for ever.
type budget struct {
	mu      sync.Mutex
	free    int64
	waiters []*budgetWaiter
}

type budgetWaiter struct {
	bytes   int64
	granted chan struct{}
}

// take takes bytes off the budget, and waits for them if need be.
func (b *budget) take(ctx context.Context, bytes int64) error {
	b.mu.Lock()
	if len(b.waiters) == 0 && bytes <= b.free {
		b.free -= bytes
		b.mu.Unlock()
		return nil
	}
	w := &budgetWaiter{bytes: bytes, granted: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiters {
		if other == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.grant() // who waited behind this one may fit
			return ctx.Err()
		}
	}
	return nil // granted meanwhile
}

// tryTake takes bytes off the budget if they are there at once.
func (b *budget) tryTake(bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) > 0 || bytes > b.free {
		return false
	}
	b.free -= bytes
	return true
}

// giveBack returns bytes.
func (b *budget) giveBack(bytes int64) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	b.free += bytes
	b.grant()
	b.mu.Unlock()
}

// grant serves waiters in order. The mutex is held.
func (b *budget) grant() {
	for len(b.waiters) > 0 && b.waiters[0].bytes <= b.free {
		b.free -= b.waiters[0].bytes
		close(b.waiters[0].granted)
		b.waiters = b.waiters[1:]
	}
}

// halves are a budget in two halves of the same size: one for what is small, one for what is more than
// shareBytes. So a few slow peers with large requests or answers can keep only each other waiting.
type halves struct {
	half         int64
	small, large budget
}

const shareBytes = 1 << 20

func newHalves(bytes int64) halves {
	half := bytes / 2
	return halves{half: half, small: budget{free: half}, large: budget{free: half}}
}

// of returns the half that so many bytes are taken from.
func (h *halves) of(bytes int64) *budget {
	if bytes <= shareBytes {
		return &h.small
	}
	return &h.large
}

// taken returns how much is taken.
func (h *halves) taken() int64 { return h.small.taken(h.half) + h.large.taken(h.half) }

// taken returns how much of a whole is taken.
func (b *budget) taken(whole int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return whole - b.free
}
