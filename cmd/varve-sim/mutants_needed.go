//go:build !mutant

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"varve/sim"
	"varve/sim/mutants"
)

// A fault or a checker is needed if some mutant survives without it. A mutant survives what is left
// out if the same seeds detect it less than a neededPart as often.
const neededPart = 4

// A fault can matter only to mutants whose detections it took part in, a checker only to those that it
// caught. neededShare is how many of the detections, in percent: the others would be enough.
const neededShare = 75

// neededMutants is how many survivors are looked for: one proves the need, some show what it is.
const neededMutants = 3

// provable reports whether there are detections enough to say what is needed.
func (c *mutantsCommand) provable() bool { return c.Detections >= neededPart }

// proveNeeds proves that a mutant survives without each fault and each checker that its file names. r is
// the run of it, which compares. Where others would find it too, both what it is held against and the
// proof do without those.
func (c *mutantsCommand) proveNeeds(ctx context.Context, row *mutantRow, r *reportJSON, m *mutants.Mutant, l lab) error {
	if !c.provable() {
		return nil
	}
	for _, n := range m.Needs {
		held, name := r, n.Name
		if len(n.Beside) > 0 {
			beside := strings.Join(besideOf(n), ",")
			t := trial{seeds: c.landing(m.Profile), detections: c.Detections, ops: row.ops, profile: m.Profile, without: beside, compare: []string{n.Name}}
			var ran *trial
			var err error
			held, ran, err = c.compare(ctx, t, row.program, l)
			switch {
			case err != nil:
				return err
			case held.Violations < ran.detections:
				return fmt.Errorf("is not found without %s: %d times in %s seeds", beside, held.Violations, group(held.Seeds))
			}
			name += " beside " + strings.Join(n.Beside, " ")
		}
		left, ok := held.Compared[n.Name]
		switch {
		case !ok:
			return fmt.Errorf("ends its process, so that nobody can say whether it needs %s", name)
		case left >= max(1, held.Violations/neededPart):
			return fmt.Errorf("does not need %s: found %d times in %s seeds without", name, left, group(held.Seeds))
		}
		row.Needs = append(row.Needs, name)
	}
	return nil
}

// otherCheckers stands for all checkers but the one at hand.
const otherCheckers = "checkers"

// besideOf lists what is left out beside a fault or a checker.
func besideOf(n mutants.Need) []string {
	if !slices.Equal(n.Beside, []string{otherCheckers}) {
		return n.Beside
	}
	var others []string
	for _, check := range sim.WithoutChecks() {
		if name := sim.CheckPrefix + check; name != n.Name {
			others = append(others, name)
		}
	}
	return others
}

// need is what was found about one fault or checker.
type need struct {
	Name     string
	Tried    int      // mutants to which it might matter
	Survived []string // of those, without it
	mark     string   // of a fault
	err      error
}

// needList lists every fault and every checker.
func needList() []*need {
	var all []*need
	for _, fault := range sim.WithoutFaults() {
		if mark := sim.WithoutMark(fault); mark != "" {
			all = append(all, &need{Name: fault, mark: mark})
		}
	}
	for _, check := range sim.WithoutChecks() {
		all = append(all, &need{Name: sim.CheckPrefix + check})
	}
	return all
}

// matters reports whether it may matter to a mutant.
func (n *need) matters(r *mutantRow) bool {
	took := r.Checks[strings.TrimPrefix(n.Name, sim.CheckPrefix)]
	if n.mark != "" {
		took = uint64(r.Struck[n.mark])
	}
	return r.Failure == "" && r.Detections > 0 && 100*took >= neededShare*r.Detections
}

// need leaves each fault and each checker out in turn and runs the mutants to which it may matter,
// those that are found soonest first, until some survive.
func (c *mutantsCommand) need(ctx context.Context, s *streams, rows []*mutantRow, l lab) ([]*need, error) {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b *mutantRow) int { return cmp.Compare(a.Seeds, b.Seeds) })
	all := needList()
	todo, done := make(chan *need, len(all)), make(chan *need, len(all))
	for _, n := range all {
		todo <- n
	}
	close(todo)
	var running sync.WaitGroup
	for range max(1, c.Workers) {
		running.Go(func() {
			for n := range todo {
				n.err = n.find(ctx, rows, l)
				done <- n
			}
		})
	}
	p := newProgress(s.err, "faults and checkers", uint64(len(all)), 0)
	var errs error
	for i := range all {
		errs = errors.Join(errs, (<-done).err)
		p.at(uint64(i + 1))
	}
	p.done()
	running.Wait()
	for _, n := range all {
		for _, row := range rows {
			if slices.Contains(n.Survived, row.Name) {
				row.Survives = append(row.Survives, n.Name)
			}
		}
	}
	return all, errs
}

func (n *need) find(ctx context.Context, rows []*mutantRow, l lab) error {
	for _, row := range rows {
		if !n.matters(row) || len(n.Survived) == neededMutants {
			continue
		}
		t := trial{seeds: row.Seeds, detections: max(1, row.Detections/neededPart), ops: row.ops, profile: row.Profile, without: n.Name}
		r, err := l.run(ctx, row.program, t)
		if err != nil {
			return fmt.Errorf("mutant %s without %s: %w", row.Name, n.Name, err)
		}
		n.Tried++
		if r.Violations < t.detections {
			n.Survived = append(n.Survived, row.Name)
		}
	}
	return nil
}

// printNeeded lists, for each fault and each checker, mutants that survive without it.
func (c *mutantsCommand) printNeeded(s *streams, needs []*need) {
	if c.Markdown {
		fmt.Fprintln(s.out, "\n| left out | tried | mutants that then survive |\n|---|---|---|")
	}
	for _, n := range needs {
		list := cmp.Or(strings.Join(n.Survived, ", "), "none")
		if c.Markdown {
			fmt.Fprintf(s.out, "| %s | %d | %s |\n", strings.TrimPrefix(n.Name, sim.CheckPrefix), n.Tried, list)
		} else {
			fmt.Fprintf(s.out, "without %-24s survive, of %d tried: %s\n", n.Name, n.Tried, list)
		}
	}
}
