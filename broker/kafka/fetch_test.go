package kafka_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// bases returns the base offsets of the batches in an answer, and their leader epochs.
func bases(t testing.TB, b []byte) (offsets []int64, epochs []int32) {
	t.Helper()
	for len(b) > 0 {
		if len(b) < 61 {
			t.Fatalf("%d bytes of a batch", len(b))
		}
		offsets = append(offsets, int64(binary.BigEndian.Uint64(b)))
		epochs = append(epochs, int32(binary.BigEndian.Uint32(b[12:])))
		b = b[12+binary.BigEndian.Uint32(b[8:]):]
	}
	return offsets, epochs
}

func (n *node) filled(topic string, batches, records int) *raw {
	n.t.Helper()
	n.topic(topic, 1)
	r := n.raw()
	for range batches {
		if p := r.produce(topic, oneBatch(0, make([]int64, records)...)); p.ErrorCode != 0 {
			n.t.Fatalf("%+v", p)
		}
	}
	return r
}

// An offset within a batch gets that batch, whole; one at the end waits, one beyond it and one before
// the start are out of range, and say where the start is.
func TestFetchOffsets(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.filled("t", 5, 4)
	for _, offset := range []int64{9, 3, 0, 4, 7, 19, 8, 8, 12} { // forward, back, again
		p := r.fetch("t", offset)
		got, _ := bases(t, p.RecordBatches)
		if p.ErrorCode != 0 || len(got) != int(5-offset/4) || got[0] != offset/4*4 {
			t.Errorf("offset %d: code %d, batches at %d", offset, p.ErrorCode, got)
		}
	}
	if p := r.fetch("t", 20); p.ErrorCode != 0 || len(p.RecordBatches) != 0 || p.HighWatermark != 20 {
		t.Errorf("the end: %+v", p)
	}
	for _, offset := range []int64{21, -1, 1 << 60} {
		if p := r.fetch("t", offset); p.ErrorCode != 1 {
			t.Errorf("offset %d: %+v", offset, p)
		}
	}
	topic, _ := n.broker.Topic("t")
	partition, _ := topic.Partition(0)
	if err := partition.Log().Trim(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	if p := r.fetch("t", 6); p.ErrorCode != 0 || p.LogStartOffset != 6 {
		t.Errorf("the new start: %+v", p)
	} else if got, _ := bases(t, p.RecordBatches); got[0] != 4 {
		t.Errorf("the new start is in the batch at 4, got %d", got)
	}
	if p := r.fetch("t", 5); p.ErrorCode != 1 {
		t.Errorf("before the start: %+v", p)
	}
}

// One batch goes out however small the limits are, and only one; the limits hold for what is more.
func TestFetchLimits(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.filled("a", 10, 10)
	n.filled("b", 10, 10)
	size := int32(len(oneBatch(0, make([]int64, 10)...)))
	for _, c := range []struct {
		whole, part int32
		a, b        int
	}{
		{1, 1, 1, 0},
		{1 << 20, 1, 1, 0},
		{1, 1 << 20, 1, 0},
		{3 * size, 1 << 20, 3, 0},
		{1 << 20, 3 * size, 3, 3},
		{5*size + 1, 3*size - 1, 2, 2},
		{5 * size, 3 * size, 3, 2},
		{0, 0, 1, 0},
		{-1, -1, 1, 0},
		{1 << 20, 1 << 20, 10, 10},
	} {
		req := fetchRequest("a", 0)
		req.Topics = append(req.Topics, fetchRequest("b", 0).Topics...)
		req.MaxBytes = c.whole
		for i := range req.Topics {
			req.Topics[i].Partitions[0].PartitionMaxBytes = c.part
		}
		got := r.ask(req, 11).(*kmsg.FetchResponse)
		a, _ := bases(t, got.Topics[0].Partitions[0].RecordBatches)
		b, _ := bases(t, got.Topics[1].Partitions[0].RecordBatches)
		if len(a) != c.a || len(b) != c.b {
			t.Errorf("limits %d and %d: %d and %d batches, want %d and %d", c.whole, c.part, len(a), len(b), c.a, c.b)
		}
	}
}

// A batch longer than the memory of an answer's pieces, and than the whole budget, comes out whole.
func TestFetchLongBatch(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{FetchBytesMax: 1000, FetchBytes: 1000})
	r := n.filled("t", 1, 100_000)
	want := oneBatch(0, make([]int64, 100_000)...)
	for range 3 {
		p := r.fetch("t", 50_000)
		if p.ErrorCode != 0 || !bytes.Equal(p.RecordBatches[16:], want[16:]) {
			t.Fatalf("code %d, %d bytes of %d", p.ErrorCode, len(p.RecordBatches), len(want))
		}
	}
	for end := time.Now().Add(10 * time.Second); n.server.Stats().FetchBytes != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // they are given back behind the answer
			t.Fatalf("%d bytes are held by nobody", n.server.Stats().FetchBytes)
		}
	}
}

