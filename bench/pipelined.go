package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
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
	// pipeline sends the records of a window, one after the other, until the window is closed, and
	// returns when each of them has its answer.
	pipeline(w *window) error
}

// window is records on their way: so many have no answer yet. Each place has a record of its own,
// which nobody touches between its sending and its answer.
type window struct {
	places chan int // free
	recs   [][]byte
	sent   []time.Time
	number atomic.Uint64 // of the next record
	limit  uint64
	stop   atomic.Bool

	mu      sync.Mutex
	latency histogram
	failure error
}

func newWindow(size int) *window {
	w := &window{places: make(chan int, size), recs: records(1, size, recordBytes), sent: make([]time.Time, size), limit: runBytesMax / recordBytes}
	for i := range size {
		w.places <- i
	}
	return w
}

// next waits for a place, and says whether there is a record to send from it.
func (w *window) next() (place int, ok bool) {
	if w.stop.Load() {
		return 0, false
	}
	place = <-w.places
	n := w.number.Add(1)
	if n > w.limit {
		w.number.Add(^uint64(0))
		w.places <- place
		return 0, false
	}
	binary.LittleEndian.PutUint64(w.recs[place], n)
	if place%latencySample == 0 {
		w.sent[place] = time.Now()
	}
	return place, true
}

// latencySample is of how many places one is timed.
const latencySample = 16

// answered frees a place.
func (w *window) answered(place int, err error) {
	if err != nil || place%latencySample == 0 {
		w.mu.Lock()
		if err != nil && w.failure == nil {
			w.failure = err
			w.stop.Store(true)
		} else if err == nil {
			w.latency.add(time.Since(w.sent[place]))
		}
		w.mu.Unlock()
	}
	w.places <- place
}

// drain waits until every record has its answer.
func (w *window) drain() error {
	for range w.recs {
		<-w.places
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// pipelined measures a store under a window of records.
func pipelined(c contender, dir string, sync bool, size int, length time.Duration) (out measurement, err error) {
	err = inDir(dir, func(dir string) error {
		s, err := c.open(dir, sync)
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
		stopProf := profile()
		err = p.pipeline(w)
		stopProf()
		timer.Stop()
		to, commits := now(), s.commits()-before
		n := w.number.Load()
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

func (s *servedVarve) pipeline(w *window) error {
	ctx := context.Background()
	for {
		place, ok := w.next()
		if !ok {
			return w.drain()
		}
		s.client.Produce(ctx, &kgo.Record{Value: w.recs[place]}, func(_ *kgo.Record, err error) { w.answered(place, err) })
	}
}

// redisPipeline is how many commands go out together. Several such pipelines fill the window, over the connections
// of the client: the server reads what came on all of them, then syncs once.
var redisPipeline = envInt("RP", 500)

func (s *redisStore) pipeline(w *window) error {
	size := min(redisPipeline, len(w.recs))
	var group sync.WaitGroup
	for range len(w.recs) / size {
		group.Go(func() {
			commands := make([]valkey.Completed, 0, size)
			places := make([]int, 0, size)
			for open := true; open; {
				for len(places) < size && open {
					var place int
					if place, open = w.next(); open {
						places = append(places, place)
						commands = append(commands, s.xadd(w.recs[place]))
					}
				}
				for i, r := range s.client.DoMulti(context.Background(), commands...) {
					w.answered(places[i], r.Error())
				}
				commands, places = commands[:0], places[:0]
			}
		})
	}
	group.Wait()
	return w.drain()
}

func (s *redisStore) xadd(rec []byte) valkey.Completed {
	return s.client.B().Xadd().Key(servedName).Id("*").FieldValue().FieldValue("v", valkey.BinaryString(rec)).Build()
}

func (s *jetStore) pipeline(w *window) error {
	msgs := make([]nats.Msg, len(w.recs))
	place := make(map[*nats.Msg]int, len(msgs))
	for i := range msgs {
		msgs[i] = nats.Msg{Subject: servedName, Data: w.recs[i]}
		place[&msgs[i]] = i
	}
	js, err := jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(len(msgs)+1),
		jetstream.WithPublishAsyncAckHandler(func(_ jetstream.JetStream, m *nats.Msg, _ *jetstream.PubAck) { w.answered(place[m], nil) }),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { w.answered(place[m], err) }))
	if err != nil {
		return err
	}
	defer js.CleanupPublisher()
	for {
		i, ok := w.next()
		if !ok {
			return w.drain()
		}
		if _, err := js.PublishMsgAsync(&msgs[i]); err != nil {
			w.answered(i, err)
		}
	}
}

func envInt(n string, d int) int {
	if v, err := strconv.Atoi(os.Getenv(n)); err == nil {
		return v
	}
	return d
}
