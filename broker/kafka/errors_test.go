package kafka

import (
	"errors"
	"testing"

	"varve/broker"
)

// A change of topics whose outcome is not known is never told as definite.
func TestCodesOfTopics(t *testing.T) {
	for err, want := range map[error]code{
		broker.ErrUnknown: requestTimedOut, broker.ErrBudget: policyViolation, broker.ErrTopicExists: topicAlreadyExists,
		broker.ErrUnknownTopic: unknownTopicOrPartition, broker.ErrOffline: kafkaStorageError, errors.New("other"): unknownServerError,
	} {
		if got := topicCode(err); got != want {
			t.Errorf("topics, %v: code %d, want %d", err, got, want)
		}
	}
}
