package varve

import (
	"context"
	"slices"
	"sync"
	"time"

	"varve/core"
)

// Watch has a channel told whenever Committed, Start or the log's state moves, without ever waiting
// for it: a channel with room for one value misses nothing, if the log is looked at after Watch and
// after every value. One channel may watch many logs. Unwatch ends it.
func (l *Log) Watch(c chan<- struct{}) {
	l.watchers.mu.Lock()
	l.watchers.list = append(l.watchers.list, c)
	l.watchers.mu.Unlock()
}

// Unwatch takes one Watch of a channel back.
func (l *Log) Unwatch(c chan<- struct{}) {
	w := &l.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.list, c)
	if i < 0 {
		return
	}
	last := len(w.list) - 1
	w.list[i], w.list[last] = w.list[last], nil
	if w.list = w.list[:last]; last == 0 {
		w.list = nil
	}
}

// watchers are told what moves. Their mutex is not the log's: who is woken needs that one.
type watchers struct {
	mu   sync.Mutex
	list []chan<- struct{}
}

// news is what to tell after the mutex was given back.
type news struct {
	any   bool          // watermarks, view or phase have changed
	moved chan struct{} // to close; nil: nobody waits
}

// tell tells who waits and who watches. The mutex is not held.
//
// It comes behind the acks: of all that a goroutine wakes before it goes to sleep, its processor runs the last
// one at once, and the others when that one sleeps, unless another processor is awake. A reader that waits for
// a record has work to do until it is with its client; who waits for an ack has little.
func (l *Log) tell(n news) {
	if n.moved != nil {
		close(n.moved)
	}
	if !n.any {
		return
	}
	l.watchers.mu.Lock()
	defer l.watchers.mu.Unlock()
	for _, c := range l.watchers.list {
		select {
		case c <- struct{}{}:
		default: // told, and has not looked yet
		}
	}
}

// EpochEnd returns the greatest epoch of the log that is not above the one asked for, and where its
// records end: where the next epoch begins, or at Committed. A log whose first epoch is above has
// none: 0, and its start.
func (l *Log) EpochEnd(epoch uint64) (found uint64, end int64) {
	committed := l.committed.Load()
	e, end := l.view.Load().EpochEnd(core.Epoch(epoch), committed)
	return uint64(e), end
}

// EpochOf returns the epoch of the record at an offset, 0 if there is none.
func (l *Log) EpochOf(offset int64) uint64 { return uint64(l.view.Load().EpochAt(offset)) }

// OffsetFrom is OffsetAt for the records at an offset and above.
func (l *Log) OffsetFrom(ctx context.Context, offset int64, t time.Time) (Position, error) {
	return offsetAt(ctx, l, offset, t)
}
