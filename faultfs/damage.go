package faultfs

import "varve/tiers/disk"

// MemoryPressure drops clean pages, so that processes see what the device holds: the content that
// a failed sync left in the kernel only is gone with no crash. Sizes go too where no handle is
// open. Each file is spared by a coin.
func (d *Disk) MemoryPressure(r *Rand) {
	if d.spared.Has(D18Pressure) {
		return
	}
	for _, n := range d.inodes {
		if r.Next()>>63 == 0 {
			continue
		}
		if n.ghosts {
			for s := int64(0); s < sectors(n.hi); s++ {
				if n.ghost.has(s) {
					copy(n.k[s*Sector:(s+1)*Sector], n.d[s*Sector:(s+1)*Sector])
					n.ghost.clear(s)
					d.mark(D18Pressure)
				}
			}
			clear(n.k[n.sizeK:n.hi])
			n.ghosts = false
		}
		if n.sizeGhost && n.opens == 0 && n.dirtyLo == n.dirtyHi {
			grow := n.sizeD - n.sizeK
			if grow < 0 {
				clear(n.k[n.sizeD:n.hi])
			} else {
				copy(n.k[n.sizeK:n.sizeD], n.d[n.sizeK:n.sizeD])
			}
			if n.links > 0 {
				d.used += grow
			}
			n.sizeK, n.sizeGhost = n.sizeD, false
			d.mark(D18Pressure)
		}
	}
}

// WriteBack makes any part of what is dirty or pending durable, as kernels do at any time.
func (d *Disk) WriteBack(r *Rand) {
	if d.spared.Has(D10WriteBack) {
		return
	}
	for _, n := range d.inodes {
		if n.settled() || r.Next()>>63 == 0 {
			continue
		}
		n.scatter(r, staysDirty)
		d.mark(D10WriteBack)
	}
	for _, x := range d.dirs {
		for j := 0; j < len(x.pending); j++ {
			if x.pending[j].lost || r.Next()>>62 != 0 {
				continue
			}
			before := len(x.pending)
			x.persist(j)
			j -= before - len(x.pending)
			d.mark(D10WriteBack)
		}
	}
}

// Flush makes all that is dirty or pending durable, as kernels do when they have the time.
func (d *Disk) Flush() {
	for _, n := range d.inodes {
		n.flush()
	}
	for i := range d.dirs {
		d.dirs[i].settle()
	}
}

// FailWriteBack is a background write-back of one dirty file that fails: part of it is lost as
// after D17Clean, and the next sync of that file reports it. False: nothing is dirty.
func (d *Disk) FailWriteBack(r *Rand) bool {
	start := int(r.Below(uint64(len(d.inodes))))
	for i := range d.inodes {
		n := d.inodes[(start+i)%len(d.inodes)]
		if n.dirtyLo == n.dirtyHi || d.spared.Has(D17WriteBack) {
			continue
		}
		n.scatter(r, becomesGhost)
		d.strike(D17WriteBack)
		n.fail(ErrIO)
		return true
	}
	return false
}

// Damage says where Rot struck.
type Damage struct {
	Log  string // the log directory, if it is one beside the first
	Dir  string // disk.DirLog or disk.DirQuarantine
	Name string
	Pos  int64
	Bit  uint8
	Seen bool // processes see it at once; else once the kernel has dropped the sector
}

// Rot flips one random bit at rest, in a file whose name ends in suffix. False: there is none.
func (d *Disk) Rot(r *Rand, suffix string) (Damage, bool) {
	logs, first := (len(d.dirs)-1)/2, 0
	if logs > 1 {
		first = int(r.Below(uint64(logs)))
	}
	for i := range len(d.dirs) - dirLog {
		at := dirLog + (2*first+i)%(2*logs)
		live := d.dirs[at].live
		start := int(r.Below(uint64(len(live))))
		for i := range live {
			e := live[(start+i)%len(live)]
			if e.node.isDir || e.node.sizeD == 0 || !hasSuffix(e.name, suffix) {
				continue
			}
			pos := int64(r.Below(uint64(e.node.sizeD)))
			bit := uint8(r.Next() >> 61)
			x := Damage{Name: e.name, Pos: pos, Bit: bit, Dir: disk.DirLog}
			x.Log = d.dirs[(at-1)|1].name
			if at&1 == 0 {
				x.Dir = disk.DirQuarantine
			}
			x.Seen = d.rot(e.node, pos, bit, r.Next()>>63 != 0)
			return x, true
		}
	}
	return Damage{}, false
}

// RotAt flips one bit of a file of the log directory, for processes too if its sector is clean.
// False: no such byte on the device.
func (d *Disk) RotAt(name string, pos int64, bit uint8) bool {
	n := d.dirs[dirLog].get(name)
	if n == nil || n.isDir || pos < 0 || pos >= n.sizeD || d.spared.Has(D7Rot) {
		return false
	}
	d.rot(n, pos, bit&7, true)
	return true
}

// rot flips a bit of D, and of K where that was read back from it.
func (d *Disk) rot(n *inode, pos int64, bit uint8, cold bool) bool {
	n.d[pos] ^= 1 << bit
	d.mark(D7Rot)
	s := pos / Sector
	switch {
	case n.dirty.has(s):
		return false
	case cold && !n.ghost.has(s) && pos < n.sizeK:
		n.k[pos] ^= 1 << bit
		return true
	}
	n.ghost.set(s)
	n.ghosts = true
	return false
}
