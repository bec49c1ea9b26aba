// Package kafka serves a broker's topics to Kafka's clients: the wire protocol over TCP, one file for
// each request. A node is alone: it leads every partition, and there are no replicas to speak of; what
// an ack means is what the partition's log promises.
//
// # A connection
//
// One goroutine reads requests and carries them out in order; answers go out in that order. A produce
// request is answered when its batches have their outcome: the first that has to wait starts a second
// goroutine, which answers from then on, while the first reads on, so that many produce requests of
// one connection share a commit. How many may wait is bounded, and so is everything that a peer can
// ask memory for: the length of a request, the bytes of all requests, what is fetched, what a batch
// decompresses to. A peer that is not making progress is cut off; until then those with large requests or
// answers keep only each other waiting, since these have one half of the memory and small ones the other.
//
// What cannot be a request ends its connection, with a line in the log, and no other.
//
// # Batches
//
// A produced RecordBatch is checked once, on arrival, down to its records, and stored verbatim; base
// offset and leader epoch, which no checksum covers, are written into the copy that goes out. The
// leader epoch is the epoch of the log: it grows with every open and never goes back.
//
// Where a topic says message.timestamp.type=LogAppendTime, the time of arrival is written into the header
// before the batch is appended, and its checksum made anew: what is stored verifies, and produce, fetch and
// searches by time say the same. A batch that was sent again is told the time of the first.
//
// # Outcomes
//
// An append that is not acked has one of two kinds of code. All but one are definite: the batch is not
// in the log. ErrUnknown, where it may be, is NOT_ENOUGH_REPLICAS_AFTER_APPEND: clients hold that for
// "appended, not confirmed", send the batch again, and an idempotent one gets its first offsets if it
// was there. A poisoned log answers KAFKA_STORAGE_ERROR, which can be tried again, too, and is definite.
//
// A read that meets damage is CORRUPT_MESSAGE, which clients tell their users; by most other codes they ask again in
// silence. Past records that a repair declared lost they are led with an empty batch, as past what Kafka's
// compaction took; a search by time passes over them. While a log waits for a tier to know all that it holds, its
// end is OFFSET_NOT_AVAILABLE: never one below what was acked.
package kafka
