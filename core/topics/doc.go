// Package topics decides everything about the topics of a node: their names, incarnations, partitions and
// configuration, which producer ids are given out, and in which order files and entries of the catalogue
// change. Like the log itself it is a pure state machine: it does no I/O, reads no clock, draws no
// randomness, starts no goroutine. Its memory is the catalogue, a log of entries (text.go).
//
// # The contract
//
// The driver asks for effects, carries them out, and gives them back:
//
//	m.Begin(cfg)
//	loop:
//		for e := m.Next(); e != nil; e = m.Next() { start to carry e out }
//		for o := range m.NextOutcome { answer whoever asked with o.Ticket }
//		if m.Version() moved { publish what State says: before the next call of Next }
//		on an answer:   m.Complete(e, err)    // the very pointer, with its result fields filled in
//		on a request:   m.Create, Delete, Grow, Configure, Producer: a Ticket, or an error at once
//		now and then:   m.Retry()
//		at the end:     m.Close(), and go on until Phase is Closed
//
// Calls are serialised by the driver. Effects in flight at the same time may be carried out and completed in
// any order: there is at most one on the catalogue, and up to Config.InFlightMax on partitions, never two
// on one partition. effect.go says what the success of each promises. While Read is carried out, its
// entries go to Replay.
//
// A topic exists for clients if it is Live in State, with partitions [0, Partitions): it is so from the
// moment that its entry is in the catalogue. Its partitions are the driver's: an Open makes or replaces one,
// or says why it is offline; a Remove ends it. They stay as they are while the catalogue is opened again.
//
// # How a topic is made and goes
//
//	create:  entry begin, Open of each partition with Create, entry create, outcome
//	grow:    entry grow, Open of each new partition with Create, entry partitions, outcome
//	delete:  entry delete, outcome, Remove, entry gone
//	change:  entry config, outcome, Open of each partition with the new configuration
//
// What is begun and not ended, by a crash or by a failure, is removed and then ended with gone, or with
// shrunk for a growth. An entry whose outcome is unknown ends its request with ErrUnknown; the catalogue is
// then opened again, and what it holds is carried on with as after a crash.
//
// # Invariants
//
// Each is asserted where it could break, and checked from outside by the tests.
//
//   - An incarnation, and a producer id, is given out only once an entry that reserves it is in the
//     catalogue: neither is ever given out twice, whatever is lost in between.
//   - A directory exists only if an entry begin or grow named it before.
//   - Nothing is removed that does not belong to an incarnation which an entry says is dead, or which was
//     begun and never created, or to a growth that was never ended. Directories of an incarnation that the
//     catalogue has not given out mean that it is not theirs: refused, and nothing is changed.
//   - A request ends once: done, definitely not done, or unknown. It is never told as done before its entry
//     is durable.
//   - A snapshot says what the entries before it amount to; an open that finds both compares them.
package topics
