package topics

import "varve/core"

// Effect is something that the driver carries out. The machine owns it; it is valid from Next until
// Complete, and the driver fills in its result fields in between.
type Effect interface{ effect() }

// Load opens the catalogue, which is a log. One that is open already is closed first: it may be poisoned. An
// absent one is made. It succeeds as soon as the log can show anything; whether that is enough is the
// machine's decision.
type Load struct {
	// Result: where the log stands. Cause is why it is not ready, where it knows.
	Phase      core.Phase
	Start, End core.Offset
	Cause      error
}

// Read gives the entries of the catalogue to Replay, in order, from its start to what is committed.
type Read struct{ _ byte }

// List finds the directories of partitions, with those that lie in their place and are something else.
type List struct {
	// Result.
	Dirs   []Dir
	Others []string
}

// Dir is a directory where a partition's log may be. Partition is -1 for an incarnation's own directory
// with none in it.
type Dir struct {
	Topic       string
	Incarnation uint64
	Partition   int32
}

// Append appends an entry to the catalogue, as one record. Success promises that it is durable.
type Append struct {
	Entry []byte

	// Result. Unknown: it failed and the entry may be in the catalogue or not; otherwise it is not, and
	// never will be. Dead: the catalogue takes no more entries before it is opened again.
	Offset  int64
	Unknown bool
	Dead    bool
}

// Trim gives up the entries of the catalogue below an offset.
type Trim struct {
	Before int64

	// Result: as Append's.
	Dead bool
}

// Open opens the log of a partition with a configuration. One that is open with another configuration,
// or poisoned, is closed before; one that is open with this one stays as it is.
//
// With Create it must not exist in any tier, which is looked at before its directory is made durably. Then
// it is made: success promises that it is durable, with the directories on the way to it. Without, it must exist: it is an error if neither its directory nor a
// tier holds it. An error leaves the partition offline and whatever there is as it is.
type Open struct {
	Topic       string
	Incarnation uint64
	Partition   int32
	Create      bool
	Config      []Pair

	work *work // nil: of an open of the node
	in   *Open // list of those that are free
}

// Remove removes the partitions [From, To) of an incarnation: it closes their logs and removes what they
// have in the tiers, and then their directories. With Whole it removes the incarnation's own directory as
// well. Success promises that all of it is gone durably. What is gone already is no error.
type Remove struct {
	Topic       string
	Incarnation uint64
	From, To    int32
	Whole       bool
	// Begun: nobody knows whether they were made. What the tiers hold is theirs only where there is a
	// directory: it is made, durably, once they were found empty.
	Begun bool

	in *Remove
}

func (*Load) effect()   {}
func (*Read) effect()   {}
func (*List) effect()   {}
func (*Append) effect() {}
func (*Trim) effect()   {}
func (*Open) effect()   {}
func (*Remove) effect() {}
