package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
	"varve/core"
	"varve/tiers"
	"varve/tiers/dirbucket"
)

// downBucket answers nothing but an error while it is down.
type downBucket struct {
	tiers.Bucket
	down atomic.Bool
}

var errDown = errors.New("bucket is down")

func (d *downBucket) Get(ctx context.Context, key string, at int64, b []byte) (int, tiers.Object, error) {
	if d.down.Load() {
		return 0, tiers.Object{}, errDown
	}
	return d.Bucket.Get(ctx, key, at, b)
}

func (d *downBucket) List(ctx context.Context, prefix, after string, n int) ([]tiers.Object, error) {
	if d.down.Load() {
		return nil, errDown
	}
	return d.Bucket.List(ctx, prefix, after, n)
}

// at asks a partition for an offset by time, or by place.
func (r *raw) at(topic string, time int64, version int16) kmsg.ListOffsetsResponseTopicPartition {
	r.t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = time
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return r.ask(req, version).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}

// epochEnd asks a partition where an epoch ends.
func (r *raw) epochEnd(topic string, epoch int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	r.t.Helper()
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.LeaderEpoch, p.CurrentLeaderEpoch = epoch, -1
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
	return r.ask(req, 4).(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0]
}

// After an unclean stop a log serves what is proven while a tier does not answer: less than was acked. A client
// that has read what is not shown keeps its place, and is told of no end that moves back.
func TestRecoveringLogNeverGoesBack(t *testing.T) {
	base := t.TempDir()
	real, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	bucket := &downBucket{Bucket: real}
	of := broker.Options{Log: varve.Options{MinFreeBytes: -1, NoPreallocate: true}, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return bucket, fmt.Sprintf("%s/%d/%d/", topic, incarnation, partition), varve.WarmOptions{}
	}}
	a := startBroker(t, filepath.Join(base, "0"), kafka.Options{}, of)
	topic := a.topic("t", 1)
	r, acked := a.raw(), int64(1)
	if p := r.produce("t", oneBatch(0, 1000)); p.ErrorCode != 0 {
		t.Fatalf("%+v", p)
	}
	if p, err := topic.Partition(0); err != nil || p.Log().Export(t.Context(), 1) != nil { // it knows its bucket then
		t.Fatal(err)
	}
	// What a killed process would leave: the superblocks are of a moment before the last records, which they do
	// not prove.
	killed := filepath.Join(base, "1")
	if err := os.CopyFS(killed, os.DirFS(a.dir)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if p := a.raw().produce("t", oneBatch(0, 1000+acked)); p.ErrorCode != 0 || p.BaseOffset != acked {
			t.Fatalf("%+v", p)
		}
		acked++
	}
	segments, err := filepath.Glob(filepath.Join(a.dir, "topics", "t", "1", "0", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	for _, from := range segments {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(killed, "topics", "t", "1", "0", filepath.Base(from)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bucket.down.Store(true)
	r = startBroker(t, killed, kafka.Options{}, of).raw()
	if got := r.fetch("t", 0).HighWatermark; got >= acked {
		t.Fatalf("all is proven, up to %d: this tests nothing", got)
	}
	for _, at := range []int64{-1, -3, 5000} {
		if p := r.at("t", at, 7); p.ErrorCode != 78 || p.Offset != -1 {
			t.Errorf("offset at %d: %+v", at, p)
		}
	}
	if p := r.at("t", -1, 4); p.ErrorCode != 5 {
		t.Errorf("latest for an old client: %+v", p)
	}
	if p := r.at("t", -2, 7); p.ErrorCode != 0 || p.Offset != 0 {
		t.Errorf("earliest: %+v", p)
	}
	if p := r.at("t", 1000, 7); p.ErrorCode != 0 || p.Offset != 0 {
		t.Errorf("by the time of a record that is there: %+v", p)
	}
	if p := r.epochEnd("t", 1); p.ErrorCode != 78 {
		t.Errorf("end of epoch 1: %+v", p)
	}
	req := fetchRequest("t", acked)
	req.MaxWaitMillis = 200
	req.Topics[0].Partitions[0].LastFetchedEpoch = 1
	began := time.Now()
	p := r.ask(req, 12).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 || len(p.RecordBatches) > 0 || p.DivergingEpoch.EndOffset >= 0 || time.Since(began) < 200*time.Millisecond {
		t.Errorf("fetch at the end, after %v: %+v", time.Since(began), p)
	}

	bucket.down.Store(false)
	for try := 0; r.at("t", -1, 7).Offset != acked; try++ {
		if try == 1000 {
			t.Fatal("it does not recover")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if p := r.epochEnd("t", 1); p.ErrorCode != 0 || p.EndOffset != acked {
		t.Errorf("end of epoch 1, recovered: %+v", p)
	}
	if p := r.fetch("t", acked); p.ErrorCode != 0 || p.HighWatermark != acked {
		t.Errorf("fetch at the end, recovered: %+v", p)
	}
	if p := r.fetch("t", acked+1); p.ErrorCode != 1 {
		t.Errorf("fetch behind the end, recovered: %+v", p)
	}
}

// A log that waits for a tier may find a later epoch there than its disk has: the leader's epoch is the log's, and
// who asks where it ends is told.
func TestEpochOfALogThatRecovers(t *testing.T) {
	base := t.TempDir()
	real, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	bucket := &downBucket{Bucket: real}
	of := broker.Options{Log: varve.Options{MinFreeBytes: -1, NoPreallocate: true}, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return bucket, fmt.Sprintf("%s/%d/%d/", topic, incarnation, partition), varve.WarmOptions{}
	}}
	a := startBroker(t, filepath.Join(base, "0"), kafka.Options{}, of)
	topic := a.topic("t", 1)
	if p := a.raw().produce("t", oneBatch(0, 1000)); p.ErrorCode != 0 {
		t.Fatalf("%+v", p)
	}
	if p, err := topic.Partition(0); err != nil || p.Log().Export(t.Context(), 1) != nil {
		t.Fatal(err)
	}
	old := filepath.Join(base, "1")
	if err := os.CopyFS(old, os.DirFS(a.dir)); err != nil {
		t.Fatal(err)
	}
	a.stop()
	again := startBroker(t, filepath.Join(base, "0"), kafka.Options{}, of)
	again.stop()
	bucket.down.Store(true)
	n := startBroker(t, old, kafka.Options{}, of)
	r := n.raw()
	x, _ := n.broker.Topic("t")
	p, _ := x.Partition(0)
	if p.Log().Phase() != core.Recovering || p.Epoch() != 2 {
		t.Fatalf("phase %v, epoch %d", p.Log().Phase(), p.Epoch())
	}
	bucket.down.Store(false)
	for p.Log() != nil && p.Log().Phase() == core.Recovering {
		time.Sleep(10 * time.Millisecond)
	}
	if got := p.Log().Stats().Epoch; got != 3 || p.Epoch() != 3 {
		t.Fatalf("epoch %d of a log of epoch %d", p.Epoch(), got)
	}
	got := r.produce("t", oneBatch(0, 2000))
	if at := r.at("t", 2000, 7); at.LeaderEpoch != 3 || at.Offset != got.BaseOffset {
		t.Errorf("by time: %+v", at)
	}
	if end := r.epochEnd("t", 3); end.ErrorCode != 0 || end.LeaderEpoch != 3 || end.EndOffset != got.BaseOffset+1 {
		t.Errorf("end of the epoch: %+v", end)
	}
}
