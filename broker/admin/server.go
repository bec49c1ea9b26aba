package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"varve/broker"
	"varve/broker/kafka"
)

// Limits of a request; a profile of 30 s has to fit.
const (
	headerTimeout = 5 * time.Second
	answerTimeout = 2 * time.Minute
	idleTimeout   = time.Minute
	headerBytes   = 16 << 10
)

// Options configure a Server.
type Options struct {
	Pprof bool
}

// Server answers what the node's keepers ask.
type Server struct {
	http     http.Server
	registry *prometheus.Registry
	node     atomic.Pointer[broker.Broker] // nil: not there yet
	stopping atomic.Bool
}

// NewServer returns a server of a node that is still to come: see Open.
func NewServer(o Options) *Server {
	s := &Server{registry: prometheus.NewRegistry()}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{node: s.node.Load, series: seriesPartitions})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	s.http = http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
	}
	return s
}

// Kafka adds the metrics of the server that Kafka's clients talk to.
func (s *Server) Kafka(stats func() kafka.Stats) { s.registry.MustRegister(&kafkaCollector{stats}) }

// Open says which node it is about, once that can be asked.
func (s *Server) Open(b *broker.Broker) { s.node.Store(b) }

// Stopping says that the node takes no more requests: it is not ready any more.
func (s *Server) Stopping() { s.stopping.Store(true) }

// ready answers whether clients are served, and what is missing beside that: other partitions are served all the
// same, and a node that is taken out for one would serve none.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	text, code := "ready", http.StatusOK
	b := s.node.Load()
	switch {
	case s.stopping.Load():
		text, code = "stopping", http.StatusServiceUnavailable
	case b == nil:
		text, code = "opening the catalogue", http.StatusServiceUnavailable
	default:
		if ready, opened, of := b.Ready(); !ready {
			text, code = fmt.Sprintf("opening: %d of %d partitions", opened, of), http.StatusServiceUnavailable
			break
		}
		if all, offline := partitions(b); offline > 0 {
			text += fmt.Sprintf("; %d of %d partitions offline", offline, all)
		}
		if err := b.Catalogue(); err != nil {
			text += "; topics cannot be changed: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}

// partitions counts the partitions of a node, and those that are offline.
func partitions(b *broker.Broker) (all, offline int) {
	for _, t := range b.Topics() {
		for i := range t.Partitions() {
			if p, err := t.Partition(i); err == nil {
				all++
				if p.Err() != nil {
					offline++
				}
			}
		}
	}
	return all, offline
}

// Serve answers on a listener until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops answering. It waits for answers that have begun, as long as the context lets it.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}
