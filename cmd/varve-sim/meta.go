package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"varve/sim"
)

type metaCommand struct{ seedRange }

// footprint is all that a run leaves behind, for comparison.
type footprint struct {
	Seed   uint64
	Hash   uint64
	Hashes []uint64 // one for each sim.HashEvery events
	Result string
}

func footprintOf(w simulator, s *sim.Schedule) footprint {
	r := w.Run(s)
	return footprint{Seed: s.Header.Seed, Hash: r.Hash, Hashes: append([]uint64(nil), w.Hashes()...), Result: fmt.Sprintf("%+v", *r)}
}

// equal reports whether two runs were the same.
func (f *footprint) equal(o *footprint) bool {
	return f.Hash == o.Hash && f.Result == o.Result && f.firstDifference(o) < 0 && len(f.Hashes) == len(o.Hashes)
}

// firstDifference returns the index of the first hash that differs, -1 if none of those that both
// have does.
func (f *footprint) firstDifference(o *footprint) int {
	for i := range min(len(f.Hashes), len(o.Hashes)) {
		if f.Hashes[i] != o.Hashes[i] {
			return i
		}
	}
	return -1
}

// Run runs each seed in a fresh world, in one that all seeds before have used, and in another
// process with another GOMAXPROCS, and compares them.
func (c *metaCommand) Run(ctx context.Context, s *streams) error {
	other := 1
	if runtime.GOMAXPROCS(0) == 1 {
		other = 2
	}
	child, err := c.start(ctx, other)
	if err != nil {
		return err
	}
	p := newProgress(s.err, "seeds", c.Seeds, 0)
	dirty := s.world()
	var schedule sim.Schedule
	err = func() error {
		defer p.done()
		for i := range c.Seeds {
			if err := ctx.Err(); err != nil {
				return err
			}
			sim.ExpandMix(&schedule, mixOf(c.Profile), c.From+i, c.Ops)
			here := footprintOf(s.world(), &schedule)
			again := footprintOf(dirty, &schedule)
			if !here.equal(&again) {
				return c.diverged(ctx, s, &here, &again, "a fresh world", "a used world", 0)
			}
			there, err := child.next()
			if err != nil {
				return err
			}
			if !here.equal(there) {
				return c.diverged(ctx, s, &here, there, "this process", fmt.Sprintf("another process, GOMAXPROCS=%d", other), other)
			}
			if i%16 == 0 {
				p.at(i)
			}
		}
		return nil
	}()
	err = errors.Join(err, child.stop(err == nil))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s seeds from %d on, each run 3 times (fresh world, used world, another process with GOMAXPROCS=%d instead of %d): "+
		"all hashes equal, also after each %d events\n", group(c.Seeds), c.From, other, runtime.GOMAXPROCS(0), sim.HashEvery)
	return nil
}

// diverged says where two runs of a seed part ways. procs is the GOMAXPROCS of the process in which
// the second one ran, 0 for this one.
func (c *metaCommand) diverged(ctx context.Context, s *streams, a, b *footprint, inA, inB string, procs int) error {
	s.note("seed %d is not the same run twice: hash %016x in %s, %016x in %s", a.Seed, a.Hash, inA, b.Hash, inB)
	switch i := a.firstDifference(b); {
	case i >= 0:
		s.note("first divergence: after event %d, and not later than event %d", i*sim.HashEvery, (i+1)*sim.HashEvery)
	case len(a.Hashes) != len(b.Hashes) || a.Hash != b.Hash:
		s.note("first divergence: after event %d", min(len(a.Hashes), len(b.Hashes))*sim.HashEvery)
	default:
		s.note("the hashes are equal, the results are not:\n  %s\n  %s", a.Result, b.Result)
	}
	if procs > 0 {
		mine, _ := traced(mixOf(c.Profile), a.Seed, c.Ops)
		theirs, err := timelineElsewhere(ctx, mixOf(c.Profile), a.Seed, c.Ops, procs)
		if err != nil {
			s.note("its timeline there: %v", err)
		} else if n, mine, theirs := firstLine(mine, theirs); n > 0 {
			s.note("first line that differs, %d:\n  here  %s\n  there %s", n, mine, theirs)
		}
	}
	first := a.Seed
	if procs == 0 { // it may take the seeds before to use the world
		first = c.From
	}
	s.note("varve-sim meta --profile %s --seeds %d --from %d --ops %d", mixOf(c.Profile), a.Seed-first+1, first, c.Ops)
	return failure{errors.New("diverged")}
}

// firstLine returns the number of the first line in which two texts differ, 0 for none, and both.
func firstLine(a, b string) (n int, lineA, lineB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		lineA, lineB = "(the end)", "(the end)"
		if i < len(as) {
			lineA = as[i]
		}
		if i < len(bs) {
			lineB = bs[i]
		}
		if lineA != lineB {
			return i + 1, lineA, lineB
		}
	}
	return 0, "", ""
}

// timelineElsewhere returns the timeline of a seed as another process runs it.
func timelineElsewhere(ctx context.Context, mix sim.Mix, seed uint64, ops, procs int) (string, error) {
	cmd, err := self(ctx, "meta-child", "--timeline", "--seeds=1", fmt.Sprintf("--from=%d", seed), fmt.Sprintf("--ops=%d", ops),
		"--profile="+mix.String())
	if err != nil {
		return "", err
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", procs))
	out, err := cmd.Output()
	return string(out), err
}

// childEnv tells a test binary that it was started as this program.
const childEnv = "VARVE_SIM_CHILD"

// self returns this program as a command.
func self(ctx context.Context, args ...string) (*exec.Cmd, error) {
	name, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// metaChild is the other process.
type metaChild struct {
	cmd *exec.Cmd
	out io.ReadCloser
	in  *gob.Decoder
}

func (c *metaCommand) start(ctx context.Context, procs int) (*metaChild, error) {
	cmd, err := self(ctx, "meta-child", "--seeds="+strconv.FormatUint(c.Seeds, 10), "--from="+strconv.FormatUint(c.From, 10),
		fmt.Sprintf("--ops=%d", c.Ops), "--profile="+mixOf(c.Profile).String())
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", procs))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &metaChild{cmd: cmd, out: out, in: gob.NewDecoder(out)}, nil
}

func (m *metaChild) next() (*footprint, error) {
	var f footprint
	if err := m.in.Decode(&f); err != nil {
		return nil, fmt.Errorf("the other process: %w", err)
	}
	return &f, nil
}

// stop waits for the process, which is killed unless it has done its work.
func (m *metaChild) stop(finished bool) error {
	if !finished {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		return nil
	}
	if err := m.cmd.Wait(); err != nil {
		return fmt.Errorf("the other process: %w", err)
	}
	return nil
}

// metaChildCommand is what meta starts in another process: it runs the seeds and writes footprints,
// or the timeline of the first one.
type metaChildCommand struct {
	seedRange
	Timeline bool
}

// Run writes to standard output.
func (c *metaChildCommand) Run(s *streams) error {
	if c.Timeline {
		timeline, _ := traced(mixOf(c.Profile), c.From, c.Ops)
		_, err := s.out.WriteString(timeline)
		return err
	}
	w, out := s.world(), gob.NewEncoder(s.out)
	var schedule sim.Schedule
	for i := range c.Seeds {
		sim.ExpandMix(&schedule, mixOf(c.Profile), c.From+i, c.Ops)
		f := footprintOf(w, &schedule)
		if err := out.Encode(&f); err != nil {
			return err
		}
	}
	return nil
}
