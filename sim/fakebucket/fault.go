package fakebucket

import "math/bits"

// Fault is one way in which a bucket misbehaves. The id in the comment is that of the fault catalogue;
// one id may have several faults.
type Fault uint8

// Faults.
const (
	NoFault     Fault = iota
	O1Before          // O1 an error, nothing applied
	O2Applied         // O2 applied, then an error in place of the answer
	O3Late            // O3 an error, applied some time later
	O4Throttled       // O4 503, nothing applied
	O4Internal        // O4 500, nothing applied
	O5Own             // O5 a conditional write applied, then 412 because of that very write
	O5Conflict        // O5 409, nothing applied
	O6Body            // O6 Finish: 200 with an error in the body, nothing applied
	O6Applied         // O6 Finish: 200 with an error in the body, although it took effect
	O7Missing         // O7 a part that was stored is gone
	O7Orphan          // O7 an abort that answers and leaves the upload
	O7Gone            // O7 the upload is aborted by somebody else
	O8Error           // O8 a body cut short, seen as an error
	O8Short           // O8 a body cut short, taken for a clean end: what a careless binding gives
	O8Range           // O8 another range than asked: what a careless binding gives
	O9Read            // O9 a bit flipped on the way to the reader
	O9Rot             // O9 a bit flipped in the object, for good
	O9Write           // O9 a bit flipped on the way into the object
	O10NotFound       // O10 404 just after a put
	O10Expired        // O10 the object deleted by a lifecycle rule
	O10Away           // O10 the object is not there for a while, as if a hand had deleted it and another one brought it back
	O11Denied         // O11 credentials expired, nothing applied
	O11ReadOnly       // O11 credentials that may read alone, or no room: a call that changes something fails, nothing applied
	O13Deleted        // O13 a delete applied, then an error in place of the answer
	O14Stale          // O14 the version before is read
	O14Restored       // O14 the version before is back for good
	FaultCount
)

var faultNames = [FaultCount]string{
	"none", "O1.before", "O2.applied", "O3.late", "O4.throttled", "O4.internal", "O5.own", "O5.conflict",
	"O6.body", "O6.applied", "O7.missing", "O7.orphan", "O7.gone", "O8.error", "O8.short", "O8.range",
	"O9.read", "O9.rot", "O9.write", "O10.notfound", "O10.expired", "O10.away", "O11.denied", "O11.readonly", "O13.deleted",
	"O14.stale", "O14.restored",
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

// Set returns the set of the faults given.
func Set(faults ...Fault) FaultSet {
	var s FaultSet
	for _, f := range faults {
		s |= f.Bit()
	}
	return s
}

const (
	// AllFaults holds every fault.
	AllFaults FaultSet = 1<<FaultCount - 2
	// Damaging holds the faults that cost the copy in this bucket: Damages lists what they struck.
	Damaging FaultSet = 1<<O9Rot | 1<<O9Write | 1<<O10Expired | 1<<O14Restored
	// Careless holds what no binding that keeps the contract of tiers.Bucket lets through.
	Careless FaultSet = 1<<O8Short | 1<<O8Range
)

// Bit returns the set of f alone.
func (f Fault) Bit() FaultSet { return 1 << f }

// Has reports whether f is in s.
func (s FaultSet) Has(f Fault) bool { return s&f.Bit() != 0 }

// Len returns how many faults are in s.
func (s FaultSet) Len() int { return bits.OnesCount64(uint64(s)) }

// pick returns the n-th fault of s, counted from 0.
func (s FaultSet) pick(n int) Fault {
	for ; n > 0; n-- {
		s &= s - 1
	}
	return Fault(bits.TrailingZeros64(uint64(s)))
}

// Op is a call of tiers.Bucket.
type Op uint8

// Calls.
const (
	OpPut Op = iota
	OpBegin
	OpPart
	OpFinish
	OpAbort
	OpGet
	OpHead
	OpDelete
	OpList
	OpUploads
	OpCount
)

var opNames = [OpCount]string{"put", "begin", "part", "finish", "abort", "get", "head", "delete", "list", "uploads"}

// String returns the name of the call.
func (o Op) String() string {
	if o < OpCount {
		return opNames[o]
	}
	return "unknown call"
}

const (
	anyFaults    = FaultSet(1<<O1Before | 1<<O4Throttled | 1<<O4Internal | 1<<O11Denied)
	changeFaults = anyFaults | 1<<O11ReadOnly
	writeFaults  = changeFaults | 1<<O2Applied | 1<<O3Late | 1<<O5Conflict
	seenFaults   = anyFaults | 1<<O10NotFound | 1<<O10Expired | 1<<O14Stale | 1<<O14Restored
)

var callFaults = [OpCount]FaultSet{
	OpPut:   writeFaults | 1<<O5Own | 1<<O9Write,
	OpBegin: changeFaults | 1<<O2Applied,
	OpPart:  changeFaults | 1<<O2Applied | 1<<O3Late | 1<<O7Gone | 1<<O9Write,
	OpFinish: writeFaults | 1<<O5Own | 1<<O6Body | 1<<O6Applied | 1<<O7Missing | 1<<O7Gone |
		1<<O9Write,
	OpAbort:  changeFaults | 1<<O2Applied | 1<<O3Late | 1<<O7Orphan,
	OpGet:    seenFaults | 1<<O8Error | 1<<O8Short | 1<<O8Range | 1<<O9Read | 1<<O9Rot,
	OpHead:   seenFaults,
	OpDelete: changeFaults | 1<<O3Late | 1<<O5Conflict | 1<<O13Deleted,
	OpList:   anyFaults, OpUploads: anyFaults,
}

// CallFaults returns the faults that can strike a call.
func CallFaults(op Op) FaultSet { return callFaults[op] }
