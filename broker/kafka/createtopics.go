package kafka

import (
	"context"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker"
)

// createTopics creates topics, one after the other: each has its own outcome.
func (c *conn) createTopics(ctx context.Context, req *kmsg.CreateTopicsRequest, resp *kmsg.CreateTopicsResponse) {
	ctx, cancel := c.context(ctx, req.TimeoutMillis)
	defer cancel()
	for asked, twice := range named(req.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic }) {
		out := kmsg.NewCreateTopicsResponseTopic()
		if out.Topic = asked.Topic; twice {
			out.ErrorCode, out.ErrorMessage = invalidRequest, namedTwice()
		} else {
			c.createTopic(ctx, req, asked, &out)
		}
		resp.Topics = append(resp.Topics, out)
	}
}

// named yields the first entry of a request for each name, and whether there are more: which one is meant
// then is not known.
func named[T any](list []T, name func(*T) string) iter.Seq2[*T, bool] {
	times := make(map[string]int, len(list))
	for i := range list {
		times[name(&list[i])]++
	}
	return func(yield func(*T, bool) bool) {
		for i := range list {
			key := name(&list[i])
			n := times[key]
			times[key] = 0
			if n > 0 && !yield(&list[i], n > 1) {
				return
			}
		}
	}
}

func namedTwice() *string { return kmsg.StringPtr("the topic is named twice") }

func (c *conn) createTopic(ctx context.Context, req *kmsg.CreateTopicsRequest, asked *kmsg.CreateTopicsRequestTopic, out *kmsg.CreateTopicsResponseTopic) {
	count, why, err := c.partitionsOf(asked)
	if err != nil {
		out.ErrorCode, out.ErrorMessage = why, text(err)
		return
	}
	config := make(map[string]string, len(asked.Configs))
	for _, kv := range asked.Configs {
		if kv.Value != nil {
			config[kv.Name] = *kv.Value
		}
	}
	t, err := c.s.broker.Create(ctx, broker.TopicSpec{
		Name: asked.Topic, Partitions: count, Config: config, ValidateOnly: req.ValidateOnly,
	})
	if err != nil {
		out.ErrorCode, out.ErrorMessage = topicCode(err), text(err)
		return
	}
	out.NumPartitions, out.ReplicationFactor = count, 1
	if t == nil { // only validated
		return
	}
	out.TopicID, out.NumPartitions = t.ID, t.Partitions()
	for _, e := range c.s.broker.ConfigEntries(t) {
		value := e.Value
		out.Configs = append(out.Configs, kmsg.CreateTopicsResponseTopicConfig{
			Name: e.Name, Value: &value, ReadOnly: e.ReadOnly, Source: int8(sourceOf(&e)),
		})
	}
}

// partitionsOf returns how many partitions are asked for, 0 for the default: by number, or by naming
// the node for each.
func (c *conn) partitionsOf(asked *kmsg.CreateTopicsRequestTopic) (count int32, why code, err error) {
	if len(asked.ReplicaAssignment) > 0 {
		if asked.NumPartitions != -1 || asked.ReplicationFactor != -1 {
			return 0, invalidRequest, fmt.Errorf("expected numbers -1 beside an assignment, found %d partitions, %d replicas", asked.NumPartitions, asked.ReplicationFactor)
		}
		seen := make(map[int32]bool)
		n := int32(len(asked.ReplicaAssignment))
		for _, a := range asked.ReplicaAssignment {
			if len(a.Replicas) != 1 || a.Replicas[0] != c.s.o.NodeID || a.Partition < 0 || a.Partition >= n || seen[a.Partition] {
				return 0, invalidReplicaAssignment, fmt.Errorf("expected partitions 0 to %d, each on node %d", n-1, c.s.o.NodeID)
			}
			seen[a.Partition] = true
		}
		return n, none, nil
	}
	switch {
	case asked.ReplicationFactor != 1 && asked.ReplicationFactor != -1: // "the default", which clients send in versions that do not have it yet
		return 0, invalidReplicationFactor, fmt.Errorf("expected 1 replica, the node is alone; found %d", asked.ReplicationFactor)
	case asked.NumPartitions == -1:
		return 0, none, nil
	case asked.NumPartitions < 1:
		return 0, invalidPartitions, fmt.Errorf("expected at least 1 partition, found %d", asked.NumPartitions)
	}
	return asked.NumPartitions, none, nil
}
