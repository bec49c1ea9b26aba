package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"varve"
)

type tiersCommand struct {
	Dir  string `required:"" placeholder:"D" help:"Directory of the log."`
	JSON bool   `name:"json" help:"Print JSON."`

	tierFlags
}

// tiersReport is the map of a log as JSON has it.
type tiersReport struct {
	Name      string     `json:"name"`
	LogID     string     `json:"log_id"`
	Running   bool       `json:"writer_running"`
	Start     int64      `json:"start"`
	Committed int64      `json:"committed"` // beside a running writer: what is proven
	Tiers     []tierLine `json:"tiers"`
}

type tierLine struct {
	Tier     string      `json:"tier"`
	Start    int64       `json:"start"`
	End      int64       `json:"end"`
	Bytes    int64       `json:"bytes"`
	Segments int         `json:"segments"`
	Holes    []checkSpan `json:"holes,omitempty"` // damaged or missing there
	Error    string      `json:"error,omitempty"`
}

// Run draws the map.
func (c *tiersCommand) Run(ctx context.Context, s *streams) error {
	t, err := c.openTiers(ctx, s, c.Dir, looks)
	if err != nil {
		return err
	}
	defer t.close()
	x, err := varve.Inspect(ctx, c.Dir, t.inspect(s))
	if err != nil {
		return err
	}
	name, err := c.logName(c.Dir)
	if err != nil {
		return err
	}
	m := x.TierMap(name, t.kind)
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		err = e.Encode(reportTiers(&m, x))
	} else {
		fmt.Fprint(s.out, &m)
		for i := range m.Tiers {
			for _, h := range m.Tiers[i].Holes {
				fmt.Fprintf(s.out, "×  %s has a hole: [%d, %d)\n", m.Tiers[i].Label, h.First, h.End)
			}
		}
	}
	if err == nil {
		err = s.out.Flush()
	}
	switch {
	case err != nil:
		return err
	case x.Refused != nil:
		return x.Refused
	}
	return t.silent(x)
}

func reportTiers(m *varve.TierMap, x *varve.Inspection) *tiersReport {
	r := &tiersReport{
		Name: m.Name, LogID: fmt.Sprintf("%x", x.View.LogID[:]), Running: x.Running, Start: x.Start, Committed: m.Committed,
	}
	for i := range m.Tiers {
		t := &m.Tiers[i]
		line := tierLine{Tier: t.Tier.String(), Start: t.Start, End: t.End, Bytes: t.Bytes, Segments: t.Segments}
		for _, h := range t.Holes {
			line.Holes = append(line.Holes, checkSpan(h))
		}
		if t.Down != nil {
			line.Error = oneLine(t.Down)
		}
		r.Tiers = append(r.Tiers, line)
	}
	return r
}

type offloadCommand struct {
	Dir    string `required:"" placeholder:"D" help:"Directory of the log."`
	Before *int64 `placeholder:"OFFSET" help:"Only files whose records are all below this offset go; default: all."`

	configFlag
	settings
}

// Validate checks ranges.
func (c *offloadCommand) Validate() error {
	if c.Before != nil && *c.Before < 0 {
		return fmt.Errorf("--before %d: want 0 or more", *c.Before)
	}
	return c.settings.Validate()
}

// Run moves records to the cold tier, and their files off the disk.
func (c *offloadCommand) Run(ctx context.Context, s *streams) (err error) {
	if !c.cold() {
		return usageError{fmt.Errorf("%w: set cold.url", varve.ErrNoColdTier)}
	}
	l, done, err := c.openLog(ctx, s, c.Dir)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := closeLog(ctx, l); err == nil {
			err = closeErr
		}
		done()
	}()
	if err := awaitTiers(ctx, s, l); err != nil {
		return err
	}
	before := l.Committed()
	if c.Before != nil {
		before = *c.Before
	}
	was := l.Stats()
	p := s.progress("exported offsets", before-was.Exported)
	defer p.done()
	err = c.offload(ctx, s, l, before, func(to int64) { p.at(to - was.Exported) })
	p.done()
	if err != nil {
		return fmt.Errorf("%s: offload before %d: %w", filepath.Clean(c.Dir), before, err)
	}
	x := l.Stats()
	s.note("moved offsets [%d, %d) off the disk, %s are left there; the cold tier holds what is below %d",
		was.HotStart, max(x.HotStart, was.HotStart), sizeText(x.SegmentBytes), x.Exported)
	return nil
}

// offload moves records below an offset. A bucket that has failed and takes nothing since, because it may not be
// written to, say, or is full, is waited for so long. A slow one is waited for as long as it takes parts, but not
// for ever where none of them becomes an object.
func (c *offloadCommand) offload(ctx context.Context, s *streams, l *varve.Log, before int64, at func(exported int64)) error {
	waiting, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	limit := 2 * tierWait // a part may take as long as that, and fail
	x := l.Stats()
	moved, idle, again := x, false, false
	took := time.Now()
	err := whileWaiting(func() error { return l.Offload(waiting, before) }, func() {
		last := x
		x = l.Stats()
		at(x.Exported)
		switch silent := time.Since(took); {
		case x.ColdError == nil || x.Exported > moved.Exported:
			took, moved = time.Now(), x
		case x.ColdTakenBytes-moved.ColdTakenBytes > triesOfObject*max(int64(c.SegmentBytes), x.ColdLagBytes/int64(max(1, x.ColdLagSegments))):
			giveUp(fmt.Errorf("the cold tier has taken %s and no object came of it: %w", sizeText(x.ColdTakenBytes-moved.ColdTakenBytes), x.ColdError))
		case x.ColdTakenBytes > last.ColdTakenBytes:
			if took = time.Now(); !again {
				again = true
				s.note("varve: warning: an upload has failed; it is sent again, and waited for as long as the cold tier takes any of it: %v", oneLine(x.ColdError))
			}
		case silent > limit:
			giveUp(fmt.Errorf("the cold tier has taken nothing for %v: %w", limit, x.ColdError))
		case silent > downAfter && !idle:
			idle = true
			s.note("varve: warning: the cold tier takes nothing; waiting up to %v: %v", limit, oneLine(x.ColdError))
		}
	})
	if errors.Is(err, context.Canceled) {
		return context.Cause(waiting)
	}
	return err
}

// triesOfObject is how often an object is sent, at least, before an offload ends.
const triesOfObject = 3
