package faultfs

// Rates is how often a call of each class meets a fault, in 1/65,536. The fault is drawn evenly
// from those that are switched on and can strike that class.
type Rates [OpCount]uint16

// arm is one fault waiting for its call.
type arm struct {
	op     Op
	fault  Fault
	skip   int
	suffix string
}

// Injector decides which calls meet which faults: those that are armed, then, at the rates set,
// random ones. It belongs to one goroutine.
type Injector struct {
	rand   Rand
	faults FaultSet
	spared FaultSet // are drawn and do not strike
	rates  Rates
	arms   []arm
	active bool // any arm or rate is set: the only test a faultless call makes
}

// Seed restarts the stream that all draws inside calls come from.
func (x *Injector) Seed(seed uint64) { x.rand.Seed(seed) }

// SetFaults switches faults on, and all others off: for rates and for what a power loss does.
func (x *Injector) SetFaults(s FaultSet) { x.faults = s }

// Faults returns the faults that are switched on.
func (x *Injector) Faults() FaultSet { return x.faults }

// Spare lets faults take no effect at all, although they are drawn and armed: what else is drawn
// stays as it is. It holds until it is called again, beyond a Reset.
func (x *Injector) Spare(s FaultSet) { x.spared = s }

// struck is a fault that was drawn, unless it is spared.
func (x *Injector) struck(f Fault) Fault {
	if x.spared.Has(f) {
		return NoFault
	}
	return f
}

// SetRates makes calls meet faults at random; all zero turns that off.
func (x *Injector) SetRates(r *Rates) {
	x.rates = *r
	x.activate()
}

// FailNext makes the next call of a class meet a fault. It panics if the fault cannot strike it.
func (x *Injector) FailNext(op Op, f Fault) { x.Arm(op, f, 0, "") }

// Arm makes a call meet a fault: the one after the next skip calls of that class on names that end
// in suffix (directories have the names that SyncDir takes). It panics if the fault cannot strike
// such a call.
func (x *Injector) Arm(op Op, f Fault, skip int, suffix string) {
	check(callFaults[op].Has(f), "faultfs: this fault cannot strike this call")
	x.arms = append(x.arms, arm{op, f, skip, suffix})
	x.activate()
}

// Armed returns how many arms have not struck yet.
func (x *Injector) Armed() int { return len(x.arms) }

// Heal ends all faults to come: arms and rates. The switches stay.
func (x *Injector) Heal() {
	x.arms = x.arms[:0]
	x.rates = Rates{}
	x.active = false
}

// Pause ends all faults, armed and random, until Resume: for whoever looks at the disk from outside
// the run. Arms keep waiting.
func (x *Injector) Pause() { x.active = false }

// Resume ends a pause.
func (x *Injector) Resume() { x.activate() }

func (x *Injector) activate() {
	x.active = len(x.arms) > 0
	for _, r := range x.rates {
		x.active = x.active || r != 0
	}
}

// Draw returns the fault that strikes a call, NoFault as a rule.
func (x *Injector) Draw(op Op, name string) Fault {
	if !x.active {
		return NoFault
	}
	for i := range x.arms {
		a := &x.arms[i]
		if a.op != op || !hasSuffix(name, a.suffix) {
			continue
		}
		if a.skip > 0 {
			a.skip--
			continue
		}
		f := a.fault
		x.arms = append(x.arms[:i], x.arms[i+1:]...)
		x.activate()
		return x.struck(f)
	}
	rate := x.rates[op]
	if rate == 0 || !x.rand.Chance(rate) {
		return NoFault
	}
	set := callFaults[op] & x.faults
	if set == 0 {
		return NoFault
	}
	return x.struck(set.pick(int(x.rand.Below(uint64(set.Len())))))
}

// Below returns a number in [0, n) from the stream of the draws.
func (x *Injector) Below(n uint64) uint64 { return x.rand.Below(n) }

func hasSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && s[len(s)-len(suffix):] == suffix
}
