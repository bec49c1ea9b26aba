package faultfs

// FS is one process's view of a Disk. It implements disk.FS.
type FS struct {
	d      *Disk
	main   *FS    // of the same process, whose is all that follows
	name   string // of a log directory beside the first one: Beside
	life   uint32
	budget int64 // calls left; below 0: no limit
	torn   bool  // the call that the budget ends in is torn
	dead   bool
	calls  uint64

	observer Observer
}

// Observer is told how far the calls of a process have come, so that a crash can be tried at every
// point. It may look at the disk and must not change it.
type Observer interface {
	// Before is called when a call begins.
	Before(op Op, name string)
	// Inside is called within a write, at each sector boundary in it but the last, with the number of
	// sectors that are written. Kernels copy and allocate whole blocks; no part of a sector is written
	// alone.
	Inside(sectors int64)
}

// Observe tells an observer of all calls to come, of later lives too; nil ends that.
func (f *FS) Observe(o Observer) { f.observer = o }

// begin starts a life.
func (f *FS) begin() {
	f.d.lives++
	*f = FS{d: f.d, main: f, life: f.d.lives, budget: -1, observer: f.observer}
}

// SetCallBudget lets n more calls happen; every later one returns ErrDead and has no effect. With
// torn, the first of those is applied in part if it is a write or a sync. Negative n is no limit.
func (f *FS) SetCallBudget(n int64, torn bool) { f.budget, f.torn = n, torn }

// Calls returns how many calls this life has made, those after its death not counted.
func (f *FS) Calls() uint64 { return f.calls }

// Dead reports whether the call budget is used up and a call met that.
func (f *FS) Dead() bool { return f.dead }

// enter begins a call: it counts it and says which fault strikes it.
func (f *FS) enter(op Op, name string) (Fault, error) {
	f = f.main
	if f.dead {
		return NoFault, ErrDead
	}
	if f.budget == 0 {
		return f.die(op)
	}
	if f.budget > 0 {
		f.budget--
	}
	if f.observer != nil {
		f.observer.Before(op, name)
	}
	f.calls++
	f.d.counts.Calls[op]++
	if !f.d.active {
		return NoFault, nil
	}
	return f.d.Draw(op, name), nil
}

// die ends the process in this call, which may still be half done.
func (f *FS) die(op Op) (Fault, error) {
	f.dead = true
	if f.torn && !f.d.spared.Has(D19TornCall) && (op == OpWrite || op == OpZero || op == OpSync) {
		return D19TornCall, nil
	}
	f.d.mark(D19Dead)
	return NoFault, ErrDead
}

// begun is enter for calls that change something, and takes the faults that forbid it.
func (f *FS) begun(op Op, name string) (Fault, error) {
	f = f.main
	fault, err := f.enter(op, name)
	if err == nil && f.d.readOnly {
		err = f.d.failed(errReadOnly)
	}
	if err == nil {
		err = f.d.refuse(fault)
	}
	return fault, err
}

// BeginSync says that a sync of a file is issued now and completes at the next File.Sync. That
// covers what was written before, except sectors written again in between. A second one before
// that is a violation.
func (f *FS) BeginSync(name string) error {
	_, _, n, err := f.split(name)
	if err != nil {
		return err
	}
	if n == nil {
		return errNotExist
	}
	if n.syncing {
		f.d.violate("two syncs of one file outstanding", name, n.sizeK)
	}
	n.syncing, n.coverSize = true, n.sizeK
	copy(n.cover, n.dirty)
	return nil
}

// Kill ends the process: what it wrote stays in the kernel, its handles and locks go. The FS is
// then the next life's. Call it at every end of a process, a clean one too.
func (f *FS) Kill() {
	for _, h := range f.d.handles {
		if h.open && h.fs == f {
			f.d.release(h)
		}
	}
	for _, n := range f.d.inodes {
		n.syncing = false
	}
	f.begin()
}
