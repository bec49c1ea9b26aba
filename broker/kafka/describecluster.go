package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// describeCluster names the one node there is.
func (c *conn) describeCluster(_ context.Context, req *kmsg.DescribeClusterRequest, resp *kmsg.DescribeClusterResponse) {
	resp.EndpointType = req.EndpointType
	if req.Version >= 1 && req.EndpointType != endpointBrokers {
		resp.ErrorCode = unsupportedEndpointType
		return
	}
	host, port := c.advertised()
	resp.ClusterID, resp.ControllerID = c.s.o.ClusterID, c.s.o.NodeID
	resp.Brokers = []kmsg.DescribeClusterResponseBroker{{NodeID: c.s.o.NodeID, Host: host, Port: port}}
}

// endpointBrokers asks for brokers; the other kind, controllers, is none of a client's business.
const endpointBrokers = 1
