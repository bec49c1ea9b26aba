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
		if last := got[len(got)-1]; last != c.batches || c.waits && took < 300*time.Millisecond || took > 10*time.Second {
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
	if read := n.bytesRead(); read > 3*size {
		t.Errorf("%d bytes were read for one batch of %d", read, size)
	}
}

// bytesRead returns what was read of all logs.
func (n *node) bytesRead() (bytes int64) {
	for _, topic := range n.broker.Topics() {
		for i := range topic.Partitions() {
			p, _ := topic.Partition(i)
			for _, tier := range p.Log().Stats().ReadBytes {
				bytes += tier
			}
		}
	}
	return bytes
}

// TestManyPartitionsAreReadOnce: a consumer of many partitions goes on where it stood in each of them.
func TestManyPartitionsAreReadOnce(t *testing.T) {
	const partitions = 100
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("t", partitions)
	r := n.raw()
	for i := range int32(partitions) {
		for range 2 {
			r.ask(produceRequest("t", i, oneBatch(0, 1)), 9)
		}
	}
	size := int32(len(oneBatch(0, 1)))
	var read [2]int64
	for turn := range read {
		req := fetchRequest("t", 0)
		part := req.Topics[0].Partitions[0]
		req.Topics[0].Partitions = nil
		for i := range int32(partitions) {
			part.Partition, part.FetchOffset, part.PartitionMaxBytes = i, int64(turn), size
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, part)
		}
		for _, p := range r.ask(req, 11).(*kmsg.FetchResponse).Topics[0].Partitions {
			if got, _ := bases(t, p.RecordBatches); len(got) != 1 || got[0] != int64(turn) {
				t.Fatalf("partition %d: batches at %d", p.Partition, got)
			}
		}
		read[turn] = n.bytesRead()
	}
	if read[0] == 0 || read[1] != read[0] {
		t.Errorf("%d bytes were read, then %d more", read[0], read[1]-read[0])
	}
}
