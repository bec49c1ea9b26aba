package segment

// Offset numbers records, dense from 0. A span is [first, end).
type Offset = int64

// Time is nanoseconds: since the Unix epoch for wall time, since any fixed point for durations.
type Time = int64

// Epoch numbers the lives of a log: every open that may write claims a higher one. 0 is no epoch.
type Epoch = uint32

// EpochMax is the last epoch and the last segment number; a log that reaches it is refused.
const EpochMax = 1<<32 - 1

// LogID identifies a log for ever; it is drawn by the driver when the log is created.
type LogID [16]byte

// ID identifies a segment file: the owner's epoch in the upper half, a counter in the lower. It is
// never used twice. It orders files; it says nothing about the epoch of the batches inside.
type ID uint64

// MakeID returns the id of the n-th file that the owner of an epoch makes.
func MakeID(owner Epoch, n uint32) ID { return ID(owner)<<32 | ID(n) }

// Owner returns the epoch of the life that made the file.
func (id ID) Owner() Epoch { return Epoch(id >> 32) }

// N returns the counter within the owner's life.
func (id ID) N() uint32 { return uint32(id) }

// SyncMode is when bytes reach the device: the disk half of the ack policy.
type SyncMode uint8

// Sync modes.
const (
	OnCommit SyncMode = iota // an ack means on the device
	Periodic                 // an ack means in the page cache; a timer syncs
	NoSync                   // an ack means in the page cache; only Seal and Close sync
)

// String returns the mode as the configuration spells it.
func (m SyncMode) String() string {
	switch m {
	case OnCommit:
		return "on_commit"
	case Periodic:
		return "periodic"
	case NoSync:
		return "none"
	}
	return "unknown"
}
