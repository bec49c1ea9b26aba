package fuzz

import (
	"bytes"
	"hash/crc32"
	"reflect"
	"slices"
	"testing"

	"varve/core/segment"
)

// FuzzFooter: a footer says what its batches say, at every offset and every time; damaged, it says
// the same or nothing. Bytes that are no footer, with their checksums put right, are refused or
// answer within bounds, and their trailer is the one encoding of what it decodes to.
func FuzzFooter(f *testing.F) {
	f.Add([]byte{1, 0, 5}, []byte{})
	f.Add(bytes.Repeat([]byte{9, 3, 200}, 300), []byte{0, 200, 7})
	for _, m := range segments() {
		f.Add(m.data, m.footer.AppendIndex(nil))
		many := m.footer.AppendIndex(nil)
		many[bytes.Index(many, []byte("VRVP"))+16+10] = 9 // batches of a producer, of 5
		f.Add(m.data, many)
	}
	eachForeign(f, func(b []byte) { f.Add(b, b) })
	f.Fuzz(func(t *testing.T, script, raw []byte) {
		m := manyBatches(&bites{script})
		foot := m.data[m.footer.Pos():]
		honestFooter(t, m, foot, true)
		honestFooter(t, m, m.footer.AppendIndex(nil), false)
		if s := (bites{raw}); s.more() {
			broken := bytes.Clone(foot)
			for range 4 {
				broken[s.uint16()*len(broken)>>16] ^= s.byte()
			}
			honestFooter(t, m, broken, true)
		}
		hostileFooter(t, raw)
		hostileFooter(t, resealFooter(bytes.Clone(raw)))
	})
}

// manyBatches makes a sealed file of small batches, so that the index takes several blocks.
func manyBatches(s *bites) *segmentMaker {
	m := newSegment(createdHeader(), int64(1+s.uint16()%600))
	for n := 0; n == 0 || s.more() && n < 600; n++ {
		what := s.byte()
		m.batch(1+uint32(what%7), bytes.Repeat([]byte{what}, int(s.byte()%48)), int64(s.byte()%90)-1)
		switch {
		case what < 40:
			m.sync()
		case what < 140:
			m.commit++
		}
	}
	m.seal()
	return m
}

// honestFooter compares a footer, whole or damaged, with the batches that it is of.
func honestFooter(t *testing.T, m *segmentMaker, foot []byte, inside bool) {
	src, at := segment.Source(memory(foot)), int64(0)
	if inside {
		at = m.footer.Pos()
		src = memory(append(bytes.Clone(m.data[:at]), foot...))
	}
	size := at + int64(len(foot))
	sum, layout, ok := segment.ReadTrailer(foot, size, logID, m.h.ID, !inside)
	damaged := inside && !bytes.Equal(foot, m.data[at:])
	if !ok {
		if !damaged {
			t.Fatal("a footer that nobody touched does not verify")
		}
		return
	}
	if sum != m.footer.Summary() {
		t.Fatalf("footer %+v, written %+v", sum, m.footer.Summary())
	}
	buf := make([]byte, segment.IndexBlockBytes)
	for _, w := range []int{0, len(m.written) / 3, len(m.written) - 1} {
		o := m.written[w].identity.Base
		wantPos, wantBase, _ := m.footer.Lookup(o)
		if pos, base, ok := layout.Seek(src, o, buf); ok != true && !damaged || ok && (pos != wantPos || base != wantBase) {
			t.Fatalf("offset %d: %d %d %v, want %d %d", o, pos, base, ok, wantPos, wantBase)
		}
		if wantPos > m.written[w].pos || !slices.ContainsFunc(m.written, func(x written) bool { return x.pos == wantPos }) {
			t.Fatalf("offset %d, whose batch is at %d, is looked for from %d on", o, m.written[w].pos, wantPos)
		}
		at := m.written[w].identity.MaxTime
		wantPos, wantBase, _ = m.footer.LookupTime(at)
		if pos, base, ok := layout.SeekTime(src, at, buf); ok != true && !damaged || ok && (pos != wantPos || base != wantBase) {
			t.Fatalf("time %d: %d %d %v, want %d %d", at, pos, base, ok, wantPos, wantBase)
		}
	}
	if !damaged {
		producersOf(t, m)
	}
}

// producersOf compares the producers of a footer with a plain count.
func producersOf(t *testing.T, m *segmentMaker) {
	want := map[int64][]segment.ProducerBatch{}
	for _, w := range m.written {
		if i := w.identity; i.ProducerID >= 0 {
			b := append(want[i.ProducerID], segment.ProducerBatch{Sequence: i.Sequence, Records: i.Records, Base: i.Base})
			want[i.ProducerID] = b[max(0, len(b)-segment.ProducerBatches):]
		}
	}
	for _, whole := range []bool{false, true} {
		var s segment.Scanner
		var info segment.FileInfo
		file := m.file(m.data)
		if err := s.Scan(&file, whole, &info); err != nil || !info.Sealed || len(info.Producers) != len(want) {
			t.Fatalf("%v, sealed %v, %d producers, want %d", err, info.Sealed, len(info.Producers), len(want))
		}
		for _, p := range info.Producers {
			if got := p.Batches[:p.Count]; !reflect.DeepEqual(got, want[p.ID]) {
				t.Fatalf("producer %d: %v, want %v", p.ID, got, want[p.ID])
			}
		}
	}
}

