// Package fakevalkey is the Valkey server of the simulator: plain structs behind the command seam of
// package valkey, with the semantics that a log depends on, and every fault of the catalogue.
//
// # Model
//
// Writes are a history, and everything is a length of it. What the primary shows is all of it; a
// replica has a prefix; the disk has one. A failover cuts the history to what the promoted replica has,
// a restart to what the disk has, and the streams are made anew from what is left. The last id of a
// stream stays when its entries are trimmed, and goes when the stream goes.
//
// A connection remembers the end of what it wrote last. WAIT lets every replica that runs catch up, and
// counts those that have it: on a connection that wrote nothing, all of them.
//
// # Use
//
//	s := fakevalkey.New(below)          // below(n) draws from [0, n), from the sub-seed of the event
//	s.Reset(fakevalkey.Config{...})     // once a seed
//	s.SetFaults(set, &rates)            // swarm of this seed
//	conn, err := s.Dial(key)            // the Dialer of package valkey
//	delay := s.TakeDelay()              // after each call: how long it took
//	s.Failover(); s.Restart()           // what the world does to it; SetFrozen, Evict, Foreign, SetType
//
// Everything is deterministic, and a Server belongs to one goroutine. Memory is used again after Reset.
package fakevalkey
