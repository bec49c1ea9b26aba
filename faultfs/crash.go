package faultfs

// PowerLoss ends all processes and leaves what the device holds: of what was dirty or pending any
// part may have made it, as far as the switches D1 to D6 allow. With no switch on, nothing that
// was not synced is left of files, and all of directories. With judged, only outcomes are drawn
// after which the log must open with no operator.
func (d *Disk) PowerLoss(r *Rand, judged bool) {
	allowed := d.faults &^ d.spared
	if judged {
		allowed &^= Set(D1Garbage, D6Stale)
	}
	for i := range d.fs {
		d.fs[i].Kill()
	}
	d.loseNames(r, allowed)
	for _, n := range d.inodes {
		d.loseContent(r, n, allowed, judged)
	}
	d.last, d.readOnly = nil, false
	d.recount()
}

// loseContent leaves of one file what the device holds, K = D.
func (d *Disk) loseContent(r *Rand, n *inode, allowed FaultSet, judged bool) {
	n.errs, n.errSeen, n.syncing = 0, false, false
	if !n.settled() || n.ghosts || n.hi > n.sizeD {
		before := n.sizeD
		kind, lost := d.loseSectors(r, n, allowed, judged)
		d.loseSize(r, n, allowed, kind != lossOld, lost)
		if allowed.Has(D6Stale) && n.sizeD > before {
			d.stale(r, n, before)
		}
		clear(n.d[n.sizeD : sectors(n.hi)*Sector]) // garbage fills whole sectors
		clear(n.k[:n.hi])
		copy(n.k, n.d[:n.sizeD])
		w := words(n.hi)
		clear(n.dirty[:w])
		clear(n.ghost[:w])
		clear(n.synced[:w])
	}
	n.dirtyLo, n.dirtyHi, n.ghosts, n.sizeGhost = 0, 0, false, false
	n.sizeK, n.hi = n.sizeD, n.sizeD
}

// loss is how the dirty sectors of one file come out of a power loss.
type loss uint8

const (
	lossOld    loss = iota // none written
	lossNew                // all written
	lossPrefix             // written up to some sector
	lossHole               // all but one written
	lossZero               // written up to some sector, zeros from there on
	lossTorn               // all written but the end of the last write
	lossEach               // each on its own: old, new, zero or garbage
)

// blockSectors is how many sectors a file system writes back, or leaves zero, together.
const blockSectors = 8

// lossKinds is what is drawn from where D1 is on; the independent draw finds most.
var lossKinds = [16]loss{
	lossOld, lossOld, lossNew, lossPrefix, lossPrefix, lossHole, lossHole, lossZero,
	lossZero, lossTorn, lossTorn, lossEach, lossEach, lossEach, lossEach, lossEach,
}

// loseSectors decides for every dirty sector what the device holds. It reports the kind of loss
// and whether anything was lost.
func (d *Disk) loseSectors(r *Rand, n *inode, allowed FaultSet, judged bool) (kind loss, lost bool) {
	x := r.Next()
	kind = lossKinds[x>>60]
	if !judged && x>>57&3 == 0 { // only here it is torn inside a sector
		kind = lossTorn
	}
	if kind == lossTorn && (!allowed.Has(D2Torn) || d.last != n) {
		kind = lossEach
	}
	if !allowed.Has(D1Sectors) && kind != lossTorn {
		kind = lossOld
	}
	total := n.dirtyCount()
	at := int(r.Below(uint64(total)))
	if kind == lossZero && x>>59&1 == 0 {
		at -= at % blockSectors
	}
	cut := int64(0)
	if kind == lossTorn {
		cut = d.lastOff + int64(r.Below(uint64(d.lastEnd-d.lastOff)))
		if judged {
			cut -= cut % Sector
		}
	}
	if kind == lossOld {
		return kind, total > 0
	}
	i := 0
	for w := n.dirtyLo; w < n.dirtyHi; w++ {
		for b := n.dirty[w]; b != 0; b &= b - 1 {
			s := int64(w)*64 + int64(lowBit(b))
			f := d.loseSector(r, n, s, kind, i-at, cut, allowed)
			if f != NoFault && string(n.d[s*Sector:(s+1)*Sector]) != string(n.k[s*Sector:(s+1)*Sector]) {
				d.mark(f)
				lost = true
			}
			i++
		}
	}
	return kind, lost
}

// loseSector decides what the device holds of one dirty sector, which is rank sectors behind the
// drawn one; of a torn write, cut is where the tear is. It names the fault that spared or spoilt
// the sector.
func (d *Disk) loseSector(r *Rand, n *inode, s int64, kind loss, rank int, cut int64, allowed FaultSet) Fault {
	dst, src := n.d[s*Sector:(s+1)*Sector], n.k[s*Sector:(s+1)*Sector]
	switch {
	case kind == lossPrefix && rank >= 0, kind == lossHole && rank == 0:
		return D1Sectors
	case kind == lossZero && rank >= 0:
		clear(dst)
		return D1Sectors
	case kind == lossTorn && cut < (s+1)*Sector && s*Sector < d.lastEnd:
		copy(dst[:max(0, cut-s*Sector)], src)
		return D2Torn
	case kind == lossEach:
		x := r.Next() >> 60
		switch {
		case x < 6:
			return D1Sectors
		case x < 8:
			clear(dst)
			return D1Sectors
		case x < 12 && allowed.Has(D1Garbage):
			for i := range dst {
				dst[i] = byte(r.Next() >> 56)
			}
			return D1Garbage
		}
	}
	copy(dst, src)
	return NoFault
}

