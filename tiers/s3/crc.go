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
