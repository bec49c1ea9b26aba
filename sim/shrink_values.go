package sim

import (
	"fmt"
	"math/bits"

	"varve/core"
	"varve/faultfs"
)

// least is the smallest value that an argument of an event has to have; -1 leaves it alone.
var least = [kindCount][4]int64{
	Append: {8, 1},
	Read:   {0, 512, 1},
	Poll:   {512, 1},
	Arm:    {-1, -1},
	Clock:  {-1},
	Rot:    {0, 1},
	Slow:   {-1},

	TopicCreate: {0, 1},
	Produce:     {0, 0, 8},
	Fetch:       {0, 0, 0, 512},
	TopicGrow:   {0, 1},
}

// rounds are the values that are tried in the place of a larger one, simplest first.
var rounds = [...]int64{
	0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100, 128, 256, 500, 512, 1_000, 1 << 10, 1 << 11, 1 << 12, 1 << 13,
	10_000, 1 << 14, 100_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 100_000_000, second, 10 * second,
}

// lower puts the smallest round value between low and the present one in the place of a number of
// the schedule, as long as the schedule fails.
func (x *shrinker) lower(low int64, at func(s *Schedule) *int64) {
	for _, v := range rounds {
		v = max(v, low)
		if v >= *at(&x.best) || x.try(func(s *Schedule) { *at(s) = v }) {
			return
		}
	}
}

// values makes the arguments of events, their times, clients and seeds small.
func (x *shrinker) values() {
	for i := range x.best.Events {
		for n := range 4 {
			if low := least[x.best.Events[i].Kind][n]; low >= 0 {
				x.lower(low, func(s *Schedule) *int64 { return s.Events[i].arg(n) })
			}
		}
		if x.best.Events[i].Client != 0 {
			x.try(func(s *Schedule) { s.Events[i].Client = 0 })
		}
		for sub := uint64(0); sub < min(redraws, x.best.Events[i].Sub); sub++ {
			if x.try(func(s *Schedule) { s.Events[i].Sub = sub }) {
				break
			}
		}
	}
	x.gaps()
}

func (e *Event) arg(n int) *int64 { return [4]*int64{&e.A, &e.B, &e.C, &e.D}[n] }

// gaps makes the time between events short and round.
func (x *shrinker) gaps() {
	for i := range x.best.Events {
		before := int64(0)
		if i > 0 {
			before = x.best.Events[i-1].At
		}
		gap := x.best.Events[i].At - before
		for _, v := range rounds {
			if v >= gap || x.try(func(s *Schedule) {
				for j := i; j < len(s.Events); j++ {
					s.Events[j].At -= gap - v
				}
			}) {
				break
			}
		}
	}
}

// header makes the configuration, the switches, the faults and the rest of the header plain: all at
// once if possible, then one by one.
func (x *shrinker) header() {
	x.try(func(s *Schedule) { s.Header.Switches = 0 })
	for set := x.best.Header.Switches; set != 0; set &= set - 1 {
		x.try(func(s *Schedule) { s.Header.Switches &^= 1 << bits.TrailingZeros64(set) })
	}
	x.try(func(s *Schedule) { s.Header.Faults = 0 })
	for set := uint64(x.best.Header.Faults); set != 0; set &= set - 1 {
		x.try(func(s *Schedule) { s.Header.Faults &^= 1 << bits.TrailingZeros64(set) })
	}
	x.try(func(s *Schedule) { s.Header.Rates = faultfs.Rates{} })
	for op := range x.best.Header.Rates {
		x.try(func(s *Schedule) { s.Header.Rates[op] = 0 })
	}
	x.try(func(s *Schedule) { s.Header.Bucket = 0 })
	for set := uint64(x.best.Header.Bucket); set != 0; set &= set - 1 {
		x.try(func(s *Schedule) { s.Header.Bucket &^= 1 << bits.TrailingZeros64(set) })
	}
	x.try(func(s *Schedule) { s.Header.Server = 0 })
	for set := uint64(x.best.Header.Server); set != 0; set &= set - 1 {
		x.try(func(s *Schedule) { s.Header.Server &^= 1 << bits.TrailingZeros64(set) })
	}
	x.try(func(s *Schedule) { s.Header.Clients = 1 })
	x.try(func(s *Schedule) { s.Header.Capacity = 0 })
	x.try(func(s *Schedule) { s.Header.Write, s.Header.Sync = plainWrite, plainSync })
	x.try(func(s *Schedule) { s.Header.Write = plainWrite })
	x.try(func(s *Schedule) { s.Header.Sync = plainSync })
	x.config()
}

