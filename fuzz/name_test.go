package fuzz

import (
	"testing"

	"varve/core/segment"
)

// FuzzName: a name is accepted only if it is the one name of what it says, and every base offset and
// id has one.
func FuzzName(f *testing.F) {
	f.Add("00000000000000000040-0000000300000002.seg", int64(40), uint64(0x0000000300000002))
	f.Add("09223372036854775807-ffffffffffffffff.idx", int64(1<<63-1), uint64(1<<64-1))
	f.Add("09223372036854775808-ffffffffffffffff.seg", int64(0), uint64(0))
	f.Add("18446744073709551616-0000000000000000.seg", int64(0), uint64(1))
	f.Add("00000000000000000000-000000000000000A.seg", int64(7), uint64(1)<<63)
	f.Add("+0000000000000000001-0000000000000001.seg", int64(-1), uint64(3))
	f.Add("super.0", int64(0), uint64(0))
	eachForeign(f, func(b []byte) { f.Add(string(b), int64(0), uint64(0)) })
	f.Fuzz(func(t *testing.T, name string, base int64, id uint64) {
		if b, i, kind, ok := segment.ParseName(name); ok {
			if again := nameOf(t, kind, b, i); again != name {
				t.Fatalf("%q is read as %q", name, again)
			}
			if b < 0 {
				t.Fatalf("%q: base offset %d", name, b)
			}
		}
		for _, kind := range []segment.NameKind{segment.NameSegment, segment.NameIndex} {
			made := nameOf(t, kind, base, segment.ID(id))
			b, i, k, ok := segment.ParseName(made)
			if ok != (base >= 0) || ok && (b != base || i != segment.ID(id) || k != kind) {
				t.Fatalf("%d %x made %q, which is read as %d %x, %v", base, id, made, b, i, ok)
			}
		}
	})
}

func nameOf(t *testing.T, kind segment.NameKind, base segment.Offset, id segment.ID) string {
	switch kind {
	case segment.NameSegment:
		return string(segment.AppendName(nil, base, id))
	case segment.NameIndex:
		return string(segment.AppendIndexName(nil, base, id))
	}
	t.Fatalf("a name of kind %d", kind)
	return ""
}
