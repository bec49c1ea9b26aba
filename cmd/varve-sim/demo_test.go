//go:build !mutant

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"varve"
	"varve/tiers"
	"varve/tiers/tiertest"
)

func TestDemo(t *testing.T) {
	dir := t.TempDir()
	code, out, errOut := program(t, func() simulator { return &planted{} }, "demo --seeds 20 --dir "+dir)
	if code != exitOK || errOut != "" {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	for _, want := range []string{
		"acked records are there, byte for byte", "recovery keeps all", "expected payload checksum",
		"on_commit", "periodic", "none", "miniredis", "no property violated", "Every claim above was checked",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	saysTiers(t, out)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// saysTiers verifies what the step with the tiers says, whatever its servers are.
func saysTiers(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{
		"before its ack", "expected batches that verify over", "a reader that has only the bucket", "nothing is lost", "finds nothing wrong",
		"leaves the disk", "they are back on disk now", "in Valkey alone", "neither the bucket nor Valkey has all of it",
		"WAL     nothing", "with all 2,100 records", "committed 2600",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// demoOver returns a demo that works in a directory of the test, and what it says.
func demoOver(t *testing.T) (*demo, func() string) {
	t.Helper()
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	return &demo{root: t.TempDir(), s: &streams{out: w, err: t.Output()}}, func() string {
		_ = w.Flush()
		return out.String()
	}
}

// TestDemoReal is the step with the tiers over real servers.
func TestDemoReal(t *testing.T) {
	tools, err := findDemoTools()
	if err != nil {
		tiertest.Lacks(t, "valkey-server and versitygw", err)
	}
	d, said := demoOver(t)
	d.tools = tools
	if err := d.tiered(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, said())
	}
	saysTiers(t, said())
	if out := said(); !strings.Contains(out, "started: valkey-server ") || !strings.Contains(out, "Valkey and its replica had each before its ack") {
		t.Error(out)
	}
}

// Without its servers a demo with real ones names what is missing, and begins nothing.
func TestDemoRealWithoutServers(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	code, out, errOut := program(t, newWorld, "demo --real --dir "+t.TempDir())
	if code != exitFailed || out != "" || !strings.Contains(errOut, "--real needs valkey-server in PATH") || !strings.Contains(errOut, "and versitygw in PATH") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// A server that does not start says why.
func TestDemoServerThatEnds(t *testing.T) {
	s := &demoServers{}
	defer s.stop()
	address, err := freeAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = s.start(t.Context(), address, exec.CommandContext(t.Context(), "sh", "-c", "echo no room >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "ended by itself: exit status 3: no room") {
		t.Error(err)
	}
}

// What the step with the tiers claims is checked: with a part of it spoiled it fails.
func TestDemoTiersCanFail(t *testing.T) {
	for _, x := range []struct {
		want  string
		spoil func(t *testing.T, x *demoTiers) error
	}{
		{"the replica does not hold the last one", func(t *testing.T, x *demoTiers) error {
			x.servers.replica = miniredis.RunT(t).Addr() // that of another server
			return x.life(x.first)(t.Context())
		}},
		{"scrub of a whole bucket", func(t *testing.T, x *demoTiers) error {
			_, err := x.options.Cold.Put(t.Context(), x.options.ColdPrefix+"foreign", []byte("x"), tiers.Condition{})
			return errors.Join(x.life(x.first)(t.Context()), err, x.damageObject(t.Context()))
		}},
		{"were given up", func(t *testing.T, x *demoTiers) error {
			err := errors.Join(x.life(x.first)(t.Context()), x.damageObject(t.Context()), os.RemoveAll(x.dir))
			return errors.Join(err, x.life(x.healed)(t.Context()))
		}},
		{"and Valkey [2000, 2000)", func(t *testing.T, x *demoTiers) error {
			err := x.life(x.first)(t.Context())
			x.options.Warm.Name = "another"
			return errors.Join(err, x.loseDisk(t.Context()))
		}},
		{"2000 records, want 2001", func(t *testing.T, x *demoTiers) error {
			err := x.life(x.first)(t.Context())
			x.records++
			return errors.Join(err, x.life(x.rebuilt)(t.Context()))
		}},
	} {
		d, said := demoOver(t)
		s := &demoServers{}
		defer s.stop()
		if err := s.embedded(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := x.spoil(t, newDemoTiers(d, s)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %q\n%s", err, x.want, said())
		}
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
