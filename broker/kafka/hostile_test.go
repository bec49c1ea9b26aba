package kafka_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// bystander is a client that goes about its business while others misbehave: its produce and fetch
// must go on, each within a time.
func (n *node) bystander(topic string) (stop func()) {
	n.t.Helper()
	n.topic(topic, 1)
	r := n.raw()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for offset := int64(0); ctx.Err() == nil; offset++ {
			began := time.Now()
			_ = r.nc.SetDeadline(began.Add(20 * time.Second))
			req := produceRequest(topic, 0, oneBatch(0, 1))
			r.send(req, 9)
			resp, err := r.receive(req, r.id)
			if err != nil {
				n.t.Errorf("bystander: %v", err)
				return
			}
			if p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != offset {
				n.t.Errorf("bystander: %+v, want offset %d", p, offset)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// heap returns the bytes of live objects and of those not collected yet.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// peak watches the heap until stop, which returns how far it rose.
func peak() (stop func() uint64) {
	runtime.GC()
	from := heap()
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				most.Store(max(most.Load(), heap()))
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		if m := most.Load(); m > from {
			return m - from
		}
		return 0
	}
}

// closes reports whether the node ends a connection, and how long that takes.
func closes(t testing.TB, nc net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	_ = nc.SetReadDeadline(began.Add(30 * time.Second))
	if _, err := io.Copy(io.Discard, nc); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("the connection was not ended")
	}
	return time.Since(began)
}

// What is no request ends its connection and no other, and claims no memory: random bytes, lengths
// that cannot be, cut frames, arrays that are longer than their frame.
func TestHostileBytes(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{FrameTimeout: time.Second})
	stop := n.bystander("quiet")
	defer stop()
	rise := peak()
	random := rand.New(rand.NewPCG(1, 2))
	send := func(b []byte) {
		r := n.raw()
		_, _ = r.nc.Write(b)
		_ = r.nc.(*net.TCPConn).CloseWrite()
		closes(t, r.nc)
	}
	for range 300 {
		b := make([]byte, random.IntN(300))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		if len(b) > 8 && random.IntN(2) == 0 { // one that is taken for a request
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
			binary.BigEndian.PutUint16(b[4:], uint16(random.IntN(70)))
			binary.BigEndian.PutUint16(b[6:], uint16(random.IntN(14)))
		}
		send(b)
	}
	for _, length := range []uint32{0, 1, 7, 1 << 31, 1<<31 - 1, 1<<32 - 1, 101 << 20} {
		send(binary.BigEndian.AppendUint32(nil, length))
	}
	// Requests whose arrays claim what a frame could hold at most.
	for key := range int16(61) {
		if kmsg.RequestForKey(key) == nil {
			continue
		}
		for turn := range 8 {
			b := make([]byte, 1<<20)
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
			binary.BigEndian.PutUint16(b[4:], uint16(key))
			binary.BigEndian.PutUint16(b[6:], []uint16{1, 4, 5, 7, 9, 12, 0, 3}[turn])
			for i := 14; i < len(b); i++ {
				b[i] = []byte{0, 0x07, 0xff, 0xff}[(i+turn)%4]
			}
			send(b)
		}
	}
	if got := rise(); got > 256<<20 {
		t.Errorf("the heap rose by %d MiB", got>>20)
	} else {
		t.Logf("the heap rose by %d MiB", got>>20)
	}
	stop() // its requests count as well
	for deadline := time.Now().Add(20 * time.Second); n.server.Stats().RequestBytes != 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if s := n.server.Stats(); s.RequestBytes != 0 || s.Malformed == 0 {
		t.Errorf("%+v", s)
	}
}

