package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"testing"
)

// memory is a file in memory.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// maker writes a segment file as the core does.
type maker struct {
	h        Header
	crc      uint32 // of the header
	data     []byte
	chain    uint32
	commit   uint64
	next     Offset
	frontier Offset
	starts   []int64 // of the batches
	footer   FooterBuilder
	producer int64
	shift    Time // of the records' clock
}

func testHeader() Header {
	return Header{Kind: Created, SectorBytes: 512, LogID: LogID{1, 2, 3}, ID: MakeID(7, 3), Epoch: 7, Base: 1000, Created: 5, Nonce: 9}
}

func newMaker(h Header, spacing int64) *maker {
	m := &maker{h: h, next: h.Base, producer: -1}
	m.data = make([]byte, h.SectorBytes)
	m.crc = PutHeader(m.data, &h)
	m.chain = m.crc
	m.footer.Reset(&h, m.crc, spacing)
	return m
}

// batch appends one batch of the current commit.
func (m *maker) batch(records uint32, payload []byte) {
	i := Identity{
		PayloadBytes: uint32(len(payload)), Kind: KindRecords, Records: records, Base: m.next, Epoch: m.h.Epoch,
		Nonce: m.h.Nonce, AppendTime: 100 + m.next, MaxTime: 50 + m.next + m.shift, ProducerID: m.producer, ProducerEpoch: -1, Sequence: -1,
		PayloadCRC: PayloadCRC(payload),
	}
	if m.producer >= 0 {
		i.ProducerEpoch, i.Sequence = 2, int32(m.next)
	}
	m.commit = max(m.commit, 1)
	p := Placement{ID: m.h.ID, Commit: m.commit, Chain: m.chain, Frontier: m.frontier}
	at := len(m.data)
	m.data = append(m.data, make([]byte, BatchHeaderBytes)...)
	m.data = append(m.data, payload...)
	m.chain = PutBatchHeader(m.data[at:], &p, &i, PlacementSeed(m.h.LogID, m.h.ID), IdentitySeed(m.h.LogID))
	m.starts = append(m.starts, int64(at))
	m.footer.Add(int64(at), &i, m.commit, m.chain)
	m.next = i.End()
}

// cut ends a commit.
func (m *maker) cut() { m.commit++ }

// sync ends a commit with a sync: padding to the sector boundary, and a raised frontier.
func (m *maker) sync() {
	m.commit++
	m.frontier = m.next
	m.pad()
}

func (m *maker) pad() {
	n := roundUp(int64(len(m.data)), int64(m.h.SectorBytes)) - int64(len(m.data))
	m.data = append(m.data, make([]byte, n)...)
}

func (m *maker) seal() {
	m.pad()
	m.data = m.footer.Append(m.data)
}

// fill returns n bytes without a zero among them.
func fill(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + seed | 1
	}
	return b
}

// three makes a file of three commits with a sync each, the last of them two batches.
func three(t testing.TB) *maker {
	t.Helper()
	m := newMaker(testHeader(), 1)
	m.producer = 4
	m.batch(3, fill(300, 1))
	m.sync()
	m.producer = 2
	m.batch(1, fill(10, 2))
	m.sync()
	m.batch(2, fill(40, 3))
	m.producer = -1
	m.batch(5, fill(1200, 4))
	return m
}

func (m *maker) file(data []byte) ScanFile {
	return ScanFile{Source: memory(data), Bytes: int64(len(data)), ID: m.h.ID, Base: m.h.Base, LogID: m.h.LogID, SectorBytes: 512}
}

func (m *maker) scan(t testing.TB, data []byte, whole bool) FileInfo {
	t.Helper()
	var s Scanner
	var info FileInfo
	f := m.file(data)
	if err := s.Scan(&f, whole, &info); err != nil {
		t.Fatalf("scan: %v", err)
	}
	return info
}

// spell puts what matters of a finding on one line.
func spell(i FileInfo) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "h%d e%d ev%d", i.Verdict, i.Epoch, i.Evidence)
	if i.Sealed {
		b.WriteString(" sealed")
	}
	if i.Sidecar {
		b.WriteString(" sidecar")
	}
	if i.Tail {
		b.WriteString(" tail")
	}
	if i.Head != BreakNone {
		fmt.Fprintf(&b, " head%d@%d", i.Head, i.HeadPos)
	}
	for _, r := range i.Runs {
		fmt.Fprintf(&b, " [%d,%d)@%d-%d", r.First, r.End, r.Pos, r.EndPos)
		if r.Break != BreakNone {
			fmt.Fprintf(&b, " break%d@%d", r.Break, r.BreakPos)
		}
	}
	return b.String()
}

var errBroken = errors.New("broken disk")

// broken fails reads that touch a position.
type broken struct {
	memory
	at int64
}

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off <= b.at && b.at < off+int64(len(p)) {
		return 0, errBroken
	}
	return b.memory.ReadAt(p, off)
}

// putCRC stores the checksum of b.
func putCRC(dst, b []byte, seed uint32) {
	binary.LittleEndian.PutUint32(dst, crc32.Update(seed, castagnoli, b))
}
