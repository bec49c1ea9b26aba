package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// frame is one request as it came, and its memory. It is kept until the request is answered: what is
// produced is written to the log from here.
type frame struct {
	body   []byte // without the length in front
	store  []byte
	held   int64   // bytes taken off the budget
	budget *budget // nil: nothing was taken
}

// release gives memory and budget back. Nobody may use the body any more.
func (f *frame) release() {
	recycle(f.store)
	if f.budget != nil {
		f.budget.giveBack(f.held)
	}
	*f = frame{}
}

// take hands the memory over: it is given back once, by who has it last.
func (f *frame) take() frame {
	t := *f
	*f = frame{}
	return t
}

// tryCount takes bytes off the budget for what a frame of no more than frameSmall keeps while it waits,
// if they are there at once.
func (f *frame) tryCount(h *halves, bytes int64) bool {
	b := f.budget
	if b == nil {
		b = &h.small
	}
	if !b.tryTake(bytes) {
		return false
	}
	f.budget, f.held = b, f.held+bytes
	return true
}

// The memory of a frame grows with the bytes that have come, in steps: a length alone claims no memory.
// What is small is not counted while it is read, since connections are.
const (
	frameBytesMin  = 8 // key, version, correlation id
	frameSmall     = 16 << 10
	frameGrowth    = 8
	frameClasses   = 5 // up to 64 MiB are recycled
	bytesPerSecond = 1 << 20
)

var frames [frameClasses]sync.Pool

// memory returns at least so many bytes.
func memory(bytes int) []byte {
	size := frameSmall
	for class := range frames {
		if bytes <= size {
			if p, ok := frames[class].Get().(*[]byte); ok {
				return *p
			}
			return make([]byte, size)
		}
		size *= frameGrowth
	}
	return make([]byte, bytes)
}

func recycle(b []byte) {
	size := frameSmall
	for class := range frames {
		if cap(b) == size {
			b = b[:size]
			frames[class].Put(&b)
			return
		}
		size *= frameGrowth
	}
}

// frameError is a frame that cannot be: the connection has lost its place, or is none of a client.
type frameError struct{ length, limit int64 }

func (e *frameError) Error() string {
	return fmt.Sprintf("kafka: a request of %d bytes: expected %d to %d", e.length, frameBytesMin, e.limit)
}

// frameReader reads requests off a connection.
type frameReader struct {
	conn    net.Conn
	in      *bufio.Reader
	budget  *halves
	limit   int64
	idle    time.Duration // for the next request to begin
	patient time.Duration // for it to come, beside the time that its bytes take
	closing *atomic.Bool  // no more requests are wanted
}

// errInterrupted ends the reading of requests at a shutdown.
var errInterrupted = errors.New("kafka: no more requests are wanted")

// next waits for a request and reads it.
func (r *frameReader) next(ctx context.Context) (f frame, err error) {
	if err := r.deadline(r.idle); err != nil {
		return f, err
	}
	var prefix [4]byte
	if _, err := io.ReadFull(r.in, prefix[:]); err != nil {
		return f, err
	}
	length := int64(int32(binary.BigEndian.Uint32(prefix[:])))
	if length < frameBytesMin || length > r.limit {
		return f, &frameError{length: length, limit: r.limit}
	}
	if err := r.body(ctx, &f, int(length)); err != nil {
		f.release()
		return frame{}, err
	}
	return f, nil
}

// deadline bounds what is read from now on. Who interrupts sets closing before its own deadline, so
// that either this one comes first or closing is seen.
func (r *frameReader) deadline(d time.Duration) error {
	if err := r.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	if r.closing.Load() {
		return errInterrupted
	}
	return nil
}

// body reads in steps, each of which has its time.
func (r *frameReader) body(ctx context.Context, f *frame, length int) error {
	have := 0
	for size := frameSmall; ; size *= frameGrowth {
		want := min(size, length)
		if want > frameSmall && f.held == 0 {
			if err := r.reserve(ctx, f, int64(length)); err != nil {
				return err
			}
		}
		if err := r.deadline(r.patient + time.Duration(want/bytesPerSecond)*time.Second); err != nil {
			return err
		}
		grown := memory(want)
		copy(grown, f.store[:have])
		recycle(f.store)
		f.store = grown
		if _, err := io.ReadFull(r.in, f.store[have:want]); err != nil {
			return err
		}
		if have = want; have == length {
			f.body = f.store[:length]
			return nil
		}
	}
}

// reserve takes a whole frame off the budget, once its first bytes have come.
func (r *frameReader) reserve(ctx context.Context, f *frame, length int64) error {
	b := r.budget.of(length)
	if !b.tryTake(length) {
		ctx, cancel := context.WithTimeout(ctx, r.patient)
		defer cancel()
		if err := b.take(ctx, length); err != nil {
			return fmt.Errorf("kafka: no memory for a request of %d bytes: %w", length, err)
		}
	}
	f.budget, f.held = b, length
	return nil
}
