package kafka_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
)

// node is a broker and its server, for a test.
type node struct {
	t      testing.TB
	dir    string
	broker *broker.Broker
	server *kafka.Server
	addr   string
	served chan error
}

// startNode starts a node over a directory, whose logs take a disk at its word, and stops it at the
// end of the test.
func startNode(t testing.TB, dir string, o kafka.Options) *node {
	t.Helper()
	return startLogs(t, dir, o, varve.Options{Fsync: varve.None, MinFreeBytes: -1, NoPreallocate: true})
}

// startLogs is startNode with logs of a test's choice.
func startLogs(t testing.TB, dir string, o kafka.Options, logs varve.Options) *node {
	t.Helper()
	return startBroker(t, dir, o, broker.Options{Log: logs, AutoCreate: true})
}

// startBroker is startNode with a broker of a test's choice.
func startBroker(t testing.TB, dir string, o kafka.Options, of broker.Options) *node {
	t.Helper()
	b, err := broker.Open(t.Context(), dir, of)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: dir, broker: b, server: kafka.NewServer(b, o), served: make(chan error, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.addr = l.Addr().String()
	go func() { n.served <- n.server.Serve(l) }()
	t.Cleanup(n.stop)
	return n
}

// stop shuts a node down in order. It may be called twice.
func (n *node) stop() {
	if n.broker == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := n.server.Shutdown(ctx); err != nil {
		n.t.Errorf("shutdown: %v", err)
	}
	if err := <-n.served; err != kafka.ErrServerClosed { //nolint:errorlint // it is that very value
		n.t.Errorf("serve: %v", err)
	}
	if err := n.broker.Close(ctx); err != nil {
		n.t.Errorf("close: %v", err)
	}
	n.broker = nil
}

// client connects to the node.
func (n *node) client(opts ...kgo.Opt) *kgo.Client {
	n.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(n.addr), kgo.AllowAutoTopicCreation()}, opts...)...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(c.Close)
	return c
}

func TestProduceAndFetch(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	c := n.client(kgo.DefaultProduceTopic("a"), kgo.ConsumeTopics("a"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.ProduceSync(ctx, kgo.StringRecord("hello"), kgo.StringRecord("world")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 2 {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if got[0] != "hello" || got[1] != "world" {
		t.Errorf("got %q", got)
	}
}
