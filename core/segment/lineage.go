package segment

import (
	"encoding/binary"
	"fmt"
)

// LineageBytes is the size of one entry of a lineage wherever it is written: superblock, warm entry.
const LineageBytes = 12

// PutLineage encodes a lineage into the start of dst.
func PutLineage(dst []byte, l []Lineage) {
	for i := range l {
		binary.LittleEndian.PutUint32(dst[0:], l[i].Epoch)
		binary.LittleEndian.PutUint64(dst[4:], uint64(l[i].First))
		dst = dst[LineageBytes:]
	}
}

// AppendLineage appends what b, whole entries, holds.
func AppendLineage(dst []Lineage, b []byte) []Lineage {
	for ; len(b) > 0; b = b[LineageBytes:] {
		dst = append(dst, Lineage{Epoch: binary.LittleEndian.Uint32(b), First: Offset(binary.LittleEndian.Uint64(b[4:]))})
	}
	return dst
}

// CheckLineage looks for the first thing in b, whole entries, that no writer writes: epochs rise,
// offsets do not fall. Where expected is empty there is none.
func CheckLineage(b []byte) (pos int, expected, found string) {
	le := binary.LittleEndian
	var epoch Epoch
	first := Offset(0)
	for pos := 0; pos < len(b); pos += LineageBytes {
		e, f := le.Uint32(b[pos:]), Offset(le.Uint64(b[pos+4:]))
		if e <= epoch && pos > 0 {
			return pos, fmt.Sprintf("a lineage epoch above %d", epoch), fmt.Sprint(e)
		}
		if f < first {
			return pos + 4, fmt.Sprintf("a lineage offset of %d or more", first), fmt.Sprint(f)
		}
		epoch, first = e, f
	}
	return 0, "", ""
}
