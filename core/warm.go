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
	unread  int  // times in a row that the disk did not give back what is to be mirrored
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

func (w *warmState) reset() {
	room := func(e *warmentry.Entry) warmentry.Entry { return warmentry.Entry{Lineage: e.Lineage[:0]} }
	found := func(e *WarmEntry) WarmEntry { return WarmEntry{Header: room(&e.Header)} }
	*w = warmState{
		spans: w.spans[:0], lineage: w.lineage[:0],
		probe:  ProbeWarm{Top: found(&w.probe.Top)},
		read:   ReadWarm{Entries: w.read.Entries[:0], First: found(&w.read.First)},
		fence:  FenceWarm{Marker: room(&w.fence.Marker), Top: found(&w.fence.Top)},
		mirror: Mirror{Entry: room(&w.mirror.Entry), Predecessor: found(&w.mirror.Predecessor)},
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
		l.passOver(now, next)
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
		below, ok := l.warmNeeded()
		if !ok {
			w.trim = false
			return nil
		}
		w.cut = TrimWarm{Below: below}
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

func (l *Log) onMirror(now Now, e *Mirror, err error) {
	w := &l.warm
	switch {
	case err != nil && e.Failed != StepWrite: // the disk does not give back what was written
		l.sourceFailed(now, err)
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
	w.unread = 0
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
