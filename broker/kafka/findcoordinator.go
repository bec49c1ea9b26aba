package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// findCoordinator answers that there is none: of groups not yet, which clients may ask again; of
// transactions, and anything else, not at all.
func (c *conn) findCoordinator(_ context.Context, req *kmsg.FindCoordinatorRequest, resp *kmsg.FindCoordinatorResponse) {
	why, what := coordinatorNotAvailable, "groups are not served yet"
	if req.CoordinatorType != coordinatorGroup {
		why, what = transactionalIDNotAuthorized, errTransactions.Error()
	}
	if req.Version < 4 {
		resp.NodeID, resp.Port = -1, -1
		resp.ErrorCode, resp.ErrorMessage = why, &what
		return
	}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, kmsg.FindCoordinatorResponseCoordinator{
			Key: key, NodeID: -1, Port: -1, ErrorCode: why, ErrorMessage: &what,
		})
	}
}

const coordinatorGroup = 0
