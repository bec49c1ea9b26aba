//go:build !mutant

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"varve/sim/mutants"
)

// Limits of the process that runs a mutant: a bug may take all the time and memory there is.
const (
	mutantTime  = time.Hour
	mutantHang  = 20 * time.Second // of one seed, which takes a millisecond
	mutantBytes = 4 << 30          // of address space
)

// controlSeeds are run against the program without a bug, built the same way. What is found in them
// was not planted, and a program that does not even run must not count as a detection.
const controlSeeds = 2000

// simProgram is the command that is built with a bug in it.
const simProgram = "./cmd/varve-sim"

// sourceLab builds mutants from the source tree and runs each in a process of its own.
type sourceLab struct {
	builder mutants.Builder
	dir     string
	workers int
	clean   string // the program without a bug

	lock sync.Mutex
	cost map[string]cost // by program
}

// cost is the processor time that went into a mutant.
type cost struct {
	Build float64 `json:"build"` // seconds
	Run   float64 `json:"run"`
}

func (c *cost) add(o cost) { c.Build, c.Run = c.Build+o.Build, c.Run+o.Run }

// newSourceLab returns a lab for the module in the folder root, which keeps what it makes in dir.
func newSourceLab(root, dir string, workers int) (*sourceLab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	kept := filepath.Join(dir, "kept")
	if err := os.Mkdir(kept, 0o700); err != nil {
		return nil, err
	}
	b := mutants.Builder{Root: root, Command: simProgram, Dir: dir, Tags: []string{mutants.Lean}, Tool: []string{self, "mutant-tool", kept}}
	return &sourceLab{builder: b, dir: dir, workers: workers}, nil
}

// spent adds to what a program has cost.
func (l *sourceLab) spent(program string, c cost) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.cost == nil {
		l.cost = map[string]cost{}
	}
	sum := l.cost[program]
	sum.add(c)
	l.cost[program] = sum
}

// costOf returns what a program has cost so far.
func (l *sourceLab) costOf(program string) cost {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.cost[program]
}

// control runs the program without a bug.
func (l *sourceLab) control(ctx context.Context) error {
	program, err := l.build(ctx, nil)
	if err != nil {
		return fmt.Errorf("without a mutant: %w", err)
	}
	l.clean = program
	for _, profile := range [...]string{mutants.Disk, mutants.Cold, mutants.Warm, mutants.Tiers, mutants.Broker} {
		r, err := l.run(ctx, program, trial{seeds: controlSeeds, detections: 1, profile: profile})
		switch {
		case err != nil:
			return fmt.Errorf("without a mutant: %w", err)
		case r.First != nil:
			return fmt.Errorf("without a mutant: violation of %s by seed %d of %s: %s; mend that first", r.First.Property, r.First.Seed, profile, r.First.Text)
		}
	}
	return nil
}

func (l *sourceLab) build(ctx context.Context, m *mutants.Mutant) (string, error) {
	program, cpu, err := l.builder.Build(ctx, m)
	l.spent(program, cost{Build: cpu.Seconds()})
	return program, err
}

// mutantToolCommand is what the go command calls in place of each of its tools.
type mutantToolCommand struct {
	Line []string `arg:"" passthrough:"" help:"A folder, and the command line of a tool."`
}

// Run passes the exit code of the tool on.
func (c *mutantToolCommand) Run(s *streams) error {
	if code := mutants.Tool(c.Line[0], c.Line[1:], s.out, s.err); code != 0 {
		return failure{fmt.Errorf("exit code %d", code)}
	}
	return nil
}

// run runs a trial. A process that dies without a report is one detection, a crash, if a landing
// would surely meet it: within so few seeds that one detection is often enough.
func (l *sourceLab) run(ctx context.Context, program string, t trial) (*reportJSON, error) {
	r, err := l.process(ctx, program, t)
	if err == nil || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return r, err
	}
	t.seeds = max(1, t.seeds/t.detections)
	if _, again := l.process(ctx, program, t); again == nil {
		return nil, fmt.Errorf("crashes, but not within %s seeds: %w", group(t.seeds), err)
	}
	return &reportJSON{Seeds: t.seeds, Violations: 1, ViolationsByCheck: map[string]uint64{"crash": 1}}, nil
}

// process runs the program once and reads its report.
func (l *sourceLab) process(ctx context.Context, program string, t trial) (*reportJSON, error) {
	ctx, cancel := context.WithTimeout(ctx, mutantTime)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "run", "--json", "--all", fmt.Sprintf("--from=%d", t.from), fmt.Sprintf("--seeds=%d", t.seeds),
		fmt.Sprintf("--detections=%d", t.detections), fmt.Sprintf("--ops=%d", t.ops), fmt.Sprintf("--workers=%d", l.workers),
		fmt.Sprintf("--hang=%v", mutantHang), "--profile="+cmp.Or(t.profile, mutants.Disk))
	if len(t.compare) > 0 {
		cmd.Args = append(cmd.Args, "--compare="+strings.Join(t.compare, ","))
	}
	if t.without != "" {
		cmd.Args = append(cmd.Args, "--without="+t.without)
	}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	limit := unix.Rlimit{Cur: mutantBytes, Max: mutantBytes}
	_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_AS, &limit, nil) // it may have ended already
	err := cmd.Wait()
	l.spent(program, cost{Run: mutants.Used(cmd).Seconds()})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("not ready after %v: %w", mutantTime, ctx.Err())
	}
	var r reportJSON
	if jsonErr := json.Unmarshal(out.Bytes(), &r); jsonErr != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(errOut.String()), "\n")
		return nil, fmt.Errorf("dies without a report: %w: %s", errors.Join(err, jsonErr), line)
	}
	return &r, nil
}

// meta runs the program's meta command.
func (l *sourceLab) meta(ctx context.Context, program, profile string, seeds uint64) error {
	ctx, cancel := context.WithTimeout(ctx, mutantTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "meta", fmt.Sprintf("--seeds=%d", seeds), "--profile="+profile).CombinedOutput()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%w: %s", err, line)
	}
	return nil
}
