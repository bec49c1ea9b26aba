package sim

import (
	"varve/core"
	"varve/core/manifest"
	"varve/faultfs"
	"varve/sim/fakebucket"
)

// Mix is which tiers a schedule has.
type Mix uint8

// Mixes.
const (
	MixDisk   Mix = iota // the local disk alone
	MixCold              // and a bucket
	MixWarm              // the disk and a Valkey server
	MixTiers             // all three
	MixBroker            // a node with many logs, each on the disk alone
	mixCount
)

var mixNames = [mixCount]string{"disk", "cold", "warm", "tiers", "broker"}

// String returns the word of a mix.
func (m Mix) String() string {
	if m < mixCount {
		return mixNames[m]
	}
	return "unknown"
}

// ParseMix is the inverse of String.
func ParseMix(word string) (Mix, bool) {
	for i, name := range mixNames {
		if name == word {
			return Mix(i), true
		}
	}
	return 0, false
}

// bucketFaults are the failures of a bucket that cost no copy, and come and go with each call.
var bucketFaults = fakebucket.AllFaults &^ fakebucket.Damaging &^ fakebucket.Careless &^ fakebucket.Set(fakebucket.O10Away, fakebucket.O11ReadOnly)

// coldHeader draws what happens to the bucket. What damages a disk stays out of most of these seeds:
// with it recovery may refuse, and the seed proves less.
func (x *expander) coldHeader() {
	h := &x.s.Header
	x.turn(SwOffload, 50)
	x.turn(SwLose, 40)
	x.turn(SwOutage, 30)
	x.turn(SwMove, 30)
	if x.percent(15) { // one copy is damaged, and the others are not lost with it
		h.Switches = h.Switches&^(1<<SwMove|1<<SwLose) | 1<<SwSpoil
	}
	if x.percent(80) {
		h.Faults &^= damage
	}
	if x.on(SwMove) || x.on(SwLose) || x.on(SwSpoil) {
		h.Switches &^= 1 << SwProducers // what is known of producers goes with the disk
	}
	if x.on(SwMove) || x.on(SwSpoil) {
		h.Faults &^= damage
	}
	if x.on(SwLose) {
		h.Faults &^= faultfs.Set(faultfs.D8Misdirect, faultfs.D9Lie)
	}
	for f := fakebucket.NoFault + 1; f < fakebucket.FaultCount; f++ {
		if bucketFaults.Has(f) && x.percent(30) {
			h.Bucket |= f.Bit()
		}
	}
	level := uint16(x.pick(0, 400, 2000, 8000, 20000))
	for op := range fakebucket.OpCount {
		if h.Bucket&fakebucket.CallFaults(op) != 0 {
			h.Refusals[op] = level
			x.failing = x.failing || level > 0
		}
	}
	h.Refusals[fakebucket.OpGet] /= 4
}

// coldConfig draws the cold tier of a configuration.
func (x *expander) coldConfig(c *core.Config) {
	c.Cold, c.Create = true, true
	c.ColdMaxUploadAge = x.pick(core.Unlimited, 5*millisecond, 50*millisecond)
	c.ColdScanObjects = 1 << 20 // all, so that it is known what a log remembers
	c.ColdPageSegments = int(x.pick(manifest.SegmentsMax, 1, 2, 4))
	c.RetentionBytes, c.RetentionAge = core.Unlimited, core.Unlimited
	if x.percent(20) {
		c.RetentionBytes = x.pick(core.Unlimited, 1, 4096, 16384)
		c.RetentionAge = x.pick(core.Unlimited, 20*millisecond, 200*millisecond)
	}
	c.LocalRetentionBytes = x.pick(core.Unlimited, 1, 4096, 16384)
	c.LocalRetentionAge = x.pick(core.Unlimited, core.Unlimited, 20*millisecond)
}

// coldWorld draws what happens to the tiers between operations.
func (x *expander) coldWorld() {
	if x.on(SwOffload) && x.percent(6) {
		x.emit(Event{Kind: Offload, A: x.r.Below(1001)})
	}
	if x.on(SwOutage) && x.percent(4) {
		x.emit(Event{Kind: Outage, A: x.r.Below(outageCount)})
	}
	if x.on(SwLose) && x.percent(2) {
		x.gone(Lose)
	}
	if x.on(SwSpoil) && x.percent(8) {
		x.emit(Event{Kind: Spoil, A: x.r.Below(1001), B: x.r.Below(spoilCount)})
	}
	if x.on(SwMove) && x.percent(3) {
		x.moves()
	}
}

// gone takes the disk away for good, or for the time that another host has the log.
func (x *expander) gone(kind Kind) {
	delay := x.r.Between(microsecond, 5*millisecond)
	x.emit(Event{Kind: kind, A: delay})
	x.at += delay + x.openTime()
}

// moves lets another host take over. In some cases the one before lives on; in some of them it had not
// opened the log yet, because it had been taken over just before.
func (x *expander) moves() {
	r := &x.r
	e := Event{Kind: Move, A: r.Between(microsecond, 5*millisecond)}
	if !x.percent(33) {
		x.emit(e)
		x.at += e.A + x.openTime()
		return
	}
	e.B = x.pick(1, r.Between(microsecond, 300*microsecond), r.Between(300*microsecond, 5*millisecond), r.Between(5*millisecond, 80*millisecond))
	if x.percent(40) {
		x.emit(Event{Kind: Move, A: e.A})
		if x.on(SwOutage) && x.percent(50) { // the bucket tells one of them that its claim came second, and then nothing
			x.emit(Event{Kind: Outage, A: OutageLost})
			e.B = e.A + r.Below(x.openTime()+1) // while the other one opens the log
		}
		x.at += e.A + r.Below(x.openTime()+1)
	}
	x.emit(e)
	x.at += e.A + x.openTime()
}
