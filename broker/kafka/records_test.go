package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
)

// topic makes a topic.
func (n *node) topic(name string, partitions int32) *broker.Topic {
	n.t.Helper()
	t, err := n.broker.Create(n.t.Context(), broker.TopicSpec{Name: name, Partitions: partitions})
	if err != nil {
		n.t.Fatal(err)
	}
	return t
}

// produce sends one batch and returns what became of it.
func (r *raw) produce(topic string, batch []byte) kmsg.ProduceResponseTopicPartition {
	r.t.Helper()
	return r.ask(produceRequest(topic, 0, batch), 9).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
}

// fetch reads from an offset on.
func (r *raw) fetch(topic string, offset int64) kmsg.FetchResponseTopicPartition {
	r.t.Helper()
	return r.ask(fetchRequest(topic, offset), 12).(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// What is produced comes back to the byte, but for base offset and leader epoch, in every codec and
// with every version of Fetch.
func TestBatchesAreKeptVerbatim(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("t", 1)
	r := n.raw()
	var want [][]byte
	offset := int64(0)
	for codec, count := range []int{3, 1, 700, 40, 2, 900} {
		times := make([]int64, count)
		for i := range times {
			times[i] = 1000 + int64(i*i%17)
		}
		b := oneBatch(int16(codec), times...)
		if codec == 5 { // snappy in another frame
			b = oneBatch(0, times...)
			binary.BigEndian.PutUint16(b[21:], 2)
			b = sealBatch(append(b[:61:61], compress(5, b[61:])...))
		}
		if p := r.produce("t", b); p.ErrorCode != 0 || p.BaseOffset != offset {
			t.Fatalf("codec %d: %+v, want offset %d", codec, p, offset)
		}
		binary.BigEndian.PutUint64(b, uint64(offset))
		binary.BigEndian.PutUint32(b[12:], 1)
		want = append(want, b)
		offset += int64(count)
	}
	for v := int16(4); v <= 12; v++ {
		p := r.ask(fetchRequest("t", 0), v).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.HighWatermark != offset || !bytes.Equal(p.RecordBatches, bytes.Join(want, nil)) {
			t.Errorf("version %d: code %d, high watermark %d, %d bytes", v, p.ErrorCode, p.HighWatermark, len(p.RecordBatches))
		}
	}
}

// Records of a real client come back as they were, in every codec.
func TestClientCodecs(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		c := n.client(kgo.DefaultProduceTopic(name), kgo.ConsumeTopics(name), kgo.ProducerBatchCompression(codec))
		var sent []*kgo.Record
		for i := range 500 {
			sent = append(sent, &kgo.Record{
				Key: fmt.Appendf(nil, "k%d", i), Value: bytes.Repeat([]byte{byte(i)}, i), Timestamp: time.UnixMilli(int64(1000 + i)),
				Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{byte(i)}}},
			})
		}
		if err := c.ProduceSync(ctx, sent...).FirstErr(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for at := 0; at < len(sent); {
			fs := c.PollFetches(ctx)
			if err := fs.Err(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			fs.EachRecord(func(r *kgo.Record) {
				s := sent[at]
				if r.Offset != int64(at) || !bytes.Equal(r.Key, s.Key) || !bytes.Equal(r.Value, s.Value) ||
					!r.Timestamp.Equal(s.Timestamp) || len(r.Headers) != 1 || !bytes.Equal(r.Headers[0].Value, s.Headers[0].Value) {
					t.Errorf("%s: record %d differs: %+v", name, at, r)
				}
				at++
			})
		}
	}
}

// TestZstdSingleSegment: a frame whose content is its window may be as long as any other.
func TestZstdSingleSegment(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("t", 1)
	w, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	b := oneBatch(0, make([]int64, 800_000)...)
	if len(b) < 9<<20 {
		t.Fatalf("%d bytes", len(b))
	}
	packed := w.EncodeAll(b[61:], nil)
	b = append(b[:61:61], packed...)
	binary.BigEndian.PutUint16(b[21:], 4)
	if p := n.raw().produce("t", sealBatch(b)); p.ErrorCode != 0 {
		t.Errorf("%+v", p)
	}
}

// What a producer should not send is refused by the code that says why, and nothing of it is kept.
func TestBatchesRefused(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	if _, err := n.broker.Create(t.Context(), broker.TopicSpec{Name: "t", Config: map[string]string{"max.message.bytes": "2000"}}); err != nil {
		t.Fatal(err)
	}
	r := n.raw()
	good := func() []byte { return oneBatch(0, 1, 2, 3) }
	attributes := func(v uint16) []byte {
		b := good()
		binary.BigEndian.PutUint16(b[21:], v)
		return sealBatch(b)
	}
	short := oneBatch(4, 1, 2, 3)
	binary.BigEndian.PutUint32(short[57:], 2)
	binary.BigEndian.PutUint32(short[23:], 1)
	damaged := good()
	damaged[70] ^= 1
	for name, c := range map[string]struct {
		batch []byte
		code  int16
	}{
		"nothing":          {nil, 2},
		"a flipped bit":    {damaged, 2},
		"cut":              {good()[:80], 2},
		"two batches":      {append(good(), good()...), 87},
		"message set":      {append(make([]byte, 16), append([]byte{1}, make([]byte, 60)...)...), 87},
		"control":          {attributes(1 << 5), 87},
		"transactional":    {attributes(1 << 4), 48},
		"append time":      {attributes(1 << 3), 32},
		"codec 7":          {attributes(7), 87},
		"not compressed":   {attributes(1), 2},
		"fewer than there": {sealBatch(short), 87},
		"too large":        {oneBatch(0, make([]int64, 200)...), 10},
	} {
		if p := r.produce("t", c.batch); p.ErrorCode != c.code || p.BaseOffset != -1 {
			t.Errorf("%s: code %d, offset %d; want code %d", name, p.ErrorCode, p.BaseOffset, c.code)
		}
	}
	if p := r.produce("missing", good()); p.ErrorCode != 3 {
		t.Errorf("a topic that is not there: %+v", p)
	}
	zstd := r.ask(produceRequest("t", 0, oneBatch(4, 1)), 6).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if zstd.ErrorCode != 76 {
		t.Errorf("zstd from a client that does not know it: %+v", zstd)
	}
	acks := produceRequest("t", 0, good())
	acks.Acks = 2
	if p := r.ask(acks, 9).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 21 {
		t.Errorf("acks 2: %+v", p)
	}
	if p := r.produce("t", good()); p.ErrorCode != 0 || p.BaseOffset != 0 {
		t.Errorf("after all that: %+v", p)
	}
}

// A header whose greatest time is wrong is made right, so that searches by time find the record.
func TestMaxTimeIsMadeRight(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("t", 1)
	r := n.raw()
	b := oneBatch(0, 10, 500, 20)
	binary.BigEndian.PutUint64(b[35:], 20)
	if p := r.produce("t", sealBatch(b)); p.ErrorCode != 0 {
		t.Fatalf("%+v", p)
	}
	if offset, ms, code := r.listOffset("t", 300); offset != 1 || ms != 500 || code != 0 {
		t.Errorf("offset %d, time %d, code %d", offset, ms, code)
	}
}

// Without acks there is no answer, and a batch that is refused ends the connection.
func TestNoAcks(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("t", 1)
	r := n.raw()
	req := produceRequest("t", 0, oneBatch(0, 1))
	req.Acks = 0
	r.send(req, 9)
	r.send(req, 9)
	r.ask(sample(18), 0) // the next answer is this one's
	for deadline := time.Now().Add(10 * time.Second); r.fetch("t", 0).HighWatermark < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the batches are not there")
		}
	}
	bad := produceRequest("t", 0, oneBatch(0, 1)[:70])
	bad.Acks = 0
	r.send(bad, 9)
	if _, err := r.receive(bad, r.id); err == nil {
		t.Error("an answer to a request that wants none")
	}
}