// Latencies of a plain schedule.
const (
	plainWrite = 10 * microsecond
	plainSync  = 100 * microsecond
)

// plainConfig is the default as far as the simulator runs it: small segments, nothing that can be
// left out.
func plainConfig() core.Config {
	c := core.DefaultConfig()
	c.SegmentBytes, c.SegmentAge, c.IndexSpacingBytes = 8192, core.Unlimited, 1024
	c.MaxBatchBytes, c.PendingBytes, c.MinFreeBytes = 16<<10, 64<<10, 0
	c.Preallocate, c.PrepareBytes, c.IdleSave = false, 4096, 0
	c.SyncInterval, c.RetentionCheckInterval, c.ProducersMax = 5*millisecond, 50*millisecond, producersMax
	return c
}

// Unusual lists what of a header is not plain: once a schedule is shrunk, that is what matters.
func (h *Header) Unusual() []string {
	var all []string
	if h.Clients != 1 {
		all = append(all, fmt.Sprint("clients ", h.Clients))
	}
	if h.Write != plainWrite {
		all = append(all, fmt.Sprint("latency write=", h.Write))
	}
	if h.Sync != plainSync {
		all = append(all, fmt.Sprint("latency sync=", h.Sync))
	}
	if h.Capacity != 0 {
		all = append(all, fmt.Sprint("capacity ", h.Capacity))
	}
	for set := h.Switches; set != 0; set &= set - 1 {
		all = append(all, "switch "+switchNames[bits.TrailingZeros64(set)])
	}
	for set := uint64(h.Faults); set != 0; set &= set - 1 {
		all = append(all, "fault "+faultfs.Fault(bits.TrailingZeros64(set)).String())
	}
	for op, rate := range h.Rates {
		if rate != 0 {
			all = append(all, fmt.Sprintf("rate %s=%d", faultfs.Op(op), rate))
		}
	}
	plain := plainConfig()
	for n := range h.Config {
		for i := range configKeys {
			k := &configKeys[i]
			if v := k.at(&h.Config[n]); v != k.at(&plain) {
				all = append(all, fmt.Sprintf("config.%d %s=%d", n, k.name, v))
			}
		}
	}
	return all
}

func (x *shrinker) config() {
	plain := plainConfig()
	h := &x.best.Header // both have a tier, or neither; and something has to make the log
	plain.Cold, plain.Warm = h.Cold(), h.Warm()
	plain.Create = plain.Cold || plain.Warm
	plain.LogID, plain.Nonce = x.best.Header.Config[0].LogID, x.best.Header.Config[0].Nonce
	x.try(func(s *Schedule) { s.Header.Config[0], s.Header.Config[1] = plain, plain })
	for n := range x.best.Header.Config {
		x.try(func(s *Schedule) { s.Header.Config[n] = plain })
	}
	for i := range configKeys {
		k := &configKeys[i]
		x.try(func(s *Schedule) {
			k.put(&s.Header.Config[0], k.at(&plain))
			k.put(&s.Header.Config[1], k.at(&plain))
		})
		for n := range x.best.Header.Config {
			x.try(func(s *Schedule) { k.put(&s.Header.Config[n], k.at(&plain)) })
		}
	}
}