// hostileFooter takes any bytes for a sidecar index and for the end of a segment file.
func hostileFooter(t *testing.T, b []byte) {
	h := createdHeader()
	f, l, ok := segment.ReadTrailer(b, int64(len(b)), logID, h.ID, true)
	if ok {
		if trailer := trailerOf(&f, &l); !bytes.Equal(trailer, b[len(b)-segment.TrailerBytes:]) {
			t.Fatalf("%x\ndecodes to %+v %+v and encodes to\n%x", b[len(b)-segment.TrailerBytes:], f, l, trailer)
		}
		var buf [segment.IndexBlockBytes]byte
		for _, o := range []segment.Offset{0, f.Base, f.End/2 + f.Base/2, f.End, 1<<63 - 1} {
			pos, base, ok := l.Seek(memory(b), o, buf[:])
			if ok && (base > o || base < f.Base || base >= f.End || pos < l.DataPos || pos >= f.DataEnd) {
				t.Fatalf("offset %d leads to %d at %d, outside of %+v", o, base, pos, f)
			}
			pos, base, ok = l.SeekTime(memory(b), o, buf[:])
			if ok && (base < f.Base || base >= f.End || pos < l.DataPos || pos >= f.DataEnd) {
				t.Fatalf("time %d leads to %d at %d, outside of %+v", o, base, pos, f)
			}
		}
	}
	m := newSegment(h, 1)
	m.batch(1, []byte("payload"), -1)
	m.data = append(m.data, make([]byte, 8<<10)...) // room for what a footer may say of it
	file := m.file(m.data)
	file.Index, file.IndexBytes = memory(b), int64(len(b))
	var info segment.FileInfo
	if n := allocated(func() {
		var s segment.Scanner
		info = segment.FileInfo{}
		if err := s.Scan(&file, false, &info); err != nil {
			t.Fatal(err)
		}
	}); n > slack+16*uint64(len(b)) {
		t.Fatalf("%d bytes allocated for a sidecar of %d", n, len(b))
	}
	checkInfo(t, &info, int64(len(m.data)))
	for _, p := range info.Producers {
		if p.Count < 1 || p.Count > segment.ProducerBatches {
			t.Fatalf("producer %+v", p)
		}
	}
}

// resealFooter puts the magics, counts and checksums of a sidecar right as far as its bytes go.
func resealFooter(b []byte) []byte {
	if len(b) < segment.TrailerBytes+16 {
		return b
	}
	h := createdHeader()
	t := b[len(b)-segment.TrailerBytes:]
	copy(t, "VARVEIDX")
	le.PutUint16(t[8:], segment.FormatVersion)
	le.PutUint16(t[10:], 0)
	le.PutUint32(t[120:], 0)
	le.PutUint64(t[16:], uint64(h.ID))
	le.PutUint64(t[24:], uint64(h.Base))
	le.PutUint64(t[56:], 0)
	// The header of the file that hostileFooter scans, so that it is believed.
	le.PutUint32(t[12:], h.Epoch)
	le.PutUint32(t[108:], segment.PutHeader(make([]byte, 512), &h))
	// Index entries as stated if there can be so many, else as many as one block holds; the rest producers.
	room := len(b) - segment.TrailerBytes - 16
	entries := min(room/24, 170)
	if n := le.Uint32(t[112:]); n >= 1 && int64(n) < int64(entries) {
		entries = int(n)
	}
	producers := 0
	if rest := room - 24*entries; rest >= 16 {
		producers = min((rest-16)/96, 42)
	}
	le.PutUint32(t[112:], uint32(entries))
	le.PutUint32(t[116:], uint32(producers))
	placement := segment.PlacementSeed(logID, h.ID)
	var key [20]byte
	copy(key[8:], t[48:56])
	copy(key[16:], t[104:108])
	seed := crc32.Update(placement, castagnoli, key[:])
	end := resealBlock(b, "VRVI", entries, 24, seed)
	if producers > 0 {
		end += resealBlock(b[end:], "VRVP", producers, 96, seed)
	}
	le.PutUint32(t[124:], crc32.Update(placement, castagnoli, t[:124]))
	return append(b[:end:end], t...)
}

func resealBlock(b []byte, magic string, n, each int, seed uint32) int {
	size := 16 + n*each
	copy(b, magic)
	le.PutUint32(b[4:], 0)
	le.PutUint32(b[8:], uint32(n))
	le.PutUint32(b[12:], crc32.Update(crc32.Update(seed, castagnoli, b[:12]), castagnoli, b[16:size]))
	return size
}

// trailerOf encodes a trailer from docs/format.md alone.
func trailerOf(f *segment.Footer, l *segment.Layout) []byte {
	b := append([]byte(nil), "VARVEIDX"...)
	b = le.AppendUint16(b, 1)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, f.Epoch)
	for _, v := range []uint64{
		uint64(f.ID), uint64(f.Base), uint64(f.End), uint64(l.DataPos), uint64(f.DataEnd), uint64(l.Pos), f.Batches,
		uint64(f.MinTime), uint64(f.MaxTime), uint64(f.AppendTime), f.Commit,
	} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range []uint32{f.Chain, f.HeaderCRC, l.Entries, l.Producers, 0} {
		b = le.AppendUint32(b, v)
	}
	return le.AppendUint32(b, crc32.Update(segment.PlacementSeed(logID, f.ID), castagnoli, b))
}
