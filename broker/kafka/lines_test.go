package kafka_test

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/broker/kafka"
)

// A reader of a damaged partition is told so by a code that clients show, and however often it asks the log has
// one line of it. The same of peers that send rubbish.
func TestLinesAreFew(t *testing.T) {
	var lines strings.Builder
	n := startNode(t, t.TempDir(), kafka.Options{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	n.topic("t", 1)
	r := n.raw()
	if p := r.produce("t", oneBatch(0, make([]int64, 900)...)); p.ErrorCode != 0 {
		t.Fatalf("%+v", p)
	}
	files, err := filepath.Glob(filepath.Join(n.dir, "topics", "t", "1", "0", "*.seg"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("damage"), 8<<10); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	began := time.Now()
	for range 20 {
		if p := n.raw().fetch("t", 0); p.ErrorCode != 2 || len(p.RecordBatches) > 0 {
			t.Fatalf("%+v", p)
		}
	}
	for range 50 {
		c, err := net.Dial("tcp", n.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n"))
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	n.stop()
	if got := n.server.Stats().Malformed; got != 50 {
		t.Errorf("%d malformed", got)
	}
	for _, line := range []string{"a fetch failed", "a connection is closed"} {
		if got := strings.Count(lines.String(), line); got < 1 || got > 1+int(time.Since(began)/(10*time.Second)) { // one in ten seconds
			t.Errorf("%d lines say %s:\n%s", got, line, lines.String())
		}
	}
}
