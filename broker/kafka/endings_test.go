package kafka_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/tiers/tiertest"
)

// TestShutdownWithUnreadRequests: what was answered arrives, although requests behind it were not read.
func TestShutdownWithUnreadRequests(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.filled("t", 2, 20_000)
	n.topic("empty", 1)
	r := n.raw()
	_ = r.nc.(*net.TCPConn).SetReadBuffer(64 << 10)
	first, second := fetchRequest("t", 0), fetchRequest("empty", 0)
	second.MaxWaitMillis = 60_000
	r.send(first, 11)
	r.send(second, 11)
	unread := sample(18)
	unread.SetVersion(3)
	_, _ = r.nc.Write(bytes.Repeat(frame(unread, 3), 5000))
	tiertest.Eventually(t, "the first is on its way, the second waits", func() bool {
		s := n.server.Stats()
		return s.FetchBytes == 0 && s.Requests["Fetch"] == 2
	})
	done := make(chan struct{})
	go func() {
		n.stop()
		close(done)
	}()
	time.Sleep(100 * time.Millisecond) // it has ended the second by then
	for id, req := range []kmsg.Request{first, second} {
		if _, err := r.receive(req, int32(id+1)); err != nil {
			t.Fatalf("answer %d: %v", id+1, err)
		}
	}
	_ = r.nc.Close()
	<-done
}

// TestShutdownWithUnreadAnswer: a peer that does not take its answer holds a shutdown up for seconds.
func TestShutdownWithUnreadAnswer(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{FrameTimeout: time.Minute})
	n.filled("t", 8, 150_000)
	r := n.raw()
	_ = r.nc.(*net.TCPConn).SetReadBuffer(4 << 10)
	req := waiting("t")
	req.MinBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1<<30
	r.send(req, 11)
	tiertest.Eventually(t, "it is being sent", func() bool { return n.server.Stats().FetchBytes > 8<<20 })
	time.Sleep(100 * time.Millisecond)
	if n.server.Stats().FetchBytes == 0 {
		t.Fatal("all of it is on its way")
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := n.server.Shutdown(ctx); err != nil {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// TestRefusedBehindAnswers: a batch that is refused without an answer ends the connection behind the answers
// of those before it.
func TestRefusedBehindAnswers(t *testing.T) {
	n, replica := startPaused(t, kafka.Options{}, 0)
	r := n.raw()
	good, bad := produceRequest("t", 0, oneBatch(0, 1)), produceRequest("t", 0, make([]byte, 100))
	good.TimeoutMillis, bad.Acks = 60_000, 0
	const requests = 30
	for range requests {
		r.send(good, 9)
	}
	r.send(bad, 9)
	tiertest.Eventually(t, "all came", func() bool { return n.server.Stats().Requests["Produce"] == requests+1 })
	replica.Resume()
	for id := range int32(requests) {
		if _, err := r.receive(good, id+1); err != nil {
			t.Fatalf("answer %d: %v", id+1, err)
		}
	}
	if _, err := r.receive(bad, 0); err == nil {
		t.Error("an answer that nobody wanted")
	}
}

// failing is a listener whose Accept fails some times.
type failing struct {
	net.Listener
	left atomic.Int32
}

func (l *failing) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ENFILE)}
	}
	return l.Listener.Accept()
}

// TestAcceptFails: what keeps connections from being accepted passes, and the node is there when it has.
func TestAcceptFails(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := &failing{Listener: l}
	other.left.Store(5)
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(other) }()
	n.addr = l.Addr().String()
	n.raw().ask(sample(18), 3)
	select {
	case err := <-served:
		t.Errorf("it ended: %v", err)
	default:
	}
}

// TestCatalogueThatCannotAnswer: who asks for a topic or a producer id gets a code that clients ask again after,
// not one by which librdkafka gives up what it has, or a Java producer itself.
func TestCatalogueThatCannotAnswer(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.raw()
	if err := n.broker.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := kmsg.NewPtrMetadataRequest()
	m.AllowAutoTopicCreation = true
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("new")}}
	if got := r.ask(m, 9).(*kmsg.MetadataResponse).Topics[0]; got.ErrorCode != 5 {
		t.Errorf("metadata: %+v", got)
	}
	if got := r.ask(sample(22), 4).(*kmsg.InitProducerIDResponse); got.ErrorCode != 7 || got.ProducerID != -1 {
		t.Errorf("producer id: %+v", got)
	}
}
