package faultfs

// TakeImage makes the disk what a power loss leaves of another one: the image of a Doubt of it. Both
// have to be of one capacity, none.
func (d *Disk) TakeImage(x *Doubt, image uint64) {
	d.Reset(Params{})
	for i := range x.files {
		f := &x.files[i]
		from, size := f.node, f.sizes[f.size(image)]
		n := d.newInode()
		f.copy, n.segment = n, from.segment
		n.reach(size)
		n.sizeK, n.sizeD = size, size
		copy(n.k[:size], from.d)
		for p := f.sector[0]; p < f.sector[1]; p++ {
			if at := x.parts[p].at * Sector; image>>p&1 != 0 && at < size {
				copy(n.k[at:min(size, at+Sector)], from.k[at:])
			}
		}
		copy(n.d[:size], n.k)
	}
	for at := range d.dirs {
		if at > dirParent && !x.exists(at, image) {
			continue
		}
		for _, n := range x.after(at, image) {
			d.dirs[at].durable = put(d.dirs[at].durable, n.name, d.copied(x, n.file))
		}
		inOrder(d.dirs[at].durable)
		d.dirs[at].live = append(d.dirs[at].live[:0], d.dirs[at].durable...)
	}
	d.recount()
}

// inOrder sorts names, so that equal images are alike in every call that follows.
func inOrder(list []entry) {
	for i := range list {
		for j := i; j > 0 && list[j].name < list[j-1].name; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// copied returns the copy of a file, or the directory.
func (d *Disk) copied(x *Doubt, file int) *inode {
	switch {
	case file == fileNone:
		return nil
	case file < 0:
		return &d.dirs[fileDirs-file].node
	}
	return x.files[file].copy
}

// TakeKilled makes the disk what another one is once all its processes are killed: what the kernel
// shows and what the device holds stay apart. x holds its doubts.
func (d *Disk) TakeKilled(from *Disk, x *Doubt) {
	d.Reset(Params{})
	for i := range x.files {
		f := &x.files[i]
		f.copy = d.newInode()
		f.copy.take(f.node)
	}
	for at := range from.dirs {
		to, src := d.dirs[at], from.dirs[at]
		for _, e := range src.live {
			to.live = append(to.live, entry{e.key, e.name, d.copyOf(from, x, e.node)})
		}
		for _, e := range src.durable {
			to.durable = append(to.durable, entry{e.key, e.name, d.copyOf(from, x, e.node)})
		}
		inOrder(to.live)
		inOrder(to.durable)
		for _, op := range src.pending {
			op.node = d.copyOf(from, x, op.node)
			to.pending = append(to.pending, op)
		}
	}
	d.pairs = from.pairs
	d.recount()
}

func (d *Disk) copyOf(from *Disk, x *Doubt, n *inode) *inode {
	return d.copied(x, x.name(from, "", n).file)
}

// take makes a fresh file one that another life left.
func (n *inode) take(from *inode) {
	n.segment = from.segment
	n.reach(from.hi)
	copy(n.k[:from.hi], from.k)
	copy(n.d[:from.hi], from.d)
	n.sizeK, n.sizeD = from.sizeK, from.sizeD
	n.dirtyLo, n.dirtyHi = from.dirtyLo, from.dirtyHi
	w := words(from.hi)
	copy(n.dirty[:w], from.dirty)
	copy(n.synced[:w], from.synced)
}
