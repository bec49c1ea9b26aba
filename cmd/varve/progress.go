package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// progress is a line on a terminal that long work rewrites; elsewhere it prints nothing.
type progress struct {
	w       io.Writer // nil: not a terminal
	what    string
	total   int64 // 0: unknown
	began   time.Time
	printed time.Time
}

const progressInterval = 200 * time.Millisecond

// progress starts a progress line.
func (s *streams) progress(what string, total int64) *progress {
	p := &progress{what: what, total: total, began: time.Now()}
	p.printed = p.began
	if f, ok := s.err.(*os.File); ok && isTerminal(f) {
		p.w = f
	}
	return p
}

// at says how far the work is.
func (p *progress) at(n int64) {
	if p.w == nil || time.Since(p.printed) < progressInterval {
		return
	}
	p.printed = time.Now()
	rate := float64(n) / p.printed.Sub(p.began).Seconds()
	if p.total > 0 {
		fmt.Fprintf(p.w, "\r\x1b[K%s %d of %d (%d %%), %.0f/s", p.what, n, p.total, 100*n/p.total, rate)
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s %d, %.0f/s", p.what, n, rate)
}

// whileWaiting does something that takes long, and looks now and then meanwhile.
func whileWaiting(do func() error, look func()) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			look()
		}
	}
}

// done takes the line away.
func (p *progress) done() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
