package kafka

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"varve"
)

// TestSparse: one line for each pause, and how many were left out.
func TestSparse(t *testing.T) {
	var s sparse
	now := time.Unix(1000, 0)
	for i, c := range []struct {
		after   time.Duration
		skipped int64
		ok      bool
	}{{0, 0, true}, {0, 0, false}, {sparsePause - 1, 0, false}, {1, 2, true}, {sparsePause, 0, true}, {1, 0, false}} {
		now = now.Add(c.after)
		if skipped, ok := s.tell(now); skipped != c.skipped || ok != c.ok {
			t.Errorf("%d: %d, %t; want %d, %t", i, skipped, ok, c.skipped, c.ok)
		}
	}
}

// TestRefusedLines: what is no fault of a producer is told, once, with its topic; the rest is for who looks closely.
func TestRefusedLines(t *testing.T) {
	var lines strings.Builder
	s := &Server{o: Options{Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))}}
	p := produced{
		s: s, topics: []producedTopic{{name: []byte("none")}, {name: []byte("first"), count: 2}, {name: []byte("second"), count: 2}},
		parts: make([]producedPart, 4),
	}
	p.parts[0].fail(invalidRecord, nil)
	p.parts[3].number = 5
	p.parts[3].fail(kafkaStorageError, varve.ErrNoSpace)
	p.refused(0)
	for range 10 {
		p.refused(3)
	}
	if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "topic=second partition=5 code=56") || !strings.Contains(got, "space") {
		t.Error(got)
	}
}
