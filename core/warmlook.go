package core

import (
	"varve/core/segment"
	"varve/core/warmentry"
)

// warmSpan is records of one epoch in entries of one generation, about as many as a segment has.
type warmSpan struct {
	First, End Offset
	Epoch      Epoch
	Generation uint64
	Bytes      int64
}

func (e *WarmEntry) span() warmSpan {
	return warmSpan{e.Header.First, e.Header.End, e.Epoch, e.ID.Generation, e.Bytes}
}

// holds returns how far the warm tier holds an offset under an epoch.
func (w *warmState) holds(o Offset, epoch Epoch) (end Offset, at int) {
	at = -1
	for i := range w.spans {
		if s := &w.spans[i]; s.First <= o && o < s.End && s.Epoch == epoch && s.End > end && o >= w.from {
			end, at = s.End, i
		}
	}
	return end, at
}

// nextHeld returns the first offset above o that the tier holds under the epoch that owns it.
func (w *warmState) nextHeld(o Offset, lineage []segment.Lineage) (next Offset, ok bool) {
	for i := range w.spans {
		s := &w.spans[i]
		first := max(s.First, w.from)
		if epoch, _ := ownerOf(lineage, first); first > o && first < s.End && epoch == s.Epoch && (!ok || first < next) {
			next, ok = first, true
		}
	}
	return next, ok
}

// add notes the records of an entry.
func (w *warmState) add(e warmSpan, segmentBytes int64) {
	if n := len(w.spans); n > 0 {
		s := &w.spans[n-1]
		if s.End == e.First && s.Epoch == e.Epoch && s.Generation == e.Generation && s.Bytes+e.Bytes <= segmentBytes {
			s.End = e.End
			s.Bytes += e.Bytes
			return
		}
	}
	w.spans = append(w.spans, e)
}

// forget drops spans that lie wholly below from.
func (w *warmState) forget() {
	keep := w.spans[:0]
	for _, s := range w.spans {
		if s.End > w.from {
			keep = append(keep, s)
		}
	}
	w.spans = keep
}

// look reads the stream from the newest entry that was confirmed; all of it, if there is none. What was
// written behind that counts only if it is found again.
func (w *warmState) look() {
	w.step, w.read.From, w.resumed, w.found = warmRead, w.confirmed, false, WarmID{}
	w.read.Front = true
	for n := len(w.spans); n > 0; n-- {
		s := &w.spans[n-1]
		if id := w.confirmed; s.Generation == id.Generation && s.First < id.End && id.End <= s.End {
			s.End = id.End
			return
		}
		w.spans = w.spans[:n-1]
	}
	w.confirmed, w.read.From = WarmID{}, WarmID{}
}

// warmOvertaken poisons a log whose place another owner has taken.
func (l *Log) warmOvertaken(top *WarmEntry) bool {
	h := &top.Header
	if top.State != WarmGood || h.LogID != l.id || h.Epoch < l.epoch || h.Epoch == l.epoch && h.Nonce == l.cfg.Nonce {
		return false
	}
	l.mark(MarkFenced)
	l.poison(ErrOwnerFenced)
	return true
}

// beheaded reports whether entries are gone that the stream began with, which the newest ones do not tell: from is
// the first offset that counts, and first the entry that is there now.
func (w *warmState) beheaded(first *WarmEntry, from Offset, epoch Epoch) bool {
	_, at := w.holds(from, epoch)
	if at < 0 {
		return false
	}
	s := &w.spans[at]
	return first.State == WarmNone || first.ID.Generation > s.Generation ||
		first.ID.Generation == s.Generation && first.ID.End > 0 && first.Header.First > from
}

func (l *Log) onReadWarm(now Now, e *ReadWarm) {
	w := &l.warm
	from := max(w.from, l.start) // a trim may have come since the last look
	if e.Front && e.From != (WarmID{}) && w.beheaded(&e.First, from, l.epochAt(from)) {
		l.mark(MarkWarmLost)
		w.confirmed = WarmID{}
		w.look()
		return
	}
	e.Front = false
	for i := range e.Entries {
		n := &e.Entries[i]
		if l.warmOvertaken(n) {
			return
		}
		w.found = n.ID
		if n.ID == w.confirmed && n.State == WarmGood && i == 0 && e.From == w.confirmed {
			w.resumed = true
			continue
		}
		if e.From == w.confirmed && e.From != (WarmID{}) && !w.resumed {
			w.confirmed = WarmID{} // it is gone: look at everything
			w.look()
			return
		}
		if n.State == WarmGood && n.Header.LogID == l.id && n.Header.Kind == warmentry.Data {
			w.add(n.span(), l.cfg.SegmentBytes)
		}
	}
	if e.More {
		e.From = WarmID{w.found.Generation, w.found.End + 1}
		return
	}
	if w.found != w.last { // another writer, or it is gone
		w.top = max(w.top, w.found.Generation)
		l.doubtWarm(now, errWarmLost)
		return
	}
	w.step, w.lookAt = warmGood, now.Mono+l.cfg.RetentionCheckInterval
	if !w.unsure {
		w.fails, w.failure = 0, nil
	}
	l.measureWarm()
	l.advanceWarm(now)
}

// advanceWarm goes on after end has moved by itself: nothing may wait for the tier any more.
func (l *Log) advanceWarm(now Now) {
	if w := &l.warm; w.end >= l.written {
		w.behind, w.stalled = 0, false
	}
	l.raiseCommitted(now)
}

// measureWarm finds what the tier holds without a gap, and where it goes on.
func (l *Log) measureWarm() {
	w := &l.warm
	w.from = max(w.from, l.start)
	if _, at := w.holds(w.from, l.epochAt(w.from)); at < 0 && w.from < l.written { // nothing, or the front is gone
		from := min(l.warmWanted(), l.committed) // what waits for the tier is wanted there
		if l.cfg.Cold {                          // all that is nowhere else
			from = min(l.cold.exported, l.written)
		}
		w.from = max(w.from, l.HotStart(), from)
	}
	o := w.from
	for o < l.written {
		end, at := w.holds(o, l.epochAt(o))
		if at < 0 {
			break
		}
		_, limit := ownerOf(l.lineage, o)
		o = min(end, limit)
	}
	w.sent = min(o, l.written)
	if w.unsure { // what it took is not confirmed by that
		w.end = min(max(w.end, w.from), w.sent)
	} else {
		w.end = w.sent
	}
	w.confirmed = WarmID{}
	if _, at := w.holds(w.end-1, l.epochAt(w.end-1)); w.end > w.from && at >= 0 && w.spans[at].End == w.end {
		w.confirmed = WarmID{w.spans[at].Generation, w.end}
	}
}
