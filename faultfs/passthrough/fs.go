package passthrough

import (
	"fmt"
	"io"
	"sync"
	"syscall"

	"varve/faultfs"
	"varve/tiers/disk"
)

// Supported is the set of faults that this package can inject.
var Supported = faultfs.Set(faultfs.D9Lie, faultfs.D11Short, faultfs.D11Interrupt, faultfs.D12Applied,
	faultfs.D13NoSpace, faultfs.D13Short, faultfs.D14ReadOnce, faultfs.D15Error, faultfs.D17Clean,
	faultfs.D17Next, faultfs.D17ReadOnly, faultfs.D22DirSync)

// Injected errors look like those of the system.
var (
	errIO       = fmt.Errorf("passthrough: injected: %w", syscall.EIO)
	errIntr     = fmt.Errorf("passthrough: injected: %w", syscall.EINTR)
	errNoSpace  = fmt.Errorf("passthrough: injected: %w: %w", disk.ErrNoSpace, syscall.ENOSPC)
	errReadOnly = fmt.Errorf("passthrough: injected: %w: %w", disk.ErrReadOnly, syscall.EROFS)
)

// FS wraps a file system. Its methods may be called from several goroutines.
type FS struct {
	inner disk.FS

	mu       sync.Mutex
	inject   faultfs.Injector
	marks    faultfs.FaultSet
	counts   faultfs.Counts
	later    []string // names whose next sync fails
	readOnly bool
	budget   int64 // calls left before the end; below 0: no limit
	dead     bool
	end      func()
}

// New wraps a file system; seed starts the stream of random faults.
func New(inner disk.FS, seed uint64) *FS {
	f := &FS{inner: inner, budget: -1}
	f.inject.Seed(seed)
	return f
}

// Arm makes the call of a class that comes after the next skip ones, on names that end in suffix,
// meet a fault.
func (f *FS) Arm(op faultfs.Op, x faultfs.Fault, skip int, suffix string) {
	if !Supported.Has(x) {
		panic("passthrough: " + x.String() + " needs a simulated device")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject.Arm(op, x, skip, suffix)
}

// SetRates lets calls meet faults of a set at random, in 1/65,536 of the calls of each class.
func (f *FS) SetRates(set faultfs.FaultSet, r faultfs.Rates) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject.SetFaults(set & Supported)
	f.inject.SetRates(&r)
}

// Heal ends all faults to come.
func (f *FS) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject.Heal()
	f.later, f.readOnly = nil, false
}

// EndAfter lets n more calls happen and calls end in the next one, in the middle of it if it is a
// write. Where end returns, that call and all later ones fail with faultfs.ErrDead.
func (f *FS) EndAfter(n int64, end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.budget, f.end = n, end
}

// Marks returns the faults that were injected.
func (f *FS) Marks() faultfs.FaultSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks
}

// Counts returns how many calls of each class were made. Bytes are those that callers were told.
func (f *FS) Counts() faultfs.Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// verdict is what is to become of one call.
type verdict struct {
	fault faultfs.Fault
	err   error // the call does nothing and returns this
	end   bool  // the process ends in this call
	part  uint64
}

// enter begins a call. change says whether a read-only file system forbids it.
func (f *FS) enter(op faultfs.Op, name string, change bool) verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return verdict{err: faultfs.ErrDead}
	}
	part := f.inject.Below(1 << 53)
	if f.budget == 0 {
		f.dead = true
		return verdict{end: true, part: part}
	}
	if f.budget > 0 {
		f.budget--
	}
	f.counts.Calls[op]++
	x := f.inject.Draw(op, name)
	v := verdict{fault: x, part: part}
	switch {
	case change && f.readOnly:
		v.err = errReadOnly
		return v
	case x == faultfs.D13NoSpace:
		v.err = errNoSpace
	case x == faultfs.D14ReadOnce, x == faultfs.D15Error, x == faultfs.D17Clean, x == faultfs.D22DirSync:
		v.err = errIO
	case x == faultfs.D17ReadOnly:
		f.readOnly = true
		v.err = errIO
	}
	if x != faultfs.NoFault {
		f.marks |= x.Bit()
	}
	if v.err != nil {
		f.counts.Injected++
	}
	return v
}

