package faultfs

import (
	"errors"
	"fmt"

	"varve/tiers/disk"
)

// Sector is the unit that a device writes whole or not at all, in bytes.
const Sector = 512

// Processes is how many processes may use one Disk.
const Processes = 4

// MaxFileBytes bounds a simulated file, because it lives in memory twice.
const MaxFileBytes = 1 << 30

// Errors of injected faults. ErrDead is returned by every call of a process whose call budget is
// used up; such a call had no effect.
var (
	ErrIO          = errors.New("faultfs: simulated EIO")
	ErrInterrupted = errors.New("faultfs: simulated EINTR")
	ErrDead        = errors.New("faultfs: the process is dead")

	errNoSpace  = fmt.Errorf("faultfs: simulated ENOSPC: %w", disk.ErrNoSpace)
	errReadOnly = fmt.Errorf("faultfs: simulated EROFS: %w", disk.ErrReadOnly)
)

// Errors of the calls themselves.
var (
	errNotExist   = fmt.Errorf("faultfs: %w", disk.ErrNotExist)
	errExist      = fmt.Errorf("faultfs: %w", disk.ErrExist)
	errLocked     = fmt.Errorf("faultfs: %w", disk.ErrLocked)
	errFull       = fmt.Errorf("faultfs: %w", disk.ErrNoSpace)
	errReadHandle = fmt.Errorf("faultfs: file is open for reading only: %w", disk.ErrReadOnly)
	errName       = errors.New("faultfs: bad file name")
	errDir        = errors.New("faultfs: not a directory of the log")
	errIsDir      = errors.New("faultfs: is a directory, not a file")
	errNotDir     = errors.New("faultfs: is not a directory")
	errRange      = errors.New("faultfs: negative position or size, or beyond the largest file")
	errClosed     = errors.New("faultfs: file is closed")
)

// Params describes a fresh disk.
type Params struct {
	Seed     uint64 // of the disk's own stream, until the first Seed
	Capacity int64  // bytes; 0 is unlimited
	LogDir   bool   // the log directory exists, durably
}

// Disk is one simulated disk with one log directory, and others beside it: see FS.Beside. It belongs
// to one goroutine.
type Disk struct {
	Injector
	marks    FaultSet
	readOnly bool // a failed sync made the file system read-only
	capacity int64
	used     int64
	lives    uint32
	pairs    uint32 // renames so far; pairs their halves

	fs       [Processes]FS
	dirs     []*dir // the parent, the log directory, its quarantine; then such pairs again, of other logs
	freeDirs []*dir
	inodes   []*inode // in use
	free     []*inode // cleared
	sweepAt  int      // files from which on newInode collects
	handles  []*File
	next     int // where the search for an unused handle goes on
	open     int

	last      *inode // the latest write, for D2Torn
	lastOff   int64
	lastEnd   int64
	counts    Counts
	violation violation
	watch     func(Fault)
}

// New returns a disk as Reset(Params{}) leaves it.
func New() *Disk {
	d := &Disk{}
	for i := range d.fs {
		d.fs[i].d = d
	}
	for range dirQuarantine + 1 {
		d.addDir("")
	}
	d.growHandles(16)
	d.Reset(Params{})
	return d
}

// Reset makes the disk empty and faultless. It costs what was used since the last Reset.
func (d *Disk) Reset(p Params) {
	d.lives = 0
	d.Lose()
	d.rand.Seed(p.Seed)
	d.faults, d.marks, d.readOnly = 0, 0, false
	d.capacity = p.Capacity
	d.counts = Counts{}
	d.violation = violation{}
	d.Heal()
	if p.LogDir {
		d.dirs[dirParent].put(logEntry, &d.dirs[dirLog].node)
		d.dirs[dirParent].settle()
	}
}

// FS returns the view of one process, 0 to Processes-1. Processes share the files and exclude each
// other by Lock only.
func (d *Disk) FS(process int) *FS { return &d.fs[process] }

// SetCapacity changes the size of the disk in bytes; 0 is unlimited. Less than what is used means
// full.
func (d *Disk) SetCapacity(bytes int64) { d.capacity = bytes }

// Heal ends all faults to come: arms, rates, a read-only file system. Damage done stays, as do
// the switches, which only a power loss reads then.
func (d *Disk) Heal() {
	d.Injector.Heal()
	d.readOnly = false
}

// ReadOnly reports whether a failed sync made the file system read-only.
func (d *Disk) ReadOnly() bool { return d.readOnly }

// Marks returns the faults that took effect since Reset.
func (d *Disk) Marks() FaultSet { return d.marks }

func (d *Disk) mark(f Fault) {
	d.marks |= f.Bit()
	if d.watch != nil {
		d.watch(f)
	}
}

// Watch calls f whenever a fault takes effect; nil ends that.
func (d *Disk) Watch(f func(Fault)) { d.watch = f }

// strike records that a fault took effect and ends in an error that some caller sees.
func (d *Disk) strike(f Fault) {
	d.mark(f)
	d.counts.Injected++
}

// inject records a fault whose error this call's caller sees.
func (d *Disk) inject(f Fault, err error) error {
	d.strike(f)
	return d.failed(err)
}

// failed records a call that ends in an error.
func (d *Disk) failed(err error) error {
	d.counts.Failed++
	return err
}

// refuse returns the error of a fault that stops a call before it has an effect, else nil.
func (d *Disk) refuse(f Fault) error {
	switch f {
	case D13NoSpace:
		return d.inject(f, errNoSpace)
	case D14ReadOnce, D15Error:
		return d.inject(f, ErrIO)
	}
	return nil
}

// answer is what a call returns that did what it was asked to.
func (d *Disk) answer(f Fault) error {
	if f == D12Applied {
		return d.inject(f, ErrIO)
	}
	return nil
}

// room returns how many of n more bytes fit.
func (d *Disk) room(n int64) int64 {
	if d.capacity == 0 || d.used+n <= d.capacity {
		return n
	}
	d.mark(D13Capacity)
	return max(0, d.capacity-d.used)
}

// check panics on a broken invariant of this package or a misuse by its caller.
func check(ok bool, what string) {
	if !ok {
		panic(what)
	}
}
