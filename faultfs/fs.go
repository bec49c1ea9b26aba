package faultfs

import (
	"io"
	"strings"

	"varve/tiers/disk"
)

// split returns the directory and the plain name that a name means, and the file that processes see
// there, nil if there is none.
func (f *FS) split(name string) (x *dir, plain string, n *inode, err error) {
	const prefix = disk.DirQuarantine + "/"
	at, err := f.at()
	if err != nil {
		return nil, "", nil, err
	}
	if len(name) > len(prefix) && name[:len(prefix)] == prefix {
		at, name = at+1, name[len(prefix):]
	}
	x = f.d.dirs[at]
	if n = x.get(name); n != nil { // then the directory is there, and the name was found valid once
		return x, name, n, nil
	}
	if !validName(name) {
		return nil, "", nil, errName
	}
	if err := f.d.missing(at); err != nil {
		return nil, "", nil, err
	}
	return x, name, n, nil
}

func validName(name string) bool {
	return name != "" && name != "." && name != ".." &&
		strings.IndexByte(name, '/') < 0 && strings.IndexByte(name, 0) < 0
}

// missing returns why a directory is not there, nil if it is.
func (d *Disk) missing(at int) error {
	switch {
	case at == dirParent:
		return nil
	case !d.linked((at - 1) | 1):
		return errNotExist
	case at&1 != 0:
		return nil
	}
	switch n := d.dirs[at-1].get(disk.DirQuarantine); {
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
		err = f.d.failed(errReadOnly)
	}
	if err == nil {
		err = f.d.refuse(fault)
	}
	if err != nil {
		return nil, err
	}
	x, plain, n, err := f.split(name)
	if err != nil {
		return nil, err
	}
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
		return nil, f.d.failed(errFull)
	}
	n := f.d.newInode()
	n.life = f.main.life
	f.d.link(x, name, n, 0)
	return n, nil
}

// Remove implements disk.FS.
func (f *FS) Remove(name string) error {
	fault, err := f.begun(OpRemove, name)
	if err != nil {
		return err
	}
	x, plain, n, err := f.split(name)
	if err != nil {
		return err
	}
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
	src, a, n, err := f.split(from)
	if err != nil {
		return err
	}
	dst, b, old, err := f.split(to)
	switch {
	case n == nil && err != errName:
		return errNotExist
	case err != nil:
		return err
	}
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
	at, err := f.at()
	if err == nil {
		err = f.d.missing(at)
	}
	if err != nil {
		return dst, err
	}
	live := f.d.dirs[at].live
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
	parent, plain := dirParent, f.entry()
	switch name {
	case disk.DirLog:
	case disk.DirQuarantine:
		if parent, err = f.at(); err == nil {
			err = f.d.missing(parent)
		}
		if err != nil {
			return err
		}
		plain = disk.DirQuarantine
	default:
		return errDir
	}
	x := f.d.dirs[parent]
	switch n := x.get(plain); {
	case n == nil && f.d.room(1) < 1:
		return f.d.failed(errFull)
	case n == nil:
		x.put(plain, f.d.newDir(f, parent))
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
	at, err := f.dirIndex(name)
	if err == nil {
		err = f.d.missing(at)
	}
	if err != nil {
		return err
	}
	x := f.d.dirs[at]
	if f.d.readOnly {
		return f.d.failed(errReadOnly)
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
	if at == dirParent && f != f.main { // this one's name alone
		x.settleName(f.name)
	} else {
		x.settle()
	}
	return f.d.answer(fault)
}

func (f *FS) dirIndex(name string) (int, error) {
	if name == disk.DirParent {
		return dirParent, nil
	}
	at, err := f.at()
	switch name {
	case disk.DirLog:
		return at, err
	case disk.DirQuarantine:
		return at + 1, err
	}
	return 0, errDir
}

// Free implements disk.FS.
func (f *FS) Free() (int64, error) {
	fault, err := f.enter(OpFree, "")
	if err != nil {
		return 0, err
	}
	if fault == D14ReadOnce {
		f.d.strike(fault)
		return 0, ErrIO
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
	x, plain, n, err := f.split(name)
	if err != nil {
		return nil, err
	}
	if n == nil {
		if n, err = f.create(x, plain); err != nil {
			return nil, err
		}
	}
	switch {
	case n.isDir:
		return nil, errIsDir
	case n.locked != nil:
		if n.locked != f.main {
			f.d.mark(D21Locked)
		}
		return nil, errLocked
	}
	if err := f.d.answer(fault); err != nil {
		return nil, err
	}
	h := f.d.handle(f, n, disk.Write)
	h.lock, n.locked = true, f.main
	return h, nil
}
