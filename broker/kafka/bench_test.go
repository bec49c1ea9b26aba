package kafka_test

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"varve/broker/kafka"
)

// asker sends a request that was encoded before and reads the answer into memory of its own, so that
// what a benchmark counts is the node's.
type asker struct {
	*raw
	request []byte
	answer  []byte
}

var noDeadline time.Time

func (a *asker) write(b *testing.B) {
	if _, err := a.nc.Write(a.request); err != nil {
		b.Fatal(err)
	}
}

func (a *asker) read(b *testing.B) int {
	if _, err := io.ReadFull(a.nc, a.answer[:4]); err != nil {
		b.Fatal(err)
	}
	n := int(binary.BigEndian.Uint32(a.answer))
	if _, err := io.ReadFull(a.nc, a.answer[4:4+n]); err != nil {
		b.Fatal(err)
	}
	return n
}

func newAsker(b *testing.B, n *node, request []byte) *asker {
	r := n.raw()
	_ = r.nc.SetDeadline(noDeadline)
	return &asker{raw: r, request: request, answer: make([]byte, 32<<20)}
}

// BenchmarkProduce: requests of one batch of ten small records, 32 of them on the way.
func BenchmarkProduce(b *testing.B) {
	n := startNode(b, b.TempDir(), kafka.Options{})
	n.topic("t", 1)
	req := produceRequest("t", 0, oneBatch(0, make([]int64, 10)...))
	req.SetVersion(9)
	a := newAsker(b, n, frame(req, 1))
	const window = 32
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if a.write(b); i >= window-1 {
			a.read(b)
		}
	}
	for range min(b.N, window-1) {
		a.read(b)
	}
}

// BenchmarkFetch: 1 MiB of batches of 16 KiB an answer, again and again from the same offset.
func BenchmarkFetch(b *testing.B) {
	n := startNode(b, b.TempDir(), kafka.Options{})
	r := n.filled("t", 64, 1200)
	req := fetchRequest("t", 0)
	req.SetVersion(12)
	r.send(req, 12)
	if _, err := r.receive(req, r.id); err != nil {
		b.Fatal(err)
	}
	a := newAsker(b, n, frame(req, 1))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		a.write(b)
		b.SetBytes(int64(a.read(b)))
	}
}

// BenchmarkFetchTail: a fetch that finds nothing new, as a consumer at the tail asks for ever.
func BenchmarkFetchTail(b *testing.B) {
	n := startNode(b, b.TempDir(), kafka.Options{})
	n.filled("t", 1, 1)
	req := fetchRequest("t", 1)
	req.SetVersion(12)
	a := newAsker(b, n, frame(req, 1))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		a.write(b)
		a.read(b)
	}
}
