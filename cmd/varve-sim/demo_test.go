package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"varve"
)

func TestDemo(t *testing.T) {
	dir := t.TempDir()
	code, out, errOut := program(t, func() simulator { return &planted{} }, "demo --seeds 20 --dir "+dir)
	if code != exitOK || errOut != "" {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	for _, want := range []string{
		"acked records are there, byte for byte", "recovery keeps all", "expected payload checksum",
		"on_commit", "periodic", "none", "leaves the disk", "the bucket serves what the file held", "rebuilt from the bucket", "committed 2500", "no property violated", "Every claim above was checked",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemoFailsWithTheSimulator(t *testing.T) {
	d := &demo{seeds: 10, s: &streams{err: t.Output(), world: func() simulator {
		return &planted{violates: map[uint64]string{3: "gone"}}
	}}}
	if err := d.simulate(t.Context()); err == nil || !strings.Contains(err.Error(), "violated") {
		t.Errorf("got %v", err)
	}
}

func TestDemoWithoutADirectory(t *testing.T) {
	if code, _, errOut := program(t, newWorld, "demo --dir "+t.TempDir()+"/absent"); code != exitFailed || !strings.Contains(errOut, "absent") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

// A writer that ends by itself is no kill.
func TestKillOfAWriterThatFails(t *testing.T) {
	w := demoWriterCommand{Dir: "/dev/null/log", Fsync: "on_commit", Writers: 1, Life: 1, Segment: 64 << 10}
	if _, err := w.kill(t.Context(), 10); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("got %v", err)
	}
}

func recordsOf(values ...string) iter.Seq2[varve.Record, error] {
	return func(yield func(varve.Record, error) bool) {
		for i, v := range values {
			if !yield(varve.Record{Offset: int64(i), Value: []byte(v)}, nil) {
				return
			}
		}
	}
}

// The check of what was killed finds what it claims is not there.
func TestKilledCheck(t *testing.T) {
	a, b, c := string(demoValue(1, 0, 0)), string(demoValue(1, 1, 0)), string(demoValue(1, 0, 1))
	k := &killed{acked: map[int64]string{0: a, 1: b, 2: c}}
	if n, err := k.check(recordsOf(a, b, c, string(demoValue(1, 1, 1)))); n != 4 || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
	for name, x := range map[string]struct {
		log  iter.Seq2[varve.Record, error]
		want string
	}{
		"lost at the end":  {recordsOf(a, b), "1 of 3 acked records are gone"},
		"two swapped":      {recordsOf(b, a, c), "acked with another record"},
		"one twice":        {recordsOf(a, b, c, c), "no writer wrote there"},
		"a phantom":        {recordsOf(a, b, c, "boo"), "no writer wrote there"},
		"a changed byte":   {recordsOf(a, b, c[:len(c)-1]+"!"), "no writer wrote there"},
		"a read that ends": {func(yield func(varve.Record, error) bool) { yield(varve.Record{}, errors.New("broken")) }, "broken"},
		"a gap": {func(yield func(varve.Record, error) bool) {
			yield(varve.Record{Offset: 1, Value: []byte(b)}, nil)
		}, "offset 1 follows -1"},
	} {
		if _, err := k.check(x.log); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", name, err, x.want)
		}
	}
}

// The error of damage must name the very place.
func TestNamed(t *testing.T) {
	good := varve.CorruptError{Segment: 1<<32 | 7, Base: 100, Pos: 5120, Offset: 140}
	p := batchPlace{file: "x/" + good.Name(), pos: 5120, end: 5400, base: 140, records: 1}
	if err := p.named(fmt.Errorf("read: %w", &good), 40, 40); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*varve.CorruptError){
		"segment":  func(e *varve.CorruptError) { e.Segment++ },
		"position": func(e *varve.CorruptError) { e.Pos = 5400 },
		"offset":   func(e *varve.CorruptError) { e.Offset++ },
	} {
		bad := good
		change(&bad)
		if p.named(&bad, 40, 40) == nil {
			t.Errorf("a wrong %s passes", name)
		}
	}
	if p.named(&good, 39, 40) == nil || p.named(nil, 40, 40) == nil {
		t.Error("a missing record, or no error, passes")
	}
}
