package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka/verdict"
	"varve/core"
)

// offsetForLeaderEpoch says where the records of an epoch end, so that a client finds out what of
// what it has read is not in the log any more.
func (c *conn) offsetForLeaderEpoch(_ context.Context, req *kmsg.OffsetForLeaderEpochRequest, resp *kmsg.OffsetForLeaderEpochResponse) {
	for i := range req.Topics {
		asked := &req.Topics[i]
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = asked.Topic
		for j := range asked.Partitions {
			out.Partitions = append(out.Partitions, c.epochEnd(asked.Topic, &asked.Partitions[j]))
		}
		resp.Topics = append(resp.Topics, out)
	}
}

func (c *conn) epochEnd(topic string, asked *kmsg.OffsetForLeaderEpochRequestTopicPartition) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	out := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	out.Partition, out.LeaderEpoch, out.EndOffset = asked.Partition, -1, -1
	p, log, why := c.s.partition(topic, asked.Partition)
	if why == none {
		why = verdict.Leader(asked.CurrentLeaderEpoch, p.Epoch())
	}
	if out.ErrorCode = why; why != none {
		return out
	}
	unsure := log.Phase() == core.Recovering // asked first: what is found afterwards is then all there is
	found, end := log.EpochEnd(uint64(max(asked.LeaderEpoch, 0)))
	out.ErrorCode, out.LeaderEpoch, out.EndOffset = verdict.EpochEnd(asked.LeaderEpoch, p.Epoch(), core.Epoch(found), end, log.Committed(), unsure)
	return out
}
