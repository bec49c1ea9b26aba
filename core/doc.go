// Package core is the log itself: a pure state machine that decides what to write, when a record is
// durable, what recovery may give up and when a file may go. It does no I/O, reads no clock, draws
// no randomness, starts no goroutine. Whoever runs it, a program on a real disk or the simulator on
// a faulty one, is its driver.
//
// # The contract
//
// The driver asks a lane for its next effect, carries the effect out, and gives it back:
//
//	l, err := core.Open(cfg, now)
//	for each lane, independently:
//		e := l.Next(now, lane)           // nil: busy, or nothing to do
//		err := executor.Run(e)           // fills in e's result fields
//		l.Complete(now, e, err)          // the very pointer
//		for o := range l.NextOutcome     // acks and failures, in cohort order
//			wake the appenders of o.Cohort
//		publish l.Committed() and, if l.ViewVersion() moved, a copy of the view
//	when l.Deadline() passes: l.Tick(now), then ask every lane again
//
// Calls are serialised by the driver; effects of one lane run in order, lanes in any order. Ask the
// lanes again after every Append, Trim, Roll, Close, Tick and Complete.
//
// # Reading order
//
//   - log.go: phases, watermarks, Next and Complete
//   - effect.go: every effect with what its success promises
//   - append.go, tail.go: from a batch to an ack; group commit, roll, roll-back, seal
//   - sync.go: the timer's sync beside a Commit
//   - boot.go: an open, step by step; plan.go, reconcile.go: what recovery decides
//   - super.go, hot.go: superblock saves, zero-filling, removals
//   - retention.go: how Start moves; producers.go: repeated batches
//   - cold.go, pages.go, merge.go: the cold tier while the log runs, its catalogue, and an open that merges it
//   - warm.go, warmlook.go, warmlimit.go, warmsource.go, warmboot.go: the warm tier: what is mirrored, what is
//     known to be there, what waits for it, what cannot be mirrored, and an open that claims it; warmeffect.go:
//     its effects
//   - view.go, cursor.go: reading
//
// # Invariants
//
// Each is asserted where it could break, and checked from outside by the simulator.
//
//   - Start <= Frontier <= Written <= End and Committed <= Written. Committed and Start never fall.
//   - A cohort has one outcome; outcomes come in order. An append ends acked, or definitely not in
//     the log, or unknown.
//   - A frontier in a header or in the superblock names only what a completed sync covered.
//   - No write touches a sector that holds synced bytes. Files of earlier lives are never written.
//   - At most one effect of a lane is in flight; no two lanes write one file, Prepare apart; at most
//     one sync of one file, or of the directory, is outstanding.
//   - After a failed sync of anything nothing is written any more, until a new open has copied what
//     lies above the evidence.
//   - The placement counter never repeats in a life; segment ids and superblock sequences never
//     repeat at all.
//   - With a cold tier: files go only below the contiguous end of finished entries of a won manifest; Start
//     moves there first; every upload has a key, and every swap a sequence, that was never used before.
//   - With a warm tier: nothing is mirrored that no Commit completed, nor before a marker of this life is
//     confirmed and the stream was read after it; what is there counts only as far as it is without a gap and
//     confirmed; where it begins, and Start, are announced in a confirmed entry before anything is trimmed.
//   - Start, HotStart and lineage are in both superblock slots before anyone sees them, and before
//     any file that they give up is removed.
package core
