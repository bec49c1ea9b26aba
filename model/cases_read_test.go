package model

// What readers see: the tail, follow, Start.
var readCases = []checkCase{
	{"a look at the tail misses an ack", K6, OnCommit, func(r *run, wrong bool) {
		early := r.Stamp()
		r.add()
		late := r.Stamp()
		r.TailSeen(r.now(), 1, pick(wrong, late, early), 0)
		r.Finish(r.now())
	}},
	{"the tail goes back", K6, NoSync, func(r *run, wrong bool) {
		r.put()
		r.TailSeen(r.now(), 1, r.Stamp(), 1)
		r.TailSeen(r.now(), 2, r.Stamp(), pick[Offset](wrong, 0, 1))
		r.Finish(r.now())
	}},
	{"the tail goes back before a loss", K6, NoSync, func(r *run, wrong bool) {
		r.put()
		r.TailSeen(r.now(), 1, r.Stamp(), 1)
		r.TailSeen(r.now(), 2, r.Stamp(), pick[Offset](wrong, 0, 1))
		r.reopen(PowerLoss, NoSync, 0)
		r.TailSeen(r.now(), 2, r.Stamp(), 0)
	}},
	{"the end is seen inside a batch", K6, NoSync, func(r *run, wrong bool) {
		id := r.Append(r.now(), Append{Records: 2})
		r.Accepted(r.now(), id, Ticket{First: 0, End: 2, Epoch: 1, Cohort: 1})
		r.TailSeen(r.now(), 1, r.Stamp(), pick[Offset](wrong, 1, 2))
		r.Finish(r.now())
	}},
	{"the tail goes back behind an unknown append that is in", K6, NoSync, func(r *run, wrong bool) {
		r.put()
		early := r.Stamp()
		r.reopen(ProcessKill, NoSync, 1)
		r.TailSeen(r.now(), 1, pick(wrong, r.Stamp(), early), 0)
		r.Finish(r.now())
	}},
	{"Start goes back", K14, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.TrimCalled(r.now(), 1)
		r.StartMoved(r.now(), 1, nil)
		r.TrimReturned(r.now(), 1)
		r.Crash(r.now(), ProcessKill)
		r.Opened(r.now(), Life{Epoch: 2, Start: pick[Offset](wrong, 0, 1), End: 2, Committed: 2})
	}},
	{"a trim takes too much", K14, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.TrimCalled(r.now(), 1)
		r.StartMoved(r.now(), pick[Offset](wrong, 2, 1), nil)
	}},
	{"a trim returns too early", K14, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.TrimCalled(r.now(), 1)
		if !wrong {
			r.StartMoved(r.now(), 1, nil)
		}
		r.TrimReturned(r.now(), 1)
	}},
	{"a record below Start is served", K14, OnCommit, func(r *run, wrong bool) {
		v := MakeValue(r.add(), 0)
		early := r.Stamp()
		r.TrimCalled(r.now(), 1)
		r.StartMoved(r.now(), 1, nil)
		r.follow(Position{})
		r.Read(r.now(), 0, pick(wrong, r.Stamp(), early), 0, 1, v)
	}},
	{"a reader is told trimmed above Start", K14, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.TrimCalled(r.now(), 1)
		r.StartMoved(r.now(), 1, nil)
		r.follow(Position{Offset: pick[Offset](wrong, 1, 0)})
		r.ReadTrimmed(r.now(), 0, 1)
	}},
	{"retention deletes too much by size", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		r.RetentionRuns(r.now(), 100, Retention{Bytes: 20, Age: Unlimited}, segs)
		r.StartMoved(r.now(), pick[Offset](wrong, 2, 1), segs)
	}},
	{"retention keeps less than its size", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		r.RetentionRuns(r.now(), 100, Retention{Bytes: 11, Age: Unlimited}, segs)
		r.StartMoved(r.now(), pick[Offset](wrong, 2, 1), segs)
	}},
	{"retention keeps too much by age", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		keep := Retention{Bytes: Unlimited, Age: 50}
		r.RetentionRuns(r.now(), 100, keep, segs)
		if !wrong {
			r.StartMoved(r.now(), 2, segs)
		}
		r.RetentionDone(r.now(), 100, keep, segs)
	}},
	{"retention deletes the active segment", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		r.RetentionRuns(r.now(), 1000, Retention{Bytes: 1, Age: 1}, segs)
		r.StartMoved(r.now(), pick[Offset](wrong, 3, 2), segs)
	}},
	{"a clock that stepped back deletes", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		r.RetentionRuns(r.now(), pick[Time](wrong, 0, 100), Retention{Bytes: Unlimited, Age: 50}, segs)
		r.StartMoved(r.now(), 1, segs)
	}},
	{"the limits of the disk let too much go", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		r.HotStartFound(r.now(), 0)
		r.EvictionRuns(r.now(), 100, Retention{Bytes: 20, Age: Unlimited}, segs)
		r.HotStartMoved(r.now(), pick[Offset](wrong, 2, 1), segs)
	}},
	{"the limits of the disk let too little go", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		keep := Retention{Bytes: Unlimited, Age: 50}
		r.EvictionRuns(r.now(), 100, keep, segs)
		r.EvictionDone(r.now(), 100, keep, segs, pick[Offset](wrong, 0, 2))
	}},
	{"an offload takes more than it was asked for", K14, OnCommit, func(r *run, wrong bool) {
		segs := r.segments()
		r.HotStartFound(r.now(), 0)
		r.OffloadCalled(r.now(), 1)
		r.HotStartMoved(r.now(), pick[Offset](wrong, 2, 1), segs)
	}},
	{"Start goes back at once", K14, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.TrimCalled(r.now(), 2)
		r.StartMoved(r.now(), 1, nil)
		r.StartMoved(r.now(), pick[Offset](wrong, 0, 2), nil)
	}},
	{"Start comes back higher", K14, OnCommit, func(r *run, wrong bool) {
		r.add()
		if !wrong {
			r.TrimCalled(r.now(), 1)
		}
		r.Crash(r.now(), ProcessKill)
		r.Opened(r.now(), Life{Epoch: 2, Start: 1, End: 1, Committed: 1})
	}},
	{"Start comes back above the end", K14, NoSync, func(r *run, wrong bool) {
		r.add()
		r.TrimCalled(r.now(), 2)
		r.Crash(r.now(), ProcessKill)
		r.Opened(r.now(), Life{Epoch: 2, Start: pick[Offset](wrong, 2, 1), End: 1, Committed: 1})
	}},
	{"a trim goes above Committed", K14, NoSync, func(r *run, wrong bool) {
		r.put()
		r.Synced(r.now(), 1)
		r.TrimCalled(r.now(), 1)
		r.Agree(r.now(), 0, 1, pick[Offset](wrong, 0, 1))
		r.StartMoved(r.now(), 1, nil)
	}},
	{"a trim goes above what the device holds", K14, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		if !wrong {
			r.Synced(r.now(), 1)
		}
		r.TrimCalled(r.now(), 1)
		r.StartMoved(r.now(), 1, nil)
	}},
	{"retention deletes a part of a segment", K14, OnCommit, func(r *run, wrong bool) {
		r.segments()
		segs := []SegmentSpan{{First: 0, End: 2, Bytes: 20}, {First: 2, End: 3, Bytes: 10, Active: true}}
		r.RetentionRuns(r.now(), 100, Retention{Bytes: 10, Age: Unlimited}, segs)
		r.StartMoved(r.now(), pick[Offset](wrong, 1, 2), segs)
	}},
	{"a reader is told of a Start to come", K14, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.TrimCalled(r.now(), 1)
		r.follow(Position{})
		if !wrong {
			r.StartMoved(r.now(), 1, nil)
		}
		r.ReadTrimmed(r.now(), 0, 1)
	}},
	{"follow skips", K15, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		o := pick[Offset](wrong, 1, 0)
		r.follow(Position{})
		r.read(o, 1, r.value(o))
	}},
	{"follow repeats", K15, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.follow(Position{})
		r.read(0, 1, r.value(0))
		o := pick[Offset](wrong, 0, 1)
		r.read(o, 1, r.value(o))
	}},
	{"follow is not complete", K15, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.follow(Position{})
		if !wrong {
			r.read(0, 1, r.value(0))
		}
		r.ReaderDone(r.now(), 0)
	}},
	{"a wake-up is lost", K15, OnCommit, func(r *run, wrong bool) {
		r.follow(Position{})
		if wrong {
			r.add()
		}
		r.ReadEnd(r.now(), 0, r.Stamp(), r.end)
	}},
	{"a diverged reader goes on", K15, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		r.follow(Position{})
		r.read(0, 1, r.value(0))
		r.reopen(PowerLoss, NoSync, 0)
		r.ack(r.put())
		r.ack(r.put())
		if wrong {
			r.read(1, 2, r.value(1))
		} else {
			r.ReadDiverged(r.now(), 0)
		}
	}},
	{"a good reader is told it diverged", K15, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		r.follow(Position{})
		r.read(0, 1, r.value(0))
		r.reopen(PowerLoss, NoSync, pick[Offset](wrong, 1, 0))
		r.Disable(K1)
		r.ReadDiverged(r.now(), 0)
	}},
	{"a diverged reader waits", K15, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		r.follow(Position{})
		if wrong {
			r.read(0, 1, r.value(0))
		}
		r.reopen(PowerLoss, NoSync, 0)
		r.ReadEnd(r.now(), 0, r.Stamp(), 0)
	}},
}
