package fuzz

import (
	"bytes"
	"hash/crc32"
	"testing"

	"varve/core/segment"
)

// FuzzHeader: a segment header that decodes is the one encoding of what it decodes to.
func FuzzHeader(f *testing.F) {
	for _, m := range segments() {
		f.Add(m.data[:segment.HeaderBytes])
	}
	reserved := bytes.Clone(segments()[0].data[:segment.HeaderBytes])
	reserved[90] = 1
	f.Add(reserved)
	eachForeign(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		headerIdentity(t, b)
		if len(b) >= segment.HeaderBytes {
			b = bytes.Clone(b[:segment.HeaderBytes])
			headerIdentity(t, resealHeader(b))
			clear(b[80:124])
			clear(b[44:48])
			headerIdentity(t, resealHeader(b))
		}
	})
}

func resealHeader(b []byte) []byte {
	copy(b, "VARVESEG")
	le.PutUint32(b[124:], crc32.Checksum(b[:124], castagnoli))
	return b
}

func headerIdentity(t *testing.T, b []byte) {
	h, crc, verdict, version := segment.ReadHeader(b)
	switch verdict {
	case segment.HeaderDamaged:
		return
	case segment.HeaderNewer:
		if version <= segment.FormatVersion {
			t.Fatalf("version %d is called newer", version)
		}
		return
	}
	again := make([]byte, segment.SectorBytesMax)
	if crc2 := segment.PutHeader(again, &h); crc2 != crc || !bytes.Equal(again[:segment.HeaderBytes], b[:segment.HeaderBytes]) {
		t.Fatalf("%x\ndecodes to %+v and encodes to\n%x", b[:segment.HeaderBytes], h, again[:segment.HeaderBytes])
	}
}

// counted counts what is read of a file.
type counted struct {
	memory
	read int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.memory.ReadAt(p, off)
	c.read += int64(n)
	return n, err
}

// FuzzScanHostile: whatever a file holds, batches with right checksums and absurd claims among it, a
// scan neither reads nor allocates more than a small multiple of its bytes, and what it reports lies
// in the file, in order.
func FuzzScanHostile(f *testing.F) {
	for _, m := range segments() {
		f.Add(m.data, []byte{})
	}
	f.Add(segments()[0].data, []byte{1, 0, 2, 8, 0, 1, 1, 0, 4, 255, 255, 0, 2})
	f.Add(make([]byte, 4096), []byte{1, 0, 0, 4, 10, 0, 3, 0, 2, 0, 5, 0, 82, 0, 0, 0, 0, 0, 0, 0}) // offsets twice
	eachForeign(f, func(b []byte) { f.Add(b, b) })
	f.Fuzz(func(t *testing.T, data, claims []byte) {
		if len(data) > 1<<18 {
			return
		}
		hostileScan(t, data)
		hostileScan(t, claim(bytes.Clone(data), &bites{claims}))
	})
}

// claim makes a file out of any bytes whose header verifies, with headers of batches at sectors that
// verify, too, whatever they claim.
func claim(b []byte, s *bites) []byte {
	if len(b) < 512 {
		return b
	}
	h := createdHeader()
	chain := segment.PutHeader(b, &h)
	base, commit := h.Base, uint64(1)
	for s.more() {
		at := int64(s.uint16()) % int64(len(b)/512) * 512
		if at == 0 || at+segment.BatchHeaderBytes > int64(len(b)) {
			continue
		}
		flags := s.byte()
		i := segment.Identity{Kind: segment.KindRecords, Records: 1 + uint32(s.byte()), Base: base, Epoch: h.Epoch, ProducerID: -1}
		i.PayloadBytes = uint32(s.uint16())
		if flags&1 != 0 {
			i.PayloadBytes <<= 14
		}
		if flags&2 != 0 {
			i.Base = segment.Offset(s.uint64() >> 1)
		}
		if flags&4 != 0 {
			i.Epoch = uint32(s.byte())
		}
		if flags&8 != 0 {
			i.ProducerID = int64(s.byte())
		}
		p := segment.Placement{ID: h.ID, Commit: commit, Chain: chain, Frontier: min(i.Base, base)}
		if flags&16 != 0 {
			p.Chain++
		}
		if flags&32 != 0 {
			p.Frontier, commit = i.Base, commit+uint64(s.byte())
		}
		if n := int64(i.PayloadBytes); flags&64 == 0 && at+segment.BatchHeaderBytes+n <= int64(len(b)) {
			i.PayloadCRC = segment.PayloadCRC(b[at+segment.BatchHeaderBytes:][:n])
		}
		if i.Base < 0 || i.Base > 1<<62 {
			continue
		}
		chain = segment.PutBatchHeader(b[at:], &p, &i, segment.PlacementSeed(logID, h.ID), segment.IdentitySeed(logID))
		base = i.End()
	}
	return b
}

