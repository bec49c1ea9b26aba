package faultfs

import "math/bits"

// bitmap has one bit a sector.
type bitmap []uint64

func (b bitmap) has(s int64) bool { return b[s>>6]>>(s&63)&1 != 0 }
func (b bitmap) set(s int64)      { b[s>>6] |= 1 << (s & 63) }
func (b bitmap) clear(s int64)    { b[s>>6] &^= 1 << (s & 63) }

// span is a range of sectors, [first, end).
type span struct{ first, end int64 }

// inode is a file. Both contents are held in arrays of equal length, a multiple of a sector.
type inode struct {
	name    string // last name it was linked under
	isDir   bool
	dir     int    // of a directory: where in Disk.dirs it is
	segment bool   // linked under a segment name at some time
	life    uint32 // the life that made it

	k, d         []byte
	sizeK, sizeD int64
	hi           int64 // bytes of k and d from here on are zero. k is zero from sizeK on as well

	dirty  bitmap // K is to be written to D
	ghost  bitmap // K may differ from D, and no sync will write it. Never set where dirty is
	synced bitmap // covered by a sync that succeeded, in truth or not
	cover  bitmap // dirty when the outstanding sync was issued, and not written since

	dirtyLo, dirtyHi int // words of dirty that may be non-zero, [lo, hi)
	coverSize        int64
	syncing          bool
	ghosts           bool // some ghost bit is set
	sizeGhost        bool // no sync will write the size

	errs    uint32 // write-back errors so far
	errSeen bool   // the latest was reported to somebody
	err     error  // the latest

	bad    []span // sectors that cannot be read
	links  int    // live names
	opens  int    // open handles
	locked *FS    // holder of the lock
}

// reset clears what was used.
func (n *inode) reset() {
	clear(n.k[:n.hi])
	clear(n.d[:n.hi])
	for w := range words(n.hi) {
		n.dirty[w], n.ghost[w], n.synced[w] = 0, 0, 0
	}
	*n = inode{k: n.k, d: n.d, dirty: n.dirty, ghost: n.ghost, synced: n.synced, cover: n.cover, bad: n.bad[:0]}
}

// words returns how many bitmap words cover a size in bytes.
func words(size int64) int { return int((size + 64*Sector - 1) / (64 * Sector)) }

// sectors returns how many sectors cover a size in bytes.
func sectors(size int64) int64 { return (size + Sector - 1) / Sector }

// reach makes room for a size and counts the bytes below it as used.
func (n *inode) reach(size int64) {
	if size <= n.hi {
		return
	}
	n.hi = size
	if size <= int64(len(n.k)) {
		return
	}
	length := int64(4096)
	for length < size {
		length *= 2
	}
	k, d := make([]byte, length), make([]byte, length)
	copy(k, n.k)
	copy(d, n.d)
	n.k, n.d = k, d
	w := words(length)
	grow := func(b bitmap) bitmap { return append(b, make(bitmap, w-len(b))...) }
	n.dirty, n.ghost, n.synced, n.cover = grow(n.dirty), grow(n.ghost), grow(n.synced), grow(n.cover)
}

// soil marks the sectors of [off, end) as changed in K.
func (n *inode) soil(off, end int64) {
	if off >= end {
		return
	}
	first, last := off/Sector, (end-1)/Sector
	for s := first; s <= last; s++ {
		n.dirty.set(s)
		if n.syncing {
			n.cover.clear(s)
		}
		if n.ghosts {
			n.ghost.clear(s)
		}
	}
	lo, hi := int(first>>6), int(last>>6)+1
	if n.dirtyLo == n.dirtyHi {
		n.dirtyLo, n.dirtyHi = lo, hi
	} else {
		n.dirtyLo, n.dirtyHi = min(n.dirtyLo, lo), max(n.dirtyHi, hi)
	}
	if len(n.bad) > 0 {
		n.heal(first, last+1)
	}
	if end > n.sizeD {
		n.sizeGhost = false
	}
}

// write changes K; the buffers' bytes from the first one on, n of them.
func (n *inode) write(bufs [][]byte, off, count int64) {
	if count == 0 {
		return
	}
	end := off + count
	n.reach(end)
	pos := off
	for _, b := range bufs {
		if rest := end - pos; int64(len(b)) > rest {
			b = b[:rest]
		}
		pos += int64(copy(n.k[pos:], b))
	}
	n.sizeK = max(n.sizeK, end)
	n.soil(off, end)
}

// zero writes zeros.
func (n *inode) zero(off, count int64) {
	if count == 0 {
		return
	}
	end := off + count
	n.reach(end)
	clear(n.k[off:end])
	n.sizeK = max(n.sizeK, end)
	n.soil(off, end)
}

// truncate changes the size. Bytes cut are dirty zeros: until a sync the device has the old ones.
func (n *inode) truncate(size int64) {
	if old := n.sizeK; size < old {
		clear(n.k[size:old])
		n.soil(size, old)
	}
	n.reach(size)
	if n.sizeK != size {
		n.sizeK, n.sizeGhost = size, false
	}
}

