package kafka_test

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
	"varve/tiers"
	"varve/tiers/tiertest"
	"varve/tiers/valkey/client"
)

// TestSlowReadersOfLongAnswers: those who ask for much and do not read it keep only each other waiting, and
// who waits with them has an empty answer about when it wanted one.
func TestSlowReadersOfLongAnswers(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{FetchBytes: 32 << 20, FrameTimeout: 20 * time.Second})
	n.filled("long", 12, 100_000) // 18 MB
	honest := n.filled("short", 1, 10)
	for range 6 {
		slow := n.raw()
		_ = slow.nc.(*net.TCPConn).SetReadBuffer(4 << 10)
		req := fetchRequest("long", 0)
		req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 16<<20, 16<<20
		slow.send(req, 11)
	}
	tiertest.Eventually(t, "the slow ones hold what they can", func() bool { return n.server.Stats().FetchBytes >= 16<<20 })
	for range 3 {
		if got, took := honest.fetchWithin(fetchRequest("short", 0)); got[0] != 1 || took > 5*time.Second {
			t.Errorf("%d batches after %v", got[0], took)
		}
	}
	req := fetchRequest("long", 0)
	req.MaxWaitMillis = 100
	if got, took := n.raw().fetchWithin(req); took > 5*time.Second {
		t.Errorf("%d batches after %v", got[0], took)
	}
}

// TestSlowWritersOfLargeRequests: those who announce much and do not send it keep only each other waiting.
func TestSlowWritersOfLargeRequests(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{FrameTimeout: 20 * time.Second})
	n.topic("t", 1)
	for range 5 {
		slow := n.raw()
		_, _ = slow.nc.Write(append(binary.BigEndian.AppendUint32(nil, 90<<20), make([]byte, 20<<10)...))
	}
	tiertest.Eventually(t, "the slow ones hold what they can", func() bool { return n.server.Stats().RequestBytes >= 90<<20 })
	began := time.Now()
	if p := n.raw().produce("t", oneBatch(0, make([]int64, 40_000)...)); p.ErrorCode != 0 || time.Since(began) > 5*time.Second {
		t.Errorf("%+v after %v", p, time.Since(began))
	}
}

// startPaused starts a node whose appends wait until the replica of its warm tier goes on.
func startPaused(t *testing.T, o kafka.Options, pendingBytes int64) (n *node, replica *tiertest.Process) {
	t.Helper()
	primary, replica := tiertest.StartPair(t)
	d, err := client.New(client.Options{Addresses: []string{primary.Addr}, ConnectTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	n = startBroker(t, t.TempDir(), o, broker.Options{
		Log: varve.Options{Fsync: varve.None, MinFreeBytes: -1, NoPreallocate: true, PendingBytes: pendingBytes, MaxBatchBytes: pendingBytes},
		Tiers: func(topic string, _ uint64, _ int32) (tiers.Bucket, string, varve.WarmOptions) {
			return nil, "", varve.WarmOptions{Dialer: d, Name: topic, Wait: time.Minute}
		},
	})
	n.topic("t", 1)
	replica.Pause()
	t.Cleanup(replica.Resume)
	return n, replica
}

// TestSmallRequestsInFlight: what they keep is taken off the budget while they wait, and where that is not
// there, a connection has only one of them.
func TestSmallRequestsInFlight(t *testing.T) {
	const each = 16 << 10 // of memory, however short the request
	n, replica := startPaused(t, kafka.Options{RequestBytesMax: 1 << 20, RequestBytes: 2 << 20}, 0)
	r := n.raw()
	const requests = 200
	req := produceRequest("t", 0, oneBatch(0, 1))
	req.TimeoutMillis = 60_000
	for range requests {
		r.send(req, 9)
	}
	most := int64(0)
	tiertest.Eventually(t, "some wait", func() bool {
		most = max(most, n.server.Stats().RequestBytes)
		return most >= 40*each
	})
	time.Sleep(50 * time.Millisecond)
	if most = max(most, n.server.Stats().RequestBytes); most > 1<<20 {
		t.Errorf("%d bytes are held", most)
	}
	replica.Resume()
	for id := range int32(requests) {
		resp, err := r.receive(req, id+1)
		if err != nil {
			t.Fatal(err)
		}
		if p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != int64(id) {
			t.Fatalf("%+v, want offset %d", p, id)
		}
	}
	tiertest.Eventually(t, "all is given back", func() bool { return n.server.Stats().RequestBytes == 0 })
}

// TestLateOutcomeKeepsItsMemory: while the log reads from a request, its memory is counted.
func TestLateOutcomeKeepsItsMemory(t *testing.T) {
	n, replica := startPaused(t, kafka.Options{}, 0)
	req := produceRequest("t", 0, oneBatch(0, make([]int64, 10_000)...))
	req.TimeoutMillis = 1000
	if p := n.raw().ask(req, 9).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 7 {
		t.Fatalf("%+v", p)
	}
	if got := n.server.Stats().RequestBytes; got < 100_000 {
		t.Errorf("%d bytes are held", got)
	}
	replica.Resume()
	tiertest.Eventually(t, "it is given back", func() bool { return n.server.Stats().RequestBytes == 0 })
}
