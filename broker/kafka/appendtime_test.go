package kafka_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker"
	"varve/broker/kafka"
	"varve/tiers/tiertest"
)

// stamped is a record as a client gets it.
type stamped struct {
	ms     int64
	append bool
}

// readAll reads a topic from its start with a real client.
func (n *node) readAll(ctx context.Context, topic string, records int) (all []stamped) {
	n.t.Helper()
	c := n.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	defer c.Close()
	for len(all) < records {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			n.t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			all = append(all, stamped{r.Timestamp.UnixMilli(), r.Attrs.TimestampType() == 1})
		})
	}
	return all
}

// TestLogAppendTime: records get the node's time, in every codec and from every kind of producer, and all who are
// asked for a time say the same: produce, fetch, and searches by time against a look at every record; also when
// the node has another life, and beside records that keep their producer's time.
func TestLogAppendTime(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, kafka.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	adm := kadm.NewClient(n.client())
	kind := func(v string) map[string]*string { return map[string]*string{"message.timestamp.type": &v} }
	if _, err := adm.CreateTopic(ctx, 1, 1, kind("LogAppendTime"), "t"); err != nil {
		t.Fatal(err)
	}
	var want [][2]int64 // for each record, the least and greatest time that it may have
	produce := func(appendTime bool) {
		t.Helper()
		for i, codec := range []kgo.CompressionCodec{
			kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
		} {
			opts := []kgo.Opt{kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(codec)}
			if i%2 == 0 {
				opts = append(opts, kgo.DisableIdempotentWrite())
			}
			c := n.client(opts...)
			for range 4 {
				var list []*kgo.Record
				for j := range 3 {
					list = append(list, &kgo.Record{Value: make([]byte, 100), Timestamp: time.UnixMilli(int64(1000*len(want) + 100*j))})
				}
				from := time.Now().UnixMilli()
				if err := c.ProduceSync(ctx, list...).FirstErr(); err != nil {
					t.Fatal(err)
				}
				to := time.Now().UnixMilli()
				for j := range list {
					if !appendTime {
						from = int64(1000*(len(want)-j) + 100*j)
						to = from
					}
					want = append(want, [2]int64{from, to})
				}
				time.Sleep(3 * time.Millisecond)
			}
			c.Close()
		}
	}
	check := func(appended int) {
		t.Helper()
		got := n.readAll(ctx, "t", len(want))
		latest, times := int64(0), []int64{0, 1, math.MaxInt64}
		for i, r := range got {
			if r.append != (i < appended) || r.ms < want[i][0] || r.ms > want[i][1] {
				t.Fatalf("record %d: %+v, want a time in %d", i, r, want[i])
			}
			latest = max(latest, r.ms)
			times = append(times, r.ms-1, r.ms, r.ms+1)
		}
		raw := n.raw()
		first := func(at int64) (int64, int64) {
			for i, r := range got {
				if r.ms >= at {
					return int64(i), r.ms
				}
			}
			return -1, -1
		}
		for _, at := range times {
			offset, ms := first(at)
			if o, m, code := raw.listOffset("t", at); o != offset || m != ms || code != 0 {
				t.Fatalf("time %d: %d at %d (code %d), want %d at %d", at, o, m, code, offset, ms)
			}
		}
		offset, _ := first(latest)
		if o, m, _ := raw.listOffset("t", -3); o != offset || m != latest {
			t.Errorf("greatest time: %d at %d, want %d at %d", o, m, offset, latest)
		}
	}
	n.topic("u", 1)
	for topic, want := range map[string]string{"t": "LogAppendTime DYNAMIC_TOPIC_CONFIG", "u": "CreateTime DEFAULT_CONFIG"} {
		described, err := adm.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range described[0].Configs {
			if got := c.MaybeValue() + " " + c.Source.String(); c.Key == "message.timestamp.type" && got != want {
				t.Errorf("%s: %s, want %s", topic, got, want)
			}
		}
	}
	produce(true)
	appended := len(want)
	check(appended)
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "message.timestamp.type", Value: kadm.StringPtr("CreateTime")}}
	if got, err := adm.AlterTopicConfigs(ctx, change, "t"); err != nil || got[0].Err != nil {
		t.Fatal(err, got)
	}
	produce(false)
	check(appended)
	n.stop()
	n = startNode(t, dir, kafka.Options{})
	check(appended)
}

