package ideal

import "varve/model"

// crash ends the life, loses what the policy lets it lose, and opens the next.
func (l *Log) crash() {
	kind := model.CrashKind(l.draw(2))
	l.c.Crash(l.tick(), kind)
	owed := l.committed
	if l.o.Policy != model.OnCommit && (kind == model.PowerLoss || l.poisoned) {
		owed = l.synced
	}
	end := l.boundary(owed + model.Offset(l.draw(int(l.end()-owed)+1)))
	if l.o.Bug == LoseAcked && owed > l.start && l.draw(2) == 0 {
		end = owed - 1
		for end > l.start && l.log[end].value.Index() != 0 {
			end--
		}
	}
	l.late = 0
	for i := range l.clients {
		k := &l.clients[i]
		if k.phase == called || k.phase == accepted {
			if k.phase == accepted && !k.ticket.Duplicate {
				l.late = k.op
			}
			k.retry, k.atRetried = k.origin, k.records
			if l.draw(2) == 0 {
				l.c.Unknown(l.tick(), k.op)
			}
		}
		k.phase = idle
	}
	l.log = l.log[:end]
	l.open(end)
}

// open starts a life with [0, end).
func (l *Log) open(end model.Offset) {
	l.lives++
	l.epoch++
	switch {
	case l.o.Bug == Invent && l.epoch > 1:
		l.log = append(l.log, record{model.MakeValue(1000, 0), l.epoch - 1})
		end++
	case l.o.Bug == Revive && l.deadValid && l.deadAt < end:
		l.log[l.deadAt] = l.dead
	case l.o.Bug == StartBack:
		l.start = 0
	}
	n := 0
	for _, w := range l.lineage {
		if w.first < end {
			l.lineage[n] = w
			n++
		}
	}
	l.lineage = append(l.lineage[:n], owner{l.epoch, end})
	l.committed, l.synced, l.poisoned, l.deadValid = end, end, false, false
	l.oldTail = min(l.oldTail, end)
	l.c.Opened(l.tick(), model.Life{
		Epoch: l.epoch, Policy: l.o.Policy, SyncInterval: interval,
		Start: l.start, End: end, Committed: end,
	})
	l.audit()
}

func (l *Log) audit() {
	l.c.AuditBegin(l.now)
	for o := l.start; o < l.end(); o++ {
		l.c.AuditRecord(l.now, o, l.log[o].epoch, l.log[o].value)
	}
	l.c.AuditEnd(l.now, l.c.End())
}

func (l *Log) trim() {
	l.sync() // a trim goes only as far as the device
	top := min(l.committed, l.synced)
	if l.poisoned || top <= l.start {
		return
	}
	to := l.start + model.Offset(l.draw(int(top-l.start)+1))
	l.c.TrimCalled(l.tick(), to)
	l.start = to
	if l.o.Bug == TrimTooFar && to < top {
		l.start++
	}
	l.c.StartMoved(l.tick(), l.start, nil)
	l.c.TrimReturned(l.tick(), to)
}
