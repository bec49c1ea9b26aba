package segment

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"runtime"
	"testing"
)

// The tests of the bugs_*_test.go files carry the ids of failures that users of other logs reported;
// the table "Failures of other logs" in TESTING.md says which class each belongs to.

// oddLengths are the lengths that wrap, overflow or stand still.
var oddLengths = []uint32{
	0, 1, 111, 112, 1<<30 - 1, 1 << 30, 1<<30 + 1, 1<<31 - 1, 1 << 31, math.MaxUint32 - 15, math.MaxUint32 - 112,
	math.MaxUint32 - 111, math.MaxUint32 - 1, math.MaxUint32,
}

// TestDS1LengthsThatWrap: any length in a batch header, with checksums that are wrong or right. It is
// compared with what is there before it is used: no panic, no step of nothing, no batch that was not
// written, and what lies behind is found.
func TestDS1LengthsThatWrap(t *testing.T) {
	m := three(t)
	clean := spell(m.scan(t, m.data, true))
	le := binary.LittleEndian
	placement, identity := PlacementSeed(m.h.LogID, m.h.ID), IdentitySeed(m.h.LogID)
	for k, start := range m.starts {
		for _, length := range oddLengths {
			for _, signed := range []bool{false, true} {
				data := clone(m.data)
				head := data[start : start+BatchHeaderBytes]
				before := le.Uint32(head[PlacementBytes:])
				le.PutUint32(head[PlacementBytes:], length)
				if signed {
					putCRC(head[PlacementBytes+68:], head[PlacementBytes:PlacementBytes+68], identity)
					copy(head[32:36], head[PlacementBytes+68:])
					putCRC(head[36:], head[:36], placement)
				}
				if _, i, _, ok := ReadBatchHeader(head, placement, identity); ok && (!signed || i.PayloadBytes > PayloadBytesMax) {
					t.Fatalf("batch %d: a header of length %d verifies", k, length)
				}
				info := m.scan(t, data, true)
				if got := spell(info); length != before && got == clean {
					t.Errorf("batch %d, length %d, signed %v: nothing is amiss: %s", k, length, signed, got)
				}
				batches := uint64(0)
				for _, r := range info.Runs {
					batches += r.Batches
				}
				if batches < 2 || batches > 4 {
					t.Errorf("batch %d, length %d, signed %v: %d batches are found", k, length, signed, batches)
				}
			}
		}
	}
}

// allocated returns the bytes that do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestDS2CountsOfAllOnes: each 32-bit word of a segment header, a batch header, a footer, a sidecar and a
// superblock is set to ones, under checksums that are right. Nothing allocates by what it claims.
func TestDS2CountsOfAllOnes(t *testing.T) {
	m := three(t)
	m.seal()
	sidecar := m.footer.AppendIndex(nil)
	const limit = 64 << 10 // a scanner and its window on a file of 4 KiB
	words := func(n int, each func(at int)) {
		for at := 0; at+4 <= n; at += 2 {
			each(at)
		}
	}
	check := func(what string, at int, do func()) {
		t.Helper()
		if n := allocated(do); n > limit {
			t.Errorf("%s, byte %d: %d bytes are allocated", what, at, n)
		}
	}
	ones := func(b []byte) { binary.LittleEndian.PutUint32(b, math.MaxUint32) }
	scan := func(data, index []byte) {
		var s Scanner
		var info FileInfo
		f := m.file(data)
		if index != nil {
			f.Index, f.IndexBytes = memory(index), int64(len(index))
		}
		for _, whole := range []bool{false, true} {
			if err := s.Scan(&f, whole, &info); err != nil {
				t.Fatal(err)
			}
		}
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	words(HeaderBytes-4, func(at int) {
		data := clone(m.data)
		ones(data[at:])
		binary.LittleEndian.PutUint32(data[HeaderBytes-4:], crc32.Checksum(data[:HeaderBytes-4], table))
		check("segment header", at, func() { scan(data, nil) })
	})
	words(BatchHeaderBytes, func(at int) {
		data := clone(m.data)
		head := data[m.starts[1] : m.starts[1]+BatchHeaderBytes]
		ones(head[at:])
		putCRC(head[PlacementBytes+68:], head[PlacementBytes:PlacementBytes+68], IdentitySeed(m.h.LogID))
		copy(head[32:36], head[PlacementBytes+68:])
		putCRC(head[36:], head[:36], PlacementSeed(m.h.LogID, m.h.ID))
		check("batch header", at, func() { scan(data, nil) })
	})
	words(TrailerBytes-4, func(at int) {
		data, index := clone(m.data), clone(sidecar)
		for _, b := range [][]byte{data, index} {
			ones(b[len(b)-TrailerBytes+at:])
			resign(&m.h, b)
		}
		check("footer", at, func() { scan(data, nil) })
		check("sidecar", at, func() { scan(data[:m.starts[3]], index) })
	})
	super := &Superblock{Epoch: 3, SectorBytes: 512, Lineage: []Lineage{{Epoch: 1}, {Epoch: 3, First: 9}}}
	good, err := AppendSuper(nil, super)
	if err != nil {
		t.Fatal(err)
	}
	used := int(binary.LittleEndian.Uint32(good[12:]))
	words(used-4, func(at int) {
		b := clone(good)
		ones(b[at:])
		binary.LittleEndian.PutUint32(b[used-4:], crc32.Checksum(b[:used-4], table))
		check("superblock", at, func() { _ = ReadSuper(b, new(Superblock)) })
	})
	for _, count := range []uint32{1 << 20, math.MaxInt32, math.MaxUint32} { // records of a payload
		check("records", int(count), func() {
			if recs, err := readRecords(new(RecordIter), make([]byte, 100), count); err == nil || len(recs) > 0 {
				t.Errorf("%d records in 100 bytes: %d, %v", count, len(recs), err)
			}
		})
	}
}

// TestDS6InnerLengths: the lengths of a key, a value, a header's key and value and the number of headers
// reach beyond the record, alone and in sum, or wrap. Each is an error that says where.
func TestDS6InnerLengths(t *testing.T) {
	uvarint := func(v uint64) []byte { return binary.AppendUvarint(nil, v) }
	join := func(parts ...[]byte) (b []byte) {
		for _, p := range append([][]byte{make([]byte, 8)}, parts...) {
			b = append(b, p...)
		}
		return b
	}
	body := fill(20, 1)
	for _, n := range []uint64{21, 22, 100, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<62 - 1, 1<<63 - 1} {
		for name, payload := range map[string][]byte{
			"value":         join(uvarint((n+1)<<1), body),
			"key":           join([]byte{1, 2}, uvarint(n), body),
			"headers":       join([]byte{1, 4}, uvarint(n), body),
			"header key":    join([]byte{1, 4, 1}, uvarint(n), body),
			"header value":  join([]byte{1, 4, 1, 0}, uvarint(n+1), body),
			"key and value": join(uvarint((n-5)<<1|1), []byte{2}, uvarint(15), body),
			"second header": join([]byte{1, 4, 2, 0, 0}, uvarint(n), body),
			"wrapped key":   join([]byte{1, 2}, uvarint(math.MaxUint64-n), body),
			"wrapped value": join([]byte{1, 4, 1, 0}, uvarint(math.MaxUint64-n+1), body),
		} {
			var recs []Record
			var err error
			spent := allocated(func() { recs, err = readRecords(new(RecordIter), payload, 1) })
			var damage *RecordsError
			if !errors.As(err, &damage) || len(recs) > 0 || damage.Pos < 8 || damage.Pos > int64(len(payload)) {
				t.Errorf("%s of %d: %d records, %v", name, n, len(recs), err)
			}
			if spent > 16<<10 {
				t.Errorf("%s of %d: %d bytes are allocated", name, n, spent)
			}
		}
	}
}

// sparse is a file of batches whose payloads are zeros: only what differs is in memory.
type sparse struct {
	parts []part
	size  int64
}

type part struct {
	pos int64
	b   []byte
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, errEOF
	}
	n := int(min(int64(len(p)), s.size-off))
	clear(p[:n])
	for _, x := range s.parts {
		from, to := max(off, x.pos), min(off+int64(n), x.pos+int64(len(x.b)))
		if from < to {
			copy(p[from-off:to-off], x.b[from-x.pos:])
		}
	}
	if n < len(p) {
		return n, errEOF
	}
	return n, nil
}

