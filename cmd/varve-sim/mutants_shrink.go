//go:build !mutant

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"varve/sim/mutants"
)

// A failure has to become something that a person can read. These hold for the first failure of each
// mutant.
const (
	shrunkMedian = 6
	shrunkMax    = 15
	shrunkFew    = 10 // fewer have no median to speak of
)

// shrunk is what became of a mutant's first failure.
type shrunk struct {
	Events int `json:"events"`
	Of     int `json:"of"`
	Tries  int `json:"tries"`
}

// measureShrunk makes the first failure of a mutant small. What does not end, or kills the process,
// cannot be tried again and again.
func (r *mutantRow) measureShrunk(ctx context.Context, program string, m *mutants.Mutant, l lab) error {
	if r.First == nil || r.Checks[checkHang]+r.Checks["crash"] > 0 {
		return nil
	}
	small, err := l.shrink(ctx, program, m, *r.First)
	if err != nil {
		return fmt.Errorf("seed %d does not shrink: %w", *r.First, err)
	}
	r.Shrunk = &shrunk{small.Events, small.EventsBefore, small.Tries}
	if small.Events > shrunkMax {
		r.Failure = fmt.Sprintf("shrinks to %d events of seed %d, expected at most %d", small.Events, *r.First, shrunkMax)
	}
	return nil
}

// shrink runs the program's shrink command. The result has to violate nothing without the bug: else
// shrinking made a failure of its own.
func (l *sourceLab) shrink(ctx context.Context, program string, m *mutants.Mutant, seed uint64) (*shrinkJSON, error) {
	ctx, cancel := context.WithTimeout(ctx, mutantTime)
	defer cancel()
	file := filepath.Join(l.dir, m.Name+".schedule")
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "shrink", fmt.Sprint(seed), fmt.Sprintf("--ops=%d", m.Ops), "--profile="+m.Profile, "--json", "--out="+file)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, headline(strings.TrimSpace(errOut.String())))
	}
	var r shrinkJSON
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return nil, err
	}
	if text, err := exec.CommandContext(ctx, l.clean, "replay", file).CombinedOutput(); err != nil {
		text = bytes.TrimSpace(text)
		return nil, fmt.Errorf("the small schedule fails without the bug too: %s", text[bytes.LastIndexByte(text, '\n')+1:])
	}
	return &r, nil
}

// reportShrunk says what became of all first failures, and returns an error if half of them are too
// long.
func (c *mutantsCommand) reportShrunk(s *streams, rows []*mutantRow) error {
	var events []int
	for _, r := range rows {
		if r.Shrunk != nil {
			events = append(events, r.Shrunk.Events)
		}
	}
	if !c.Shrink || len(events) == 0 {
		return nil
	}
	slices.Sort(events)
	median, most := events[(len(events)-1)/2], events[len(events)-1]
	if !c.JSON {
		fmt.Fprintf(s.out, "\nthe first failures of %d mutants shrink to a median of %d events, %d at most\n", len(events), median, most)
	}
	if len(events) >= shrunkFew && median > shrunkMedian {
		return fmt.Errorf("first failures shrink to a median of %d events, expected at most %d", median, shrunkMedian)
	}
	return nil
}
