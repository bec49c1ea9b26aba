package faultfs

// Lose takes everything away that the disk holds, as if the log's directory had been deleted, or the
// disk replaced by an empty one. No process may run.
func (d *Disk) Lose() {
	for _, n := range d.inodes {
		n.reset()
		d.free = append(d.free, n)
	}
	d.inodes = d.inodes[:0]
	for _, h := range d.handles {
		h.close()
	}
	d.open, d.next = 0, 0
	for i, x := range d.dirs {
		x.reset()
		if i > dirQuarantine {
			d.freeDirs = append(d.freeDirs, x)
		}
	}
	d.dirs = d.dirs[:min(len(d.dirs), dirQuarantine+1)]
	for i := range d.fs {
		d.fs[i].begin()
	}
	d.pairs, d.used = 0, 0
	d.last, d.sweepAt = nil, sweepMin
}
