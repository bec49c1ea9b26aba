package fuzz

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"

	"varve/core/segment"
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	logID      = segment.LogID{'f', 'u', 'z', 'z'}
)

// sampleMax is how many files of a foreign corpus one target takes: more would use up the time of a
// short run before anything is changed in them. TestCorpusThroughTheLog takes all.
const sampleMax = 200

// foreign loads the corpus that VARVE_FUZZ_CORPUS names, once; nil if it names none.
var foreign = sync.OnceValues(func() ([]File, error) {
	path := os.Getenv("VARVE_FUZZ_CORPUS")
	if path == "" {
		return nil, nil
	}
	return LoadCorpus(path)
})

// eachForeign hands out a sample of the foreign corpus, evenly spread over it.
func eachForeign(f *testing.F, add func(b []byte)) {
	f.Helper()
	files, err := foreign()
	if err != nil {
		f.Fatal(err)
	}
	step := max(1, len(files)/sampleMax)
	for i := 0; i < len(files); i += step {
		add(files[i].Bytes)
	}
}

// memory is a file in memory.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// bites takes a fuzzer's bytes apart into decisions; when they are used up it goes on with zeros.
type bites struct{ b []byte }

func (s *bites) more() bool { return len(s.b) > 0 }

func (s *bites) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	v := s.b[0]
	s.b = s.b[1:]
	return v
}

func (s *bites) uint16() int { return int(s.byte()) | int(s.byte())<<8 }

func (s *bites) uint64() (v uint64) {
	for i := range 8 {
		v |= uint64(s.byte()) << (8 * i)
	}
	return v
}

// take returns the next n bytes, fewer at the end.
func (s *bites) take(n int) []byte {
	n = min(n, len(s.b))
	v := s.b[:n:n]
	s.b = s.b[n:]
	return v
}

// slack is what a call may allocate whatever its input is, and what else goes on in a fuzzer's process
// meanwhile.
const slack = 64 << 10

// allocated returns the bytes that a call allocates: the least of a few tries, because other
// goroutines of the fuzzer's process count, too.
func allocated(call func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
		if least < slack {
			break
		}
	}
	return least
}

// segmentMaker writes a segment file as the core does: batches that follow each other, a sync or not
// between commits, a footer at the end or not.
type segmentMaker struct {
	h        segment.Header
	data     []byte
	chain    uint32
	commit   uint64
	next     segment.Offset
	frontier segment.Offset
	written  []written
	footer   segment.FooterBuilder
}

// written is a batch that was written.
type written struct {
	pos      int64
	identity segment.Identity
	raw      []byte
}

func newSegment(h segment.Header, spacing int64) *segmentMaker {
	m := &segmentMaker{h: h, next: h.Base, commit: 1}
	m.data = make([]byte, h.SectorBytes)
	m.chain = segment.PutHeader(m.data, &h)
	m.footer.Reset(&h, m.chain, spacing)
	return m
}

func createdHeader() segment.Header {
	return segment.Header{
		Kind: segment.Created, SectorBytes: 512, LogID: logID, ID: segment.MakeID(3, 2), Epoch: 3, Base: 40, Created: 77, Nonce: 9,
	}
}

// batch appends a batch of the current commit. A producer below 0 is none.
func (m *segmentMaker) batch(records uint32, payload []byte, producer int64) {
	i := segment.Identity{
		PayloadBytes: uint32(len(payload)), Kind: segment.KindRecords, Records: records, Base: m.next, Epoch: m.h.Epoch,
		Nonce: m.h.Nonce, AppendTime: 1000 + m.next, MaxTime: 500 + m.next, ProducerID: -1, ProducerEpoch: -1, Sequence: -1,
		PayloadCRC: segment.PayloadCRC(payload),
	}
	if producer >= 0 {
		i.ProducerID, i.ProducerEpoch, i.Sequence = producer, 1, int32(m.next)
	}
	p := segment.Placement{ID: m.h.ID, Commit: m.commit, Chain: m.chain, Frontier: m.frontier}
	at := len(m.data)
	m.data = append(m.data, make([]byte, segment.BatchHeaderBytes)...)
	m.data = append(m.data, payload...)
	m.chain = segment.PutBatchHeader(m.data[at:], &p, &i, segment.PlacementSeed(logID, m.h.ID), segment.IdentitySeed(logID))
	m.footer.Add(int64(at), &i, m.commit, m.chain)
	m.written = append(m.written, written{int64(at), i, bytes.Clone(m.data[at:])})
	m.next = i.End()
}

// sync ends a commit: padding up to the sector boundary, and a raised frontier.
func (m *segmentMaker) sync() {
	m.commit++
	m.frontier = m.next
	m.pad()
}

func (m *segmentMaker) pad() {
	for len(m.data)%int(m.h.SectorBytes) != 0 {
		m.data = append(m.data, 0)
	}
}

func (m *segmentMaker) seal() {
	m.pad()
	m.data = m.footer.Append(m.data)
}

func (m *segmentMaker) file(data []byte) segment.ScanFile {
	return segment.ScanFile{
		Source: memory(data), Bytes: int64(len(data)), ID: m.h.ID, Base: m.h.Base, LogID: logID, SectorBytes: 512,
	}
}

// payloads of seeds: records as a client makes them.
func payloads() [][]byte {
	var all [][]byte
	for _, recs := range [][]segment.Record{
		{{Value: []byte("one"), Time: 5}},
		{{Key: []byte("k"), Value: []byte("two"), Time: 6}, {Value: nil, Time: 6}, {Value: []byte{}, Time: 9}},
		{{Headers: []segment.RecordHeader{{Key: []byte("h"), Value: []byte("v")}, {Key: []byte{}}}, Time: -1}},
		{{Value: bytes.Repeat([]byte("abc"), 400), Time: 1 << 60}, {Value: make([]byte, 700), Time: -(1 << 60)}},
	} {
		p, _ := segment.AppendRecords(nil, recs)
		all = append(all, p)
	}
	return all
}

// segments are files of the current format version, which is the only one there is.
func segments() []*segmentMaker {
	var all []*segmentMaker
	for kind := range 4 {
		h := createdHeader()
		if kind == 3 {
			h.Kind, h.End, h.SectorBytes = segment.Replacement, h.Base+6, 1024
		}
		m := newSegment(h, int64(1+500*(kind%2)))
		for n, p := range payloads() {
			m.batch(uint32(1+n%2), p, int64(n%3-1))
			if n%2 == kind%2 {
				m.sync()
			}
		}
		if kind >= 2 {
			m.seal()
		}
		all = append(all, m)
	}
	return all
}
