package segment

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

func TestHeaderGolden(t *testing.T) {
	h := goldenHeaderFields()
	sector := bytes.Repeat([]byte{0xee}, 513)
	crc := PutHeader(sector, &h)
	want := append(unhex(t, goldenHeader), make([]byte, 512-HeaderBytes)...)
	if !bytes.Equal(sector[:512], want) || sector[512] != 0xee {
		t.Fatalf("encoded\n%x, want\n%x", sector, want)
	}
	h2, crc2, v, version := ReadHeader(unhex(t, goldenHeader))
	if v != HeaderGood || h2 != h || crc2 != crc || crc != 0xb47051c3 || version != FormatVersion {
		t.Fatalf("decoded %+v, crc %08x, verdict %d, version %d", h2, crc2, v, version)
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	r := splitMix(2)
	buf := make([]byte, SectorBytesMax)
	for n := range 5_000 {
		h := Header{
			Kind: Created + Kind(r.below(2)), Sync: SyncMode(r.below(3)), SectorBytes: 512 << r.below(4),
			ID: ID(r.next()), Epoch: Epoch(r.span()), Base: Offset(r.span() >> 2),
			Created: Time(r.next()), Nonce: r.next(),
		}
		binary.LittleEndian.PutUint64(h.LogID[r.below(8):], r.next())
		if h.Kind == Replacement {
			h.End = h.Base + 1 + Offset(r.span()>>2)
		}
		crc := PutHeader(buf, &h)
		h2, crc2, v, _ := ReadHeader(buf)
		if v != HeaderGood || h2 != h || crc2 != crc {
			t.Fatalf("%d: %+v became %+v, verdict %d", n, h, h2, v)
		}
	}
}

func TestHeaderEveryFlip(t *testing.T) {
	b := unhex(t, goldenHeader)
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if _, _, v, _ := ReadHeader(b); v != HeaderDamaged {
			t.Errorf("flip of bit %d of byte %d: verdict %d", bit%8, bit/8, v)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range len(b) {
		if _, _, v, _ := ReadHeader(b[:n]); v != HeaderDamaged {
			t.Errorf("%d bytes: verdict %d", n, v)
		}
	}
	if _, _, v, _ := ReadHeader(make([]byte, 512)); v != HeaderDamaged {
		t.Errorf("zeros: verdict %d", v)
	}
}

// Edits under a checksum that is right again: bounds, reserved bytes, versions.
func TestHeaderBounds(t *testing.T) {
	le := binary.LittleEndian
	cases := []struct {
		name string
		edit func(b []byte)
		want HeaderVerdict
	}{
		{"as it is", func([]byte) {}, HeaderGood},
		{"version 0", func(b []byte) { b[8] = 0 }, HeaderDamaged},
		{"version 2", func(b []byte) { b[8] = 2 }, HeaderNewer},
		{"version 256 and a kind of its own", func(b []byte) { b[8], b[9], b[10] = 0, 1, 9 }, HeaderNewer},
		{"kind 0", func(b []byte) { b[10] = 0 }, HeaderDamaged},
		{"kind 3", func(b []byte) { b[10] = 3 }, HeaderDamaged},
		{"ack policy 3", func(b []byte) { b[11] = 3 }, HeaderDamaged},
		{"sector 0", func(b []byte) { le.PutUint32(b[12:], 0) }, HeaderDamaged},
		{"sector 256", func(b []byte) { le.PutUint32(b[12:], 256) }, HeaderDamaged},
		{"sector 768", func(b []byte) { le.PutUint32(b[12:], 768) }, HeaderDamaged},
		{"sector 4096", func(b []byte) { le.PutUint32(b[12:], 4096) }, HeaderGood},
		{"sector 8192", func(b []byte) { le.PutUint32(b[12:], 8192) }, HeaderDamaged},
		{"reserved 44", func(b []byte) { b[44] = 1 }, HeaderDamaged},
		{"reserved 80", func(b []byte) { b[80] = 1 }, HeaderDamaged},
		{"reserved 123", func(b []byte) { b[123] = 1 }, HeaderDamaged},
		{"negative base", func(b []byte) { b[55] = 0x80 }, HeaderDamaged},
		{"created with an end", func(b []byte) { le.PutUint64(b[56:], 2000) }, HeaderDamaged},
		{"replacement without an end", func(b []byte) { b[10] = 2 }, HeaderDamaged},
		{"empty replacement", func(b []byte) { b[10] = 2; le.PutUint64(b[56:], 1000) }, HeaderDamaged},
		{"replacement", func(b []byte) { b[10] = 2; le.PutUint64(b[56:], 1001) }, HeaderGood},
	}
	for _, c := range cases {
		b := unhex(t, goldenHeader)
		c.edit(b)
		le.PutUint32(b[124:], crc32.Checksum(b[:124], castagnoli))
		if _, _, v, version := ReadHeader(b); v != c.want || version != le.Uint16(b[8:]) {
			t.Errorf("%s: verdict %d, version %d, want verdict %d", c.name, v, version, c.want)
		}
	}
}

func BenchmarkReadHeader(b *testing.B) {
	src := unhex(b, goldenHeader)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, v, _ := ReadHeader(src); v != HeaderGood {
			b.Fatal(v)
		}
	}
}
