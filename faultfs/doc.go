// Package faultfs is the simulated disk: it implements disk.FS over memory, with a fault model
// harsher than any one kernel or device, so that a log that survives it survives real ones.
//
// # Model
//
// Each file has two contents: K, what the kernel shows to processes, and D, what the device
// holds. A write changes K and marks 512 B sectors dirty; a sync copies dirty sectors to D. The
// size exists in K and in D apart. A sector can also be a ghost: clean, so that no later sync
// writes it, and yet different on the device. Failed and lying syncs leave ghosts. A power loss
// shows D; a kill keeps K; memory pressure turns ghosts into what the device holds, with no crash
// at all.
//
// Each directory has its live names, its durable names, and the operations in between: link and
// unlink, a rename being one of each. SyncDir makes them durable; a power loss keeps any subset.
// The parent of the log directory is such a directory too. A file sync makes no name durable.
//
// A write-back error is remembered per file and reported once to each open descriptor. One that
// nobody has seen is also reported to a descriptor opened later; one that somebody has seen is
// not. So a second sync after a failed one "succeeds" and writes nothing.
//
// # Faults
//
// Fault lists them, each with the id of the catalogue. A fault is three things under one name: a
// switch (SetFaults: what random draws may choose), a mark (Marks: it really took effect), and,
// where it strikes a call, something to arm (Arm, FailNext) or to draw (SetRates). Arms need no
// switch. Slow calls and a crash during recovery are made by the simulator, which
// owns time and lives; Kill, PowerLoss, MemoryPressure, WriteBack and Rot are called by it.
//
// # Use
//
//	d := faultfs.New()
//	d.Reset(faultfs.Params{Capacity: 1 << 20})  // once a seed; clears only what was touched
//	fs := d.FS(0)                               // process 0; give it to the store
//	d.SetFaults(set); d.SetRates(&rates)        // swarm of this seed
//	d.Seed(event.Seed)                          // before each event: all draws inside it
//	fs.SetCallBudget(n, torn)                   // the process dies inside its (n+1)-th call
//	fs.Kill()                                   // ends the process; the same FS is the next life
//	d.PowerLoss(&rand, judged)                  // ends all processes
//	if v := d.Violation(); v != "" { ... }      // broken rules seen by the disk itself
//
// A file sync that overlaps writes is an event of its own: BeginSync when it is issued, File.Sync
// when it completes. It covers what was written before BeginSync and has not been written again
// since. Without it a sync covers all that came before it. SyncDir does its work at one instant.
//
// A caller that goes through all crashes instead of drawing some has FS.Observe, which tells it of every
// point at which a process may die, Doubts, which lists what a power loss there leaves open, and
// TakeImage and TakeKilled, which make another disk what is left.
//
// Judged crashes are those after which the log must open with no operator: no garbage in torn
// sectors, no stale valid bytes in fresh blocks, writes torn at sector positions only.
//
// Everything is deterministic: no goroutine, map, clock or global randomness; the same calls with
// the same seeds give the same bytes. A Disk and all that came from it belong to one goroutine.
// Closed handles are reused after a while, so that a steady state allocates nothing.
package faultfs
