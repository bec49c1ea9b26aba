//go:build !mutant

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"varve/sim"
	"varve/sim/mutants"
)

// A fault or a checker is needed if some mutant survives without it. A mutant survives what is left
// out if the same seeds detect it less than a neededPart as often.
const neededPart = 4

// provable reports whether there are detections enough to say what is needed.
func (c *mutantsCommand) provable() bool { return c.Detections >= neededPart }

// needProof is what proves that a mutant survives without a fault or a checker.
type needProof struct {
	Name    string `json:"name"`
	Beside  string `json:"beside,omitempty"` // what else is left out, with it and without
	Found   uint64 `json:"found"`            // in so many seeds
	Seeds   uint64 `json:"seeds"`
	Without uint64 `json:"without"` // found in the same seeds with it left out
}

func (n needProof) String() string {
	if n.Beside == "" {
		return n.Name
	}
	return n.Name + " beside " + n.Beside
}

// proveNeeds proves that a mutant survives without each fault and each checker that its file names. r is
// the run of it, which compares. Where others would find it too, both what it is held against and the
// proof do without those.
func (c *mutantsCommand) proveNeeds(ctx context.Context, row *mutantRow, r *reportJSON, m *mutants.Mutant, l lab) error {
	if !c.provable() {
		return nil
	}
	for _, n := range m.Needs {
		held, text := r, n.Name
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
			text += " beside " + strings.Join(n.Beside, " ")
		}
		left, ok := held.Compared[n.Name]
		switch {
		case !ok:
			return fmt.Errorf("ends its process, so that nobody can say whether it needs %s", text)
		case left >= max(1, held.Violations/neededPart):
			return fmt.Errorf("does not need %s: found %d times in %s seeds without", text, left, group(held.Seeds))
		}
		row.Needs = append(row.Needs, needProof{Name: n.Name, Beside: strings.Join(n.Beside, " "), Found: held.Violations, Seeds: held.Seeds, Without: left})
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

// needList lists every fault and every checker.
func needList() []string {
	var all []string
	for _, fault := range sim.WithoutFaults() {
		if sim.IsFault(fault) {
			all = append(all, fault)
		}
	}
	for _, check := range sim.WithoutChecks() {
		all = append(all, sim.CheckPrefix+check)
	}
	return all
}

// needsTable prints which mutants survive without each fault and each checker.
func needsTable(w io.Writer, rows []*mutantRow) {
	fmt.Fprintln(w, "\n| fault or checker | without it survives | left out beside | found | and without |\n|---|---|---|---|---|")
	for _, name := range needList() {
		for _, r := range rows {
			for _, n := range r.Needs {
				if n.Name != name {
					continue
				}
				fmt.Fprintf(w, "| %s | %s | %s | %d in %s | %d |\n", strings.TrimPrefix(name, sim.CheckPrefix), r.Name,
					strings.ReplaceAll(n.Beside, sim.CheckPrefix, ""), n.Found, group(n.Seeds), n.Without)
			}
		}
	}
}
