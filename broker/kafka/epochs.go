package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
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
		why = epochCode(p, asked.CurrentLeaderEpoch)
	}
	if out.ErrorCode = why; why != none || asked.LeaderEpoch < 0 || asked.LeaderEpoch > p.Epoch() {
		return out // an epoch that is still to come has no end
	}
	unsure := log.Recovering()
	found, end := log.EpochEnd(uint64(asked.LeaderEpoch))
	if unsure && end == log.Committed() { // and perhaps above, once the log is recovered
		out.ErrorCode = offsetNotAvailable
		return out
	}
	if found == 0 { // older than all that is left
		found = uint64(asked.LeaderEpoch)
	}
	out.LeaderEpoch, out.EndOffset = int32(found), end
	return out
}
