package kafka

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve"
	"varve/broker/kafka/batch"
	"varve/broker/kafka/verdict"
	"varve/core"
)

// Times that stand for a place.
const (
	atLatest        = -1
	atEarliest      = -2
	atMaxTime       = -3
	atEarliestLocal = -4
	atLatestTiered  = -5
)

// placeSince is the first version in which a place may be asked for.
var placeSince = [...]int16{-atLatest: 0, -atEarliest: 0, -atMaxTime: 7, -atEarliestLocal: 8, -atLatestTiered: 9}

// listOffsets finds offsets by time, or by what is there.
func (c *conn) listOffsets(ctx context.Context, req *kmsg.ListOffsetsRequest, resp *kmsg.ListOffsetsResponse) {
	ctx, cancel := context.WithTimeout(ctx, listOffsetsTimeout)
	defer cancel()
	for i := range req.Topics {
		asked := &req.Topics[i]
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = asked.Topic
		for j := range asked.Partitions {
			out.Partitions = append(out.Partitions, c.listOffset(ctx, req.Version, asked.Topic, &asked.Partitions[j]))
		}
		resp.Topics = append(resp.Topics, out)
	}
}

// listOffsetsTimeout bounds all searches of a request, whose versions here name no time of their own: times that rise
// with offsets take a few reads. It is less than what clients wait for an answer, so that they hear why there is none.
var listOffsetsTimeout = 20 * time.Second

// search is one search for a record by its time.
type search struct {
	ctx     context.Context
	s       *Server
	log     *varve.Log
	checker checker
}

func (c *conn) listOffset(ctx context.Context, version int16, topic string, asked *kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	out := kmsg.NewListOffsetsResponseTopicPartition()
	out.Partition, out.Offset, out.Timestamp, out.LeaderEpoch = asked.Partition, -1, -1, -1
	p, log, why := c.s.partition(topic, asked.Partition)
	if why == none {
		why = verdict.Leader(asked.CurrentLeaderEpoch, p.Epoch())
	}
	if place := -asked.Timestamp; why == none && place > 0 && (place >= int64(len(placeSince)) || version < placeSince[place]) {
		why = unsupportedVersion
	}
	if why != none {
		out.ErrorCode = why
		return out
	}
	unsure := log.Phase() == core.Recovering // asked first: what is found afterwards is then all there is
	var err error
	epoch := func(offset int64) int32 { return int32(log.EpochOf(offset)) }
	switch asked.Timestamp {
	case atLatest:
		out.Offset, out.LeaderEpoch = log.Committed(), p.Epoch()
	case atEarliest:
		out.Offset = log.Start()
		out.LeaderEpoch = epoch(out.Offset)
	case atEarliestLocal:
		out.Offset = max(log.Start(), log.Stats().HotStart)
		out.LeaderEpoch = epoch(out.Offset)
	case atLatestTiered:
		if exported := log.Stats().Exported; exported > log.Start() {
			out.Offset = exported - 1
			out.LeaderEpoch = epoch(out.Offset)
		}
	case atMaxTime:
		out.Offset, out.Timestamp, err = c.s.searches.run(ctx, log, (&search{ctx: ctx, s: c.s, log: log}).latestTime)
	default:
		s, at := &search{ctx: ctx, s: c.s, log: log}, asked.Timestamp
		out.Offset, out.Timestamp, err = c.s.searches.run(ctx, log, func() (int64, int64, error) { return s.firstAt(at) })
	}
	if unsure && err == nil && (asked.Timestamp == atLatest || asked.Timestamp == atMaxTime || asked.Timestamp >= 0 && out.Offset < 0) {
		out.ErrorCode, out.Offset, out.Timestamp, out.LeaderEpoch = offsetNotAvailable, -1, -1, -1
		if version < 5 { // whose clients do not know the code
			out.ErrorCode = leaderNotAvailable
		}
		return out
	}
	if err != nil {
		if out.ErrorCode = verdict.Read(err); ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			out.ErrorCode = requestTimedOut
		}
		out.Offset, out.Timestamp, out.LeaderEpoch = -1, -1, -1
	} else if out.Timestamp >= 0 {
		out.LeaderEpoch = epoch(out.Offset)
	}
	return out
}

// firstAt returns the first record whose time is not before ms, and that time; -1 if there is none.
// The log knows the greatest time of each batch; the record is found inside.
func (s *search) firstAt(ms int64) (offset, at int64, err error) {
	log := s.log
	r := log.NewReader(varve.Position{}, varve.ReadOptions{Bytes: readAheadBytes})
	defer r.Close() //nolint:errcheck // opened for reading only
	for from := log.Start(); ; {
		pos, err := log.OffsetFrom(s.ctx, from, time.UnixMilli(ms))
		if err != nil {
			return -1, -1, err
		}
		r.Seek(varve.Position{Offset: pos.Offset})
		b, ok, err := r.Poll()
		var trimmed *varve.TrimmedError
		if errors.As(err, &trimmed) && trimmed.Start > from { // meanwhile: go on with what is left
			from = trimmed.Start
			continue
		}
		if err != nil || !ok {
			return -1, -1, err
		}
		if offset, at, ok, err = s.firstIn(&b, max(from, log.Start()), ms); ok || err != nil {
			return offset, at, err
		}
		from = b.Span.End // what would have been it was trimmed
	}
}

// firstIn looks into a batch.
func (s *search) firstIn(b *varve.BatchView, from, ms int64) (offset, at int64, ok bool, err error) {
	if foreign(b) {
		return -1, -1, false, nil // no client sees a record of it
	}
	h, err := batch.Stored(b.Payload)
	if err != nil {
		return -1, -1, false, err
	}
	offset, at = -1, -1
	err = s.s.codecs.walk(&s.checker.walker, &h, batch.Records(b.Payload), func(w *batch.Walker) error {
		for {
			number, time, more := w.Next()
			if !more {
				return w.Err()
			}
			if o := b.Span.First + int64(number); time >= ms && o >= from {
				offset, at, ok = o, time, true
				return nil
			}
		}
	})
	return offset, at, ok, err
}

// latestTime returns the first of the records with the greatest time. Whether there is a record at or
// after a time can be asked for any time, so that time is found by halving what is left.
func (s *search) latestTime() (offset, at int64, err error) {
	lo, hi := int64(0), int64(math.MaxInt64) // times before 1970 are none that a client knows of
	if offset, at, err = s.firstAt(lo); err != nil || offset < 0 {
		return offset, at, err
	}
	for lo = at; lo < hi; {
		mid := lo + (hi-lo+1)/2
		o, t, err := s.firstAt(mid)
		switch {
		case err != nil:
			return -1, -1, err
		case o < 0:
			hi = mid - 1
		default:
			lo, offset, at = t, o, t
		}
	}
	return offset, at, nil
}
