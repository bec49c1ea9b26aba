package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"varve/sim"
)

// wanting is a world that violates a property as long as a schedule has an event of each kind.
type wanting struct {
	kinds  []sim.Kind
	check  string
	text   func(s *sim.Schedule) string
	panics bool
	runs   int
	res    sim.Result
}

func (w *wanting) Run(s *sim.Schedule) *sim.Result {
	w.runs++
	w.res = sim.Result{}
	for _, k := range w.kinds {
		if !slices.ContainsFunc(s.Events, func(e sim.Event) bool { return e.Kind == k }) {
			return &w.res
		}
	}
	if w.panics {
		panic(w.text(s))
	}
	w.res.Check, w.res.Violation = w.check, w.text(s)
	return &w.res
}

func (w *wanting) Hashes() []uint64 { return nil }

func TestShrinkCommand(t *testing.T) {
	dir := t.TempDir()
	text := func(s *sim.Schedule) string { return fmt.Sprintf("offset %d is gone\nand more", len(s.Events)) }
	kinds := []sim.Kind{sim.Append, sim.Crash, sim.Append}
	for name, w := range map[string]*wanting{
		"violation": {kinds: kinds, check: "K1", text: text}, "panic": {kinds: kinds, text: text, panics: true},
	} {
		world := func() simulator { return w }
		want := map[string]string{"violation": "K1", "panic": "panic"}[name]
		file := filepath.Join(dir, name+".schedule")
		code, out, errOut := program(t, world, "shrink 24 --out "+file)
		kept, err := os.ReadFile(file)
		if code != exitOK || err != nil || errOut != "" || !strings.HasPrefix(out, string(kept)) ||
			!strings.Contains(out, "events      2 of 47, of which 1 operations") || !strings.Contains(out, "varve-sim replay "+file+" -v\n") {
			t.Fatalf("%s: exit %d, %v\n%s%s", name, code, err, out, errOut)
		}
		if !strings.Contains(string(kept), "\n# "+want+": offset 2 is gone\n# 2 events of 47, made small by: varve-sim shrink 24\n# not plain in the header: nothing\nseed 24\n") {
			t.Errorf("%s: the file does not say what it is:\n%s", name, kept)
		}
		small, err := sim.Parse(kept)
		if err != nil || len(small.Events) != 2 {
			t.Fatalf("%s: %v\n%s", name, err, kept)
		}
		if o := (&runner{newWorld: world}).run(small); o.check != want {
			t.Errorf("%s: the file violates %q, want %q", name, o.check, want)
		}
		w.runs = 0
		code, out, errOut = program(t, world, "shrink "+file+" --json --tries 50 --out "+filepath.Join(dir, "again"))
		var r shrinkJSON
		d := json.NewDecoder(strings.NewReader(out))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil || code != exitOK || r.Property != want || r.Events != 2 || r.EventsBefore != 2 ||
			r.Signature != want+": offset # is gone" || w.runs != r.Tries+2 || r.Tries > 50 {
			t.Errorf("%s again: exit %d, %v, %d runs, %+v\n%s", name, code, err, w.runs, r, errOut)
		}
	}
}

// A panic, or an assertion, with another message is another failure.
func TestShrinkKeepsThePanic(t *testing.T) {
	w := &wanting{check: "assert", text: func(s *sim.Schedule) string {
		if len(s.Events) >= 5 {
			return fmt.Sprintf("core: Committed went back to %d", len(s.Events))
		}
		return "core: something else"
	}}
	small, err := (&minimizer{world: func() simulator { return w }, tries: 10_000}).run(t.Context(), expanded(24))
	if err != nil || len(small.schedule.Events) != 5 || small.failed.text != "core: Committed went back to 5" {
		t.Fatalf("%v, %+v", err, small)
	}
}

func expanded(seed uint64) *sim.Schedule {
	s := new(sim.Schedule)
	sim.Expand(s, seed, 0)
	return s
}

func TestShrinkOfNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	code, _, errOut := program(t, newWorld, "shrink 3 --ops 8 --out "+out)
	if code != exitFailed || !strings.Contains(errOut, "3: violates nothing") {
		t.Errorf("exit %d, %s", code, errOut)
	}
	w := &wanting{text: func(*sim.Schedule) string { return "x" }, check: "K1"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var b, e bytes.Buffer
	code = run(ctx, []string{"shrink", "24", "--out", out}, &b, &e, func() simulator { return w })
	if code != exitFailed || !strings.Contains(e.String(), "stopped after") {
		t.Errorf("interrupted: exit %d, %s", code, &e)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was written")
	}
}

func TestSignature(t *testing.T) {
	for _, x := range []struct{ check, a, b string }{
		{
			"K9", "model: K9 violated: an append was acked after a failed sync; offset 6; append 4; expected 0, found 1; at 4420930 ns, event 34",
			"model: K9 violated: an append was acked after a failed sync; offset 17; append 9; expected 0, found 1; at 20 ns, event 3",
		},
		{"K25", "refused: 00000000000000000000-0000000100000001.seg at byte 512", "refused: 00000000000000000014-000000020000000a.seg at byte 7"},
		{"K1", "value 0xdead4", "value 0x7"},
		{"K1", "hash c36c75e0019e82d4\nsecond line", "hash 36c75e0019e82d4a\nanother"},
	} {
		if a, b := signature(x.check, x.a), signature(x.check, x.b); a != b || !strings.HasPrefix(a, x.check+": ") {
			t.Errorf("%q and %q", a, b)
		}
	}
	for _, x := range [][2]string{{"a record is gone", "a record is dead"}, {"face", "beef"}, {"super.0", "seal.0"}} {
		if a, b := signature("K1", x[0]), signature("K1", x[1]); a == b {
			t.Errorf("%q and %q are alike: %q", x[0], x[1], a)
		}
	}
	if signature("K1", "x") == signature("K2", "x") {
		t.Error("the property does not count")
	}
}
