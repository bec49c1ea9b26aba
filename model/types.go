package model

// Offset numbers records, dense from 0. A span is [first, end).
type Offset = int64

// Time is virtual nanoseconds. Wall times are so named.
type Time = int64

// Epoch numbers the lives of a log; 0 is none.
type Epoch = uint32

// OpID names one append call, from 1 on; 0 is none.
type OpID int32

// Value is the content of a record: the append that first carried it and the record's index there.
// A retry carries the values of the append that it repeats. 0 is no value.
type Value uint64

const valueBits = 20

// RecordsMax bounds the records of one append.
const RecordsMax = 1 << valueBits

// MakeValue returns the content of record i of an append (of the first attempt, for a retry).
func MakeValue(op OpID, i int) Value { return Value(op)<<valueBits | Value(i) }

// Op returns the append that first carried the value.
func (v Value) Op() OpID { return OpID(v >> valueBits) }

// Index returns which record of the append it is.
func (v Value) Index() int { return int(v & (RecordsMax - 1)) }

// Policy is when an append is acked. The numbers are those of the log's sync modes.
type Policy uint8

// Policies.
const (
	OnCommit Policy = iota // an ack means on the device
	Periodic               // an ack means in the page cache; a timer syncs
	NoSync                 // an ack means in the page cache
)

// CrashKind is how a life ended.
type CrashKind uint8

// Crash kinds.
const (
	ProcessKill    CrashKind = iota // the page cache survives
	PowerLoss                       // only the device survives
	MemoryPressure                  // clean pages are dropped; no crash by itself, call Crash(ProcessKill) too
)

// Life is what a finished open claims, and the configuration that it runs under.
type Life struct {
	Epoch        Epoch
	Policy       Policy
	SyncInterval Time // of Periodic

	Start, End Offset // what it recovered; the first life of a new log has 0, 0
	Committed  Offset // what readers may see at once
	Waits      bool   // what else it recovered is shown once another tier has it, too
}

// Producer identifies an idempotent batch; ID 0 is none (the log's own "none" may differ).
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32
}

// Append is a call of a client, before the log sees it.
type Append struct {
	Client   int32
	Records  int32 // 1..RecordsMax
	Producer Producer
	Retry    OpID // the first attempt that this one repeats, 0 for a new batch
	// Room is how many producers the log remembers, those whose newest batches are last; 0: all of them;
	// -1: nobody knows. A retry of one that is not remembered may be taken for a new batch.
	Room int32
}

// Ticket is what an accepted append was promised.
type Ticket struct {
	First, End Offset
	Epoch      Epoch
	Cohort     uint64 // 0: a duplicate of something acked
	Duplicate  bool
}

// Position is where a reader stands: the next offset, and the epoch of the record before it
// (0: do not check).
type Position struct {
	Offset Offset
	Epoch  Epoch
}

// Stamp orders calls that take time against all other events.
type Stamp int64

// Never is the return of a call that has none.
const Never Stamp = 1<<63 - 1

// Unlimited is the retention value for no limit.
const Unlimited = -1

// Retention is the policy that deletes from the head: bytes and nanoseconds, or Unlimited.
type Retention struct {
	Bytes int64
	Age   Time
}

// SegmentSpan is one segment as the driver sees it, in offset order; the last may be active.
type SegmentSpan struct {
	First, End Offset
	Bytes      int64
	File       int64 // size of its file where that serves a later span too, with which its bytes count
	Newest     Time  // wall: append time of the newest batch
	Seen       Time  // wall: when the log could first know of that batch; it counts where Newest lies in the future
	Active     bool
}