// Peers that begin and do not go on are cut off, and what they hold meanwhile is bounded: a length
// and nothing else, a frame byte by byte, an answer that nobody reads.
func TestSlowPeers(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{FrameTimeout: 500 * time.Millisecond, IdleTimeout: 2 * time.Second})
	n.filled("t", 4, 10_000)
	stop := n.bystander("quiet")
	defer stop()
	rise := peak()
	var all sync.WaitGroup
	for i := range 60 {
		r := n.raw()
		all.Go(func() {
			switch i % 4 {
			case 0: // half open: nothing ever
			case 1: // a length
				_, _ = r.nc.Write(binary.BigEndian.AppendUint32(nil, 90<<20))
			case 2: // a byte at a time, of a frame that takes too long
				b := frame(produceRequest("t", 0, oneBatch(0, make([]int64, 5000)...)), 1)
				for _, c := range b {
					if _, err := r.nc.Write([]byte{c}); err != nil {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
			case 3: // questions, and never a look at the answers
				req := fetchRequest("t", 0)
				req.SetVersion(11)
				one := frame(req, 1)
				_ = r.nc.SetWriteDeadline(time.Now().Add(20 * time.Second))
				for {
					if _, err := r.nc.Write(one); err != nil {
						break
					}
				}
			}
			if d := closes(t, r.nc); d > 15*time.Second {
				t.Errorf("peer %d was cut off after %v", i, d)
			}
		})
	}
	all.Wait()
	if got := rise(); got > 128<<20 {
		t.Errorf("the heap rose by %d MiB", got>>20)
	} else {
		t.Logf("the heap rose by %d MiB", got>>20)
	}
}

// Thousands of connections are served; those above the limit are turned away, and others take the
// place of those that leave.
func TestManyConnections(t *testing.T) {
	const most = 5000
	n := startNode(t, t.TempDir(), kafka.Options{ConnectionsMax: most + 1})
	stop := n.bystander("quiet")
	defer stop()
	runtime.GC()
	from := heap()
	var list []*raw
	for range most {
		r := n.raw()
		r.ask(sample(18), 3)
		list = append(list, r)
	}
	runtime.GC()
	each := (int64(heap()) - int64(from)) / most
	if t.Logf("%d bytes of heap a connection, its client's with it", each); each > 32<<10 {
		t.Errorf("%d bytes of heap a connection", each)
	}
	over := n.raw()
	closes(t, over.nc)
	_ = list[0].nc.Close()
	for deadline := time.Now().Add(10 * time.Second); n.server.Stats().Connections > most; {
		if time.Now().After(deadline) {
			t.Fatal("the place of one that left is not free")
		}
		time.Sleep(time.Millisecond)
	}
	n.raw().ask(sample(18), 3)
	list[most-1].ask(sample(18), 3)
	if got := n.server.Stats().TurnedAway; got != 1 {
		t.Errorf("%d were turned away", got)
	}
}

// Connections leave the logs the descriptors that they need, whatever ConnectionsMax says.
func TestConnectionsLeaveFiles(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := syscall.Rlimit{Cur: 1100, Max: was.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, t.TempDir(), kafka.Options{})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil { // for this side of the connections
		t.Fatal(err)
	}
	const partitions = 10
	n.topic("t", partitions)
	const most = (1100 - partitions*4 - 512) / 3
	if got := n.broker.Connections(); got != most {
		t.Fatalf("%d connections", got)
	}
	first := n.raw()
	req := fetchRequest("t", 0)
	req.Topics[0].Partitions = nil
	for i := range int32(partitions) {
		if p := first.ask(produceRequest("t", i, oneBatch(0, 1000)), 9).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
			t.Fatalf("%+v", p)
		}
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.PartitionMaxBytes = i, 1<<20
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, part)
	}
	for range most - 1 {
		n.raw().ask(req, 11)
	}
	if files := openSegments(n.dir); files > 2*most+partitions { // those that are appended to
		t.Errorf("%d segments are open for readers", files-partitions)
	}
	closes(t, n.raw().nc)
	if got := n.server.Stats(); got.TurnedAway != 1 || got.Connections != most {
		t.Errorf("%+v", got)
	}
}

// openSegments returns how many descriptors of this process are of segments below a directory.
func openSegments(dir string) (n int) {
	all, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range all {
		if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, dir) && strings.HasSuffix(name, ".seg") {
			n++
		}
	}
	return n
}

