// Package sim crashes the log, seed by seed: the production core, cursor and store run over a
// simulated disk and virtual clocks, with one process after another on one disk, and every run is
// judged by what clients were told and by what is left.
//
//	var s sim.Schedule
//	w := sim.NewWorld()                  // one a goroutine; reused for millions of seeds
//	sim.Expand(&s, seed, 0)              // a seed is drawn out into an explicit schedule
//	if r := w.Run(&s); r.Violation != "" { ... }
//
// # Schedules
//
// A Schedule is a header (configurations, swarm switches, fault rates, latencies) and a list of
// events, each with a seed of its own: every draw between it and the next event comes from that
// seed's stream, so that an event can be deleted without changing what the others do. AppendText and
// Parse are its text form; schedules that found something are kept in testdata/schedules.
//
// Expand draws a profile (Uniform, or one that aims at a chain of failures which uniform draws
// hardly ever complete), then a random subset of features and faults, then the events: operations
// of clients, and what the world does to the process.
//
// # The world
//
// A World is an event loop over virtual time. After each event it asks the lanes of the log for
// effects. An effect's steps (a write, a sync) are events of their own, at drawn latencies; a step
// takes place either when it is issued or when it completes, and its completion is always later:
// so a sync may or may not cover what is written beside it, and a crash in between finds it done or
// not. The timer's sync may also complete later and cover what lay there when it was issued, except
// what was written again since. Nothing is named or removed beside a sync of the directory, which
// the core excludes and the world judges. A crash lets the effects in flight go on for a drawn number of file-system calls, then ends
// the process (and the machine, if it is a power loss); the next life opens what is left, often to
// die in recovery. At the end all faults are over, and within bounded virtual time everything has to
// resolve: readers see the whole log, retention has done its work, the log closes cleanly.
//
// ExpandMix draws schedules of a log with a cold tier, too (cold.go, expand_cold.go): its bucket fails
// and does not answer, disks are lost, segments leave them, objects are spoiled, and another host with a
// disk of its own takes the log over and gives it back. What a host before has sent to the bucket may
// still arrive, and its process may live on beside the new owner (rival.go).
//
// With a warm tier (warm.go, expand_warm.go) there is a Valkey server, too, which fails over, restarts,
// forgets, evicts and answers late, and whose replicas stand still. What a lost disk's log is owed is then
// what the server promised, or what it has left where it lost more than it may.
//
// A schedule of MixBroker has a node in the place of one log (broker.go, broker_tasks.go, broker_clients.go,
// broker_data.go, broker_lives.go, expand_broker.go): the catalogue and a log for each partition in
// directories of their own, the machine of core/topics, whose effects it carries out as package broker
// does, and clients behind connections that lose answers. Package model/node judges what they are told.
//
// Shrink makes a failing schedule small (shrink.go); FromBytes reads any bytes as one (bytes.go). A Tap
// gets a run as data instead of text (tap.go), and Leave takes faults or checkers out (without.go).
//
// An Explorer uses the same worlds to go through a small scope whole (exhaust.go): every short sequence
// of operations, every crash point, every image, and a second crash.
//
// # What is judged
//
// Package model judges what clients see: K1-K9, K11, K14-K17, K23. The world judges the rest:
//
//	K1          no frontier is ahead of what a sync covered (settle.go), no ack of what fewer replicas had
//	            than it waits for (warm.go)
//	K8          one owner: by the manifest, and by what the host before may still do (rival.go)
//	K9          a call that failed fails its effect, and the log acts on it (lanes.go, readers.go)
//	K10         a second recovery has nothing to do and keeps the same (check.go)
//	K11         no open ends below a frontier that is stated on the disk, whatever it did (check.go)
//	K12         the other tiers hold what the log holds, and what it says of them (cold.go, warm.go)
//	K13         nothing is removed or deleted that no object holds (cold_proof.go)
//	K17         the same calls give clients one history under other configurations (same.go)
//	K18         the same schedule has the same hash over all events and answers (Result.Hash)
//	K19         liveness: everything resolves once the faults are over (settle.go)
//	K20         a clean close leaves nothing open, unfinished or to be recovered (check.go), and no object
//	            that no manifest lists (cold.go)
//	K21         marks: rare branches are reached (marks.go)
//	K22         an independent decoder finds what the device holds (decoder.go)
//	K23         a call that no log can carry out is refused and changes nothing (misuse.go); nothing is
//	            mirrored whose commit is not complete (warm.go)
//	K24         a commit is one write and at most one sync (lanes.go)
//	K25         without damage no open is refused (lives.go)
//	sector      no write touches a sector with records that were claimed durable (lanes.go)
//	exclusion   one sync of a file or of the directory at a time; no commit where zeros are written
//	X3          completions that arrive one life late change nothing (late.go)
//	disk, D21   what the simulated disk itself sees; two holders of one lock
//	config      configurations that cannot work are refused with no effect
//	N1-N7       of a node: topics, names, producer ids, epochs, batches (model/node)
//	assert      an invariant of the core or the store, which they panic on
//
// K10 is judged after the first recovery of a seed and a sample of the others, the plan after a
// clean close (K20) in every fourth seed. What may be lost, and when an open may be refused, depends
// on the policy and on which faults really took effect; a seed whose disk lied proves only that
// nothing wrong was served.
package sim
