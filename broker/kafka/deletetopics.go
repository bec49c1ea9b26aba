package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteTopics deletes topics with all that they hold.
func (c *conn) deleteTopics(ctx context.Context, req *kmsg.DeleteTopicsRequest, resp *kmsg.DeleteTopicsResponse) {
	ctx, cancel := c.context(ctx, req.TimeoutMillis)
	defer cancel()
	for _, name := range req.TopicNames { // up to version 5
		resp.Topics = append(resp.Topics, c.deleteTopic(ctx, name))
	}
	for i := range req.Topics { // from version 6 on, by name or by id
		asked := &req.Topics[i]
		if asked.Topic != nil {
			resp.Topics = append(resp.Topics, c.deleteTopic(ctx, *asked.Topic))
			continue
		}
		t, err := c.s.broker.TopicByID(asked.TopicID)
		if err != nil {
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.TopicID, out.ErrorCode = asked.TopicID, unknownTopicID
			resp.Topics = append(resp.Topics, out)
			continue
		}
		resp.Topics = append(resp.Topics, c.deleteTopic(ctx, t.Name))
	}
}

func (c *conn) deleteTopic(ctx context.Context, name string) kmsg.DeleteTopicsResponseTopic {
	out := kmsg.NewDeleteTopicsResponseTopic()
	out.Topic = &name
	t, err := c.s.broker.Topic(name)
	if err == nil {
		out.TopicID = t.ID
		err = c.s.broker.Delete(ctx, name)
	}
	if out.ErrorCode = topicCode(err); err != nil {
		out.ErrorMessage = text(err)
	}
	return out
}
