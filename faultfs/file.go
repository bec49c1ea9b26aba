package faultfs

import (
	"io"

	"varve/tiers/disk"
)

// File is an open file, or a lock. It implements disk.File.
type File struct {
	fs    *FS
	node  *inode
	mode  disk.Mode
	open  bool
	lock  bool
	since uint32 // write-back errors up to this one were reported here, or before it was opened
}

func (h *File) close() { *h = File{} }

// handle opens a file. Handles are used in turn, so that a stale one stays closed for a while.
func (d *Disk) handle(f *FS, n *inode, mode disk.Mode) *File {
	if 2*d.open >= len(d.handles) {
		d.growHandles(len(d.handles))
	}
	for d.handles[d.next].open {
		d.next = (d.next + 1) % len(d.handles)
	}
	h := d.handles[d.next]
	d.next = (d.next + 1) % len(d.handles)
	*h = File{fs: f.main, node: n, mode: mode, open: true, since: n.errs}
	if n.errs > 0 && !n.errSeen {
		h.since--
	}
	n.opens++
	d.open++
	return h
}

func (d *Disk) growHandles(n int) {
	more := make([]File, n)
	for i := range more {
		d.handles = append(d.handles, &more[i])
	}
}

// release closes a handle and frees what only it held.
func (d *Disk) release(h *File) {
	n := h.node
	if h.lock {
		n.locked = nil
	}
	n.opens--
	d.open--
	if n.opens == 0 && n.links == 0 {
		d.used -= n.sizeK
	}
	h.close()
}

// Close implements disk.File. It never syncs and never reports a write-back error.
func (h *File) Close() error {
	switch {
	case !h.open:
		return errClosed
	case h.fs.dead:
		return ErrDead
	}
	h.fs.d.release(h)
	return nil
}

// ReadAt implements disk.File.
func (h *File) ReadAt(p []byte, off int64) (int, error) {
	if !h.open {
		return 0, errClosed
	}
	n, d := h.node, h.fs.d
	fault, err := h.fs.enter(OpRead, n.name)
	if err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, errRange
	}
	end := min(off+int64(len(p)), n.sizeK)
	if fault == D14ReadBad && off < end {
		s := off/Sector + int64(d.rand.Below(uint64((end-1)/Sector-off/Sector+1)))
		n.bad = append(n.bad, span{s, s + 1})
		d.mark(D14ReadBad)
	}
	if err := d.refuse(fault); err != nil {
		return 0, err
	}
	if len(n.bad) > 0 && n.unreadable(off, end) {
		return 0, d.inject(D14ReadBad, ErrIO)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= n.sizeK {
		return 0, io.EOF
	}
	got := copy(p, n.k[off:end])
	d.counts.ReadBytes += uint64(got)
	if got < len(p) {
		return got, io.EOF
	}
	return got, nil
}

// WriteAt implements disk.File.
func (h *File) WriteAt(bufs [][]byte, off int64) (int, error) {
	if !h.open {
		return 0, errClosed
	}
	fault, err := h.fs.begun(OpWrite, h.node.name)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, b := range bufs {
		total += int64(len(b))
	}
	count, err := h.part(fault, off, total)
	if count > 0 {
		if h.fs.observer != nil {
			for s := int64(1); s <= boundaries(off, count); s++ {
				h.node.write(bufs, off, upTo(off, s))
				h.fs.observer.Inside(s)
			}
		}
		h.node.write(bufs, off, count)
		h.fs.d.counts.WriteBytes += uint64(count)
	}
	return int(count), err
}

// WriteZeros implements disk.File.
func (h *File) WriteZeros(off, n int64) error {
	if !h.open {
		return errClosed
	}
	fault, err := h.fs.begun(OpZero, h.node.name)
	if err != nil {
		return err
	}
	count, err := h.part(fault, off, n)
	if count > 0 {
		if h.fs.observer != nil {
			for s := int64(1); s <= boundaries(off, count); s++ {
				h.node.zero(off, upTo(off, s))
				h.fs.observer.Inside(s)
			}
		}
		h.node.zero(off, count)
		h.fs.d.counts.ZeroBytes += uint64(count)
	}
	return err
}

// part returns how much of a write of total bytes is applied, and the error that the call ends in.
// It judges the write and takes the space that it needs.
func (h *File) part(fault Fault, off, total int64) (int64, error) {
	d, n := h.fs.d, h.node
	switch {
	case h.mode == disk.Read:
		return 0, errReadHandle
	case off < 0 || total < 0 || off > MaxFileBytes || total > MaxFileBytes-off:
		return 0, errRange
	case total == 0:
		return 0, d.answer(fault)
	}
	count, err := total, error(nil)
	switch fault {
	case D11Short:
		count, err = d.tear(off, total), d.inject(fault, ErrIO)
	case D11Interrupt:
		count, err = d.tear(off, total), d.inject(fault, ErrInterrupted)
	case D13Short:
		count, err = d.tear(off, total), d.inject(fault, errNoSpace)
	case D12Applied:
		err = d.inject(fault, ErrIO)
	case D19TornCall:
		count, err = d.cutShort(off, total), ErrDead
	}
	if need := off + count - n.sizeK; need > 0 {
		if fit := d.room(need); fit < need {
			end := off + count - (need - fit)
			count, err = max(0, end-end%Sector-off), d.failed(errFull)
		}
	}
	d.checkWrite(h.fs, n, off, off+count)
	if grow := off + count - n.sizeK; grow > 0 && count > 0 {
		d.used += grow
	}
	d.last, d.lastOff, d.lastEnd = n, off, off+count
	return count, err
}

// tear returns how much of a write is done when it fails or the process dies in it: some sectors
// from the front. Kernels copy and allocate whole blocks; no part of a sector is written alone.
func (d *Disk) tear(off, total int64) int64 {
	return upTo(off, int64(d.rand.Below(uint64(boundaries(off, total)+1))))
}