// loseSize decides the size that the device holds, given whether it took new sectors at all and
// whether it missed some.
func (d *Disk) loseSize(r *Rand, n *inode, allowed FaultSet, written, lost bool) {
	if n.sizeGhost || n.sizeK == n.sizeD {
		return
	}
	lo, hi := min(n.sizeK, n.sizeD), max(n.sizeK, n.sizeD)
	x := r.Next() >> 61
	switch {
	case !allowed.Has(D3Size):
		if written { // the size and the data go together
			n.sizeD = n.sizeK
		}
		return
	case x < 2:
		if written {
			d.mark(D3Size)
		}
		return
	case x < 5:
		n.sizeD = n.sizeK
		if lost {
			d.mark(D3Size)
		}
		return
	case x == 5:
		n.sizeD = (lo + int64(r.Below(uint64(hi-lo)))) / Sector * Sector
		n.sizeD = max(lo, n.sizeD)
	default:
		n.sizeD = lo + int64(r.Below(uint64(hi-lo)))
	}
	d.mark(D3Size)
}

// stale puts old content of this file or, by a coin, of any where this one had never been written before.
func (d *Disk) stale(r *Rand, n *inode, before int64) {
	from, start, own := n, int(r.Below(uint64(len(d.inodes)))), r.Next()>>63 == 0
	for i := 0; !own && i < len(d.inodes); i++ {
		if from = d.inodes[(start+i)%len(d.inodes)]; from.sizeD >= Sector {
			break
		}
	}
	have := from.sizeD / Sector
	first := sectors(before)
	room := n.sizeD/Sector - first
	if have == 0 || room <= 0 {
		return
	}
	first += int64(r.Below(uint64(room)))
	at := int64(r.Below(uint64(have)))
	run := min(1+int64(r.Below(8)), n.sizeD/Sector-first, have-at)
	copy(n.d[first*Sector:(first+run)*Sector], from.d[at*Sector:(at+run)*Sector])
	d.mark(D6Stale)
}

// loseNames decides which pending directory operations the device holds.
func (d *Disk) loseNames(r *Rand, allowed FaultSet) {
	pairs := r.Next()
	for i, x := range d.dirs {
		switch {
		case i == dirParent && !allowed.Has(D5Parent), !allowed.Has(D5DirOps):
			for _, op := range x.pending {
				if !op.lost {
					x.durable = put(x.durable, op.name, op.node)
				}
			}
		default:
			d.loseOps(r, x, allowed, pairs, i == dirParent)
		}
		clear(x.pending)
		clear(x.live)
		x.pending = x.pending[:0]
		x.live = append(x.live[:0], x.durable...)
	}
	for i := dirLog; i < len(d.dirs); i++ {
		if d.missing(i) != nil {
			d.dirs[i].reset()
		}
	}
}

// loseOps keeps a random part of one directory's pending operations: all, none, a prefix, or each
// by a coin. The halves of a rename are one coin unless D5RenameHalf is on.
func (d *Disk) loseOps(r *Rand, x *dir, allowed FaultSet, pairs uint64, parent bool) {
	mode := r.Next() >> 61
	cut := int(r.Below(uint64(len(x.pending) + 1)))
	for i := range x.pending {
		op := &x.pending[i]
		keep := r.Next()>>63 != 0
		switch {
		case op.pair != 0 && !allowed.Has(D5RenameHalf):
			keep = mix(pairs+uint64(op.pair))>>63 != 0
		case mode == 0:
			keep = true
		case mode == 1:
			keep = false
		case mode < 4:
			keep = i < cut
		}
		switch {
		case keep:
			x.durable = put(x.durable, op.name, op.node)
		case parent:
			d.mark(D5Parent)
		default:
			d.mark(D5DirOps)
			if op.pair != 0 && allowed.Has(D5RenameHalf) {
				d.mark(D5RenameHalf)
			}
		}
	}
}

// recount derives from the names what follows from them: links, used space, and which files are
// segments. One whose rename was undone is none any more.
func (d *Disk) recount() {
	for _, n := range d.inodes {
		n.links, n.segment = 0, false
	}
	d.used = 0
	for _, x := range d.dirs[dirLog:] {
		for _, e := range x.live {
			if e.node.isDir {
				continue
			}
			if e.node.links == 0 {
				d.used += e.node.sizeK
			}
			e.node.links++
			e.node.name = e.name
			e.node.segment = e.node.segment || hasSuffix(e.name, segmentSuffix)
		}
	}
}
