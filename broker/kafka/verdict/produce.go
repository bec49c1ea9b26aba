package verdict

import (
	"errors"

	"varve/broker/kafka/batch"
	"varve/core"
)

// Producer returns the identity that a batch is appended under: core.NoProducer unless its producer is
// idempotent.
func Producer(h *batch.Header) core.Producer {
	if h.ProducerID < 0 {
		return core.NoProducer
	}
	return core.Producer{ID: h.ProducerID, Epoch: h.ProducerEpoch, Sequence: h.Sequence}
}

// Outcome returns what a producer is told: a code, and the offset of its first record, -1 without one. first
// is where the batch lies; of one that came again, where it has lain since.
func Outcome(first core.Offset, err error) (Code, core.Offset) {
	if err != nil {
		return appended(err), -1
	}
	return None, first
}

// appended returns the code of an append that was not acked.
func appended(err error) Code {
	switch {
	case errors.Is(err, core.ErrUnknown):
		return NotEnoughReplicasAfterAppend // see the comment of package kafka
	case errors.Is(err, core.ErrTooLarge):
		return MessageTooLarge
	case errors.Is(err, core.ErrSequence):
		return OutOfOrderSequence
	case errors.Is(err, core.ErrFenced):
		return InvalidProducerEpoch
	case errors.Is(err, core.ErrTierDown):
		return NotEnoughReplicas
	case errors.Is(err, core.ErrOverloaded):
		return RequestTimedOut
	case errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrOwnerFenced):
		return NotLeaderOrFollower
	}
	return KafkaStorageError // no space, a failed write, a poisoned log: the disk's fault, and it may pass
}

// Batch returns the code of a batch that was not accepted.
func Batch(err error) Code {
	var e *batch.Error
	if !errors.As(err, &e) {
		return UnknownServerError
	}
	switch e.Fault {
	case batch.Corrupt:
		return CorruptMessage
	case batch.BadTime:
		return InvalidTimestamp
	case batch.Transactional:
		return InvalidTxnState
	case batch.Oversized:
		return MessageTooLarge
	}
	return InvalidRecord
}
