package core

import (
	"errors"
	"fmt"

	"varve/core/segment"
	"varve/core/warmentry"
)

// warmState is the warm tier: what is known to be in its stream. Invariants: nothing is mirrored before
// a marker of this life's generation is confirmed and the stream was read after that; only what a
// Commit has completed is mirrored, in order, without a gap from `from` on; an entry counts only if it
// was taken, the entry before it is the one that was there last, and enough replicas confirmed it.
// After any doubt a marker of the next generation is written, and the stream is read.
type warmState struct {
	step       warmStep
	generation uint64 // of the newest marker that was tried
	top        uint64 // greatest generation seen
	on         WarmConn
	last       WarmID // of the entry that was written last: the next one follows it
	found      WarmID // of the entry that was read last
	confirmed  WarmID // newest entry of records that is confirmed; a read after a doubt begins there
	resumed    bool   // that read found it

	from   Offset // first offset that the tier means to hold
	end    Offset // [from, end) is confirmed there
	sent   Offset // and [end, sent) is in the stream, confirmed by fewer than wanted
	waived Offset // what was acked without, because the policy says so
	said   told   // what a confirmed entry announces
	saying told   // what the entry in flight announces
	spans  []warmSpan
	trim   bool // entries below from may go

	seen      Epoch // greatest epoch of another owner
	foundID   bool  // logID is that of the stream
	logID     segment.LogID
	start     Offset            // greatest Start that an entry names
	told      Offset            // Committed, as the newest owner's entries name it
	toldEpoch Epoch             // of the record before
	lineage   []segment.Lineage // of the highest owner that an entry names

	behind  Time // Mono since which records wait for the tier; 0: none do
	stalled bool // they have waited too long
	reach   Offset
	fails   int
	retryAt Time // Mono
	unsure  bool // what was written last is not confirmed, and the policy goes on without
	lookAt  Time // Mono at which an idle log asks whether it is all there still
	shortAt Time // Mono at which a marker asks again for what too few replicas confirmed
	failure error
	short   warmShortError // failure, of that kind
	unsafe  uint32         // what the last look at the server found

	probe  ProbeWarm
	fence  FenceWarm
	read   ReadWarm
	mirror Mirror
	cut    TrimWarm
}

// told is what an entry announces besides its records.
type told struct{ start, from Offset }

type warmStep uint8

const (
	warmFence warmStep = iota // a marker is to be written
	warmRead                  // it is confirmed; the stream is to be read
	warmGood                  // what is there is known
)

// warmSpan is records of one epoch in entries of one generation, about as many as a segment has.
type warmSpan struct {
	First, End Offset
	Epoch      Epoch
	Generation uint64
	Bytes      int64
}

func (w *warmState) reset() {
	*w = warmState{
		spans: w.spans[:0], lineage: w.lineage[:0],
		read: ReadWarm{
			Entries: w.read.Entries[:0], First: WarmEntry{Header: warmentry.Entry{Lineage: w.read.First.Header.Lineage[:0]}},
		},
		fence:  FenceWarm{Marker: warmentry.Entry{Lineage: w.fence.Marker.Lineage[:0]}},
		mirror: Mirror{Entry: warmentry.Entry{Lineage: w.mirror.Entry.Lineage[:0]}},
	}
}

// Why the warm tier's answer was of no use.
var (
	errWarmLost  = errors.New("core: the warm tier lost the entry before")
	errWarmFull  = errors.New("core: the warm tier has no memory left")
	errWarmTaken = errors.New("core: the warm tier refused an entry")
)

// warmShortError is too few confirmations.
type warmShortError struct{ confirmed, wanted int }

func (e *warmShortError) Error() string {
	return fmt.Sprintf("core: %d replicas of the warm tier confirmed in time, and warm.wait_replicas is %d", e.confirmed, e.wanted)
}

