package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"varve/sim"
)

type shrinkCommand struct {
	scheduleSource
	Out   string `placeholder:"FILE" help:"Where the small schedule goes; default: shrunk-SEED.schedule, shrunk-FILE."`
	Tries int    `default:"150000" placeholder:"N" help:"Schedules to try at most; one takes about as long as a seed."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Validate checks ranges.
func (c *shrinkCommand) Validate() error {
	if c.Tries < 1 {
		return fmt.Errorf("--tries %d: want at least 1", c.Tries)
	}
	return c.scheduleSource.Validate()
}

// Run makes the schedule small, writes it and says what it came to.
func (c *shrinkCommand) Run(ctx context.Context, s *streams) error {
	schedule, err := c.schedule()
	if err != nil {
		return err
	}
	m := &minimizer{world: leaving(s.world, c.Without), tries: c.Tries, progress: newProgress(s.err, "tries", uint64(c.Tries), 0)}
	small, err := m.run(ctx, schedule)
	if err != nil {
		return fmt.Errorf("%s: %w", c.What, err)
	}
	out := c.Out
	if out == "" {
		out = "shrunk-" + strings.TrimSuffix(filepath.Base(c.What), ".schedule") + ".schedule"
	}
	text := small.text("varve-sim shrink " + c.words())
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return err
	}
	again := scheduleSource{What: out, Without: c.Without}
	report := small.report(out, "varve-sim replay "+again.words()+" -v")
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	_, _ = s.out.Write(text)
	fmt.Fprintf(s.out, "\nevents      %d of %d, of which %d operations; %s schedules tried\nproperty    %s: %s\n", report.Events,
		report.EventsBefore, report.Operations, group(report.Tries), report.Property, report.Text)
	fmt.Fprintln(s.out, report.Replay)
	return nil
}

// minimizer makes schedules small that violate a property.
type minimizer struct {
	world    func() simulator
	tries    int
	progress *progress // nil: nobody watches
}

// minimized is a small schedule and what it violates.
type minimized struct {
	schedule *sim.Schedule
	before   int // events
	tries    int
	failed   outcome
}

// errGood is a schedule that violates nothing.
var errGood = errors.New("violates nothing, so there is nothing to shrink")

// run returns a small schedule that violates the same property as s, which stays as it is. Of panics
// the message has to be the same too: a property is one thing that is wrong, a panic may be anything.
func (m *minimizer) run(ctx context.Context, s *sim.Schedule) (*minimized, error) {
	r := runner{newWorld: m.world}
	first := r.run(s)
	if first.check == "" {
		return nil, errGood
	}
	same := func(o outcome) bool {
		panics := o.check == "assert" || o.check == "panic"
		return o.check == first.check && (!panics || signature(o.check, o.text) == signature(first.check, first.text))
	}
	small := &minimized{schedule: &sim.Schedule{Header: s.Header}, before: len(s.Events)}
	small.schedule.Events = append(small.schedule.Events, s.Events...)
	tried := uint64(0)
	small.tries = sim.Shrink(small.schedule, m.tries, func(t *sim.Schedule) bool {
		if tried++; m.progress != nil && tried%1000 == 0 {
			m.progress.at(tried)
		}
		return ctx.Err() == nil && same(r.run(t))
	})
	if m.progress != nil {
		m.progress.done()
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("stopped after %s tries: %w", group(tried), err)
	}
	small.failed = r.run(small.schedule)
	return small, nil
}

// text is the text form of a small schedule, with lines that say what it violates and where it is
// from.
func (m *minimized) text(from string) []byte {
	text := string(m.schedule.AppendText(nil))
	first, rest, _ := strings.Cut(text, "\n")
	unusual := strings.Join(m.schedule.Header.Unusual(), ", ")
	if unusual == "" {
		unusual = "nothing"
	}
	return fmt.Appendf(nil, "%s\n# %s: %s\n# %d events of %d, made small by: %s\n# not plain in the header: %s\n%s", first, m.failed.check,
		headline(m.failed.text), len(m.schedule.Events), m.before, from, unusual, rest)
}

// shrinkJSON is what shrink --json prints.
type shrinkJSON struct {
	Property     string `json:"property"`
	Text         string `json:"text"`
	Signature    string `json:"signature"`
	EventsBefore int    `json:"events_before"`
	Events       int    `json:"events"`
	Operations   int    `json:"operations"`
	Tries        int    `json:"tries"`
	File         string `json:"file"`
	Replay       string `json:"replay"`
}

func (m *minimized) report(file, replay string) *shrinkJSON {
	ops, _ := m.schedule.Ops()
	return &shrinkJSON{
		Property: m.failed.check, Text: m.failed.text, Signature: signature(m.failed.check, m.failed.text), EventsBefore: m.before,
		Events: len(m.schedule.Events), Operations: ops, Tries: m.tries, File: file, Replay: replay,
	}
}
