//go:build !mutant

package main

import (
	"context"

	"varve/sim/mutants"
)

// With --sure a mutant is looked at after these parts of a landing's seeds, and passes there if it was
// found lookDetections times and the lower bound of its rate, one of 97.5 %, is enough for the gate. One
// whose rate is just that of the gate passes the first look in less than 0.1 % of all cases, the others
// in 0.4, 1.7 and 2.1 %; the 20th detection, which all others run to, lets half of them pass.
var looks = [...]uint64{50, 20, 10, 5}

const lookDetections = 5

// find runs a mutant until it is detected often enough, and returns what was run. What it needs with
// nothing else left out is counted beside.
func (c *mutantsCommand) find(ctx context.Context, m *mutants.Mutant, program string, l lab) (*reportJSON, *trial, error) {
	t := trial{seeds: c.landing(m.Profile), detections: c.Detections, ops: m.Ops, profile: m.Profile}
	for _, n := range m.Needs {
		if len(n.Beside) == 0 && c.provable() {
			t.compare = append(t.compare, n.Name)
		}
	}
	switch {
	case m.Equivalent != "":
		t.seeds = max(1, t.seeds/equivalentPart)
	case len(t.compare) > 0:
		return c.compare(ctx, t, program, l)
	case c.Sure:
		return c.look(ctx, t, program, l)
	}
	r, err := l.run(ctx, program, t)
	return r, &t, err
}

// comparedDetections of 20 are enough to prove a need if none is left without it: were a fourth of them
// left, that would come about in 5 of 100 cases.
const comparedDetections = 12

// compare runs a trial that compares. With --sure it ends after a part of the detections, if they prove
// both that the gate is passed and that nothing is found without what is left out.
func (c *mutantsCommand) compare(ctx context.Context, t trial, program string, l lab) (*reportJSON, *trial, error) {
	if !c.Sure {
		r, err := l.run(ctx, program, t)
		return r, &t, err
	}
	part := t
	part.detections = max(1, t.detections*comparedDetections/20)
	r, err := l.run(ctx, program, part)
	switch {
	case err != nil:
		return nil, nil, err
	case r.Violations < part.detections: // all seeds were run
		return r, &t, nil
	case c.sure(r, t.seeds) && none(r.Compared, t.compare):
		return r, &part, nil
	}
	rest := t
	rest.from, rest.seeds, rest.detections = r.Seeds, t.seeds-r.Seeds, t.detections-r.Violations
	more, err := l.run(ctx, program, rest)
	if err != nil {
		return nil, nil, err
	}
	r.join(more)
	return r, &t, nil
}

// none reports whether each of the names was left out and nothing was found then.
func none(found map[string]uint64, names []string) bool {
	for _, name := range names {
		if n, ok := found[name]; !ok || n > 0 {
			return false
		}
	}
	return true
}

// look runs a trial from one look to the next.
func (c *mutantsCommand) look(ctx context.Context, t trial, program string, l lab) (*reportJSON, *trial, error) {
	landing, sum := t.seeds, &reportJSON{}
	for _, part := range append(looks[:], 1) {
		next := t
		next.from, next.seeds, next.detections = sum.Seeds, landing/part-sum.Seeds, t.detections-sum.Violations
		r, err := l.run(ctx, program, next)
		if err != nil && part > 1 { // a process that dies now and then: all seeds in one run have the say
			next = t
			r, err = l.run(ctx, program, next)
			return r, &next, err
		}
		if err != nil {
			return nil, nil, err
		}
		sum.join(r)
		t.seeds = next.from + next.seeds
		if ended := r.Seeds < next.seeds || sum.Violations >= t.detections; ended || c.sure(sum, landing) {
			break
		}
	}
	return sum, &t, nil
}

// sure reports whether so many detections in seeds that were run whole prove that the gate is passed.
func (c *mutantsCommand) sure(r *reportJSON, landing uint64) bool {
	low, _ := mutants.Bounds(r.Violations, r.Seeds, false)
	return r.Violations >= lookDetections && low*float64(landing) >= float64(c.Detections)
}

// join adds what later seeds found, as far as a mutant's row has it.
func (r *reportJSON) join(o *reportJSON) {
	if r.First == nil {
		r.First = o.First
	}
	r.Seeds, r.Violations = r.Seeds+o.Seeds, r.Violations+o.Violations
	if r.ViolationsByCheck == nil {
		r.ViolationsByCheck, r.Struck = map[string]uint64{}, map[string]int64{}
	}
	for name, n := range o.Compared {
		r.Compared[name] += n
	}
	for check, n := range o.ViolationsByCheck {
		r.ViolationsByCheck[check] += n
	}
	for mark, n := range o.Struck {
		r.Struck[mark] += n
	}
}