// TestLogAppendTimeOfRetries: a batch that is sent again has the time of the first, which is the one that is stored, and
// what is stored verifies.
func TestLogAppendTimeOfRetries(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	if _, err := n.broker.Create(t.Context(), broker.TopicSpec{Name: "t", Config: map[string]string{"message.timestamp.type": "LogAppendTime"}}); err != nil {
		t.Fatal(err)
	}
	r := n.raw()
	id := r.ask(sample(22), 4).(*kmsg.InitProducerIDResponse).ProducerID
	b := oneBatch(0, 10, 20, 15)
	binary.BigEndian.PutUint64(b[43:], uint64(id))
	binary.BigEndian.PutUint16(b[51:], 0)
	binary.BigEndian.PutUint32(b[53:], 0)
	sealBatch(b)
	from := time.Now().UnixMilli()
	first := r.produce("t", b)
	to := time.Now().UnixMilli()
	if first.ErrorCode != 0 || first.LogAppendTime < from || first.LogAppendTime > to {
		t.Fatalf("%+v, want a time from %d to %d", first, from, to)
	}
	time.Sleep(5 * time.Millisecond)
	for range 3 {
		if again := r.produce("t", b); again.ErrorCode != 0 || again.BaseOffset != 0 || again.LogAppendTime != first.LogAppendTime {
			t.Errorf("%+v, want time %d", again, first.LogAppendTime)
		}
	}
	stored := r.fetch("t", 0).RecordBatches
	var batch kmsg.RecordBatch
	if err := batch.ReadFrom(stored); err != nil {
		t.Fatal(err)
	}
	if batch.Attributes != 1<<3 || batch.MaxTimestamp != first.LogAppendTime || batch.FirstTimestamp != 10 ||
		uint32(batch.CRC) != crc32.Checksum(stored[21:], crc32.MakeTable(crc32.Castagnoli)) {
		t.Errorf("%+v", batch)
	}
	damaged := append([]byte(nil), b...)
	damaged[70] ^= 1
	if p := r.produce("t", damaged); p.ErrorCode != 2 || p.LogAppendTime != -1 {
		t.Errorf("a damaged batch: %+v", p)
	}
	binary.BigEndian.PutUint32(b[53:], 9) // a gap
	if p := r.produce("t", sealBatch(b)); p.ErrorCode != 45 || p.LogAppendTime != -1 {
		t.Errorf("a gap: %+v", p)
	}
}

// TestLogAppendTimeUnderOverload: a batch that has to wait for its log has the time at which it is appended.
func TestLogAppendTimeUnderOverload(t *testing.T) {
	n, replica := startPaused(t, kafka.Options{}, 64<<10)
	replica.Resume()
	if _, err := n.broker.Create(t.Context(), broker.TopicSpec{Name: "u", Config: map[string]string{"message.timestamp.type": "LogAppendTime"}}); err != nil {
		t.Fatal(err)
	}
	replica.Pause()
	req := produceRequest("u", 0, oneBatch(0, make([]int64, 2500)...))
	req.TimeoutMillis = 60_000
	r := n.raw()
	r.send(req, 9)
	r.send(req, 9) // has no place beside the first
	tiertest.Eventually(t, "both came", func() bool { return n.server.Stats().Requests["Produce"] == 2 })
	time.Sleep(300 * time.Millisecond)
	from := time.Now().UnixMilli()
	replica.Resume()
	for id := range int32(2) {
		resp, err := r.receive(req, id+1)
		if err != nil {
			t.Fatal(err)
		}
		p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || (p.LogAppendTime >= from) != (id == 1) {
			t.Errorf("%+v, the log went on at %d", p, from)
		}
	}
}
