package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/valkey-io/valkey-go"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
)

// Stores that are asked over a socket of this host: sync is appendfsync always and SyncAlways, and without
// it everysec, JetStream's default, and Varve's periodic.
var served = []contender{
	{name: nodeName, open: openServed},
	{name: "redis streams", open: openRedis},
	{name: "jetstream", open: openJetStream},
}

const servedName = "bench" // of the topic, key or stream

// servedVarve is a node in this process with franz-go's client.
type servedVarve struct {
	node    *broker.Broker
	server  *kafka.Server
	address string
	client  *kgo.Client
	topic   *broker.Topic
}

func openServed(dir string, sync bool) (store, error) { return openNode(dir, sync) }

func openNode(dir string, sync bool) (*servedVarve, error) {
	o := broker.Options{AutoCreate: true, Log: varve.Options{Fsync: varve.Periodic, MinFreeBytes: -1}}
	if sync {
		o.Log.Fsync = varve.OnCommit
	}
	ctx := context.Background()
	node, err := broker.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	s := &servedVarve{node: node, server: kafka.NewServer(node, kafka.Options{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.address = l.Addr().String()
	go func() { _ = s.server.Serve(l) }()
	s.topic, err = node.Topic(servedName)
	if errors.Is(err, broker.ErrUnknownTopic) {
		s.topic, err = node.Create(ctx, broker.TopicSpec{Name: servedName})
	}
	if err == nil {
		s.client, err = newProducer(s.address)
	}
	return s, err
}

func newProducer(address string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic(servedName), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

func (s *servedVarve) append(recs [][]byte) error {
	list := make([]*kgo.Record, len(recs))
	for i, rec := range recs {
		list[i] = &kgo.Record{Value: rec}
	}
	return s.client.ProduceSync(context.Background(), list...).FirstErr()
}

func (s *servedVarve) commits() uint64 {
	p, err := s.topic.Partition(0)
	if err != nil || p.Log() == nil {
		return 0
	}
	return p.Log().Stats().Commits
}

// newReader returns a client that reads from an offset on.
func newReader(address string, at kgo.Offset) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{servedName: {0: at}}))
}

func (s *servedVarve) read(count *tally) error {
	ends, err := kadm.NewClient(s.client).ListEndOffsets(context.Background(), servedName)
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(servedName, 0)
	c, err := newReader(s.address, kgo.NewOffset().At(0))
	if err != nil {
		return err
	}
	defer c.Close()
	for end.Offset > 0 {
		fetches := c.PollFetches(context.Background())
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			count.add(r.Value)
			end.Offset--
		})
	}
	return nil
}

func (s *servedVarve) close() error {
	if s.client != nil {
		s.client.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(s.server.Shutdown(ctx), s.node.Close(ctx))
}

// redisStore is a stream of a redis-server, or of the valkey-server that came of it, in a process of its
// own. The client gathers the commands of all callers into pipelines.
type redisStore struct {
	cmd    *exec.Cmd
	client valkey.Client
}

func openRedis(dir string, sync bool) (store, error) {
	path, err := redisServer()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	_ = l.Close() // the server takes the port
	mode := "everysec"
	if sync {
		mode = "always"
	}
	s := &redisStore{}
	s.cmd = exec.Command(path, "--port", address[strings.LastIndexByte(address, ':')+1:], "--dir", dir, "--appendonly", "yes",
		"--appendfsync", mode, "--save", "", "--loglevel", "warning")
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s.client, err = valkey.NewClient(valkey.ClientOption{InitAddress: []string{address}, DisableCache: true, PipelineMultiplex: redisMultiplex})
		if err == nil {
			err = s.client.Do(context.Background(), s.client.B().Xlen().Key(servedName).Build()).Error()
		}
		if err == nil || time.Now().After(end) {
			return s, err
		}
	}
}

// redisServer finds the program.
func redisServer() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server is in PATH: install one, or leave these cells out with -only")
}

func (s *redisStore) append(recs [][]byte) error {
	for _, rec := range recs {
		if err := s.client.Do(context.Background(), s.xadd(rec)).Error(); err != nil {
			return err
		}
	}
	return nil
}

// commits is unknown: the server does not say how many commands shared a sync.
func (s *redisStore) commits() uint64 { return 0 }

func (s *redisStore) read(count *tally) error {
	for from := "-"; ; {
		entries, err := s.client.Do(context.Background(), s.client.B().Xrange().Key(servedName).Start(from).End("+").Count(10_000).Build()).AsXRange()
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			count.add([]byte(e.FieldValues["v"]))
		}
		from = "(" + entries[len(entries)-1].ID
	}
}

func (s *redisStore) close() error {
	if s.client != nil {
		s.client.Close()
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	_ = s.cmd.Wait() // it was interrupted
	return nil
}

// jetStore is a stream of a NATS server in this process.
type jetStore struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openJetStream(dir string, sync bool) (store, error) {
	srv, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, SyncAlways: sync, Port: -1, Host: "127.0.0.1", NoSigs: true, NoLog: true})
	if err != nil {
		return nil, err
	}
	s := &jetStore{server: srv}
	go srv.Start()
	if !srv.ReadyForConnections(30 * time.Second) {
		return nil, errors.New("jetstream: the server does not start")
	}
	if s.conn, err = nats.Connect(srv.ClientURL()); err != nil {
		return nil, err
	}
	if s.js, err = jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(1<<20)); err != nil {
		return nil, err
	}
	s.stream, err = s.js.CreateOrUpdateStream(context.Background(), jetstream.StreamConfig{Name: servedName, Subjects: []string{servedName}, Storage: jetstream.FileStorage})
	return s, err
}

func (s *jetStore) append(recs [][]byte) error {
	for _, rec := range recs {
		f, err := s.js.PublishAsync(servedName, rec)
		if err != nil {
			return err
		}
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		}
	}
	return nil
}

// commits is unknown, as of redisStore.
func (s *jetStore) commits() uint64 { return 0 }

func (s *jetStore) read(count *tally) error {
	info, err := s.stream.Info(context.Background())
	if err != nil {
		return err
	}
	c, err := s.stream.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return err
	}
	m, err := c.Messages()
	if err != nil {
		return err
	}
	defer m.Stop()
	for range info.State.Msgs {
		msg, err := m.Next()
		if err != nil {
			return err
		}
		count.add(msg.Data())
	}
	return nil
}

func (s *jetStore) close() error {
	s.conn.Close()
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return nil
}
