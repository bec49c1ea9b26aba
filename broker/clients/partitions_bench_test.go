package clients

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve/broker/brokertest"
)

// BenchmarkPartitions is a node with so many partitions, under a client that has 10,000 records of 128 B on their way
// and spreads them over all partitions. Beside the records a second it reports the memory of the node for each
// partition, right after the records and after a start without any, the most threads it had, and how long a start
// takes from the program's call, after a stop and after a kill. Use -benchtime 300000x.
func BenchmarkPartitions(b *testing.B) {
	for _, count := range []int32{1, 100, 1000} {
		b.Run(strconv.Itoa(int(count)), func(b *testing.B) { benchPartitions(b, count) })
	}
}

func benchPartitions(b *testing.B, count int32) {
	n := brokertest.Start(b)
	empty := status(b, n, "RssAnon")
	create(b.Context(), b, n, "bench", count)
	c := client(b, n, kgo.DefaultProduceTopic("bench"), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(10_000))
	var refused atomic.Int64
	value := make([]byte, 128)
	produce := func(records int) {
		for i := range records {
			c.Produce(b.Context(), &kgo.Record{Partition: int32(i) % count, Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					refused.Add(1)
				}
			})
		}
		if err := c.Flush(context.Background()); err != nil || refused.Load() > 0 {
			b.Fatal(err, refused.Load())
		}
	}
	produce(int(count)) // the first record of a partition makes its file
	b.ResetTimer()
	produce(b.N)
	b.StopTimer()
	c.Close()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(status(b, n, "Threads")), "threads")
	b.ReportMetric(float64(status(b, n, "RssAnon")-empty)/float64(count), "KiB/partition-after-load")
	if code := n.Stop(b); code != 0 {
		b.Fatalf("exit code %d", code)
	}
	b.ReportMetric(opening(b, n), "ms-open")
	b.ReportMetric(float64(status(b, n, "RssAnon")-empty)/float64(count), "KiB/partition")
	n.Kill()
	b.ReportMetric(opening(b, n), "ms-open-after-kill")
}

// opening starts the next life and returns how long that takes, in milliseconds.
func opening(b *testing.B, n *brokertest.Node) float64 {
	began := time.Now()
	n.Open(b)
	return float64(time.Since(began).Microseconds()) / 1e3
}

// status returns a number of the node's process, as the kernel counts it: sizes in KiB.
func status(b *testing.B, n *brokertest.Node, key string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Pid()))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), key+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		b.Fatalf("no %s in the status of the process", key)
	}
	number, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return number
}
