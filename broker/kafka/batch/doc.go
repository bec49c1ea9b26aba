// Package batch reads, checks and patches a RecordBatch of Kafka's format v2, the one unit in which
// Kafka's clients produce and fetch. It is pure: bytes in, numbers out; decompressing is the caller's,
// who hands in a reader.
//
//	at  bytes  field
//	 0  8      base offset              not in the checksum: patched on the way out
//	 8  4      length behind this field
//	12  4      partition leader epoch   not in the checksum: patched on the way out
//	16  1      magic, 2
//	17  4      CRC-32C of all that follows
//	21  2      attributes: codec (bits 0-2), append time (3), transactional (4), control (5)
//	23  4      last offset delta, count - 1
//	27  8      base timestamp, in milliseconds
//	35  8      max timestamp
//	43  8      producer id, -1: none
//	51  2      producer epoch
//	53  4      base sequence
//	57  4      count of records
//	61         records, compressed as one piece
//
// A batch is stored as it came. What is checked once, on arrival, is what every reader relies on:
// that the header says the truth about the bytes behind it.
package batch
