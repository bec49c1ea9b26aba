package segment

import (
	"encoding/binary"
	"hash/crc32"
)

// Kind says how a segment file came to be.
type Kind uint8

// Segment kinds.
const (
	Created     Kind = 1 // by an append; its batches have the epoch of its owner
	Replacement Kind = 2 // by a rescue: a verified copy of [Base, End) of another file
	Lost        Kind = 3 // by a repair: no batches; declares that [Base, End) is lost
)

// Header opens a segment file.
type Header struct {
	Kind        Kind
	Sync        SyncMode
	SectorBytes uint32
	LogID       LogID
	ID          ID
	Epoch       Epoch // of the batches in this file
	Base        Offset
	End         Offset // end of a replacement's span; 0 in a created file
	Created     Time
	Nonce       uint64 // of the owner
}

// FormatVersion is the version of the on-disk format that this package writes, and the newest that
// it reads.
const FormatVersion = 1

// HeaderBytes is the encoded size of a Header; zeros fill its sector.
const HeaderBytes = 128

// Sector sizes that a file may state; a power of two.
const (
	SectorBytesMin = 512
	SectorBytesMax = 4096
)

const (
	headerMagic  = "VARVESEG"
	headerCRCPos = HeaderBytes - 4
	headerUsed   = 80 // reserved zeros from here to the CRC
)

// check panics on a broken invariant of our own code; never on what a file holds.
func check(cond bool, text string) {
	if !cond {
		panic("segment: " + text)
	}
}

// validSector reports whether n is a sector size that the format allows.
func validSector(n uint32) bool {
	return n >= SectorBytesMin && n <= SectorBytesMax && n&(n-1) == 0
}

// PutHeader encodes h into the first sector of dst, zeros behind it included, and returns its CRC,
// which is the chain of the first batch. dst has at least h.SectorBytes.
func PutHeader(dst []byte, h *Header) (crc uint32) {
	check(validSector(h.SectorBytes), "sector size of a header")
	check(len(dst) >= int(h.SectorBytes), "header needs a whole sector")
	le := binary.LittleEndian
	dst = dst[:h.SectorBytes]
	clear(dst)
	copy(dst, headerMagic)
	le.PutUint16(dst[8:], FormatVersion)
	dst[10] = byte(h.Kind)
	dst[11] = byte(h.Sync)
	le.PutUint32(dst[12:], h.SectorBytes)
	copy(dst[16:32], h.LogID[:])
	le.PutUint64(dst[32:], uint64(h.ID))
	le.PutUint32(dst[40:], h.Epoch)
	le.PutUint64(dst[48:], uint64(h.Base))
	le.PutUint64(dst[56:], uint64(h.End))
	le.PutUint64(dst[64:], uint64(h.Created))
	le.PutUint64(dst[72:], h.Nonce)
	crc = crc32.Update(0, castagnoli, dst[:headerCRCPos])
	le.PutUint32(dst[headerCRCPos:], crc)
	return crc
}

// ReadHeader decodes a segment header from the start of a file. The verdict is HeaderGood,
// HeaderDamaged or HeaderNewer: whether it is of this log and under its own name is the caller's to
// compare. h and crc count only with HeaderGood. A newer format keeps magic, version and a CRC in
// the same places, so that it is refused by its version and not taken for damage.
func ReadHeader(src []byte) (h Header, crc uint32, v HeaderVerdict, version uint16) {
	if len(src) < HeaderBytes {
		return h, 0, HeaderDamaged, 0
	}
	le := binary.LittleEndian
	src = src[:HeaderBytes:HeaderBytes]
	crc = le.Uint32(src[headerCRCPos:])
	version = le.Uint16(src[8:])
	if string(src[:8]) != headerMagic || version == 0 ||
		crc != crc32.Update(0, castagnoli, src[:headerCRCPos]) {
		return h, 0, HeaderDamaged, version
	}
	if version > FormatVersion {
		return h, 0, HeaderNewer, version
	}
	h.Kind = Kind(src[10])
	h.Sync = SyncMode(src[11])
	h.SectorBytes = le.Uint32(src[12:])
	copy(h.LogID[:], src[16:32])
	h.ID = ID(le.Uint64(src[32:]))
	h.Epoch = le.Uint32(src[40:])
	h.Base = Offset(le.Uint64(src[48:]))
	h.End = Offset(le.Uint64(src[56:]))
	h.Created = Time(le.Uint64(src[64:]))
	h.Nonce = le.Uint64(src[72:])
	reserved := uint64(le.Uint32(src[44:]))
	for _, b := range src[headerUsed:headerCRCPos] {
		reserved |= uint64(b)
	}
	if reserved != 0 || !h.sane() {
		return h, 0, HeaderDamaged, version
	}
	return h, crc, HeaderGood, version
}

// sane reports whether a header could have been written by this format's writers.
func (h *Header) sane() bool {
	span := h.Kind == Created && h.End == 0 || (h.Kind == Replacement || h.Kind == Lost) && h.End > h.Base
	return span && h.Sync <= NoSync && validSector(h.SectorBytes) && h.Base >= 0
}
