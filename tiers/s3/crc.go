package s3

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeCRC returns a checksum as S3 writes it.
func encodeCRC(crc uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

// decodeCRC reads a checksum of a whole object. One of an object in parts may be a checksum of
// checksums, which says nothing about the bytes.
func decodeCRC(text *string, kind types.ChecksumType) (uint32, bool) {
	if text == nil || kind == types.ChecksumTypeComposite {
		return 0, false
	}
	b, err := base64.StdEncoding.DecodeString(*text)
	if err != nil || len(b) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(b), true
}

// combine returns the CRC32C of two byte strings in a row, of which the second has n bytes.
//
// A zero byte behind a string changes its CRC by a linear map over GF(2); the map of n zero bytes is
// that of one to the power n.
func combine(first, second uint32, n int64) uint32 {
	var power matrix // of 2^k zero bits
	power[0] = crc32.Castagnoli
	for i := 1; i < 32; i++ {
		power[i] = 1 << (i - 1)
	}
	for range 3 { // one byte is 8 bits
		power = power.square()
	}
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			first = power.times(first)
		}
		power = power.square()
	}
	return first ^ second
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
