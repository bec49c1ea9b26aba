//go:build !mutant

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"varve/sim/mutants"
)

// stubLab has the results of mutants ready: what is found of each, and without what nothing is.
type stubLab struct {
	finds   map[string]reportJSON
	needs   map[string]string
	breaks  map[string]error
	metas   map[string]error
	small   map[string]int // events
	trials  map[string][]trial
	trialed chan struct{} // holds one token: trials are noted by one at a time
}

func newStubLab() *stubLab {
	first := func(seed uint64) *violationJSON { return &violationJSON{Seed: seed, Property: "K1"} }
	l := &stubLab{
		finds: map[string]reportJSON{
			"01-often": {
				Seeds: 40, Violations: 20, First: first(1), ViolationsByCheck: map[string]uint64{"K1": 19, "K9": 1},
				Struck: map[string]int64{"sim power": 20, "disk D1.sectors": 17, "disk D7.rot": 3},
			},
			"02-rare":     {Seeds: 1_000_000, Violations: 3, First: first(1234), ViolationsByCheck: map[string]uint64{"K11": 3}},
			"03-survives": {Seeds: 1_000_000},
			"04-same":     {Seeds: 100_000},
			"05-not-same": {Seeds: 100_000, Violations: 1, First: first(99_999), ViolationsByCheck: map[string]uint64{"K2": 1}},
			"06-hangs":    {Seeds: 50_000, Violations: 1, First: first(49_999), ViolationsByCheck: map[string]uint64{"hang": 1}},
			"07-hangs":    {Seeds: 50_001, Violations: 1, First: first(50_000), ViolationsByCheck: map[string]uint64{"hang": 1}},
		},
		needs:  map[string]string{"01-often": "power check.K1"},
		breaks: map[string]error{"08-stale": &mutants.StaleError{Mutant: "08-stale", File: "core/log.go", Old: "\tgone\n"}, "09-dies": nil},
		trials: map[string][]trial{}, trialed: make(chan struct{}, 1),
	}
	l.trialed <- struct{}{}
	return l
}