var errEOF = errors.New("EOF")

// TestSR10FilesAbove4GiB: files of 2^31-1, 2^31, 2^32-1, 2^32 and 2^32+x bytes whose last batch ends there,
// by their footers, and the largest batch by batch. No length, position or size is cut to 32 bits:
// everything is found, nothing is torn.
func TestSR10FilesAbove4GiB(t *testing.T) {
	const step = 64 << 20
	zeros := make([]byte, step)
	whole := crc32.Update(0, castagnoli, zeros)
	var s Scanner
	for _, size := range []int64{1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 4711} {
		h := testHeader()
		m := newMaker(h, 1<<20)
		f := &sparse{size: size, parts: []part{{0, m.data}}}
		pos, batches := int64(512), int64(0)
		for pos < size {
			n := min(step, size-pos-BatchHeaderBytes)
			crc := whole
			if n != step {
				crc = crc32.Update(0, castagnoli, zeros[:n])
			}
			i := Identity{
				PayloadBytes: uint32(n), Kind: KindRecords, Records: 1, Base: m.next, Epoch: h.Epoch, Nonce: h.Nonce,
				ProducerID: -1, ProducerEpoch: -1, Sequence: -1, PayloadCRC: crc,
			}
			batches++
			p := Placement{ID: h.ID, Commit: uint64(batches), Chain: m.chain}
			head := make([]byte, BatchHeaderBytes)
			m.chain = PutBatchHeader(head, &p, &i, PlacementSeed(h.LogID, h.ID), IdentitySeed(h.LogID))
			f.parts = append(f.parts, part{pos, head})
			m.footer.Add(pos, &i, p.Commit, m.chain)
			m.next++
			if pos += BatchHeaderBytes + n; pos < size && size-pos <= BatchHeaderBytes {
				t.Fatal("the last batch does not fit")
			}
		}
		// The footer alone: a quick scan reads no batch.
		sealed := &sparse{size: m.footer.Pos() + m.footer.Bytes(), parts: append(f.parts, part{m.footer.Pos(), m.footer.Append(nil)})}
		var info FileInfo
		file := ScanFile{Source: sealed, Bytes: sealed.size, ID: h.ID, Base: h.Base, LogID: h.LogID, SectorBytes: 512}
		if err := s.Scan(&file, false, &info); err != nil || !info.Sealed || info.Footer.DataEnd != size || info.Footer.End != m.next {
			t.Errorf("size %d, by its footer: %v, %+v", size, err, info.Footer)
		}
		if size <= 1<<32 { // one is enough to be read whole
			continue
		}
		file.Source, file.Bytes = f, size
		if err := s.Scan(&file, true, &info); err != nil || len(info.Runs) != 1 || info.Runs[0].EndPos != size || info.Tail || info.Runs[0].Break != BreakNone {
			t.Errorf("size %d, read whole: %v, %s", size, err, spell(info))
		}
	}
}
