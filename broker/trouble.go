package broker

import (
	"errors"
	"fmt"
	"time"

	"varve"
	"varve/core"
	"varve/core/topics"
)

// What goes wrong with a disk or a tier goes wrong for all partitions at once, and comes right by itself. The node has
// one line when it begins and one when it is over, however many partitions it has.

// troubles are what a node looks for: a spell each.
type troubles struct{ space, cold, warm, offline spell }

// spell is whether something is wrong, as the log was told.
type spell struct {
	since time.Time // zero: nothing is
	well  int       // looks in a row that found nothing
}

// wellLooks is after how many looks without a finding a spell is over: one that comes and goes is one.
const wellLooks = 3

// turn takes what a look found. It reports whether the spell has begun or ended with it, and how long it was.
func (s *spell) turn(now time.Time, found bool) (began, ended bool, lasted time.Duration) {
	switch {
	case found && s.since.IsZero():
		*s = spell{since: now}
		return true, false, 0
	case found:
		s.well = 0
	case !s.since.IsZero():
		if s.well++; s.well == wellLooks {
			lasted = now.Sub(s.since)
			*s = spell{}
			return false, true, lasted
		}
	}
	return false, false, 0
}

// hit is which partitions have a trouble.
type hit struct {
	partitions int
	first      topics.Dir
	cause      error
}

func (h *hit) add(d topics.Dir, cause error) {
	if h.partitions++; h.partitions == 1 {
		h.first, h.cause = d, cause
	}
}

// look tells the log what began to go wrong, and what came right.
func (b *Broker) look(t *troubles) {
	var space, cold, warm, offline hit
	opening := false
	for _, x := range b.known.Load().byName {
		for _, p := range *x.partitions.Load() {
			d := topics.Dir{Topic: x.Name, Incarnation: x.Incarnation, Partition: p.Number}
			l := p.Log()
			if l == nil {
				switch err := p.Err(); {
				case err == nil: // opened just now
				case errors.Is(err, errNotYet), errors.Is(err, errOpening), errors.Is(err, errDeleted):
					opening = true
				default:
					offline.add(d, err)
				}
				continue
			}
			trouble := l.Trouble()
			if trouble.NoSpace {
				space.add(d, varve.ErrNoSpace)
			}
			if trouble.Cold != nil {
				cold.add(d, trouble.Cold)
			}
			if trouble.Warm != nil {
				warm.add(d, trouble.Warm)
			}
		}
	}
	now := time.Now()
	b.tellSpace(&t.space, now, &space)
	b.tellTier(&t.cold, now, core.TierCold, &cold)
	b.tellTier(&t.warm, now, core.TierWarm, &warm)
	if _, ended, lasted := t.offline.turn(now, offline.partitions > 0 || opening && !t.offline.since.IsZero()); ended { // see complain for its begin
		b.logger.Warn("broker: all partitions are served again", "dir", b.tree.name(), "after", lasted.Round(time.Second))
	}
}

func (b *Broker) tellSpace(s *spell, now time.Time, h *hit) {
	began, ended, lasted := s.turn(now, h.partitions > 0)
	if !began && !ended {
		return
	}
	figures := []any{"dir", b.tree.name(), "min_free_bytes", b.minFreeBytes()}
	if fs, _, err := b.tree.catalogue(); err == nil {
		if free, err := fs.Free(); err == nil {
			figures = append(figures, "free_bytes", free)
		}
	}
	if began {
		b.logger.Error("broker: the disk is full, or has less free space than min_free_bytes: appends are refused until it has more",
			append(figures, "partitions", h.partitions, "first", h.first.String())...)
		return
	}
	b.logger.Warn("broker: the disk has room again: appends are taken", append(figures, "after", lasted.Round(time.Second))...)
}

// minFreeBytes is that of the logs.
func (b *Broker) minFreeBytes() int64 {
	n := b.options.Log.MinFreeBytes
	if n == 0 {
		n = core.DefaultConfig().MinFreeBytes
	}
	return max(n, 0)
}

func (b *Broker) tellTier(s *spell, now time.Time, tier core.Tier, h *hit) {
	switch began, ended, lasted := s.turn(now, h.partitions > 0); {
	case began:
		b.logger.Warn(fmt.Sprintf("broker: the %s tier does not answer as it should", tier), "dir", b.tree.name(),
			"partitions", h.partitions, "first", h.first.String(), "cause", h.cause)
	case ended:
		b.logger.Warn(fmt.Sprintf("broker: the %s tier answers again", tier), "dir", b.tree.name(), "after", lasted.Round(time.Second))
	}
}
