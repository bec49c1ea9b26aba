package clients

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/broker/brokertest"
)

// The kill suite of a node: SIGKILL again and again, under load. VARVE_KILLS sets the kills.

const (
	killsDefault   = 10
	killPartitions = 8
	killProducers  = 4
)

// TestKillUnderLoad: idempotent producers, whose client sends again what has no answer, go on across
// kills. In the end each record is there once, in the order of its producer.
func TestKillUnderLoad(t *testing.T) {
	kills := number(t, "VARVE_KILLS", killsDefault)
	n := brokertest.Start(t, "--segment-bytes=1MiB")
	create(t.Context(), t, n, "load", killPartitions)

	stop := make(chan struct{})
	var running sync.WaitGroup
	var acked [killProducers]atomic.Int64
	var sent [killProducers][killPartitions]int64
	for p := range killProducers {
		c := client(t, n, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("load"), kgo.StopProducerOnDataLossDetected(),
			kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(200))
		running.Go(func() {
			for i := int64(0); ; i++ {
				select {
				case <-stop:
					if err := c.Flush(t.Context()); err != nil {
						t.Error(err)
					}
					return
				default:
				}
				k := i % killPartitions
				r := &kgo.Record{Partition: int32(k), Value: fmt.Appendf(nil, "%d %d %d", p, k, sent[p][k])}
				sent[p][k]++
				c.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
					if err != nil {
						t.Errorf("producer %d: %v", p, err)
						return
					}
					acked[p].Add(1)
				})
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	before, inFlight := int64(0), 0
	for range kills {
		time.Sleep(time.Duration(10+rng.IntN(90)) * time.Millisecond)
		n.Kill()
		sum := int64(0)
		for p := range acked {
			sum += acked[p].Load()
		}
		if sum > before {
			inFlight++
		}
		before = sum
		n.Open(t)
	}
	close(stop)
	running.Wait()
	if t.Failed() {
		return
	}
	all := int64(0)
	for p := range acked {
		all += acked[p].Load()
		for _, s := range sent[p] {
			all -= s
		}
	}
	if all != 0 {
		t.Fatalf("%d records were acked that were not sent", all)
	}
	next, records := [killProducers][killPartitions]int64{}, int64(0)
	for _, r := range consume(t.Context(), t, n, "load", killPartitions) {
		var p, k, i int64
		if _, err := fmt.Sscan(string(r.Value), &p, &k, &i); err != nil || k != int64(r.Partition) {
			t.Fatalf("partition %d, offset %d: %q, %v", r.Partition, r.Offset, r.Value, err)
		}
		if want := next[p][k]; i != want {
			t.Fatalf("partition %d, offset %d: record %d of producer %d, want %d: lost, doubled or out of order", k, r.Offset, i, p, want)
		}
		next[p][k]++
		records++
	}
	if next != sent {
		t.Fatalf("found %v\n sent %v", next, sent)
	}
	t.Logf("%d kills, %d of them with records acked since the one before; %d records, each acked and there once, in order", kills, inFlight, records)
}

// consume reads a topic from its first to its last record, and wants offsets without a gap.
func consume(ctx context.Context, t *testing.T, n *brokertest.Node, topic string, partitions int32) []*kgo.Record {
	t.Helper()
	ends, err := kadm.NewClient(client(t, n)).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	for i := range partitions {
		end, ok := ends.Lookup(topic, i)
		if !ok || end.Err != nil {
			t.Fatalf("%s/%d: %v", topic, i, end.Err)
		}
		left += end.Offset
	}
	c := client(t, n, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var all []*kgo.Record
	next := make([]int64, partitions)
	for left > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d records missing: %v", left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != next[r.Partition] {
				t.Fatalf("%s/%d: offset %d follows %d", topic, r.Partition, r.Offset, next[r.Partition]-1)
			}
			next[r.Partition]++
			left--
			all = append(all, r)
		})
	}
	return all
}

