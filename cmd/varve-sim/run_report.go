package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"varve/sim"
)

// runReport says what a run found.
type runReport struct {
	*totals
	*job
}

// perCore is seeds per second of CPU time.
func (r *runReport) perCore() float64 { return float64(r.totals.seeds) / max(r.cpu.Seconds(), 1e-9) }

func (r *runReport) perSecond(n uint64) float64 { return float64(n) / max(r.wall.Seconds(), 1e-9) }

func (r *runReport) each(n uint64) float64 { return float64(n) / float64(max(r.totals.seeds, 1)) }

// lost returns the marks whose absence is a failure.
func (r *runReport) lost() []string {
	if r.totals.seeds < marksDue {
		return nil
	}
	return r.missing()
}

// verdict prints the first violation with the line that replays it, and returns the failure.
func (r *runReport) verdict(ctx context.Context, s *streams) error {
	if v := r.first; v != nil {
		if v.Check == "assert" && v.Stack == "" {
			timeline, _ := traced(r.job.mix, v.Seed, r.job.ops)
			v.Stack = stackOf(timeline)
		}
		if v.Stack != "" {
			s.note("%s", strings.TrimSpace(v.Stack))
		}
		s.note("VIOLATION of %s by seed %d: %s", v.Check, v.Seed, v.Text)
		s.note("%s", v.replay(r.job))
		return failure{errors.New("violated")}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped after %s of %s seeds: %w", group(r.totals.seeds), group(r.job.seeds), err)
	}
	if lost := r.lost(); len(lost) > 0 {
		return fmt.Errorf("no seed of %s reached these marks: %s", group(r.totals.seeds), strings.Join(lost, ", "))
	}
	return nil
}

func (r *runReport) text(s *streams) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(s.out, "%-12s"+format+"\n", append([]any{what}, args...)...)
	}
	length := "8 to 1000 operations each"
	if r.job.ops > 0 {
		length = group(r.job.ops) + " operations each"
	}
	n := r.totals.seeds
	which := fmt.Sprintf("from %d on", r.from)
	if r.stride > 1 {
		which += fmt.Sprintf(", each %d-th (shard %s)", r.stride, r.shard)
	}
	line("seeds", "%s %s, %s, %d workers, %.1f s", group(n), which, length, r.workers, r.wall.Seconds())
	line("speed", "%s seeds/s/core (of CPU time), %s seeds/s a worker, %s events/s", group(uint64(r.perCore())),
		group(uint64(r.perSecond(n)/float64(r.workers))), group(uint64(r.perSecond(r.events))))
	line("a seed", "%.1f events, %.1f operations (%.0f %% appends), %.1f acked, %.2f lives", r.each(r.events), r.each(r.totals.ops),
		100*float64(r.appends)/float64(max(r.totals.ops, 1)), r.each(r.acked), r.each(r.lives))
	line("damaged", "%s seeds ended in a log that was refused, as it must be", group(r.refused))
	list, missing := r.marks.List(), r.missing()
	line("marks", "%d of %d reached", len(list)-len(missing), len(list))
	for _, place := range []string{"disk", "core", "sim"} {
		line("  "+place, "%s", markList(list, place+" "))
	}
	switch {
	case len(missing) > 0 && n >= marksListed:
		line("  missing", "%s", wrap(missing))
	case len(missing) > 0:
		line("  missing", "%d, which so few seeds need not reach; --json lists them", len(missing))
	}
	line("hash", "%016x of all seeds", r.digest)
	line("violations", "%s%s", group(r.violations), byCheck(r.checks))
	r.textGroups(line)
}

// groupsListed is how many kinds of failures are listed for people.
const groupsListed = 20

// textGroups lists the kinds of failures, if a run goes on after the first.
func (r *runReport) textGroups(line func(what, format string, args ...any)) {
	if !r.all {
		return
	}
	list := r.groups.list()
	for _, g := range list[:min(len(list), groupsListed)] {
		v := g.Lowest
		line("  "+group(g.Count), "of %s like this: %s", v.Check, headline(v.Text))
		line("", "%s", v.replay(r.job))
	}
	if more := len(list) - groupsListed; more > 0 {
		line("", "and %d kinds more", more)
	}
}

