package kafka

import (
	"context"
	"errors"
	"strings"

	"varve"
	"varve/broker"
	"varve/broker/kafka/batch"
)

// appendCode returns the code of an append that was not acked.
func appendCode(err error) code {
	switch {
	case err == nil:
		return none
	case errors.Is(err, varve.ErrUnknown):
		return notEnoughReplicasAfterAppend // see the package comment
	case errors.Is(err, varve.ErrTooLarge):
		return messageTooLarge
	case errors.Is(err, varve.ErrSequence):
		return outOfOrderSequence
	case errors.Is(err, varve.ErrFenced):
		return invalidProducerEpoch
	case errors.Is(err, varve.ErrTierDown):
		return notEnoughReplicas
	case errors.Is(err, varve.ErrOverloaded):
		return requestTimedOut
	case errors.Is(err, varve.ErrClosed), errors.Is(err, varve.ErrOwnerFenced):
		return notLeaderOrFollower
	}
	return kafkaStorageError // no space, a failed write, a poisoned log: the disk's fault, and it may pass
}

// batchCode returns the code of a batch that was not accepted.
func batchCode(err error) code {
	var e *batch.Error
	if !errors.As(err, &e) {
		return unknownServerError
	}
	switch e.Fault {
	case batch.Corrupt:
		return corruptMessage
	case batch.BadTime:
		return invalidTimestamp
	case batch.Transactional:
		return invalidTxnState
	case batch.Oversized:
		return messageTooLarge
	}
	return invalidRecord
}

// readCode returns the code of a read that failed.
func readCode(err error) code {
	var trimmed *varve.TrimmedError
	var diverged *varve.DivergedError
	switch {
	case err == nil:
		return none
	case errors.As(err, &trimmed), errors.As(err, &diverged), errors.Is(err, varve.ErrOutOfRange):
		return offsetOutOfRange
	case errors.Is(err, varve.ErrClosed):
		return notLeaderOrFollower
	}
	return kafkaStorageError
}

// topicCode returns the code of a change of topics that failed.
func topicCode(err error) code {
	var name *broker.NameError
	var config *broker.ConfigError
	switch {
	case err == nil:
		return none
	case errors.As(err, &name):
		return invalidTopic
	case errors.As(err, &config):
		return invalidConfig
	case errors.Is(err, broker.ErrTopicExists):
		return topicAlreadyExists
	case errors.Is(err, broker.ErrUnknownTopic):
		return unknownTopicOrPartition
	case errors.Is(err, broker.ErrPartitions):
		return invalidPartitions
	case errors.Is(err, broker.ErrBudget):
		return policyViolation
	case errors.Is(err, broker.ErrUnknown), errors.Is(err, broker.ErrBusy), errors.Is(err, broker.ErrNotReady),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return requestTimedOut
	case errors.Is(err, broker.ErrClosed):
		return notLeaderOrFollower
	case errors.Is(err, broker.ErrOffline):
		return kafkaStorageError
	}
	return unknownServerError
}

// text returns an error's text where there is one, without the name of the package that found it: it is for people
// who know of none.
func text(err error) *string {
	if err == nil {
		return nil
	}
	s := err.Error()
	for _, name := range []string{"topics: ", "broker: "} {
		s = strings.TrimPrefix(s, name)
	}
	return &s
}

// partition looks a partition up that is served.
func (s *Server) partition(topic string, number int32) (*broker.Partition, *varve.Log, code) {
	t, err := s.broker.Topic(topic)
	if err != nil {
		return nil, nil, unknownTopicOrPartition
	}
	p, err := t.Partition(number)
	if err != nil {
		return nil, nil, unknownTopicOrPartition
	}
	log := p.Log()
	if log == nil {
		return p, nil, kafkaStorageError
	}
	return p, log, none
}

// epochCode compares the leader epoch that a client knows with the partition's; -1: it knows none.
func epochCode(p *broker.Partition, known int32) code {
	switch epoch := p.Epoch(); {
	case known < 0 || known == epoch:
		return none
	case known < epoch:
		return fencedLeaderEpoch
	}
	return unknownLeaderEpoch
}

// errKind is a batch in a partition that no client of Kafka's has written.
var errKind = errors.New("kafka: a batch that is no RecordBatch")
