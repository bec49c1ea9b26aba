package sim

import (
	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

const (
	microsecond = 1_000
	millisecond = 1_000_000
	second      = 1_000_000_000
)

// identity derives what the driver would draw for a log: its id and the nonce of the first life.
func identity(seed uint64) (id segment.LogID, nonce uint64) {
	a, b := sub(seed, 1), sub(seed, 2)
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	return id, sub(seed, 3) | 1
}

// Expand draws the schedule of a seed into s, whose memory is reused. ops is the number of
// operations; 0 draws it: 8 to 1000, median 50.
func Expand(s *Schedule, seed uint64, ops int) { ExpandMix(s, MixDisk, seed, ops) }

// ExpandMix is Expand for another mix of tiers.
func ExpandMix(s *Schedule, mixed Mix, seed uint64, ops int) {
	x := expander{s: s, cold: mixed == MixCold || mixed == MixTiers, warm: mixed == MixWarm || mixed == MixTiers, node: mixed == MixBroker}
	x.r.Seed(mix(seed))
	s.Events = s.Events[:0]
	s.Header = Header{Seed: seed, Profile: drawProfile(&x.r)}
	x.old = mixed == MixDisk && sub(seed, 4)%oldEvery == 0
	if x.old {
		s.Header.Profile = Calm
	}
	if drawn := x.drawOps(); ops == 0 {
		ops = int(drawn)
	}
	x.ops = int64(ops)
	x.header()
	x.timeline()
}

type expander struct {
	s   *Schedule
	r   Rand
	ops int64

	at      int64 // virtual time reached
	gap     int64 // typical time between operations
	deaths  int64 // still to come
	old     bool  // the log has a long lineage
	cold    bool  // there is a cold tier
	warm    bool  // there is a warm tier
	node    bool  // there are many logs
	topics  int64 // names that its clients use
	hurting bool
	failing bool  // some call may fail
	aiming  bool  // the profile arms single failures
	lull    int64 // operations until the clients pause, so that a process that died is back
	reads   int64 // weight of operations that are not appends, in 256
}

func (x *expander) drawOps() int64 {
	r := &x.r
	switch kind := r.Below(100); {
	case kind < 50:
		return r.Between(8, 50)
	case kind < 85:
		return r.Between(51, 120)
	case kind < 98:
		return r.Between(121, 350)
	}
	return r.Between(351, 1000)
}

// one of the values, alike.
func (x *expander) pick(values ...int64) int64 { return values[x.r.Below(int64(len(values)))] }

// percent reports true in p of 100 cases.
func (x *expander) percent(p int64) bool { return x.r.Below(100) < p }

func (x *expander) on(s Switch) bool { return x.s.Header.On(s) }

func (x *expander) turn(s Switch, percent int64) {
	if x.percent(percent) {
		x.s.Header.Switches |= 1 << s
	}
}

func (x *expander) set(s Switch) { x.s.Header.Switches |= 1 << s }

func (x *expander) header() {
	h := &x.s.Header
	h.Clients = x.r.Between(1, 4)
	h.Write = x.pick(2*microsecond, 10*microsecond, 40*microsecond)
	h.Sync = x.pick(20*microsecond, 100*microsecond, 100*microsecond, 400*microsecond)
	x.features()
	h.Faults = crashFaults
	switch h.Profile {
	case Uniform:
		x.faults(callFaults, 18)
		x.faults(damage, 3)
		for sw := SwForward; sw <= SwSkew; sw++ {
			x.turn(sw, 12)
		}
	case Decay:
		x.faults(callFaults, 8)
		x.faults(damage, 40)
		h.Faults |= faultfs.D7Rot.Bit()
	case Full:
		x.faults(faultfs.Set(faultfs.D13NoSpace, faultfs.D13Short), 50)
	case Aging:
		for sw := SwForward; sw <= SwSkew; sw++ {
			x.turn(sw, 60)
		}
	}
	x.rates()
	if h.Profile == Full || h.Profile == Uniform && x.percent(5) {
		h.Capacity = x.pick(12<<10, 24<<10, 40<<10)
	}
	x.config(&h.Config[0])
	if x.old {
		h.Switches = h.Switches&^(1<<SwConfig) | 1<<SwTrim
		c := &h.Config[0]
		c.RetentionBytes, c.RetentionAge = core.Unlimited, core.Unlimited
		c.LocalRetentionBytes, c.LocalRetentionAge = core.Unlimited, core.Unlimited
	}
	if x.cold {
		x.coldHeader()
		x.coldConfig(&h.Config[0])
	}
	if x.warm {
		x.warmHeader()
		x.warmConfig(&h.Config[0])
	}
	if x.node {
		x.nodeHeader()
		x.nodeConfig(&h.Config[0])
	}
	h.Config[1] = h.Config[0]
	if x.on(SwConfig) {
		x.config(&h.Config[1])
		if x.node {
			x.nodeConfig(&h.Config[1])
		}
		if x.cold {
			x.coldConfig(&h.Config[1])
		}
		if x.warm {
			x.warmConfig(&h.Config[1])
		}
	}
}

// features are what a seed does, as opposed to what is done to it.
func (x *expander) features() {
	x.set(SwPower)
	x.turn(SwPressure, 50)
	x.turn(SwBack, 40)
	x.turn(SwSlow, 30)
	x.turn(SwHang, 10)
	x.turn(SwSecond, 15)
	x.turn(SwConfig, 40)
	x.turn(SwPause, 10)
	x.turn(SwProducers, 40)
	x.turn(SwTrim, 35)
	x.turn(SwRoll, 35)
	x.turn(SwBig, 12)
	x.turn(SwZeros, 15)
	x.turn(SwIdle, 35)
	x.reads = x.pick(10, 20, 40, 70)
	x.gap = x.pick(0, 1, 2, 5, 10, 20, 60, 300) * microsecond
}

// crashFaults are what a power loss may do; each strikes at random, so they are always on.
var crashFaults = faultfs.Set(faultfs.D1Sectors, faultfs.D2Torn, faultfs.D3Size,
	faultfs.D5DirOps, faultfs.D5RenameHalf, faultfs.D5Parent, faultfs.D10WriteBack, faultfs.D18Pressure,
	faultfs.D17WriteBack)

// callFaults are the failures of calls that damage nothing which was proven.
var callFaults = faultfs.Set(faultfs.D11Short, faultfs.D11Interrupt, faultfs.D12Applied,
	faultfs.D13NoSpace, faultfs.D13Short, faultfs.D14ReadOnce, faultfs.D15Error, faultfs.D17Clean,
	faultfs.D17Revert, faultfs.D17Next, faultfs.D17ReadOnly, faultfs.D22DirSync)

// faults turns on each fault of a set with the given chance. Those that damage what was proven are
// rare: with one of them on, recovery may refuse, and the seed proves less.
func (x *expander) faults(set faultfs.FaultSet, percent int64) {
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		if set.Has(f) && x.percent(percent) {
			x.s.Header.Faults |= f.Bit()
		}
	}
}

