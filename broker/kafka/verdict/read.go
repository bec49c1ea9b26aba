package verdict

import (
	"errors"
	"math"

	"varve/core"
)

// Read returns the code of a read that failed.
func Read(err error) Code {
	var trimmed *core.TrimmedError
	var diverged *core.DivergedError
	var damaged *core.CorruptError
	switch {
	case err == nil:
		return None
	case errors.As(err, &trimmed), errors.As(err, &diverged), errors.Is(err, core.ErrOutOfRange):
		return OffsetOutOfRange
	case errors.Is(err, core.ErrClosed):
		return NotLeaderOrFollower
	case errors.As(err, &damaged):
		return CorruptMessage // which clients tell their users: by most others they ask again, and again, in silence
	}
	return KafkaStorageError
}

// Gap says whether a read has come to records that a repair declared lost, and where clients go on. They are led
// past them, as past what Kafka's compaction took: with an error they would stand there for ever, and what is behind
// would be nobody's. Not past committed, nor further than a batch can stand for.
func Gap(err error, committed core.Offset) (at, end core.Offset, ok bool) {
	var lost *core.CorruptError
	if !errors.As(err, &lost) || !lost.Lost {
		return 0, 0, false
	}
	return lost.Offset, min(lost.End, committed, lost.Offset+math.MaxInt32), true
}

// Leader compares the leader's epoch that a client knows with the partition's; -1: it knows none.
func Leader(known, epoch int32) Code {
	switch {
	case known < 0 || known == epoch:
		return None
	case known < epoch:
		return FencedLeaderEpoch
	}
	return UnknownLeaderEpoch
}

// Fetch says whether an offset can be read on from. While a log is recovering its end may be below what was
// acked before: a client that has read that far gets nothing, and keeps its place.
func Fetch(next, start, committed core.Offset, recovering bool) Code {
	switch {
	case next > committed && recovering:
		return None
	case next < start || next > committed:
		return OffsetOutOfRange
	}
	return None
}

// Diverged says whether a client that stands at next, behind a record of an epoch, has read what is not in the
// log any more: found and end are what the log says of that epoch.
func Diverged(next core.Offset, last int32, found core.Epoch, end core.Offset) bool {
	return last >= 0 && (found < core.Epoch(last) || end < next)
}

// EpochEnd returns what a client is told that asks where the records of an epoch end; -1: nowhere yet. found
// and end are what the log says.
func EpochEnd(asked, current int32, found core.Epoch, end, committed core.Offset, recovering bool) (Code, int32, core.Offset) {
	switch {
	case asked < 0 || asked > current: // it is still to come
		return None, -1, -1
	case recovering && end == committed: // and perhaps above, once the log is recovered
		return OffsetNotAvailable, -1, -1
	case found == 0: // older than all that is left
		return None, asked, end
	}
	return None, int32(found), end
}

// Trim returns below which offset records are given up, if a client asks for it; -1: all that are committed.
func Trim(before, committed core.Offset) (core.Offset, Code) {
	switch {
	case before == -1:
		return committed, None
	case before < 0 || before > committed:
		return -1, OffsetOutOfRange
	}
	return before, None
}
