package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"reflect"
	"strings"
	"testing"
)

func TestSuperGolden(t *testing.T) {
	s := goldenSuperFields()
	got, err := AppendSuper([]byte("before"), &s)
	want := append([]byte("before"), unhex(t, goldenSuper)...)
	want = append(want, make([]byte, 6+SuperBytesMin-len(want))...)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("encoded %d bytes, %v:\n%x, want\n%x", len(got), err, got[:180], want[:180])
	}
	for _, src := range [][]byte{want[6:], unhex(t, goldenSuper)} { // with padding and without
		var s2 Superblock
		if err := ReadSuper(src, &s2); err != nil || !reflect.DeepEqual(s, s2) {
			t.Fatalf("decoded %+v, %v", s2, err)
		}
	}
}

func TestSuperRoundTrip(t *testing.T) {
	r := splitMix(4)
	var buf []byte
	var s2 Superblock
	for n := range 3_000 {
		s := Superblock{
			Sequence: r.span(), Epoch: Epoch(r.span()), Nonce: r.next(), Sync: SyncMode(r.below(3)),
			SectorBytes: 512 << r.below(4), Clean: r.below(2) == 0, Complete: r.below(2) == 0,
			Start: Offset(r.span() >> 1), HotStart: Offset(r.span() >> 1), Frontier: Offset(r.span() >> 1),
			Committed: Offset(r.span() >> 1), CommittedEpoch: Epoch(r.span()),
			ManifestSequence: r.span(), Created: Time(r.next()),
		}
		binary.LittleEndian.PutUint64(s.LogID[r.below(8):], r.next())
		e := Lineage{}
		for range r.below(4) * r.below(4) * r.below(100) {
			e = Lineage{Epoch: e.Epoch + 1 + Epoch(r.below(9)), First: e.First + Offset(r.below(100))}
			s.Lineage = append(s.Lineage, e)
		}
		var err error
		if buf, err = AppendSuper(buf[:0], &s); err != nil {
			t.Fatal(err)
		}
		if want := (132 + 12*len(s.Lineage) + 4095) / 4096 * 4096; len(buf) != want {
			t.Fatalf("%d: %d bytes, want %d", n, len(buf), want)
		}
		if err := ReadSuper(buf, &s2); err != nil {
			t.Fatal(err)
		}
		lineage := s2.Lineage
		if s2.Lineage = nil; s.Lineage != nil {
			s2.Lineage = lineage
		}
		if !reflect.DeepEqual(s, s2) || len(lineage) != len(s.Lineage) {
			t.Fatalf("%d: %+v became %+v", n, s, s2)
		}
		s2.Lineage = lineage
	}
}

