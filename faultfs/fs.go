package faultfs

import (
	"io"
	"strings"

	"varve/tiers/disk"
)

// FS is one process's view of a Disk. It implements disk.FS.
type FS struct {
	d      *Disk
	life   uint32
	budget int64 // calls left; below 0: no limit
	torn   bool  // the call that the budget ends in is torn
	dead   bool
	calls  uint64
}

// begin starts a life.
func (f *FS) begin() {
	f.d.lives++
	*f = FS{d: f.d, life: f.d.lives, budget: -1}
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
	if f.dead {
		return NoFault, ErrDead
	}
	if f.budget == 0 {
		return f.die(op)
	}
	if f.budget > 0 {
		f.budget--
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
	if f.torn && (op == OpWrite || op == OpZero || op == OpSync) {
		f.d.mark(D19TornCall)
		return D19TornCall, nil
	}
	f.d.mark(D19Dead)
	return NoFault, ErrDead
}

// begun is enter for calls that change something, and takes the faults that forbid it.
func (f *FS) begun(op Op, name string) (Fault, error) {
	fault, err := f.enter(op, name)
	if err == nil && f.d.readOnly {
		err = errReadOnly
	}
	if err == nil {
		err = f.d.refuse(fault)
	}
	return fault, err
}

// split returns the directory and the plain name that a name means.
func (f *FS) split(name string) (x *dir, plain string, err error) {
	const prefix = disk.DirQuarantine + "/"
	at := dirLog
	if len(name) > len(prefix) && name[:len(prefix)] == prefix {
		at, name = dirQuarantine, name[len(prefix):]
	}
	if name == "" || name == "." || name == ".." ||
		strings.IndexByte(name, '/') >= 0 || strings.IndexByte(name, 0) >= 0 {
		return nil, "", errName
	}
	if err := f.d.missing(at); err != nil {
		return nil, "", err
	}
	return &f.d.dirs[at], name, nil
}

// missing returns why a directory is not there, nil if it is.
func (d *Disk) missing(at int) error {
	switch {
	case at == dirParent:
		return nil
	case d.dirs[dirParent].get(logEntry) == nil:
		return errNotExist
	case at == dirLog:
		return nil
	}
	switch n := d.dirs[dirLog].get(disk.DirQuarantine); {
	case n == nil:
		return errNotExist
	case !n.isDir:
		return errNotDir
	}
	return nil
}

// Open implements disk.FS.
func (f *FS) Open(name string, mode disk.Mode) (disk.File, error) {
	op := OpOpen
	if mode == disk.Create {
		op = OpCreate
	}
	fault, err := f.enter(op, name)
	if err == nil && mode != disk.Read && f.d.readOnly {
		err = errReadOnly
	}
	if err == nil {
		err = f.d.refuse(fault)
	}
	if err != nil {
		return nil, err
	}
	x, plain, err := f.split(name)
	if err != nil {
		return nil, err
	}
	n := x.get(plain)
	switch {
	case mode == disk.Create && n != nil:
		return nil, errExist
	case mode != disk.Create && n == nil:
		return nil, errNotExist
	case n != nil && n.isDir:
		return nil, errIsDir
	case mode == disk.Create:
		if n, err = f.create(x, plain); err != nil {
			return nil, err
		}
	}
	if err := f.d.answer(fault); err != nil {
		return nil, err
	}
	return f.d.handle(f, n, mode), nil
}

// create makes an empty file.
func (f *FS) create(x *dir, name string) (*inode, error) {
	if f.d.room(1) < 1 {
		return nil, errFull
	}
	n := f.d.newInode()
	n.life = f.life
	f.d.link(x, name, n, 0)
	return n, nil
}

// Remove implements disk.FS.
func (f *FS) Remove(name string) error {
	fault, err := f.begun(OpRemove, name)
	if err != nil {
		return err
	}
	x, plain, err := f.split(name)
	if err != nil {
		return err
	}
	n := x.get(plain)
	switch {
	case n == nil:
		return errNotExist
	case n.isDir:
		return errIsDir
	}
	x.apply(plain, nil, 0)
	f.d.unlinked(n)
	return f.d.answer(fault)
}

// Rename implements disk.FS.
func (f *FS) Rename(from, to string) error {
	fault, err := f.begun(OpRename, to)
	if err != nil {
		return err
	}
	src, a, err := f.split(from)
	if err != nil {
		return err
	}
	dst, b, err := f.split(to)
	n := src.get(a)
	switch {
	case n == nil && err != errName:
		return errNotExist
	case err != nil:
		return err
	}
	old := dst.get(b)
	switch {
	case n.isDir || old != nil && old.isDir:
		return errIsDir
	case n != old:
		f.d.pairs++
		f.d.link(dst, b, n, f.d.pairs)
		src.apply(a, nil, f.d.pairs)
		n.links--
		if old != nil {
			f.d.unlinked(old)
		}
	}
	return f.d.answer(fault)
}

// List implements disk.FS. The order is drawn.
func (f *FS) List(dst []disk.Entry) ([]disk.Entry, error) {
	fault, err := f.enter(OpList, disk.DirLog)
	if err == nil {
		err = f.d.refuse(fault)
	}
	if err != nil {
		return dst, err
	}
	if err := f.d.missing(dirLog); err != nil {
		return dst, err
	}
	live := f.d.dirs[dirLog].live
	start := int(f.d.rand.Below(uint64(len(live))))
	for i := range live {
		e := live[(start+i)%len(live)]
		dst = append(dst, disk.Entry{Name: e.name, Bytes: e.node.sizeK, Dir: e.node.isDir})
	}
	return dst, nil
}

// Mkdir implements disk.FS.
func (f *FS) Mkdir(name string) error {
	fault, err := f.begun(OpMkdir, name)
	if err != nil {
		return err
	}
	parent, at, plain := dirParent, dirLog, logEntry
	switch name {
	case disk.DirLog:
	case disk.DirQuarantine:
		parent, at, plain = dirLog, dirQuarantine, disk.DirQuarantine
	default:
		return errDir
	}
	if err := f.d.missing(parent); err != nil {
		return err
	}
	x := &f.d.dirs[parent]
	switch n := x.get(plain); {
	case n == nil && f.d.room(1) < 1:
		return errFull
	case n == nil:
		x.put(plain, &f.d.dirNodes[at])
	case !n.isDir:
		return errNotDir
	}
	return f.d.answer(fault)
}

// SyncDir implements disk.FS.
func (f *FS) SyncDir(name string) error {
	fault, err := f.enter(OpSyncDir, name)
	if err != nil {
		return err
	}
	at, err := dirIndex(name)
	if err != nil {
		return err
	}
	if err := f.d.missing(at); err != nil {
		return err
	}
	x := &f.d.dirs[at]
	defer x.synced()
	if f.d.readOnly {
		return errReadOnly
	}
	switch fault {
	case D13NoSpace:
		if at != dirParent {
			x.lose()
		}
		return f.d.inject(fault, errNoSpace)
	case D22DirSync:
		// Nobody can make the entry of a directory that exists again: a retry must really write.
		if at != dirParent {
			x.lose()
		}
		return f.d.inject(fault, ErrIO)
	case D17ReadOnly:
		if at != dirParent {
			x.lose()
		}
		f.d.readOnly = true
		return f.d.inject(fault, ErrIO)
	case D9Lie:
		if x.lose() > 0 {
			f.d.mark(fault)
		}
		return nil
	}
	x.settle()
	return f.d.answer(fault)
}

// synced ends the outstanding sync.
func (x *dir) synced() { x.syncing, x.cover = false, 0 }

func dirIndex(name string) (int, error) {
	switch name {
	case disk.DirParent:
		return dirParent, nil
	case disk.DirLog:
		return dirLog, nil
	case disk.DirQuarantine:
		return dirQuarantine, nil
	}
	return 0, errDir
}

// Free implements disk.FS.
func (f *FS) Free() (int64, error) {
	fault, err := f.enter(OpFree, "")
	if err == nil {
		err = f.d.refuse(fault)
	}
	if err != nil {
		return 0, err
	}
	if f.d.capacity == 0 {
		return 1 << 50, nil
	}
	return max(0, f.d.capacity-f.d.used), nil
}

// Lock implements disk.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	fault, err := f.begun(OpLock, name)
	if err != nil {
		return nil, err
	}
	x, plain, err := f.split(name)
	if err != nil {
		return nil, err
	}
	n := x.get(plain)
	if n == nil {
		if n, err = f.create(x, plain); err != nil {
			return nil, err
		}
	}
	switch {
	case n.isDir:
		return nil, errIsDir
	case n.locked != nil:
		if n.locked != f {
			f.d.mark(D21Locked)
		}
		return nil, errLocked
	}
	if err := f.d.answer(fault); err != nil {
		return nil, err
	}
	h := f.d.handle(f, n, disk.Write)
	h.lock, n.locked = true, f
	return h, nil
}