func (l *stubLab) list() []*mutants.Mutant {
	var list []*mutants.Mutant
	for name := range l.finds {
		list = append(list, &mutants.Mutant{Name: name, What: "a|b", Breaks: []string{"K1"}})
	}
	for name := range l.breaks {
		list = append(list, &mutants.Mutant{Name: name})
	}
	slices.SortFunc(list, func(a, b *mutants.Mutant) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range list {
		if strings.HasSuffix(m.Name, "same") {
			m.Equivalent = "nobody looks"
		}
	}
	return list
}

func (l *stubLab) build(_ context.Context, m *mutants.Mutant) (string, error) {
	return m.Name, l.breaks[m.Name]
}

func (l *stubLab) costOf(string) cost { return cost{1, 2} }

func (l *stubLab) run(_ context.Context, program string, t trial) (*reportJSON, error) {
	<-l.trialed
	l.trials[program] = append(l.trials[program], t)
	l.trialed <- struct{}{}
	r, ok := l.finds[program]
	if !ok {
		return nil, errors.New("dies without a report")
	}
	if t.without != "" && slices.Contains(strings.Fields(l.needs[program]), t.without) {
		r = reportJSON{Seeds: t.seeds, Violations: 4}
	}
	for _, name := range t.compare {
		if r.Compared == nil {
			r.Compared = map[string]uint64{}
		}
		r.Compared[name] = r.Violations
		if slices.Contains(strings.Fields(l.needs[program]), name) {
			r.Compared[name] = 4
		}
	}
	return &r, nil
}

func (l *stubLab) meta(_ context.Context, program, _ string, seeds uint64) error {
	if seeds == 0 {
		return errors.New("no seeds")
	}
	return l.metas[program]
}

func (l *stubLab) shrink(_ context.Context, _ string, m *mutants.Mutant, _ uint64) (*shrinkJSON, error) {
	n, ok := l.small[m.Name]
	if !ok {
		return nil, errors.New("the small schedule fails without the bug too")
	}
	return &shrinkJSON{Events: n, EventsBefore: 100}, nil
}

// gateOf runs the gate over the stub.
func gateOf(t *testing.T, c *mutantsCommand, l *stubLab) (out, errOut string, err error) {
	t.Helper()
	var a, b bytes.Buffer
	s := &streams{out: bufio.NewWriter(&a), err: &b}
	err = c.gate(t.Context(), s, c.only(l.list()), l)
	if flushErr := s.out.Flush(); flushErr != nil {
		t.Fatal(flushErr)
	}
	return a.String(), b.String(), err
}

func TestMutantsGate(t *testing.T) {
	for workers := 1; workers <= 4; workers++ {
		c := &mutantsCommand{Seeds: 1_000_000, Detections: 20, Workers: workers}
		_, errOut, err := gateOf(t, c, newStubLab())
		want := `varve-sim: mutant 02-rare is too rare: found 3 times in 1,000,000 seeds, expected 20 in 1,000,000
varve-sim: mutant 03-survives survives: not found in 1,000,000 seeds
varve-sim: mutant 05-not-same is not equivalent: K2 1; its proof is wrong
varve-sim: mutant 07-hangs is too rare: found 1 times in 50,001 seeds, expected 20 in 1,000,000
varve-sim: mutant 08-stale stale: core/log.go: old text "gone": expected once, found 0 times; edit sim/mutants/list/08-stale.mutant
varve-sim: mutant 09-dies dies without a report
varve-sim: 6 of 9 mutants fail
`
		if explained := (failure{}); !errors.As(err, &explained) || errOut != want {
			t.Errorf("%d workers: %v\n%s\nwant\n%s", workers, err, errOut, want)
		}
	}
	l := newStubLab()
	c := &mutantsCommand{Seeds: 1_000_000, Detections: 20, Workers: 2, Only: []string{"0[146]-*"}}
	out, errOut, err := gateOf(t, c, l)
	if err != nil || errOut != "" || !strings.Contains(out, "3 of 3 mutants pass: each is found 20 times within 1,000,000 seeds") ||
		!strings.Contains(out, "01-often") || strings.Contains(out, "02-rare") {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	if got := l.trials["04-same"]; len(got) != 1 || got[0].seeds != 100_000 {
		t.Errorf("an equivalent mutant: trials %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.gate(ctx, &streams{out: bufio.NewWriter(&bytes.Buffer{}), err: &bytes.Buffer{}}, c.only(l.list()), l); err == nil || !strings.Contains(err.Error(), "stopped after 0 of 3 mutants") {
		t.Errorf("interrupted: %v", err)
	}
}

func TestMutantsForms(t *testing.T) {
	c := &mutantsCommand{Seeds: 1_000_000, Detections: 20, Workers: 3, Only: []string{"o"}, Markdown: true}
	out, _, _ := gateOf(t, c, newStubLab())
	for _, want := range []string{
		"| 01-often | a\\|b | K1 | 40 | 1 | 20 | 5,000 | 3,380 - 6,522 | K1 19, K9 1 | - |\n",
		"| 05-not-same | a\\|b | K1 | 100,000 | 99,999 | 1 | 0.1 | 0.00253 - 0.557 | FAILS: it is not equivalent: K2 1; its proof is wrong | - |\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	c.JSON, c.Markdown = true, false
	out, _, _ = gateOf(t, c, newStubLab())
	var rows []mutantRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 2 || rows[0].Name != "01-often" || *rows[0].First != 1 ||
		rows[0].Rate != 5000 || rows[1].Failure == "" {
		t.Errorf("%v, %+v", err, rows)
	}
}

// A program that dies without a report is a detection if a landing would surely meet it.
func TestMutantThatCrashes(t *testing.T) {
	l := &sourceLab{workers: 1}
	program := func(script string) string {
		name := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		return name
	}
	big := trial{seeds: 1_000_000, detections: 20}
	r, err := l.run(t.Context(), program("echo 'fatal error: stack overflow' >&2; exit 2"), big)
	if err != nil || r.Violations != 1 || r.Seeds != 50_000 || r.ViolationsByCheck["crash"] != 1 {
		t.Errorf("always: %+v, %v", r, err)
	}
	_, err = l.run(t.Context(), program(`case "$*" in *--seeds=50000*) echo {}; exit 0;; esac; echo 'fatal error: stack overflow' >&2; exit 2`), big)
	if err == nil || !strings.Contains(err.Error(), "crashes, but not within 50,000 seeds") || !strings.Contains(err.Error(), "fatal error: stack overflow") {
		t.Errorf("late: %v", err)
	}
}

// With --meta each mutant has to be the same run twice, unless it never ends.
func TestMutantsMeta(t *testing.T) {
	l := newStubLab()
	c := &mutantsCommand{Seeds: 1_000_000, Detections: 20, Workers: 2, Only: []string{"01", "04-*", "06"}, Meta: 5}
	if _, errOut, err := gateOf(t, c, l); err != nil {
		t.Errorf("%v\n%s", err, errOut)
	}
	diverged := errors.New("seed 3 is not the same run twice")
	l.metas = map[string]error{"04-same": diverged, "06-hangs": diverged}
	if _, errOut, err := gateOf(t, c, l); err == nil || !strings.Contains(errOut, "mutant 04-same meta: seed 3 is not the same run twice\n") ||
		strings.Contains(errOut, "06-hangs") {
		t.Errorf("%v\n%s", err, errOut)
	}
}

// With --shrink first failures have to become short, all of them and half of them more so; one that
// also fails without the bug is none.
func TestMutantsShrink(t *testing.T) {
	for _, x := range []struct {
		events    int
		out, fail string
	}{
		{6, "shrink to a median of 6 events, 6 at most", ""},
		{7, "shrinks to 7 events of 100\n", ""},
		{16, "", "mutant 01-often shrinks to 16 events of seed 1, expected at most 15"},
		{-1, "", "mutant 01-often seed 1 does not shrink: the small schedule fails without the bug too"},
	} {
		l := newStubLab()
		if x.events >= 0 {
			l.small = map[string]int{"01-often": x.events}
		}
		c := &mutantsCommand{Seeds: 1_000_000, Detections: 20, Workers: 2, Only: []string{"01", "04-*", "06"}, Shrink: true}
		out, errOut, err := gateOf(t, c, l)
		if (err != nil) != (x.fail != "") || err != nil && !strings.Contains(errOut+err.Error(), x.fail) || !strings.Contains(out, x.out) {
			t.Errorf("%d events: %v\n%s%s", x.events, err, out, errOut)
		}
	}
}

func TestShrunkMedian(t *testing.T) {
	c := &mutantsCommand{Shrink: true, JSON: true}
	for _, x := range []struct {
		short, long int
		bad         bool
	}{{5, 5, false}, {4, 6, true}, {0, 9, false}, {0, 10, true}, {10, 0, false}} {
		var rows []*mutantRow
		for range x.short {
			rows = append(rows, &mutantRow{Shrunk: &shrunk{Events: 6}})
		}
		for range x.long {
			rows = append(rows, &mutantRow{Shrunk: &shrunk{Events: 7}}, &mutantRow{})
		}
		if err := c.reportShrunk(nil, rows); (err != nil) != x.bad {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// The small schedule is run again without the bug.
func TestShrunkMustBeGoodWithoutTheBug(t *testing.T) {
	dir := t.TempDir()
	program := func(name, script string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	bug := program("bug", `test "$*" = "shrink 7 --ops=0 --profile=cold --json --out=`+dir+`/05.schedule" && echo '{"events": 3, "events_before": 20}'`)
	l := &sourceLab{dir: dir, clean: program("good", `test "$*" = "replay `+dir+`/05.schedule"`)}
	if r, err := l.shrink(t.Context(), bug, &mutants.Mutant{Name: "05", Profile: mutants.Cold}, 7); err != nil || r.Events != 3 || r.EventsBefore != 20 {
		t.Errorf("%+v, %v", r, err)
	}
	l.clean = program("bad", "echo hash; echo 'outcome     VIOLATION of K1: gone'; exit 1")
	if _, err := l.shrink(t.Context(), bug, &mutants.Mutant{Name: "05", Profile: mutants.Cold}, 7); err == nil || !strings.HasSuffix(err.Error(), "without the bug too: outcome     VIOLATION of K1: gone") {
		t.Errorf("%v", err)
	}
	if _, err := l.shrink(t.Context(), program("none", "echo 'seed 7 violates nothing' >&2; exit 1"), &mutants.Mutant{Name: "05", Profile: mutants.Cold}, 7); err == nil || !strings.Contains(err.Error(), "violates nothing") {
		t.Errorf("%v", err)
	}
}
