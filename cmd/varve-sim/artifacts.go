package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"varve/sim"
)

// Bounds of what one run leaves behind.
const (
	artifactFolders = 20       // kinds of failures, those of the lowest seeds
	artifactBytes   = 1 << 20  // of a file
	artifactTries   = 30_000   // schedules to try for a small one
	stackBytes      = 64 << 10 // of a panic
)

// artifacts writes a folder for each kind of failure: all that is needed to look at it elsewhere.
func (r *runReport) artifacts(ctx context.Context, s *streams, dir string) error {
	list := r.groups.list()
	if len(list) == 0 {
		return nil
	}
	for _, g := range list[:min(len(list), artifactFolders)] {
		folder := filepath.Join(dir, fmt.Sprintf("%s-seed-%d", g.Lowest.Check, g.Lowest.Seed))
		if err := r.artifact(ctx, g, folder); err != nil {
			return err
		}
		s.note("%s", folder)
	}
	if more := len(list) - artifactFolders; more > 0 {
		s.note("and %d kinds of failures more, without a folder", more)
	}
	return nil
}

func (r *runReport) artifact(ctx context.Context, g *failureGroup, folder string) error {
	v := g.Lowest
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var failed error
	write := func(name string, text []byte) {
		if failed == nil {
			failed = os.WriteFile(filepath.Join(folder, name), text[:min(len(text), artifactBytes)], 0o644)
		}
	}
	var schedule sim.Schedule
	sim.ExpandMix(&schedule, r.job.mix, v.Seed, r.job.ops)
	source := scheduleSource{What: fmt.Sprint(v.Seed), Profile: r.job.mix.String(), Ops: r.job.ops, Without: r.job.without}
	text := fmt.Sprintf("property    %s\nseed        %d, the lowest of %d that fail like this\nlike this   %s\nreplay      %s\nshrink      varve-sim shrink %s\n\n%s\n",
		v.Check, v.Seed, g.Count, signature(v.Check, v.Text), v.replay(r.job), source.words(), v.Text)
	if v.Stack != "" {
		text += "\n" + v.Stack[:min(len(v.Stack), stackBytes)]
	}
	write("violation.txt", []byte(text))
	write("build.txt", []byte(buildText()))
	write("failing.schedule", schedule.AppendText(nil))
	if v.Check == checkHang { // it would hang again
		return failed
	}
	write("timeline.txt", r.timeline(&schedule))
	m := minimizer{world: r.world, tries: artifactTries}
	small, err := m.run(ctx, &schedule)
	switch {
	case errors.Is(err, errGood):
		write("shrunk.txt", []byte("run alone, the seed violates nothing: the run is not the same each time\n"))
		return failed
	case err != nil:
		return err
	}
	write("shrunk.schedule", small.text("varve-sim shrink "+source.words()))
	write("shrunk-timeline.txt", r.timeline(small.schedule))
	return failed
}

// timeline runs a schedule again and returns the end of its timeline.
func (r *runReport) timeline(s *sim.Schedule) []byte {
	w := sim.NewWorld()
	leave(w, r.job.without)
	var t tail
	runTraced(w, s, &t)
	return t.bytes()
}

// tail keeps the end of what is written to it: half a file's bytes at least.
type tail struct {
	b   bytes.Buffer
	cut int
}

func (t *tail) Write(b []byte) (int, error) {
	n, _ := t.b.Write(b)
	if over := t.b.Len() - artifactBytes/2; over > artifactBytes/4 {
		t.b.Next(over)
		t.cut += over
	}
	return n, nil
}

func (t *tail) bytes() []byte {
	if t.cut == 0 {
		return t.b.Bytes()
	}
	_, rest, _ := bytes.Cut(t.b.Bytes(), []byte("\n"))
	return append(fmt.Appendf(nil, "(more than %d bytes before this are left out)\n", t.cut), rest...)
}

// buildText says which program this is: toolchain, module, and the revision if it is known.
func buildText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "no build information\n"
	}
	return info.String()
}

// buildLine is the same in a line.
func buildLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	words := []string{info.GoVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOARCH", "GOOS", "vcs.revision", "vcs.modified":
			words = append(words, s.Key+"="+s.Value)
		}
	}
	return strings.Join(words, " ")
}