// cutShort is tear for a process that dies in a write: where there is a boundary, something is done.
func (d *Disk) cutShort(off, total int64) int64 {
	n := boundaries(off, total)
	at := 1 + int64(d.rand.Below(uint64(max(n, 1))))
	if n == 0 {
		d.mark(D19Dead)
		return 0
	}
	d.mark(D19TornCall)
	return upTo(off, at)
}

// boundaries returns how many sector boundaries lie inside a write.
func boundaries(off, total int64) int64 { return (off+total-1)/Sector - off/Sector }

// upTo returns how many bytes of a write lie before the n-th boundary inside it, none for n 0.
func upTo(off, n int64) int64 {
	if n == 0 {
		return 0
	}
	return (off/Sector+n)*Sector - off
}

// Truncate implements disk.File.
func (h *File) Truncate(size int64) error {
	if !h.open {
		return errClosed
	}
	d, n := h.fs.d, h.node
	fault, err := h.fs.begun(OpTruncate, n.name)
	switch {
	case err != nil:
		return err
	case h.mode == disk.Read:
		return errReadHandle
	case size < 0 || size > MaxFileBytes:
		return errRange
	}
	grow := size - n.sizeK
	if grow > 0 && d.room(grow) < grow {
		return d.failed(errFull)
	}
	if grow < 0 {
		d.checkCut(h.fs, n, size)
	}
	n.truncate(size)
	d.used += grow
	return d.answer(fault)
}

// checkCut judges a cut like a write, if it changes anything at all.
func (d *Disk) checkCut(fs *FS, n *inode, size int64) {
	if !n.segment {
		return
	}
	for s := size / Sector; s*Sector < n.sizeK; s++ {
		from := max(size, s*Sector)
		if !allZero(n.k[from : (s+1)*Sector]) {
			d.checkWrite(fs, n, from, (s+1)*Sector)
		}
	}
	if n.life != fs.life {
		d.violate("cut of a segment of an earlier life", n.name, size)
	}
}

// Size implements disk.File.
func (h *File) Size() (int64, error) {
	if !h.open {
		return 0, errClosed
	}
	fault, err := h.fs.enter(OpSize, h.node.name)
	if err == nil {
		err = h.fs.d.refuse(fault)
	}
	if err != nil {
		return 0, err
	}
	return h.node.sizeK, nil
}

// Sync implements disk.File.
func (h *File) Sync() error {
	if !h.open {
		return errClosed
	}
	n, f := h.node, h.fs
	fault, err := f.enter(OpSync, n.name)
	if err != nil {
		return err
	}
	if f.d.readOnly {
		err = f.d.failed(errReadOnly)
	} else {
		err = h.sync(fault)
	}
	n.syncing = false
	return err
}

// sync writes back as the fault has it and reports what this handle has not heard of yet.
func (h *File) sync(fault Fault) error {
	n, d := h.node, h.fs.d
	switch fault {
	case D13NoSpace:
		n.scatter(&d.rand, becomesGhost)
		n.fail(d.inject(fault, errNoSpace))
	case D17Clean:
		n.scatter(&d.rand, becomesGhost)
		n.fail(d.inject(fault, ErrIO))
	case D17Revert:
		n.scatter(&d.rand, reverts)
		n.fail(d.inject(fault, ErrIO))
	case D17ReadOnly:
		n.scatter(&d.rand, becomesGhost)
		d.readOnly = true
		n.fail(d.inject(fault, ErrIO))
	case D9Lie:
		if n.scatter(&d.rand, becomesGhost) {
			d.mark(fault)
		}
	case D8Misdirect:
		if d.misdirect(n) {
			d.mark(fault)
		}
		n.flush()
	case D19TornCall:
		d.mark(fault)
		n.scatter(&d.rand, staysDirty)
		return ErrDead
	default:
		n.flush()
	}
	if h.since != n.errs {
		h.since, n.errSeen = n.errs, true
		return d.failed(n.err)
	}
	if fault == D17Next {
		d.strike(fault)
		n.fail(ErrIO)
		return nil
	}
	return d.answer(fault)
}

// misdirect writes one sector that is due to another place, of this file or, by a coin, any, and leaves
// the right place as it was. The kernel shows the right bytes in both until it drops them.
func (d *Disk) misdirect(n *inode) bool {
	from, ok := n.anyDirty(&d.rand)
	if !ok {
		return false
	}
	to := n
	if d.rand.Next()>>63 != 0 {
		to = d.inodes[d.rand.Below(uint64(len(d.inodes)))]
	}
	size := max(to.sizeD, Sector)
	at := int64(d.rand.Below(uint64(size / Sector)))
	if to == n && at == from || to.hi == 0 {
		return false
	}
	to.reach(min(int64(len(to.d)), (at+1)*Sector))
	copy(to.d[at*Sector:(at+1)*Sector], n.k[from*Sector:(from+1)*Sector])
	if !to.dirty.has(at) {
		to.ghost.set(at)
		to.ghosts = true
	}
	n.dirty.clear(from)
	n.ghost.set(from)
	n.ghosts = true
	return true
}

// anyDirty draws a sector that a sync completing now must write.
func (n *inode) anyDirty(r *Rand) (int64, bool) {
	start := n.dirtyLo*64 + int(r.Below(uint64(n.dirtyHi-n.dirtyLo)*64))
	total := (n.dirtyHi - n.dirtyLo) * 64
	for i := 0; i < total; i++ {
		s := n.dirtyLo*64 + (start-n.dirtyLo*64+i)%total
		if n.covered(s/64)>>(s%64)&1 != 0 {
			return int64(s), true
		}
	}
	return 0, false
}
