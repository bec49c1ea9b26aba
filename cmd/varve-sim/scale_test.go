package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/sim"
)

// The shards of a range are disjoint, their union is the range, and all they count adds up to what
// the range counts.
func TestShards(t *testing.T) {
	for _, from := range []uint64{0, 1, 7, 1 << 63} {
		for n := range uint64(7) {
			seen := map[uint64]int{}
			for i := range n {
				first, count, stride := seedShard{i, n}.of(from, 20)
				for k := range count {
					seed := first + k*stride
					if seen[seed]++; seed%n != i || seed < from || seed >= from+20 {
						t.Errorf("seed %d is in shard %d/%d of 20 from %d on", seed, i, n, from)
					}
				}
			}
			if n > 0 && len(seen) != 20 {
				t.Errorf("%d shards of 20 seeds from %d on: %d seeds", n, from, len(seen))
			}
		}
	}
	_, whole, _ := runJSON(t, newWorld, "--seeds 100 --from 33 --ops 20 --all")
	var sum reportJSON
	marks, digest := map[string]int64{}, uint64(0)
	for i := range 3 {
		_, r, _ := runJSON(t, newWorld, fmt.Sprintf("--seeds 100 --from 33 --ops 20 --all --shard %d/3 --workers %d", i, i+1))
		if r.Shard != fmt.Sprintf("%d/3", i) || r.From%3 != uint64(i) {
			t.Errorf("shard %q from %d on", r.Shard, r.From)
		}
		sum.Seeds, sum.Events, sum.Refused = sum.Seeds+r.Seeds, sum.Events+r.Events, sum.Refused+r.Refused
		for name, n := range r.Marks {
			marks[name] += n
		}
		digest += hexNumber(t, r.Hash)
	}
	if sum.Seeds != 100 || sum.Events != whole.Events || sum.Refused != whole.Refused || digest != hexNumber(t, whole.Hash) ||
		fmt.Sprint(marks) != fmt.Sprint(whole.Marks) {
		t.Errorf("the shards: %+v, %016x, %v\nthe whole: %+v", sum, digest, marks, whole)
	}
}

