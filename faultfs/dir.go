package faultfs

// Directories of a Disk, by index.
const (
	dirParent = iota
	dirLog
	dirQuarantine
)

// logEntry is the log directory's own name in its parent.
const logEntry = "log"

// entry is a name in a directory.
type entry struct {
	key  uint64 // keyOf(name)
	name string
	node *inode
}

// keyOf maps equal names to equal keys, and others hardly ever: what tells segment names apart are
// the last digits of base offset and id.
func keyOf(name string) uint64 {
	n := len(name)
	key := uint64(n) << 56
	switch {
	case n >= 37:
		return key ^ word(name[12:])*3 ^ word(name[29:]) ^ word(name[n-8:])*5
	case n >= 8:
		return key ^ word(name) ^ word(name[n-8:])*3
	}
	for i := 0; i < n; i++ {
		key ^= uint64(name[i]) << (8 * i)
	}
	return key
}

// word returns the first eight bytes of a string.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// nameOp is a change of a directory that is not durable: a link, or an unlink if node is nil.
type nameOp struct {
	name string
	node *inode
	pair uint32 // the same number in both halves of a rename, else 0
	lost bool   // a failed or lying sync: no later sync writes it
}

// dir is a directory: the names that processes see, those that the device holds, and the
// operations that lead from the latter to the former.
type dir struct {
	live, durable []entry
	pending       []nameOp
	hints         [1 << hintBits]uint16 // where in live a name was when it was last looked for

	node inode  // stands for the directory itself in its parent's entries
	name string // of a log directory beside the first one
}

// hintBits is of a directory of hundreds of files: without hints, looking names up in it takes most of
// the time.
const hintBits = 10

func (x *dir) reset() {
	clear(x.live)
	clear(x.durable)
	clear(x.pending)
	x.live, x.durable, x.pending = x.live[:0], x.durable[:0], x.pending[:0]
}

func find(list []entry, name string) int { return search(list, keyOf(name), name) }

// search is find with the name's key.
func search(list []entry, key uint64, name string) int {
	for i := range list {
		if list[i].key == key && list[i].name == name {
			return i
		}
	}
	return -1
}

// at returns where in live a name is, -1 for nowhere.
func (x *dir) at(name string) int {
	key := keyOf(name)
	hint := &x.hints[key*0x9e3779b97f4a7c15>>(64-hintBits)]
	i := int(*hint)
	if i >= len(x.live) || x.live[i].key != key || x.live[i].name != name {
		i = search(x.live, key, name)
		*hint = uint16(i)
	}
	return i
}

// get returns the file that processes see under a name, nil if there is none.
func (x *dir) get(name string) *inode {
	if i := x.at(name); i >= 0 {
		return x.live[i].node
	}
	return nil
}

// put links or, with a nil node, unlinks a name in a list of entries.
func put(list []entry, name string, node *inode) []entry {
	return putAt(list, find(list, name), name, node)
}

// putAt is put where the name is at i.
func putAt(list []entry, i int, name string, node *inode) []entry {
	switch {
	case i < 0 && node != nil:
		return append(list, entry{keyOf(name), name, node})
	case i >= 0 && node != nil:
		list[i].node = node
	case i >= 0:
		last := len(list) - 1
		list[i] = list[last]
		list[last] = entry{}
		return list[:last]
	}
	return list
}

func (x *dir) put(name string, node *inode) { x.apply(name, node, 0) }

// apply changes the live names and remembers the change as pending.
func (x *dir) apply(name string, node *inode, pair uint32) {
	x.live = putAt(x.live, x.at(name), name, node)
	x.pending = append(x.pending, nameOp{name: name, node: node, pair: pair})
}

// settle makes everything durable that an earlier failed sync did not give up.
func (x *dir) settle() {
	clean := true
	for i := range x.pending {
		clean = clean && !x.pending[i].lost
	}
	if clean {
		x.durable = append(x.durable[:0], x.live...)
		clear(x.pending)
		x.pending = x.pending[:0]
		return
	}
	for i := 0; i < len(x.pending); {
		if x.pending[i].lost {
			i++
			continue
		}
		x.persist(i)
		i = 0 // persist also took older operations on the same name
	}
}

// persist makes one operation durable on its own. Older ones on the same name are history then.
func (x *dir) persist(i int) {
	op := x.pending[i]
	x.durable = put(x.durable, op.name, op.node)
	kept := x.pending[:0]
	for j := range x.pending {
		if j <= i && x.pending[j].name == op.name {
			continue
		}
		kept = append(kept, x.pending[j])
	}
	clear(x.pending[len(kept):])
	x.pending = kept
}

// lose makes everything pending such that no later sync writes it. It returns how many operations
// that were.
func (x *dir) lose() int {
	for i := range x.pending {
		x.pending[i].lost = true
	}
	return len(x.pending)
}

// holds reports whether a power loss could bring a file back into this directory.
func (x *dir) holds(n *inode) bool {
	for i := range x.durable {
		if x.durable[i].node == n {
			return true
		}
	}
	for i := range x.pending {
		if x.pending[i].node == n {
			return true
		}
	}
	return false
}
