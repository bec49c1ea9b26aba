package admin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"varve"
	"varve/broker"
	"varve/broker/kafka"
)

// get asks a server, in memory.
func get(t *testing.T, s *Server, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// node opens a node with a topic of so many partitions, and a record in each of the first two.
func node(t *testing.T, topic string, partitions int32) *broker.Broker {
	t.Helper()
	b, err := broker.Open(t.Context(), t.TempDir(), broker.Options{Log: varve.Options{MinFreeBytes: -1, NoPreallocate: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	made, err := b.Create(t.Context(), broker.TopicSpec{Name: topic, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	for i := range min(partitions, 2) {
		p, err := made.Partition(i)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := p.Log().Append(t.Context(), varve.Record{Value: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b
}

func TestReadyHasProgress(t *testing.T) {
	s := NewServer(Options{})
	want := func(path string, code int, text string) {
		t.Helper()
		if got, body := get(t, s, path); got != code || body != text+"\n" {
			t.Fatalf("%s: %d %q, want %d %q", path, got, body, code, text)
		}
	}
	want("/healthz", 200, "ok")
	want("/readyz", 503, "opening the catalogue")
	dir, asked := t.TempDir(), false
	o := broker.Options{Log: varve.Options{MinFreeBytes: -1}, Opening: func(b *broker.Broker) {
		s.Open(b)
		asked = true
		want("/readyz", 503, "opening: 0 of 0 partitions")
	}}
	b, err := broker.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if !asked {
		t.Error("nobody could ask while it was being opened")
	}
	want("/readyz", 200, "ready")
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Stopping()
	want("/readyz", 503, "stopping")
	want("/healthz", 200, "ok")
}

// TestReadySaysWhatIsMissing: a node that serves is ready, and says which part of it is not.
func TestReadySaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	o := broker.Options{Log: varve.Options{MinFreeBytes: -1, NoPreallocate: true}}
	b, err := broker.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = b.Create(t.Context(), broker.TopicSpec{Name: "a", Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	s := NewServer(Options{})
	s.Open(b)
	if _, body := get(t, s, "/metrics"); !strings.Contains(body, "\nvarve_opened_partitions 3\n") || !strings.Contains(body, "\nvarve_catalogue_ready 1\n") {
		t.Error(body)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, body := get(t, s, "/metrics"); !strings.Contains(body, "\nvarve_ready 0\n") || !strings.Contains(body, "\nvarve_catalogue_ready 0\n") {
		t.Error(body)
	}
	if err := os.RemoveAll(filepath.Join(dir, "topics", "a", "1", "2")); err != nil {
		t.Fatal(err)
	}
	if b, err = broker.Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	s.Open(b)
	if code, body := get(t, s, "/readyz"); code != 200 || body != "ready; 1 of 3 partitions offline\n" {
		t.Errorf("%d %q", code, body)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSE5ProfilesAreOffUnlessAsked(t *testing.T) {
	if code, _ := get(t, NewServer(Options{}), "/debug/pprof/"); code != http.StatusNotFound {
		t.Fatal(code)
	}
	if code, body := get(t, NewServer(Options{Pprof: true}), "/debug/pprof/"); code != http.StatusOK || !strings.Contains(body, "goroutine") {
		t.Fatal(code, body)
	}
}

// labelsAllowed are all labels that a series of the node may have.
var labelsAllowed = []string{"partition", "request", "tier", "topic"}

// TestMetrics parses what is exposed: figures, names, labels, and what promtool would say of them.
func TestMetrics(t *testing.T) {
	s := NewServer(Options{})
	if _, body := get(t, s, "/metrics"); !strings.Contains(body, "\nvarve_ready 0\n") || strings.Contains(body, "varve_topics") {
		t.Fatal(body)
	}
	b := node(t, "orders", 2)
	s.Open(b)
	s.Kafka(kafka.NewServer(b, kafka.Options{}).Stats)
	_, body := get(t, s, "/metrics")
	for _, line := range []string{
		"varve_ready 1", "varve_topics 1", "varve_partitions 2", "varve_offline_partitions 0", "varve_unlisted_partitions 0",
		`varve_committed{partition="1",topic="orders"} 3`,
		`varve_commit_records_total{partition="0",topic="orders"} 3`,
		`varve_tier_end{partition="0",tier="hot",topic="orders"} 3`,
		`varve_poisoned{partition="0",topic="orders"} 0`,
		`varve_partition_offline{partition="0",topic="orders"} 0`,
		`varve_epoch{partition="0",topic="orders"} 1`,
		`varve_requests_total{request="Produce"} 0`,
		"varve_connections 0",
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(body, `tier_end{partition="0",tier="cold"`) {
		t.Error("there is no cold tier, and it has an end")
	}
	for _, f := range gathered(t, s) {
		if !strings.HasPrefix(f.GetName(), "varve_") {
			continue // of the process
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if !slices.Contains(labelsAllowed, l.GetName()) {
					t.Errorf("%s has the label %s", f.GetName(), l.GetName())
				}
			}
		}
	}
	problems, err := testutil.GatherAndLint(s.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func gathered(t *testing.T, s *Server) []*dto.MetricFamily {
	t.Helper()
	all, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSeriesAreBounded: many partitions do not make many series, and are counted all the same.
func TestSeriesAreBounded(t *testing.T) {
	const partitions = 40
	c := &collector{node: func() *broker.Broker { return nil }, series: 10}
	b := node(t, "orders", partitions)
	c.node = func() *broker.Broker { return b }
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		n := len(f.GetMetric())
		switch f.GetName() {
		case "varve_partitions":
			if v := f.GetMetric()[0].GetGauge().GetValue(); v != partitions {
				t.Errorf("%v partitions", v)
			}
		case "varve_unlisted_partitions":
			if v := f.GetMetric()[0].GetGauge().GetValue(); v != partitions-10 {
				t.Errorf("%v partitions without series", v)
			}
		case "varve_committed":
			if n != 10 {
				t.Errorf("%d series", n)
			}
		}
		if n > 10*3 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

// TestServe: over a socket, and no more after Shutdown.
func TestServe(t *testing.T) {
	s := NewServer(Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	url := fmt.Sprintf("http://%s/healthz", l.Addr())
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "ok\n" {
		t.Fatalf("%q %v", body, err)
	}
	_ = answer.Body.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(url); err == nil {
		t.Fatal("it still answers")
	}
}