// TestKillWhileTopicsChange: a topic is created, filled, read, deleted and created again under the same
// name, across kills. What is read is what this topic was given, and never what one before it held.
func TestKillWhileTopicsChange(t *testing.T) {
	kills := number(t, "VARVE_KILLS", killsDefault)
	n := brokertest.Start(t)
	var done atomic.Bool
	var running sync.WaitGroup
	lives := make(map[string]int)
	running.Go(func() {
		for life := 0; !done.Load() && !t.Failed(); life++ {
			if err := oneLife(t, n, "churn", life, lives); err != nil {
				t.Error(err)
			}
		}
	})
	rng := rand.New(rand.NewPCG(3, 4))
	for range kills {
		time.Sleep(time.Duration(20+rng.IntN(230)) * time.Millisecond)
		n.Kill()
		n.Open(t)
	}
	done.Store(true)
	running.Wait()
	if t.Failed() {
		return
	}
	for try := 0; ; try++ { // a node that stops leaves the rest of a removal to its next life
		left, err := os.ReadDir(filepath.Join(n.Dir, "topics"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if try == 6000 { // one that failed is tried again after a while
			t.Fatalf("every topic was deleted, and %v is left", left)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code := n.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	t.Logf("%d kills; %v", kills, lives)
}

// oneLife creates a topic, looks that it holds exactly what it was given, and deletes it. Calls whose
// outcome a kill hid are made again.
func oneLife(t *testing.T, n *brokertest.Node, topic string, life int, lives map[string]int) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := client(t, n, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1))
	defer c.Close()
	admin := kadm.NewClient(c)
	hidden, err := insist(ctx, kerr.TopicAlreadyExists, func() error {
		_, err := admin.CreateTopic(ctx, 2, 1, nil, topic)
		return err
	})
	if err != nil {
		return fmt.Errorf("life %d: create: %w", life, err)
	}
	lives["created"]++
	lives["created, and a kill hid it"] += hidden
	var want [2][]string
	for i := range 20 {
		v := fmt.Sprintf("life %d record %d", life, i)
		want[i%2] = append(want[i%2], v)
		if err := c.ProduceSync(ctx, &kgo.Record{Partition: int32(i % 2), Value: []byte(v)}).FirstErr(); err != nil {
			return fmt.Errorf("life %d: produce: %w", life, err)
		}
	}
	var got [2][]string
	reader := client(t, n, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0), 1: kgo.NewOffset().At(0)}}))
	defer reader.Close()
	for len(got[0])+len(got[1]) < 20 {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("life %d: read %d records of 20: %w", life, len(got[0])+len(got[1]), ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) { got[r.Partition] = append(got[r.Partition], string(r.Value)) })
	}
	if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
		return fmt.Errorf("life %d: %s holds\n%s\nit was given\n%s", life, topic, a, b)
	}
	hidden, err = insist(ctx, kerr.UnknownTopicOrPartition, func() error {
		_, err := admin.DeleteTopic(ctx, topic)
		return err
	})
	if err != nil {
		return fmt.Errorf("life %d: delete: %w", life, err)
	}
	lives["deleted, and a kill hid it"] += hidden
	return nil
}

// insist makes a call until it has an answer. Once an answer was lost, already counts as success, because
// the call that was hidden may have done it: hidden is 1 then.
func insist(ctx context.Context, already *kerr.Error, call func() error) (hidden int, err error) {
	lost := false
	for ctx.Err() == nil {
		err = call()
		var code *kerr.Error
		switch {
		case err == nil:
			return 0, nil
		case lost && errors.Is(err, already):
			return 1, nil
		case errors.As(err, &code) && !code.Retriable:
			return 0, err
		}
		lost = true
		time.Sleep(5 * time.Millisecond)
	}
	return 0, err
}

// TestCatalogueIsALog: what the catalogue says after kills is a history that can be read
// with the tool for logs.
func TestCatalogueIsALog(t *testing.T) {
	n := brokertest.Start(t)
	create(t.Context(), t, n, "orders", 3)
	n.Kill()
	out, errOut, code := brokertest.Varve(t.Context(), t, "log", "read", "--dir", filepath.Join(n.Dir, "catalogue"))
	if code != 0 || !strings.Contains(out, "orders") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
}
