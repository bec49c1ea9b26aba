package segment

import "math"

// NameKind says what a file name stands for.
type NameKind uint8

// Name kinds.
const (
	NameSegment NameKind = iota + 1 // .seg
	NameIndex                       // .idx, the sidecar index of the segment of the same stem
)

const (
	nameBaseDigits = 20
	nameIDDigits   = 16
	nameStemBytes  = nameBaseDigits + 1 + nameIDDigits
	nameBytes      = nameStemBytes + 4
	extSegment     = ".seg"
	extIndex       = ".idx"
)

// Name returns the file name of a segment: <base offset, 20 digits>-<segment id, 16 hex>.seg.
func Name(base Offset, id ID) string {
	var b [nameBytes]byte
	return string(AppendName(b[:0], base, id))
}

// AppendName appends the file name of a segment.
func AppendName(dst []byte, base Offset, id ID) []byte {
	return append(appendStem(dst, base, id), extSegment...)
}

// AppendIndexName appends the file name of a segment's sidecar index.
func AppendIndexName(dst []byte, base Offset, id ID) []byte {
	return append(appendStem(dst, base, id), extIndex...)
}

func appendStem(dst []byte, base Offset, id ID) []byte {
	const hex = "0123456789abcdef"
	var b [nameStemBytes]byte
	v := uint64(base)
	for i := nameBaseDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	b[nameBaseDigits] = '-'
	for i := nameStemBytes - 1; i > nameBaseDigits; i-- {
		b[i] = hex[id&15]
		id >>= 4
	}
	return append(dst, b[:]...)
}

// ParseName is the inverse of AppendName and AppendIndexName: it accepts exactly what they make of
// an offset that is not negative, and nothing else.
func ParseName(name string) (base Offset, id ID, kind NameKind, ok bool) {
	if len(name) != nameBytes || name[nameBaseDigits] != '-' {
		return 0, 0, 0, false
	}
	switch name[nameStemBytes:] {
	case extSegment:
		kind = NameSegment
	case extIndex:
		kind = NameIndex
	default:
		return 0, 0, 0, false
	}
	var v uint64
	for i := 0; i < nameBaseDigits-1; i++ { // 19 digits do not overflow
		d := uint64(name[i]) - '0'
		if d > 9 {
			return 0, 0, 0, false
		}
		v = v*10 + d
	}
	d := uint64(name[nameBaseDigits-1]) - '0'
	if d > 9 || v > (math.MaxInt64-d)/10 {
		return 0, 0, 0, false
	}
	v = v*10 + d
	for i := nameBaseDigits + 1; i < nameStemBytes; i++ {
		c := name[i]
		switch {
		case '0' <= c && c <= '9':
			id = id<<4 | ID(c-'0')
		case 'a' <= c && c <= 'f':
			id = id<<4 | ID(c-'a'+10)
		default:
			return 0, 0, 0, false
		}
	}
	return Offset(v), id, kind, true
}
