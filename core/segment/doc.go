// Package segment is the bytes of a log on disk: batch, segment and superblock headers, footers and
// sidecar indexes, file names, and what a scan finds in a file. It decides nothing and does no I/O:
// a Scanner reads through a Source that it is given, and states facts; what they mean for the log is
// the core's to say. The byte tables are in docs/format.md.
//
// A reader of these bytes trusts nothing that a checksum, seeded by log and file, has not verified,
// and allocates no more than the bytes that are there.
package segment
