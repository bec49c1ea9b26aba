package main

import (
	"slices"

	"varve/sim"
)

// comparison runs seeds a second time, with one thing more left out: which of them violate a property
// all the same? A seed in which that thing took no part needs no second run.
type comparison struct {
	name  string
	more  *sim.Without // what is left out besides
	world func() simulator
}

// newComparison compares worlds that leave things out with those that leave one more out.
func newComparison(world func() simulator, without []string, name string) *comparison {
	more, err := sim.ParseWithout([]string{name})
	if err != nil { // Validate has looked at it
		return nil
	}
	return &comparison{name: name, more: more, world: leaving(world, append(slices.Clone(without), name))}
}

// compared is a worker's part of a comparison.
type compared struct {
	*comparison
	runner runner
	s      sim.Schedule
	spared []uint64 // seeds that violated a property
}

// seed runs a seed once more, if what o came of it can be otherwise.
func (c *compared) seed(w *worker, seed uint64, o *outcome) {
	check := o.check
	if o.result == nil || c.more.TookPart(o.result) {
		sim.ExpandMix(&c.s, w.job.mix, seed, w.job.ops)
		check = c.runner.run(&c.s).check
	}
	if check != "" {
		c.spared = append(c.spared, seed)
	}
}

func (t *totals) joinCompared(all []compared) {
	for _, c := range all {
		if t.spared == nil {
			t.spared = map[string][]uint64{}
		}
		t.spared[c.name] = append(t.spared[c.name], c.spared...)
	}
}

// cutCompared drops what lies above the last seed that counts.
func (t *totals) cutCompared(last uint64) {
	for name, seeds := range t.spared {
		t.spared[name] = slices.DeleteFunc(seeds, func(seed uint64) bool { return seed > last })
	}
}

// counts are how many seeds violated a property with each thing left out.
func (t *totals) counts() map[string]uint64 {
	if t.spared == nil {
		return nil
	}
	all := map[string]uint64{}
	for name, seeds := range t.spared {
		all[name] = uint64(len(seeds))
	}
	return all
}
