package kafka

import "time"

// timer is one that is used again and again.
type timer struct{ t *time.Timer }

// after starts the timer and returns its channel.
func (t *timer) after(d time.Duration) <-chan time.Time {
	if t.t == nil {
		t.t = time.NewTimer(d)
	} else {
		t.t.Reset(d)
	}
	return t.t.C
}

// stop ends it early.
func (t *timer) stop() { t.t.Stop() }

// sleep waits until a watched log moves, for so long at most.
func (c *conn) sleep(d time.Duration) {
	select {
	case <-c.wake:
		c.timer.stop()
	case <-c.s.ctx.Done():
		c.timer.stop()
	case <-c.timer.after(d):
	}
}
