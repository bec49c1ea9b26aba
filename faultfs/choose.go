package faultfs

import "fmt"

// DoubtMax is how many things a power loss may leave open for Doubt to list them.
const DoubtMax = 64

// Doubt is everything that a power loss at one instant would leave open: each dirty sector, each
// size and each pending directory operation makes it to the device, or does not. An image is one
// outcome: bit i says that thing i made it. PowerLoss draws one image and knows more kinds of loss;
// Doubt lets a caller go through all of them.
//
// A dirty sector that holds on the device what it holds in the kernel is no doubt, nor is anything of
// a file that no image has a name for. Where a file was never written the device holds zeros. After
// failed or lying syncs the kernel shows what no sync will write: then there is more to lose than is
// listed, and Doubt must not be used.
type Doubt struct {
	files []doubtFile
	parts []doubtPart
	names [3]doubtNames
	work  []doubtName
}

// doubtFile is one file and the hashes of its content, for its size on the device and in the kernel.
type doubtFile struct {
	node   *inode
	copy   *inode // in the disk that an image is being made in
	sizes  [2]int64
	sums   [2]uint64 // of all that is no doubt
	sized  int       // the part that its size is; -1: no doubt
	sector [2]int    // its parts [first, end)
}

// doubtPart is one thing in doubt: a sector of a file, its size, or an operation of a directory.
type doubtPart struct {
	kind   doubtKind
	file   int // or directory
	at     int64
	hashes [2][2]uint64 // of a sector: device or kernel, within which size
}

type doubtKind uint8

const (
	doubtSector doubtKind = iota
	doubtSize
	doubtOp
)

// doubtName is a name of a file: one that the device holds, or one that an operation would set, or
// with file -1 remove.
type doubtName struct {
	name string
	hash uint64
	file int // in files; below 0: fileNone or a directory
}

type doubtNames struct {
	durable []doubtName
	pending []doubtName
	first   int // part of the first pending operation
}

const (
	fileNone = -1
	fileDirs = -2 // and below: Disk.dirs[fileDirs-file]
)

// Len returns how many things are in doubt; there are 2^Len images, of which some may be equal.
func (x *Doubt) Len() int { return len(x.parts) }

// Doubts lists what a power loss would leave open now. x is valid as long as the disk does not change.
func (d *Disk) Doubts(x *Doubt) {
	check(len(d.dirs) == len(x.names), "faultfs: only the doubts of one log directory are listed")
	x.files, x.parts = x.files[:0], x.parts[:0]
	for at, from := range d.dirs {
		n := &x.names[at]
		n.durable, n.pending = n.durable[:0], n.pending[:0]
		for _, e := range from.durable {
			n.durable = append(n.durable, x.name(d, e.name, e.node))
		}
		for i := range from.pending {
			check(!from.pending[i].lost, "faultfs: a directory operation that no sync will write is no doubt")
			n.pending = append(n.pending, x.name(d, from.pending[i].name, from.pending[i].node))
		}
	}
	for i := range x.files {
		x.doubtsOf(i)
	}
	for at := range x.names {
		n := &x.names[at]
		n.first = len(x.parts)
		for i := range n.pending {
			x.parts = append(x.parts, doubtPart{kind: doubtOp, file: at, at: int64(i)})
		}
	}
	check(len(x.parts) <= DoubtMax, "faultfs: more is in doubt than an image has bits")
}

// name returns a name, and lists its file.
func (x *Doubt) name(d *Disk, name string, node *inode) doubtName {
	n := doubtName{name: name, hash: hashName(name), file: fileNone}
	switch {
	case node == nil:
	case node.isDir:
		for i, x := range d.dirs {
			if node == &x.node {
				n.file = fileDirs - i
			}
		}
	default:
		n.file = x.fileOf(node)
	}
	return n
}

func (x *Doubt) fileOf(node *inode) int {
	for i := range x.files {
		if x.files[i].node == node {
			return i
		}
	}
	x.files = append(x.files, doubtFile{node: node})
	return len(x.files) - 1
}

// doubtsOf lists what is in doubt of one file.
func (x *Doubt) doubtsOf(i int) {
	f := &x.files[i]
	n := f.node
	check(!n.ghosts && !n.sizeGhost, "faultfs: what no sync will write is no doubt")
	f.sizes = [2]int64{n.sizeD, n.sizeK}
	f.sums = [2]uint64{mix(uint64(n.sizeD)), mix(uint64(n.sizeK))}
	f.sector[0] = len(x.parts)
	for s := int64(0); s < sectors(n.hi); s++ {
		k, d := n.k[s*Sector:(s+1)*Sector], n.d[s*Sector:(s+1)*Sector]
		if !n.dirty.has(s) || string(k) == string(d) {
			for j, size := range f.sizes {
				f.sums[j] += hashSector(d, s, size)
			}
			continue
		}
		p := doubtPart{kind: doubtSector, file: i, at: s}
		for j, size := range f.sizes {
			p.hashes[0][j], p.hashes[1][j] = hashSector(d, s, size), hashSector(k, s, size)
		}
		x.parts = append(x.parts, p)
	}
	f.sector[1] = len(x.parts)
	f.sized = -1
	if n.sizeD != n.sizeK {
		f.sized = len(x.parts)
		x.parts = append(x.parts, doubtPart{kind: doubtSize, file: i})
	}
}

