package faultfs

import (
	"encoding/binary"
	"math/bits"

	"varve/tiers/disk"
)

// Counts is how many calls of each class were made, and bytes moved, since Reset or ResetCounts.
// Calls that failed count too.
type Counts struct {
	Calls      [OpCount]uint64
	ReadBytes  uint64
	WriteBytes uint64
	ZeroBytes  uint64
	Injected   uint64 // faults that ended in an error, of the same call or of a later one
	Failed     uint64 // calls that ended in an error of a fault, a full or a read-only disk; Free apart
}

// Counts returns the counters; they change with every call.
func (d *Disk) Counts() *Counts { return &d.counts }

// ResetCounts sets the counters to zero.
func (d *Disk) ResetCounts() { d.counts = Counts{} }

// OpenFiles returns how many handles and locks are open.
func (d *Disk) OpenFiles() int { return d.open }

// Used returns the bytes that files use.
func (d *Disk) Used() int64 { return d.used }

// Image is one file as processes see it and as the device holds it. The bytes are the disk's own:
// read only, and valid until the next call.
type Image struct {
	Dir     string // disk.DirLog or disk.DirQuarantine
	Name    string
	Kernel  []byte
	Device  []byte
	Durable bool // the device holds this name for this file
}

// Images appends every file that processes see.
func (d *Disk) Images(dst []Image) []Image {
	for _, at := range [...]int{dirLog, dirQuarantine} {
		x := d.dirs[at]
		for _, e := range x.live {
			if e.node.isDir {
				continue
			}
			m := Image{Name: e.name, Kernel: e.node.k[:e.node.sizeK], Device: e.node.d[:e.node.sizeD]}
			if at == dirQuarantine {
				m.Dir = disk.DirQuarantine
			}
			i := search(x.durable, e.key, e.name)
			m.Durable = i >= 0 && x.durable[i].node == e.node
			dst = append(dst, m)
		}
	}
	return dst
}

// KernelHash identifies names and contents as processes see them.
func (d *Disk) KernelHash() uint64 {
	h := uint64(0)
	for at := range d.dirs {
		for _, e := range d.dirs[at].live {
			h += hashEntry(at, e, e.node.k[:e.node.sizeK])
		}
	}
	return mix(h)
}

// DurableHash identifies names and contents that the device holds.
func (d *Disk) DurableHash() uint64 {
	h := uint64(0)
	for at := range d.dirs {
		for _, e := range d.dirs[at].durable {
			h += hashEntry(at, e, e.node.d[:e.node.sizeD])
		}
	}
	return mix(h)
}

// hashEntry hashes one entry; entries are summed, so that their order does not matter.
func hashEntry(at int, e entry, content []byte) uint64 {
	h := uint64(at)<<32 + uint64(len(content))
	if e.node.isDir {
		h = ^h
	}
	for i := 0; i < len(e.name); i++ {
		h = (h ^ uint64(e.name[i])) * 0x100000001b3
	}
	return mix(hashBytes(h, content))
}

func hashBytes(h uint64, content []byte) uint64 {
	const prime = 0x9e3779b97f4a7c15
	for len(content) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(content)) * prime
		h ^= h >> 29
		content = content[8:]
	}
	for _, b := range content {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}

// lowBit returns the index of the lowest bit set.
func lowBit(b uint64) int { return bits.TrailingZeros64(b) }

// dirtyCount returns how many sectors are dirty.
func (n *inode) dirtyCount() int {
	total := 0
	for w := n.dirtyLo; w < n.dirtyHi; w++ {
		total += bits.OnesCount64(n.dirty[w])
	}
	return total
}
