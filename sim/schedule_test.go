package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"varve/core"
	"varve/faultfs"
)

func TestTextRoundTrip(t *testing.T) {
	var s Schedule
	for seed := range uint64(400) {
		ExpandMix(&s, Mix(seed)%mixCount, seed, 0)
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

// Values that are no amounts are written as words, and read as words or numbers.
func TestTextWords(t *testing.T) {
	var s Schedule
	Expand(&s, 7, 8)
	s.Events = s.Events[:0]
	var want string
	add := func(e Event, text string) {
		s.Events = append(s.Events, e)
		want += "0 " + text + " sub=0\n"
	}
	add(Event{Kind: Arm, A: int64(faultfs.D17Clean), B: int64(faultfs.OpSync), C: 2}, "arm fault=D17.clean call=sync skip=2")
	add(Event{Kind: Arm, A: int64(faultfs.D14ReadOnce), B: int64(faultfs.OpOpen)}, "arm fault=D14.once call=open")
	for how := range deathCount {
		add(Event{Kind: Crash, A: how, B: 5}, "crash how="+deathWords[how]+" calls=5")
	}
	add(Event{Kind: Doom, A: 3, B: DeathPower}, "doom calls=3 how=power")
	add(Event{Kind: Clock, A: ClockSkew, B: 9}, "clock how=skew by=9")
	add(Event{Kind: Slow, A: int64(core.Tail), B: 9}, "slow lane=tail for=9")
	add(Event{Kind: Slow, A: int64(core.Syncs), B: 9}, "slow lane=sync for=9")
	add(Event{Kind: Slow, A: int64(core.Hot), B: 9}, "slow lane=hot for=9")
	add(Event{Kind: Append, A: 9, B: 1, C: ContentZeros}, "append bytes=9 records=1 content=zeros")
	add(Event{Kind: Append, A: 9, B: 1}, "append bytes=9 records=1")
	text := string(s.AppendText(nil))
	if _, events, _ := strings.Cut(text, "\nevents\n"); events != want {
		t.Errorf("got\n%s\nwant\n%s", events, want)
	}
	numbers := strings.NewReplacer("fault=D17.clean call=sync", fmt.Sprintf("fault=%d call=%d", faultfs.D17Clean, faultfs.OpSync), "how=skew", "how=3", "lane=hot", "lane=2").Replace(text)
	for _, x := range []string{text, numbers} {
		if got, err := Parse([]byte(x)); err != nil || !slices.Equal(got.Events, s.Events) {
			t.Errorf("%v of\n%s", err, x)
		}
	}
	for k := range kindCount {
		for i := range 4 {
			for v := int64(0); argNames[k][i] == "" && v < 100; v++ {
				if valueWord(k, i, v) != "" {
					t.Errorf("%s has a word for an argument that it has not", k)
				}
			}
			if n := len(words[k][i]); n > 0 && int64(n) != argMax(k, i)+1 {
				t.Errorf("%s: %d words for %s of 0..%d", k, n, argNames[k][i], argMax(k, i))
			}
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
		{"events\n", "events\n0 crash how=fire sub=0\n", "or a word for it"},
		{"events\n", "events\n0 crash how=9 sub=0\n", "how of 0..5"},
		{"events\n", "events\n0 arm fault=D1.sectors call=sync sub=0\n", "can strike that call"},
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
