package varve

import (
	"context"
	"errors"
	"fmt"

	"varve/tiers/disk/osfs"
)

// RepairPlan is what a repair would do that an ordinary open does not.
type RepairPlan struct {
	*Inspection // of the log as it will be; Plan.Damage and Plan.Declared are what it gives up

	// Refused is why the repair cannot be done, nil if it can.
	Refused error
	// Tail is the last batch that is given up because its payload checksum is wrong
	// (Options.RepairChecksumTail), nil if none is.
	Tail *CorruptError
}

// Empty reports whether there is nothing to repair: an ordinary open does.
func (p *RepairPlan) Empty() bool {
	return p.Refused == nil && p.Tail == nil && !p.Plan.Rebuilt && len(p.Plan.Damage) == 0 && len(p.Slots()) == 0
}

// PlanRepair finds out what Repair would do, verifying every batch, and writes nothing. Of the
// options only RepairChecksumTail and those of the tiers count. A directory that a writer has open is ErrInUse; one that a
// repair cannot make sense of is an error as Open's. Where a tier could not be asked the plan is that of the
// directory alone, beside the error.
func PlanRepair(ctx context.Context, dir string, o Options) (*RepairPlan, error) {
	if writerRunning(dir) {
		return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
	}
	x, err := InspectFS(ctx, osfs.New(dir), dir, false, InspectOptions{
		Deep: true, repair: true, Cold: o.Cold, ColdPrefix: o.ColdPrefix, Warm: o.Warm,
	})
	if err != nil {
		return nil, err
	}
	p := &RepairPlan{Inspection: x, Refused: x.Refused}
	if o.RepairChecksumTail && errors.As(p.Refused, &p.Tail) {
		p.Refused = nil
	}
	if x.ColdDown != nil {
		return p, fmt.Errorf("%s: the cold tier may hold what a repair would give up: %w", dir, x.ColdDown)
	}
	if x.WarmDown != nil {
		return p, fmt.Errorf("%s: the warm tier may hold what a repair would give up: %w", dir, x.WarmDown)
	}
	return p, nil
}

// Repair opens a log that an ordinary Open refuses, and closes it again: it derives a superblock of
// which no slot verifies from the segments, declares damaged spans lost and accepts that the end is
// missing. With Options.RepairChecksumTail it gives up a last batch whose payload checksum is wrong.
// Nothing is destroyed: what it replaces goes to quarantine/. Where there is nothing to repair it
// writes nothing. It returns the plan that it carried out.
func Repair(ctx context.Context, dir string, o Options) (*RepairPlan, error) {
	p, err := PlanRepair(ctx, dir, o)
	switch {
	case err != nil:
		return nil, err
	case p.Refused != nil:
		return p, fmt.Errorf("%s: %w", dir, p.Refused)
	case p.Empty():
		return p, nil
	}
	o.VerifyAllOnOpen = true
	cfg := o.config()
	cfg.Repair = true
	l, err := openConfig(ctx, osfs.New(dir), dir, cfg, &o)
	if err != nil {
		return p, err
	}
	return p, l.Close(ctx)
}
