package varve

import (
	"context"
	"slices"
	"time"

	"varve/core"
)

// Watch has a channel told whenever Committed, Start or the log's state moves, without ever waiting
// for it: a channel with room for one value misses nothing, if the log is looked at after Watch and
// after every value. One channel may watch many logs. Unwatch ends it.
func (l *Log) Watch(c chan<- struct{}) {
	l.mu.Lock()
	l.watchers = append(l.watchers, c)
	l.mu.Unlock()
}

// Unwatch takes one Watch of a channel back.
func (l *Log) Unwatch(c chan<- struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.watchers, c)
	if i < 0 {
		return
	}
	last := len(l.watchers) - 1
	l.watchers[i], l.watchers[last] = l.watchers[last], nil
	if l.watchers = l.watchers[:last]; last == 0 {
		l.watchers = nil
	}
}

// tell tells who watches. The mutex is held.
func (l *Log) tell() {
	for _, c := range l.watchers {
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