// rates draws how often calls fail while faults are on: from hardly ever to one in twenty. Writes
// come first, because a failed sync or open ends the life.
func (x *expander) rates() {
	h := &x.s.Header
	level := uint16(x.pick(40, 150, 400, 1200))
	for op := range faultfs.OpCount {
		if h.Faults&faultfs.CallFaults(op) == 0 {
			continue
		}
		switch op {
		case faultfs.OpWrite, faultfs.OpTruncate, faultfs.OpZero, faultfs.OpList: // a list is made once a life
			h.Rates[op] = level
		case faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpRead:
			h.Rates[op] = level / 4
		default:
			h.Rates[op] = level / 8
		}
		x.failing = x.failing || h.Rates[op] != 0
	}
}

func (x *expander) config(c *core.Config) {
	h := &x.s.Header
	*c = core.DefaultConfig()
	c.LogID, c.Nonce = identity(h.Seed)
	c.Sync = segment.SyncMode(x.pick(0, 0, 0, 0, 0, 1, 1, 1, 2))
	if h.Profile == Cache || h.Profile == Cut {
		c.Sync = segment.SyncMode(x.pick(0, 0, 0, 1))
	}
	c.SyncInterval = x.pick(1, 2, 5, 20) * millisecond
	c.SegmentBytes = x.pick(1024, 2048, 4096, 4096, 4096, 8192, 8192, 8192, 8192, 8192, 8192, 8192)
	c.SegmentAge = x.pick(core.Unlimited, core.Unlimited, core.Unlimited, core.Unlimited, 5*millisecond, 100*millisecond)
	c.IndexSpacingBytes = x.pick(1, 256, 512, 1024)
	if x.percent(12) {
		c.SectorBytes = int(x.pick(1024, 2048, 4096))
		c.SegmentBytes = max(c.SegmentBytes, 2*int64(c.SectorBytes))
	}
	c.MaxBatchBytes = x.pick(16<<10, 16<<10, 16<<10, 16<<10, 256)
	c.PendingBytes = max(c.MaxBatchBytes, x.pick(256, 1024, 16<<10, 64<<10))
	c.MinFreeBytes = 0
	if h.Capacity > 0 {
		c.MinFreeBytes = x.pick(0, 2048, 8192)
	}
	c.Preallocate = x.percent(50)
	c.PrepareBytes = max(x.pick(512, 1024, 2048), int64(c.SectorBytes))
	c.IdleSave = x.pick(0, millisecond, 10*millisecond, 50*millisecond, 50*millisecond, 50*millisecond)
	c.RetentionCheckInterval = x.pick(5, 20, 50, 50) * millisecond
	c.ProducersMax = int(x.pick(1, 2, 4, 4))
	if x.percent(15) || h.Profile == Aging {
		c.RetentionBytes = x.pick(core.Unlimited, 1, 4096, 16384)
		c.RetentionAge = x.pick(core.Unlimited, 2*millisecond, 20*millisecond, 200*millisecond)
		c.LocalRetentionBytes = x.pick(core.Unlimited, core.Unlimited, 8192)
		c.LocalRetentionAge = x.pick(core.Unlimited, core.Unlimited, 50*millisecond)
	}
	c.VerifyAllOnOpen = x.percent(15)
	if h.Damaging() {
		c.RepairChecksumTail = x.percent(20)
		c.AllowDamaged = x.percent(25)
	}
}

