package sim

import (
	"io"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// The exhaustive engine goes through a small scope whole: every sequence of a few operations, every
// crash point of it, every image that a power loss could leave there, and again for the recovery from
// each of those. Judges and machinery are the World's; only who decides differs. Nothing is drawn:
//
//   - effects run one call after the other, each lane in turn a step, so that effects of several
//     lanes overlap in one fixed way;
//   - a crash point lies before each file-system call, inside a write at each sector boundary, after
//     the last call of each step before the log hears of it, and where the log is at rest;
//   - at each point the process is killed, and the power fails with every image of faultfs.Doubt. Up to
//     ImagesMax all of them are taken, beyond that a fixed sample. What the inside of a sync leaves is
//     among the images before it;
//   - what is left is opened, judged by all checkers, appended to and closed;
//   - at each point of that recovery the process is killed and the power fails again; and so at each
//     point of one more operation, any of the alphabet, after it.
//
// States that were met before are not gone into again: the same bytes under the same names, of which
// the same is owed, have the same future, left by a crash or recovered and at rest.

// SmallOp is an operation of a small scope.
type SmallOp uint8

// Operations.
const (
	SmallAppend SmallOp = iota // a record of 24 bytes
	SmallLarge                 // a record of 1,200 bytes, three sectors
	SmallBatch                 // a commit of two batches of two records, two sectors
	SmallSync                  // time for the timer's sync and a save of the frontier; under none the kernel writes back
	SmallRoll                  // the active segment is sealed
	SmallTrim                  // the older half of the records goes
	SmallClose                 // clean close, open
	SmallReopen                // kill, open
	SmallRetain                // time for retention, which keeps ten seconds
	smallOpCount
)

var smallOpNames = [smallOpCount]string{
	"append", "large", "batch", "sync", "roll", "trim", "close", "reopen", "retention",
}

// String returns the word of an operation.
func (o SmallOp) String() string { return smallOpNames[o] }

// SmallOpNames returns the words of all operations.
func SmallOpNames() []string { return smallOpNames[:] }

// SmallOps is how many operations the alphabet has.
const SmallOps = int(smallOpCount)

// SmallConfigs are the configurations of a small scope, by their fsync mode.
var SmallConfigs = [...]string{"on_commit", "periodic", "none"}

// ImagesMax is the number of images of one crash point up to which all of them are taken.
const ImagesMax = 1 << 10

// SmallOpsMax bounds the operations of a small scope.
const SmallOpsMax = 6

func smallConfig(mode int) core.Config {
	c := core.DefaultConfig()
	c.LogID, _ = identity(exhaustSeed)
	c.Sync = segment.SyncMode(mode)
	c.SyncInterval = 5 * millisecond
	c.SegmentBytes = 3072
	c.SegmentAge = core.Unlimited
	c.IndexSpacingBytes = 512
	c.MaxBatchBytes, c.PendingBytes = 4096, 1<<16
	c.MinFreeBytes = 0
	c.PrepareBytes = 1024
	c.IdleSave = millisecond
	c.RetentionAge = 10 * second
	c.RetentionCheckInterval = second
	c.ProducersMax = 4
	return c
}

// exhaustSeed has zeros at its end, so that a clean close is judged whole (World.closed).
const exhaustSeed = 0x5345454400

// Scope counts the sequences of a small scope: all of up to Ops operations under each configuration,
// shorter ones first. A number stands for a sequence; of it the crash points of the last operation
// are gone through, because those before are another's.
type Scope struct{ Ops int }

// Len returns how many sequences there are.
func (s Scope) Len() int {
	total, n := 0, len(SmallConfigs)
	for range s.Ops + 1 {
		total += n
		n *= SmallOps
	}
	return total
}

// Case returns the i-th sequence.
func (s Scope) Case(i int) Case {
	var c Case
	n := len(SmallConfigs)
	for i >= n {
		i -= n
		n *= SmallOps
		c.Len++
	}
	c.Config = i % len(SmallConfigs)
	i /= len(SmallConfigs)
	for at := c.Len - 1; at >= 0; at-- {
		c.Ops[at] = SmallOp(i % SmallOps)
		i /= SmallOps
	}
	return c
}

// Case is a sequence of operations under a configuration, and the crashes at which something was found.
type Case struct {
	Config  int
	Ops     [SmallOpsMax]SmallOp
	Len     int
	Crashes [2]CrashPoint
	Depth   int     // how many of Crashes count
	More    bool    // after the recovery from the first crash another operation follows:
	Then    SmallOp // this one; a second crash lies in it
}

// CrashPoint is where and how a process dies.
type CrashPoint struct {
	Call  int   // number of the call, from 1, since the operation or the life began; 0: at rest
	Part  int64 // 0: before the call; n: inside it, behind n sectors; -1: after it
	Kill  bool
	Image uint64 // of faultfs.Doubt, of a power loss
}

const partAfter = -1

// StateKind is how a state came about.
type StateKind uint8

// Kinds of states.
const (
	CrashedOnce StateKind = iota
	CrashedTwice
	RecoveredOnce // after one crash, at rest
	RecoveredTwice
	StateKinds
)

// Seen remembers what was met before.
type Seen interface {
	// New notes a state and reports whether it was not met before.
	New(kind StateKind, state uint64) bool
	// Stop reports whether to end early.
	Stop() bool
}

// ExhaustCounts is how much was gone through.
type ExhaustCounts struct {
	Points  [2]int64 // crash points of sequences, of recoveries
	Images  [2]int64 // images of power losses at them and kernel views of kills, equal ones included
	Sampled [2]int64 // points with more than ImagesMax images
	States  [StateKinds]int64
}

// Add adds what others counted.
func (c *ExhaustCounts) Add(o *ExhaustCounts) {
	for i := range c.Points {
		c.Points[i] += o.Points[i]
		c.Images[i] += o.Images[i]
		c.Sampled[i] += o.Sampled[i]
	}
	for i := range c.States {
		c.States[i] += o.States[i]
	}
}

// Explorer goes through cases. It belongs to one goroutine.
type Explorer struct {
	Counts ExhaustCounts

	seen   Seen
	worlds [3]*World // the sequence; the life after a crash; the life after another
	lenses [2]lens
	header Schedule
	at     Case
	target *Case // the only crashes to try
	found  *Found
	rested faultfs.Doubt // of a recovered log
}

// Found is a violation.
type Found struct {
	Case
	Check, Text string
}

// NewExplorer returns an explorer.
func NewExplorer(seen Seen) *Explorer {
	x := &Explorer{seen: seen}
	for i := range x.worlds {
		x.worlds[i] = NewWorld()
	}
	for i := range x.lenses {
		x.lenses[i] = lens{x: x, level: i, w: x.worlds[i]}
		x.worlds[i].fs.Observe(&x.lenses[i])
	}
	return x
}

// Explore goes through the crash points of a case and returns the first violation, nil if there is
// none.
func (x *Explorer) Explore(c Case) *Found {
	x.target, x.found, x.at = nil, nil, c
	x.at.Depth, x.at.More = 0, false
	x.run(&c)
	return x.found
}

// Replay runs a case with the crashes that it names, and no others, and writes the timeline. It
// reports false if the case has no such point.
func (x *Explorer) Replay(c Case, trace io.Writer) (f *Found, ok bool) {
	x.target, x.found, x.at = &c, nil, c
	for _, w := range x.worlds {
		w.Trace = trace
	}
	x.at.Depth, x.at.More = 0, false
	x.run(&c)
	return x.found, c.Depth == 0 || x.at.Depth == c.Depth
}
