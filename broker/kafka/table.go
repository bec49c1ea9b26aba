package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// api is one kind of request.
type api struct {
	key      int16
	name     string
	min, max int16 // versions that are advertised
	from     int16 // those below are advertised and refused
	flexible int16 // first version whose headers have tags
	layouts  []layout

	// handle answers a decoded request; nil: produce and fetch have paths of their own.
	handle func(ctx context.Context, c *conn, req kmsg.Request) kmsg.Response
}

// advertised are the versions that clients are told of.
//
// Two of them are advertised lower than they are served, because librdkafka takes their lowest version
// for the sign of a broker that knows compression: without Produce 0 it sends gzip and snappy
// uncompressed in silence, without FindCoordinator 0 lz4.
//
// Produce ends at 11, since 12 promises transactions; Fetch ends at 12, since 13 speaks of topics by
// their ids.
func table() []*api {
	all := []*api{
		{key: keyProduce, min: 0, max: 11, from: 3},
		{key: keyFetch, min: 4, max: 12, from: 4},
		{key: 2, min: 1, max: 9, from: 1, handle: on((*conn).listOffsets)},
		{key: 3, min: 0, max: 12, handle: on((*conn).metadata)},
		{key: 10, min: 0, max: 4, handle: on((*conn).findCoordinator)},
		{key: keyAPIVersions, min: 0, max: apiVersionsMax, handle: on((*conn).apiVersions)},
		{key: 19, min: 0, max: 7, handle: on((*conn).createTopics)},
		{key: 20, min: 0, max: 6, handle: on((*conn).deleteTopics)},
		{key: 21, min: 0, max: 2, handle: on((*conn).deleteRecords)},
		{key: 22, min: 0, max: 4, handle: on((*conn).initProducerID)},
		{key: 23, min: 2, max: 4, from: 2, handle: on((*conn).offsetForLeaderEpoch)},
		{key: 32, min: 0, max: 4, handle: on((*conn).describeConfigs)},
		{key: 33, min: 0, max: 2, handle: on((*conn).alterConfigs)},
		{key: 37, min: 0, max: 3, handle: on((*conn).createPartitions)},
		{key: 44, min: 0, max: 1, handle: on((*conn).incrementalAlterConfigs)},
		{key: 60, min: 0, max: 1, handle: on((*conn).describeCluster)},
	}
	byKey := make([]*api, all[len(all)-1].key+1)
	for _, a := range all {
		a.name, a.flexible, a.layouts = kmsg.NameForKey(a.key), flexibleFrom(a.key), layouts(a.key)
		byKey[a.key] = a
	}
	return byKey
}

// on makes a method that answers one kind of request one that answers any.
func on[Q kmsg.Request, R kmsg.Response](f func(*conn, context.Context, Q, R)) func(context.Context, *conn, kmsg.Request) kmsg.Response {
	return func(ctx context.Context, c *conn, req kmsg.Request) kmsg.Response {
		resp := req.ResponseKind()
		f(c, ctx, req.(Q), resp.(R))
		return resp
	}
}

// flexibleFrom returns the first version of a request that has tags.
func flexibleFrom(key int16) int16 {
	r := kmsg.RequestForKey(key)
	for v := int16(0); v <= r.MaxVersion(); v++ {
		if r.SetVersion(v); r.IsFlexible() {
			return v
		}
	}
	return r.MaxVersion() + 1
}
