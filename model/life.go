package model

// Opened says that an open finished, with what it claims; the log may serve from here. The first
// one creates the log.
//
// What may be missing, by the policy of the life that ended:
//
//   - on_commit: nothing that was acked, seen, or covered by Committed;
//   - periodic and none, process kill: the same;
//   - periodic and none, power loss, or any crash after a failed sync: what was not proven;
//   - nothing that an earlier open had recovered, under any policy;
//   - from excused damage on, whatever followed (counted).
func (c *Checker) Opened(now Time, l Life) {
	if !c.event(now) {
		return
	}
	if n := len(c.lives); n > 0 && l.Epoch <= c.lives[n-1].epoch {
		c.fail(K8, "an open did not raise the epoch", 0, -1, int64(c.lives[n-1].epoch)+1, int64(l.Epoch))
	}
	if n := c.current(); n >= 0 && c.lives[n].poisoned {
		c.lossy = true // no crash: reopened in the same process
	}
	if !c.crashed {
		c.crashAt = c.stamp
	}
	c.judgeEnd(l.End)
	c.judgeStart(l.Start, l.End)
	switch {
	case l.Committed < min(c.seen, l.End) && !l.Waits:
		c.fail(K2, "Committed came back below what readers had seen", 0, l.Committed, c.seen, l.Committed)
	case l.Committed > l.End:
		c.fail(K17, "Committed came back above the end", 0, l.Committed, l.End, l.Committed)
	}
	if c.failed {
		return
	}
	c.settle(max(0, min(l.End, c.End())))
	c.begin(l)
}

// owed returns the end that recovery must reach, and whether excused damage lowered it.
func (c *Checker) owed() (end Offset, excused bool) {
	end = max(c.acked, c.seen, c.committed)
	if c.lossy && c.policy() != OnCommit {
		end = min(end, c.proven)
	}
	end = max(end, c.recovered)
	if c.lost {
		end = min(end, c.kept)
	}
	for i := range c.damages {
		if d := &c.damages[i]; d.excused && d.first < end {
			end, excused = d.first, true
		}
	}
	return end, excused
}

// judgeEnd judges the end of a recovered log: what it lost, and what it made up.
func (c *Checker) judgeEnd(end Offset) {
	owed, excused := c.owed()
	if excused && end < max(c.acked, c.seen) {
		c.excusedLosses++
	}
	switch {
	case end > c.End():
		c.fail(K3, "a recovered log extends beyond what was ever accepted", 0, end, c.End(), end)
		return
	case end < 0:
		c.fail(K3, "a recovered log ends below zero", 0, end, owed, end)
		return
	case end < owed:
		c.judgeLoss(end, owed)
	}
	if end < c.End() && !(c.lost && end <= max(c.start, c.trimTo, c.retainTo)) {
		if id := c.log[end]; c.ops[id].first < end {
			c.fail(K3, "a recovered log ends inside a batch", id, end, c.ops[id].first, end)
		}
	}
}

// judgeLoss names the promise that the loss of [end, owed) breaks.
func (c *Checker) judgeLoss(end, owed Offset) {
	id := c.log[end]
	p := &c.ops[id]
	switch {
	case c.damagedIn(end, owed):
		c.fail(K11, "damage was cut off instead of reported", id, end, owed, end)
	case p.state == opAcked || end < c.acked:
		c.fail(K1, "acked records are gone after recovery", id, end, owed, end)
	case end < c.seen:
		c.fail(K2, "records that a reader saw are gone after recovery", id, end, owed, end)
	case p.state == opIn:
		c.fail(K7, "an append found to be in is gone after recovery", id, end, owed, end)
	default: // Committed covered it
		c.fail(K3, "a recovered log ends below what was committed", id, end, owed, end)
	}
}

func (c *Checker) judgeStart(start, end Offset) {
	switch {
	case start < c.start:
		c.fail(K14, "Start went back over a reopen", 0, start, c.start, start)
	case start > max(c.start, c.trimTo, c.retainTo):
		c.fail(K14, "Start came back above what trims and retention asked for", 0, start,
			max(c.start, c.trimTo, c.retainTo), start)
	case start > end:
		c.fail(K14, "Start came back above the end", 0, start, end, start)
	}
}

// settle decides every append without an outcome by the recovered end, and takes out what is gone.
func (c *Checker) settle(end Offset) {
	if end < c.End() {
		c.checkLinear()
		for o := end; o < c.End(); {
			p := &c.ops[c.log[o]]
			switch {
			case p.state == opAcked || p.state == opIn || p.first < c.seen:
				p.state = opLost
			default:
				p.state = opOut
			}
			o = p.end
		}
		c.history.lost(c, end)
		c.cut(end)
	} else if len(c.lives) > 0 {
		c.history.lost(c, end)
	}
	c.linear.Lose(end, c.stamp)
	for i := c.settled; i < len(c.ops); i++ {
		p := &c.ops[i]
		switch p.state {
		case opCalled, opAccepted, opUnknown:
			p.state = opOut
			if p.inLog || (p.duplicate && c.ops[p.target].inLog) {
				p.state = opIn
			}
		}
	}
	c.settled = len(c.ops)
}

