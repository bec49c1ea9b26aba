package varve

import (
	"context"
	"testing"
	"time"
)

// TestAwaitLosesNoWakeUp lets something happen just as a waiter has found nothing: between its look
// and its registration, if there is any room between the two. The mutex helps: one that somebody has
// waited for longer than a millisecond is handed over in the order of arrival, so whoever gives it
// back between look and registration gives it to the goroutine that stands behind.
func TestAwaitLosesNoWakeUp(t *testing.T) {
	const parked = 10 * time.Millisecond // long enough to stand in the queue of the mutex
	var l Log
	happened := false
	line := func(f func()) chan struct{} {
		done := make(chan struct{})
		go func() { f(); close(done) }()
		time.Sleep(parked)
		return done
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var err error
	looks := 0
	l.mu.Lock()
	first := line(func() { l.mu.Lock(); looks = 0; l.mu.Unlock() })
	waiter := line(func() {
		err = l.await(ctx, func() (bool, error) {
			looks++
			return happened, nil
		})
	})
	event := line(func() {
		l.mu.Lock()
		happened = true
		moved := l.moved
		l.moved = nil
		l.mu.Unlock()
		if moved != nil {
			close(moved)
		}
	})
	l.mu.Unlock()
	l.mu.Lock() // passes the first one by, which then insists on the order
	time.Sleep(parked)
	l.mu.Unlock()
	<-first
	<-event
	<-waiter
	if err != nil {
		t.Fatalf("the waiter slept through it, after %d looks: %v", looks, err)
	}
}
