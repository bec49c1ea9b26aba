package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// runJSON runs seeds and returns the report without what depends on the clock.
func runJSON(t *testing.T, world func() simulator, args string) (int, reportJSON, string) {
	t.Helper()
	code, out, errOut := program(t, world, "run --json "+args)
	var r reportJSON
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%s: %v\n%s%s", args, err, out, errOut)
	}
	return code, r, errOut
}

func TestRunDoesNotDependOnWorkers(t *testing.T) {
	var first reportJSON
	for workers := 1; workers <= 4; workers++ {
		_, r, _ := runJSON(t, newWorld, fmt.Sprintf("--seeds 150 --from 1000 --ops 30 --all --workers %d", workers))
		if r.Seeds != 150 || r.PerCore <= 0 || r.Events == 0 || r.AppendShare < 0.5 || r.MeanLives < 1 || len(r.Marks) == 0 {
			t.Fatalf("report %+v", r)
		}
		r.PerCore, r.PerWorker, r.EventsPerSecond, r.Seconds, r.CPUSeconds, r.Workers = 0, 0, 0, 0, 0, 0
		if workers == 1 {
			first = r
		} else if !reflect.DeepEqual(r, first) {
			t.Errorf("%d workers:\n%+v\n1 worker:\n%+v", workers, r, first)
		}
	}
}

func TestRunKeysAreFixed(t *testing.T) {
	_, out, _ := program(t, newWorld, "run --seeds 3 --ops 8 --json")
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"seeds", "seeds_per_second_per_core", "events", "violations", "marks_missing"} {
		if _, ok := keys[key]; !ok {
			t.Errorf("no key %q in %s", key, out)
		}
	}
	if !bytes.HasPrefix(keys["marks_missing"], []byte("[")) {
		t.Errorf("marks_missing is %s, want a list", keys["marks_missing"])
	}
}

// The lowest violating seed is reported, whatever the number of workers, with one line that replays
// it, and the exit code is 1.
func TestPlantedViolation(t *testing.T) {
	world := func() simulator {
		return &planted{violates: map[uint64]string{37: "offset 4 is gone", 90: "later", 301: "too late"}}
	}
	const replay = "varve-sim replay 37 --profile disk --ops 50"
	for workers := 1; workers <= 5; workers++ {
		code, out, errOut := program(t, world, fmt.Sprintf("run --seeds 300 --ops 50 --workers %d", workers))
		if code != exitFailed || strings.Count(out+errOut, "varve-sim replay") != 1 || !strings.Contains(errOut, replay+"\n") ||
			!strings.Contains(errOut, "VIOLATION of K1 by seed 37: offset 4 is gone") {
			t.Errorf("%d workers: exit %d\n%s%s", workers, code, out, errOut)
		}
	}
	code, r, _ := runJSON(t, world, "--seeds 300 --ops 50 --all --workers 2")
	if code != exitFailed || r.Violations != 2 || r.Seeds != 300 || r.ViolationsByCheck["K1"] != 2 || r.First == nil ||
		*r.First != (violationJSON{37, "K1", "offset 4 is gone", replay}) {
		t.Errorf("--all: exit %d, %+v", code, r)
	}
	if code, _, errOut := program(t, world, "run --seeds 37"); code != exitOK || errOut != "" {
		t.Errorf("the seeds before it: exit %d, %s", code, errOut)
	}
}

func TestPanicIsAViolationWithItsStack(t *testing.T) {
	worlds := 0
	world := func() simulator {
		worlds++
		return &planted{panics: map[uint64]string{5: "core: Committed went back"}}
	}
	code, r, errOut := runJSON(t, world, "--seeds 10 --workers 1 --all")
	if code != exitFailed || r.Violations != 1 || r.First.Seed != 5 || r.First.Property != "panic" || r.Seeds != 10 {
		t.Errorf("exit %d, %+v", code, r)
	}
	for _, want := range []string{"core: Committed went back", "(*planted).Run", "varve-sim replay 5 --profile disk --ops 0"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("no %q in\n%s", want, errOut)
		}
	}
	if worlds != 2 {
		t.Errorf("%d worlds, want a new one after the panic", worlds)
	}
}

// Marks that no seed reached are always printed, and are a failure from 100,000 seeds on.
func TestMissingMarks(t *testing.T) {
	world := func() simulator { return &planted{} }
	code, r, _ := runJSON(t, world, "--seeds 200 --ops 1")
	if code != exitOK || len(r.MarksMissing) < 50 {
		t.Errorf("exit %d, %d marks missing", code, len(r.MarksMissing))
	}
	report := &runReport{totals: &totals{}, job: &job{}}
	for seeds, missing := range map[uint64]bool{marksDue - 1: false, marksDue: true} {
		report.totals.seeds = seeds
		err := report.verdict(t.Context(), &streams{err: t.Output(), world: world})
		if (err != nil) != missing || missing && !strings.Contains(err.Error(), "sim hang") {
			t.Errorf("%d seeds: %v", seeds, err)
		}
	}
}

