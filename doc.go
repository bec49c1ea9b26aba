// Package varve is a durable append-only log in a directory: the front door to the pure state
// machine in package core, and the driver that carries out its decisions on a real disk.
//
// # Contract
//
// A log numbers its records densely from 0. An append is one indivisible batch and ends in exactly
// one of three ways:
//
//   - acked: it is durable, as far as Options.Fsync promises, at the offsets of its Span;
//   - an error that is not ErrUnknown: the batch is not in the log and never will be;
//   - an error that is ErrUnknown (errors.Is): it may or may not be in the log. A sync failed, or
//     the caller stopped waiting. What the log holds after it is opened again is the answer.
//
// Readers see one order, never see a record that the policy could still lose, and stop at Committed.
// Nothing committed is skipped, renumbered or served damaged in silence: damage is a *CorruptError
// that names file, position, what was expected and what was found.
//
//	fsync        acked when            after kill -9   after power loss
//	OnCommit     on the device         nothing lost    nothing lost
//	Periodic     in the page cache     nothing lost    at most the last two intervals
//	None         in the page cache     nothing lost    what the system had not written
//
// With Options.Cold sealed segments become objects of a bucket, and files leave the disk only once they
// are there; readers see one log across both. An empty directory is rebuilt from the bucket: what was
// acked and not exported yet went with the disk. Who opens the log from the bucket owns it; the owner
// before is poisoned (ErrOwnerFenced) as soon as it finds out.
//
// With Options.Warm an append is acked once the disk has it, as above, and as many replicas of a Valkey
// server as WarmOptions.Replicas have confirmed it. If they do not in WarmOptions.Wait, its outcome is
// ErrUnknown and appends are refused with ErrTierDown until they have caught up; or, if AckOnTimeout is
// set, it is acked all the same. An empty directory is rebuilt from what Valkey and the bucket hold.
//
// A failed sync poisons the log: nobody can know what the device holds, and asking again would lie.
// Appends answer ErrPoisoned from then on, reads below Committed go on, and Close and Open again are
// the way out.
//
// All methods of Log may be called from any goroutine. A Reader belongs to one goroutine at a time.
// Byte slices that a reader hands out are valid until its next step.
//
// # Driver
//
// The core decides, under one mutex; effects run outside it, on one goroutine for each lane:
//
//	lock; core.Append(now, batch); settle            // a caller
//	lock; core.Complete(now, effect, err); settle    // a lane, after store.Run(effect)
//	lock; core.Tick(now); settle                     // the timer, at core.Deadline
//
//	settle:
//		hand the next effect of every idle lane to its goroutine
//		publish the watermarks (atomics) and, if it changed, the View (one atomic pointer)
//		take the outcomes of cohorts, in order
//		arm the timer; unlock; wake the waiters of those cohorts, and followers if Committed moved
//
// A caller of Append that finds the Tail lane idle carries out the commit itself, so that a lone
// writer hands nothing over. While a commit is in flight, appends gather; before the next one is cut,
// the driver yields the processor a few times, as long as fewer writers have joined than last time:
// those that were just acked are about to append again. Many waiters are woken in portions by the
// Tail goroutine, with a yield between them, so that all processors take part; a caller that led
// hands the lane to it for that. A caller whose context can be cancelled never carries out a commit,
// because a hanging disk must not hold it.
//
// Payloads are encoded and checksummed on the caller's goroutine, before the lock. They live in
// recycled buffers that go back when their cohort has its outcome.
package varve
