package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"testing"
)

func TestSeeds(t *testing.T) {
	log := goldenLog()
	if got := IdentitySeed(log); got != 0xd9c908eb {
		t.Errorf("identity seed %08x, want d9c908eb", got)
	}
	if got := PlacementSeed(log, goldenID); got != 0x569d5dbf {
		t.Errorf("placement seed %08x, want 569d5dbf", got)
	}
}

func TestBatchHeaderGolden(t *testing.T) {
	payload := unhex(t, goldenPayload)
	p, i := goldenBatchFields(payload)
	ps, is := PlacementSeed(goldenLog(), p.ID), IdentitySeed(goldenLog())
	got := bytes.Repeat([]byte{0xee}, BatchHeaderBytes+1)
	crc := PutBatchHeader(got, &p, &i, ps, is)
	want := unhex(t, goldenBatch)
	if !bytes.Equal(got[:BatchHeaderBytes], want) || got[BatchHeaderBytes] != 0xee {
		t.Fatalf("encoded\n%x, want\n%x", got, want)
	}
	p2, i2, crc2, ok := ReadBatchHeader(want, ps, is)
	if !ok || p2 != p || i2 != i || crc2 != crc || crc != 0xe1273350 {
		t.Fatalf("decoded %+v %+v %08x %v, encoded with crc %08x", p2, i2, crc2, ok, crc)
	}
	if i.End() != 1005 {
		t.Fatalf("end %d, want 1005", i.End())
	}
}

func randomBatch(r *splitMix) (p Placement, i Identity) {
	i = Identity{
		PayloadBytes: uint32(r.span() % (PayloadBytesMax + 1)), Kind: KindRecords + uint8(r.below(2)),
		Records: max(1, uint32(r.span())), Base: Offset(r.span() >> 1), Epoch: Epoch(r.span()),
		Nonce: r.next(), AppendTime: Time(r.next()), MaxTime: Time(r.next()),
		ProducerID: int64(r.next()), ProducerEpoch: int16(r.next()), Sequence: int32(r.next()),
		PayloadCRC: uint32(r.next()),
	}
	i.Base = min(i.Base, math.MaxInt64-Offset(i.Records))
	p = Placement{ID: ID(r.next()), Commit: max(1, r.span()), Chain: uint32(r.next())}
	p.Frontier = min(Offset(r.span()>>1), i.Base)
	return p, i
}

func TestBatchHeaderRoundTrip(t *testing.T) {
	r := splitMix(1)
	buf := make([]byte, BatchHeaderBytes)
	for n := range 20_000 {
		p, i := randomBatch(&r)
		ps, is := uint32(r.next()), uint32(r.next())
		crc := PutBatchHeader(buf, &p, &i, ps, is)
		p2, i2, crc2, ok := ReadBatchHeader(buf, ps, is)
		if !ok || p2 != p || i2 != i || crc2 != crc {
			t.Fatalf("%d: %+v %+v became %+v %+v, ok %v", n, p, i, p2, i2, ok)
		}
		if _, _, _, ok := ReadBatchHeader(buf, ps^1<<r.below(32), is); ok {
			t.Fatalf("%d: verified under another placement seed", n)
		}
		if _, _, _, ok := ReadBatchHeader(buf, ps, is^1<<r.below(32)); ok {
			t.Fatalf("%d: verified under another identity seed", n)
		}
	}
}

// Every single-bit flip of header or payload is seen.
func TestBatchEveryFlip(t *testing.T) {
	batch := append(unhex(t, goldenBatch), unhex(t, goldenPayload)...)
	ps, is := PlacementSeed(goldenLog(), goldenID), IdentitySeed(goldenLog())
	good := func() bool {
		_, i, _, ok := ReadBatchHeader(batch, ps, is)
		return ok && int(i.PayloadBytes) == len(batch)-BatchHeaderBytes &&
			i.PayloadCRC == PayloadCRC(batch[BatchHeaderBytes:])
	}
	if !good() {
		t.Fatal("the batch does not verify as it is")
	}
	for bit := range 8 * len(batch) {
		batch[bit/8] ^= 1 << (bit % 8)
		if good() {
			t.Errorf("flip of bit %d of byte %d goes unseen", bit%8, bit/8)
		}
		batch[bit/8] ^= 1 << (bit % 8)
	}
	for n := range BatchHeaderBytes {
		if _, _, _, ok := ReadBatchHeader(batch[:n], ps, is); ok {
			t.Errorf("%d bytes verify", n)
		}
	}
}

// A header of one batch behind the placement of another does not verify, though each part does.
func TestBatchHeaderMixed(t *testing.T) {
	payload := unhex(t, goldenPayload)
	p, i := goldenBatchFields(payload)
	ps, is := PlacementSeed(goldenLog(), p.ID), IdentitySeed(goldenLog())
	a, b := make([]byte, BatchHeaderBytes), make([]byte, BatchHeaderBytes)
	PutBatchHeader(a, &p, &i, ps, is)
	i.Nonce++
	PutBatchHeader(b, &p, &i, ps, is)
	copy(a[PlacementBytes:], b[PlacementBytes:])
	if _, _, _, ok := ReadBatchHeader(a, ps, is); ok {
		t.Fatal("placement and identity of two batches verify together")
	}
}

