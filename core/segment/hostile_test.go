package segment

import (
	"testing"
	"time"
)

// counter is a small deterministic source of numbers.
type counter uint64

func (c *counter) below(n int) int {
	*c += 0x9e3779b97f4a7c15
	x := uint64(*c)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(n))
}

// Files and sidecars torn apart and put together again, also with fresh checksums over wrong
// fields: a scan never panics, never finds a batch that was not written, and holds no more memory
// than the file has bytes.
func TestScanHostileFiles(t *testing.T) {
	m := sealed(t, 60, 9)
	sidecar := m.footer.AppendIndex(nil)
	real := map[int64]bool{}
	for _, pos := range m.starts {
		real[pos] = true
	}
	var s Scanner
	var info FileInfo
	buf := make([]byte, IndexBlockBytes)
	c := counter(1)
	for round := range 20_000 {
		data, index := clone(m.data), clone(sidecar)
		for range 1 + c.below(4) {
			b := data
			if c.below(3) == 0 {
				b = index
			}
			at, n := c.below(len(b)), c.below(40)
			for k := at; k < min(at+n, len(b)); k++ {
				switch round % 3 {
				case 0:
					b[k] = byte(c.below(256))
				case 1:
					b[k] = 0
				case 2:
					b[k] = 0xff
				}
			}
		}
		if round%4 == 0 {
			resign(&m.h, data)
			resign(&m.h, index)
		}
		if round%5 == 0 {
			data = data[:c.below(len(data))]
		}
		f := m.file(data)
		f.Index, f.IndexBytes = memory(index), int64(len(index))
		if err := s.Scan(&f, round%2 == 0, &info); err != nil {
			t.Fatal(err)
		}
		for _, r := range info.Runs {
			if !real[r.Pos] || r.Batches > 60 || r.First < m.h.Base || r.End > m.next {
				t.Fatalf("round %d: %s", round, spell(info))
			}
		}
		if cap(s.w.buf) > len(m.data) {
			t.Fatalf("round %d: %d bytes held for a file of %d", round, cap(s.w.buf), len(m.data))
		}
		if _, l, ok := ReadTrailer(index, int64(len(index)), m.h.LogID, m.h.ID, true); ok {
			l.Seek(memory(index), m.h.Base+Offset(c.below(100)), buf)
			l.SeekTime(memory(index), Time(c.below(2000)), buf)
		}
	}
}

// resign gives a trailer a checksum that verifies, whatever its fields say.
func resign(h *Header, b []byte) {
	t := b[len(b)-TrailerBytes:]
	putCRC(t[trailerCRCPos:], t[:trailerCRCPos], PlacementSeed(h.LogID, h.ID))
}

// Headers that verify in every sector, each claiming a payload up to the end of the file: a scan
// stays linear.
func TestScanOverlappingClaims(t *testing.T) {
	h := testHeader()
	data := make([]byte, 32<<20)
	PutHeader(data, &h)
	for at := 1024; at < len(data); at += 512 {
		i := Identity{PayloadBytes: uint32(len(data) - at - BatchHeaderBytes), Kind: KindRecords, Records: 1, Base: h.Base, Epoch: h.Epoch}
		p := Placement{ID: h.ID, Commit: 1}
		PutBatchHeader(data[at:], &p, &i, PlacementSeed(h.LogID, h.ID), IdentitySeed(h.LogID))
	}
	m := &maker{h: h}
	from := time.Now()
	info := m.scan(t, data, true)
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("scan of 32 MiB took %v", took) // 65,000 claims of 16 MiB would take a minute
	}
	if len(info.Runs) != 0 || info.Head != BreakTorn {
		t.Errorf("got %s", spell(info))
	}
}
