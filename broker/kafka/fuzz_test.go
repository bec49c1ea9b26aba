package kafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
)

// pipes is a listener whose connections are made by a test, without a socket.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, errors.New("no more connections")
}
func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (pipes) Close() error   { return nil }

// requests makes the bytes of a connection of any bytes: for every four and as many more as the last
// two of them say, a frame of that key and version. The correlation ids count.
func requests(b []byte) (all []byte, sent int) {
	for len(b) >= 4 && sent < 32 {
		n := min(int(binary.BigEndian.Uint16(b[2:])), len(b)-4)
		all = binary.BigEndian.AppendUint32(all, uint32(10+n))
		all = append(all, 0, b[0]%64, 0, b[1]%16)
		all = binary.BigEndian.AppendUint32(all, uint32(sent))
		all = append(all, 0xff, 0xff)
		all = append(all, b[4:4+n]...)
		b = b[4+n:]
		sent++
	}
	return all, sent
}

// FuzzConnection: whatever a connection sends, the node answers in order or ends it, lives on, keeps
// to its memory, and stops when it is told to.
func FuzzConnection(f *testing.F) {
	b, err := broker.Open(f.Context(), f.TempDir(), broker.Options{
		Log:        varve.Options{Fsync: varve.None, MinFreeBytes: -1, NoPreallocate: true},
		AutoCreate: true, PartitionsMax: 4,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = b.Close(context.Background()) })
	if _, err := b.Create(f.Context(), broker.TopicSpec{Name: "t"}); err != nil {
		f.Fatal(err)
	}
	for key := range int16(61) {
		req := sample(key)
		for v := int16(0); req != nil && v <= req.MaxVersion(); v += 3 {
			req.SetVersion(v)
			body := req.AppendTo(nil)
			if req.IsFlexible() {
				body = append([]byte{0}, body...)
			}
			seed := binary.BigEndian.AppendUint16([]byte{byte(key), byte(v)}, uint16(len(body)))
			f.Add(append(seed, body...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		bytes, sent := requests(data)
		if len(data) > 0 && data[0] == 0xff { // as it is
			bytes, sent = data[1:], 1<<30
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := kafka.NewServer(b, kafka.Options{RequestBytesMax: 1 << 20, RequestBytes: 1 << 20, FrameTimeout: 5 * time.Second})
		l := make(pipes, 1)
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		mine, its := net.Pipe()
		l <- its
		answered := make(chan error, 1)
		ended := make(chan struct{})
		go func() { answered <- answers(mine, sent, ended) }()
		_ = mine.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, _ = mine.Write(append(bytes, frame(kmsg.NewPtrApiVersionsRequest(), lastID)...))
		select {
		case <-ended:
		case <-time.After(300 * time.Millisecond): // it may wait for records as long as it likes
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		close(l)
		<-served
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20+uint64(1024*len(data)) {
			t.Fatalf("%d bytes were allocated for %d", got, len(data))
		}
		if st := s.Stats(); st.Connections != 0 || st.RequestBytes != 0 || st.FetchBytes != 0 {
			t.Fatalf("left behind: %+v", st)
		}
		if p, err := b.Topic("t"); err == nil {
			if first, err := p.Partition(0); err != nil || first.Err() != nil || first.Log().Err() != nil {
				t.Fatalf("the partition does not live: %v", err)
			}
		} else if _, err := b.Create(t.Context(), broker.TopicSpec{Name: "t"}); err != nil {
			for _, other := range b.Topics() { // that the fuzzer has made
				_ = b.Delete(t.Context(), other.Name, 0)
			}
		}
	})
}

// lastID is the correlation id of the request behind all others.
const lastID = 1<<31 - 1

// answers reads answers until the connection ends. They come in the order of the requests. ended is
// closed at the last one, or at the end.
func answers(c net.Conn, sent int, ended chan struct{}) error {
	last := int64(-1)
	end := sync.OnceFunc(func() { close(ended) })
	defer end()
	for {
		var prefix [8]byte
		if _, err := io.ReadFull(c, prefix[:]); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return err
			}
			return nil
		}
		id := int64(int32(binary.BigEndian.Uint32(prefix[4:])))
		if id == lastID {
			end()
		} else if sent < 1<<30 {
			if id <= last || id >= int64(sent) {
				return errors.New("an answer out of order")
			}
			last = id
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(prefix[:]))-4); err != nil {
			return err
		}
	}
}
