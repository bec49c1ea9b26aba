package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const progressInterval = 200 * time.Millisecond

// progress is a line on a terminal that long work rewrites; elsewhere it prints nothing.
type progress struct {
	w     io.Writer // nil: not a terminal
	what  string
	total uint64
	base  uint64        // done by earlier parts
	limit time.Duration // of the work; 0: none
	began time.Time
}

func newProgress(w io.Writer, what string, total uint64, limit time.Duration) *progress {
	p := &progress{what: what, total: total, limit: limit, began: time.Now()}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		p.w = f
	}
	return p
}

// from is the same line for a part of the work that begins after n.
func (p *progress) from(n uint64) *progress {
	part := *p
	part.base = n
	return &part
}

// at says how far the work is.
func (p *progress) at(n uint64) {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K", p.line(p.base+n, time.Since(p.began)))
	}
}

func (p *progress) line(n uint64, spent time.Duration) string {
	rate := float64(n) / max(spent.Seconds(), 1e-9)
	left := "?"
	if n > 0 {
		d := time.Duration(float64(p.total-min(n, p.total)) / rate * float64(time.Second))
		if p.limit > 0 {
			d = min(d, p.limit-spent)
		}
		left = max(d, 0).Round(time.Second).String()
	}
	return fmt.Sprintf("%s %s of %s (%d %%), %s/s, %s left", p.what, group(n), group(p.total), 100*n/max(p.total, 1),
		group(uint64(rate)), left)
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

// group writes a number in groups of three digits.
func group[N int | int64 | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
