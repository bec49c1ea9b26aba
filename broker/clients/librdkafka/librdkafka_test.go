package librdkafka

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"varve/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

const patience = 30 * time.Second

// records is how many records go in and out.
func records(t *testing.T) int {
	t.Helper()
	s := os.Getenv("VARVE_RECORDS")
	if s == "" {
		return 20_000
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("VARVE_RECORDS=%q: want a number above 0", s)
	}
	return n
}

func config(n *brokertest.Node, more kafka.ConfigMap) *kafka.ConfigMap {
	c := kafka.ConfigMap{"bootstrap.servers": n.Addr, "broker.address.family": "v4"}
	for k, v := range more {
		c[k] = v
	}
	return &c
}

// produce sends messages and wants each to be acked, in order.
func produce(t *testing.T, n *brokertest.Node, more kafka.ConfigMap, count int, message func(i int) *kafka.Message) {
	t.Helper()
	p, err := kafka.NewProducer(config(n, more))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	acked := make(chan error, 1)
	go func() {
		for i := range count {
			switch m := (<-p.Events()).(type) {
			case *kafka.Message:
				if m.TopicPartition.Error != nil || m.TopicPartition.Offset != kafka.Offset(i) {
					acked <- fmt.Errorf("message %d: offset %v, %v", i, m.TopicPartition.Offset, m.TopicPartition.Error)
					return
				}
			default:
				acked <- fmt.Errorf("%v", m)
				return
			}
		}
		acked <- nil
	}()
	for i := range count {
		m := message(i)
		for {
			err := p.Produce(m, nil)
			if full, ok := err.(kafka.Error); ok && full.Code() == kafka.ErrQueueFull { //nolint:errorlint // the library's way
				time.Sleep(time.Millisecond)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	select {
	case err := <-acked:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("not all messages have an answer")
	}
}

// consume reads count messages of a partition from an offset on, without a group.
func consume(t *testing.T, n *brokertest.Node, topic string, from kafka.Offset, count int, each func(i int, m *kafka.Message)) {
	t.Helper()
	c, err := kafka.NewConsumer(config(n, kafka.ConfigMap{
		"group.id": "none", "enable.auto.commit": false, "auto.offset.reset": "error", "check.crcs": true, "fetch.wait.max.ms": 50,
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Assign([]kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: from}}); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		m, err := c.ReadMessage(patience)
		if err != nil {
			t.Fatalf("message %d of %d: %v", i, count, err)
		}
		each(i, m)
	}
}

// TestCodecs: keys, headers, values and times come back as they were sent, with every codec.
func TestCodecs(t *testing.T) {
	n := brokertest.Start(t)
	began := time.UnixMilli(1_700_000_000_000)
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, idempotent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, idempotent %v", codec, idempotent), func(t *testing.T) {
				topic := fmt.Sprintf("codec-%s-%v", codec, idempotent)
				sent := func(i int) *kafka.Message {
					m := &kafka.Message{
						TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Timestamp: began.Add(time.Duration(i) * time.Millisecond),
						Key: fmt.Appendf(nil, "key %d", i), Value: fmt.Appendf(nil, "value %d, and so on, and so on", i),
						Headers: []kafka.Header{{Key: "n", Value: fmt.Append(nil, i)}, {Key: "empty", Value: []byte{}}},
					}
					if i%10 == 0 {
						m.Value = nil
					}
					return m
				}
				produce(t, n, kafka.ConfigMap{"compression.codec": codec, "enable.idempotence": idempotent, "acks": "all"}, 300, sent)
				consume(t, n, topic, 0, 300, func(i int, got *kafka.Message) {
					want := sent(i)
					if got.TopicPartition.Offset != kafka.Offset(i) || !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value) ||
						(got.Value == nil) != (want.Value == nil) || !got.Timestamp.Equal(want.Timestamp) || len(got.Headers) != 2 ||
						!bytes.Equal(got.Headers[0].Value, want.Headers[0].Value) {
						t.Fatalf("got %v, want %v", got, want)
					}
				})
			})
		}
	}
	topic := "codec-zstd-true"
	consume(t, n, topic, kafka.OffsetTail(10), 10, func(i int, m *kafka.Message) {
		if m.TopicPartition.Offset != kafka.Offset(290+i) {
			t.Fatalf("tail: offset %v at %d", m.TopicPartition.Offset, i)
		}
	})
	c, err := kafka.NewConsumer(config(n, kafka.ConfigMap{"group.id": "none"}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it read nothing
	low, high, err := c.QueryWatermarkOffsets(topic, 0, int(patience.Milliseconds()))
	if err != nil || low != 0 || high != 300 {
		t.Fatalf("watermarks %d, %d, %v", low, high, err)
	}
	for _, i := range []int{0, 1, 77, 299} {
		at, err := c.OffsetsForTimes([]kafka.TopicPartition{{Topic: &topic, Offset: kafka.Offset(began.UnixMilli() + int64(i))}}, int(patience.Milliseconds()))
		if err != nil || at[0].Error != nil || at[0].Offset != kafka.Offset(i) {
			t.Fatalf("offset of time %d: %v, %v", i, at, err)
		}
	}
}

// TestAdmin: topics come and go.
func TestAdmin(t *testing.T) {
	n := brokertest.Start(t)
	a, err := kafka.NewAdminClient(config(n, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	created, err := a.CreateTopics(t.Context(), []kafka.TopicSpecification{{
		Topic: "orders", NumPartitions: 3, ReplicationFactor: 1, Config: map[string]string{"retention.ms": "3600000"},
	}})
	if err != nil || created[0].Error.Code() != kafka.ErrNoError {
		t.Fatalf("%v %v", created, err)
	}
	m, err := a.GetMetadata(nil, true, int(patience.Milliseconds()))
	if err != nil || len(m.Topics["orders"].Partitions) != 3 {
		t.Fatalf("%v %v", m, err)
	}
	grown, err := a.CreatePartitions(t.Context(), []kafka.PartitionsSpecification{{Topic: "orders", IncreaseTo: 5}})
	if err != nil || grown[0].Error.Code() != kafka.ErrNoError {
		t.Fatalf("%v %v", grown, err)
	}
	configs, err := a.DescribeConfigs(t.Context(), []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: "orders"}})
	if err != nil || configs[0].Config["retention.ms"].Value != "3600000" {
		t.Fatalf("%v %v", configs, err)
	}
	gone, err := a.DeleteTopics(t.Context(), []string{"orders"})
	if err != nil || gone[0].Error.Code() != kafka.ErrNoError {
		t.Fatalf("%v %v", gone, err)
	}
}

// TestMany: many records in and out, each compared.
func TestMany(t *testing.T) {
	many, topic := records(t), "many"
	n := brokertest.Start(t)
	value := func(i int) []byte { return fmt.Appendf(nil, "%d %0*d", i, i%101, 0) }
	began := time.Now()
	produce(t, n, kafka.ConfigMap{"compression.codec": "lz4", "enable.idempotence": true, "linger.ms": 5}, many, func(i int) *kafka.Message {
		return &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Value: value(i)}
	})
	in := time.Since(began)
	began = time.Now()
	consume(t, n, topic, 0, many, func(i int, m *kafka.Message) {
		if m.TopicPartition.Offset != kafka.Offset(i) || !bytes.Equal(m.Value, value(i)) {
			t.Fatalf("offset %v: %q, want %d: %q", m.TopicPartition.Offset, m.Value, i, value(i))
		}
	})
	_, version := kafka.LibraryVersion()
	t.Logf("librdkafka %s: %d records in %.1f s, out %.1f s, the same", version, many, in.Seconds(), time.Since(began).Seconds())
}
