package faultfs

import "varve/tiers/disk"

// FileState is one file under one name, sector by sector: an Image, and why kernel and device differ.
type FileState struct {
	Image
	Live bool // processes see this name; else only the device still holds it
	node *inode
}

// SectorState is what the next sync makes of a sector.
type SectorState uint8

// Sector states.
const (
	SectorClean SectorState = iota // kernel and device agree, or nothing was written there
	SectorDirty                    // a sync writes it
	SectorGhost                    // no sync writes it: a sync that failed or lied has taken it for written
	SectorBad                      // cannot be read until it is written again
)

// State returns the state of the sector with this number.
func (f *FileState) State(sector int64) SectorState {
	n := f.node
	switch {
	case n.unreadable(sector*Sector, (sector+1)*Sector):
		return SectorBad
	case sector>>6 >= int64(len(n.dirty)):
	case n.dirty.has(sector):
		return SectorDirty
	case n.ghost.has(sector):
		return SectorGhost
	}
	return SectorClean
}

// States appends every file by every name that processes see or the device holds. A name that stands
// for another file on the device is there twice.
func (d *Disk) States(dst []FileState) []FileState {
	for _, at := range [...]int{dirLog, dirQuarantine} {
		x := d.dirs[at]
		for _, e := range x.live {
			i := search(x.durable, e.key, e.name)
			dst = appendState(dst, at, e, true, i >= 0 && x.durable[i].node == e.node)
		}
		for _, e := range x.durable {
			if i := search(x.live, e.key, e.name); i < 0 || x.live[i].node != e.node {
				dst = appendState(dst, at, e, false, true)
			}
		}
	}
	return dst
}

func appendState(dst []FileState, at int, e entry, live, durable bool) []FileState {
	n := e.node
	if n.isDir {
		return dst
	}
	f := FileState{Image: Image{Name: e.name, Kernel: n.k[:n.sizeK], Device: n.d[:n.sizeD], Durable: durable}, Live: live, node: n}
	if at == dirQuarantine {
		f.Dir = disk.DirQuarantine
	}
	return append(dst, f)
}
