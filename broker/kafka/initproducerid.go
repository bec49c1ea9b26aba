package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// initProducerID gives an idempotent producer an id that nobody ever had. One that has come to the end
// of its epochs gets another id.
func (c *conn) initProducerID(ctx context.Context, req *kmsg.InitProducerIDRequest, resp *kmsg.InitProducerIDResponse) {
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		resp.ErrorCode = transactionalIDNotAuthorized
		return
	}
	ctx, cancel := c.context(ctx, changeMillis)
	defer cancel()
	id, err := c.s.broker.ProducerID(ctx)
	if err != nil {
		resp.ErrorCode = requestTimedOut // nothing was given out; by most other codes a producer is dead for good
		if skipped, tell := c.s.lines.producer.tell(time.Now()); tell {
			c.s.o.Logger.Warn("kafka: no producer id can be given", "client", c.client, "error", err, "not_told", skipped)
		}
		return
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
}