// A fetch with nothing to give waits as long as it was told, and is woken by a commit to any of its
// partitions, by enough bytes, and by the end of the server.
func TestLongPoll(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("a", 1)
	n.topic("b", 1)
	r, other := n.raw(), n.raw()
	size := len(oneBatch(0, 1))
	ask := func(wait, least int32) *kmsg.FetchRequest {
		req := fetchRequest("a", 0)
		req.Topics = append(req.Topics, fetchRequest("b", 0).Topics...)
		req.MaxWaitMillis, req.MinBytes = wait, least
		return req
	}
	began := time.Now()
	got := r.ask(ask(300, 1), 11).(*kmsg.FetchResponse)
	if d := time.Since(began); d < 300*time.Millisecond || d > 5*time.Second || len(got.Topics) != 2 {
		t.Errorf("an empty answer after %v: %+v", d, got)
	}
	req := ask(20_000, int32(3*size))
	began = time.Now()
	r.send(req, 11)
	for range 3 {
		time.Sleep(20 * time.Millisecond)
		if p := other.produce("b", oneBatch(0, 1)); p.ErrorCode != 0 {
			t.Fatalf("%+v", p)
		}
	}
	resp, err := r.receive(req, r.id)
	if err != nil {
		t.Fatal(err)
	}
	offsets, _ := bases(t, resp.(*kmsg.FetchResponse).Topics[1].Partitions[0].RecordBatches)
	if d := time.Since(began); d > 10*time.Second || len(offsets) != 3 {
		t.Errorf("after %v: batches at %d", d, offsets)
	}
	last := fetchRequest("a", 0)
	last.MaxWaitMillis = 60_000
	r.send(last, 11)
	time.Sleep(50 * time.Millisecond)
	began = time.Now()
	n.stop()
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("a waiting fetch held up the shutdown for %v", d)
	}
	if _, err := r.receive(last, r.id); err != nil {
		t.Errorf("the waiting fetch got no answer: %v", err)
	}
}