// begin starts the next life. All that it recovered is on the device.
func (c *Checker) begin(l Life) {
	end := c.End()
	n := 0
	for _, e := range c.lineage {
		if e.first < end {
			c.lineage[n] = e
			n++
		}
	}
	c.lineage = append(c.lineage[:n], ownership{l.Epoch, end})
	c.lives = append(c.lives, life{
		epoch: l.Epoch, policy: l.Policy, interval: l.SyncInterval, firstAcked: offsetNone,
	})
	n = 0
	for _, d := range c.damages {
		if d.first < end {
			d.end, d.excused = min(d.end, end), false // it may still be there; but nothing above is unproven now
			c.damages[n] = d
			n++
		}
	}
	c.damages = c.damages[:n]
	c.proven, c.recovered = end, end
	c.committed = max(0, min(l.Committed, end))
	c.waits = l.Waits
	c.moveStart(max(c.start, min(l.Start, end)))
	c.crashed, c.lossy, c.lost = false, false, false
}

// Crash says that the life ended without a close, or that an open did: appends without an outcome
// are unknown, and the next Opened says what is left. MemoryPressure ends nothing.
func (c *Checker) Crash(now Time, kind CrashKind) {
	if !c.event(now) || kind == MemoryPressure {
		return
	}
	if !c.crashed {
		c.crashed, c.crashAt = true, c.stamp
	}
	if kind == PowerLoss || (len(c.lives) > 0 && c.lives[c.current()].poisoned) {
		c.lossy = true
	}
}

// DiskLost says that the local disk is lost while no process runs, and that other tiers hold the
// records below an offset: those the next open must still have, whatever the policy.
func (c *Checker) DiskLost(now Time, kept Offset) {
	if !c.event(now) {
		return
	}
	if !c.crashed {
		c.crashed, c.crashAt = true, c.stamp
	}
	if !c.lost || kept < c.kept {
		c.kept = kept
	}
	c.lost = true
}

// Closed says that a clean close succeeded: all that was accepted is on the device.
func (c *Checker) Closed(now Time) {
	if !c.event(now) {
		return
	}
	if n := c.current(); n >= 0 && c.lives[n].poisoned {
		c.fail(K9, "a close succeeded after a failed sync", 0, -1, 0, 1)
	}
	c.proven = c.End()
	if !c.crashed {
		c.crashed, c.crashAt = true, c.stamp
	}
}

// OpenRefused says that an open ended in an error that needs an operator (damage, a missing suffix,
// a refusal), not in an I/O error that was injected.
func (c *Checker) OpenRefused(now Time) {
	if c.event(now) && len(c.damages) == 0 {
		c.fail(K25, "an open was refused although nothing was damaged", 0, -1, 0, 1)
	}
}

// Synced says that the device holds [0, end): a good sync of the file with the last of these
// records, issued after they were written. Report it before the outcomes that it allows.
func (c *Checker) Synced(now Time, end Offset) {
	if c.event(now) {
		c.proven = max(c.proven, min(end, c.End()))
	}
}

// SyncFailed says that a sync of anything failed: the life is poisoned.
func (c *Checker) SyncFailed(now Time) {
	if c.event(now) && len(c.lives) > 0 {
		c.lives[c.current()].poisoned = true
	}
}

// DamageInjected says that the only copy of these records was damaged: rot, a misdirected write, a
// sync that lied. Whole batches count. From then on they are served intact or reported, never served
// wrong and never cut off. Excused damage lies above the evidence, where a torn end looks the same:
// the next recovery may end the log there. After that recovery it may only be reported. Damage at a
// place that nobody knows is excused damage to everything, reported again after each power loss.
func (c *Checker) DamageInjected(now Time, first, end Offset, excused bool) {
	first, end = max(first, 0), min(end, c.End())
	if !c.event(now) || first >= end {
		return
	}
	d := damage{first: c.ops[c.log[first]].first, end: c.ops[c.log[end-1]].end, excused: excused}
	for i := range c.damages {
		if was := &c.damages[i]; was.first == d.first && was.end == d.end {
			was.excused = was.excused || excused
			return
		}
	}
	c.damages = append(c.damages, d)
}

// DamageHealed says that damage within these records is gone: repaired, or its file was removed.
func (c *Checker) DamageHealed(now Time, first, end Offset) {
	if !c.event(now) {
		return
	}
	n := 0
	for _, d := range c.damages {
		if d.first < first || d.end > end {
			c.damages[n] = d
			n++
		}
	}
	c.damages = c.damages[:n]
}

// Finish ends the run and judges what needs all of it. Quiet says that the log was given the time to
// finish everything: each error must have surfaced by then.
func (c *Checker) Finish(now Time) {
	if !c.event(now) {
		return
	}
	c.checkLinear()
}

func (c *Checker) checkLinear() {
	if k, earliest, latest, ok := c.linear.Check(); !ok {
		c.fail(K6, "no order of the calls explains the log: earliest instant after latest",
			c.log[k], k, int64(latest), int64(earliest))
	}
}