// heal takes sectors off the unreadable ones.
func (n *inode) heal(first, end int64) {
	kept := n.bad[:0]
	for _, b := range n.bad {
		if b.first >= first && b.end <= end {
			continue
		}
		kept = append(kept, b)
	}
	n.bad = kept
}

// unreadable reports whether [off, end) holds a bad sector.
func (n *inode) unreadable(off, end int64) bool {
	for _, b := range n.bad {
		if off < b.end*Sector && end > b.first*Sector {
			return true
		}
	}
	return false
}

// fate is what becomes of the dirty sectors that a write-back does not write.
type fate uint8

const (
	staysDirty fate = iota
	becomesGhost
	reverts // K shows what the device holds
)

// flush writes every sector that the outstanding sync covers, or every dirty one, and the size.
func (n *inode) flush() {
	for w := n.dirtyLo; w < n.dirtyHi; w++ {
		m := n.covered(w)
		n.dirty[w] &^= m
		n.synced[w] |= m
		for m != 0 {
			first := bits.TrailingZeros64(m)
			run := bits.TrailingZeros64(^(m >> first))
			at := (int64(w)*64 + int64(first)) * Sector
			copy(n.d[at:at+int64(run)*Sector], n.k[at:])
			m &^= (1<<run - 1) << first
		}
	}
	n.narrow()
	n.flushSize()
}

// narrow shrinks the range of words that may have dirty bits.
func (n *inode) narrow() {
	for n.dirtyLo < n.dirtyHi && n.dirty[n.dirtyLo] == 0 {
		n.dirtyLo++
	}
	for n.dirtyLo < n.dirtyHi && n.dirty[n.dirtyHi-1] == 0 {
		n.dirtyHi--
	}
}

// covered returns the dirty sectors of one word that a sync completing now must write.
func (n *inode) covered(w int) uint64 {
	if n.syncing {
		return n.dirty[w] & n.cover[w]
	}
	return n.dirty[w]
}

// flushSize makes the size durable, as it was when the outstanding sync was issued.
func (n *inode) flushSize() {
	switch {
	case n.sizeGhost:
	case n.syncing && n.sizeK != n.coverSize:
		n.sizeD = n.coverSize
	default:
		n.sizeD = n.sizeK
		if n.hi > n.sizeK {
			n.cut(n.sizeK)
		}
	}
}

// cut forgets everything from a size on that both K and D end at.
func (n *inode) cut(size int64) {
	clear(n.d[size:n.hi])
	first := sectors(size)
	for s := first; s < sectors(n.hi); s++ {
		n.dirty.clear(s)
		n.ghost.clear(s)
		n.synced.clear(s)
	}
	n.hi = size
}

// scatter writes a random part of what flush would write, and gives the rest a fate. It reports
// whether anything was not written: a sector, or the size alone.
func (n *inode) scatter(r *Rand, rest fate) (left bool) {
	for w := n.dirtyLo; w < n.dirtyHi; w++ {
		m := n.covered(w)
		if m == 0 {
			continue
		}
		keep := m & r.mask()
		for b := m; b != 0; b &= b - 1 {
			s := int64(w)*64 + int64(bits.TrailingZeros64(b))
			k, d := n.k[s*Sector:(s+1)*Sector], n.d[s*Sector:(s+1)*Sector]
			switch {
			case keep&(b&-b) != 0:
				copy(d, k)
			case rest == reverts:
				copy(k, d)
				left = true
			default:
				left = true
			}
		}
		switch lost := m &^ keep; rest {
		case staysDirty:
			n.dirty[w] &^= keep
		case becomesGhost:
			n.dirty[w] &^= m
			n.ghost[w] |= lost
			n.ghosts = n.ghosts || lost != 0
		case reverts:
			n.dirty[w] &^= m
		}
	}
	if rest == reverts {
		clear(n.k[n.sizeK:n.hi]) // old bytes beyond the size are not seen
	}
	n.narrow()
	return n.scatterSize(r, rest) || left
}

// scatterSize makes the size durable, or not: then it reports true.
func (n *inode) scatterSize(r *Rand, rest fate) (left bool) {
	switch {
	case n.sizeGhost || n.sizeK == n.sizeD:
		return false
	case r.Next()&1 == 0:
		n.sizeD = n.sizeK
		return false
	case rest != staysDirty:
		n.sizeGhost = true
	}
	return true
}

// mask draws a set of sectors: all, none, a prefix, or each by a coin.
func (r *Rand) mask() uint64 {
	x := r.Next()
	switch x >> 60 {
	case 0, 1:
		return ^uint64(0)
	case 2, 3, 4:
		return 0
	case 5, 6, 7:
		return 1<<(x&63) - 1
	}
	return r.Next()
}

// fail records a write-back error that nobody has seen.
func (n *inode) fail(err error) {
	n.errs++
	n.errSeen, n.err = false, err
}

// settled reports whether K and D are the same, ghosts apart.
func (n *inode) settled() bool { return n.dirtyLo == n.dirtyHi && n.sizeK == n.sizeD }
