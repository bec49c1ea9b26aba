package segment

import (
	"math"
	"strings"
	"testing"
)

func TestNameGolden(t *testing.T) {
	for _, c := range []struct {
		base Offset
		id   ID
		want string
	}{
		{0, 0, "00000000000000000000-0000000000000000.seg"},
		{1000, goldenID, "00000000000000001000-0000000300000007.seg"},
		{math.MaxInt64, math.MaxUint64, "09223372036854775807-ffffffffffffffff.seg"},
	} {
		if got := Name(c.base, c.id); got != c.want {
			t.Errorf("Name(%d, %d) = %s, want %s", c.base, c.id, got, c.want)
		}
		if base, id, kind, ok := ParseName(c.want); base != c.base || id != c.id || kind != NameSegment || !ok {
			t.Errorf("ParseName(%s) = %d %d %d %v", c.want, base, id, kind, ok)
		}
		index := string(AppendIndexName([]byte("x/"), c.base, c.id))
		if index != "x/"+strings.TrimSuffix(c.want, ".seg")+".idx" {
			t.Errorf("index name %s", index)
		}
		if base, id, kind, ok := ParseName(index[2:]); base != c.base || id != c.id || kind != NameIndex || !ok {
			t.Errorf("ParseName(%s) = %d %d %d %v", index[2:], base, id, kind, ok)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	for _, name := range []string{
		"", "+7.seg", "99.log", "super.0", "lock", ".seg",
		"00000000000000001000-0000000300000007",
		"00000000000000001000-0000000300000007.seg.tmp",
		"00000000000000001000-0000000300000007.SEG",
		"00000000000000001000-0000000300000007.log",
		"00000000000000001000_0000000300000007.seg",
		"00000000000000001000-000000030000000A.seg",
		"00000000000000001000-000000030000000g.seg",
		"0000000000000000100x-0000000300000007.seg",
		"+0000000000000001000-0000000300000007.seg",
		"-0000000000000001000-0000000300000007.seg",
		" 0000000000000001000-0000000300000007.seg",
		"0000000000000001000-0000000300000007.seg",
		"000000000000000001000-000000300000007.seg",
		"09223372036854775808-0000000300000007.seg",
		"18446744073709551615-0000000300000007.seg",
		"99999999999999999999-0000000300000007.seg",
	} {
		if base, id, kind, ok := ParseName(name); ok || base != 0 || id != 0 || kind != 0 {
			t.Errorf("ParseName(%q) = %d %d %d %v", name, base, id, kind, ok)
		}
	}
}

// Whatever parses is what AppendName makes, and what AppendName makes parses.
func TestNameRoundTrip(t *testing.T) {
	r := splitMix(3)
	var buf []byte
	for range 20_000 {
		base, id := Offset(r.span()>>1), ID(r.span())
		buf = AppendName(buf[:0], base, id)
		if b, i, _, ok := ParseName(string(buf)); b != base || i != id || !ok {
			t.Fatalf("%s: %d %d %v", buf, b, i, ok)
		}
		buf[r.below(len(buf))] = "0123456789abcdefABCDEF-.segidx/ "[r.below(32)]
		if b, i, kind, ok := ParseName(string(buf)); ok {
			want := Name(b, i)
			if kind == NameIndex {
				want = string(AppendIndexName(nil, b, i))
			}
			if want != string(buf) {
				t.Fatalf("%s parses as %s", buf, want)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { buf = AppendName(buf[:0], 7, 8) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
