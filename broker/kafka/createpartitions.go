package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// createPartitions gives topics more partitions.
func (c *conn) createPartitions(ctx context.Context, req *kmsg.CreatePartitionsRequest, resp *kmsg.CreatePartitionsResponse) {
	ctx, cancel := c.context(ctx, req.TimeoutMillis)
	defer cancel()
	times := make(map[string]int, len(req.Topics))
	for i := range req.Topics {
		times[req.Topics[i].Topic]++
	}
	for i := range req.Topics {
		asked := &req.Topics[i]
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = asked.Topic
		switch n := times[asked.Topic]; {
		case n == 0: // answered
			continue
		case n > 1:
			out.ErrorCode, out.ErrorMessage = invalidRequest, kmsg.StringPtr("the topic is named twice")
		default:
			out.ErrorCode, out.ErrorMessage = c.addPartitions(ctx, asked, req.ValidateOnly)
		}
		times[asked.Topic] = 0
		resp.Topics = append(resp.Topics, out)
	}
}

func (c *conn) addPartitions(ctx context.Context, asked *kmsg.CreatePartitionsRequestTopic, validateOnly bool) (code, *string) {
	for _, a := range asked.Assignment {
		if len(a.Replicas) != 1 || a.Replicas[0] != c.s.o.NodeID {
			return invalidReplicaAssignment, kmsg.StringPtr("a replica on another node than the only one")
		}
	}
	err := c.s.broker.AddPartitions(ctx, asked.Topic, asked.Count, validateOnly)
	return topicCode(err), text(err)
}
