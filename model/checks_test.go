package model

import (
	"strings"
	"testing"
)

// run is a Checker with shorthand: a log of one life, batches of n records, one client each.
type run struct {
	*Checker
	t   Time
	e   Epoch
	end Offset
}

func start(p Policy) *run {
	r := &run{Checker: new(Checker), e: 1}
	r.Reset()
	r.Opened(0, Life{Epoch: 1, Policy: p, SyncInterval: 100})
	return r
}

func (r *run) now() Time { r.t++; return r.t }

func (r *run) call() OpID { return r.Append(r.now(), Append{Records: 1}) }

func (r *run) accept(id OpID) {
	r.Accepted(r.now(), id, Ticket{First: r.end, End: r.end + 1, Epoch: r.e, Cohort: uint64(id)})
	r.end++
}

func (r *run) put() OpID { id := r.call(); r.accept(id); return id }

func (r *run) ack(id OpID) { r.Acked(r.now(), id) }

// add appends, syncs and acks.
func (r *run) add() OpID {
	id := r.put()
	r.Synced(r.now(), r.end)
	r.ack(id)
	return id
}

func (r *run) fail(id OpID) { r.Failed(r.now(), id); r.end = r.End() }

func (r *run) read(o Offset, e Epoch, v Value) { r.Read(r.now(), 0, r.Stamp(), o, e, v) }

func (r *run) reopen(kind CrashKind, p Policy, end Offset) {
	r.Crash(r.now(), kind)
	r.opened(p, end)
}

func (r *run) opened(p Policy, end Offset) {
	r.e++
	r.end = end
	r.Opened(r.now(), Life{Epoch: r.e, Policy: p, SyncInterval: 100, Start: r.Start(), End: end, Committed: end})
}

func (r *run) audit(vs ...Value) {
	r.AuditBegin(r.now())
	for i, v := range vs {
		_, e := r.At(Offset(i))
		r.AuditRecord(r.now(), Offset(i), e, v)
	}
	r.AuditEnd(r.now())
}

func (r *run) follow(from Position) { r.ReaderStart(r.now(), 0, from, true) }