// A batch of a few KiB that is GiBs after decompressing is refused, by every codec, in bounded memory,
// and so is a window that nobody has memory for.
func TestDS4CompressionBombs(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{BatchBytesMax: 16 << 20})
	n.topic("t", 1)
	stop := n.bystander("quiet")
	defer stop()
	header := binary.AppendVarint(append(binary.AppendVarint(nil, 1<<30), 0, 0, 0, 1), 1<<30-10)
	source := func() io.Reader { return io.MultiReader(bytes.NewReader(header), io.LimitReader(zeros{}, 1<<28)) }
	bombs := map[string]struct {
		codec int16
		bytes []byte
	}{}
	var gz bytes.Buffer
	w, _ := gzip.NewWriterLevel(&gz, gzip.BestSpeed)
	_, _ = io.Copy(w, source())
	_ = w.Close()
	bombs["gzip"] = struct {
		codec int16
		bytes []byte
	}{1, gz.Bytes()}
	var zs bytes.Buffer
	z, _ := zstd.NewWriter(&zs, zstd.WithWindowSize(8<<20))
	_, _ = io.Copy(z, source())
	_ = z.Close()
	bombs["zstd"] = struct {
		codec int16
		bytes []byte
	}{4, zs.Bytes()}
	bombs["zstd window"] = struct {
		codec int16
		bytes []byte
	}{4, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 0xff, 0xff, 0xff, 0xff}}
	bombs["snappy"] = struct {
		codec int16
		bytes []byte
	}{2, append([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 1, 2, 3)}
	bombs["snappy frame"] = struct {
		codec int16
		bytes []byte
	}{2, append([]byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"), 0x7f, 0xff, 0xff, 0xff, 0xff)}
	bombs["lz4"] = struct {
		codec int16
		bytes []byte
	}{3, compress(3, append(header[:len(header):len(header)], make([]byte, 64<<20)...))}
	rise := peak()
	var all sync.WaitGroup
	for name, bomb := range bombs {
		b := oneBatch(0, 1)
		binary.BigEndian.PutUint16(b[21:], uint16(bomb.codec))
		b = sealBatch(append(b[:61], bomb.bytes...))
		for range 4 {
			r := n.raw()
			all.Go(func() {
				if p := r.produce("t", b); p.ErrorCode != 10 && p.ErrorCode != 2 || p.BaseOffset != -1 {
					t.Errorf("%s, %d bytes: %+v", name, len(b), p)
				}
			})
		}
	}
	all.Wait()
	if got := rise(); got > 200<<20 {
		t.Errorf("the heap rose by %d MiB", got>>20)
	} else {
		t.Logf("the heap rose by %d MiB", got>>20)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A name that would lead out of the directory, or cannot be one, makes nothing anywhere.
func TestSE1HostileNames(t *testing.T) {
	parent := t.TempDir()
	n := startNode(t, filepath.Join(parent, "node"), kafka.Options{})
	before := tree(t, parent)
	r := n.raw()
	for _, name := range []string{
		"..", ".", "", "../x", "a/b", "/etc/x", "a\x00b", "a\nb", "ä", "a b", "..\\x", strings.Repeat("x", 250),
		strings.Repeat("../", 5000), strings.Repeat("y", 32767),
	} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Topics = []kmsg.CreateTopicsRequestTopic{topic}
		for _, version := range []int16{0, 7} {
			if got := r.ask(req, version).(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode != 17 {
				t.Errorf("create %.40q: %+v", name, got)
			}
		}
		m := kmsg.NewPtrMetadataRequest()
		m.AllowAutoTopicCreation = true
		m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		if got := r.ask(m, 9).(*kmsg.MetadataResponse).Topics[0]; got.ErrorCode != 17 {
			t.Errorf("metadata of %.40q: %+v", name, got)
		}
		if p := r.produce(name, oneBatch(0, 1)); p.ErrorCode != 3 {
			t.Errorf("produce to %.40q: %+v", name, p)
		}
		del := kmsg.NewPtrDeleteTopicsRequest()
		del.TopicNames = []string{name}
		if got := r.ask(del, 3).(*kmsg.DeleteTopicsResponse).Topics[0]; got.ErrorCode != 3 && got.ErrorCode != 17 {
			t.Errorf("delete %.40q: %+v", name, got)
		}
	}
	if after := tree(t, parent); after != before {
		t.Errorf("the directory was\n%s\nand is\n%s", before, after)
	}
}

// tree lists the directories below one.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			fmt.Fprintln(&b, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRefusedWithoutAnAnswer: a batch that is refused under acks=0 ends the connection, and the memory of its
// request is given back once: twice, and two connections would read into the same bytes.
func TestRefusedWithoutAnAnswer(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.filled("t", 1, 1)
	for range 4 {
		req := kmsg.NewPtrProduceRequest()
		req.Acks = 0
		topic, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		topic.Topic, part.Records = "t", make([]byte, 100<<10)
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		r := n.raw()
		r.send(req, 7)
		if got, err := r.nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes, %v", got, err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		switch s := n.server.Stats(); {
		case s.RequestBytes == 0 && s.Connections <= 1:
			return
		case s.RequestBytes < 0 || time.Now().After(deadline):
			t.Fatalf("%+v", s)
		}
	}
}
