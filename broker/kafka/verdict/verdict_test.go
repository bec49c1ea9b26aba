package verdict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"varve/broker/kafka/batch"
	"varve/core"
)

// Each outcome has the code that makes clients do the right thing: send again or not, ask where the
// leader is, give up. One that is not known is never told as definite.
func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, None},
		{fmt.Errorf("x: %w", core.ErrUnknown), NotEnoughReplicasAfterAppend},
		{errors.Join(core.ErrUnknown, context.Canceled), NotEnoughReplicasAfterAppend},
		{errors.Join(core.ErrUnknown, core.ErrPoisoned), NotEnoughReplicasAfterAppend},
		{core.ErrTooLarge, MessageTooLarge},
		{core.ErrSequence, OutOfOrderSequence},
		{core.ErrFenced, InvalidProducerEpoch},
		{core.ErrTierDown, NotEnoughReplicas},
		{core.ErrOverloaded, RequestTimedOut},
		{core.ErrClosed, NotLeaderOrFollower},
		{core.ErrOwnerFenced, NotLeaderOrFollower},
		{core.ErrNoSpace, KafkaStorageError},
		{core.ErrPoisoned, KafkaStorageError},
		{core.ErrWriteFailed, KafkaStorageError},
		{core.ErrNotOpen, KafkaStorageError},
	} {
		got, base := Outcome(7, c.err)
		if got != c.want || (base == 7) != (c.err == nil) {
			t.Errorf("append, %v: code %d, offset %d, want code %d", c.err, got, base, c.want)
		}
	}
	for fault, want := range map[batch.Fault]Code{
		batch.Corrupt: CorruptMessage, batch.Invalid: InvalidRecord, batch.OldFormat: InvalidRecord,
		batch.BadTime: InvalidTimestamp, batch.Transactional: InvalidTxnState, batch.Oversized: MessageTooLarge,
	} {
		if got := Batch(&batch.Error{Fault: fault}); got != want {
			t.Errorf("fault %d: code %d, want %d", fault, got, want)
		}
	}
	if got := Batch(errors.New("other")); got != UnknownServerError {
		t.Errorf("another error: code %d", got)
	}
	for err, want := range map[error]Code{
		nil: None, &core.TrimmedError{}: OffsetOutOfRange, &core.DivergedError{}: OffsetOutOfRange, core.ErrOutOfRange: OffsetOutOfRange,
		&core.TierError{}: KafkaStorageError, &core.CorruptError{}: CorruptMessage, core.ErrClosed: NotLeaderOrFollower,
	} {
		if got := Read(err); got != want {
			t.Errorf("read, %v: code %d, want %d", err, got, want)
		}
	}
}

// The producer with the first id of all is as idempotent as others.
func TestProducer(t *testing.T) {
	for id, want := range map[int64]core.Producer{-1: core.NoProducer, 0: {ID: 0, Epoch: 2, Sequence: 3}, 9: {ID: 9, Epoch: 2, Sequence: 3}} {
		if got := Producer(&batch.Header{ProducerID: id, ProducerEpoch: 2, Sequence: 3}); got != want {
			t.Errorf("id %d: %+v, want %+v", id, got, want)
		}
	}
}

// A log from 10 to 20; epoch 3 ends at 15, and 5 is the leader's.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		next       int64
		recovering bool
		want       Code
	}{{9, false, OffsetOutOfRange}, {10, false, None}, {20, false, None}, {21, false, OffsetOutOfRange}, {21, true, None}, {9, true, OffsetOutOfRange}} {
		if got := Fetch(c.next, 10, 20, c.recovering); got != c.want {
			t.Errorf("%+v: code %d", c, got)
		}
	}
	for known, want := range map[int32]Code{-1: None, 5: None, 4: FencedLeaderEpoch, 6: UnknownLeaderEpoch} {
		if got := Leader(known, 5); got != want {
			t.Errorf("leader %d: code %d, want %d", known, got, want)
		}
	}
	for _, c := range []struct {
		next int64
		last int32
		end  int64
		want bool
	}{{15, 3, 15, false}, {16, 3, 15, true}, {16, 4, 15, true}, {15, 4, 15, true}, {20, -1, 20, false}} {
		if got := Diverged(c.next, c.last, 3, c.end); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, c := range []struct {
		asked      int32
		found      core.Epoch
		end        int64
		recovering bool
		code       Code
		epoch      int32
		wantEnd    int64
	}{
		{3, 3, 15, false, None, 3, 15},
		{4, 3, 15, true, None, 3, 15},
		{5, 5, 20, false, None, 5, 20},
		{5, 5, 20, true, OffsetNotAvailable, -1, -1},
		{6, 5, 20, false, None, -1, -1},
		{-1, 0, 10, false, None, -1, -1},
		{1, 0, 10, false, None, 1, 10},
	} {
		if code, epoch, end := EpochEnd(c.asked, 5, c.found, c.end, 20, c.recovering); code != c.code || epoch != c.epoch || end != c.wantEnd {
			t.Errorf("%+v: code %d, epoch %d, end %d", c, code, epoch, end)
		}
	}
	lost := &core.CorruptError{Offset: 12, End: 18, Lost: true}
	for _, c := range []struct {
		err       error
		committed int64
		end       int64 // 0: no gap
	}{
		{lost, 20, 18},
		{fmt.Errorf("x: %w", lost), 15, 15},
		{&core.CorruptError{Offset: 12, End: 18}, 20, 0},
		{nil, 20, 0},
		{&core.CorruptError{Offset: 12, End: 1 << 40, Lost: true}, 1 << 50, 12 + math.MaxInt32},
	} {
		if at, end, ok := Gap(c.err, c.committed); end != c.end || ok != (c.end > 0) || ok && at != 12 {
			t.Errorf("%+v: from %d to %d, %v", c, at, end, ok)
		}
	}
	for before, want := range map[int64]int64{-1: 20, 0: 0, 20: 20, 21: -1, -2: -1} {
		if got, code := Trim(before, 20); got != want || (code == None) != (want >= 0) {
			t.Errorf("trim %d: %d, code %d", before, got, code)
		}
	}
}
