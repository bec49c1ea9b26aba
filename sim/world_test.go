package sim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run expands and runs one seed; on a violation it prints the line that replays it.
func run(t *testing.T, w *World, seed uint64, ops int) *Result {
	t.Helper()
	var s Schedule
	Expand(&s, seed, ops)
	r := w.Run(&s)
	if r.Violation != "" {
		t.Errorf("seed %d: %s; replay: varve-sim replay %d --profile disk --ops %d", seed, r.Violation, seed, ops)
	}
	return r
}

func TestSeeds(t *testing.T) {
	w := NewWorld()
	var lives, ops, appends int
	const seeds = 2000
	for seed := range uint64(seeds) {
		r := run(t, w, seed, 0)
		lives, ops, appends = lives+r.Lives, ops+r.Ops, appends+r.Appends
		if t.Failed() {
			return
		}
	}
	if lives < 2*seeds || 10*appends < 6*ops {
		t.Errorf("%d lives in %d seeds, %d appends of %d operations: too few", lives, seeds, appends, ops)
	}
}

// Schedules that once found something are kept: seeds go stale when the expansion changes.
func TestKeptSchedules(t *testing.T) {
	files, err := filepath.Glob("testdata/schedules/*.schedule")
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept schedules: %v", err)
	}
	w := NewWorld()
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r := w.Run(s); r.Violation != "" {
			t.Errorf("%s: %s", name, r.Violation)
		}
	}
}

// A violation has a property, and a replay has a timeline.
func TestViolationIsReported(t *testing.T) {
	var s Schedule
	Expand(&s, 12, 60)
	w := NewWorld()
	var b bytes.Buffer
	w.Trace = &b
	r := w.Run(&s)
	if r.Violation != "" {
		t.Fatal(r.Violation)
	}
	w.fail("K1", "something is gone")
	if r.Check != "K1" || !strings.Contains(b.String(), "VIOLATION of K1: something is gone") {
		t.Errorf("reported %q, %q", r.Check, r.Violation)
	}
	for _, want := range []string{"process starts", "log is ready", "commit [", "acked", "> "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the timeline has no %q", want)
		}
	}
}

// The same seed is the same run: in a world that ran others before, in a fresh one, with a timeline,
// and through the text form.
func TestSameSeedSameRun(t *testing.T) {
	dirty := NewWorld()
	for seed := range uint64(150) {
		hash := run(t, dirty, seed, 0).Hash
		fresh := NewWorld()
		if got := run(t, fresh, seed, 0).Hash; got != hash {
			t.Fatalf("seed %d: hash %016x in a used world, %016x in a fresh one", seed, hash, got)
		}
		var s Schedule
		Expand(&s, seed, 0)
		parsed, err := Parse(s.AppendText(nil))
		if err != nil {
			t.Fatal(err)
		}
		fresh.Trace = &bytes.Buffer{}
		if got := fresh.Run(parsed).Hash; got != hash {
			t.Fatalf("seed %d: hash %016x, %016x through its text form and with a timeline", seed, hash, got)
		}
	}
}

// Deleting an event leaves the draws of all others as they were: each has its own seed.
func TestEventsHaveTheirOwnSeeds(t *testing.T) {
	var s Schedule
	Expand(&s, 5, 100)
	seen := map[uint64]bool{}
	for i := range s.Events {
		if seen[s.Events[i].Sub] {
			t.Fatalf("event %d has the seed of another", i)
		}
		seen[s.Events[i].Sub] = true
	}
	w := NewWorld()
	for i := range s.Events {
		cut := Schedule{Header: s.Header}
		cut.Events = append(append(cut.Events, s.Events[:i]...), s.Events[i+1:]...)
		if r := w.Run(&cut); r.Violation != "" {
			t.Errorf("without event %d: %s", i, r.Violation)
		}
	}
}

// In steady state a run allocates nothing. Names of files are made once each and kept, so seeds
// that were run before are run again; violations, refusals and new memory are what allocates.
func TestRunAllocatesNothing(t *testing.T) {
	w := NewWorld()
	var s Schedule
	const seeds = 400
	for range 2 {
		for seed := range uint64(seeds) {
			Expand(&s, seed, 50)
			w.Run(&s)
		}
	}
	seed := uint64(0)
	if n := testing.AllocsPerRun(seeds, func() {
		Expand(&s, seed%seeds, 50)
		w.Run(&s)
		seed++
	}); n != 0 {
		t.Errorf("%.0f allocations a seed", n)
	}
}

// With a cold tier a run allocates little: keys of objects, texts of pages, errors about damage.
func TestRunOfAColdTierAllocatesLittle(t *testing.T) {
	w := NewWorld()
	var s Schedule
	const seeds = 400
	seed := uint64(0)
	run := func() {
		ExpandMix(&s, MixCold, seed%seeds, 50)
		w.Run(&s)
		seed++
	}
	for range 2 * seeds {
		run()
	}
	if n := testing.AllocsPerRun(seeds, run); n > 16 {
		t.Errorf("%.0f allocations a seed, want at most 16", n)
	}
}

func BenchmarkSeed50(b *testing.B) {
	w := NewWorld()
	var s Schedule
	for seed := range uint64(b.N) {
		Expand(&s, seed, 50)
		w.Run(&s)
	}
}

func BenchmarkSeedMix(b *testing.B) {
	w := NewWorld()
	var s Schedule
	for seed := range uint64(b.N) {
		Expand(&s, seed, 0)
		w.Run(&s)
	}
}
