package core

// warmLimit returns how far Committed may go for the warm tier's sake.
func (l *Log) warmLimit(now Now) Offset {
	w := &l.warm
	limit := max(w.end, w.waived)
	if limit < l.written && w.behind == 0 {
		w.behind = max(now.Mono, 1)
	}
	if w.behind > 0 && limit < l.written && now.Mono >= w.behind+l.cfg.WarmWait {
		l.mark(MarkWarmStalled)
		w.stalled = true
	}
	if w.stalled && l.cfg.WarmAckOnTimeout {
		w.waived = l.written
	}
	return max(w.end, w.waived)
}

// HoldsCut reports whether the next Commit waits until the warm tier has confirmed what is written: Next gives
// nothing to the Tail lane until then, and the driver need not ask. Whoever is acked then is likely to append
// again at once, and takes part in the Commit. Cut sooner it would be acked no sooner than one Commit later,
// because its own mirror waits for the one before; and the writers would fall apart into groups, each of which
// waits for the mirror of another. A commit of many bytes takes the longer, and so does its mirror: of those
// two that overlap are faster than one after the other. A tier that is in doubt, or has stalled, holds nothing up.
func (l *Log) HoldsCut(now Now) bool {
	w := &l.warm
	return l.cfg.Warm && l.phase == Ready && w.step == warmGood && max(w.end, w.waived) < l.written &&
		l.tail.pendingBytes < l.cfg.WarmHoldBytes && !w.stalled && now.Mono < w.behind+l.cfg.WarmWait
}

// giveUpWarm ends, with an unknown outcome, what has waited too long for the warm tier: it is on disk,
// and will be committed once the tier has caught up, if this log lives so long.
func (l *Log) giveUpWarm() {
	if !l.warm.stalled || l.cfg.WarmAckOnTimeout {
		return
	}
	c := &l.tail.cohorts
	for c.len() > 0 && c.at(0).state == landed {
		*l.outcomes.push() = Outcome{Cohort: c.pop().id, Err: ErrUnknown}
	}
}

// rollForWarm seals the active segment where it alone is as much as the warm tier is to hold: only what is closed
// leaves that, with a cold tier what is exported. Tiny segments would cost more than they save.
func (l *Log) rollForWarm() {
	a := &l.tail.active
	if a.open && a.pos > a.dataPos && !l.tail.rollWanted && a.pos >= max(l.cfg.WarmBytes, l.cfg.SegmentBytes/16) {
		l.mark(MarkRollWarm)
		l.tail.rollWanted = true
	}
}

// wantTrimWarm moves from behind what the tier shall not hold any more: closed segments beyond the
// number that is kept, and those that memory has no room for; with a cold tier never what is not there.
func (l *Log) wantTrimWarm() {
	w := &l.warm
	limit := min(w.end-1, l.committed)
	if l.cfg.Cold {
		limit = min(limit, l.cold.exported)
	}
	if from := min(max(l.warmWanted(), l.start), limit); from > w.from {
		w.from, w.trim = from, true
		w.forget()
	}
}

// warmNeeded returns the id below which nothing is needed of what the tier holds; ok is false if it holds nothing.
// Where a server lost the front of the stream, what was sent again lies behind what it kept.
func (l *Log) warmNeeded() (below WarmID, ok bool) {
	w := &l.warm
	for o := w.from; o < w.sent; {
		end, at := w.holds(o, l.epochAt(o))
		if at < 0 {
			break
		}
		if g := w.spans[at].Generation; !ok || g < below.Generation {
			below, ok = WarmID{g, w.from + 1}, true
		}
		_, limit := ownerOf(l.lineage, o)
		o = min(end, limit)
	}
	return below, ok
}

// warmWanted returns the first offset that the tier is to hold: that of the oldest closed segment within
// the number that is kept and within the memory that there is for it.
func (l *Log) warmWanted() Offset {
	bytes, closed := int64(0), 0
	for i := len(l.extents) - 1; i >= 0; i-- {
		x := &l.extents[i]
		if x.End == EndNone {
			bytes += l.tail.active.pos
			continue
		}
		bytes += x.Bytes
		if closed++; closed > l.cfg.WarmSegments || bytes > l.cfg.WarmBytes {
			return x.End
		}
	}
	return 0
}