// Each case has a legal history and the same with one thing wrong.
var cases = []struct {
	name   string
	check  Check
	policy Policy
	do     func(r *run, wrong bool)
}{
	{"acked is lost", K1, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.reopen(PowerLoss, OnCommit, pick[Offset](wrong, 1, 2))
	}},
	{"acked is lost by a kill under none", K1, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		r.reopen(ProcessKill, NoSync, pick[Offset](wrong, 0, 1))
	}},
	{"periodic loses what a sync proved", K1, Periodic, func(r *run, wrong bool) {
		r.add()
		r.ack(r.put())
		r.reopen(PowerLoss, Periodic, pick[Offset](wrong, 0, 1))
	}},
	{"kill loses only after a failed sync", K1, Periodic, func(r *run, wrong bool) {
		r.ack(r.put())
		if !wrong {
			r.SyncFailed(r.now())
		}
		r.reopen(ProcessKill, Periodic, 0)
	}},
	{"what an open recovered is durable", K1, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		r.reopen(ProcessKill, NoSync, 1)
		r.reopen(PowerLoss, NoSync, pick[Offset](wrong, 0, 1))
	}},
	{"a clean close loses nothing", K1, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		if wrong {
			r.Closed(r.now())
		}
		r.reopen(PowerLoss, NoSync, 0)
	}},
	{"ack before sync", K1, OnCommit, func(r *run, wrong bool) {
		id := r.put()
		if !wrong {
			r.Synced(r.now(), 1)
		}
		r.ack(id)
	}},
	{"acks go on although a sync hangs", K1, Periodic, func(r *run, wrong bool) {
		r.ack(r.put())
		r.t += pick[Time](wrong, 250, 150)
		r.ack(r.put())
	}},
	{"acked has other bytes", K1, OnCommit, func(r *run, wrong bool) {
		v := MakeValue(r.add(), 0)
		r.reopen(PowerLoss, OnCommit, 1)
		r.audit(pick(wrong, Value(77), v))
	}},
	{"duplicate acked before its original", K1, Periodic, func(r *run, wrong bool) {
		a := r.put()
		if !wrong {
			r.ack(a)
		}
		b := r.Append(r.now(), Append{Records: 1, Retry: a, Producer: Producer{ID: 7}})
		r.Accepted(r.now(), b, Ticket{First: 0, End: 1, Epoch: 1, Duplicate: true})
		r.ack(b)
	}},
	{"what a reader saw changes", K2, OnCommit, func(r *run, wrong bool) {
		v := MakeValue(r.add(), 0)
		r.follow(Position{})
		r.read(0, 1, v)
		r.follow(Position{})
		r.read(0, 1, pick(wrong, MakeValue(9, 0), v))
	}},
	{"what a reader saw is gone", K2, OnCommit, func(r *run, wrong bool) {
		id := r.put()
		r.Synced(r.now(), 1)
		r.Agree(r.now(), 0, 1, 1)
		r.follow(Position{})
		if wrong {
			r.read(0, 1, MakeValue(id, 0))
		}
		r.Disable(K3) // Committed covered it, too
		r.reopen(PowerLoss, OnCommit, 0)
	}},
	{"a reader gets what is not committed", K2, OnCommit, func(r *run, wrong bool) {
		id := r.put()
		r.Synced(r.now(), 1)
		r.Agree(r.now(), 0, 1, pick[Offset](wrong, 0, 1))
		r.follow(Position{})
		r.read(0, 1, MakeValue(id, 0))
	}},
	{"Committed comes back below what was seen", K2, OnCommit, func(r *run, wrong bool) {
		id := r.add()
		r.follow(Position{})
		r.read(0, 1, MakeValue(id, 0))
		r.Crash(r.now(), ProcessKill)
		r.Opened(r.now(), Life{Epoch: 2, End: 1, Committed: pick[Offset](wrong, 0, 1)})
	}},
	{"committed is lost", K3, OnCommit, func(r *run, wrong bool) {
		r.put()
		r.Synced(r.now(), 1)
		r.Agree(r.now(), 0, 1, 1)
		r.reopen(PowerLoss, OnCommit, pick[Offset](wrong, 0, 1))
	}},
	{"recovery makes up records", K3, OnCommit, func(r *run, wrong bool) {
		r.put()
		r.reopen(PowerLoss, OnCommit, pick[Offset](wrong, 2, 1))
	}},
	{"recovery cuts a batch in two", K3, OnCommit, func(r *run, wrong bool) {
		id := r.Append(r.now(), Append{Records: 2})
		r.Accepted(r.now(), id, Ticket{First: 0, End: 2, Epoch: 1, Cohort: 1})
		r.reopen(PowerLoss, OnCommit, pick[Offset](wrong, 1, 2))
	}},
	{"a recovered log has a hole", K3, OnCommit, func(r *run, wrong bool) {
		a, b := r.add(), r.add()
		r.reopen(PowerLoss, OnCommit, 2)
		r.AuditBegin(r.now())
		if !wrong {
			r.AuditRecord(r.now(), 0, 1, MakeValue(a, 0))
		}
		r.AuditRecord(r.now(), 1, 1, MakeValue(b, 0))
		r.AuditEnd(r.now())
	}},
	{"a recovered log is shorter than it said", K3, OnCommit, func(r *run, wrong bool) {
		v := MakeValue(r.add(), 0)
		r.reopen(PowerLoss, OnCommit, 1)
		if wrong {
			r.audit()
		} else {
			r.audit(v)
		}
	}},
	{"phantom", K4, OnCommit, func(r *run, wrong bool) {
		id := r.put() // unknown, in
		r.reopen(PowerLoss, OnCommit, 1)
		r.audit(pick(wrong, MakeValue(5, 0), MakeValue(id, 0)))
	}},
	{"a batch is in the log twice", K4, OnCommit, func(r *run, wrong bool) {
		a := r.Append(r.now(), Append{Records: 1, Producer: Producer{ID: 7}})
		r.accept(a)
		r.reopen(PowerLoss, OnCommit, pick[Offset](wrong, 1, 0))
		b := r.Append(r.now(), Append{Records: 1, Retry: a, Producer: Producer{ID: 7}})
		r.accept(b)
	}},
	{"a duplicate gets another span", K4, OnCommit, func(r *run, wrong bool) {
		r.add()
		a := r.Append(r.now(), Append{Records: 1, Producer: Producer{ID: 7}})
		r.accept(a)
		b := r.Append(r.now(), Append{Records: 1, Retry: a, Producer: Producer{ID: 7}})
		first := pick[Offset](wrong, 0, 1)
		r.Accepted(r.now(), b, Ticket{First: first, End: first + 1, Epoch: 1, Duplicate: true})
	}},
	{"a duplicate of what was rolled back", K4, OnCommit, func(r *run, wrong bool) {
		a := r.Append(r.now(), Append{Records: 1, Producer: Producer{ID: 7}})
		r.accept(a)
		if wrong {
			r.fail(a)
		}
		b := r.Append(r.now(), Append{Records: 1, Retry: a, Producer: Producer{ID: 7}})
		r.Accepted(r.now(), b, Ticket{First: 0, End: 1, Epoch: 1, Duplicate: true})
	}},
	{"an append has two outcomes", K4, OnCommit, func(r *run, wrong bool) {
		id := r.add()
		if wrong {
			r.ack(id)
		}
	}},
	{"an offset is acked twice", K4, OnCommit, func(r *run, wrong bool) {
		r.Disable(K16)
		r.Disable(K5)
		b := r.call()
		r.add()
		if !wrong {
			r.accept(b)
			r.Synced(r.now(), 2)
		} else {
			r.Accepted(r.now(), b, Ticket{First: 0, End: 1, Epoch: 1, Cohort: 9})
		}
		r.ack(b)
	}},
	{"a later append gets a lower offset", K5, OnCommit, func(r *run, wrong bool) {
		r.add()
		first := pick[Offset](wrong, 0, 1)
		r.Accepted(r.now(), r.call(), Ticket{First: first, End: first + 1, Epoch: 1, Cohort: 1})
	}},
	{"a look at the tail misses an ack", K6, OnCommit, func(r *run, wrong bool) {
		early := r.Stamp()
		r.add()
		late := r.Stamp()
		r.TailSeen(r.now(), 1, pick(wrong, late, early), 0)
		r.Finish(r.now(), false)
	}},
	{"the tail goes back", K6, NoSync, func(r *run, wrong bool) {
		r.put()
		r.TailSeen(r.now(), 1, r.Stamp(), 1)
		r.TailSeen(r.now(), 2, r.Stamp(), pick[Offset](wrong, 0, 1))
		r.Finish(r.now(), false)
	}},
	{"the tail goes back before a loss", K6, NoSync, func(r *run, wrong bool) {
		r.put()
		r.TailSeen(r.now(), 1, r.Stamp(), 1)
		r.TailSeen(r.now(), 2, r.Stamp(), pick[Offset](wrong, 0, 1))
		r.reopen(PowerLoss, NoSync, 0)
		r.TailSeen(r.now(), 2, r.Stamp(), 0)
	}},
	{"an unknown append comes and goes", K7, OnCommit, func(r *run, wrong bool) {
		r.put()
		r.Synced(r.now(), 1)
		r.reopen(PowerLoss, OnCommit, 1)
		r.reopen(PowerLoss, OnCommit, pick[Offset](wrong, 0, 1))
	}},
	{"an unknown append comes back", K7, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.reopen(PowerLoss, OnCommit, 0)
		r.put()
		r.Synced(r.now(), 1)
		b := r.log[0]
		r.reopen(PowerLoss, OnCommit, 1)
		r.AuditBegin(r.now())
		if wrong {
			r.AuditRecord(r.now(), 0, 1, MakeValue(a, 0))
		} else {
			r.AuditRecord(r.now(), 0, 2, MakeValue(b, 0))
		}
	}},
	{"an old owner acks", K8, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		z := r.put()
		r.reopen(PowerLoss, NoSync, 0)
		if wrong {
			r.ack(r.put())
			r.ack(z)
		} else {
			r.ack(r.put())
		}
	}},
	{"an epoch is claimed twice", K8, OnCommit, func(r *run, wrong bool) {
		r.Crash(r.now(), ProcessKill)
		r.Opened(r.now(), Life{Epoch: pick[Epoch](wrong, 1, 2)})
	}},
	{"ack after a failed sync", K9, Periodic, func(r *run, wrong bool) {
		id := r.put()
		if wrong {
			r.SyncFailed(r.now())
		}
		r.ack(id)
	}},
	{"an error is swallowed", K9, OnCommit, func(r *run, wrong bool) {
		r.ErrorInjected(r.now())
		if !wrong {
			r.ErrorSurfaced(r.now())
		}
		r.Finish(r.now(), true)
	}},
	{"damage is cut off", K11, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.DamageInjected(r.now(), 1, 2, !wrong)
		r.reopen(ProcessKill, OnCommit, 1)
		if !wrong && r.ExcusedLosses() != 1 {
			panic("excused loss not counted")
		}
	}},
	{"damage is served", K11, OnCommit, func(r *run, wrong bool) {
		v := MakeValue(r.add(), 0)
		r.DamageInjected(r.now(), 0, 1, false)
		r.follow(Position{})
		if wrong {
			r.read(0, 1, v+1)
		} else {
			r.ReadCorrupt(r.now(), 0, 0)
		}
	}},
	{"damage is invented", K11, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.DamageInjected(r.now(), pick[Offset](wrong, 0, 1), 2, false)
		if wrong {
			r.DamageHealed(r.now(), 0, 2)
		}
		r.follow(Position{Offset: 1})
		r.ReadCorrupt(r.now(), 0, 1)
	}},
	{"excused damage that survived an open is cut off later", K11, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.DamageInjected(r.now(), 1, 2, true)
		r.reopen(ProcessKill, OnCommit, 2)
		r.follow(Position{Offset: 1})
		r.ReadCorrupt(r.now(), 0, 1)
		if !wrong {
			r.DamageInjected(r.now(), 0, 2, true)
		}
		r.reopen(ProcessKill, OnCommit, 1)
	}},
	{"a reader is told of damage after a failed sync", K11, Periodic, func(r *run, wrong bool) {
		r.add()
		r.ack(r.put())
		r.SyncFailed(r.now())
		o := pick[Offset](wrong, 0, 1)
		r.follow(Position{Offset: o})
		r.ReadCorrupt(r.now(), 0, o)
	}},
	{"an audit is told of damage that nobody did", K11, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		if !wrong {
			r.DamageInjected(r.now(), 0, 1, false)
		}
		r.AuditBegin(r.now())
		r.AuditDamage(r.now(), 0, 1)
		r.AuditRecord(r.now(), 1, 1, r.value(1))
		r.AuditEnd(r.now())
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
	{"offsets skip over a restart", K16, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.reopen(PowerLoss, OnCommit, 1)
		first := pick[Offset](wrong, 2, 1)
		r.Accepted(r.now(), r.call(), Ticket{First: first, End: first + 1, Epoch: 2, Cohort: 1})
	}},
	{"an append fails below an acked one", K16, NoSync, func(r *run, wrong bool) {
		a := r.put()
		b := r.put()
		if wrong {
			r.ack(b)
		}
		r.fail(a)
	}},
	{"a reader skips", K16, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.ReaderStart(r.now(), 0, Position{}, false)
		o := pick[Offset](wrong, 1, 0)
		r.read(o, 1, r.value(o))
	}},
	{"end disagrees", K17, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.Agree(r.now(), 0, pick[Offset](wrong, 2, 1), 1)
	}},
	{"Start disagrees", K17, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.Agree(r.now(), pick[Offset](wrong, 1, 0), 1, 1)
	}},
	{"Committed goes back", K17, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.Agree(r.now(), 0, 1, pick[Offset](wrong, 0, 1))
	}},
	{"Committed runs ahead of the device", K17, OnCommit, func(r *run, wrong bool) {
		r.put()
		r.Agree(r.now(), 0, 1, pick[Offset](wrong, 1, 0))
	}},
	{"a ticket has another life's epoch", K17, OnCommit, func(r *run, wrong bool) {
		r.Accepted(r.now(), r.call(), Ticket{First: 0, End: 1, Epoch: pick[Epoch](wrong, 2, 1), Cohort: 1})
	}},
	{"a definite failure is in the log", K23, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.fail(a)
		b := r.put()
		r.reopen(PowerLoss, OnCommit, 1)
		r.audit(MakeValue(pick(wrong, a, b), 0))
	}},
	{"a record that was seen fails", K23, NoSync, func(r *run, wrong bool) {
		a := r.put()
		if wrong {
			r.Agree(r.now(), 0, 1, 1)
			r.follow(Position{})
			r.read(0, 1, MakeValue(a, 0))
		}
		r.fail(a)
	}},
	{"an append behind a failed one is acked", K1, NoSync, func(r *run, wrong bool) {
		a, b := r.put(), r.put()
		if wrong {
			r.fail(a)
		} else {
			r.ack(a)
		}
		r.ack(b)
	}},
	{"a duplicate is acked after its original was rolled back", K1, NoSync, func(r *run, wrong bool) {
		a, b := r.pair()
		if wrong {
			r.fail(a)
		} else {
			r.ack(a)
		}
		r.ack(b)
	}},
	{"a duplicate is acked before the sync of its cohort", K1, OnCommit, func(r *run, wrong bool) {
		_, b := r.pair()
		if !wrong {
			r.Synced(r.now(), 1)
		}
		r.ack(b)
	}},
	{"an append fails after its ack", K4, OnCommit, func(r *run, wrong bool) {
		a := r.add()
		if wrong {
			r.fail(a)
		}
	}},
	{"an append fails twice", K4, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.fail(a)
		if wrong {
			r.fail(a)
		}
	}},
	{"an append is unknown after its ack", K4, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.Synced(r.now(), 1)
		if wrong {
			r.ack(a)
		}
		r.Unknown(r.now(), a)
	}},
	{"an append is acked after it was unknown", K4, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.Synced(r.now(), 1)
		if wrong {
			r.Unknown(r.now(), a)
		}
		r.ack(a)
	}},
	{"an append is accepted after it was refused", K4, OnCommit, func(r *run, wrong bool) {
		a := r.call()
		if wrong {
			r.fail(a)
		}
		r.accept(a)
	}},
	{"an append is acked without a ticket", K4, OnCommit, func(r *run, wrong bool) {
		a := r.call()
		if !wrong {
			r.accept(a)
			r.Synced(r.now(), 1)
		}
		r.ack(a)
	}},
	{"an append is acked after it failed", K23, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.Synced(r.now(), 1)
		if wrong {
			r.fail(a)
		}
		r.ack(a)
	}},
	{"an append that is in fails late", K23, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.reopen(ProcessKill, OnCommit, pick[Offset](wrong, 1, 0))
		r.fail(a)
	}},
	{"an append fails below Committed", K17, NoSync, func(r *run, wrong bool) {
		a := r.put()
		r.Agree(r.now(), 0, 1, pick[Offset](wrong, 1, 0))
		r.fail(a)
	}},
	{"a ticket is too long", K17, NoSync, func(r *run, wrong bool) {
		r.Accepted(r.now(), r.call(), Ticket{First: 0, End: pick[Offset](wrong, 2, 1), Epoch: 1, Cohort: 1})
	}},
	{"Committed is above the end", K17, NoSync, func(r *run, wrong bool) {
		r.put()
		r.Agree(r.now(), 0, 1, pick[Offset](wrong, 2, 1))
	}},
	{"Committed comes back above the end", K17, OnCommit, func(r *run, wrong bool) {
		r.Crash(r.now(), ProcessKill)
		r.Opened(r.now(), Life{Epoch: 2, Committed: pick[Offset](wrong, 1, 0)})
	}},
	{"recovery ends below zero", K3, OnCommit, func(r *run, wrong bool) {
		r.reopen(ProcessKill, OnCommit, pick[Offset](wrong, -1, 0))
	}},
	{"an audit of damage leaves a hole", K3, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.DamageInjected(r.now(), 0, 2, false)
		r.AuditBegin(r.now())
		r.AuditDamage(r.now(), pick[Offset](wrong, 1, 0), 2)
		r.AuditEnd(r.now())
	}},
	{"an audit is given damaged bytes", K11, OnCommit, func(r *run, wrong bool) {
		v := MakeValue(r.add(), 0)
		r.DamageInjected(r.now(), 0, 1, false)
		r.audit(pick(wrong, v+1, v))
	}},
	{"damage that was healed is reported", K11, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.DamageInjected(r.now(), 0, 1, false)
		r.DamageInjected(r.now(), 1, 2, false)
		r.DamageHealed(r.now(), 0, 1)
		o := pick[Offset](wrong, 0, 1)
		r.follow(Position{Offset: o})
		r.ReadCorrupt(r.now(), 0, o)
	}},
	{"a close succeeds after a failed sync", K9, NoSync, func(r *run, wrong bool) {
		if wrong {
			r.SyncFailed(r.now())
		}
		r.Closed(r.now())
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
	{"a reader finds nothing below Committed", K16, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		r.ReaderStart(r.now(), 0, Position{}, false)
		if !wrong {
			r.read(0, 1, r.value(0))
		}
		r.ReadEnd(r.now(), 0, r.Stamp(), 1)
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
	{"the end is seen inside a batch", K6, NoSync, func(r *run, wrong bool) {
		id := r.Append(r.now(), Append{Records: 2})
		r.Accepted(r.now(), id, Ticket{First: 0, End: 2, Epoch: 1, Cohort: 1})
		r.TailSeen(r.now(), 1, r.Stamp(), pick[Offset](wrong, 1, 2))
		r.Finish(r.now(), false)
	}},
	{"the tail goes back behind an unknown append that is in", K6, NoSync, func(r *run, wrong bool) {
		r.put()
		early := r.Stamp()
		r.reopen(ProcessKill, NoSync, 1)
		r.TailSeen(r.now(), 1, pick(wrong, r.Stamp(), early), 0)
		r.Finish(r.now(), false)
	}},
	{"an open is refused for nothing", K25, OnCommit, func(r *run, wrong bool) {
		r.add()
		if !wrong {
			r.DamageInjected(r.now(), 0, 1, false)
		}
		r.Crash(r.now(), PowerLoss)
		r.OpenRefused(r.now())
	}},
}

// pair puts a batch and a duplicate of it that joins its cohort.
func (r *run) pair() (a, b OpID) {
	a = r.Append(r.now(), Append{Records: 1, Producer: Producer{ID: 7}})
	r.Accepted(r.now(), a, Ticket{First: 0, End: 1, Epoch: 1, Cohort: 5})
	b = r.Append(r.now(), Append{Records: 1, Retry: a, Producer: Producer{ID: 7}})
	r.Accepted(r.now(), b, Ticket{First: 0, End: 1, Epoch: 1, Cohort: 5, Duplicate: true})
	r.end = 1
	return a, b
}

// segments adds three records and returns a segment of 10 bytes for each; the last is active.
func (r *run) segments() []SegmentSpan {
	r.add()
	r.add()
	r.add()
	return []SegmentSpan{
		{First: 0, End: 1, Bytes: 10, Newest: 10, Seen: 10},
		{First: 1, End: 2, Bytes: 10, Newest: 1000, Seen: 20}, // written by a clock in the future
		{First: 2, End: 3, Bytes: 10, Newest: 30, Seen: 30, Active: true},
	}
}

func pick[T any](wrong bool, yes, no T) T {
	if wrong {
		return yes
	}
	return no
}

func TestEveryCheckCanFail(t *testing.T) {
	tripped := map[Check]bool{}
	for _, c := range cases {
		t.Run(c.check.String()+" "+c.name, func(t *testing.T) {
			good := start(c.policy)
			c.do(good, false)
			if v := good.Violation(); v != nil {
				t.Fatalf("legal history: %v", v)
			}
			bad := start(c.policy)
			c.do(bad, true)
			v := bad.Violation()
			if v == nil {
				t.Fatal("illegal history passes")
			}
			if v.Check != c.check {
				t.Fatalf("tripped another check: %v", v)
			}
			tripped[v.Check] = true
			text := v.Error()
			if !strings.Contains(text, v.Check.String()+" violated: ") || strings.Contains(text, "\n") {
				t.Fatalf("text: %q", text)
			}
			// With the check off the run goes on without a panic, whatever comes of it.
			off := start(c.policy)
			off.Disable(c.check)
			c.do(off, true)
			off.Finish(off.now(), true)
			if v := off.Violation(); v != nil && v.Check == c.check {
				t.Fatalf("disabled, and yet: %v", v)
			}
		})
	}
	for _, k := range Checks {
		if !tripped[k] {
			t.Errorf("%v: no case shows that it can fail", k)
		}
	}
}

func TestContentDiffers(t *testing.T) {
	var a, b Content
	for _, c := range []*Content{&a, &b} {
		c.Reset(3)
		c.Add(1, MakeValue(1, 0))
		c.Add(2, MakeValue(2, 0))
	}
	if at, differs := a.Differs(&b); differs || a.Hash() != b.Hash() || a.End() != 5 {
		t.Fatal("equal contents differ at", at)
	}
	b.Add(2, MakeValue(3, 0))
	if at, differs := a.Differs(&b); !differs || at != 5 || a.Hash() == b.Hash() {
		t.Fatal("longer content: differs at", at, differs)
	}
	b.Reset(3)
	b.Add(1, MakeValue(1, 0))
	b.Add(1, MakeValue(2, 0))
	if at, differs := a.Differs(&b); !differs || at != 4 {
		t.Fatal("other epoch: differs at", at, differs)
	}
	b.Reset(2)
	if at, differs := a.Differs(&b); !differs || at != 2 {
		t.Fatal("other start: differs at", at, differs)
	}
}