// Fields out of bounds are refused although every checksum is right.
func TestBatchHeaderBounds(t *testing.T) {
	cases := []struct {
		name string
		edit func(p *Placement, i *Identity)
		ok   bool
	}{
		{"as it is", func(*Placement, *Identity) {}, true},
		{"payload at the limit", func(_ *Placement, i *Identity) { i.PayloadBytes = 1 << 30 }, true},
		{"payload above the limit", func(_ *Placement, i *Identity) { i.PayloadBytes = 1<<30 + 1 }, false},
		{"kind 0", func(_ *Placement, i *Identity) { i.Kind = 0 }, false},
		{"kind 2", func(_ *Placement, i *Identity) { i.Kind = KindKafka }, true},
		{"kind 3", func(_ *Placement, i *Identity) { i.Kind = 3 }, false},
		{"no records", func(_ *Placement, i *Identity) { i.Records = 0 }, false},
		{"negative base", func(p *Placement, i *Identity) { i.Base, p.Frontier = -1, -1 }, false},
		{"last base", func(_ *Placement, i *Identity) { i.Base = math.MaxInt64 - 5 }, true},
		{"end overflows", func(_ *Placement, i *Identity) { i.Base = math.MaxInt64 - 4 }, false},
		{"commit 0", func(p *Placement, _ *Identity) { p.Commit = 0 }, false},
		{"frontier at base", func(p *Placement, _ *Identity) { p.Frontier = 1000 }, true},
		{"frontier above base", func(p *Placement, _ *Identity) { p.Frontier = 1001 }, false},
		{"negative frontier", func(p *Placement, _ *Identity) { p.Frontier = -1 }, false},
	}
	buf := make([]byte, BatchHeaderBytes)
	for _, c := range cases {
		p, i := goldenBatchFields(nil)
		c.edit(&p, &i)
		PutBatchHeader(buf, &p, &i, 1, 2)
		if _, _, _, ok := ReadBatchHeader(buf, 1, 2); ok != c.ok {
			t.Errorf("%s: ok %v, want %v", c.name, ok, c.ok)
		}
	}
	for _, at := range []int{PlacementBytes + 5, PlacementBytes + 64, PlacementBytes + 67} {
		p, i := goldenBatchFields(nil)
		PutBatchHeader(buf, &p, &i, 1, 2)
		buf[at] = 1
		resealBatch(buf, 1, 2)
		if _, _, _, ok := ReadBatchHeader(buf, 1, 2); ok {
			t.Errorf("reserved byte %d may be 1", at)
		}
	}
	p, i := goldenBatchFields(nil)
	PutBatchHeader(buf, &p, &i, 1, 2)
	buf[3] = 'C'
	resealBatch(buf, 1, 2)
	if _, _, _, ok := ReadBatchHeader(buf, 1, 2); ok {
		t.Error("any magic will do")
	}
}

// resealBatch makes all checksums of a header right again.
func resealBatch(b []byte, ps, is uint32) {
	le := binary.LittleEndian
	le.PutUint32(b[108:], crc32.Update(is, castagnoli, b[40:108]))
	copy(b[32:36], b[108:112])
	le.PutUint32(b[36:], crc32.Update(ps, castagnoli, b[:36]))
}

func TestBatchHeaderAllocations(t *testing.T) {
	p, i := goldenBatchFields(nil)
	buf := make([]byte, BatchHeaderBytes)
	n := testing.AllocsPerRun(100, func() {
		ps, is := PlacementSeed(goldenLog(), p.ID), IdentitySeed(goldenLog())
		PutBatchHeader(buf, &p, &i, ps, is)
		if _, _, _, ok := ReadBatchHeader(buf, ps, is); !ok {
			panic("does not verify")
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkPutBatchHeader(b *testing.B) {
	p, i := goldenBatchFields(nil)
	buf := make([]byte, BatchHeaderBytes)
	b.ReportAllocs()
	for b.Loop() {
		p.Chain = PutBatchHeader(buf, &p, &i, 1, 2)
		p.Commit++
	}
}

func BenchmarkReadBatchHeader(b *testing.B) {
	p, i := goldenBatchFields(nil)
	buf := make([]byte, BatchHeaderBytes)
	PutBatchHeader(buf, &p, &i, 1, 2)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, ok := ReadBatchHeader(buf, 1, 2); !ok {
			b.Fatal("does not verify")
		}
	}
}

func BenchmarkPayloadCRC(b *testing.B) {
	for _, n := range []int{128, 1024, 65536} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			buf := make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				PayloadCRC(buf)
			}
		})
	}
}
