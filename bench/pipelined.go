package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/valkey-io/valkey-go"
)

// pipeliner is a store whose client can have many records on their way.
type pipeliner interface {
	store
	// pipeline sends the records that a window lets through, and tells it of every answer.
	pipeline(w *window) error
}

// window lets so many records be on their way, without an answer. Whoever has to wait is woken when an eighth
// of them is answered: woken for each, a client would do little else.
type window struct {
	size  uint64
	limit uint64
	rec   []byte // all of them: nobody writes to it

	sent, answers atomic.Uint64
	stop          atomic.Bool
	waits         atomic.Int32

	mu      sync.Mutex
	room    sync.Cond
	latency histogram
	failure error
}

func newWindow(size int) *window {
	w := &window{size: uint64(size), limit: runBytesMax / recordBytes, rec: records(1, 1, recordBytes)[0]}
	w.room.L = &w.mu
	return w
}

// latencySample is of how many records one is timed.
const latencySample = 16

// next waits for room and says whether there is another record to send. The time is not zero for one that is timed.
func (w *window) next() (at time.Time, ok bool) {
	n := w.sent.Add(1)
	if w.stop.Load() || n > w.limit {
		w.sent.Add(^uint64(0))
		return at, false
	}
	if n > w.answers.Load()+w.size {
		w.await(w.size - w.size/8)
	}
	if n%latencySample == 0 {
		at = time.Now()
	}
	return at, true
}

// await waits until at most so many records have no answer; the caller's own one counts.
func (w *window) await(most uint64) {
	w.mu.Lock()
	w.waits.Add(1)
	for w.sent.Load() > w.answers.Load()+max(most, 1) && w.failure == nil {
		w.room.Wait()
	}
	w.waits.Add(-1)
	w.mu.Unlock()
}

// answered takes an answer.
func (w *window) answered(at time.Time, err error) {
	open := w.sent.Load() - w.answers.Add(1)
	wake := w.waits.Load() > 0 && (open <= w.size-w.size/8)
	if err == nil && !wake && at.IsZero() {
		return
	}
	w.mu.Lock()
	switch {
	case err != nil && w.failure == nil:
		w.failure = err
		w.stop.Store(true)
		wake = true
	case err == nil && !at.IsZero():
		w.latency.add(time.Since(at))
	}
	if wake {
		w.room.Broadcast()
	}
	w.mu.Unlock()
}

// drain waits until every record has its answer, and returns the first failure.
func (w *window) drain() error {
	for deadline := time.Now().Add(drainMax); w.answers.Load() < w.sent.Load(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d records without an answer after %v", w.sent.Load()-w.answers.Load(), drainMax)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// drainMax is how long the last answers may take.
const drainMax = time.Minute

// pipelined measures a store under a window of records.
func pipelined(c contender, dir string, size int, length time.Duration) (out measurement, err error) {
	err = inDir(dir, func(dir string) error {
		s, err := c.open(dir, true)
		if err != nil {
			return err
		}
		p, ok := s.(pipeliner)
		if !ok {
			return fmt.Errorf("%s has no client that pipelines", c.name)
		}
		w := newWindow(size)
		settle()
		before, from := s.commits(), now()
		timer := time.AfterFunc(length, func() { w.stop.Store(true) })
		err = p.pipeline(w)
		timer.Stop()
		to, commits := now(), s.commits()-before
		n := w.answers.Load()
		out = measure(from, to, n, n*recordBytes, commits, &w.latency)
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
		return readBack(c, dir, n)
	})
	return out, err
}

// pipeline gives each record to the client, which makes batches of what it has while others are on their way.
func (s *servedVarve) pipeline(w *window) error {
	ctx := context.Background()
	untimed := func(_ *kgo.Record, err error) { w.answered(time.Time{}, err) }
	for {
		at, ok := w.next()
		if !ok {
			return w.drain()
		}
		done := untimed
		if !at.IsZero() {
			done = func(_ *kgo.Record, err error) { w.answered(at, err) }
		}
		s.client.Produce(ctx, &kgo.Record{Value: w.rec}, done)
	}
}

// pipeline fills the window with pipelines of redisPipeline commands over all connections of the client: the server reads
// what has come on each of them, and then syncs once.
func (s *redisStore) pipeline(w *window) error {
	size := min(redisPipeline, int(w.size))
	var group sync.WaitGroup
	for range int(w.size) / size {
		group.Go(func() {
			commands, times := make([]valkey.Completed, 0, size), make([]time.Time, 0, size)
			for open := true; open; {
				commands, times = commands[:0], times[:0]
				for len(commands) < size && open {
					var at time.Time
					if at, open = w.next(); open {
						commands, times = append(commands, s.xadd(w.rec)), append(times, at)
					}
				}
				for i, r := range s.client.DoMulti(context.Background(), commands...) {
					w.answered(times[i], r.Error())
				}
			}
		})
	}
	group.Wait()
	return w.drain()
}

// redisPipeline and redisMultiplex (the client has two to its power connections) are the best of 20 to 2,500 commands
// and 4 or 8 connections.
const (
	redisPipeline  = 100
	redisMultiplex = 3
)

func (s *redisStore) xadd(rec []byte) valkey.Completed {
	return s.client.B().Xadd().Key(servedName).Id("*").FieldValue().FieldValue("v", valkey.BinaryString(rec)).Build()
}

// pipeline publishes asynchronously; the answers come in order.
func (s *jetStore) pipeline(w *window) error {
	times := make(chan time.Time, 2*w.size)
	js, err := jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(2*int(w.size)),
		jetstream.WithPublishAsyncAckHandler(func(jetstream.JetStream, *nats.Msg, *jetstream.PubAck) { w.answered(<-times, nil) }),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { w.answered(<-times, err) }))
	if err != nil {
		return err
	}
	defer js.CleanupPublisher()
	for {
		at, ok := w.next()
		if !ok {
			return w.drain()
		}
		times <- at
		if _, err := js.PublishAsync(servedName, w.rec); err != nil {
			return err
		}
	}
}
