package sim

import (
	"varve/core"
	"varve/sim/fakevalkey"
)

// serverFaults are the failures of a Valkey server that a schedule draws. Another type or foreign data
// under the key is what an operator mends; core tests do that.
const serverFaults = fakevalkey.AllFaults &^ (1<<fakevalkey.W3Other | 1<<fakevalkey.W10Type | 1<<fakevalkey.W10Foreign)

// lossy are those after which what was confirmed may be gone.
const lossy fakevalkey.FaultSet = 1<<fakevalkey.W4Acked | 1<<fakevalkey.W5Suffix | 1<<fakevalkey.W5All |
	1<<fakevalkey.W5Prefix | 1<<fakevalkey.W5Regress | 1<<fakevalkey.W6Evict

// warmHeader draws the server and what happens to it. What damages a disk stays out of most of these
// seeds: with it an open may refuse, and the seed proves less.
func (x *expander) warmHeader() {
	h := &x.s.Header
	if !x.cold && x.percent(80) {
		h.Faults &^= damage
	}
	x.turn(SwServer, 60)
	if sub(h.Seed, 15)%16 == 0 {
		h.Switches |= 1 << SwAnother
	}
	if !x.cold {
		x.turn(SwLose, 40)
		x.turn(SwMove, 20)
	}
	h.Replicas = x.pick(0, 1, 1, 1, 2, 2)
	h.Persist = x.pick(int64(fakevalkey.Always), int64(fakevalkey.Always), int64(fakevalkey.EverySec), int64(fakevalkey.Nothing))
	level := uint16(x.pick(0, 200, 1500, 6000))
	for f := fakevalkey.NoFault + 1; f < fakevalkey.FaultCount; f++ {
		if serverFaults.Has(f) && x.percent(35) {
			h.Server |= f.Bit()
			h.Strikes[f] = level
			x.failing = x.failing || level > 0
		}
	}
	if x.on(SwLose) || x.on(SwMove) {
		h.Faults &^= damage
		h.Switches &^= 1 << SwProducers // what is known of producers goes with the disk
		if x.percent(70) || !x.cold {   // a server that loses nothing: then nothing is lost
			h.Server &^= lossy
			h.Persist = int64(fakevalkey.Always)
		}
		h.Server &^= fakevalkey.W5Prefix.Bit() | fakevalkey.W5Regress.Bit()
		if !x.cold && sub(h.Seed, 14)%3 == 0 { // what a lost disk leaves may begin with a gap
			h.Server |= fakevalkey.W5Prefix.Bit()
			h.Strikes[fakevalkey.W5Prefix] = 1 << 14
		}
	}
}

// warmConfig draws the warm tier of a configuration.
func (x *expander) warmConfig(c *core.Config) {
	h := &x.s.Header
	c.Warm, c.Create = true, true
	c.WarmReplicas = int(min(h.Replicas, x.pick(0, 1, 1, 1, 2)))
	c.WarmWait = x.pick(1, 5, 50, 1000) * millisecond
	c.WarmAckOnTimeout = x.percent(25)
	c.WarmBytes, c.WarmSegments = 1<<40, 1_000_000
	if x.cold || !x.on(SwLose) && !x.on(SwMove) {
		c.WarmBytes = x.pick(1<<40, 1<<40, 4096, 16384)
		c.WarmSegments = int(x.pick(1_000_000, 1_000_000, 0, 1, 2))
	}
	c.WarmEntryBytes = x.pick(1, 256, 1024, 4096, 1<<20)
	c.WarmHoldBytes = x.pick(0, 0, 300, 1000, 1<<20)
}

// warmWorld draws what happens to the server between operations.
func (x *expander) warmWorld() {
	if x.on(SwServer) && x.percent(6) {
		x.emit(Event{Kind: Server, A: x.r.Below(ServerAnother), B: x.r.Below(fakevalkey.ReplicasMax)})
	}
	if x.on(SwAnother) && x.percent(2) {
		x.emit(Event{Kind: Server, A: ServerAnother})
	}
	if x.cold {
		return
	}
	if x.on(SwLose) && x.percent(2) {
		x.gone(Lose)
	}
	if x.on(SwMove) && x.percent(2) {
		x.moves()
	}
}
