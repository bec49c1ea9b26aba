package model

// What recoveries and failures may take.
var recoveryCases = []checkCase{
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
	{"an offset that was rolled back is acked on its old sync", K1, OnCommit, func(r *run, wrong bool) {
		a := r.put()
		r.Synced(r.now(), 1)
		r.fail(a)
		b := r.put()
		if !wrong {
			r.Synced(r.now(), 1)
		}
		r.ack(b)
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
		r.AuditEnd(r.now(), r.End())
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
	{"recovery ends below zero", K3, OnCommit, func(r *run, wrong bool) {
		r.reopen(ProcessKill, OnCommit, pick[Offset](wrong, -1, 0))
	}},
	{"an audit of damage leaves a hole", K3, OnCommit, func(r *run, wrong bool) {
		r.add()
		r.add()
		r.DamageInjected(r.now(), 0, 2, false)
		r.AuditBegin(r.now())
		r.AuditDamage(r.now(), pick[Offset](wrong, 1, 0), 2)
		r.AuditEnd(r.now(), r.End())
	}},
	{"an unknown append comes and goes", K7, OnCommit, func(r *run, wrong bool) {
		r.put()
		r.Synced(r.now(), 1)
		r.reopen(PowerLoss, OnCommit, 1)
		r.reopen(PowerLoss, OnCommit, pick[Offset](wrong, 0, 1))
	}},
	{"what an open recovered goes before Committed covers it", K7, NoSync, func(r *run, wrong bool) {
		r.put()
		r.Crash(r.now(), ProcessKill)
		r.Opened(r.now(), Life{Epoch: 2, Policy: NoSync, End: 1})
		r.Crash(r.now(), PowerLoss)
		r.Opened(r.now(), Life{Epoch: 3, Policy: NoSync, End: pick[Offset](wrong, 0, 1)})
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
	{"a close succeeds after a failed sync", K9, NoSync, func(r *run, wrong bool) {
		if wrong {
			r.SyncFailed(r.now())
		}
		r.Closed(r.now())
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
		r.AuditEnd(r.now(), r.End())
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
	{"an open is refused for nothing", K25, OnCommit, func(r *run, wrong bool) {
		r.add()
		if !wrong {
			r.DamageInjected(r.now(), 0, 1, false)
		}
		r.Crash(r.now(), PowerLoss)
		r.OpenRefused(r.now())
	}},
}
