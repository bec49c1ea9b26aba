package sim

import (
	"math/bits"

	"varve/core"
)

// HashEvery is the number of events between two of the hashes that World.Hashes returns.
const HashEvery = 64

// OpsMax is the largest number of operations that a schedule may be asked to have.
const OpsMax = opsMax

// coreMarksMax is how many marks a core.MarkSet has room for.
const coreMarksMax = len(core.MarkSet{}) * 64

// MarkCounts counts the runs that reached each mark. The zero value is ready for use.
type MarkCounts struct {
	disk   [64]int64
	bucket [64]int64
	server [64]int64
	core   [coreMarksMax]int64
	sim    [64]int64
	topics [64]int64
	tiers  [core.TierCount + 1]int64 // runs whose log had that tier
}

// Add counts one run.
func (c *MarkCounts) Add(m *Marks) {
	count(c.disk[:], uint64(m.Disk))
	count(c.bucket[:], uint64(m.Bucket))
	count(c.server[:], uint64(m.Server))
	for t := range m.Tiers {
		if m.Tiers[t] {
			c.tiers[t]++
		}
	}
	for i, set := range m.Core {
		count(c.core[64*i:], set)
	}
	count(c.sim[:], m.Sim)
	count(c.topics[:], uint64(m.Topics))
}

func count(to []int64, set uint64) {
	for ; set != 0; set &= set - 1 {
		to[bits.TrailingZeros64(set)]++
	}
}

// Join adds what others counted.
func (c *MarkCounts) Join(o *MarkCounts) {
	for i := range c.disk {
		c.disk[i] += o.disk[i]
		c.bucket[i] += o.bucket[i]
		c.server[i] += o.server[i]
		c.sim[i] += o.sim[i]
		c.topics[i] += o.topics[i]
	}
	for i := range c.core {
		c.core[i] += o.core[i]
	}
	for t := range c.tiers {
		c.tiers[t] += o.tiers[t]
	}
}

// MarkCount is one mark of the registry and the runs that reached it. The first word of its name is
// where it lies: disk, core, bucket, server, sim or topics.
type MarkCount struct {
	Name string
	Runs int64
}

// List returns every mark, in the order of the registry. Those of Unreachable are there only if a
// run reached them, those of a tier only if a run had it.
func (c *MarkCounts) List() []MarkCount {
	var all []MarkCount
	var had Tiers
	for t, runs := range c.tiers {
		had[t] = runs > 0
	}
	for _, e := range registry() {
		runs := *c.at(&e)
		if runs > 0 || Unreachable[e.name] == "" && e.due(had) {
			all = append(all, MarkCount{e.name, runs})
		}
	}
	return all
}

// at returns the count of a mark.
func (c *MarkCounts) at(e *markEntry) *int64 {
	return &[...][]int64{c.disk[:], c.core[:], c.bucket[:], c.server[:], c.sim[:], c.topics[:]}[e.kind][e.index]
}

// Put sets the count of a mark by its name in List, and reports whether there is such a mark.
func (c *MarkCounts) Put(name string, runs int64) bool {
	for _, e := range registry() {
		if e.name == name {
			*c.at(&e) = runs
			c.tiers[e.tier] = max(c.tiers[e.tier], runs)
			return true
		}
	}
	return false
}
