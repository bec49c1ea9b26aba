package dirbucket

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"varve/tiers"
)

// Trailer, little-endian: magic 8, version 4, CRC32C of the object 4, its bytes 8, nonce 8, CRC32C of
// the name that it was put under 4, CRC32C of the trailer so far 4.
const (
	trailerBytes   = 40
	trailerMagic   = "varveobj"
	trailerVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// trailer describes an object or a part in its own file.
type trailer struct {
	crc   uint32
	bytes int64
	nonce uint64 // drawn for each file: equal bytes that are put again have another tag
}

// append appends the trailer for a file under a name.
func (x trailer) append(dst []byte, name string) []byte {
	from := len(dst)
	dst = append(dst, trailerMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, trailerVersion)
	dst = binary.LittleEndian.AppendUint32(dst, x.crc)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(x.bytes))
	dst = binary.LittleEndian.AppendUint64(dst, x.nonce)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum([]byte(name), castagnoli))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// parse reads the trailer of a file of a size under a name.
func (x *trailer) parse(b []byte, name string, size int64) error {
	if len(b) != trailerBytes || string(b[:8]) != trailerMagic {
		return damaged("it does not end in a trailer: it was cut, or put there by another program")
	}
	if crc32.Checksum(b[:36], castagnoli) != binary.LittleEndian.Uint32(b[36:]) {
		return damaged("the checksum of its trailer does not match")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != trailerVersion {
		return fmt.Errorf("version %d, this program knows %d: use a newer program", v, trailerVersion)
	}
	x.crc = binary.LittleEndian.Uint32(b[12:])
	x.bytes = int64(binary.LittleEndian.Uint64(b[16:]))
	x.nonce = binary.LittleEndian.Uint64(b[24:])
	if x.bytes != size-trailerBytes {
		return damaged(fmt.Sprintf("its trailer says %d bytes, the file has %d", x.bytes, size-trailerBytes))
	}
	if binary.LittleEndian.Uint32(b[32:]) != crc32.Checksum([]byte(name), castagnoli) {
		return damaged("it was put under another name")
	}
	return nil
}

func (x trailer) tag() string { return fmt.Sprintf("%08x-%x-%016x", x.crc, x.bytes, x.nonce) }

func (x trailer) object(key string) tiers.Object {
	return tiers.Object{Key: key, Tag: x.tag(), Bytes: x.bytes, CRC: x.crc, HasCRC: true}
}

func damaged(text string) error {
	return fmt.Errorf("%w: %s: take the bytes from another tier or a backup", tiers.ErrCorrupt, text)
}