// BeginSync says that a sync of a file is issued now and completes at the next File.Sync. That
// covers what was written before, except sectors written again in between. A second one before
// that is a violation.
func (f *FS) BeginSync(name string) error {
	x, plain, err := f.split(name)
	if err != nil {
		return err
	}
	n := x.get(plain)
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

// BeginSyncDir is BeginSync for a directory and SyncDir.
func (f *FS) BeginSyncDir(name string) error {
	at, err := dirIndex(name)
	if err != nil {
		return err
	}
	x := &f.d.dirs[at]
	if x.syncing {
		f.d.violate("two syncs of one directory outstanding", name, 0)
	}
	x.syncing, x.cover = true, len(x.pending)
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
	for i := range f.d.dirs {
		f.d.dirs[i].synced()
	}
	f.begin()
}

// link gives a file a name, in place of whatever had it.
func (d *Disk) link(x *dir, name string, n *inode, pair uint32) {
	x.apply(name, n, pair)
	n.name = name
	n.segment = n.segment || hasSuffix(name, ".seg")
	n.links++
}

// unlinked takes one name off a file. Its space is free once nothing holds it.
func (d *Disk) unlinked(n *inode) {
	n.links--
	if n.links == 0 && n.opens == 0 {
		d.used -= n.sizeK
	}
}

// newInode returns an empty file, from those that nothing can reach any more if there are many.
func (d *Disk) newInode() *inode {
	if len(d.free) == 0 && len(d.inodes) >= 16 {
		d.sweep()
	}
	var n *inode
	if last := len(d.free) - 1; last >= 0 {
		n = d.free[last]
		d.free = d.free[:last]
	} else {
		n = &inode{}
		n.reach(1)
		n.hi = 0
	}
	d.inodes = append(d.inodes, n)
	return n
}

// sweep collects files that no name, handle or pending operation reaches.
func (d *Disk) sweep() {
	kept := d.inodes[:0]
	for _, n := range d.inodes {
		if n.links > 0 || n.opens > 0 || d.dirs[dirLog].holds(n) || d.dirs[dirQuarantine].holds(n) {
			kept = append(kept, n)
			continue
		}
		if d.last == n {
			d.last = nil
		}
		n.reset()
		d.free = append(d.free, n)
	}
	d.inodes = kept
}
