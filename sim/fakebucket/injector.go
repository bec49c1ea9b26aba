package fakebucket

import (
	"strings"

	"varve/faultfs"
)

// Rates is how often each call meets a fault, in 1/65,536. The fault is drawn evenly from those that
// are switched on and can strike that call.
type Rates [OpCount]uint16

// arm is one fault waiting for its call.
type arm struct {
	op     Op
	fault  Fault
	skip   int
	suffix string
}

// Injector decides which calls meet which faults: all with a lasting one, else those that are armed,
// then, at the rates set, random ones.
type Injector struct {
	rand      faultfs.Rand
	faults    FaultSet
	spared    FaultSet // are drawn and do not strike
	rates     Rates
	arms      []arm
	down      Fault  // every call that it can strike meets it
	downAfter Fault  // and will, once a condition does not hold
	away      string // key of an object that is not there for a while
	paused    bool
	counts    [FaultCount]int64
	marks     FaultSet
	watch     func(Fault)
}

// Seed restarts the stream that all draws inside calls come from.
func (x *Injector) Seed(seed uint64) { x.rand.Seed(seed) }

// SetFaults switches faults on, and all others off, for random draws.
func (x *Injector) SetFaults(s FaultSet) { x.faults = s }

// Faults returns the faults that are switched on.
func (x *Injector) Faults() FaultSet { return x.faults }

// Spare lets faults take no effect at all, although they are drawn and armed: what else is drawn
// stays as it is. It holds until it is called again, beyond a Reset.
func (x *Injector) Spare(s FaultSet) { x.spared = s }

// SetRates makes calls meet faults at random; all zero turns that off.
func (x *Injector) SetRates(r *Rates) { x.rates = *r }

// FailNext makes the next call of an operation meet a fault. It panics if the fault cannot strike it.
func (x *Injector) FailNext(op Op, f Fault) { x.Arm(op, f, 0, "") }

// Arm makes a call meet a fault: the one after the next skip calls of that operation on keys that end
// in suffix. It panics if the fault cannot strike such a call.
func (x *Injector) Arm(op Op, f Fault, skip int, suffix string) {
	check(callFaults[op].Has(f), "fakebucket: this fault cannot strike this call")
	x.arms = append(x.arms, arm{op, f, skip, suffix})
}

// Armed returns how many arms have not struck yet.
func (x *Injector) Armed() int { return len(x.arms) }

// SetDown makes every call that it can strike meet a fault, which must be one without effect: an
// outage, credentials that expired, or that may not write. NoFault ends it.
func (x *Injector) SetDown(f Fault) {
	check(f == NoFault || changeFaults.Has(f), "fakebucket: this fault is no outage")
	x.down = f
}

// SetDownAfterLoss is SetDown(f) from the moment on at which a condition does not hold. NoFault takes that back.
func (x *Injector) SetDownAfterLoss(f Fault) {
	check(f == NoFault || changeFaults.Has(f), "fakebucket: this fault is no outage")
	x.downAfter = f
}

// lost is told that a condition does not hold.
func (x *Injector) lost() {
	if x.downAfter != NoFault {
		x.down, x.downAfter = x.downAfter, NoFault
	}
}

// SetAway makes an object one that is not there, until it is put anew or SetAway is called with another key, or none.
func (x *Injector) SetAway(key string) { x.away = key }

// Away reports whether an object is.
func (x *Injector) Away() bool { return x.away != "" }

// gone reports whether an object is away, and marks that somebody asked for it.
func (x *Injector) gone(key string) bool {
	if x.away != key || x.paused || x.spared.Has(O10Away) {
		return false
	}
	x.mark(O10Away)
	return true
}

// Heal ends all faults to come: arms, rates, an outage. The switches stay.
func (x *Injector) Heal() {
	x.arms = x.arms[:0]
	x.rates = Rates{}
	x.down, x.downAfter, x.away = NoFault, NoFault, ""
}

// Pause ends all faults until Resume, for whoever looks at the bucket from outside the run. Arms keep
// waiting, and what is late stays so.
func (x *Injector) Pause() { x.paused = true }

// Resume ends a pause.
func (x *Injector) Resume() { x.paused = false }

// Marks returns the faults that took effect since Reset.
func (x *Injector) Marks() FaultSet { return x.marks }

// Struck returns how often a fault took effect since Reset.
func (x *Injector) Struck(f Fault) int64 { return x.counts[f] }

// Watch calls f whenever a fault takes effect; nil ends that.
func (x *Injector) Watch(f func(Fault)) { x.watch = f }

func (x *Injector) mark(f Fault) {
	x.marks |= f.Bit()
	x.counts[f]++
	if x.watch != nil {
		x.watch(f)
	}
}

func (x *Injector) reset(seed uint64) {
	x.Heal()
	x.rand.Seed(seed)
	x.faults, x.marks = 0, 0
	x.counts = [FaultCount]int64{}
}

// draw returns the fault that strikes a call, NoFault as a rule.
func (x *Injector) draw(op Op, key string) Fault {
	f := x.choose(op, key)
	if x.spared.Has(f) {
		return NoFault
	}
	return f
}

func (x *Injector) choose(op Op, key string) Fault {
	if x.paused {
		return NoFault
	}
	if x.down != NoFault && callFaults[op].Has(x.down) {
		return x.down
	}
	for i := range x.arms {
		a := &x.arms[i]
		if a.op != op || !strings.HasSuffix(key, a.suffix) {
			continue
		}
		if a.skip > 0 {
			a.skip--
			continue
		}
		f := a.fault
		x.arms = append(x.arms[:i], x.arms[i+1:]...)
		return f
	}
	if x.rates[op] == 0 || !x.rand.Chance(x.rates[op]) {
		return NoFault
	}
	set := callFaults[op] & x.faults
	if set == 0 {
		return NoFault
	}
	return set.pick(int(x.rand.Below(uint64(set.Len()))))
}

// check panics about a call of the simulator that makes no sense.
func check(ok bool, text string) {
	if !ok {
		panic(text)
	}
}
