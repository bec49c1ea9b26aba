package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka/verdict"
)

// deleteRecords gives up the records of partitions below an offset, for good.
func (c *conn) deleteRecords(ctx context.Context, req *kmsg.DeleteRecordsRequest, resp *kmsg.DeleteRecordsResponse) {
	ctx, cancel := c.context(ctx, req.TimeoutMillis)
	defer cancel()
	for i := range req.Topics {
		asked := &req.Topics[i]
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = asked.Topic
		for j := range asked.Partitions {
			p := kmsg.NewDeleteRecordsResponseTopicPartition()
			p.Partition = asked.Partitions[j].Partition
			p.LowWatermark, p.ErrorCode = c.trim(ctx, asked.Topic, p.Partition, asked.Partitions[j].Offset)
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
}

// trim gives up records below an offset, -1: all that are committed.
func (c *conn) trim(ctx context.Context, topic string, number int32, before int64) (start int64, why code) {
	_, log, why := c.s.partition(topic, number)
	if why != none {
		return -1, why
	}
	if before, why = verdict.Trim(before, log.Committed()); why != none {
		return -1, why
	}
	if before > log.Start() {
		if err := log.Trim(ctx, before); err != nil {
			if ctx.Err() != nil {
				return -1, requestTimedOut
			}
			return -1, verdict.Read(err)
		}
	}
	return log.Start(), none
}
