package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// createPartitions gives topics more partitions.
func (c *conn) createPartitions(ctx context.Context, req *kmsg.CreatePartitionsRequest, resp *kmsg.CreatePartitionsResponse) {
	ctx, cancel := c.context(ctx, req.TimeoutMillis)
	defer cancel()
	for asked, twice := range named(req.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic }) {
		out := kmsg.NewCreatePartitionsResponseTopic()
		if out.Topic = asked.Topic; twice {
			out.ErrorCode, out.ErrorMessage = invalidRequest, namedTwice()
		} else {
			out.ErrorCode, out.ErrorMessage = c.addPartitions(ctx, asked, req.ValidateOnly)
		}
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
