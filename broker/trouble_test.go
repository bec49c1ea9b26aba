package broker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"varve"
	"varve/core/topics"
	"varve/faultfs"
	"varve/tiers"
)

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to it: %s", what)
		}
	}
}

// lines returns how many lines hold a text, and all.
func (b *lockedBuffer) lines(text string) int { return strings.Count(b.String(), text) }

// A disk that fills up refuses appends to many partitions, and the node has one line of that, and one when there is
// room again, with its directory and figures.
func TestLowSpaceIsTold(t *testing.T) {
	const partitions = 200
	d := faultfs.New()
	var mu sync.Mutex
	var said lockedBuffer
	o := crashOptions
	o.Log.MinFreeBytes = 16 << 10
	o.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := openTree(t.Context(), newFaultTree(&mu, d), o)
	must(t, err)
	x := create(t, b, "a", partitions)
	mu.Lock()
	d.SetCapacity(d.Used() + 64<<10)
	mu.Unlock()
	value := []byte(strings.Repeat("v", 1<<10))
	full := func(i int32) bool {
		p, err := x.Partition(i)
		must(t, err)
		_, err = p.Log().Append(t.Context(), varve.Record{Value: value})
		return errors.Is(err, varve.ErrNoSpace)
	}
	for i := range int32(partitions) {
		until(t, "it is full", func() bool { return full(i) })
	}
	until(t, "that is told", func() bool { return said.lines("the disk is full") > 0 })
	mu.Lock()
	d.SetCapacity(0)
	mu.Unlock()
	until(t, "the end is told", func() bool { return said.lines("room again") > 0 })
	until(t, "appends are taken", func() bool { return !full(0) })
	must(t, b.Close(context.Background()))
	if text := said.String(); strings.Count(text, "\n") != 2 || strings.Count(text, "dir=node min_free_bytes=16384 free_bytes=") != 2 {
		t.Errorf("want two lines:\n%s", text)
	}
}

// failingBucket answers nothing of use while it is down.
type failingBucket struct {
	tiers.Bucket
	down *atomic.Bool
}

var errBucketDown = errors.New("the bucket is down")

func (b failingBucket) Put(ctx context.Context, key string, body []byte, cond tiers.Condition) (tiers.Object, error) {
	if b.down.Load() {
		return tiers.Object{}, errBucketDown
	}
	return b.Bucket.Put(ctx, key, body, cond)
}

func (b failingBucket) Get(ctx context.Context, key string, at int64, to []byte) (int, tiers.Object, error) {
	if b.down.Load() {
		return 0, tiers.Object{}, errBucketDown
	}
	return b.Bucket.Get(ctx, key, at, to)
}

// A tier that goes away and comes back has a line each for the node.
func TestTierThatComesBackIsTold(t *testing.T) {
	var said lockedBuffer
	down, bucket := new(atomic.Bool), testBucket(t)
	o := Options{Log: testLog, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return failingBucket{bucket, down}, topics.Dir{Topic: topic, Incarnation: incarnation, Partition: partition}.String() + "/", varve.WarmOptions{}
	}}
	o.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b := open(t, t.TempDir(), o)
	x := create(t, b, "a", 8)
	down.Store(true)
	for i := range int32(8) {
		appendTo(t, x, i, "v")
		p, err := x.Partition(i)
		must(t, err)
		go func() { _ = p.Log().Export(t.Context(), 1) }()
	}
	until(t, "it is told", func() bool { return said.lines("broker: the cold tier does not answer as it should") == 1 })
	down.Store(false)
	until(t, "the end is told", func() bool { return said.lines("broker: the cold tier answers again") == 1 })
	if said.lines("broker: ") != 2 {
		t.Errorf("want two lines:\n%s", said.String())
	}
}
