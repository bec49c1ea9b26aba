package broker

import (
	"errors"
	"fmt"

	"varve/core/topics"
)

// Errors of requests. All but ErrUnknown are definite: nothing of the request has happened.
var (
	ErrUnknownTopic = topics.ErrNotFound
	ErrTopicExists  = topics.ErrExists
	ErrPartitions   = topics.ErrPartitions // a number of partitions, or of one, that cannot be
	ErrBudget       = topics.ErrBudget     // more partitions than the node may have
	ErrBusy         = topics.ErrBusy       // another change of the topic is under way; try again
	ErrNotReady     = topics.ErrNotReady   // the catalogue is being opened; try again
	ErrClosed       = topics.ErrClosed
	ErrUnknown      = topics.ErrUnknown // it may or may not have happened; look

	// ErrOffline is the error of a partition that is not served; Partition.Err says why, too.
	ErrOffline = errors.New("broker: partition is offline")
)

// Typed errors.
type (
	// NameError says why a text cannot name a topic.
	NameError = topics.NameError
	// ConfigError says which value of a topic's configuration cannot be, and why.
	ConfigError = topics.ConfigError
)

// offline says why a partition is not served.
func offline(d topics.Dir, why error) error { return fmt.Errorf("%w: %s: %w", ErrOffline, d, why) }
