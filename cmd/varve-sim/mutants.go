//go:build !mutant

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"varve/sim/mutants"
)

type mutantsCommand struct {
	Only        []string `placeholder:"PATTERN" help:"Only mutants whose name contains one of these, or matches it as a pattern (* ? [])."`
	Seeds       uint64   `default:"1000000" placeholder:"N" help:"Seeds of a landing: a mutant has to be detected often enough within them."`
	ColdSeeds   uint64   `default:"300000" placeholder:"N" help:"Seeds of a landing that have a bucket, for mutants whose profile is cold."`
	BrokerSeeds uint64   `default:"200000" placeholder:"N" help:"Seeds of a landing that have a node, for mutants whose profile is broker."`
	WarmSeeds   uint64   `default:"300000" placeholder:"N" help:"Seeds of a landing that have a Valkey server, for mutants whose profile is warm or tiers."`
	Detections  uint64   `default:"20" placeholder:"N" help:"What is often enough; the run of a mutant ends there."`
	Sure        bool     `help:"End the run of a mutant as soon as the lower bound of its rate is enough, unless its file says what it needs."`
	Workers     int      `default:"0" placeholder:"W" help:"Mutants that are built and run at the same time; 0: one for each core. The result does not depend on it."`
	Meta        uint64   `default:"0" placeholder:"N" help:"Also prove, with each mutant built in, that N seeds are the same run twice."`
	Shrink      bool     `help:"Also shrink the first failure of each mutant; it has to become a few events, which fail only with the bug."`
	JSON        bool     `name:"json" xor:"form" help:"Print JSON."`
	Markdown    bool     `xor:"form" help:"Print the tables of docs/evidence.md."`
}

// Validate checks ranges. kong calls it after parsing.
func (c *mutantsCommand) Validate() error {
	switch {
	case c.Seeds < 1:
		return errors.New("--seeds 0: want at least 1")
	case c.ColdSeeds < 1:
		return errors.New("--cold-seeds 0: want at least 1")
	case c.WarmSeeds < 1:
		return errors.New("--warm-seeds 0: want at least 1")
	case c.Detections < 1:
		return errors.New("--detections 0: want at least 1")
	case c.Workers < 0 || c.Workers > 4096:
		return fmt.Errorf("--workers %d: want 1 to 4096, or 0 for one for each core", c.Workers)
	}
	for _, pattern := range c.Only {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("--only %q: %w", pattern, err)
		}
	}
	return nil
}

// Run plants one bug at a time and reports how well the simulator finds each.
func (c *mutantsCommand) Run(ctx context.Context, s *streams) error {
	root, err := mutants.Root()
	if err != nil {
		return err
	}
	list, err := mutants.Load(os.DirFS(filepath.Join(root, filepath.FromSlash(mutants.Dir))))
	if err != nil {
		return err
	}
	if list = c.only(list); len(list) == 0 {
		return fmt.Errorf("--only %s: no mutant of that name in %s", strings.Join(c.Only, ","), mutants.Dir)
	}
	dir, err := os.MkdirTemp("", "varve-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	lab, err := newSourceLab(root, dir, c.Workers)
	if err != nil {
		return err
	}
	if err := lab.control(ctx); err != nil {
		return err
	}
	return c.gate(ctx, s, list, lab)
}

// only returns the mutants that were asked for.
func (c *mutantsCommand) only(list []*mutants.Mutant) []*mutants.Mutant {
	if len(c.Only) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(m *mutants.Mutant) bool {
		return !slices.ContainsFunc(c.Only, func(pattern string) bool {
			match, _ := path.Match(pattern, m.Name)
			return match || strings.Contains(m.Name, pattern)
		})
	})
}

// lab builds a mutant and runs seeds against it.
type lab interface {
	build(ctx context.Context, m *mutants.Mutant) (program string, err error)
	run(ctx context.Context, program string, t trial) (*reportJSON, error)
	meta(ctx context.Context, program, profile string, seeds uint64) error
	shrink(ctx context.Context, program string, m *mutants.Mutant, seed uint64) (*shrinkJSON, error)
	costOf(program string) cost
}

// trial is one run of a mutant.
type trial struct {
	from, seeds, detections uint64
	ops                     int
	profile                 string
	without                 string   // "": nothing
	compare                 []string // what is left out besides, each by itself, in a second run of seeds
}

