package broker

import (
	"fmt"
	"maps"
	"sync/atomic"

	"varve"
	"varve/core/topics"
)

// Topic is one incarnation of a topic. A topic that is deleted and created again is another Topic.
type Topic struct {
	Name        string
	ID          [16]byte
	Incarnation uint64

	config     atomic.Pointer[map[string]string]
	partitions atomic.Pointer[[]*Partition]
}

// Config returns what the topic sets of its configuration.
func (t *Topic) Config() map[string]string { return maps.Clone(*t.config.Load()) }

// AppendTime reports whether records get the time at which they are appended, in place of their producer's.
func (t *Topic) AppendTime() bool {
	return (*t.config.Load())[topics.TimestampType] == topics.LogAppendTime
}

// Partitions returns how many partitions the topic has.
func (t *Topic) Partitions() int32 { return int32(len(*t.partitions.Load())) }

// Partition returns one partition, or ErrPartitions.
func (t *Topic) Partition(i int32) (*Partition, error) {
	all := *t.partitions.Load()
	if i < 0 || int(i) >= len(all) {
		return nil, fmt.Errorf("%w: topic %s has %d, there is no %d", ErrPartitions, t.Name, len(all), i)
	}
	return all[i], nil
}

// Partition is one partition of a topic.
type Partition struct {
	Number int32
	Dir    string // of its log, as messages call it

	state atomic.Pointer[served]
}

// served is a partition's log, or why it is not served: then the log is nil or is being closed.
type served struct {
	log    *varve.Log
	err    error
	config []topics.Pair
	epoch  int32 // at least: that of the log when it was opened
}

// Log returns the log, nil while the partition is offline. It may be closed at any moment, because the
// topic is deleted, or opened again with another configuration: after varve.ErrClosed ask again.
func (p *Partition) Log() *varve.Log {
	s := p.state.Load()
	if s.err != nil {
		return nil
	}
	return s.log
}

// Epoch returns the epoch of the log, which is the leader's epoch for Kafka: -1 before the log was opened, which
// is no epoch. It never goes back.
func (p *Partition) Epoch() int32 {
	s := p.state.Load()
	if s.log == nil {
		return s.epoch
	}
	return max(s.epoch, int32(s.log.Epoch())) // it may have been recovering when it was opened
}

// Err returns why the partition is offline, nil while it is served. It matches ErrOffline.
func (p *Partition) Err() error { return p.state.Load().err }

// leave takes the partition offline. Its log is still to be closed.
func (p *Partition) leave(why error) {
	s := *p.state.Load()
	s.err, s.epoch = why, p.Epoch()
	p.state.Store(&s)
}
