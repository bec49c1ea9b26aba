package kafka_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
	"varve/tiers"
	"varve/tiers/dirbucket"
)

// hungBucket lets no read end while it hangs.
type hungBucket struct {
	tiers.Bucket
	hangs   atomic.Bool
	release chan struct{}
}

func (b *hungBucket) Get(ctx context.Context, key string, at int64, to []byte) (int, tiers.Object, error) {
	if b.hangs.Load() {
		<-b.release
	}
	return b.Bucket.Get(ctx, key, at, to)
}

// A search by time in records that only a bucket holds which hangs ends with a code that clients try again. However
// often they do, they take nothing from who searches elsewhere.
func TestSearchInAHungBucketEnds(t *testing.T) {
	was := kafka.SetListOffsetsTimeout(time.Second)
	t.Cleanup(func() { kafka.SetListOffsetsTimeout(was) }) // once the node is stopped
	real, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	bucket := &hungBucket{Bucket: real, release: make(chan struct{})}
	n := startBroker(t, t.TempDir(), kafka.Options{}, broker.Options{
		Log: varve.Options{MinFreeBytes: -1, NoPreallocate: true}, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
			return bucket, fmt.Sprintf("%s/%d/%d/", topic, incarnation, partition), varve.WarmOptions{}
		},
	})
	topic := n.topic("t", 1)
	r := n.raw()
	for i := range int64(3) {
		if p := r.produce("t", oneBatch(0, 1000*i)); p.ErrorCode != 0 {
			t.Fatalf("%+v", p)
		}
	}
	p, err := topic.Partition(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Log().Offload(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if got := p.Log().Stats().HotStart; got != 3 {
		t.Fatalf("the disk holds records from %d on", got)
	}
	n.topic("u", 1)
	if p := r.produce("u", oneBatch(0, 0)); p.ErrorCode != 0 {
		t.Fatalf("%+v", p)
	}
	bucket.hangs.Store(true)
	t.Cleanup(func() { close(bucket.release) }) // before the node is stopped
	for _, at := range []int64{1500, -3} {
		began := time.Now()
		if p := r.at("t", at, 7); p.ErrorCode != 7 || p.Offset != -1 || time.Since(began) > 10*time.Second {
			t.Errorf("at %d, after %v: %+v", at, time.Since(began), p)
		}
	}
	began := time.Now()
	for range 100 { // more than there are places
		if p := r.at("t", 1500, 7); p.ErrorCode != 7 {
			t.Fatalf("%+v", p)
		}
	}
	if p := r.at("u", 0, 7); p.ErrorCode != 0 || p.Offset != 0 || time.Since(began) > 30*time.Second {
		t.Errorf("a log on disk, after %v: %+v", time.Since(began), p)
	}
}
