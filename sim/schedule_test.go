package sim

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTextRoundTrip(t *testing.T) {
	var s Schedule
	for seed := range uint64(300) {
		Expand(&s, seed, 0)
		text := s.AppendText(nil)
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got.Header != s.Header || !slices.Equal(got.Events, s.Events) {
			t.Fatalf("seed %d: the text form lost something", seed)
		}
		if again := got.AppendText(nil); !bytes.Equal(again, text) {
			t.Fatalf("seed %d: printed differently the second time", seed)
		}
	}
}

// Hostile text is an error that names the line, whatever is cut, doubled or replaced.
func TestParseHostile(t *testing.T) {
	var s Schedule
	Expand(&s, 7, 20)
	good := string(s.AppendText(nil))
	table := []struct{ from, to, want string }{
		{"varve schedule 1", "varve schedule 2", "line 1"},
		{"seed 7", "seed x", "line 2"},
		{"clients ", "clients 99", "clients 1..8"},
		{"switches", "switches nonsense", "a switch"},
		{"faults", "faults D99", "a fault"},
		{"config.0 sync=", "config.0 sync=9", "config.0"},
		{"config.1", "config.1 surprise=1", "a key of the configuration"},
		{"append", "explode", "a kind of event"},
		{" bytes=", " bytes=99999999", "bytes of"},
		{" sub=", " sub=zz", "sub=hex"},
		{"events\n", "events\n0 retry producer=4 sub=0\n", "producer of 0..3"},
		{" prepare_bytes=", " prepare_bytes=9999999", "prepare_bytes"},
		{"events\n", "events\n" + strings.Repeat("0 append bytes=65536 sub=0\n", 1025), "expected payloads"},
		{"events\n", "events\n-5 idle sub=0\n", "a time"},
		{"events\n", "events\n900000000000 idle sub=0\n", "not before"},
		{"latency write=", "latency write=-", "latencies"},
	}
	for _, x := range table {
		bad := strings.Replace(good, x.from, x.to, 1)
		if bad == good {
			t.Fatalf("%q is not in the text", x.from)
		}
		_, err := Parse([]byte(bad))
		var text *TextError
		if !errors.As(err, &text) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q -> %.80q: got %v, want %q", x.from, x.to, err, x.want)
		}
	}
	for cut := range len(good) {
		_, _ = Parse([]byte(good[:cut]))
	}
}

func TestExpandKeepsItsPromises(t *testing.T) {
	var s Schedule
	var ops, appends, events int
	var lengths []int
	for seed := range uint64(5000) {
		Expand(&s, seed, 0)
		o, a := s.Ops()
		ops, appends, events = ops+o, appends+a, events+len(s.Events)
		lengths = append(lengths, o)
		for i := range s.Header.Config {
			if err := s.Header.Config[i].Validate(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if !slices.IsSortedFunc(s.Events, func(a, b Event) int { return int(min(1, max(-1, a.At-b.At))) }) {
			t.Fatalf("seed %d: events out of order", seed)
		}
	}
	slices.Sort(lengths)
	median := lengths[len(lengths)/2]
	t.Logf("%d operations, median %d, %d %% appends, %.2f events an operation",
		ops, median, 100*appends/ops, float64(events)/float64(ops))
	if lengths[0] < 8 || lengths[len(lengths)-1] > 1001 || median < 40 || median > 60 {
		t.Errorf("lengths %d..%d, median %d", lengths[0], lengths[len(lengths)-1], median)
	}
	if 100*appends < 60*ops {
		t.Errorf("only %d of %d operations are appends", appends, ops)
	}
	for seed := range uint64(100) {
		Expand(&s, seed, 50)
		if o, _ := s.Ops(); o < 50 || o > 51 {
			t.Fatalf("seed %d: %d operations, want 50", seed, o)
		}
	}
}

func TestExpandAllocatesNothing(t *testing.T) {
	var s Schedule
	for seed := range uint64(2000) {
		Expand(&s, seed, 0)
	}
	seed := uint64(0)
	if n := testing.AllocsPerRun(2000, func() { Expand(&s, seed, 0); seed++ }); n != 0 {
		t.Errorf("%.1f allocations an expansion", n)
	}
}