// hashSector hashes a sector of a file that ends at a size.
func hashSector(b []byte, s, size int64) uint64 {
	size -= s * Sector
	if size <= 0 {
		return 0
	}
	b = b[:min(size, Sector)]
	if allZero(b) {
		return 0
	}
	return mix(hashBytes(uint64(s)+1, b))
}

func hashName(name string) uint64 {
	h := uint64(len(name))
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return mix(h)
}

// Hash identifies names and contents of an image: equal images have equal hashes, on any disk.
func (x *Doubt) Hash(image uint64) uint64 {
	h := uint64(0)
	for at := range x.names {
		if at > dirParent && !x.exists(at, image) {
			continue
		}
		for _, n := range x.after(at, image) {
			h += x.hashOf(at, n, image)
		}
	}
	return mix(h)
}

func (x *Doubt) hashOf(at int, n doubtName, image uint64) uint64 {
	h := n.hash + uint64(at)*0x9e3779b97f4a7c15
	if n.file >= 0 {
		h ^= mix(x.content(n.file, image) + 1)
	}
	return mix(h)
}

// content hashes one file of an image.
func (x *Doubt) content(i int, image uint64) uint64 {
	f := &x.files[i]
	size := f.size(image)
	h := f.sums[size]
	for p := f.sector[0]; p < f.sector[1]; p++ {
		h += x.parts[p].hashes[image>>p&1][size]
	}
	return h
}

// size says which size a file has in an image: 0 the device's, 1 the kernel's.
func (f *doubtFile) size(image uint64) int {
	if f.sized < 0 {
		return 0
	}
	return int(image >> f.sized & 1)
}

// after returns the names of a directory in an image. It is valid until the next call.
func (x *Doubt) after(at int, image uint64) []doubtName {
	n := &x.names[at]
	list := append(x.work[:0], n.durable...)
	for i, op := range n.pending {
		if image>>(n.first+i)&1 == 0 {
			continue
		}
		j := 0
		for j < len(list) && list[j].name != op.name {
			j++
		}
		switch {
		case j == len(list) && op.file != fileNone:
			list = append(list, op)
		case j < len(list) && op.file != fileNone:
			list[j] = op
		case j < len(list):
			list = append(list[:j], list[j+1:]...)
		}
	}
	x.work = list
	return list
}

// exists reports whether an image has a directory, and those above it.
func (x *Doubt) exists(at int, image uint64) bool {
	if at > dirLog && !x.exists(at-1, image) {
		return false
	}
	for _, n := range x.after(at-1, image) {
		if n.file == fileDirs-at {
			return true
		}
	}
	return false
}

// Describe names what an image lost, or says that nothing was in doubt.
func (x *Doubt) Describe(image uint64) string {
	if len(x.parts) == 0 {
		return "nothing was in doubt"
	}
	text := ""
	for i := range x.parts {
		if image>>i&1 != 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += x.describe(&x.parts[i])
	}
	if text == "" {
		return "everything made it"
	}
	return "lost: " + text
}

func (x *Doubt) describe(p *doubtPart) string {
	if p.kind == doubtOp {
		n := &x.names[p.file].pending[p.at]
		if n.file == fileNone {
			return "removal of the name " + n.name
		}
		return "the name " + n.name
	}
	f := &x.files[p.file]
	if p.kind == doubtSize {
		return fmt.Sprintf("size %d of %s (stays %d)", f.sizes[1], f.node.name, f.sizes[0])
	}
	return fmt.Sprintf("sector %d of %s", p.at, f.node.name)
}

// KilledHash identifies what TakeKilled takes. Where nothing is in doubt it is the hash of the image.
func (d *Disk) KilledHash(x *Doubt) uint64 {
	if len(x.parts) == 0 {
		return x.Hash(0)
	}
	h := uint64(len(x.parts))
	for at := range x.names {
		for _, n := range x.names[at].durable {
			h += mix(x.both(at, n) + 1)
		}
		for i, n := range x.names[at].pending {
			h += mix(x.both(at, n) + 2 + uint64(i))
		}
	}
	return mix(h)
}

// both hashes a name with its file in the kernel and on the device.
func (x *Doubt) both(at int, n doubtName) uint64 {
	return x.hashOf(at, n, 0)*3 + x.hashOf(at, n, ^uint64(0))*5
}