// markList is the marks of one place that were reached, with the number of seeds that did.
func markList(list []sim.MarkCount, place string) string {
	var words []string
	for _, m := range list {
		if name, ok := strings.CutPrefix(m.Name, place); ok && m.Runs > 0 {
			words = append(words, name+" "+group(m.Runs))
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return wrap(words)
}

const (
	indent    = 12
	lineWidth = 100
)

// wrap joins words into lines of bounded width.
func wrap(words []string) string {
	var b strings.Builder
	width := 0
	for i, w := range words {
		if sep := ", "; i > 0 {
			if width += len(sep); width+len(w) > lineWidth-indent {
				sep, width = strings.TrimRight(sep, " ")+"\n"+strings.Repeat(" ", indent), 0
			}
			b.WriteString(sep)
		}
		b.WriteString(w)
		width += len(w)
	}
	return b.String()
}

// reportJSON is what --json prints.
type reportJSON struct {
	Seeds             uint64            `json:"seeds"`
	PerCore           float64           `json:"seeds_per_second_per_core"` // of CPU time
	PerWorker         float64           `json:"seeds_per_second_per_worker"`
	Events            uint64            `json:"events"`
	EventsPerSecond   float64           `json:"events_per_second"`
	Violations        uint64            `json:"violations"`
	ViolationsByCheck map[string]uint64 `json:"violations_by_check,omitempty"`
	First             *violationJSON    `json:"first_violation,omitempty"`
	Groups            []groupJSON       `json:"failure_groups,omitempty"`      // violations that look alike, by their lowest seed
	Compared          map[string]uint64 `json:"violations_without,omitempty"`  // of the same seeds with one thing more left out
	Struck            map[string]int64  `json:"marks_of_violations,omitempty"` // seeds with a violation that reached each
	MarksMissing      []string          `json:"marks_missing"`
	Marks             map[string]int64  `json:"marks"` // seeds that reached each
	From              uint64            `json:"from"`
	Shard             string            `json:"shard,omitempty"`
	Ops               int               `json:"ops"`
	Workers           int               `json:"workers"`
	Seconds           float64           `json:"seconds"`
	CPUSeconds        float64           `json:"cpu_seconds"`
	AppendShare       float64           `json:"append_share"` // of operations
	MeanOps           float64           `json:"mean_ops"`
	MeanLives         float64           `json:"mean_lives"`
	Refused           uint64            `json:"refused"`
	Hash              string            `json:"hash"` // of all seeds
}

type violationJSON struct {
	Seed     uint64 `json:"seed"`
	Property string `json:"property"`
	Text     string `json:"text"`
	Replay   string `json:"replay"`
}

// groupJSON is the violations of one signature, of which the lowest seed is shown.
type groupJSON struct {
	Signature string `json:"signature"`
	Count     uint64 `json:"count"`
	violationJSON
}

func (r *runReport) json(s *streams) error {
	out := reportJSON{
		Seeds: r.totals.seeds, PerCore: r.perCore(), PerWorker: r.perSecond(r.totals.seeds) / float64(r.workers),
		Events: r.events, EventsPerSecond: r.perSecond(r.events), Violations: r.violations, ViolationsByCheck: r.checks,
		MarksMissing: r.missing(), Marks: map[string]int64{}, From: r.from, Shard: r.shard.String(), Ops: r.job.ops, Workers: r.workers,
		Seconds: r.wall.Seconds(), CPUSeconds: r.cpu.Seconds(),
		AppendShare: float64(r.appends) / float64(max(r.totals.ops, 1)), MeanOps: r.each(r.totals.ops), MeanLives: r.each(r.lives),
		Compared: r.counts(), Refused: r.refused, Hash: fmt.Sprintf("%016x", r.digest),
	}
	reached(&r.marks, out.Marks)
	if v := r.first; v != nil {
		out.Struck = map[string]int64{}
		reached(&r.struck, out.Struck)
		out.First = r.violationJSON(v)
	}
	for _, g := range r.groups.list() {
		out.Groups = append(out.Groups, groupJSON{signature(g.Lowest.Check, g.Lowest.Text), g.Count, *r.violationJSON(g.Lowest)})
	}
	e := json.NewEncoder(s.out)
	e.SetIndent("", "  ")
	return e.Encode(&out)
}

func (r *runReport) violationJSON(v *violation) *violationJSON {
	return &violationJSON{v.Seed, v.Check, v.Text, v.replay(r.job)}
}

// reached lists the marks with the number of seeds that reached them.
func reached(c *sim.MarkCounts, out map[string]int64) {
	for _, m := range c.List() {
		if m.Runs > 0 {
			out[m.Name] = m.Runs
		}
	}
}

// byCheck lists violations by property.
func byCheck(checks map[string]uint64) string {
	var words []string
	for _, check := range slices.Sorted(maps.Keys(checks)) {
		words = append(words, fmt.Sprintf("%s %s", check, group(checks[check])))
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ", ")
}
