package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker"
)

// deleteTopics deletes topics with all that they hold.
func (c *conn) deleteTopics(ctx context.Context, req *kmsg.DeleteTopicsRequest, resp *kmsg.DeleteTopicsResponse) {
	ctx, cancel := c.context(ctx, req.TimeoutMillis)
	defer cancel()
	for _, name := range req.TopicNames { // up to version 5
		t, err := c.s.broker.Topic(name)
		resp.Topics = append(resp.Topics, c.deleteTopic(ctx, name, t, err))
	}
	for i := range req.Topics { // from version 6 on, by name or by id
		asked := &req.Topics[i]
		if asked.Topic != nil {
			t, err := c.s.broker.Topic(*asked.Topic)
			resp.Topics = append(resp.Topics, c.deleteTopic(ctx, *asked.Topic, t, err))
			continue
		}
		t, err := c.s.broker.TopicByID(asked.TopicID)
		if err != nil {
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.TopicID, out.ErrorCode = asked.TopicID, unknownTopicID
			resp.Topics = append(resp.Topics, out)
			continue
		}
		out := c.deleteTopic(ctx, t.Name, t, nil)
		if out.ErrorCode == unknownTopicOrPartition { // it is deleted since
			out.ErrorCode = unknownTopicID
		}
		resp.Topics = append(resp.Topics, out)
	}
}

// deleteTopic deletes a topic that was looked up, and none that has taken its name since.
func (c *conn) deleteTopic(ctx context.Context, name string, t *broker.Topic, err error) kmsg.DeleteTopicsResponseTopic {
	out := kmsg.NewDeleteTopicsResponseTopic()
	out.Topic = &name
	if err == nil {
		out.TopicID = t.ID
		err = c.s.broker.Delete(ctx, name, t.Incarnation)
	}
	if out.ErrorCode = topicCode(err); err != nil {
		out.ErrorMessage = text(err)
	}
	return out
}
