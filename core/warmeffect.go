package core

import "varve/core/warmentry"

// WarmConn identifies a connection to the warm tier. 0: any, or a new one.
type WarmConn uint64

// WarmID is the id of an entry: generation, and the end of its span; the marker of a generation has
// End 0.
type WarmID struct {
	Generation uint64
	End        Offset
}

// WarmEntry is what was found of an entry of the warm tier.
type WarmEntry struct {
	ID     WarmID
	State  WarmEntryState
	Header warmentry.Entry // unless State is WarmForeign or WarmDamaged; its Lineage is the effect's memory
	Epoch  Epoch           // of its batches; 0 in a marker
	Bytes  int64           // of the whole entry
}

// WarmEntryState says whether an entry counts.
type WarmEntryState uint8

// States of an entry.
const (
	WarmGood    WarmEntryState = iota // header and batches verify, the batches are of one epoch
	WarmDamaged                       // something of it does not
	WarmForeign                       // no log wrote it
	WarmNewer                         // its format is newer
	WarmNone                          // there is no such entry
)

// WarmRefusal is why the warm tier took an entry or not.
type WarmRefusal uint8

// Refusals.
const (
	WarmTaken  WarmRefusal = iota
	WarmBehind             // the stream holds a greater id
	WarmFull               // no memory for it
)

// ProbeWarm looks at the last entry of the stream, and changes nothing.
type ProbeWarm struct {
	answer
	Replicas int // that an ack will wait for

	Top    WarmEntry
	LastID WarmID // last that the server gave, also of an entry that is gone
	Unsafe uint32 // why the server may lose what it confirmed, in the executor's bits; 0: nothing was found
}

// FenceWarm writes the marker of a new generation: afterwards the server refuses older ones. Success
// promises the marker in the stream where Refusal is WarmTaken, and on Confirmed replicas.
type FenceWarm struct {
	answer
	Marker   warmentry.Entry
	Replicas int
	Wait     Time

	Refusal   WarmRefusal
	Top       WarmEntry // the last entry afterwards
	Confirmed int
	On        WarmConn
}

// ReadWarm reads entries, in order, from an id on.
type ReadWarm struct {
	answer
	From  WarmID
	Front bool // the first entry of all is wanted, too

	First   WarmEntry   // with Front
	Entries []WarmEntry // the memory is reused
	More    bool
}

// Mirror writes the batches of [Entry.First, Entry.End) as one entry, and reads the entry before it:
// if that is not the one that was written last, the server lost something. It counts only if Refusal
// is WarmTaken, the predecessor is ours and enough replicas confirmed.
type Mirror struct {
	answer
	Entry       warmentry.Entry // Batches and BodyBytes are the executor's
	Source      Extent          // where the batches are read
	SourceEpoch Epoch           // of the batches
	Pos         int64           // of a batch boundary at or before First there; 0: look it up
	BytesMax    int64           // of the entry, unless one batch is longer; then, or where the next cannot be read, Entry.End comes back less
	On          WarmConn
	Replicas    int
	Wait        Time

	Refusal     WarmRefusal
	Predecessor WarmEntry // the entry below this one's id
	Confirmed   int
	Bytes       int64 // of the entry
}

// TrimWarm removes the entries below an id.
type TrimWarm struct {
	answer
	Below WarmID
}

// Lane implements Effect.
func (*ProbeWarm) Lane() Lane { return Warm }

// Lane implements Effect.
func (*FenceWarm) Lane() Lane { return Warm }

// Lane implements Effect.
func (*ReadWarm) Lane() Lane { return Warm }

// Lane implements Effect.
func (*Mirror) Lane() Lane { return Warm }

// Lane implements Effect.
func (*TrimWarm) Lane() Lane { return Warm }
