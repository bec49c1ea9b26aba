// Package fakebucket is an object store in memory for the simulator, with the semantics of S3 and
// every way in which a bucket misbehaves.
//
// Faults work as in faultfs: each has a switch (SetFaults: what random draws may choose), a mark
// (Marks: it really took effect), and strikes calls that arm it (Arm, FailNext) or draw it (SetRates).
// All draws come from one stream, which Seed restarts:
//
//	b.Reset(Params{Seed: seed})
//	b.SetFaults(s); b.SetRates(&r)
//	b.Seed(event.Seed)             // before each event: all draws inside it
//	... calls ...
//	b.Heal(); b.Settle()           // no more faults, and nothing on its way any more
//
// A write that is late (O3Late) is queued, and lands in a later call, when its condition is looked at,
// or in Settle. Tags are those of S3: equal bytes have equal tags. The only calls that allocate in
// steady state are List and Uploads. A Bucket belongs to one goroutine.
package fakebucket
