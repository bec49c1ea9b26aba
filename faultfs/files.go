package faultfs

const segmentSuffix = ".seg"

// link gives a file a name, in place of whatever had it.
func (d *Disk) link(x *dir, name string, n *inode, pair uint32) {
	x.apply(name, n, pair)
	n.name = name
	n.segment = n.segment || hasSuffix(name, segmentSuffix)
	n.links++
}

// unlinked takes one name off a file. Its space is free once nothing holds it.
func (d *Disk) unlinked(n *inode) {
	n.links--
	if n.links == 0 && n.opens == 0 {
		d.used -= n.sizeK
	}
}

// sweepMin is the number of files from which on those that nothing can reach are collected.
const sweepMin = 16

// newInode returns an empty file. When there are many it collects those that nothing can reach any
// more. That must depend on this run alone, not on how many free ones earlier runs left: draws go
// over all files.
func (d *Disk) newInode() *inode {
	if len(d.inodes) >= d.sweepAt {
		d.sweep()
		d.sweepAt = max(sweepMin, 2*len(d.inodes))
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
		if n.links > 0 || n.opens > 0 || d.holds(n) {
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

// holds reports whether a power loss could bring a file back into any directory.
func (d *Disk) holds(n *inode) bool {
	for _, x := range d.dirs[dirLog:] {
		if x.holds(n) {
			return true
		}
	}
	return false
}
