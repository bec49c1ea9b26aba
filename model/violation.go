package model

import "strconv"

// Check is the number of a checker.
type Check uint8

// Checkers judged by this package. The others are the simulator's own.
const (
	K1  Check = 1  // acked is present, same bytes, same offset, per policy's loss window
	K2  Check = 2  // what a reader has seen never changes or vanishes, and lies below Committed
	K3  Check = 3  // a recovered log is a hole-free prefix-extension of the committed one
	K4  Check = 4  // no phantom, no duplicate, no offset acked twice
	K5  Check = 5  // acked A before B was called: offset A < offset B
	K6  Check = 6  // linearizable append, read and tail
	K7  Check = 7  // an unknown outcome is in or out for ever from its first observation
	K8  Check = 8  // no ack at or above an offset acked in a later epoch
	K9  Check = 9  // after a failed sync no ack until reopen
	K11 Check = 11 // damage is reported or refused: never served, never cut
	K14 Check = 14 // retention deletes what the policy says and no more; Start is monotone
	K15 Check = 15 // follow is ordered, unique, complete, resumable
	K16 Check = 16 // dense offsets across roll, restart, takeover
	K17 Check = 17 // the log's watermarks agree with the reference log after each operation
	K23 Check = 23 // a definite failure had no effect
	K25 Check = 25 // without damage an open needs no operator
)

// String returns the checker's name.
func (k Check) String() string { return "K" + strconv.Itoa(int(k)) }

// Checks lists the checkers of this package.
var Checks = [...]Check{K1, K2, K3, K4, K5, K6, K7, K8, K9, K11, K14, K15, K16, K17, K23, K25}

// Violation is the first thing that was wrong. Text is built by Error, not before.
type Violation struct {
	Check  Check
	Why    string // what was broken, without figures
	Time   Time   // virtual time of the event that showed it
	Stamp  Stamp  // its place in the order of events
	Op     OpID   // append concerned, 0 if none
	Reader int32  // reader concerned, -1 if none
	Offset Offset // offset concerned, -1 if none
	Want   int64  // what Why says was expected
	Found  int64
}

// Error prints the violation on one line.
func (v *Violation) Error() string {
	b := make([]byte, 0, 160)
	b = append(b, "model: "...)
	b = append(b, v.Check.String()...)
	b = append(b, " violated: "...)
	b = append(b, v.Why...)
	if v.Offset >= 0 {
		b = append(b, "; offset "...)
		b = strconv.AppendInt(b, v.Offset, 10)
	}
	if v.Op != 0 {
		b = append(b, "; append "...)
		b = strconv.AppendInt(b, int64(v.Op), 10)
	}
	if v.Reader >= 0 {
		b = append(b, "; reader "...)
		b = strconv.AppendInt(b, int64(v.Reader), 10)
	}
	b = append(b, "; expected "...)
	b = strconv.AppendInt(b, v.Want, 10)
	b = append(b, ", found "...)
	b = strconv.AppendInt(b, v.Found, 10)
	b = append(b, "; at "...)
	b = strconv.AppendInt(b, v.Time, 10)
	b = append(b, " ns, event "...)
	return string(strconv.AppendInt(b, int64(v.Stamp), 10))
}