func TestRunEndsInTime(t *testing.T) {
	began := time.Now()
	code, r, _ := runJSON(t, newWorld, "--seeds 1000000000 --time 100ms --workers 2 --all")
	if spent := time.Since(began); spent > 10*time.Second || r.Seeds == 0 || r.Seeds == 1_000_000_000 {
		t.Errorf("exit %d after %v, %d seeds", code, spent, r.Seeds)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	if code := run(ctx, strings.Fields("run --seeds 1000000000"), &out, &errOut, newWorld); code != exitFailed ||
		!strings.Contains(errOut.String(), "stopped after 0 of 1,000,000,000 seeds: context canceled") {
		t.Errorf("interrupted: exit %d, %s", code, &errOut)
	}
}

func TestProgressLine(t *testing.T) {
	p := &progress{what: "seeds", total: 1_000_000}
	if got, want := p.line(250_000, 10*time.Second), "seeds 250,000 of 1,000,000 (25 %), 25,000/s, 30s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.limit = 15 * time.Second
	if got, want := p.line(250_000, 10*time.Second), "seeds 250,000 of 1,000,000 (25 %), 25,000/s, 5s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := p.line(0, 0), "seeds 0 of 1,000,000 (0 %), 0/s, ? left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestText(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345678: "12,345,678"} {
		if got := group(n); got != want {
			t.Errorf("group(%d) = %q, want %q", n, got, want)
		}
	}
	lines := strings.Split(wrap(strings.Fields(strings.Repeat("mark-of-some-length ", 30))), "\n")
	for _, line := range lines {
		if len(line) > lineWidth || strings.HasSuffix(line, " ") {
			t.Errorf("line %q", line)
		}
	}
	if len(lines) < 5 || strings.Count(strings.Join(lines, ""), ",") != 29 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestStackOf(t *testing.T) {
	if got := stackOf("a line\nVIOLATION\ngoroutine 7 [running]:\nmain.f()\n"); got != "goroutine 7 [running]:\nmain.f()\n" {
		t.Errorf("got %q", got)
	}
	if got := stackOf("no stack\n"); got != "" {
		t.Errorf("got %q", got)
	}
}

// With a number of detections the run ends at that violation, in the order of the seeds, whatever the
// number of workers.
func TestRunEndsAtDetections(t *testing.T) {
	world := func() simulator {
		return &planted{violates: map[uint64]string{37: "a", 90: "b", 91: "c", 200: "d"}}
	}
	for workers := 1; workers <= 5; workers++ {
		code, r, _ := runJSON(t, world, fmt.Sprintf("--seeds 100000 --from 10 --all --detections 3 --workers %d", workers))
		if code != exitFailed || r.Violations != 3 || r.Seeds != 82 || r.First.Seed != 37 || r.ViolationsByCheck["K1"] != 3 {
			t.Errorf("%d workers: exit %d, %+v", workers, code, r)
		}
	}
	if _, r, _ := runJSON(t, world, "--seeds 300 --all --detections 5 --workers 2"); r.Violations != 4 || r.Seeds != 300 {
		t.Errorf("fewer than asked for: %+v", r)
	}
}

// A seed that does not end is a violation of its own and ends the run; what lies below it counts.
func TestSeedThatHangs(t *testing.T) {
	until := make(chan struct{})
	defer close(until)
	world := func() simulator {
		return &planted{violates: map[uint64]string{3: "a", 500: "b"}, hangs: map[uint64]chan struct{}{6: until}}
	}
	for workers := 1; workers <= 3; workers++ {
		code, r, errOut := runJSON(t, world, fmt.Sprintf("--seeds 600 --all --detections 20 --hang 300ms --workers %d", workers))
		if code != exitFailed || r.Violations != 2 || r.Seeds != 7 || r.ViolationsByCheck["hang"] != 1 || r.First.Seed != 3 {
			t.Errorf("%d workers: exit %d, %+v", workers, code, r)
		}
		if workers == 1 && !strings.Contains(errOut, "VIOLATION of K1 by seed 3") {
			t.Errorf("said %s", errOut)
		}
	}
	code, r, errOut := runJSON(t, world, "--seeds 3 --from 4 --hang 300ms --workers 1")
	if code != exitFailed || r.First.Property != "hang" || !strings.Contains(errOut, "VIOLATION of hang by seed 6: no end after 300ms") {
		t.Errorf("exit %d, %+v, %s", code, r, errOut)
	}
}

func TestRunWithout(t *testing.T) {
	code, r, _ := runJSON(t, newWorld, "--seeds 60 --ops 20 --without D1.sectors,power,K1,check.config")
	if code != exitOK || r.Marks["sim power"] != 0 || r.Marks["disk D1.sectors"] != 0 || r.Marks["sim kill"] == 0 {
		t.Errorf("exit %d, %+v", code, r)
	}
	_, whole, _ := runJSON(t, newWorld, "--seeds 60 --ops 20")
	if whole.Marks["sim power"] == 0 {
		t.Error("no power loss with nothing left out")
	}
	v := violation{Seed: 4}
	if got, want := v.replay(&job{ops: 8, without: []string{"D7.rot", "K1"}}), "varve-sim replay 4 --profile disk --ops 8 --without D7.rot,K1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A job that sets no limit gives up no seed, however long it takes.
func TestNoLimitNoHang(t *testing.T) {
	for limit, want := range map[time.Duration]bool{0: false, time.Second: true} {
		w := &worker{job: &job{hang: limit}, found: newFindings(0)}
		w.since.Store(time.Now().Add(-time.Hour).UnixNano())
		if got := w.hung(time.Now()); got != want {
			t.Errorf("limit %v: hung %v, want %v", limit, got, want)
		}
	}
}