func hostileScan(t *testing.T, data []byte) {
	src := &counted{memory: data}
	m := segmentMaker{h: createdHeader()}
	file := m.file(data)
	file.Source = src
	for _, whole := range []bool{false, true} {
		var info segment.FileInfo
		var err error
		src.read = 0
		if n := allocated(func() {
			src.read = 0
			var s segment.Scanner
			info = segment.FileInfo{}
			err = s.Scan(&file, whole, &info)
		}); n > slack+8*uint64(len(data)) {
			t.Fatalf("%d bytes allocated to scan %d", n, len(data))
		}
		if err != nil {
			t.Fatalf("no read failed, and yet: %v", err)
		}
		if src.read > 16<<10+8*int64(len(data)) {
			t.Fatalf("%d bytes read of %d", src.read, len(data))
		}
		checkInfo(t, &info, int64(len(data)))
	}
}

// checkInfo wants findings that could be of a file of this size.
func checkInfo(t *testing.T, info *segment.FileInfo, size int64) {
	pos, end := int64(0), segment.Offset(-1)
	for i := range info.Runs {
		r := &info.Runs[i]
		if r.Pos < pos || r.EndPos-r.Pos < segment.BatchHeaderBytes || r.EndPos > size || r.First < end || r.End <= r.First || r.Batches < 1 {
			t.Fatalf("run %d of %+v", i, info.Runs)
		}
		if (r.Break != segment.BreakNone || i < len(info.Runs)-1) && (r.BreakPos < r.EndPos || r.BreakPos > size+segment.SectorBytesMax) {
			t.Fatalf("a break at %d behind a run that ends at %d, in %d bytes", r.BreakPos, r.EndPos, size)
		}
		pos, end = r.EndPos, r.End
	}
	if info.Sealed && (info.Footer.DataEnd > size || info.Footer.End <= info.Footer.Base) {
		t.Fatalf("footer %+v in %d bytes", info.Footer, size)
	}
	if info.Bytes != size {
		t.Fatalf("%d bytes, said to be %d", size, info.Bytes)
	}
}

// FuzzScanSalvage: a file that was written in order and then damaged anyhow yields a subset of what
// was written, in order, byte for byte, and all that lies before the first damage.
func FuzzScanSalvage(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{9, 10, 0, 1, 7, 200, 2, 3, 130, 90, 1, 7, 7, 7}, []byte{0, 255, 40, 7})
	f.Add(bytes.Repeat([]byte{70, 100, 1, 6, 33, 9, 0, 2}, 20), []byte{1, 0, 100, 0, 60, 2, 0, 200})
	f.Add(bytes.Repeat([]byte{199, 100, 4, 6}, 30), []byte{3, 0, 10, 0, 90, 0, 30, 4, 9, 9})
	eachForeign(f, func(b []byte) { f.Add(b, []byte{0, 1, 2, 3}); f.Add(b, b) })
	f.Fuzz(func(t *testing.T, script, damage []byte) {
		m := write(&bites{script})
		data := bytes.Clone(m.data)
		data, first := spoil(data, &bites{damage})
		salvage(t, m, data, first)
	})
}

