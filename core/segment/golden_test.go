package segment

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// Golden vectors of format version 1, the same as in docs/format.md. They were computed by a
// second implementation (struct packing and a bitwise CRC), not by this package.
const (
	goldenHeader = "56415256455345470100010000020000000102030405060708090a0b0c0d0e0f" +
		"07000000030000000300000000000000e8030000000000000000000000000000" +
		"00002a36fe9c9717887766554433221100000000000000000000000000000000" +
		"00000000000000000000000000000000000000000000000000000000c35170b4"
	goldenBatch = "56525642c35170b407000000030000000c00000000000000de030000000000004b577795503327e1" +
		"200000000100ffff0500000003000000e80300000000000088776655443322110065f753fe9c9717" +
		"04002a36fe9c9717ffffffffffffffffffffffff60946694000000004b577795"
	goldenPayload = "01002a36fe9c97170c68656c6c6f0002050706016b0201680000017601030700"
	goldenSuper   = "5641525645535550010001039c000000000102030405060708090a0b0c0d0e0f" +
		"2900000000000000887766554433221103000000030000006400000000000000" +
		"c800000000000000ed03000000000000ec030000000000000900000000000000" +
		"00002a36fe9c9717000200000200000000000000000000000000000000000000" +
		"01000000000000000000000003000000e80300000000000012b8f944"
)

const (
	goldenID   ID     = 3<<32 | 7
	goldenNone        = -1
	goldenTime Time   = 1_700_000_000_000_000_000
	goldenOwn  uint64 = 0x1122334455667788
)

func goldenLog() (log LogID) {
	for i := range log {
		log[i] = byte(i)
	}
	return log
}

func goldenHeaderFields() Header {
	return Header{
		Kind: Created, Sync: OnCommit, SectorBytes: 512, LogID: goldenLog(), ID: goldenID,
		Epoch: 3, Base: 1000, Created: goldenTime, Nonce: goldenOwn,
	}
}

func goldenBatchFields(payload []byte) (Placement, Identity) {
	return Placement{ID: goldenID, Commit: 12, Chain: 0xb47051c3, Frontier: 990},
		Identity{
			PayloadBytes: uint32(len(payload)), Kind: KindRecords, Records: 5, Base: 1000, Epoch: 3,
			Nonce: goldenOwn, AppendTime: goldenTime + 500_000_000, MaxTime: goldenTime + 4,
			ProducerID: goldenNone, ProducerEpoch: goldenNone, Sequence: goldenNone,
			PayloadCRC: PayloadCRC(payload),
		}
}

func goldenSuperFields() Superblock {
	return Superblock{
		Sequence: 41, LogID: goldenLog(), Epoch: 3, Nonce: goldenOwn, Sync: Periodic, SectorBytes: 512,
		Clean: true, Complete: true, Start: 100, HotStart: 200, Frontier: 1005, Committed: 1004,
		CommittedEpoch: 3, ManifestSequence: 9, Created: goldenTime,
		Lineage: []Lineage{{Epoch: 1, First: 0}, {Epoch: 3, First: 1000}},
	}
}

// goldenRecords covers: a plain value, nil, empty, everything at once, an empty key over a nil
// value with a time that goes back.
func goldenRecords() []Record {
	t := goldenTime + 1
	return []Record{
		{Value: []byte("hello"), Time: t},
		{Value: nil, Time: t},
		{Value: []byte{}, Time: t},
		{
			Key: []byte("k"), Value: []byte("v"), Time: t + 3,
			Headers: []RecordHeader{{Key: []byte("h")}, {Key: []byte{}, Value: []byte{}}},
		},
		{Key: []byte{}, Time: t - 1},
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// splitMix is a counter PRNG: the same numbers on every machine and in every run.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *splitMix) below(n int) int { return int(s.next() % uint64(n)) }

// bytes returns nil, empty, or up to n random bytes.
func (s *splitMix) bytes(n int) []byte {
	switch s.below(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	b := make([]byte, s.below(n+1))
	for i := range b {
		b[i] = byte(s.next())
	}
	return b
}

// span returns a number of random magnitude, from 0 bits up to 64.
func (s *splitMix) span() uint64 { return s.next() >> s.below(65) }

// The page that other implementers read shows the very same vectors.
func TestGoldenInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.ReplaceAll(string(page), "\n", "")
	for _, golden := range []string{goldenHeader, goldenBatch, goldenPayload, goldenSuper} {
		if !strings.Contains(flat, "```"+golden+"```") {
			t.Errorf("docs/format.md lacks %s", golden)
		}
	}
}
