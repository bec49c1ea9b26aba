package faultfs

import "varve/tiers/disk"

// A Disk may hold other log directories beside the first one, each under a name of its own, such as
// "topics/orders/7/0". Directories between them and the parent are not simulated: a log directory is
// there, or not. A name that is made again after it was removed is another directory.

// Beside points an FS at a log directory beside the first one, for the same process: calls, call budget
// and death are those of f. The directory need not exist: Mkdir makes it. SyncDir of its parent makes
// this one's entry durable, and no other.
func (f *FS) Beside(to *FS, name string) { *to = FS{d: f.d, main: f.main, name: name} }

// Dirs appends the names of all log directories beside the first one, in an order that is drawn.
func (f *FS) Dirs(dst []string) ([]string, error) {
	fault, err := f.enter(OpList, disk.DirParent)
	if err == nil {
		err = f.d.refuse(fault)
	}
	if err != nil {
		return dst, err
	}
	live := f.d.dirs[dirParent].live
	start := int(f.d.rand.Below(uint64(len(live))))
	for i := range live {
		if e := &live[(start+i)%len(live)]; e.name != logEntry {
			dst = append(dst, e.name)
		}
	}
	return dst, nil
}

// RemoveDir removes the log directory of an FS that Beside made, with all files in it: one call for each
// file, and one for each directory. Nothing of that is durable before SyncDir of the parent. A missing
// one is ErrNotExist.
func (f *FS) RemoveDir() error {
	at, err := f.at()
	if err != nil {
		return err
	}
	for _, x := range [...]*dir{f.d.dirs[at+1], f.d.dirs[at]} {
		for i := len(x.live) - 1; i >= 0; i-- {
			e := x.live[i]
			fault, err := f.begun(OpRemove, e.name)
			if err != nil {
				return err
			}
			x.apply(e.name, nil, 0)
			if !e.node.isDir {
				f.d.unlinked(e.node)
			}
			if err := f.d.answer(fault); err != nil {
				return err
			}
		}
	}
	fault, err := f.begun(OpRemove, f.name)
	if err != nil {
		return err
	}
	f.d.dirs[dirParent].put(f.name, nil)
	return f.d.answer(fault)
}

// at returns which of the disk's directories an FS shows.
func (f *FS) at() (int, error) {
	if f == f.main {
		return dirLog, nil
	}
	i := f.d.dirs[dirParent].at(f.name)
	if i < 0 {
		return 0, errNotExist
	}
	return f.d.dirs[dirParent].live[i].node.dir, nil
}

// entry returns the name of the log directory in its parent.
func (f *FS) entry() string {
	if f == f.main {
		return logEntry
	}
	return f.name
}

// linked reports whether processes see the log directory at an index.
func (d *Disk) linked(at int) bool {
	x := d.dirs[at]
	name := x.name
	if at == dirLog {
		name = logEntry
	}
	return d.dirs[dirParent].get(name) == &x.node
}

// newDir returns the directory that Mkdir makes: a quarantine, or a log directory, which is a new one
// beside the first.
func (d *Disk) newDir(f *FS, parent int) *inode {
	switch {
	case parent != dirParent:
		return &d.dirs[parent+1].node
	case f == f.main:
		return &d.dirs[dirLog].node
	}
	x := d.addDir(f.name)
	d.addDir(f.name)
	return &x.node
}

// addDir adds an empty directory.
func (d *Disk) addDir(name string) *dir {
	var x *dir
	if last := len(d.freeDirs) - 1; last >= 0 {
		x = d.freeDirs[last]
		d.freeDirs = d.freeDirs[:last]
	} else {
		x = &dir{}
	}
	x.name, x.node.isDir, x.node.dir = name, true, len(d.dirs)
	d.dirs = append(d.dirs, x)
	return x
}

// settleName is settle for one name.
func (x *dir) settleName(name string) {
	for i := len(x.pending) - 1; i >= 0; i-- {
		if op := &x.pending[i]; op.name == name && !op.lost {
			x.persist(i)
			return
		}
	}
}