// emit appends an event at the time reached.
func (x *expander) emit(e Event) {
	e.At = x.at
	e.Sub = sub(x.s.Header.Seed, uint64(len(x.s.Events)+16))
	x.s.Events = append(x.s.Events, e)
}

// timeline draws the events. Deaths are spread over the operations; the rest of the world's doings
// are drawn between them.
func (x *expander) timeline() {
	h := &x.s.Header
	x.deaths = x.pick(0, 0, 0, 0, 1, 1, 1, 1, 1, 1)
	if x.ops > 60 && x.percent(40) {
		x.deaths += x.r.Between(1, 3)
	}
	if h.Profile != Uniform && h.Profile != Calm {
		x.deaths = max(1, x.deaths)
	}
	if h.Profile == Quiet || h.Profile == Again {
		x.deaths = max(2, x.deaths)
	}
	x.aiming = aimed(h.Profile)
	if h.Profile == Again && x.percent(75) {
		x.stillborn()
	}
	x.at += x.openTime()
	if x.old {
		x.grow()
	}
	if x.node {
		x.nodeTopics()
	}
	for left := x.ops; left > 0; left-- {
		x.world(left)
		if x.lull--; x.lull == 0 {
			x.at += 3*millisecond + x.openTime()
		}
		if x.hurting && x.lull <= 0 {
			x.lull = 10
		}
		x.operation()
		if x.deaths > 0 && x.r.Below(left) < x.deaths {
			x.deaths--
			if x.death() {
				left--
			}
		}
	}
}

// openTime is about what an open takes.
func (x *expander) openTime() int64 {
	if x.percent(6) {
		return 0
	}
	if x.node {
		return 80*(x.s.Header.Write+x.s.Header.Sync) + millisecond
	}
	return 24*(x.s.Header.Write+x.s.Header.Sync) + millisecond
}

func (x *expander) step() {
	x.at += x.r.Below(2*x.gap + 1)
	if x.on(SwIdle) && x.percent(4) {
		x.at += x.r.Between(millisecond, 80*millisecond)
	}
}

func (x *expander) operation() {
	x.step()
	client := uint8(x.r.Below(x.s.Header.Clients))
	if x.node {
		x.nodeOperation(client)
		return
	}
	if x.r.Below(256) >= x.reads {
		if x.on(SwProducers) && x.percent(6) {
			x.emit(Event{Kind: Retry, Client: client, A: x.r.Below(producersMax)})
			return
		}
		x.append(client)
		return
	}
	fetch, most := x.pick(512, 4096, 16384), x.pick(1, 4, 1000)
	switch kind := x.r.Below(16); {
	case kind < 4:
		x.emit(Event{Kind: Read, Client: client, A: x.r.Below(1001), B: fetch, C: most})
	case kind < 9:
		x.emit(Event{Kind: Poll, Client: client, A: fetch, B: most})
	case kind < 12 && x.on(SwTrim):
		x.emit(Event{Kind: Trim, Client: client, A: x.r.Below(1001)})
	case kind < 13 && x.on(SwRoll):
		x.emit(Event{Kind: RollNow, Client: client})
	case kind < 14:
		x.emit(Event{Kind: FindTime, Client: client, A: x.r.Below(1001)})
	default:
		x.emit(Event{Kind: Query, Client: client})
	}
}

