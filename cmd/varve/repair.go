package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"varve"
)

type repairCommand struct {
	Dir          string `required:"" placeholder:"D" help:"Directory of the log."`
	Apply        bool   `help:"Do it. Without it, the plan is printed and nothing is written."`
	ChecksumTail bool   `help:"Give up a last batch whose payload checksum is wrong."`

	tierFlags
}

// Run prints the plan and, if asked, carries it out.
func (c *repairCommand) Run(ctx context.Context, s *streams) error {
	use := looks
	if c.Apply {
		use = writes
		if err := refuseBesideNode(c.Dir); err != nil {
			return err
		}
	}
	t, err := c.openTiers(ctx, s, c.Dir, use) // it may hold what a repair would give up
	if err != nil {
		return err
	}
	defer t.close()
	o := varve.Options{
		RepairChecksumTail: c.ChecksumTail, MinFreeBytes: -1, Cold: t.bucket, ColdPrefix: t.prefix, ColdPartBytes: int64(c.ColdPartBytes),
		Warm: t.warm.options, TierWait: tierWait,
	}
	p, err := varve.PlanRepair(ctx, c.Dir, o)
	if err != nil {
		if p != nil {
			fmt.Fprintf(s.out, "on disk     records [%d, %d), %d spans of them damaged\n", p.View.HotStart, p.End, len(p.Plan.Damage))
		}
		return t.named(err)
	}
	if p.Empty() {
		fmt.Fprintf(s.out, "records     [%d, %d)\nnothing to repair: the log opens as it is, and nothing was written\n", p.Start, p.End)
		if t.bucket != nil {
			fmt.Fprintln(s.out, "objects     of the bucket were not looked at: varve cold scrub does")
		}
		return nil
	}
	printRepair(s.out, p)
	if p.Refused != nil {
		if err := s.out.Flush(); err != nil {
			return err
		}
		return nextStep{p.Refused, "to give that batch up: varve log repair --checksum-tail"}
	}
	if !c.Apply {
		fmt.Fprintln(s.out, "nothing was written; do it with --apply")
		return nil
	}
	if _, err := varve.Repair(ctx, c.Dir, o); err != nil {
		return err
	}
	x, err := varve.Inspect(ctx, c.Dir, t.inspect(s))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "repaired    the log opens again, with %d of the records in [%d, %d)\n", x.Kept(), x.Start, x.End)
	return nil
}

// printRepair prints what is damaged, what is given up for it, and what is kept.
func printRepair(w *bufio.Writer, p *varve.RepairPlan) {
	for _, problem := range p.Slots() {
		fmt.Fprintf(w, "damage      %s; it goes to quarantine/\n", problem)
	}
	for i := range p.Plan.Damage {
		d := &p.Plan.Damage[i]
		fmt.Fprintf(w, "damage      %s, offsets [%d, %d): expected %s, found %s\n", d.Place(), d.Offset, d.End, d.Expected, d.Found)
	}
	var tail *varve.CorruptError
	if errors.As(p.Refused, &tail) || p.Tail != nil {
		if tail == nil {
			tail = p.Tail
		}
		fmt.Fprintf(w, "damage      %s, offset %d and behind it: expected %s, found %s\n", tail.Place(), tail.Offset, tail.Expected, tail.Found)
	}
	if p.Plan.Rebuilt {
		fmt.Fprintf(w, "rebuild     the superblock from the segments: records from offset %d on; what was trimmed within the first file comes back\n", p.Start)
	}
	for _, d := range p.Plan.Declared {
		fmt.Fprintf(w, "give up     offsets [%d, %d) of epoch %d: reading them will be an error, offsets do not move\n", d.First, d.End, d.Epoch)
	}
	for i := range p.Plan.Damage {
		if d := &p.Plan.Damage[i]; d.Offset == p.End {
			fmt.Fprintf(w, "give up     offsets [%d, %d): the log will end at %d, and go on there in a new epoch\n", d.Offset, d.End, p.End)
		}
	}
	if p.Tail != nil {
		fmt.Fprintf(w, "give up     offset %d and behind it: the log will end there\n", p.End)
	}
	fmt.Fprintf(w, "keep        %d of the records in [%d, %d)\n", p.Kept(), p.Start, p.End)
}
