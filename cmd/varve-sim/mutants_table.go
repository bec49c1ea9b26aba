//go:build !mutant

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"varve/sim/mutants"
)

// mutantRow is what was measured of one mutant.
type mutantRow struct {
	Name       string            `json:"name"`
	What       string            `json:"what"`
	Breaks     []string          `json:"breaks"`
	Equivalent bool              `json:"equivalent,omitempty"`
	Profile    string            `json:"profile,omitempty"`
	Seeds      uint64            `json:"seeds"`
	First      *uint64           `json:"first_seed,omitempty"`
	Detections uint64            `json:"detections"`
	Rate       float64           `json:"rate"` // detections of 10,000 seeds
	Low        float64           `json:"rate_low"`
	High       float64           `json:"rate_high"`
	Checks     map[string]uint64 `json:"checks,omitempty"`
	Struck     map[string]int64  `json:"marks,omitempty"` // detections in which each mark was reached
	Needs      []needProof       `json:"needs,omitempty"` // of the faults and checkers that its file names
	Shrunk     *shrunk           `json:"shrunk,omitempty"`
	Cost       cost              `json:"cpu_seconds"`
	Failure    string            `json:"failure,omitempty"`

	program string // built with the mutant
	ops     int
}

const perRate = 10_000

func (r *mutantRow) take(report *reportJSON, t *trial) {
	r.Seeds, r.Detections = report.Seeds, report.Violations
	r.Checks, r.Struck = report.ViolationsByCheck, report.Struck
	if report.First != nil {
		r.First = &report.First.Seed
	}
	if r.Seeds > 0 {
		low, high := mutants.Bounds(r.Detections, r.Seeds, r.Detections >= t.detections || r.Seeds < t.seeds)
		r.Rate, r.Low, r.High = perRate*float64(r.Detections)/float64(r.Seeds), perRate*low, perRate*high
	}
}

// judge decides whether the mutant passes: its rate times the seeds of a landing gives detections
// enough, or it is equivalent and was not detected at all.
func (r *mutantRow) judge(c *mutantsCommand) {
	landing := c.landing(r.Profile)
	switch {
	case r.Equivalent && r.Detections > 0:
		r.Failure = fmt.Sprintf("is not equivalent: %s; its proof is wrong", r.caught())
	case r.Equivalent:
	case r.Detections == 0:
		r.Failure = fmt.Sprintf("survives: not found in %s seeds", group(r.Seeds))
	case float64(r.Detections)*float64(landing) < float64(c.Detections)*float64(r.Seeds):
		r.Failure = fmt.Sprintf("is too rare: found %d times in %s seeds, expected %d in %s", r.Detections, group(r.Seeds),
			c.Detections, group(landing))
	}
}

// caught lists the properties that caught it, the most frequent one first.
func (r *mutantRow) caught() string {
	checks := slices.SortedFunc(maps.Keys(r.Checks), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Checks[b], r.Checks[a]), cmp.Compare(a, b))
	})
	for i, check := range checks {
		checks[i] = fmt.Sprintf("%s %s", check, group(r.Checks[check]))
	}
	return strings.Join(checks, ", ")
}

func (r *mutantRow) firstSeed() string {
	if r.First == nil {
		return "-"
	}
	return group(*r.First)
}

// rates are the rate of 10,000 seeds and its bounds.
func (r *mutantRow) rates() (rate, bounds string) {
	digits := func(v float64) string { return fmt.Sprintf("%.3g", v) }
	if v := max(r.Rate, r.High); v >= 100 {
		digits = func(v float64) string { return group(uint64(v + 0.5)) }
	}
	return digits(r.Rate), digits(r.Low) + " - " + digits(r.High)
}

// text prints the row for people.
func (r *mutantRow) text(w io.Writer) {
	if r.Seeds == 0 {
		fmt.Fprintf(w, "%-36s FAIL %s\n", r.Name, r.Failure)
		return
	}
	rate, bounds := r.rates()
	fmt.Fprintf(w, "%-36s %9s seeds, first %9s, %3d found, %s of 10,000 (%s): %s\n", r.Name, group(r.Seeds), r.firstSeed(),
		r.Detections, rate, bounds, cmp.Or(r.caught(), "nothing"))
	fmt.Fprintf(w, "%-36s %.1f s of processor time to build, %.1f s to run\n", "", r.Cost.Build, r.Cost.Run)
	if len(r.Needs) > 0 {
		var names []string
		for _, n := range r.Needs {
			names = append(names, n.String())
		}
		fmt.Fprintf(w, "%-36s needs %s\n", "", strings.Join(names, ", "))
	}
	if r.Shrunk != nil {
		fmt.Fprintf(w, "%-36s shrinks to %d events of %d\n", "", r.Shrunk.Events, r.Shrunk.Of)
	}
	switch {
	case r.Failure != "":
		fmt.Fprintf(w, "%-36s FAIL %s\n", "", r.Failure)
	case r.Equivalent:
		fmt.Fprintf(w, "%-36s equivalent, and not found\n", "")
	}
}

// markdown prints the tables of docs/evidence.md.
func markdown(s *streams, rows []*mutantRow) {
	fmt.Fprintln(s.out, "| mutant | what it does | breaks | seeds | first | found | of 10,000 | 95 % | reported by | shrinks to |\n|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		rate, bounds := r.rates()
		by := cmp.Or(r.caught(), "nothing")
		switch {
		case r.Failure != "":
			by = "FAILS: it " + r.Failure
		case r.Equivalent:
			by = "equivalent: nothing"
		}
		small := "-"
		if r.Shrunk != nil {
			small = fmt.Sprintf("%d of %d", r.Shrunk.Events, r.Shrunk.Of)
		}
		fmt.Fprintf(s.out, "| %s | %s | %s | %s | %s | %d | %s | %s | %s | %s |\n", r.Name, cell(r.What), strings.Join(r.Breaks, " "),
			group(r.Seeds), r.firstSeed(), r.Detections, rate, bounds, cell(by), small)
	}
	needsTable(s.out, rows)
}

// cell makes a text fit into a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

func printJSON(s *streams, rows []*mutantRow) error {
	e := json.NewEncoder(s.out)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}