func (x *expander) append(client uint8) {
	e := Event{Kind: Append, Client: client, A: x.r.Between(8, 64), B: 1}
	if x.percent(25) {
		e.B = x.r.Between(2, 4)
	}
	if x.on(SwBig) && x.percent(6) {
		e.A = x.r.Between(65, 3*x.s.Header.Config[0].SegmentBytes/2)
	} else if x.on(SwZeros) && x.percent(15) {
		e.A = x.r.Between(600, 1800)
	}
	if x.on(SwZeros) {
		e.C = x.r.Below(contentCount)
	}
	if x.on(SwProducers) && x.percent(50) {
		e.D = 1 + x.r.Below(producersMax)
	}
	x.emit(e)
}

// world draws what happens to the process besides dying.
func (x *expander) world(left int64) {
	h := &x.s.Header
	if left == x.ops && x.failing && x.percent(80) {
		x.hurt(true)
	} else if x.failing && x.percent(4) {
		x.hurt(!x.hurting)
	}
	if x.on(SwBack) && x.percent(8) {
		x.emit(Event{Kind: WriteBack})
	}
	if h.Switches&(1<<SwForward|1<<SwBackward|1<<SwFreeze|1<<SwSkew) != 0 && x.percent(5) {
		x.clock()
	}
	if x.on(SwPause) && x.percent(3) {
		x.emit(Event{Kind: Pause, A: x.r.Between(millisecond, 5*second)})
	}
	if x.on(SwSecond) && x.percent(5) {
		x.emit(Event{Kind: Second})
	}
	if h.Faults.Has(faultfs.D7Rot) && x.percent(4) {
		x.emit(Event{Kind: Rot, A: x.r.Below(1001), B: x.r.Between(1, 3)})
	}
	if (x.on(SwSlow) && x.percent(4)) || (x.on(SwHang) && x.percent(1)) {
		long := x.r.Between(millisecond, 30*millisecond)
		if x.on(SwHang) {
			long = x.r.Between(second, 5*second)
		}
		x.emit(Event{Kind: Slow, A: x.r.Below(3), B: long})
	}
	if x.aiming {
		x.aim()
	}
	if x.cold {
		x.coldWorld()
	}
	if x.warm {
		x.warmWorld()
	}
}

func (x *expander) hurt(on bool) {
	x.hurting = on
	if on {
		x.emit(Event{Kind: Hurt})
	} else {
		x.emit(Event{Kind: Heal})
	}
}

func (x *expander) clock() {
	how := x.r.Below(clockJumps)
	if !x.on(SwForward + Switch(how)) {
		return
	}
	by := x.r.Between(millisecond, second)
	if how == ClockBack {
		by = 3600 * second
	}
	x.emit(Event{Kind: Clock, A: how, B: by})
}

// aimed reports whether aim has anything to do.
func aimed(p Profile) bool {
	switch p {
	case Swallow, Directory, Cut, Cache, Decay, Full:
		return true
	}
	return false
}

// aim arms the single failures of the aimed profiles.
func (x *expander) aim() {
	r := &x.r
	shot := func(chance int64, f faultfs.Fault, op faultfs.Op, skip int64) {
		if x.percent(chance) {
			x.emit(Event{Kind: Arm, A: int64(f), B: int64(op), C: skip})
		}
	}
	syncs := [...]faultfs.Fault{faultfs.D17Clean, faultfs.D17Revert, faultfs.D17Next, faultfs.D17ReadOnly}
	writes := [...]faultfs.Fault{faultfs.D11Short, faultfs.D12Applied, faultfs.D15Error, faultfs.D13Short}
	switch x.s.Header.Profile { // those of aimed
	case Swallow:
		shot(3, syncs[r.Below(3)], faultfs.OpSync, r.Below(4))
	case Directory:
		shot(4, faultfs.D22DirSync, faultfs.OpSyncDir, r.Below(3))
	case Cut:
		shot(5, writes[r.Below(4)], faultfs.OpWrite, r.Below(3))
		shot(2, faultfs.D12Applied, faultfs.OpTruncate, 0)
		shot(3, faultfs.D15Error, faultfs.OpCreate, 0)
		shot(3, faultfs.D15Error, faultfs.OpRemove, 0)
	case Cache:
		shot(3, syncs[r.Below(4)], faultfs.OpSync, r.Below(3))
	case Decay:
		if x.s.Header.Faults.Has(faultfs.D9Lie) {
			shot(4, faultfs.D9Lie, faultfs.OpSyncDir, r.Below(3))
		}
		if x.s.Header.Faults.Has(faultfs.D8Misdirect) {
			shot(8, faultfs.D8Misdirect, faultfs.OpSync, r.Below(8))
		}
	case Full:
		shot(4, faultfs.D13NoSpace, faultfs.OpSync, r.Below(8))
	}
}

