package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// waiting is a fetch of several topics that would wait long for much.
func waiting(topics ...string) *kmsg.FetchRequest {
	req := fetchRequest(topics[0], 0)
	for _, name := range topics[1:] {
		req.Topics = append(req.Topics, fetchRequest(name, 0).Topics...)
	}
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 20_000, 1<<30, 1<<30
	return req
}

// fetchWithin asks and returns how many batches there are in each topic, and how long it took.
func (r *raw) fetchWithin(req *kmsg.FetchRequest) (batches []int, took time.Duration) {
	r.t.Helper()
	began := time.Now()
	resp := r.ask(req, 11).(*kmsg.FetchResponse)
	took = time.Since(began)
	for _, t := range resp.Topics {
		if t.Partitions[0].ErrorCode != 0 {
			r.t.Errorf("%s: code %d", t.Topic, t.Partitions[0].ErrorCode)
		}
		offsets, _ := bases(r.t, t.Partitions[0].RecordBatches)
		batches = append(batches, len(offsets))
	}
	return batches, took
}

// TestFetchDoesNotWaitForWhatItCannotGet: what a partition has beyond its limit counts as there.
func TestFetchDoesNotWaitForWhatItCannotGet(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.filled("full", 5, 5000)
	n.filled("empty", 0, 0)
	size := int32(len(oneBatch(0, make([]int64, 5000)...)))
	for _, c := range []struct {
		topics           []string
		part, least, max int32
		batches          int
		waits            bool
	}{
		{[]string{"full"}, 3*size - 1, 3*size - 1, 1 << 30, 2, false},
		{[]string{"full"}, 3*size - 1, 3 * size, 1 << 30, 2, true},
		{[]string{"full"}, 3 * size, 3 * size, 1 << 30, 3, false},
		{[]string{"empty", "full"}, 2*size + 1, 2*size + 1, 1 << 30, 2, false},
		{[]string{"empty", "full"}, 2*size + 1, 2*size + 2, 1 << 30, 2, true},
		{[]string{"full"}, 1 << 30, 1 << 30, 5 * size, 5, false}, // all that the answer may have
		{[]string{"full"}, 1 << 30, 1 << 30, 5*size + 1, 5, true},
	} {
		req := waiting(c.topics...)
		req.MinBytes, req.MaxBytes = c.least, c.max
		if c.waits {
			req.MaxWaitMillis = 300
		}
		for i := range req.Topics {
			req.Topics[i].Partitions[0].PartitionMaxBytes = c.part
		}
		got, took := r.fetchWithin(req)
		if last := got[len(got)-1]; last != c.batches || c.waits != (took >= 300*time.Millisecond) || took > 10*time.Second {
			t.Errorf("%+v: %d batches after %v", c, last, took)
		}
	}
}

// TestFetchOfLongBatches: what does not fit is not read of every partition, and not held through a wait.
func TestFetchOfLongBatches(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	var topics []string
	for i := range 5 {
		topics = append(topics, fmt.Sprint("t", i))
		n.filled(topics[i], 2, 100_000)
	}
	size := int64(len(oneBatch(0, make([]int64, 100_000)...)))
	if size <= 1<<20 {
		t.Fatalf("%d bytes are not long", size)
	}
	got, took := n.raw().fetchWithin(waiting(topics...))
	if fmt.Sprint(got) != "[1 0 0 0 0]" || took > 10*time.Second {
		t.Errorf("batches %d after %v", got, took)
	}
	read := int64(0)
	for _, topic := range n.broker.Topics() {
		p, _ := topic.Partition(0)
		for _, bytes := range p.Log().Stats().ReadBytes {
			read += bytes
		}
	}
	if read > 3*size {
		t.Errorf("%d bytes were read for one batch of %d", read, size)
	}
}