// shorter returns the error of too few confirmations.
func (w *warmState) shorter(confirmed, wanted int) error {
	w.short = warmShortError{confirmed, wanted}
	return &w.short
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

// doubtWarm gives up what was believed about the stream: a marker of a new generation, then a look.
func (l *Log) doubtWarm(now Now, err error) {
	w := &l.warm
	l.mark(MarkWarmDoubt)
	w.step = warmFence
	w.backoff(now, err)
}

// backoff notes a failure of the tier: the next try waits longer each time.
func (w *warmState) backoff(now Now, err error) {
	w.failure = err
	w.retryAt = now.Mono + retryDelay<<min(w.fails, 6)
	w.fails++
}

// nextWarm decides what the Warm lane does while the log runs.
func (l *Log) nextWarm(now Now) Effect {
	w := &l.warm
	if now.Mono < w.retryAt {
		return nil
	}
	switch w.step {
	case warmFence:
		return l.issueFence(l.epoch)
	case warmRead:
		w.read.Entries = w.read.Entries[:0]
		return &w.read
	}
	if l.phase == Closing && l.committed == l.written {
		return nil
	}
	if next := l.onDisk(w.sent); w.sent < next { // not on disk: in the cold tier, given up, or damaged
		w.spans = w.spans[:0]
		w.from, w.end, w.sent, w.confirmed = next, next, next, WarmID{}
		l.advanceWarm(now)
	}
	l.wantTrimWarm()
	if w.sent < l.written {
		return l.issueMirror()
	}
	switch {
	case w.unsure && now.Mono >= w.shortAt:
		w.step = warmFence // what it took without being confirmed has been replicated since, or is again
		return l.issueFence(l.epoch)
	case w.from > w.said.from || l.startWanted() > w.said.start:
		w.step = warmFence // nothing is to be sent: a marker says it
		return l.issueFence(l.epoch)
	case w.trim:
		_, at := w.holds(w.from, l.epochAt(w.from))
		if at < 0 {
			w.trim = false
			return nil
		}
		w.cut = TrimWarm{Below: WarmID{w.spans[at].Generation, w.from + 1}}
		return &w.cut
	case now.Mono >= w.lookAt:
		w.look()
		w.read.Entries = w.read.Entries[:0]
		return &w.read
	}
	return nil
}

// warmHeader fills in what every entry says; while the log opens, as the superblock has it.
func (l *Log) warmHeader(e *warmentry.Entry, epoch Epoch) {
	w, s := &l.warm, &l.super.state
	w.saying = told{max(l.startWanted(), s.Start), w.from}
	e.LogID, e.Generation, e.Epoch, e.Nonce = l.id, w.generation, epoch, l.cfg.Nonce
	e.Start, e.WarmFrom = w.saying.start, w.from
	lineage := s.Lineage
	e.Committed, e.CommittedEpoch = s.Committed, s.CommittedEpoch
	if l.phase != Opening && l.phase != Recovering {
		lineage = l.lineage
		e.Committed, e.CommittedEpoch = l.committed, l.epochAt(max(l.committed-1, 0))
	}
	e.Lineage = append(e.Lineage[:0], lineage...)
}

func (l *Log) issueFence(epoch Epoch) Effect {
	w := &l.warm
	f := &w.fence
	w.generation = max(w.generation, w.top, uint64(epoch)-1) + 1
	l.warmHeader(&f.Marker, epoch)
	f.Marker.Kind = warmentry.Marker
	f.Replicas, f.Wait = l.cfg.WarmReplicas, l.cfg.WarmWait
	f.Refusal, f.Confirmed, f.On = WarmTaken, 0, 0
	return f
}

// onDisk returns an offset if the disk holds it whole, else the next one that it holds.
func (l *Log) onDisk(o Offset) Offset {
	for i := range l.extents {
		if x := &l.extents[i]; o < x.End && x.Damage == segment.BreakNone {
			return max(o, x.First)
		}
	}
	return max(o, l.written)
}

// issueMirror mirrors what follows, as far as one file, one epoch and one entry go.
func (l *Log) issueMirror() Effect {
	w := &l.warm
	x, m := l.hotExtent(w.sent), &w.mirror
	l.warmHeader(&m.Entry, l.epoch)
	m.Entry.Kind, m.Entry.First, m.Entry.End = warmentry.Data, w.sent, min(x.End, l.written)
	m.Source, m.SourceEpoch = *x, x.Epoch
	m.On, m.Replicas, m.Wait, m.BytesMax = w.on, l.cfg.WarmReplicas, l.cfg.WarmWait, l.cfg.WarmEntryBytes
	m.Pos = 0
	if a := &l.tail.active; a.open && a.header.ID == x.Segment {
		m.Pos, _, _ = a.footer.Lookup(w.sent)
	}
	m.Refusal, m.Confirmed = WarmTaken, 0
	w.reach = l.written
	return m
}

func (l *Log) onWarm(now Now, e Effect, err error) {
	w := &l.warm
	switch e := e.(type) {
	case *FenceWarm:
		if err != nil {
			l.doubtWarm(now, err)
			return
		}
		if l.warmOvertaken(&e.Top) {
			return
		}
		if why := l.fenceFailed(e); why != nil {
			l.doubtWarm(now, why)
			return
		}
		l.fenced(now, e)
	case *ReadWarm:
		if err != nil {
			l.doubtWarm(now, err)
			return
		}
		l.onReadWarm(now, e)
	case *Mirror:
		l.onMirror(now, e, err)
	case *TrimWarm:
		w.trim = false
		if err != nil {
			l.doubtWarm(now, err)
			return
		}
		l.mark(MarkWarmTrimmed)
	default:
		check(false, "an effect of the Warm lane")
	}
}

// fenceFailed returns why a marker does not hold, nil if it does.
func (l *Log) fenceFailed(e *FenceWarm) error {
	w := &l.warm
	switch {
	case e.Refusal == WarmBehind:
		w.top = max(w.top, e.Top.ID.Generation)
		return errWarmTaken
	case e.Refusal == WarmFull:
		return errWarmFull
	case e.Refusal != WarmTaken || e.Top.ID != (WarmID{Generation: e.Marker.Generation}):
		return errWarmTaken
	case e.Confirmed < e.Replicas && !l.cfg.WarmAckOnTimeout:
		return w.shorter(e.Confirmed, e.Replicas)
	}
	return nil
}

// fenced goes on to read the stream, from the newest entry that was confirmed: if it is there, so is
// what came before.
func (l *Log) fenced(now Now, e *FenceWarm) {
	w := &l.warm
	w.took(now, e)
	w.look()
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

// took notes a marker that the server has taken, and whether it is confirmed.
func (w *warmState) took(now Now, e *FenceWarm) {
	w.on, w.said, w.last = e.On, w.saying, WarmID{Generation: e.Marker.Generation}
	if w.unsure = false; e.Confirmed < e.Replicas {
		w.doWithout(now, e.Confirmed, e.Replicas)
	}
}

// doWithout notes that too few replicas confirmed what was written last, and that the policy goes on: a
// marker asks again, later each time.
func (w *warmState) doWithout(now Now, confirmed, wanted int) {
	w.unsure, w.failure = true, w.shorter(confirmed, wanted)
	w.shortAt = now.Mono + retryDelay<<min(w.fails, 6)
	w.fails++
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

// beheaded reports whether entries are gone that the stream began with, which the newest ones do not tell.
func (w *warmState) beheaded(first *WarmEntry, epoch Epoch) bool {
	_, at := w.holds(w.from, epoch)
	if at < 0 {
		return false
	}
	s := &w.spans[at]
	return first.State == WarmNone || first.ID.Generation > s.Generation ||
		first.ID.Generation == s.Generation && first.ID.End > 0 && first.Header.First > w.from
}

func (l *Log) onReadWarm(now Now, e *ReadWarm) {
	w := &l.warm
	if e.Front && e.From != (WarmID{}) && w.beheaded(&e.First, l.epochAt(w.from)) {
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

func (l *Log) onMirror(now Now, e *Mirror, err error) {
	w := &l.warm
	switch {
	case err != nil && e.Failed == StepCheck: // the disk does not hold what was written
		l.mark(MarkWarmSource)
		l.stats.Corruptions++
		w.failure, w.retryAt = err, now.Mono+second
		return
	case err != nil:
		l.doubtWarm(now, err)
		return
	case l.warmOvertaken(&e.Predecessor):
		return
	case e.Refusal == WarmFull:
		l.mark(MarkWarmFull)
		l.doubtWarm(now, errWarmFull)
		return
	case e.Refusal != WarmTaken:
		l.doubtWarm(now, errWarmTaken)
		return
	case e.Predecessor.ID != w.last || e.Predecessor.State != WarmGood || e.Predecessor.Header.Nonce != l.cfg.Nonce:
		l.mark(MarkWarmLost)
		l.doubtWarm(now, errWarmLost)
		return
	case e.Confirmed < e.Replicas && !l.cfg.WarmAckOnTimeout:
		l.mark(MarkWarmShort)
		l.doubtWarm(now, w.shorter(e.Confirmed, e.Replicas))
		return
	}
	h := &e.Entry
	w.last = WarmID{h.Generation, h.End}
	w.add(warmSpan{h.First, h.End, e.SourceEpoch, h.Generation, e.Bytes}, l.cfg.SegmentBytes)
	w.sent = h.End
	if e.Confirmed < e.Replicas {
		l.mark(MarkWarmWaived)
		w.waived = max(w.waived, h.End)
		w.doWithout(now, e.Confirmed, e.Replicas)
	} else {
		w.end, w.confirmed, w.said, w.unsure = w.sent, w.last, w.saying, false
		w.lookAt = now.Mono + l.cfg.RetentionCheckInterval
		w.fails, w.failure = 0, nil
		if w.end >= w.reach {
			w.stalled = false
		}
		w.behind = 0
	}
	l.raiseCommitted(now)
}

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

func (l *Log) warmDeadline(d *deadline) {
	w := &l.warm
	if l.flight[Warm] == nil {
		d.add(w.retryAt)
		d.add(w.lookAt)
		if w.unsure {
			d.add(w.shortAt)
		}
	}
	if w.behind > 0 {
		d.add(w.behind + l.cfg.WarmWait)
	}
}
