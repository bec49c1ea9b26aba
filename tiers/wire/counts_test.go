package wire_test

import (
	"fmt"
	"strings"
)

// count is one thing that is counted.
type count int

const (
	schedules count = iota
	overSockets
	appends
	acked
	unknown
	refused
	lives
	opens // that finished
	kills
	powerLosses
	restarts
	disksLost
	moves
	rivals
	fenced
	trims
	offloads
	recordsRead
	recordsAudited
	serverRestarts
	serverEmptied
	counted
)

var countNames = [counted]string{
	"schedules", "over sockets", "appends", "acked", "unknown", "refused", "lives", "opens", "kills", "power losses",
	"clean restarts", "disks lost", "takeovers", "hosts that lived on", "of them fenced", "trims", "offloads",
	"records read", "records audited", "server restarts", "server emptied",
}

// report says what happened. demand says that everything must have, or the test proves little.
func (w *world) report(demand bool) string {
	var b strings.Builder
	add := func(name string, n int) {
		fmt.Fprintf(&b, "%d %s, ", n, name)
		if demand && n == 0 {
			w.t.Errorf("no %s", name)
		}
	}
	for i, n := range w.counts {
		add(countNames[i], n)
	}
	s, o := w.stream, w.objects
	add("connections cut", s.cuts)
	add("writes refused", s.refused)
	add("short WAITs", s.short)
	add("requests of the bucket", o.calls)
	add("uploads in parts", o.ends)
	for how, n := range o.hit {
		add("of them "+strikeNames[how], n)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

func line(format string, args []any) string { return fmt.Sprintf(format, args...) }
