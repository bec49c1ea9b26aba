package core

import (
	"errors"

	"varve/core/segment"
	"varve/core/warmentry"
)

// warmNext goes on after the manifest, to the warm tier where there is one.
func (l *Log) warmNext(now Now) {
	if !l.cfg.Warm {
		l.merged(now)
		return
	}
	l.askWarm()
}

// askWarm begins with a look at the warm tier. What kept it from answering is remembered.
func (l *Log) askWarm() {
	w := &l.warm
	fails, failure, retryAt := w.fails, w.failure, w.retryAt
	w.reset()
	w.fails, w.failure, w.retryAt = fails, failure, retryAt
	l.boot.step = bootProbe
}

// nextWarmBoot hands out what an open asks of the warm tier: a look, the marker that shuts the owner
// before out, and everything that is there after it.
func (l *Log) nextWarmBoot(now Now) Effect {
	b, w := &l.boot, &l.warm
	if now.Mono < b.retryAt {
		return nil
	}
	switch b.step {
	case bootProbe:
		b.retryAt = 0
		w.probe.Replicas = l.cfg.WarmReplicas
		return &w.probe
	case bootFence:
		b.retryAt = 0
		return l.issueFence(b.fenced)
	case bootTell:
		b.retryAt = 0
		return l.issueFence(l.epoch)
	case bootWarm:
		b.retryAt = 0
		w.read.Entries = w.read.Entries[:0]
		return &w.read
	}
	return nil
}

// onWarmBoot takes the answer of the Warm lane while a log opens.
func (l *Log) onWarmBoot(now Now, e Effect, err error) {
	b, w := &l.boot, &l.warm
	if b.step == bootTell {
		l.toldWarm(now, e.(*FenceWarm), err)
		return
	}
	if err != nil {
		l.ioError = IOError{Effect: warmEffectName(e), Err: err}
		l.warmDown(now, &l.ioError)
		return
	}
	switch e := e.(type) {
	case *ProbeWarm:
		l.onProbe(now, e)
	case *FenceWarm:
		why := l.fenceFailed(e)
		switch {
		case why == nil:
			w.fails, w.failure = 0, nil
			w.took(now, e)
			w.found = WarmID{}
			b.step, w.read.From = bootWarm, WarmID{}
		case errors.Is(why, errWarmTaken):
			l.mark(MarkClaimLost)
			b.restart()
		default:
			l.warmDown(now, why)
		}
	case *ReadWarm:
		l.onWarmPage(now, e)
	default:
		check(false, "an effect of an open")
	}
}

func warmEffectName(e Effect) string {
	switch e.(type) {
	case *ProbeWarm:
		return "look at the warm tier"
	case *FenceWarm:
		return "claim the warm tier"
	}
	return "read the warm tier"
}

// warmDown waits for the warm tier, as for the cold one. With nothing of it read yet, what is proven on
// disk may be served meanwhile, as far as it is known to be committed.
func (l *Log) warmDown(now Now, err error) {
	l.warm.backoff(now, err)
	l.tierDown(now, err, l.warm.retryAt)
}

// onProbe refuses what is not this log's before anything is written.
func (l *Log) onProbe(now Now, e *ProbeWarm) {
	b, w := &l.boot, &l.warm
	w.unsafe = e.Unsafe
	if b.degraded { // the tier is back: look at everything again, with it
		b.degraded = false
		b.restart()
		return
	}
	switch e.Top.State {
	case WarmForeign:
		l.mark(MarkForeign)
		l.refuseWarm(now, "the key holds what no log wrote", "give the log another warm.name, or remove the key")
		return
	case WarmNewer:
		l.refuseWarm(now, "an entry is of a newer format", "use a newer varve")
		return
	case WarmGood:
		if l.warmForeign(now, &e.Top) {
			return
		}
		w.note(&e.Top, l.cfg.Nonce)
	}
	w.top = max(e.LastID.Generation, e.Top.ID.Generation)
	if b.absent && b.plan.cold == nil && !w.foundID && !l.cfg.Create && !b.manifest {
		l.mark(MarkColdAbsent)
		next := "check warm.endpoints, warm.name and the directory; to begin a new log: --create"
		if l.cfg.ReadOnly {
			next = "name the directory of a log, or what it is called in the warm tier"
		}
		l.refuseOpen("", "neither the directory nor the warm tier holds a log", next)
		return
	}
	if l.cfg.ReadOnly {
		b.step, w.read.From = bootWarm, WarmID{}
		return
	}
	b.fenced = max(b.fenced, l.super.state.Epoch+1, w.seen+1)
	if b.absent && !b.manifest {
		l.id = l.cfg.LogID
		if w.foundID {
			l.id = w.logID
		}
	}
	b.step = bootFence
}

// refuseWarm is refuseCold for the warm tier.
func (l *Log) refuseWarm(now Now, why, next string) {
	if !l.looks() {
		l.refuseOpen("warm", why, next)
		return
	}
	l.warmDown(now, &RefusedError{Name: "warm", Why: why, Next: next})
}

