package core

import "varve/core/segment"

// syncState is the Sync lane: the timer's sync, which may overlap a Commit of the same file.
type syncState struct {
	effect Sync

	unsyncedBytes int64
	claimedBytes  int64 // of them, covered by the Sync in flight; a sector's worth too many at most
	since         Time  // Mono at which the oldest unsynced byte was written; 0: none
	nextSince     Time  // the same for bytes that the Sync in flight does not claim

	// Ends of landed Commits that share a sector with what follows, as (position, offset); a Sync
	// beside a Commit in flight claims only what ends at or before that Commit's first sector.
	bounds    ring[bound]
	claimable Offset // greatest offset that ends before the first sector of the newest cut
}

type bound struct {
	pos int64
	end Offset
	at  Time // Mono at which it was written
}

// cut notes where a Commit starts.
func (s *syncState) cut(pos, sector int64, synced bool) {
	if synced {
		return
	}
	first := pos &^ (sector - 1)
	for s.bounds.len() > 0 && s.bounds.at(0).pos <= first {
		s.claimable = s.bounds.pop().end
	}
}

// wrote notes a landed Commit that was not synced.
func (s *syncState) wrote(now Now, pos int64, end Offset, bytes int64) {
	*s.bounds.push() = bound{pos, end, max(now.Mono, 1)}
	s.unsyncedBytes += bytes
	if s.since == 0 {
		s.since = max(now.Mono, 1)
	}
	if s.nextSince == 0 {
		s.nextSince = max(now.Mono, 1)
	}
}

// synced notes that everything written so far is on the device.
func (s *syncState) synced() {
	s.bounds.reset()
	s.unsyncedBytes, s.since, s.nextSince, s.claimable = 0, 0, 0, 0
}

// overdue reports whether acks pause: the oldest unsynced byte is older than two intervals,
// because a sync that hangs must not widen the window that the policy promises.
func (s *syncState) overdue(now Now, interval Time) bool {
	return s.since > 0 && now.Mono-s.since > 2*interval
}

// nextSync issues a sync when the timer or a Trim wants one and no other sync of the file can be
// outstanding.
func (l *Log) nextSync(now Now) Effect {
	s, a := &l.sync, &l.tail.active
	if !a.open || l.tail.rollbackTo > 0 || l.written == l.frontier {
		return nil
	}
	due := l.keep.want > l.frontier || l.cfg.Sync == segment.Periodic && s.since > 0 && now.Mono-s.since >= l.cfg.SyncInterval
	if !due {
		return nil
	}
	claim := l.written
	switch f := l.flight[Tail].(type) {
	case nil:
	case *Commit:
		if f.Sync {
			return nil
		}
		claim = s.claimable
		if claim <= l.frontier {
			return nil
		}
		l.mark(MarkSyncOverlap)
		if claim < l.written {
			l.mark(MarkSyncPartial)
		}
	default:
		return nil
	}
	if claim == l.written {
		s.nextSince = 0
	} else {
		check(s.bounds.len() > 0, "what is written and not claimed has a bound")
		s.nextSince = s.bounds.at(0).at // the oldest that stays unclaimed
	}
	a.round = true
	s.claimedBytes = s.unsyncedBytes
	s.effect = Sync{Segment: a.header.ID, Base: a.header.Base, End: claim}
	return &s.effect
}

func (l *Log) onSync(now Now, e *Sync, err error) {
	s := &l.sync
	if err != nil {
		l.mark(MarkPoisonSync)
		l.poison(err)
		return
	}
	l.stats.Syncs++
	if e.End > l.frontier {
		l.frontier = e.End
	}
	s.since, s.nextSince = s.nextSince, 0
	s.unsyncedBytes -= s.claimedBytes
	if l.frontier == l.written {
		s.synced()
	} else if s.since == 0 {
		s.since = max(now.Mono, 1)
	}
	l.tail.lastActivity = now.Mono
	l.raiseCommitted(now)
}

func (l *Log) syncDeadline(d *deadline) {
	s := &l.sync
	if l.cfg.Sync == segment.Periodic && s.since > 0 && l.flight[Syncs] == nil {
		d.add(s.since + l.cfg.SyncInterval)
	}
}
