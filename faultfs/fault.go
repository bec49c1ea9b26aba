package faultfs

import "math/bits"

// Fault is one way in which a disk, a kernel or a device misbehaves. The id in the comment is that
// of the fault catalogue; one id may have several faults.
type Fault uint8

// Faults.
const (
	NoFault      Fault = iota
	D1Sectors          // D1 power loss: any subset of dirty sectors, each old, new or zero; D4: zeros from one on
	D1Garbage          // D1 power loss: random bytes in a dirty sector (never when judged)
	D2Torn             // D2 power loss: the last write torn inside
	D3Size             // D3 power loss: size ahead of data, or data ahead of size
	D5DirOps           // D5 power loss: unsynced directory operations undone, one by one
	D5RenameHalf       // D5 power loss: one half of a rename undone
	D5Parent           // D5 power loss: the log directory itself gone
	D6Stale            // D6 power loss: old content of another file in fresh blocks (never when judged)
	D7Rot              // D7 a bit flips at rest
	D8Misdirect        // D8 a sync that succeeds and writes to the wrong place
	D9Lie              // D9 a sync that succeeds and writes nothing (file or directory)
	D10WriteBack       // D10 dirty sectors and names become durable with no sync
	D11Short           // D11 part of a write applied, then EIO
	D11Interrupt       // D11 part of a write, or nothing, then EINTR
	D12Applied         // D12 all applied, then EIO
	D13NoSpace         // D13 ENOSPC, nothing applied; from a sync: as D17Clean
	D13Short           // D13 part of a write applied, then ENOSPC
	D13Capacity        // D13 the disk is really full
	D14ReadOnce        // D14 EIO on a read, open or list, once
	D14ReadBad         // D14 a sector unreadable until it is written again
	D15Error           // D15 EIO, nothing applied
	D17Clean           // D17 sync fails; pages marked clean, new content in K only
	D17Revert          // D17 sync fails; pages show the old content
	D17Next            // D17 sync succeeds; the next one reports an error, even on a new descriptor
	D17ReadOnly        // D17 sync fails; the file system turns read-only
	D17WriteBack       // D17 background write-back fails; the next sync reports it
	D18Pressure        // D18 ghosts replaced by what the device holds, with no crash
	D19Dead            // D19 the process died at a call
	D19TornCall        // D19 the process died inside a write or a sync
	D21Locked          // D21 a second process met the lock
	D22DirSync         // D22 directory sync fails; the next one "succeeds" and writes nothing
	FaultCount
)

var faultNames = [FaultCount]string{
	"none", "D1.sectors", "D1.garbage", "D2.torn", "D3.size", "D5.dirops", "D5.renamehalf",
	"D5.parent", "D6.stale", "D7.rot", "D8.misdirect", "D9.lie", "D10.writeback", "D11.short",
	"D11.interrupt", "D12.applied", "D13.nospace", "D13.short", "D13.capacity", "D14.once", "D14.bad",
	"D15.error", "D17.clean", "D17.revert", "D17.next", "D17.readonly", "D17.writeback", "D18.pressure",
	"D19.dead", "D19.torn", "D21.locked", "D22.dirsync",
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

// AllFaults holds every fault.
const AllFaults FaultSet = 1<<FaultCount - 2

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

// Op is a class of calls.
type Op uint8

// Classes of calls.
const (
	OpOpen     Op = iota // Open of an existing file
	OpCreate             // Open with disk.Create
	OpRead               // ReadAt
	OpWrite              // WriteAt
	OpZero               // WriteZeros
	OpTruncate           // Truncate
	OpSync               // File.Sync
	OpSyncDir            // SyncDir
	OpRename             // Rename
	OpRemove             // Remove
	OpMkdir              // Mkdir
	OpList               // List
	OpFree               // Free
	OpLock               // Lock
	OpSize               // Size
	OpCount
)

var opNames = [OpCount]string{
	"open", "create", "read", "write", "zero", "truncate", "sync", "syncdir",
	"rename", "remove", "mkdir", "list", "free", "lock", "size",
}

// String returns the name of the class.
func (o Op) String() string {
	if o < OpCount {
		return opNames[o]
	}
	return "unknown call"
}

const (
	readFaults  = FaultSet(1 << D14ReadOnce)
	bareFaults  = FaultSet(1<<D15Error | 1<<D12Applied | 1<<D13NoSpace)
	writeFaults = bareFaults | 1<<D11Short | 1<<D11Interrupt | 1<<D13Short
	syncFaults  = FaultSet(1<<D8Misdirect | 1<<D9Lie | 1<<D12Applied | 1<<D13NoSpace | 1<<D17Clean |
		1<<D17Revert | 1<<D17Next | 1<<D17ReadOnly)
)

var callFaults = [OpCount]FaultSet{
	OpOpen: readFaults, OpCreate: bareFaults, OpRead: readFaults | 1<<D14ReadBad,
	OpWrite: writeFaults, OpZero: writeFaults, OpTruncate: bareFaults, OpSync: syncFaults,
	OpSyncDir: 1<<D9Lie | 1<<D12Applied | 1<<D13NoSpace | 1<<D17ReadOnly | 1<<D22DirSync,
	OpRename:  bareFaults, OpRemove: 1<<D15Error | 1<<D12Applied, OpMkdir: bareFaults,
	OpList: readFaults, OpFree: readFaults, OpLock: bareFaults, OpSize: readFaults,
}

// CallFaults returns the faults that can strike a class of calls.
func CallFaults(op Op) FaultSet { return callFaults[op] }
