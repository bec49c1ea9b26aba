package model

// What appends are told, and where their records lie.
var appendCases = []checkCase{
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
	{"a producer is forgotten for a batch that failed", K4, OnCommit, func(r *run, wrong bool) {
		a := r.Append(r.now(), Append{Records: 1, Producer: Producer{ID: 7}, Room: 1})
		r.accept(a)
		r.Synced(r.now(), 1)
		r.ack(a)
		b := r.Append(r.now(), Append{Records: 1, Producer: Producer{ID: 8}, Room: 1})
		r.accept(b)
		if wrong {
			r.fail(b)
		}
		c := r.Append(r.now(), Append{Records: 1, Retry: a, Producer: Producer{ID: 7}, Room: 1})
		r.accept(c)
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
	{"a later append gets a lower offset", K5, OnCommit, func(r *run, wrong bool) {
		r.add()
		first := pick[Offset](wrong, 0, 1)
		r.Accepted(r.now(), r.call(), Ticket{First: first, End: first + 1, Epoch: 1, Cohort: 1})
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
	{"a reader finds nothing below Committed", K16, NoSync, func(r *run, wrong bool) {
		r.ack(r.put())
		r.ReaderStart(r.now(), 0, Position{}, false)
		if !wrong {
			r.read(0, 1, r.value(0))
		}
		r.ReadEnd(r.now(), 0, r.Stamp(), 1)
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
}
