package tiers

import "hash/crc32"

// CombineCRC returns the CRC32C of two byte strings in a row, of which the second has n bytes.
//
// A zero byte behind a string changes its CRC by a linear map over GF(2); the map of n zero bytes is
// that of one to the power n.
func CombineCRC(first, second uint32, n int64) uint32 {
	for i := 0; n > 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			first = zeros[i].times(first)
		}
	}
	return first ^ second
}

// zeros are the maps of 2^i zero bytes.
var zeros = zeroMaps()

func zeroMaps() (maps [63]matrix) {
	var power matrix // of one zero bit
	power[0] = crc32.Castagnoli
	for i := 1; i < 32; i++ {
		power[i] = 1 << (i - 1)
	}
	for range 3 { // one byte is 8 bits
		power = power.square()
	}
	for i := range maps {
		maps[i], power = power, power.square()
	}
	return maps
}

// matrix is a linear map of 32 bits: the images of each single bit.
type matrix [32]uint32

func (m *matrix) times(v uint32) uint32 {
	sum := uint32(0)
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 != 0 {
			sum ^= m[i]
		}
	}
	return sum
}

func (m *matrix) square() matrix {
	var out matrix
	for i := range m {
		out[i] = m.times(m[i])
	}
	return out
}
