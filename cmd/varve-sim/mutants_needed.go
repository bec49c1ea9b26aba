package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"varve/sim"
	"varve/sim/mutants"
)

// A fault or a checker is needed if some mutant survives without it. A mutant survives what is left
// out if the same seeds detect it less than a neededPart as often.
const neededPart = 4

// A fault can matter only to mutants whose detections it took part in, a checker only to those that it
// caught. neededShare is how many of the detections, in percent: the others would be enough.
const neededShare = 75

// candidates returns what may matter to a mutant.
func (r *mutantRow) candidates() []string {
	often := func(n uint64) bool { return 100*n >= neededShare*r.Detections }
	var names []string
	for _, fault := range sim.WithoutFaults() {
		if mark := sim.WithoutMark(fault); mark != "" && often(uint64(r.Struck[mark])) {
			names = append(names, fault)
		}
	}
	for _, check := range sim.WithoutChecks() {
		if often(r.Checks[check]) {
			names = append(names, sim.CheckPrefix+check)
		}
	}
	return names
}

// measureWithout runs a mutant again with each fault and each checker left out that may matter to it.
func (c *mutantsCommand) measureWithout(ctx context.Context, program string, m *mutants.Mutant, row *mutantRow, l lab) error {
	t := trial{seeds: row.Seeds, detections: max(1, row.Detections/neededPart), ops: m.Ops}
	for _, name := range row.candidates() {
		t.without = name
		r, err := l.run(ctx, program, t)
		if err != nil {
			return fmt.Errorf("without %s: %w", name, err)
		}
		if r.Violations < t.detections {
			row.Survives = append(row.Survives, name)
		}
	}
	return nil
}

// printNeeded lists, for each fault and each checker, the mutants that survive without it.
func (c *mutantsCommand) printNeeded(s *streams, rows []*mutantRow) {
	if c.Markdown {
		fmt.Fprintln(s.out, "\n| left out | mutants that then survive |\n|---|---|")
	}
	var names []string
	for _, fault := range sim.WithoutFaults() {
		if sim.WithoutMark(fault) != "" {
			names = append(names, fault)
		}
	}
	for _, check := range sim.WithoutChecks() {
		names = append(names, sim.CheckPrefix+check)
	}
	for _, name := range names {
		var survive []string
		for _, r := range rows {
			if slices.Contains(r.Survives, name) {
				survive = append(survive, r.Name)
			}
		}
		list := strings.Join(survive, ", ")
		if len(survive) == 0 {
			list = "none"
		}
		if c.Markdown {
			fmt.Fprintf(s.out, "| %s | %s |\n", strings.TrimPrefix(name, sim.CheckPrefix), list)
		} else {
			fmt.Fprintf(s.out, "without %-24s survive: %s\n", name, list)
		}
	}
}
