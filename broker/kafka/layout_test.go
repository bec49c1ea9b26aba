package kafka_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// A request that says that billions of tags follow is not believed: the codec would count them.
func TestTagsAreNotBelieved(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	for _, k := range n.raw().ask(sample(18), 0).(*kmsg.ApiVersionsResponse).ApiKeys {
		req := sample(k.ApiKey)
		for v := k.MinVersion; v <= req.MaxVersion(); v++ {
			if req.SetVersion(v); !req.IsFlexible() || k.ApiKey == 18 && v > k.MaxVersion {
				continue
			}
			b := frame(req, 1)
			b = append(b[:len(b)-1], 0xff, 0xff, 0xff, 0xff, 0x0f) // in place of the last byte: no tags
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
			r := n.raw()
			if _, err := r.nc.Write(b); err != nil {
				t.Fatal(err)
			}
			if d := closes(t, r.nc); d > 3*time.Second {
				t.Errorf("%s version %d kept the node busy for %v", kmsg.NameForKey(k.ApiKey), v, d)
			}
		}
	}
}