// death ends a life and reports whether that was an operation of a client. The time moves to about
// when the log is open again, so that operations find one.
func (x *expander) death() bool {
	r, h := &x.r, &x.s.Header
	x.at += r.Below(h.Write + h.Sync + 1)
	delay := r.Between(microsecond, 5*millisecond)
	config := int64(0)
	if x.on(SwConfig) {
		config = r.Below(2)
	}
	kind := r.Below(100)
	if kind < 20 && h.Profile <= Calm {
		x.emit(Event{Kind: Restart, Client: uint8(r.Below(h.Clients)), A: config, B: delay})
		x.at += delay + x.openTime()
		return true
	}
	how := x.how()
	if kind < 32 {
		e := Event{Kind: Doom, A: 1 + r.Below(24), B: how}
		if x.percent(30) {
			e.C = r.Between(1, savesMax)
		}
		x.emit(e)
		x.lull = r.Between(2, 8)
		return false
	}
	recovery := config
	if x.percent(18) || h.Profile == Again {
		recovery |= r.Between(1, 40) << 8
		if x.percent(40) {
			recovery |= r.Between(1, 40) << 16
		}
	}
	x.emit(Event{Kind: Crash, A: how, B: r.Below(6), C: delay, D: recovery})
	x.at += delay
	if h.Faults.Has(faultfs.D7Rot) && x.percent(50) { // between a scan and a rescue
		x.at += r.Below(12 * (h.Write + h.Sync))
		x.emit(Event{Kind: Rot, A: r.Below(1001), B: 3})
	}
	x.at += x.openTime()
	if h.Profile == Quiet {
		for range r.Between(0, 2) {
			x.emit(Event{Kind: Crash, A: x.how(), B: r.Below(6), C: delay, D: config})
			x.at += delay + x.openTime()
		}
	}
	return false
}

// oldEvery is of how many seeds one has a log of hundreds of lives.
const oldEvery = 8192

// grow lives so many brief lives that the superblock outgrows a block. Then it trims: in the midst of
// a life the superblock shrinks, and whatever is saved after that has to be there in the next one.
func (x *expander) grow() {
	h := &x.s.Header
	lives := x.r.Between(335, 345)
	life := 3*millisecond + 32*(h.Write+h.Sync) + 4*lives*h.Write
	x.emit(Event{Kind: Restart, B: millisecond, C: lives})
	x.at += lives * life
	for range x.r.Between(1, 3) {
		x.emit(Event{Kind: Trim, A: x.r.Between(50, 500)})
		x.at += x.r.Below(life)
	}
	if x.percent(75) {
		x.emit(Event{Kind: Restart, B: millisecond})
		x.at += life
	}
}

// stillborn is a death while the log is created, and often in the opens after that: what they find is
// a superblock in one slot, or in none.
func (x *expander) stillborn() {
	r, h := &x.r, &x.s.Header
	x.at = r.Below(16 * h.Write)
	e := Event{Kind: Crash, A: x.how(), B: r.Below(6), C: r.Between(microsecond, millisecond), D: r.Between(0, 16) << 8}
	if x.percent(50) {
		e.D |= r.Between(1, 16) << 16
	}
	x.emit(e)
	x.at += e.C
}

func (x *expander) how() Death {
	switch x.s.Header.Profile {
	case Cache:
		return x.pick(DeathKillPressure, DeathKillPressurePower, DeathKillPower, DeathKill)
	case Directory, Cut, Quiet, Swallow:
		return x.pick(DeathPower, DeathPower, DeathKillPower, DeathPowerPower, DeathKill)
	}
	if !x.on(SwPressure) {
		return x.pick(DeathKill, DeathPower, DeathPower, DeathKillPower)
	}
	return x.r.Below(deathCount)
}