// Epochs: each life of the node has one of its own, written into what it appended; who knows an older
// or newer one is told, and where each ends.
func TestEpochs(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, kafka.Options{})
	n.filled("t", 2, 2)
	var lives []int32
	for range 3 {
		m := n.raw().ask(sample(3), 9).(*kmsg.MetadataResponse)
		lives = append(lives, m.Topics[0].Partitions[0].LeaderEpoch)
		n.raw().produce("t", oneBatch(0, 1, 2))
		n.stop()
		n = startNode(t, dir, kafka.Options{})
	}
	r := n.raw()
	now := r.ask(sample(3), 9).(*kmsg.MetadataResponse).Topics[0].Partitions[0].LeaderEpoch
	if !(lives[0] < lives[1] && lives[1] < lives[2] && lives[2] < now) {
		t.Fatalf("epochs %d, then %d", lives, now)
	}
	p := r.fetch("t", 0)
	offsets, epochs := bases(t, p.RecordBatches)
	want := []int32{lives[0], lives[0], lives[0], lives[1], lives[2]}
	for i := range want {
		if len(epochs) != len(want) || epochs[i] != want[i] || offsets[i] != int64(2*i) {
			t.Fatalf("batches at %d of epochs %d, want epochs %d", offsets, epochs, want)
		}
	}
	for known, want := range map[int32]int16{-1: 0, now: 0, now - 1: 74, 0: 74, now + 1: 75} {
		req := fetchRequest("t", 0)
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = known
		if got := r.ask(req, 11).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode; got != want {
			t.Errorf("fetch with epoch %d: code %d, want %d", known, got, want)
		}
	}
	for epoch, want := range map[int32][2]int64{
		lives[0]: {int64(lives[0]), 6}, lives[1]: {int64(lives[1]), 8}, lives[2]: {int64(lives[2]), 10},
		now + 5: {-1, -1}, -1: {-1, -1}, 0: {0, 0},
	} {
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.CurrentLeaderEpoch, p.LeaderEpoch = -1, epoch
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{
			Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p},
		}}
		got := r.ask(req, 3).(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0]
		if got.ErrorCode != 0 || int64(got.LeaderEpoch) != want[0] || got.EndOffset != want[1] {
			t.Errorf("epoch %d: %+v, want %d", epoch, got, want)
		}
	}
	for _, c := range []struct {
		last   int32
		offset int64
		end    int64 // -1: not diverged
	}{{lives[0], 6, -1}, {lives[0], 7, 6}, {lives[1], 8, -1}, {lives[2], 10, -1}, {lives[1], 9, 8}} {
		req := fetchRequest("t", c.offset)
		req.Topics[0].Partitions[0].LastFetchedEpoch = c.last
		got := r.ask(req, 12).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if got.ErrorCode != 0 || got.DivergingEpoch.EndOffset != c.end || c.end >= 0 && len(got.RecordBatches) > 0 {
			t.Errorf("after epoch %d at %d: %+v, want the end %d", c.last, c.offset, got.DivergingEpoch, c.end)
		}
	}
}

// A topic that is deleted and created again begins anew, for a connection that has read the old one
// as well; a fetch that waits on the old one is told.
func TestRecreatedTopic(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.filled("t", 5, 4)
	id := r.ask(sample(3), 12).(*kmsg.MetadataResponse).Topics[0].TopicID
	if p := r.fetch("t", 0); p.HighWatermark != 20 {
		t.Fatalf("%+v", p)
	}
	waiting := fetchRequest("t", 20)
	waiting.MaxWaitMillis = 20_000
	r.send(waiting, 11)
	time.Sleep(20 * time.Millisecond)
	began := time.Now()
	if err := n.broker.Delete(t.Context(), "t", 0); err != nil {
		t.Fatal(err)
	}
	resp, err := r.receive(waiting, r.id)
	if err != nil {
		t.Fatal(err)
	}
	code := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode
	if d := time.Since(began); d > 10*time.Second || code != 3 && code != 6 {
		t.Errorf("after %v: code %d", d, code)
	}
	if p := r.fetch("t", 0); p.ErrorCode != 3 {
		t.Errorf("deleted: %+v", p)
	}
	n.filled("t", 1, 2)
	p := r.fetch("t", 0)
	if got, _ := bases(t, p.RecordBatches); p.HighWatermark != 2 || len(got) != 1 {
		t.Errorf("created again: %+v", p)
	}
	if p := r.fetch("t", 20); p.ErrorCode != 1 {
		t.Errorf("an offset of the old topic: %+v", p)
	}
	if again := r.ask(sample(3), 12).(*kmsg.MetadataResponse).Topics[0].TopicID; again == id {
		t.Error("the new topic has the old one's id")
	}
}

// TestFetchNamesAPartitionTwice: each name would be a watcher of the log, so the second is refused.
func TestFetchNamesAPartitionTwice(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.filled("t", 1, 1)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 60_000, 1<<30, 1<<30
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "t"
	for range 3 {
		part := kmsg.NewFetchRequestTopicPartition()
		part.PartitionMaxBytes = 1 << 20
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	resp := n.raw().ask(req, 11).(*kmsg.FetchResponse)
	for i, p := range resp.Topics[0].Partitions {
		if want := []int16{0, 42, 42}[i]; p.ErrorCode != want {
			t.Errorf("partition %d: code %d, want %d", i, p.ErrorCode, want)
		}
	}
}
