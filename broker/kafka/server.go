package kafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"varve/broker"
)

// Options configure a Server. The zero value of every field is its default.
type Options struct {
	NodeID    int32  // of the only node; default 1
	ClusterID string // default "varve"

	// Host and Port are what clients are told to connect to; by default the address that they have
	// connected to already.
	Host string
	Port int32

	ConnectionsMax  int           // at once; default 8192; fewer where the process may open few files
	RequestBytesMax int64         // one request; default 100 MiB
	RequestBytes    int64         // all requests that are being read or answered; default 256 MiB, at least twice RequestBytesMax
	FetchBytesMax   int64         // one answer, beside a batch that is larger; default 16 MiB
	FetchBytes      int64         // all answers; default 256 MiB, at least twice FetchBytesMax
	InFlightMax     int           // requests of a connection that wait for their answer; default 64
	BatchBytesMax   int64         // one batch, after decompressing; default 128 MiB
	IdleTimeout     time.Duration // between requests; default 10 min
	FrameTimeout    time.Duration // for a request to come and an answer to be taken, beside 1 s a MiB; default 30 s

	Logger *slog.Logger // default: nothing is logged
}

func (o *Options) defaults() {
	set(&o.NodeID, 1)
	set(&o.ClusterID, "varve")
	set(&o.ConnectionsMax, 8192)
	set(&o.RequestBytesMax, 100<<20)
	set(&o.RequestBytes, 256<<20)
	set(&o.FetchBytesMax, 16<<20)
	set(&o.FetchBytes, 256<<20)
	set(&o.InFlightMax, 64)
	set(&o.BatchBytesMax, UnpackMax)
	set(&o.IdleTimeout, 10*time.Minute)
	set(&o.FrameTimeout, 30*time.Second)
	o.RequestBytes = max(o.RequestBytes, 2*o.RequestBytesMax)
	o.FetchBytes = max(o.FetchBytes, 2*o.FetchBytesMax)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func set[T comparable](to *T, v T) {
	var zero T
	if *to == zero {
		*to = v
	}
}

// Server answers Kafka's clients for a broker.
type Server struct {
	broker *broker.Broker
	o      Options
	apis   []*api // by key

	requests halves        // bytes of requests
	fetched  halves        // bytes of answers to Fetch
	large    chan struct{} // held while a request of many small parts is decoded
	searches *searches
	codecs   codecs

	ctx    context.Context // ends with Shutdown: what waits for records or for memory goes home
	cancel context.CancelFunc

	mu        sync.Mutex
	closing   bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	running   sync.WaitGroup // connections

	strangers, gaps strangers

	counts counts

	lines struct{ turnedAway, refused, fetch, create, producer, malformed sparse } // of which there may be many
}

// counts are what Stats shows.
type counts struct {
	accepted, turnedAway, malformed, refused atomic.Int64
	produced, sent, lost                     atomic.Int64
	requests                                 []atomic.Int64 // by key
}

// Stats are counters of a server since it was made, and gauges.
type Stats struct {
	Connections  int              // now
	Accepted     int64            // connections, since the start
	TurnedAway   int64            // connections above ConnectionsMax
	Malformed    int64            // connections that were ended because of what came
	Refused      int64            // batches that were not appended
	Produced     int64            // bytes of batches that were appended
	Fetched      int64            // bytes of batches that were sent
	Lost         int64            // records that a repair declared lost, each time a client was led past them
	Requests     map[string]int64 // by name
	RequestBytes int64            // held now
	FetchBytes   int64            // held now
}

// NewServer returns a server of a broker, which stays the caller's to close, after Shutdown.
func NewServer(b *broker.Broker, o Options) *Server {
	o.defaults()
	s := &Server{
		broker: b, o: o, large: make(chan struct{}, 1), searches: newSearches(),
		listeners: make(map[net.Listener]struct{}), conns: make(map[*conn]struct{}),
	}
	s.requests, s.fetched = newHalves(o.RequestBytes), newHalves(o.FetchBytes)
	s.codecs = newCodecs(o.BatchBytesMax)
	s.apis = table()
	s.counts.requests = make([]atomic.Int64, len(s.apis))
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("kafka: server is closed")

// Serve answers the connections of a listener until Shutdown, or until the listener fails. It closes
// the listener.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close() //nolint:errcheck // it is of no use any more
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	for pause := time.Duration(0); ; {
		c, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(c)
		case s.ctx.Err() != nil:
			return ErrServerClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default: // it may pass: descriptors or memory are short, a peer was gone too soon
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.o.Logger.Warn("kafka: a connection cannot be accepted", "error", err, "again_in", pause)
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
		}
	}
}

// admit starts to serve a connection, or turns it away.
func (s *Server) admit(nc net.Conn) {
	most := min(s.o.ConnectionsMax, s.broker.Connections())
	s.mu.Lock()
	full := len(s.conns) >= most
	if full || s.closing {
		s.mu.Unlock()
		n := s.counts.turnedAway.Add(1) // before anyone sees that it is
		_ = nc.Close()
		if !full {
			return
		}
		if _, tell := s.lines.turnedAway.tell(time.Now()); tell {
			s.o.Logger.Warn("kafka: connections are turned away", "max", most, "turned_away", n, "remote", nc.RemoteAddr())
		}
		return
	}
	c := newConn(s, nc)
	s.conns[c] = struct{}{}
	s.running.Add(1)
	s.mu.Unlock()
	s.counts.accepted.Add(1)
	go func() {
		defer s.running.Done()
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
}

// Shutdown ends the server: no connection is accepted and no request read any more; what was read is
// answered. It returns when that is done; when the context ends first, the connections are cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	s.cancel()
	for l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		c.interrupt()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
	s.mu.Unlock()
	return ctx.Err()
}

// Stats returns counters and gauges.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	connections := len(s.conns)
	s.mu.Unlock()
	st := Stats{
		Connections: connections,
		Accepted:    s.counts.accepted.Load(), TurnedAway: s.counts.turnedAway.Load(),
		Malformed: s.counts.malformed.Load(), Refused: s.counts.refused.Load(),
		Produced: s.counts.produced.Load(), Fetched: s.counts.sent.Load(), Lost: s.counts.lost.Load(),
		Requests:     make(map[string]int64),
		RequestBytes: s.requests.taken(), FetchBytes: s.fetched.taken(),
	}
	for key, a := range s.apis {
		if a != nil {
			st.Requests[a.name] = s.counts.requests[key].Load()
		}
	}
	return st
}