// ended ends the process, and if it lives on, the call.
func (f *FS) ended() error {
	f.end()
	return faultfs.ErrDead
}

// do makes a call that is applied as a whole or not at all.
func (f *FS) do(op faultfs.Op, name string, change bool, call func() error) error {
	v := f.enter(op, name, change)
	switch {
	case v.end:
		return f.ended()
	case v.err != nil:
		return v.err
	}
	if err := call(); err != nil {
		return err
	}
	if v.fault == faultfs.D12Applied {
		return f.injected(errIO)
	}
	return nil
}

// injected counts an error that a call returns after it did something.
func (f *FS) injected(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.Injected++
	return err
}

// sync makes a sync of a file or a directory.
func (f *FS) sync(op faultfs.Op, name string, call func() error) error {
	v := f.enter(op, name, true)
	switch {
	case v.end:
		return f.ended()
	case v.err != nil:
		return v.err
	case v.fault == faultfs.D9Lie:
		return nil
	}
	if f.failsNow(name, v.fault == faultfs.D17Next) {
		return f.injected(errIO)
	}
	if err := call(); err != nil {
		return err
	}
	if v.fault == faultfs.D12Applied {
		return f.injected(errIO)
	}
	return nil
}

// failsNow reports whether an earlier sync of this name left an error, and leaves one if next.
func (f *FS) failsNow(name string, next bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := false
	for i := range f.later {
		if f.later[i] == name {
			f.later = append(f.later[:i], f.later[i+1:]...)
			found = true
			break
		}
	}
	if next {
		f.later = append(f.later, name)
	}
	return found
}

// Open implements disk.FS.
func (f *FS) Open(name string, mode disk.Mode) (disk.File, error) {
	op := faultfs.OpOpen
	if mode == disk.Create {
		op = faultfs.OpCreate
	}
	var inner disk.File
	err := f.do(op, name, mode != disk.Read, func() (err error) {
		inner, err = f.inner.Open(name, mode)
		return err
	})
	if err != nil {
		if inner != nil {
			_ = inner.Close() // the caller must not get it; nothing was written
		}
		return nil, err
	}
	return &file{fs: f, inner: inner, name: name}, nil
}

// Remove implements disk.FS.
func (f *FS) Remove(name string) error {
	return f.do(faultfs.OpRemove, name, true, func() error { return f.inner.Remove(name) })
}

// Rename implements disk.FS.
func (f *FS) Rename(from, to string) error {
	return f.do(faultfs.OpRename, to, true, func() error { return f.inner.Rename(from, to) })
}

// List implements disk.FS.
func (f *FS) List(dst []disk.Entry) ([]disk.Entry, error) {
	err := f.do(faultfs.OpList, disk.DirLog, false, func() (err error) {
		dst, err = f.inner.List(dst)
		return err
	})
	return dst, err
}

// Mkdir implements disk.FS.
func (f *FS) Mkdir(dir string) error {
	return f.do(faultfs.OpMkdir, dir, true, func() error { return f.inner.Mkdir(dir) })
}

// SyncDir implements disk.FS.
func (f *FS) SyncDir(dir string) error {
	return f.sync(faultfs.OpSyncDir, dir, func() error { return f.inner.SyncDir(dir) })
}

// Free implements disk.FS.
func (f *FS) Free() (free int64, err error) {
	err = f.do(faultfs.OpFree, "", false, func() (err error) {
		free, err = f.inner.Free()
		return err
	})
	return free, err
}

// Lock implements disk.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	var lock io.Closer
	err := f.do(faultfs.OpLock, name, true, func() (err error) {
		lock, err = f.inner.Lock(name)
		return err
	})
	if err != nil && lock != nil {
		_ = lock.Close() // the caller must not get it
	}
	if err != nil {
		return nil, err
	}
	return lock, nil
}
