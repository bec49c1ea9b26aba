package fakevalkey

// Fault is one way in which a server, its replicas, the network or a client library misbehaves. The id
// in the comment is that of the fault catalogue; one id may have several faults.
//
// W8 (a trim that is not exact) and W11 (WAITAOF) strike commands that a log never sends; the fake
// refuses them.
type Fault uint8

// Faults.
const (
	NoFault     Fault = iota
	W1Dial            // W1 no connection is to be had
	W1Before          // W1 connection lost before any command took effect
	W1Inside          // W1 connection lost after some commands took effect
	W1After           // W1 connection lost after all took effect
	W2Short           // W2 WAIT answers for fewer replicas; the others stay behind
	W2Late            // W2 WAIT answers for fewer replicas; the others have it soon after
	W3Other           // W3 WAIT answers, and its pipeline had written nothing (a mark alone)
	W4Suffix          // W4 failover to a replica that lacks a suffix
	W4Acked           // W4 failover that loses what a WAIT had confirmed
	W5Suffix          // W5 restart loses a suffix
	W5All             // W5 restart loses everything
	W5Prefix          // W5 restart loses the oldest entries
	W5Regress         // W5 restart loses a suffix, and the last ids with it
	W6Evict           // W6 a whole stream evicted
	W6OOM             // W6 out of memory: every write of the pipeline refused
	W7Duplicate       // W7 a write sent twice: it took effect, and the answer is "equal or smaller"
	W9Slow            // W9 the answer takes long
	W10Type           // W10 another type under the key
	W10Foreign        // W10 entries of somebody else
	W12Before         // W12 the library connected again before the pipeline
	W12Inside         // W12 the library connected again inside the pipeline
	W13Some           // W13 some writes refused, later ones not
	FaultCount
)

var faultNames = [FaultCount]string{
	"none", "W1.dial", "W1.before", "W1.inside", "W1.after", "W2.short", "W2.late", "W3.other", "W4.suffix", "W4.acked",
	"W5.suffix", "W5.all", "W5.prefix", "W5.regress", "W6.evict", "W6.oom", "W7.duplicate", "W9.slow", "W10.type",
	"W10.foreign", "W12.before", "W12.inside", "W13.some",
}

// String returns the fault's short name.
func (f Fault) String() string {
	if f < FaultCount {
		return faultNames[f]
	}
	return "unknown fault"
}

// ParseFault is the inverse of String.
func ParseFault(name string) (Fault, bool) {
	for i := range faultNames {
		if faultNames[i] == name {
			return Fault(i), true
		}
	}
	return NoFault, false
}

// FaultSet is a set of faults.
type FaultSet uint64

// AllFaults holds every fault.
const AllFaults FaultSet = 1<<FaultCount - 2

// CallFaults are those that strike a call by themselves; the world asks for the others.
const CallFaults FaultSet = 1<<W1Dial | 1<<W1Before | 1<<W1Inside | 1<<W1After | 1<<W2Short | 1<<W2Late | 1<<W6Evict |
	1<<W6OOM | 1<<W7Duplicate | 1<<W9Slow | 1<<W12Before | 1<<W12Inside | 1<<W13Some

// Bit returns the set of f alone.
func (f Fault) Bit() FaultSet { return 1 << f }

// Has reports whether f is in s.
func (s FaultSet) Has(f Fault) bool { return s&f.Bit() != 0 }

// Rates says for each fault in how many of 65,536 chances it strikes.
type Rates [FaultCount]uint16

// faults is the part of a server that decides what strikes.
type faults struct {
	below  func(n uint64) uint64
	set    FaultSet
	rates  Rates
	armed  [FaultCount]int
	counts [FaultCount]int
}

// SetFaults says which faults draws may choose, and how often.
func (s *Server) SetFaults(set FaultSet, rates *Rates) { s.faults.set, s.faults.rates = set, *rates }

// Arm makes a fault strike at the n-th chance from now, whether its switch is on or not.
func (s *Server) Arm(f Fault, n int) { s.faults.armed[f] = n }

// Marks returns the faults that took effect since Reset.
func (s *Server) Marks() (marks FaultSet) {
	for f, n := range s.faults.counts {
		if n > 0 {
			marks |= Fault(f).Bit()
		}
	}
	return marks
}

// Count returns how often a fault took effect since Reset.
func (s *Server) Count(f Fault) int { return s.faults.counts[f] }

// strikes decides whether a fault strikes now. Nothing is drawn for one that is off.
func (f *faults) strikes(fault Fault) bool {
	if f.armed[fault] > 0 {
		if f.armed[fault]--; f.armed[fault] == 0 {
			return true
		}
	}
	return f.set.Has(fault) && f.rates[fault] > 0 && f.below(1<<16) < uint64(f.rates[fault])
}

// mark counts a fault that took effect.
func (f *faults) mark(fault Fault) { f.counts[fault]++ }

// number draws a number in [0, n); 0 if n is 0.
func (f *faults) number(n int) int {
	if n <= 0 {
		return 0
	}
	return int(f.below(uint64(n)))
}
