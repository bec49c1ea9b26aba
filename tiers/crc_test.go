package tiers_test

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"varve/tiers"
)

// TestCombineCRC compares with the CRC of both strings together, on short ones and where the second one
// is long.
func TestCombineCRC(t *testing.T) {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		a, b := make([]byte, r.IntN(3000)), make([]byte, r.IntN(3000))
		if i == 0 {
			b = make([]byte, 9<<20)
		}
		for i := range a {
			a[i] = byte(r.Uint32())
		}
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		got := tiers.CombineCRC(crc32.Checksum(a, castagnoli), crc32.Checksum(b, castagnoli), int64(len(b)))
		if want := crc32.Checksum(append(a, b...), castagnoli); got != want {
			t.Fatalf("%d and %d bytes: %08x, want %08x", len(a), len(b), got, want)
		}
	}
}