// write makes a segment file as a script says: batches of any bytes, commits with and without a sync,
// a footer.
func write(s *bites) *segmentMaker {
	h := createdHeader()
	h.SectorBytes = 512 << (s.byte() % 3)
	m := newSegment(h, int64(1+s.uint16()%2000))
	for s.more() && len(m.written) < 64 && len(m.data) < 48<<10 {
		what := s.byte()
		n := int(what & 63)
		if what&64 != 0 {
			n *= 40
		}
		payload := append(s.take(n/2), make([]byte, n-n/2)...)
		for i := n / 2; i < len(payload) && what&128 != 0; i++ {
			payload[i] = byte(i) | 1
		}
		m.batch(1+uint32(s.byte()%5), payload, int64(s.byte()%4)-1)
		switch s.byte() % 4 {
		case 0:
			m.sync()
		case 1:
			m.commit++
		}
	}
	if s.byte()%2 == 1 && len(m.written) > 0 {
		m.seal()
	}
	return m
}

// spoil damages a file and returns the first byte that may have changed.
func spoil(b []byte, s *bites) (out []byte, first int) {
	first = len(b)
	place := func() int { return s.uint16() * len(b) >> 16 }
	for s.more() && len(b) > 0 {
		switch what := s.byte(); what % 6 {
		case 0:
			at := place()
			b[at] ^= s.byte()
			first = min(first, at)
		case 1:
			from, to := place(), place()
			clear(b[min(from, to):max(from, to)])
			first = min(first, from, to)
		case 2:
			b = b[:place()]
			first = min(first, len(b))
		case 3: // a sector written to the wrong place
			from, to := place()&^511, place()&^511
			n := copy(b[to:], bytes.Clone(b[from:min(len(b), from+512*(1+int(what)/6))]))
			if n > 0 {
				first = min(first, to)
			}
		case 4:
			b = append(b, s.take(40)...)
		case 5:
			at := place()
			first = min(first, at)
			copy(b[at:], s.take(1+int(what)/6))
		}
	}
	return b, first
}

func salvage(t *testing.T, m *segmentMaker, data []byte, first int) {
	var s segment.Scanner
	file := m.file(data)
	if err := s.Start(&file); err != nil {
		t.Fatal(err)
	}
	byBase := map[segment.Offset]*written{}
	whole := 0 // batches before the first damage
	for i := range m.written {
		w := &m.written[i]
		byBase[w.identity.Base] = w
		if int(w.pos)+len(w.raw) <= first {
			whole++
		}
	}
	var b segment.Batch
	end, found := m.h.Base, 0
	for {
		more, err := s.Next(&b)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		w := byBase[b.Identity.Base]
		switch {
		case w == nil || !bytes.Equal(w.raw[segment.PlacementBytes:], b.Raw[segment.PlacementBytes:]):
			t.Fatalf("batch [%d, %d) at %d was never written", b.Identity.Base, b.Identity.End(), b.Pos)
		case b.Identity.Base < end:
			t.Fatalf("batch [%d, %d) at %d comes after offset %d", b.Identity.Base, b.Identity.End(), b.Pos, end)
		case found < whole && (b.Pos != m.written[found].pos || b.Identity.Base != m.written[found].identity.Base):
			t.Fatalf("batch %d lies before the damage and is not found", found)
		}
		end = b.Identity.End()
		found++
	}
	if found < whole {
		t.Fatalf("%d batches found, %d lie before the damage at %d", found, whole, first)
	}
	checkInfo(t, s.Info(), int64(len(data)))
	if first == len(m.data) && len(data) == first && found != len(m.written) {
		t.Fatalf("%d of %d batches found in a whole file", found, len(m.written))
	}
	quick(t, m, data)
}

// quick wants a scan that trusts a footer to say the same as the batches that were written.
func quick(t *testing.T, m *segmentMaker, data []byte) {
	var s segment.Scanner
	var info segment.FileInfo
	file := m.file(data)
	if err := s.Scan(&file, false, &info); err != nil {
		t.Fatal(err)
	}
	checkInfo(t, &info, int64(len(data)))
	if (info.Sealed || info.Sidecar) && info.Footer != m.footer.Summary() {
		t.Fatalf("footer %+v, written %+v", info.Footer, m.footer.Summary())
	}
}
