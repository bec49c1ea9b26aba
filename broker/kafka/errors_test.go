package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"varve"
	"varve/broker"
	"varve/broker/kafka/batch"
)

// Each outcome has the code that makes clients do the right thing: send again or not, ask where the
// leader is, give up. One that is not known is never told as definite.
func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want code
	}{
		{nil, none},
		{fmt.Errorf("x: %w", varve.ErrUnknown), notEnoughReplicasAfterAppend},
		{errors.Join(varve.ErrUnknown, context.Canceled), notEnoughReplicasAfterAppend},
		{errors.Join(varve.ErrUnknown, varve.ErrPoisoned), notEnoughReplicasAfterAppend},
		{varve.ErrTooLarge, messageTooLarge},
		{varve.ErrSequence, outOfOrderSequence},
		{varve.ErrFenced, invalidProducerEpoch},
		{varve.ErrTierDown, notEnoughReplicas},
		{varve.ErrOverloaded, requestTimedOut},
		{varve.ErrClosed, notLeaderOrFollower},
		{varve.ErrOwnerFenced, notLeaderOrFollower},
		{varve.ErrNoSpace, kafkaStorageError},
		{varve.ErrPoisoned, kafkaStorageError},
		{varve.ErrWriteFailed, kafkaStorageError},
		{varve.ErrNotOpen, kafkaStorageError},
	} {
		if got := appendCode(c.err); got != c.want {
			t.Errorf("append, %v: code %d, want %d", c.err, got, c.want)
		}
	}
	for fault, want := range map[batch.Fault]code{
		batch.Corrupt: corruptMessage, batch.Invalid: invalidRecord, batch.OldFormat: invalidRecord,
		batch.BadTime: invalidTimestamp, batch.Transactional: invalidTxnState, batch.Oversized: messageTooLarge,
	} {
		if got := batchCode(&batch.Error{Fault: fault}); got != want {
			t.Errorf("fault %d: code %d, want %d", fault, got, want)
		}
	}
	for err, want := range map[error]code{
		broker.ErrUnknown: requestTimedOut, broker.ErrBudget: policyViolation, broker.ErrTopicExists: topicAlreadyExists,
		broker.ErrUnknownTopic: unknownTopicOrPartition, broker.ErrOffline: kafkaStorageError, errors.New("other"): unknownServerError,
	} {
		if got := topicCode(err); got != want {
			t.Errorf("topics, %v: code %d, want %d", err, got, want)
		}
	}
	for err, want := range map[error]code{
		&varve.TrimmedError{}: offsetOutOfRange, &varve.TierError{}: kafkaStorageError, &varve.CorruptError{}: kafkaStorageError,
		varve.ErrClosed: notLeaderOrFollower,
	} {
		if got := readCode(err); got != want {
			t.Errorf("read, %v: code %d, want %d", err, got, want)
		}
	}
}
