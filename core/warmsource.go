package core

import "fmt"

// UnmirroredError says that records are on disk, damaged or after damage, and will never be in the warm
// tier. Whoever waited for them to be mirrored got ErrUnknown.
type UnmirroredError struct {
	First, End Offset
	Err        error // what reading them ended with: a *CorruptError names file and position
}

func (e *UnmirroredError) Error() string {
	return fmt.Sprintf("core: records [%d, %d) cannot be read and will not be in the warm tier: %v", e.First, e.End, e.Err)
}

// Unwrap returns the cause.
func (e *UnmirroredError) Unwrap() error { return e.Err }

// sourceTries is how often the disk is asked for what is to be mirrored.
const sourceTries = 3

// sourceFailed takes that the disk does not give back what a Commit wrote. What stays so is passed over, as
// an open passes over what is damaged: the tier begins again behind the file, or behind what is written of
// it, and then nothing more is written to it. What waits for the tier up to there ends with an unknown
// outcome: else one damaged batch would refuse appends for ever.
func (l *Log) sourceFailed(now Now, err error) {
	w := &l.warm
	l.mark(MarkWarmSource)
	w.failure, w.retryAt = err, now.Mono+retryDelay
	if w.unread++; w.unread == 1 {
		l.stats.Corruptions++
	}
	if w.unread < sourceTries {
		return
	}
	l.mark(MarkWarmPassed)
	x := l.hotExtent(w.sent)
	next := min(x.End, l.written)
	if x.End == EndNone {
		l.tail.rollWanted = true
	}
	w.failure, w.unread, w.retryAt = &UnmirroredError{First: w.sent, End: next, Err: err}, 0, 0
	c := &l.tail.cohorts
	for c.len() > 0 && c.at(0).state == landed && c.at(0).first < next {
		*l.outcomes.push() = Outcome{Cohort: c.pop().id, Err: ErrUnknown}
	}
	l.passOver(now, next)
}

// passOver lets the warm tier begin again at an offset: what lies before it is not mirrored any more.
func (l *Log) passOver(now Now, next Offset) {
	w := &l.warm
	w.spans = w.spans[:0]
	w.from, w.end, w.sent, w.confirmed = next, next, next, WarmID{}
	l.advanceWarm(now)
}