func hexNumber(t *testing.T, s string) (n uint64) {
	t.Helper()
	if _, err := fmt.Sscanf(s, "%x", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// timeless is a report without what depends on the clock.
func timeless(r reportJSON) string {
	r.PerCore, r.PerWorker, r.EventsPerSecond, r.Seconds, r.CPUSeconds, r.Workers = 0, 0, 0, 0, 0, 0
	text, err := json.Marshal(&r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// A run that is stopped and started again, at any place, reports what a run in one go does.
func TestCheckpoint(t *testing.T) {
	world := func() simulator {
		return &planted{violates: map[uint64]string{3: "offset 3 is gone", 41: "offset 41 is gone", 77: "another"}}
	}
	const args = "--seeds 90 --ops 50 --all --shard 1/2 --workers 2"
	_, whole, _ := runJSON(t, world, args)
	file := filepath.Join(t.TempDir(), "run.checkpoint")
	var c runCommand
	c.Profile, c.Seeds, c.Ops, c.All, c.Shard, c.Workers = "disk", 90, 50, true, seedShard{1, 2}, 2
	for stop := range uint64(5) {
		r, err := openCheckpoint(file, c.args())
		if err != nil {
			t.Fatal(err)
		}
		r.part = 7
		if want := 7 * stop; r.resumed != want {
			t.Fatalf("resumed after %d seeds, want %d", r.resumed, want)
		}
		j := job{workers: 2, ops: 50, all: true, hang: time.Minute, world: world, shard: c.Shard}
		j.from, j.seeds, j.stride = c.Shard.of(0, 90)
		j.seeds = 7 * (stop + 1) // as if it had been killed then
		if _, err := r.run(t.Context(), &j, newProgress(t.Output(), "seeds", 45, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing left to do
		code, r, errOut := runJSON(t, world, args+" --checkpoint "+file)
		if code != exitFailed || timeless(r) != timeless(whole) || !strings.Contains(errOut, "goes on after ") {
			t.Errorf("exit %d, %s\n%s\nin one go\n%s", code, errOut, timeless(r), timeless(whole))
		}
	}
	if left, _ := filepath.Glob(file + "*"); len(left) != 1 {
		t.Errorf("files %q", left)
	}
	if len(whole.Groups) != 2 || whole.Violations != 3 {
		t.Errorf("groups %+v", whole.Groups)
	}
}

// With random faults, marks and hashes of the real world, in one part and in many.
func TestCheckpointOfTheRealWorld(t *testing.T) {
	_, whole, _ := runJSON(t, newWorld, "--seeds 60 --ops 20 --all")
	r, err := openCheckpoint(filepath.Join(t.TempDir(), "c"), "")
	if err != nil {
		t.Fatal(err)
	}
	r.part = 13
	j := job{seeds: 60, stride: 1, workers: 2, ops: 20, all: true, hang: time.Minute, world: newWorld}
	sum, err := r.run(t.Context(), &j, newProgress(t.Output(), "seeds", 60, 0))
	if err != nil {
		t.Fatal(err)
	}
	again, err := openCheckpoint(r.file, "")
	if err != nil || again.resumed != 60 {
		t.Fatalf("%v, %d seeds", err, again.resumed)
	}
	for name, totals := range map[string]*totals{"the run": sum, "the file": again.sum} {
		marks := map[string]int64{}
		reached(&totals.marks, marks)
		if totals.seeds != 60 || fmt.Sprintf("%016x", totals.digest) != whole.Hash || fmt.Sprint(marks) != fmt.Sprint(whole.Marks) ||
			totals.events != whole.Events || totals.lives == 0 || totals.lives != sum.lives || totals.acked != sum.acked {
			t.Errorf("%s: %+v\n%+v", name, totals, whole)
		}
	}
}

func TestCheckpointOfAnotherRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c")
	world := func() simulator { return &planted{} }
	if code, _, errOut := program(t, world, "run --seeds 10 --checkpoint "+file); code != exitOK {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	build := strings.Split(string(good), `"`)[3]
	for _, x := range []struct{ args, from, to, want string }{
		{"run --seeds 11", "", "", "--seeds=11"},
		{"run --seeds 10 --ops 9", "", "", "--ops=9"},
		{"run --seeds 10 --without K1", "", "", "--without=K1"},
		{"run --seeds 10", build, "deadbeef", "another build (deadbeef)"},
		{"run --seeds 10", "{", "[", "written by varve-sim run"},
		{"run --seeds 10", `"done"`, `"dome"`, "written by varve-sim run"},
		{"run --seeds 10", `"groups":null`, `"groups":[null]`, "a violation in each group"},
		{"run --seeds 10", `"marks":{`, `"marks":{"disk D99":1`, "expected a mark"},
		{"run --seeds 10", string(good), "", "written by varve-sim run"},
	} {
		bad := strings.Replace(string(good), x.from, x.to, 1)
		if x.from != "" && bad == string(good) {
			t.Fatalf("no %q in %s", x.from, good)
		}
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errOut := program(t, world, x.args+" --checkpoint "+file)
		if code != exitFailed || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, x.want) || !strings.Contains(errOut, file) {
			t.Errorf("%s, %s for %s: exit %d, %s", x.args, x.to, x.from, code, errOut)
		}
		if now, _ := os.ReadFile(file); string(now) != bad {
			t.Errorf("%s: the file was changed", x.args)
		}
	}
	if code, _, errOut := program(t, world, "run --seeds 10 --checkpoint "+filepath.Join(file, "below")); code != exitFailed || errOut == "" {
		t.Errorf("a place that cannot be: exit %d, %s", code, errOut)
	}
}

// Without --all a violation ends the run, and the checkpoint stays before it: the same run finds it again.
func TestCheckpointStaysBeforeAViolation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c")
	world := func() simulator { return &planted{violates: map[uint64]string{5: "gone"}} }
	for range 2 {
		code, _, errOut := program(t, world, "run --seeds 10 --checkpoint "+file)
		if code != exitFailed || !strings.Contains(errOut, "VIOLATION of K1 by seed 5: gone") {
			t.Errorf("exit %d, %s", code, errOut)
		}
	}
}

// Failures that look alike are one group, told by its lowest seed.
func TestGroups(t *testing.T) {
	violates := map[uint64]string{}
	for seed := range uint64(60) {
		violates[2*seed+9] = fmt.Sprintf("offset %d is gone; at %d ns", seed, 100*seed)
	}
	violates[8], violates[44] = "offset 7 is gone twice", "something else"
	world := func() simulator { return &planted{violates: violates} }
	_, r, _ := runJSON(t, world, "--seeds 200 --all --workers 3 --ops 50")
	if len(r.Groups) != 3 || r.Groups[0].Seed != 8 || r.Groups[0].Count != 1 || r.Groups[1].Seed != 9 || r.Groups[1].Count != 60 ||
		r.Groups[1].Signature != "K1: offset # is gone; at # ns" || r.Groups[1].Replay != "varve-sim replay 9 --profile disk --ops 50" ||
		r.Groups[2].Seed != 44 {
		t.Errorf("groups %+v", r.Groups)
	}
	_, out, _ := program(t, world, "run --seeds 200 --all --ops 50")
	if !strings.Contains(out, "60        of K1 like this: offset 0 is gone; at 0 ns\n            varve-sim replay 9 --profile disk --ops 50\n") {
		t.Errorf("no group in\n%s", out)
	}
	if _, out, _ := program(t, world, "run --seeds 200 --ops 50"); strings.Contains(out, "like this") {
		t.Errorf("groups after the first violation:\n%s", out)
	}
}

func TestJUnit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.xml")
	read := func(args string, world func() simulator) junitSuite {
		t.Helper()
		program(t, world, args+" --junit "+file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s junitSuites
		if err := xml.Unmarshal(text, &s); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return s.Suite
	}
	violates := map[uint64]string{4: "offset 4 is gone <&>\nfiles", 6: "offset 6 is gone <&>\nfiles", 9: "\x00\"strange\""}
	s := read("run --seeds 20 --all --ops 50", func() simulator { return &planted{violates: violates} })
	if s.Tests != 3 || s.Failures != 2 || s.Errors != 0 || len(s.Cases) != 3 || s.Cases[0].Name != "K1: offset # is gone <&>" ||
		s.Cases[0].Failure.Message != "K1 violated by seed 4 and 1 more: offset 4 is gone <&>" || s.Cases[0].Failure.Type != "K1" ||
		!strings.Contains(s.Cases[0].Failure.Text, "varve-sim replay 4 --profile disk --ops 50") || s.Cases[2].Failure != nil {
		t.Errorf("failures: %+v", s)
	}
	s = read("run --seeds 20", func() simulator { return &planted{} })
	if s.Tests != 2 || s.Failures+s.Errors != 0 || s.Cases[0].Failure != nil || s.Properties[0] != (junitProperty{"seeds", "20"}) {
		t.Errorf("good: %+v", s)
	}
	s = read("run --seeds 100000", func() simulator { return &planted{} })
	if s.Failures != 1 || s.Errors != 0 || s.Cases[1].Failure == nil || !strings.Contains(s.Cases[1].Failure.Message, "sim hang") {
		t.Errorf("marks: %+v", s)
	}
}

// A failure leaves what is needed to look at it elsewhere; as many folders as kinds of failures, up to
// the bound.
func TestArtifacts(t *testing.T) {
	dir := t.TempDir()
	world := func() simulator {
		return &wanting{kinds: []sim.Kind{sim.Append, sim.Crash}, check: "K1", text: func(s *sim.Schedule) string {
			return "gone " + strings.Repeat("again ", int(s.Header.Seed/4))
		}}
	}
	code, _, errOut := program(t, world, "run --seeds 160 --all --artifacts "+dir)
	folders, _ := filepath.Glob(filepath.Join(dir, "K1-seed-*"))
	if code != exitFailed || len(folders) != artifactFolders || !strings.Contains(errOut, "kinds of failures more, without a folder") {
		t.Errorf("exit %d, %d folders\n%s", code, len(folders), errOut)
	}
	for _, folder := range folders {
		seed := strings.TrimPrefix(filepath.Base(folder), "K1-seed-")
		for name, want := range map[string]string{
			"violation.txt": "replay      varve-sim replay " + seed + " --profile disk --ops 0\nshrink      varve-sim shrink " + seed + "\n",
			"build.txt":     "go\tgo1.", "failing.schedule": "\nseed " + seed + "\n", "timeline.txt": "process starts",
			"shrunk.schedule": "\n# 2 events of ", "shrunk-timeline.txt": "process starts",
		} {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s/%s: %v, no %q in\n%.2000s", folder, name, err, want, text)
			}
		}
		text, _ := os.ReadFile(filepath.Join(folder, "shrunk.schedule"))
		if s, err := sim.Parse(text); err != nil || len(s.Events) != 2 {
			t.Errorf("%s: %v\n%s", folder, err, text)
		}
	}
	var b tail
	for i := range 100_000 {
		fmt.Fprintf(&b, "line %d of a long timeline\n", i)
	}
	text := string(b.bytes())
	if len(text) > artifactBytes || !strings.HasSuffix(text, "line 99999 of a long timeline\n") || !strings.HasPrefix(text, "(more than ") {
		t.Errorf("%d bytes, %.80s", len(text), text)
	}
	empty := filepath.Join(dir, "good")
	if code, _, _ := program(t, func() simulator { return &planted{} }, "run --seeds 20 --artifacts "+empty); code != exitOK {
		t.Errorf("exit %d", code)
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("a good run left a folder")
	}
}
