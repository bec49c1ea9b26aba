package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"varve"
	"varve/core/topics"
	"varve/faultfs"
	"varve/tiers"
)

// listedBucket counts the lists of each prefix, and fails those of one.
type listedBucket struct {
	tiers.Bucket
	mu    sync.Mutex
	bad   string
	lists map[string]int
}

func (l *listedBucket) List(ctx context.Context, prefix, after string, n int) ([]tiers.Object, error) {
	l.mu.Lock()
	l.lists[prefix]++
	bad := l.bad == prefix
	l.mu.Unlock()
	if bad {
		return nil, errors.New("bucket is down")
	}
	return l.Bucket.List(ctx, prefix, after, n)
}

// TestRemovalGoesOn: a removal that failed at a partition is tried again from there, and not from the first.
func TestRemovalGoesOn(t *testing.T) {
	bucket := &listedBucket{Bucket: testBucket(t), lists: map[string]int{}}
	b := open(t, t.TempDir(), Options{Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return bucket, topics.Dir{Topic: topic, Incarnation: incarnation, Partition: partition}.String() + "/", varve.WarmOptions{}
	}})
	create(t, b, "a", 4)
	bucket.mu.Lock()
	bucket.bad = "topics/a/1/2/"
	bucket.mu.Unlock()
	must(t, b.Delete(t.Context(), "a", 0))
	tries := func() int {
		bucket.mu.Lock()
		defer bucket.mu.Unlock()
		return bucket.lists[bucket.bad]
	}
	before := tries()
	for want := before + 3; tries() < want; time.Sleep(time.Millisecond) {
		b.mend()
	}
	bucket.mu.Lock()
	first := bucket.lists["topics/a/1/0/"]
	bucket.bad = ""
	bucket.mu.Unlock()
	for left := 1; left > 0; time.Sleep(time.Millisecond) {
		b.mend()
		b.mu.Lock()
		left = len(b.machine.State().Incarnations)
		b.mu.Unlock()
	}
	must(t, leftovers(b, b.tree))
	bucket.mu.Lock()
	defer bucket.mu.Unlock()
	if last := bucket.lists["topics/a/1/3/"]; first != last || last == 0 {
		t.Errorf("what was gone was listed %d times, what was not %d times", first, last)
	}
	if len(b.removed) > 0 {
		t.Errorf("left: %v", b.removed)
	}
}

// slowTree waits in the first removal.
type slowTree struct {
	tree
	began, goOn chan struct{}
	removed     int
}

func (t *slowTree) remove(d topics.Dir) error {
	if t.removed++; t.removed == 1 {
		close(t.began)
		<-t.goOn
	}
	return t.tree.remove(d)
}

// TestRemovalStops: a node that closes does not wait for the removal of a whole topic, and its next life goes on
// with it.
func TestRemovalStops(t *testing.T) {
	d := faultfs.New()
	var mu sync.Mutex
	for life := range 2 { // the logs are open in the first one only
		slow := &slowTree{tree: newFaultTree(&mu, d), began: make(chan struct{}), goOn: make(chan struct{})}
		b, err := openTree(t.Context(), slow, crashOptions)
		must(t, err)
		if life == 0 {
			create(t, b, "a", 5)
			must(t, b.Delete(t.Context(), "a", 0))
		}
		<-slow.began
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = b.Close(ended) // it begins
		close(slow.goOn)
		must(t, b.Close(t.Context()))
		if slow.removed != 1 {
			t.Errorf("life %d: %d partitions were removed after the node began to close", life, slow.removed-1)
		}
	}
	next := newFaultTree(&mu, d)
	b, err := openTree(t.Context(), next, crashOptions)
	must(t, err)
	must(t, leftovers(b, next))
	must(t, b.Close(t.Context()))
}

// TestComplaints: a cause is logged once a minute, with the partitions that had it meanwhile; another one at once.
func TestComplaints(t *testing.T) {
	var out bytes.Buffer
	c := complaints{logger: slog.New(slog.NewTextHandler(&out, nil)), said: map[complaint]*saying{}}
	now := time.Now()
	say := func(i int, cause string) string {
		out.Reset()
		name := fmt.Sprintf("topics/a/1/%d", i)
		c.say(now, "it is offline", name, "D/"+name, fmt.Errorf("D/%s: %s", name, cause))
		return out.String()
	}
	if s := say(0, "down"); !strings.Contains(s, "topics/a/1/0") || strings.Contains(s, "others") {
		t.Error(s)
	}
	for i := 1; i < 100; i++ {
		if s := say(i, "down"); s != "" {
			t.Error(s)
		}
	}
	if s := say(3, "damaged"); !strings.Contains(s, "damaged") {
		t.Error(s)
	}
	now = now.Add(complaintPause)
	if s := say(0, "down"); !strings.Contains(s, "topics/a/1/1 topics/a/1/2") || !strings.Contains(s, "and_more=91") {
		t.Error(s)
	}
	now = now.Add(complaintPause)
	for i := range 2 * complaintsMax {
		say(0, fmt.Sprint(i))
	}
	if len(c.said) > complaintsMax {
		t.Errorf("%d causes are remembered", len(c.said))
	}
}
