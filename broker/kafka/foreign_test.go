package kafka_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve"
	"varve/broker/kafka"
)

// logged collects lines of a log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// strange appends a batch that is no RecordBatch, as a build that did not refuse it would have.
func (n *node) strange(topic string, b varve.Batch) {
	n.t.Helper()
	found, err := n.broker.Topic(topic)
	if err != nil {
		n.t.Fatal(err)
	}
	p, _ := found.Partition(0)
	pending, err := p.Log().AppendBatch(b)
	if err == nil {
		_, err = pending.Wait(n.t.Context())
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// Batches that are none of Kafka's, in the middle and at the end, stop nobody: a consumer gets all other
// records, a look for a time passes over them, and the log has one line, with the directory.
func TestForeignBatchesStopNobody(t *testing.T) {
	lines := &logged{}
	n := startNode(t, t.TempDir(), kafka.Options{Logger: slog.New(slog.NewTextHandler(lines, nil))})
	n.topic("t", 1)
	r := n.raw()
	n.strange("t", varve.EncodeRecords(nil, varve.Record{Value: []byte("a")}, varve.Record{Value: []byte("b")})) // at 0 and 1
	short := varve.Batch{Payload: []byte("too short"), Kind: varve.KindKafka, Records: 2, MaxTime: time.Now()}
	for i, at := range []int64{2, 7, 12} {
		if p := r.produce("t", oneBatch(0, 1000, 1000, int64(1000*i))); p.ErrorCode != 0 || p.BaseOffset != at {
			t.Fatalf("%+v, want offset %d", p, at)
		}
		n.strange("t", short)
	}
	for _, from := range []int64{0, 1, 5, 6, 15, 16} {
		if p := r.fetch("t", from); p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
			t.Errorf("from %d: code %d, %d bytes", from, p.ErrorCode, len(p.RecordBatches))
		}
	}
	c := n.client(kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []int64
	for len(got) < 9 {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatalf("%v, after %d", err, got)
		}
		fs.EachRecord(func(r *kgo.Record) { got = append(got, r.Offset) })
	}
	if want := []int64{2, 3, 4, 7, 8, 9, 12, 13, 14}; !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	if at := r.offsetAt("t", 1500); at.ErrorCode != 0 || at.Offset != 14 {
		t.Errorf("at time 1500: %+v, want offset 14", at)
	}
	if at := r.offsetAt("t", time.Now().Add(-time.Hour).UnixMilli()); at.ErrorCode != 0 || at.Offset != -1 {
		t.Errorf("an hour ago: %+v, want none", at)
	}
	text := lines.String()
	if strings.Count(text, "none of Kafka's") != 1 || !strings.Contains(text, n.dir+"/topics/t/1/0") || !strings.Contains(text, "first=0") {
		t.Errorf("want one line with the directory, got:\n%s", text)
	}
}

// offsetAt asks for the first record at or after a time.
func (r *raw) offsetAt(topic string, ms int64) kmsg.ListOffsetsResponseTopicPartition {
	r.t.Helper()
	req := kmsg.NewListOffsetsRequest()
	q := kmsg.NewListOffsetsRequestTopic()
	q.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = ms
	q.Partitions = append(q.Partitions, p)
	req.Topics = append(req.Topics, q)
	return r.ask(&req, 7).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}
