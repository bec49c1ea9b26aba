package kafka

import (
	"context"
	"errors"
	"strings"

	"varve"
	"varve/broker"
)

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
