//go:build !mutant

package main

import (
	"context"
	"errors"
	"testing"

	"varve/sim/mutants"
)

// steadyLab finds a mutant by each n-th seed.
type steadyLab struct {
	lab
	every uint64
	dies  bool // in runs that are not whole
	needs bool // all that is compared: nothing is found without it
	runs  int
}

func (l *steadyLab) run(_ context.Context, _ string, t trial) (*reportJSON, error) {
	l.runs++
	if l.dies && t.from+t.seeds < 1_000_000 {
		return nil, errors.New("dies without a report")
	}
	r := &reportJSON{Seeds: t.seeds, ViolationsByCheck: map[string]uint64{}, Struck: map[string]int64{}, Compared: map[string]uint64{}}
	for seed := t.from; seed < t.from+t.seeds && r.Violations < t.detections; seed++ {
		if seed%l.every != l.every-1 {
			continue
		}
		if r.First == nil {
			r.First = &violationJSON{Seed: seed}
		}
		r.Violations++
		r.ViolationsByCheck["K1"]++
		for _, name := range t.compare {
			if !l.needs {
				r.Compared[name]++
			} else {
				r.Compared[name] += 0
			}
		}
		r.Struck["sim power"]++
		if r.Violations == t.detections {
			r.Seeds = seed + 1 - t.from
		}
	}
	return r, nil
}

// With --sure a mutant passes where its rate is proven, and one that is near the gate runs to the end.
func TestMutantsSure(t *testing.T) {
	needs, beside := []mutants.Need{{Name: "power"}}, []mutants.Need{{Name: "power", Beside: []string{"D7.rot"}}}
	for _, x := range []struct {
		every             uint64
		dies, proven      bool
		needs             []mutants.Need
		seeds, detections uint64
		runs              int
		passes            bool
	}{
		{every: 100, seeds: 2000, detections: 20, runs: 1, passes: true},
		{every: 2500, seeds: 20_000, detections: 8, runs: 1, passes: true},
		{every: 10_000, seeds: 50_000, detections: 5, runs: 2, passes: true},
		{every: 15_000, seeds: 100_000, detections: 6, runs: 3, passes: true},
		{every: 20_000, seeds: 200_000, detections: 10, runs: 4, passes: true},
		{every: 30_000, seeds: 600_000, detections: 20, runs: 5, passes: true},
		{every: 60_000, seeds: 1_000_000, detections: 16, runs: 5},
		{every: 2_000_000, seeds: 1_000_000, runs: 5},
		{every: 2500, dies: true, seeds: 50_000, detections: 20, runs: 2, passes: true},
		{every: 2500, needs: needs, seeds: 50_000, detections: 20, runs: 2, passes: true},
		{every: 2500, needs: needs, proven: true, seeds: 30_000, detections: 12, runs: 1, passes: true},
		{every: 26_000, needs: needs, proven: true, seeds: 520_000, detections: 20, runs: 2, passes: true},
		{every: 2500, needs: beside, proven: true, seeds: 20_000, detections: 8, runs: 1, passes: true},
	} {
		c := &mutantsCommand{Seeds: 1_000_000, Detections: 20, Sure: true}
		l := &steadyLab{every: x.every, dies: x.dies, needs: x.proven}
		r, tried, err := c.find(t.Context(), &mutants.Mutant{Needs: x.needs}, "", l)
		if err != nil {
			t.Fatal(err)
		}
		var row mutantRow
		row.take(r, tried)
		row.judge(c)
		if row.Seeds != x.seeds || row.Detections != x.detections || l.runs != x.runs || (row.Failure == "") != x.passes {
			t.Errorf("%+v: %d seeds, %d found, %d runs, %q", x, row.Seeds, row.Detections, l.runs, row.Failure)
		}
		if row.Detections > 0 && (*row.First != x.every-1 || row.Checks["K1"] != x.detections || row.Struck["sim power"] != int64(x.detections)) {
			t.Errorf("%+v: first %d, checks %v, marks %v", x, *row.First, row.Checks, row.Struck)
		}
	}
}
