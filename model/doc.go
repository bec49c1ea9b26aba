// Package model says what correct means. It knows nothing of files, segments or the core: it judges
// a log from outside, by what clients called and were told, by what readers saw, and by what each
// recovery brought back.
//
// One Checker judges one run after another. Whoever drives the log (the simulator, a test) tells it
// each event, in the order of virtual time, the moment it happens:
//
//	c.Reset()
//	c.Opened(now, Life{Epoch: 1, Policy: OnCommit})            // the first life; again after each reopen
//	op := c.Append(now, Append{Client: 3, Records: 2})        // before the log is called
//	    ... payload of record i carries MakeValue(op, i) ...
//	c.Accepted(now, op, Ticket{First: 0, End: 2, Epoch: 1})   // or c.Failed(now, op): refused at once
//	c.Synced(now, 2)                                          // the device holds [0, 2): before its outcomes
//	c.Acked(now, op)                                          // or Failed (definite), or Unknown
//	c.Agree(now, start, end, committed)                       // the log's own watermarks, after each call
//	c.Crash(now, PowerLoss)                                   // whatever is unresolved is unknown from here
//	c.Opened(now, Life{...})                                  // recovery finished: what it claims
//	c.AuditBegin(now); c.AuditRecord(...)...; c.AuditEnd(now, end) // what it really holds
//	c.Finish(now)
//	if v := c.Violation(); v != nil { fmt.Println(v) }
//
// The first violation is kept and later events are ignored; text is built only when it is printed.
// A check that is switched off (Disable) is passed over, and the run goes on.
//
// # The reference log
//
// The Checker keeps the log that a correct implementation must hold: the accepted records of the
// current history, by offset. A ticket's span is final, so that is exact. A definite failure cuts
// it back, a finished reopen cuts it to the recovered end. What may be cut off then depends on the
// policy of the life that ended (see Checker.Opened); all the rest must be there, byte for byte: a
// record's payload carries a Value that nobody else's has, so content is compared exactly and
// cheaply.
//
// # What is durable
//
// The Checker's proven watermark is the end of what the device is known to hold. The driver raises
// it from what the disk did, never from what the log says: Synced after a good sync of the file
// that holds the records, Closed after a clean close. A finished reopen proves all that it
// recovered, under any policy, because what was above the evidence had to be rescued first. A disk
// that lies about a sync is damage (DamageInjected), not a lost sync.
//
// # What must be told before what
//
//   - Synced before the outcomes that the sync allows, and before a Committed that it allows;
//   - a raised Committed (Agree, or an ack) before reads that it allows;
//   - TrimCalled or RetentionRuns before the StartMoved that they allow, and that before reads,
//     refusals and Agree that show the new Start;
//   - the failure of an append together with those of all that were accepted after it;
//   - Crash before the next Opened, also where only an open died, and for a poisoned log that is
//     closed and opened again in one process (ProcessKill).
//
// # Order
//
// Events are stamped by a counter of their own, so that two events of one virtual time are ordered
// as they came. Calls that take time (reads, looking at the tail) take a Stamp when they begin.
//
// Nothing here allocates once the slices have grown, iterates over a map, or uses floating point.
// A Checker is not safe for concurrent use.
package model
