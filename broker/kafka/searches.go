package kafka

import (
	"context"
	"sync"

	"varve"
)

// searchesMax bounds the searches at once, among them those whose client has its answer already.
const searchesMax = 64

// searches are the looks for records by time. A read from a tier that hangs cannot be broken off: its search goes on
// when the client has been told that it took too long, and until it ends no other one of that log begins. So logs
// whose tier hangs take no places from the others, however often clients try again.
type searches struct {
	places chan struct{}

	mu   sync.Mutex
	left map[*varve.Log]int // searches that go on without their clients
}

func newSearches() *searches {
	return &searches{places: make(chan struct{}, searchesMax), left: map[*varve.Log]int{}}
}

// run looks, for as long as the context lets it: what it returns without an answer is the context's error, or
// context.DeadlineExceeded at once where an earlier look at the log goes on.
func (q *searches) run(ctx context.Context, log *varve.Log, look func() (offset, at int64, err error)) (offset, at int64, err error) {
	if q.hangs(log) {
		return -1, -1, context.DeadlineExceeded
	}
	select {
	case q.places <- struct{}{}:
	case <-ctx.Done():
		return -1, -1, ctx.Err()
	}
	if ctx.Err() != nil || q.hangs(log) {
		<-q.places
		return -1, -1, context.DeadlineExceeded
	}
	type found struct {
		offset, at int64
		err        error
	}
	answer := make(chan found, 1)
	ended, alone := false, false // guarded by mu
	go func() {
		var f found
		f.offset, f.at, f.err = look()
		q.mu.Lock()
		ended = true
		if alone {
			if q.left[log]--; q.left[log] == 0 {
				delete(q.left, log)
			}
		}
		q.mu.Unlock()
		<-q.places
		answer <- f
	}()
	select {
	case f := <-answer:
		return f.offset, f.at, f.err
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if !ended {
			alone = true
			q.left[log]++
		}
		return -1, -1, ctx.Err()
	}
}

func (q *searches) hangs(log *varve.Log) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left[log] > 0
}