// warmForeign refuses entries of another log.
func (l *Log) warmForeign(now Now, e *WarmEntry) bool {
	b, w := &l.boot, &l.warm
	id := e.Header.LogID
	if (!b.absent || b.manifest) && id != l.id || w.foundID && id != w.logID {
		l.mark(MarkForeign)
		l.refuseWarm(now, "the key holds another log", "check warm.endpoints and warm.name: a log needs a key of its own")
		return true
	}
	w.foundID, w.logID = true, id
	return false
}

// note takes what an entry says of owners.
func (w *warmState) note(e *WarmEntry, nonce uint64) {
	h := &e.Header
	w.top = max(w.top, e.ID.Generation)
	if h.Nonce != nonce {
		w.seen = max(w.seen, h.Epoch)
	}
	w.start, w.from = max(w.start, h.Start), max(w.from, h.WarmFrom)
	if h.CommittedEpoch > w.toldEpoch || h.CommittedEpoch == w.toldEpoch && h.Committed > w.told {
		w.told, w.toldEpoch = h.Committed, h.CommittedEpoch
	}
	if owner(h.Lineage) > owner(w.lineage) {
		w.lineage = append(w.lineage[:0], h.Lineage...)
	}
}

// onWarmPage takes a page of what is in the stream after our marker.
func (l *Log) onWarmPage(now Now, e *ReadWarm) {
	b, w := &l.boot, &l.warm
	for i := range e.Entries {
		n := &e.Entries[i]
		w.found = n.ID
		if n.State != WarmGood {
			l.mark(MarkWarmOdd)
			continue // it counts for nothing; what it held may be elsewhere
		}
		if l.warmForeign(now, n) {
			return
		}
		w.note(n, l.cfg.Nonce)
		if n.Header.Kind == warmentry.Data {
			w.add(n.span(), l.cfg.SegmentBytes)
		}
	}
	if e.More {
		e.From = WarmID{w.found.Generation, w.found.End + 1}
		return
	}
	if !l.cfg.ReadOnly && (w.found != w.last || w.seen >= b.fenced) {
		l.mark(MarkClaimLost)
		b.restart()
		b.fenced = max(b.fenced, w.seen+1)
		return
	}
	l.mergeWarm(now)
}

// mergeWarm takes the warm tier's word where it is the newest owner's.
func (l *Log) mergeWarm(now Now) {
	b, w, s := &l.boot, &l.warm, &l.super.state
	w.step = warmGood
	switch {
	case b.absent && !b.manifest && b.fenced <= 1 && w.seen == 0 && len(w.spans) == 0: // nobody had it before
		l.newLog()
		return
	case b.absent && !b.manifest:
		l.mark(MarkRebuild)
		if w.foundID {
			l.id = w.logID
		}
		*s = segment.Superblock{
			LogID: l.id, Sync: l.cfg.Sync, SectorBytes: uint32(l.cfg.SectorBytes), Created: now.Wall,
			Start: w.start, HotStart: w.start, Frontier: w.start, Epoch: max(w.seen, 1), Lineage: append(s.Lineage[:0], w.lineage...),
		}
		if len(s.Lineage) == 0 {
			s.Lineage = append(s.Lineage, segment.Lineage{Epoch: 1})
		}
		b.own = owner(s.Lineage)
	default:
		b.own = min(b.own, owner(s.Lineage))
		l.takeLineage(w.lineage)
	}
	s.Epoch = max(s.Epoch, w.seen)
	b.plan.warm = w
	l.merged(now)
}

// tellWarm goes on to the end of an open: to a second marker where there is a warm tier. It names the
// epoch of this life and where that begins, before anything is served: else what others hold beyond that
// could come back, in a log that has been seen without it.
func (l *Log) tellWarm() {
	l.boot.step, l.boot.at = bootFinish, 0
	if l.cfg.Warm {
		l.boot.step = bootTell
	}
}

// toldWarm goes on once it is confirmed. That the server took it means that nobody else has written since
// the first one; what the server has lost since is found once the log runs.
func (l *Log) toldWarm(now Now, e *FenceWarm, err error) {
	b, w := &l.boot, &l.warm
	if err == nil {
		err = l.fenceFailed(e)
	}
	switch {
	case err == nil:
		w.fails, w.failure = 0, nil
		unsure := w.unsure
		w.took(now, e)
		w.unsure = w.unsure || unsure // what was read before this marker may be gone since
		b.step, b.at = bootFinish, 0
	case errors.Is(err, errWarmTaken) && e.Top.State == WarmGood && e.Top.Header.Nonce != l.cfg.Nonce:
		l.mark(MarkClaimLost)
		b.restart()
	default:
		w.backoff(now, err)
		b.retryAt = w.retryAt
		l.unclaimed(err)
	}
}

// readyWarm begins the life in the warm tier: what it held is what it holds, and what else was
// recovered is committed once it is mirrored.
func (l *Log) readyWarm(now Now) {
	w, recovered := &l.warm, l.committed
	if !l.cfg.WarmAckOnTimeout {
		l.committed = min(recovered, max(l.super.state.Committed, l.start, l.cold.exported))
	}
	l.measureWarm()
	l.committed = min(recovered, max(l.committed, w.end))
	w.look() // what was read lies before the second marker
	l.raiseCommitted(now)
}
