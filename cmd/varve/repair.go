package main

import (
	"context"
	"fmt"

	"varve"
)

type repairCommand struct {
	Dir          string `required:"" placeholder:"D" help:"Directory of the log."`
	Apply        bool   `help:"Do it. Without it, the plan is printed and nothing is written."`
	ChecksumTail bool   `help:"Give up a last batch whose payload checksum is wrong."`
}

// Run prints the plan and, if asked, carries it out.
func (c *repairCommand) Run(ctx context.Context, s *streams) error {
	p, err := varve.PlanRepair(ctx, c.Dir)
	if err != nil {
		return err
	}
	if b := p.Superblock; b != nil {
		for _, problem := range p.Problems {
			fmt.Fprintf(s.out, "superblock  %s\n", problem)
		}
		fmt.Fprintf(s.out, "rebuild     both slots from the segments: log %x, epoch %d, start %d, proven up to %d\n", b.LogID, b.Epoch, b.Start, b.Frontier)
		fmt.Fprintf(s.out, "            what was trimmed within the first file comes back\n")
	} else {
		x, err := varve.Inspect(ctx, c.Dir, varve.InspectOptions{Deep: true, ChecksumTail: c.ChecksumTail})
		if err != nil {
			return err
		}
		report(c.Dir, x).print(s.out)
		if x.Refused != nil && !c.Apply {
			if err := s.out.Flush(); err != nil {
				return err
			}
			return unrepairable(x.Refused)
		}
	}
	if !c.Apply {
		_, err := fmt.Fprintln(s.out, "nothing was written; do it with --apply")
		return err
	}
	if _, err := varve.Repair(ctx, c.Dir, varve.Options{RepairChecksumTail: c.ChecksumTail, MinFreeBytes: -1}); err != nil {
		if damaged(err) {
			return unrepairable(err)
		}
		return err
	}
	x, err := varve.Inspect(ctx, c.Dir, varve.InspectOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "repaired    records [%d, %d) can be read\n", x.Start, x.End)
	return nil
}

// unrepairable says what is left to do about damage for which there is no second copy.
func unrepairable(err error) error {
	return fmt.Errorf("%w; there is no other copy to heal it from: --checksum-tail gives up a damaged last batch, "+
		"and log append --allow-damaged serves everything but the damage", err)
}
