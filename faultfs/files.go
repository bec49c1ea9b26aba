package faultfs

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
