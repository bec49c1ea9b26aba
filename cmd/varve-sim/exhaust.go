//go:build !mutant

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"varve/sim"
)

type exhaustCommand struct {
	Ops     int    `default:"2" placeholder:"K" help:"Most operations of a sequence."`
	Minutes int    `default:"0" placeholder:"M" help:"Stop after so many minutes, however far it has come; 0: go on to the end."`
	Workers int    `default:"0" placeholder:"W" help:"Sequences that are gone through at the same time; 0: one for each core. The result does not depend on it."`
	JSON    bool   `name:"json" help:"Print JSON."`
	Replay  string `placeholder:"CASE" help:"Run one case again, as a violation named it, and print the timeline."`
}

// Validate checks ranges.
func (c *exhaustCommand) Validate() error {
	switch {
	case c.Ops < 0 || c.Ops > sim.SmallOpsMax:
		return fmt.Errorf("--ops %d: want 0 to %d", c.Ops, sim.SmallOpsMax)
	case c.Minutes < 0 || c.Minutes > 1<<20:
		return fmt.Errorf("--minutes %d: want 0 or more, at most 2 years", c.Minutes)
	case c.Workers < 0 || c.Workers > 4096:
		return fmt.Errorf("--workers %d: want 1 to 4096, or 0 for one for each core", c.Workers)
	}
	return nil
}

// Run goes through the scope and reports.
func (c *exhaustCommand) Run(ctx context.Context, s *streams) error {
	if c.Replay != "" {
		return c.replay(s)
	}
	e := exhaust{scope: sim.Scope{Ops: c.Ops}, workers: c.Workers, limit: time.Duration(c.Minutes) * time.Minute}
	if e.workers == 0 {
		e.workers = runtime.GOMAXPROCS(0)
	}
	e.workers = min(e.workers, e.scope.Len())
	e.run(ctx, newProgress(s.err, "sequences", uint64(e.scope.Len()), e.limit))
	if c.JSON {
		if err := e.json(s); err != nil {
			return err
		}
	} else {
		e.text(s)
	}
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	if e.found != nil {
		s.note("VIOLATION of %s by %s: %s", e.found.Check, e.found.String(), e.found.Text)
		s.note("%s", replayLine(e.found))
		return failure{errors.New("violated")}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped after %s of %s sequences: %w", group(e.done), group(e.scope.Len()), err)
	}
	return nil
}

func replayLine(f *sim.Found) string {
	return fmt.Sprintf("varve-sim exhaust --replay '%s'", f.String())
}

// replay runs one case with its timeline.
func (c *exhaustCommand) replay(s *streams) error {
	what, err := sim.ParseCase(c.Replay)
	if err != nil {
		return err
	}
	found, ok := sim.NewExplorer(nil).Replay(what, s.out)
	switch {
	case found != nil:
		fmt.Fprintf(s.out, "outcome     VIOLATION of %s: %s\n", found.Check, found.Text)
		return failure{errors.New("violated")}
	case !ok:
		return fmt.Errorf("%s: the sequence has no such crash point; it was named by another version", what.String())
	}
	fmt.Fprintln(s.out, "outcome     good")
	return nil
}

// ofLength returns how many sequences of each length a scope has, and how many of them were gone
// through, if it was in order.
func (e *exhaust) ofLength() (all, done []int) {
	before := 0
	for k := range e.scope.Ops + 1 {
		n := sim.Scope{Ops: k}.Len() - before
		before += n
		all, done = append(all, n), append(done, e.lengths[k])
	}
	return all, done
}

func (e *exhaust) covered() string {
	if e.done == e.scope.Len() {
		return fmt.Sprintf("the whole scope: all %s sequences", group(e.done))
	}
	all, done := e.ofLength()
	var words []string
	for k := range all {
		words = append(words, fmt.Sprintf("%s of %s with %d operations", group(done[k]), group(all[k]), k))
	}
	return "a part: " + strings.Join(words, ", ")
}

