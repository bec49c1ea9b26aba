package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"varve/sim"
)

// marksDue is the number of seeds from which on a mark that none of them reached is a failure.
const marksDue = 100_000

// marksListed is the number of seeds from which on those marks are listed for people.
const marksListed = 10_000

// seedRange is which seeds to run, and how long their schedules are.
type seedRange struct {
	Profile string `enum:"disk,cold,warm,tiers,broker" default:"disk" placeholder:"disk" help:"What is simulated: disk; cold: a disk and a bucket; warm: a disk and a Valkey server; tiers: all three; broker: a node with many logs, and its clients."`
	Seeds   uint64 `required:"" placeholder:"N" help:"How many seeds."`
	From    uint64 `default:"0" placeholder:"S" help:"The first seed."`
	Ops     int    `default:"0" placeholder:"K" help:"Operations of each seed; 0: 8 to 1000, drawn, median 50."`
}

// Validate checks ranges. kong calls it after parsing.
func (c *seedRange) Validate() error {
	switch {
	case c.Seeds < 1:
		return errors.New("--seeds 0: want at least 1")
	case c.From > math.MaxUint64-c.Seeds:
		return fmt.Errorf("--from %d: with %d seeds that is beyond the last one", c.From, c.Seeds)
	}
	return validateOps(c.Ops)
}

func validateOps(ops int) error {
	if ops < 0 || ops > sim.OpsMax {
		return fmt.Errorf("--ops %d: want 1 to %d, or 0 for drawn lengths", ops, sim.OpsMax)
	}
	return nil
}

type runCommand struct {
	seedRange
	outputs
	Workers    int           `default:"0" placeholder:"W" help:"Seeds that run at the same time; 0: one for each core. The result does not depend on it."`
	Time       time.Duration `default:"0" placeholder:"D" help:"Stop after this time, such as 30s."`
	All        bool          `help:"Go on after a violation and count them."`
	Detections uint64        `default:"0" placeholder:"N" help:"With --all: stop at the N-th violation in the order of the seeds."`
	Without    []string      `placeholder:"NAME" help:"Leave faults, switches or checkers out, by their names in TESTING.md, with commas between them."`
	Compare    []string      `placeholder:"NAME" help:"Also count which of the seeds violate something with one more thing left out, for each of these names."`
	Hang       time.Duration `default:"1m" placeholder:"D" help:"A seed that takes longer is a violation."`
	Shard      seedShard     `placeholder:"I/N" help:"Only the seeds that leave I when divided by N: one of N machines, 0/N to N-1/N."`
	Checkpoint string        `placeholder:"FILE" help:"Write down now and then how far the run is; the same run begins there when it is started again."`
}

// outputs is where a run tells programs what it found.
type outputs struct {
	JSON      bool   `name:"json" help:"Print JSON."`
	JUnit     string `name:"junit" placeholder:"FILE" help:"Write the result as JUnit XML too."`
	Artifacts string `placeholder:"DIR" help:"For each kind of failure, write a folder there: schedule, shrunk schedule, timeline, what was violated, build."`
}

// Validate checks ranges.
func (c *runCommand) Validate() error {
	switch {
	case c.Workers < 0 || c.Workers > 4096:
		return fmt.Errorf("--workers %d: want 1 to 4096, or 0 for one for each core", c.Workers)
	case c.Hang <= 0:
		return fmt.Errorf("--hang %v: want a duration above 0", c.Hang)
	case c.Detections > 0 && !c.All:
		return errors.New("--detections: only with --all; without it the first violation ends the run")
	case len(c.Compare) > 0 && (c.Checkpoint != "" || !c.JSON):
		return errors.New("--compare: only with --json, and without --checkpoint")
	case c.Time < 0:
		return fmt.Errorf("--time %v: want a duration above 0", c.Time)
	}
	if err := errors.Join(validateWithout(c.Without), validateWithout(c.Compare), c.seedRange.Validate()); err != nil {
		return err
	}
	if _, count, _ := c.Shard.of(c.From, c.Seeds); count == 0 {
		return fmt.Errorf("--shard %s: none of %d seeds from %d on is in it", c.Shard, c.Seeds, c.From)
	}
	return nil
}

func validateWithout(names []string) error {
	if _, err := sim.ParseWithout(names); err != nil {
		return fmt.Errorf("--without %w", err)
	}
	return nil
}

// leaver can leave things out; a real world can.
type leaver interface{ Leave(x *sim.Without) }

// leave makes a world leave things out.
func leave(w leaver, names []string) {
	if without, err := sim.ParseWithout(names); err == nil { // Validate has looked at them
		w.Leave(without)
	}
}

// leaving returns worlds that leave things out.
func leaving(world func() simulator, names []string) func() simulator {
	if len(names) == 0 {
		return world
	}
	return func() simulator {
		w := world()
		if real, ok := w.(leaver); ok {
			leave(real, names)
		}
		return w
	}
}

// args are what a checkpoint depends on: which seeds, how they are run, and when the run ends.
func (c *runCommand) args() string {
	return fmt.Sprintf("--profile=%s --seeds=%d --from=%d --ops=%d --shard=%s --all=%t --detections=%d --without=%s",
		c.Profile, c.Seeds, c.From, c.Ops, c.Shard, c.All, c.Detections, strings.Join(c.Without, ","))
}

// Run runs the seeds and reports.
func (c *runCommand) Run(ctx context.Context, s *streams) error {
	j := job{
		workers: c.Workers, mix: mixOf(c.Profile), ops: c.Ops, limit: c.Time, all: c.All, shard: c.Shard,
		detections: c.Detections, hang: c.Hang, without: c.Without, world: leaving(s.world, c.Without),
	}
	for _, name := range c.Compare {
		j.compare = append(j.compare, newComparison(s.world, c.Without, name))
	}
	j.from, j.seeds, j.stride = c.Shard.of(c.From, c.Seeds)
	if j.workers == 0 {
		j.workers = runtime.GOMAXPROCS(0)
	}
	j.workers = int(min(uint64(j.workers), j.seeds))
	t, err := c.totals(ctx, s, &j)
	if err != nil {
		return err
	}
	return c.report(ctx, s, &runReport{totals: t, job: &j})
}

// totals runs the seeds, or those that a checkpoint leaves.
func (c *runCommand) totals(ctx context.Context, s *streams, j *job) (*totals, error) {
	if c.Checkpoint == "" {
		return j.run(ctx, newProgress(s.err, "seeds", j.seeds, j.limit)), nil
	}
	r, err := openCheckpoint(c.Checkpoint, c.args())
	if err != nil {
		return nil, err
	}
	if r.resumed > 0 {
		s.note("%s: goes on after %s of %s seeds", c.Checkpoint, group(r.resumed), group(j.seeds))
	}
	return r.run(ctx, j, newProgress(s.err, "seeds", j.seeds-min(r.resumed, j.seeds), j.limit))
}

// report tells people and programs what was found, and returns the failure.
func (o *outputs) report(ctx context.Context, s *streams, r *runReport) error {
	if o.JSON {
		if err := r.json(s); err != nil {
			return err
		}
	} else {
		r.text(s)
	}
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	verdict := r.verdict(ctx, s)
	if o.JUnit != "" {
		if err := r.junit(o.JUnit, verdict); err != nil {
			return errors.Join(verdict, err)
		}
	}
	if o.Artifacts != "" {
		if err := r.artifacts(ctx, s, o.Artifacts); err != nil {
			return errors.Join(verdict, fmt.Errorf("artifacts: %w", err))
		}
	}
	return verdict
}