// A producer that sends a batch again gets the offset of the first, across a restart, too; a gap and
// an old epoch are told.
func TestIdempotence(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, kafka.Options{})
	n.topic("t", 1)
	ids := make(map[int64]bool)
	var id int64
	for range 3 {
		got := n.raw().ask(sample(22), 4).(*kmsg.InitProducerIDResponse)
		if id = got.ProducerID; got.ErrorCode != 0 || got.ProducerEpoch != 0 || ids[id] {
			t.Fatalf("%+v", got)
		}
		ids[id] = true
	}
	batchOf := func(epoch int16, sequence int32) []byte {
		b := oneBatch(0, 1, 2)
		binary.BigEndian.PutUint64(b[43:], uint64(id))
		binary.BigEndian.PutUint16(b[51:], uint16(epoch))
		binary.BigEndian.PutUint32(b[53:], uint32(sequence))
		return sealBatch(b)
	}
	check := func(epoch int16, sequence int32, code int16, offset int64) {
		t.Helper()
		if p := n.raw().produce("t", batchOf(epoch, sequence)); p.ErrorCode != code || p.BaseOffset != offset {
			t.Errorf("epoch %d, sequence %d: code %d, offset %d; want %d, %d", epoch, sequence, p.ErrorCode, p.BaseOffset, code, offset)
		}
	}
	check(1, 0, 0, 0)
	check(1, 2, 0, 2)
	check(1, 0, 0, 0)
	check(1, 2, 0, 2)
	check(1, 6, 45, -1)
	check(0, 4, 47, -1)
	n.stop()
	n = startNode(t, dir, kafka.Options{})
	check(1, 2, 0, 2)
	check(1, 4, 0, 4)
	check(2, 1, 45, -1)
	check(2, 0, 0, 6)
	if got := n.raw().ask(sample(22), 0).(*kmsg.InitProducerIDResponse); ids[got.ProducerID] {
		t.Errorf("id %d was given out before the restart", got.ProducerID)
	}
	transactional := kmsg.NewPtrInitProducerIDRequest()
	transactional.TransactionalID = kmsg.StringPtr("tx")
	if got := n.raw().ask(transactional, 4).(*kmsg.InitProducerIDResponse); got.ErrorCode != 53 || got.ProducerID != -1 {
		t.Errorf("a transaction: %+v", got)
	}
}