// Every single-bit flip of the used bytes is an error, and changes nothing in the target; every
// flip of the padding is harmless.
func TestSuperEveryFlip(t *testing.T) {
	s := goldenSuperFields()
	b, err := AppendSuper(nil, &s)
	if err != nil {
		t.Fatal(err)
	}
	used := len(goldenSuper) / 2
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		s2 := Superblock{Sequence: 7}
		err := ReadSuper(b, &s2)
		var damage *SuperError
		switch {
		case bit/8 >= used:
			if err != nil || !reflect.DeepEqual(s, s2) {
				t.Errorf("flip of padding byte %d: %v", bit/8, err)
			}
		case !errors.As(err, &damage) || !reflect.DeepEqual(s2, Superblock{Sequence: 7}):
			t.Errorf("flip of bit %d of byte %d: %v, %+v", bit%8, bit/8, err, s2)
		case damage.Expected == "" || damage.Found == "":
			t.Errorf("flip of byte %d: %v", bit/8, err)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
}

func TestSuperRefuses(t *testing.T) {
	le := binary.LittleEndian
	long := make([]byte, SuperBytesMax+SuperBytesMin)
	copy(long, unhex(t, goldenSuper))
	le.PutUint32(long[12:], uint32(len(long)))
	cases := []struct {
		name string
		src  []byte
		edit func(b []byte)
		pos  int64
		text string
	}{
		{"empty", []byte{}, nil, 0, "empty file"},
		{"zeros", make([]byte, 4096), nil, 0, "zeros"},
		{"short", make([]byte, 131), nil, 0, "shorter"},
		{"cut", unhex(t, goldenSuper)[:155], nil, 12, "shorter"},
		{"beyond the limit", long, nil, 12, "1 MiB"},
		{"length 131", nil, func(b []byte) { le.PutUint32(b[12:], 131) }, 12, "132"},
		{"version 0", nil, func(b []byte) { b[8] = 0 }, 8, "version"},
		{"ack policy 3", nil, func(b []byte) { b[10] = 3 }, 10, "found 3"},
		{"flag 4", nil, func(b []byte) { b[11] = 4 }, 11, "found 4"},
		{"negative start", nil, func(b []byte) { b[63] = 0x80 }, 56, "0 or more"},
		{"negative hot start", nil, func(b []byte) { b[71] = 0x80 }, 64, "0 or more"},
		{"negative frontier", nil, func(b []byte) { b[79] = 0x80 }, 72, "0 or more"},
		{"negative committed", nil, func(b []byte) { b[87] = 0x80 }, 80, "0 or more"},
		{"sector 511", nil, func(b []byte) { le.PutUint32(b[104:], 511) }, 104, "found 511"},
		{"one entry", nil, func(b []byte) { b[108] = 1 }, 108, "found 1"},
		{"three entries", nil, func(b []byte) { b[108] = 3 }, 108, "found 3"},
		{"2^32-1 entries", nil, func(b []byte) { le.PutUint32(b[108:], 1<<32-1) }, 108, "4294967295"},
		{"length off", nil, func(b []byte) { b[12]-- }, 108, "155"},
		{"reserved", nil, func(b []byte) { b[127] = 1 }, 127, "zero"},
		{"lineage epoch repeats", nil, func(b []byte) { b[140] = 1 }, 140, "above 1"},
		{"lineage offset falls", nil, func(b []byte) { b[132] = 0xe9; b[133] = 3 }, 144, "1001"},
		{"lineage offset negative", nil, func(b []byte) { b[139] = 0x80 }, 132, "0 or more"},
	}
	for _, c := range cases {
		b := c.src
		if c.edit != nil {
			b = unhex(t, goldenSuper)
			c.edit(b)
			if end := int(le.Uint32(b[12:])) - 4; end >= 128 {
				le.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
			}
		}
		s := Superblock{Sequence: 7}
		err := ReadSuper(b, &s)
		var damage *SuperError
		if !errors.As(err, &damage) || damage.Pos != c.pos || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want position %d and %q", c.name, err, c.pos, c.text)
		}
		if errors.Is(err, ErrSuperNewer) || s.Sequence != 7 || s.Lineage != nil {
			t.Errorf("%s: %v, left %+v", c.name, err, s)
		}
	}
}

func TestSuperNewer(t *testing.T) {
	b := unhex(t, goldenSuper)
	b[8], b[11], b[120] = 2, 0xff, 0xff // what a newer version means by these is not ours to judge
	binary.LittleEndian.PutUint32(b[152:], crc32.Checksum(b[:152], castagnoli))
	err := ReadSuper(b, new(Superblock))
	if !errors.Is(err, ErrSuperNewer) || !strings.Contains(err.Error(), "version 2") {
		t.Fatalf("%v", err)
	}
	b[20] ^= 1
	if err := ReadSuper(b, new(Superblock)); err == nil || errors.Is(err, ErrSuperNewer) {
		t.Fatalf("damaged, and still taken for newer: %v", err)
	}
}

func TestSuperLimit(t *testing.T) {
	s := goldenSuperFields()
	s.Lineage = nil
	for i := range superLineageMax {
		s.Lineage = append(s.Lineage, Lineage{Epoch: Epoch(i + 1), First: Offset(i)})
	}
	b, err := AppendSuper(nil, &s)
	if err != nil || len(b) != SuperBytesMax {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var s2 Superblock
	if err := ReadSuper(b, &s2); err != nil || !reflect.DeepEqual(s, s2) {
		t.Fatalf("longest lineage: %v", err)
	}
	s.Lineage = append(s.Lineage, Lineage{Epoch: EpochMax, First: 1 << 40})
	if b, err := AppendSuper(nil, &s); err == nil || len(b) != 0 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
}

// Good slots and the slots that a torn save leaves cost no allocation.
func TestSuperAllocations(t *testing.T) {
	s := goldenSuperFields()
	buf, _ := AppendSuper(nil, &s)
	torn := bytes.Clone(buf)
	clear(torn[140:])
	var s2 Superblock
	zeros := make([]byte, SuperBytesMin)
	_ = ReadSuper(buf, &s2)
	n := testing.AllocsPerRun(100, func() {
		buf, _ = AppendSuper(buf[:0], &s)
		if ReadSuper(buf, &s2) != nil || ReadSuper(torn, &s2) == nil || ReadSuper(zeros, &s2) == nil ||
			ReadSuper(nil, &s2) == nil {
			panic("wrong verdict")
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkSuper(b *testing.B) {
	s := goldenSuperFields()
	var buf []byte
	var s2 Superblock
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = AppendSuper(buf[:0], &s)
		if err := ReadSuper(buf, &s2); err != nil {
			b.Fatal(err)
		}
	}
}
