package kafka_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// One request creates so many topics and no more: who asks for more gets there by asking again, and nobody uses up
// the node's partitions at one stroke.
func TestCreationsOfARequest(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.raw()
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	for i := range 150 {
		x := kmsg.NewMetadataRequestTopic()
		x.Topic = kmsg.StringPtr(fmt.Sprintf("t%03d", i))
		req.Topics = append(req.Topics, x)
	}
	for _, want := range []int{100, 150} {
		resp := r.ask(req, 4).(*kmsg.MetadataResponse)
		later := 0
		for _, x := range resp.Topics {
			switch x.ErrorCode {
			case 0:
			case 5:
				later++
			default:
				t.Fatalf("%+v", x)
			}
		}
		if got := len(n.broker.Topics()); got != want || later != 150-want || len(resp.Topics) != 150 {
			t.Fatalf("%d topics, %d are to be asked for again, want %d", got, later, want)
		}
	}
}
