// Package broker is a node: topics with partitions, each partition a log of package varve in a directory
// of its own, and a catalogue of them that is a log, too.
//
//	DIR/catalogue/                              a log: one JSON line for each change of a topic
//	DIR/topics/<name>/<incarnation>/<partition> a log each
//
// Package core/topics decides everything about topics; this package carries that out on a disk and keeps
// the partitions open.
package broker
