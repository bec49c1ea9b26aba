// Package valkey is the warm store of a log: one stream of entries in a Valkey server.
//
// The stream of a log has the key of Key. Its entries have ids <generation>-<end offset>, one entry a
// commit, so that the server itself refuses a writer of an older generation, and what would come back
// out of order. What an entry holds is written by package warmentry.
//
// Store carries out what the core decides, one pipeline of commands an operation:
//
//	Fence      XADD of a marker <generation>-0, then WAIT       the old owner is refused from here on
//	Probe      TYPE, XLEN, first and last entry, INFO, CONFIG   what is there, and what may be lost there
//	Mirror     XADD of commits, the entry before them, WAIT     n replicas have what this connection wrote
//	ReadWarm   XRANGE, bounded                                  a page of entries
//	TrimWarm   XTRIM MINID                                      entries below an id are gone
//
// # What the server promises, and what it does not
//
// WAIT counts the replicas that have what the same connection wrote last. On a connection that has
// written nothing it counts every replica; repeated after a write that was refused it answers for an
// earlier one. So WAIT counts only in the pipeline that wrote, with every XADD of it accepted, and a
// pipeline runs on one connection from its first command to its last: Conn tells which, and Store
// reports ErrReconnected where it was not so.
//
// Replicas that have confirmed hold the entry in memory. A failover may lose it all the same, a
// restart may lose any suffix or everything, eviction takes a whole stream. Nothing here hides that:
// what was found is told, and the core never takes an absence for a proof.
//
// # Errors
//
// An error of an operation leaves its effect unknown, with these exceptions, which come before any
// effect: ErrName, ErrConnection, an error of Dial, and *TypeError. A server that answered, but refused
// a command, is no error: the answer says so.
//
// The package needs nothing but the standard library. It reaches a server through Conn, which package
// client binds to a client library and the simulator to a fake.
package valkey
