package kafka

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker"
)

// metadata describes topics, and creates those that are asked for and missing, if node and client
// allow it. A topic is described once, however often it is asked for.
func (c *conn) metadata(ctx context.Context, req *kmsg.MetadataRequest, resp *kmsg.MetadataResponse) {
	host, port := c.advertised()
	resp.Brokers = []kmsg.MetadataResponseBroker{{NodeID: c.s.o.NodeID, Host: host, Port: port}}
	resp.ClusterID, resp.ControllerID = kmsg.StringPtr(c.s.o.ClusterID), c.s.o.NodeID
	if req.Topics == nil || req.Version == 0 && len(req.Topics) == 0 {
		for _, t := range c.s.broker.Topics() {
			resp.Topics = append(resp.Topics, c.describe(t))
		}
		return
	}
	create := req.Version < 4 || req.AllowAutoTopicCreation
	left := creationsMax
	byName, byID := make(map[string]bool), make(map[[16]byte]bool)
	for i := range req.Topics {
		asked := &req.Topics[i]
		switch {
		case asked.Topic == nil && !byID[asked.TopicID]:
			byID[asked.TopicID] = true
			resp.Topics = append(resp.Topics, c.topicByID(asked.TopicID))
		case asked.Topic != nil && !byName[*asked.Topic]:
			byName[*asked.Topic] = true
			resp.Topics = append(resp.Topics, c.topicByName(ctx, *asked.Topic, create, &left))
		}
	}
}

// creationsMax bounds the topics that one request creates by asking for them. A client that waits for more asks
// again, as it does for any that has no leader yet.
const creationsMax = 100

var errLater = errors.New("kafka: more topics than one request creates; ask again")

func (c *conn) topicByName(ctx context.Context, name string, create bool, left *int) kmsg.MetadataResponseTopic {
	t, err := c.s.broker.Topic(name)
	switch {
	case err == nil || !create || !c.s.broker.AutoCreate():
	case *left == 0:
		err = errLater
	default:
		*left--
		within, cancel := c.context(ctx, changeMillis)
		t, err = c.s.broker.Create(within, broker.TopicSpec{Name: name})
		cancel()
		if err != nil { // somebody else may have created it
			if other, again := c.s.broker.Topic(name); again == nil {
				t, err = other, nil
			}
		}
		if err != nil {
			if skipped, tell := c.s.lines.create.tell(time.Now()); tell {
				c.s.o.Logger.Warn("kafka: a topic cannot be created", "client", c.client, "error", err, "not_told", skipped)
			}
		}
	}
	if err == nil {
		return c.describe(t)
	}
	d := kmsg.NewMetadataResponseTopic()
	d.Topic, d.ErrorCode = kmsg.StringPtr(name), topicCode(err)
	switch d.ErrorCode {
	case invalidTopic, policyViolation, invalidPartitions, invalidConfig, unknownTopicOrPartition:
	default: // it may be there in a moment; by most codes librdkafka fails all that waits for the topic
		d.ErrorCode = leaderNotAvailable
	}
	return d
}

func (c *conn) topicByID(id [16]byte) kmsg.MetadataResponseTopic {
	if t, err := c.s.broker.TopicByID(id); err == nil {
		return c.describe(t)
	}
	d := kmsg.NewMetadataResponseTopic()
	d.TopicID, d.ErrorCode = id, unknownTopicID
	return d
}

func (c *conn) describe(t *broker.Topic) kmsg.MetadataResponseTopic {
	d := kmsg.NewMetadataResponseTopic()
	d.Topic, d.TopicID = kmsg.StringPtr(t.Name), t.ID
	node := []int32{c.s.o.NodeID}
	for i := range t.Partitions() {
		p, err := t.Partition(i)
		if err != nil {
			break
		}
		x := kmsg.NewMetadataResponseTopicPartition()
		x.Partition, x.Replicas = i, node
		if x.LeaderEpoch = p.Epoch(); p.Log() == nil {
			x.ErrorCode, x.Leader, x.OfflineReplicas = leaderNotAvailable, -1, node
		} else {
			x.Leader, x.ISR = c.s.o.NodeID, node
		}
		d.Partitions = append(d.Partitions, x)
	}
	return d
}

// advertised returns where clients are to connect to.
func (c *conn) advertised() (host string, port int32) {
	host, port = c.s.o.Host, c.s.o.Port
	if a, ok := c.nc.LocalAddr().(*net.TCPAddr); ok {
		if host == "" {
			host = a.IP.String()
		}
		if port == 0 {
			port = int32(a.Port)
		}
	}
	return host, port
}
