package kafka

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answer is what goes out for one request: of four kinds.
type answer struct {
	correlation int32
	flexible    bool
	resp        kmsg.Response // complete
	produced    *produced     // waits for outcomes
	fetched     *fetched      // complete, in pieces
	reached     chan struct{} // none: closed when all before it are out
}

// answers sends answers in the order of their requests. It starts on the connection's own goroutine;
// the first answer that has to wait starts another one, through which all go from then on.
type answers struct {
	conn   *conn
	queue  chan answer // nil: no second goroutine
	failed chan struct{}
	done   sync.WaitGroup
	out    []byte
	timer  timer
	err    error // of the second goroutine: read behind failed
}

// outBytes is how much is gathered before it is written, and what is kept between answers.
const outBytes = 64 << 10

// send sends an answer, or queues it; it waits while too many are queued.
func (q *answers) send(a answer) error {
	if q.queue == nil {
		if a.produced == nil || a.produced.settled() {
			return q.write(&a, true)
		}
		q.queue = make(chan answer, q.conn.s.o.InFlightMax)
		q.failed = make(chan struct{})
		q.done.Add(1)
		go q.run()
	}
	select {
	case <-q.failed:
		q.drop(&a)
		return q.err
	default:
	}
	select {
	case q.queue <- a:
		return nil
	case <-q.failed:
		q.drop(&a)
		return q.err
	}
}

// drain waits until all that is queued is out.
func (q *answers) drain() error {
	if q.queue == nil {
		return nil
	}
	a := answer{reached: make(chan struct{})}
	if err := q.send(a); err != nil {
		return err
	}
	<-a.reached
	return nil
}

// finish sends what is queued and ends the second goroutine.
func (q *answers) finish() {
	if q.queue != nil {
		close(q.queue)
		q.done.Wait()
	}
}

// run sends what is queued. After a failure it goes on only to wait for outcomes: until then the log
// reads from the frames.
func (q *answers) run() {
	defer q.done.Done()
	for a := range q.queue {
		if q.err != nil {
			q.drop(&a)
			continue
		}
		if a.produced != nil && len(q.out) > 0 && !a.produced.settled() {
			q.err = q.flush()
		}
		if q.err == nil {
			q.err = q.write(&a, len(q.queue) == 0)
		} else {
			q.drop(&a)
		}
		if q.err != nil {
			_ = q.conn.nc.Close() // and the reader will find out
			close(q.failed)
		}
	}
}

// write encodes an answer, and sends it with all before it if it is the last for now.
func (q *answers) write(a *answer, last bool) error {
	switch {
	case a.reached != nil:
		close(a.reached)
	case a.fetched != nil:
		return q.pieces(a.fetched)
	case a.produced != nil:
		defer a.produced.release()
		silent, err := a.produced.finish(&q.timer)
		switch {
		case !silent:
			at := q.begin(a)
			q.out = a.produced.append(q.out)
			q.end(at)
		case err != nil:
			return errors.Join(err, q.flush()) // what was gathered before it goes out
		}
	default:
		at := q.begin(a)
		q.out = a.resp.AppendTo(q.out)
		q.end(at)
	}
	if last || len(q.out) >= outBytes {
		return q.flush()
	}
	return nil
}

// begin writes the header of an answer, whose length is not known yet.
func (q *answers) begin(a *answer) (at int) {
	at = len(q.out)
	q.out = append(q.out, 0, 0, 0, 0)
	q.out = binary.BigEndian.AppendUint32(q.out, uint32(a.correlation))
	if a.flexible {
		q.out = append(q.out, 0)
	}
	return at
}

func (q *answers) end(at int) {
	binary.BigEndian.PutUint32(q.out[at:], uint32(len(q.out)-at-4))
}

// pieces sends an answer that lies in pieces, behind all before it.
func (q *answers) pieces(f *fetched) error {
	defer f.release()
	if err := q.flush(); err != nil {
		return err
	}
	return q.writeAll(f.sealed)
}

// flush sends what was gathered.
func (q *answers) flush() error {
	if len(q.out) == 0 {
		return nil
	}
	err := q.writeAll(net.Buffers{q.out})
	if q.out = q.out[:0]; cap(q.out) > 2*outBytes {
		q.out = nil
	}
	return err
}

// writeAll writes to the connection, within the time that a peer has for it.
func (q *answers) writeAll(list net.Buffers) error {
	bytes := 0
	for _, b := range list {
		bytes += len(b)
	}
	now := time.Now()
	wait := q.conn.s.o.FrameTimeout + time.Duration(bytes/bytesPerSecond)*time.Second
	err := q.conn.nc.SetWriteDeadline(now.Add(wait))
	if q.conn.closing.Load() && wait > drainTimeout { // set before the deadline of who interrupts
		err = q.conn.nc.SetWriteDeadline(now.Add(drainTimeout))
	}
	if err != nil {
		return err
	}
	_, err = list.WriteTo(q.conn.nc)
	return err
}

// drop gives up an answer that nobody will get.
func (q *answers) drop(a *answer) {
	if a.produced != nil {
		_, _ = a.produced.finish(&q.timer)
		a.produced.release()
	}
	if a.fetched != nil {
		a.fetched.release()
	}
	if a.reached != nil {
		close(a.reached)
	}
}

// errSilent ends a connection whose peer has asked for no answer and has to learn of a failure.
var errSilent = errors.New("kafka: a batch was refused whose producer wanted no answer")