// gate measures each mutant and fails if the simulator does not find it.
func (c *mutantsCommand) gate(ctx context.Context, s *streams, list []*mutants.Mutant, l lab) error {
	p := newProgress(s.err, "mutants", uint64(len(list)), 0)
	p.at(0)
	var rows []*mutantRow
	for row := range c.measureAll(ctx, list, l) {
		p.done()
		rows = append(rows, row)
		if c.JSON || c.Markdown { // the output comes at the end; the work takes minutes
			row.text(s.err)
		} else {
			row.text(s.out)
			_ = s.out.Flush() // run reports the error of the last one
		}
		p.at(uint64(len(rows)))
	}
	p.done()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped after %d of %d mutants: %w", len(rows), len(list), err)
	}
	slices.SortFunc(rows, func(a, b *mutantRow) int { return strings.Compare(a.Name, b.Name) })
	return c.report(s, rows)
}

// report prints what was asked for, and one line for each mutant that fails.
func (c *mutantsCommand) report(s *streams, rows []*mutantRow) error {
	switch {
	case c.JSON:
		if err := printJSON(s, rows); err != nil {
			return err
		}
	case c.Markdown:
		markdown(s, rows)
	}
	tooLong := c.reportShrunk(s, rows)
	failed := 0
	for _, row := range rows {
		if row.Failure != "" {
			failed++
			s.note("varve-sim: mutant %s %s", row.Name, row.Failure)
		}
	}
	if failed > 0 {
		s.note("varve-sim: %d of %d mutants fail", failed, len(rows))
		return failure{errors.New("mutants fail")}
	}
	if !c.JSON && !c.Markdown {
		times := ""
		if c.Sure {
			times = "surely "
		}
		var sum cost
		for _, row := range rows {
			sum.add(row.Cost)
		}
		fmt.Fprintf(s.out, "processor time: builds %.0f s, runs %.0f s\n", sum.Build, sum.Run)
		fmt.Fprintf(s.out, "%d of %d mutants pass: each is %sfound %d times within %s seeds, %s of a log with a bucket, %s with a Valkey server, or proven equivalent and not found\n",
			len(rows), len(rows), times, c.Detections, group(c.Seeds), group(c.ColdSeeds), group(c.WarmSeeds))
	}
	return tooLong
}

// measureAll measures mutants, some at a time. Rows come as they are ready.
func (c *mutantsCommand) measureAll(ctx context.Context, list []*mutants.Mutant, l lab) <-chan *mutantRow {
	todo, rows := make(chan *mutants.Mutant, len(list)), make(chan *mutantRow)
	for _, m := range slices.Backward(list) { // the last ones, of the old logs, take longest
		todo <- m
	}
	close(todo)
	var running sync.WaitGroup
	for range max(1, min(c.Workers, len(list))) {
		running.Go(func() {
			for m := range todo {
				if row := c.measure(ctx, m, l); ctx.Err() == nil {
					rows <- row
				}
			}
		})
	}
	go func() {
		running.Wait()
		close(rows)
	}()
	return rows
}

// landing returns how many seeds of a profile a landing runs.
func (c *mutantsCommand) landing(profile string) uint64 {
	switch profile {
	case mutants.Cold:
		return c.ColdSeeds
	case mutants.Warm, mutants.Tiers:
		return c.WarmSeeds
	case mutants.Broker:
		return c.BrokerSeeds
	}
	return c.Seeds
}

// An equivalent mutant runs a part of the seeds: nothing is to be found, and all would take long.
const equivalentPart = 10

// measure builds one mutant and runs it until it is detected often enough.
func (c *mutantsCommand) measure(ctx context.Context, m *mutants.Mutant, l lab) *mutantRow {
	row := &mutantRow{Name: m.Name, What: m.What, Breaks: m.Breaks, Equivalent: m.Equivalent != "", Profile: m.Profile}
	program, err := l.build(ctx, m)
	if err != nil {
		row.Failure = err.Error()
		return row
	}
	row.program, row.ops = program, m.Ops
	defer func() { row.Cost = l.costOf(program) }()
	r, t, err := c.find(ctx, m, program, l)
	if err != nil {
		row.Failure = err.Error()
		return row
	}
	row.take(r, t)
	row.judge(c)
	if row.Failure == "" {
		if err := c.proveNeeds(ctx, row, r, m, l); err != nil {
			row.Failure = err.Error()
		}
	}
	if c.Meta > 0 && row.Checks["hang"]+row.Checks["crash"] == 0 && row.Failure == "" {
		if err := l.meta(ctx, program, m.Profile, c.Meta); err != nil {
			row.Failure = "meta: " + err.Error()
		}
	}
	if c.Shrink && row.Failure == "" {
		if err := row.measureShrunk(ctx, program, m, l); err != nil {
			row.Failure = err.Error()
		}
	}
	return row
}