// Transactions fail at once, and say so.
func TestTransactionsAreRefused(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	c := n.client(kgo.TransactionalID("tx"), kgo.DefaultProduceTopic("t"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_ = c.BeginTransaction()
	if err := c.ProduceSync(ctx, kgo.StringRecord("v")).FirstErr(); err == nil || ctx.Err() != nil {
		t.Errorf("got %v after %v", err, ctx.Err())
	}
}

// Requests that are sent without waiting are carried out in order, and answered so.
func TestPipelining(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{InFlightMax: 4})
	n.topic("t", 1)
	r := n.raw()
	const requests = 200
	go func() {
		var all []byte
		for i := range requests {
			req := kmsg.Request(produceRequest("t", 0, oneBatch(0, int64(i))))
			req.SetVersion(7)
			if i%10 == 9 {
				req = fetchRequest("t", 0)
				req.SetVersion(11)
			}
			all = append(all, frame(req, int32(i))...)
		}
		_, _ = r.nc.Write(all)
	}()
	offset := int64(0)
	for i := range requests {
		if i%10 == 9 {
			req := fetchRequest("t", 0)
			req.SetVersion(11)
			if _, err := r.receive(req, int32(i)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		req := produceRequest("t", 0, nil)
		req.SetVersion(7)
		resp, err := r.receive(req, int32(i))
		if err != nil {
			t.Fatal(err)
		}
		if p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != offset {
			t.Fatalf("request %d: %+v, want offset %d", i, p, offset)
		}
		offset++
	}
}

// A log with too much to do keeps producers waiting, and refuses none.
func TestOverload(t *testing.T) {
	n := startLogs(t, t.TempDir(), kafka.Options{}, varve.Options{MinFreeBytes: -1, MaxBatchBytes: 64 << 10, PendingBytes: 64 << 10})
	n.topic("t", 1)
	const producers, requests = 4, 40
	var all sync.WaitGroup
	for range producers {
		r := n.raw()
		all.Go(func() {
			req := produceRequest("t", 0, oneBatch(0, make([]int64, 2500)...))
			for range requests {
				r.send(req, 9)
			}
			for id := range int32(requests) {
				resp, err := r.receive(req, id+1)
				if err != nil {
					t.Error(err)
					return
				}
				if p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
					t.Errorf("%+v", p)
				}
			}
		})
	}
	all.Wait()
	if got := n.raw().fetch("t", 0).HighWatermark; got != producers*requests*2500 {
		t.Errorf("%d records, want %d", got, producers*requests*2500)
	}
}

// TestListOffsetsWhileTrimmed: what is trimmed while a search looks at it is not what it finds.
func TestListOffsetsWhileTrimmed(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	const records = 300
	r := n.filled("t", records, 1)
	topic, _ := n.broker.Topic("t")
	p, _ := topic.Partition(0)
	done := make(chan error, 1)
	go func() {
		for offset := int64(1); offset < records; offset++ {
			if err := p.Log().Trim(context.Background(), offset); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for last := int64(0); last < records-1; {
		offset, _, code := r.listOffset("t", 0)
		if code != 0 || offset < last {
			t.Fatalf("offset %d after %d, code %d", offset, last, code)
		}
		last = offset
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// listOffset asks for an offset by time.
func (r *raw) listOffset(topic string, at int64) (offset, ms int64, code int16) {
	r.t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = at, -1
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	got := r.ask(req, 9).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	return got.Offset, got.Timestamp, got.ErrorCode
}

// Offsets by time are those that a look at every record finds: the first whose time is not before,
// whatever the order of times, in whatever codec, and behind whatever was deleted.
func TestListOffsetsByTime(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("t", 1)
	r := n.raw()
	state := uint64(7)
	random := func(below int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int(state >> 33 % uint64(below))
	}
	var times []int64
	for i := range 120 {
		batch := make([]int64, 1+random(9))
		for j := range batch {
			batch[j] = int64(1000 + 10*i + random(60))
		}
		if i == 60 {
			batch[0] = 90_000 // one that is far ahead of its time
		}
		times = append(times, batch...)
		if p := r.produce("t", oneBatch(int16(i%5), batch...)); p.ErrorCode != 0 {
			t.Fatalf("%+v", p)
		}
	}
	start := 0
	want := func(at int64) (int64, int64) {
		for i := start; i < len(times); i++ {
			if times[i] >= at {
				return int64(i), times[i]
			}
		}
		return -1, -1
	}
	check := func() {
		t.Helper()
		for _, at := range []int64{0, 1, 999, 1000, 2300, 2500, 89_999, 90_000, 90_001, math.MaxInt64} {
			offset, ms := want(at)
			if o, m, code := r.listOffset("t", at); o != offset || m != ms || code != 0 {
				t.Errorf("start %d, time %d: %d at %d (code %d), want %d at %d", start, at, o, m, code, offset, ms)
			}
		}
		for at := int64(1000); at < 2300; at += 7 {
			offset, ms := want(at)
			if o, m, _ := r.listOffset("t", at); o != offset || m != ms {
				t.Errorf("start %d, time %d: %d at %d, want %d at %d", start, at, o, m, offset, ms)
			}
		}
		latest := int64(0)
		for _, ms := range times[start:] {
			latest = max(latest, ms)
		}
		offset, _ := want(latest)
		if o, m, code := r.listOffset("t", -3); o != offset || m != latest || code != 0 {
			t.Errorf("greatest time: %d at %d (code %d), want %d at %d", o, m, code, offset, latest)
		}
		for place, offset := range map[int64]int64{-1: int64(len(times)), -2: int64(start), -4: int64(start), -5: -1} {
			if o, _, code := r.listOffset("t", place); o != offset || code != 0 {
				t.Errorf("place %d: %d (code %d), want %d", place, o, code, offset)
			}
		}
	}
	check()
	for start < len(times) {
		start = min(start+1+random(90), len(times))
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.TimeoutMillis = 5000
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{
			Topic: "t", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: int64(start)}},
		}}
		if p := r.ask(req, 2).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != int64(start) {
			t.Fatalf("%+v, want %d", p, start)
		}
		if start < len(times) {
			check()
		}
	}
	if o, _, code := r.listOffset("t", 0); o != -1 || code != 0 {
		t.Errorf("an empty log: offset %d, code %d", o, code)
	}
	if o, _, code := r.listOffset("t", -7); o != -1 || code != 35 {
		t.Errorf("an unknown place: offset %d, code %d", o, code)
	}
}
