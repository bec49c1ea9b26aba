package sim

import (
	"math/bits"

	"varve/core"
	"varve/faultfs"
)

// HashEvery is the number of events between two of the hashes that World.Hashes returns.
const HashEvery = 64

// OpsMax is the largest number of operations that a schedule may be asked to have.
const OpsMax = opsMax

// coreMarksMax is how many marks a core.MarkSet has room for.
const coreMarksMax = len(core.MarkSet{}) * 64

// MarkCounts counts the runs that reached each mark. The zero value is ready for use.
type MarkCounts struct {
	disk [64]int64
	core [coreMarksMax]int64
	sim  [64]int64
}

// Add counts one run.
func (c *MarkCounts) Add(m *Marks) {
	count(c.disk[:], uint64(m.Disk))
	for i, set := range m.Core {
		count(c.core[64*i:], set)
	}
	count(c.sim[:], m.Sim)
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
		c.sim[i] += o.sim[i]
	}
	for i := range c.core {
		c.core[i] += o.core[i]
	}
}

// MarkCount is one mark of the registry and the runs that reached it. The first word of its name is
// where it lies: disk, core or sim.
type MarkCount struct {
	Name string
	Runs int64
}

// List returns every mark, in the order of the registry. Those of Unreachable are there only if a
// run reached them.
func (c *MarkCounts) List() []MarkCount {
	var all []MarkCount
	add := func(name string, runs int64) {
		if runs > 0 || Unreachable[name] == "" {
			all = append(all, MarkCount{name, runs})
		}
	}
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		add("disk "+f.String(), c.disk[f])
	}
	for m := range core.MarkCount {
		add("core "+coreMarkName(m), c.core[m])
	}
	for m := range markCount {
		add("sim "+markNames[m], c.sim[m])
	}
	return all
}

// Put sets the count of a mark by its name in List, and reports whether there is such a mark.
func (c *MarkCounts) Put(name string, runs int64) bool {
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		if name == "disk "+f.String() {
			c.disk[f] = runs
			return true
		}
	}
	for m := range core.MarkCount {
		if name == "core "+coreMarkName(m) {
			c.core[m] = runs
			return true
		}
	}
	for m := range markCount {
		if name == "sim "+markNames[m] {
			c.sim[m] = runs
			return true
		}
	}
	return false
}
