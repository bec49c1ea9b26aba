//go:build !mutant

package main

import (
	"fmt"
	"os"

	"varve/sim"
	"varve/sim/report"
)

type reportCommand struct {
	What    string `arg:"" optional:"" name:"seed|file" help:"A seed, or a file with the text form of a schedule. Without it the page holds the overview alone."`
	Ops     int    `default:"0" placeholder:"K" help:"Operations of the seed, as in the run that found it."`
	Out     string `required:"" placeholder:"FILE" help:"The page: one HTML file that needs nothing else."`
	Runs    string `name:"run" placeholder:"FILE" help:"What varve-sim run --json printed."`
	Mutants string `placeholder:"FILE" help:"What varve-sim mutants --json printed."`
	Exhaust string `placeholder:"FILE" help:"What varve-sim exhaust --json printed."`
}

// Validate checks ranges.
func (c *reportCommand) Validate() error { return validateOps(c.Ops) }

// Run writes the page. A violated property is shown, and no failure of this command.
func (c *reportCommand) Run(s *streams) error {
	page, err := c.page()
	if err != nil {
		return err
	}
	f, err := os.Create(c.Out)
	if err != nil {
		return err
	}
	err = report.Write(f, page)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.Out, err)
	}
	fmt.Fprintf(s.out, "%s: %s\n", c.Out, page.Subject())
	return nil
}

func (c *reportCommand) page() (*report.Page, error) {
	p := new(report.Page)
	var err error
	if c.Runs != "" {
		if p.Overview.Run, err = report.ReadRun(c.Runs); err != nil {
			return nil, err
		}
	}
	if c.Mutants != "" {
		if p.Overview.Mutants, err = report.ReadMutants(c.Mutants); err != nil {
			return nil, err
		}
	}
	if c.Exhaust != "" {
		if p.Overview.Bound, err = report.ReadBound(c.Exhaust); err != nil {
			return nil, err
		}
	}
	if c.What == "" {
		return p, nil
	}
	source := scheduleSource{What: c.What, Ops: c.Ops}
	if p.Schedule, err = source.schedule(); err != nil {
		return nil, err
	}
	p.Story = report.Tell(sim.NewWorld(), p.Schedule)
	if p.History, err = p.Story.Picture(); err != nil {
		return nil, err
	}
	p.Replay = "varve-sim replay " + source.words()
	return p, nil
}