func (e *exhaust) text(s *streams) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(s.out, "%-12s"+format+"\n", append([]any{what}, args...)...)
	}
	n := &e.counts
	line("scope", "every sequence of up to %d of %d operations: %s", e.scope.Ops, sim.SmallOps, strings.Join(sim.SmallOpNames(), ", "))
	line("", "under %s", strings.Join(sim.SmallConfigs[:], ", "))
	line("covered", "%s", e.covered())
	line("points", "%s in sequences, the first open included, %s after a crash, in recovery and in one more operation: before each",
		group(n.Points[0]), group(n.Points[1]))
	line("", "file-system call, inside each write at each sector boundary, after each step before the log hears of it, and at rest")
	line("crashes", "%s in sequences, %s after a crash: the kill, and the power loss with each subset of dirty sectors, sizes and names",
		group(n.Images[0]), group(n.Images[1]))
	line("sampled", "%s points in sequences, %s after a crash have more than %s images: %s of each were taken",
		group(n.Sampled[0]), group(n.Sampled[1]), group(sim.ImagesMax), group(sim.ImagesMax))
	line("states", "%s different ones after one crash, %s after two, each opened, read and judged; recovered, they are %s and %s,",
		group(n.States[sim.CrashedOnce]), group(n.States[sim.CrashedTwice]), group(n.States[sim.RecoveredOnce]), group(n.States[sim.RecoveredTwice]))
	line("", "each appended to and closed; those after one crash once more for each operation")
	line("hash", "%016x of all states", e.digest)
	line("time", "%.1f s, %d workers, %.1f s of CPU time", e.wall.Seconds(), e.workers, e.cpu.Seconds())
	line("violations", "%d", e.violations())
}

func (e *exhaust) violations() int {
	if e.found != nil {
		return 1
	}
	return 0
}

// exhaustJSON is what --json prints. Of pairs the first counts crashes of sequences, the second
// crashes of the recoveries after them.
type exhaustJSON struct {
	Ops        int               `json:"ops"`
	Alphabet   []string          `json:"operations"`
	Configs    []string          `json:"configurations"`
	Whole      bool              `json:"whole"`
	Sequences  int               `json:"sequences"`
	Done       int               `json:"sequences_done"`
	Lengths    []int             `json:"sequences_done_by_length"`
	Points     [2]int64          `json:"crash_points"`
	Crashes    [2]int64          `json:"crashes"`
	Sampled    [2]int64          `json:"sampled_points"`
	ImagesMax  int               `json:"images_max"`
	States     [2]int64          `json:"states"`
	Recovered  [2]int64          `json:"recovered_states"`
	Hash       string            `json:"hash"`
	Workers    int               `json:"workers"`
	Seconds    float64           `json:"seconds"`
	CPUSeconds float64           `json:"cpu_seconds"`
	Violations int               `json:"violations"`
	First      *exhaustFoundJSON `json:"first_violation,omitempty"`
}

type exhaustFoundJSON struct {
	Case     string `json:"case"`
	Property string `json:"property"`
	Text     string `json:"text"`
	Replay   string `json:"replay"`
}

func (e *exhaust) json(s *streams) error {
	_, done := e.ofLength()
	out := exhaustJSON{
		Ops: e.scope.Ops, Alphabet: sim.SmallOpNames(), Configs: sim.SmallConfigs[:], Whole: e.done == e.scope.Len(),
		Sequences: e.scope.Len(), Done: e.done, Lengths: done, Points: e.counts.Points, Crashes: e.counts.Images,
		Sampled: e.counts.Sampled, ImagesMax: sim.ImagesMax, Hash: fmt.Sprintf("%016x", e.digest),
		Workers: e.workers, Seconds: e.wall.Seconds(), CPUSeconds: e.cpu.Seconds(), Violations: e.violations(),
	}
	n := &e.counts.States
	out.States = [2]int64{n[sim.CrashedOnce], n[sim.CrashedTwice]}
	out.Recovered = [2]int64{n[sim.RecoveredOnce], n[sim.RecoveredTwice]}
	if f := e.found; f != nil {
		out.First = &exhaustFoundJSON{f.String(), f.Check, f.Text, replayLine(f)}
	}
	j := json.NewEncoder(s.out)
	j.SetIndent("", "  ")
	return j.Encode(&out)
}
