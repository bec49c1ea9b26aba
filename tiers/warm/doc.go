// Package warm carries out the effects of the Warm lane on the stream of package valkey.
//
// Store translates: what the core asks for becomes one pipeline of commands, what the server answered
// becomes what the core judges. It decides nothing. Whether an entry counts is found out here, by
// verifying header and batches; what that means is the core's.
//
// What is mirrored is read back from the segment file, through a core.Cursor, which verifies it: the
// warm tier never gets what the disk does not hold.
package warm
