package segment

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// Sizes of the headers that precede a payload in a segment.
const (
	PlacementBytes   = 40
	IdentityBytes    = 72
	BatchHeaderBytes = PlacementBytes + IdentityBytes
)

// Kinds of payload. The core treats every payload as opaque.
const (
	KindRecords uint8 = 1 // Varve records: AppendRecords, RecordIter
	KindKafka   uint8 = 2 // one Kafka RecordBatch v2, verbatim
)

// PayloadBytesMax is the greatest payload length that a header may state.
const PayloadBytesMax = 1 << 30

// batchMagic is "VRVB", read little-endian.
const batchMagic = 'V' | 'R'<<8 | 'V'<<16 | 'B'<<24

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Identity is what a batch is, in every tier and for ever: it travels unchanged.
type Identity struct {
	PayloadBytes  uint32
	Kind          uint8
	Records       uint32 // >= 1
	Base          Offset // of the first record
	Epoch         Epoch
	Nonce         uint64 // of the owner
	AppendTime    Time   // wall time at the cut
	MaxTime       Time   // greatest timestamp of the records
	ProducerID    int64  // -1: none
	ProducerEpoch int16  // -1: none
	Sequence      int32  // of the first record; -1: none
	PayloadCRC    uint32 // PayloadCRC of the payload, unseeded
}

// End returns the offset after the last record.
func (i *Identity) End() Offset { return i.Base + Offset(i.Records) }

// Placement is where a batch stands in one file. It is written anew for each file.
type Placement struct {
	ID       ID     // of the file
	Commit   uint64 // commit counter, >= 1
	Chain    uint32 // CRC of the placement header before; of the segment header for the first
	Frontier Offset // proven durable when the header was encoded; never above the batch's base
}

// IdentitySeed is where the CRC of a log's identity headers starts.
func IdentitySeed(log LogID) uint32 { return crcBytes(0, &log) }

// PlacementSeed is where the CRC of a file's placement headers starts: bytes of another log or
// another file do not verify.
func PlacementSeed(log LogID, id ID) uint32 { return PlacementSeedOf(IdentitySeed(log), id) }

// PlacementSeedOf is PlacementSeed of the log with this identity seed.
func PlacementSeedOf(identitySeed uint32, id ID) uint32 {
	crc := ^identitySeed
	for i := 0; i < 64; i += 8 {
		crc = castagnoli[byte(crc)^byte(id>>i)] ^ crc>>8
	}
	return ^crc
}

// crcBytes is crc32.Update byte by byte: the library's version makes its argument escape, and a
// seed must cost no allocation.
func crcBytes(crc uint32, b *LogID) uint32 {
	crc = ^crc
	for _, v := range b {
		crc = castagnoli[byte(crc)^v] ^ crc>>8
	}
	return ^crc
}

// PayloadCRC is the checksum of a payload: CRC32C from 0.
func PayloadCRC(payload []byte) uint32 { return crc32.Update(0, castagnoli, payload) }

// PutIdentity encodes an identity header into dst[:IdentityBytes] and returns its CRC.
func PutIdentity(dst []byte, i *Identity, identitySeed uint32) (identityCRC uint32) {
	le := binary.LittleEndian
	d := dst[:IdentityBytes:IdentityBytes]
	le.PutUint32(d[0:], i.PayloadBytes)
	d[4] = i.Kind
	d[5] = 0
	le.PutUint16(d[6:], uint16(i.ProducerEpoch))
	le.PutUint32(d[8:], i.Records)
	le.PutUint32(d[12:], i.Epoch)
	le.PutUint64(d[16:], uint64(i.Base))
	le.PutUint64(d[24:], i.Nonce)
	le.PutUint64(d[32:], uint64(i.AppendTime))
	le.PutUint64(d[40:], uint64(i.MaxTime))
	le.PutUint64(d[48:], uint64(i.ProducerID))
	le.PutUint32(d[56:], uint32(i.Sequence))
	le.PutUint32(d[60:], i.PayloadCRC)
	le.PutUint32(d[64:], 0)
	identityCRC = crc32.Update(identitySeed, castagnoli, d[:68])
	le.PutUint32(d[68:], identityCRC)
	return identityCRC
}

// PutBatchHeader encodes placement and identity into dst[:BatchHeaderBytes] and returns the CRC of
// the placement header, which is the next batch's chain.
func PutBatchHeader(dst []byte, p *Placement, i *Identity, placementSeed, identitySeed uint32) (placementCRC uint32) {
	le := binary.LittleEndian
	dst = dst[:BatchHeaderBytes:BatchHeaderBytes]

	identityCRC := PutIdentity(dst[PlacementBytes:], i, identitySeed)
	le.PutUint32(dst[0:], batchMagic)
	le.PutUint32(dst[4:], p.Chain)
	le.PutUint64(dst[8:], uint64(p.ID))
	le.PutUint64(dst[16:], p.Commit)
	le.PutUint64(dst[24:], uint64(p.Frontier))
	le.PutUint32(dst[32:], identityCRC)
	placementCRC = crc32.Update(placementSeed, castagnoli, dst[:36])
	le.PutUint32(dst[36:], placementCRC)
	return placementCRC
}

// ReadBatchHeader decodes what PutBatchHeader made. It is ok only if everything holds that the
// bytes alone can show: magic, both checksums, that the two headers belong together, zeros where
// zeros must be, and fields in bounds. The caller still compares what it knows: the file's id, the
// chain, offsets that follow each other. Without ok the other results are what was found, for a
// message, and must not be used.
func ReadBatchHeader(src []byte, placementSeed, identitySeed uint32) (p Placement, i Identity, placementCRC uint32, ok bool) {
	placementCRC, ok = DecodeBatchHeader(&p, &i, src, placementSeed, identitySeed)
	return p, i, placementCRC, ok
}

// WholeBatch reports whether src holds a batch whole, if one begins there.
func WholeBatch(src []byte) bool {
	return len(src) >= BatchHeaderBytes &&
		int64(binary.LittleEndian.Uint32(src[PlacementBytes:])) <= int64(len(src)-BatchHeaderBytes)
}

// DecodeBatchHeader is ReadBatchHeader in place: a scan reads millions of headers.
func DecodeBatchHeader(p *Placement, i *Identity, src []byte, placementSeed, identitySeed uint32) (placementCRC uint32, ok bool) {
	le := binary.LittleEndian
	if len(src) < BatchHeaderBytes || le.Uint32(src) != batchMagic { // most positions that are tried are no batch
		*p, *i = Placement{}, Identity{}
		return 0, false
	}
	src = src[:BatchHeaderBytes:BatchHeaderBytes]
	placementCRC = le.Uint32(src[36:])
	p.Chain = le.Uint32(src[4:])
	p.ID = ID(le.Uint64(src[8:]))
	p.Commit = le.Uint64(src[16:])
	p.Frontier = Offset(le.Uint64(src[24:]))

	s := src[PlacementBytes:]
	identityCRC := i.decode(s)

	ok = identityCRC == le.Uint32(src[32:]) &&
		placementCRC == crc32.Update(placementSeed, castagnoli, src[:36]) &&
		i.verifies(s, identitySeed) && p.Commit >= 1 && 0 <= p.Frontier && p.Frontier <= i.Base
	return placementCRC, ok
}

// DecodeIdentity decodes what PutIdentity made. It is ok only if checksum, zeros and bounds hold;
// without ok the identity is what was found, for a message, and must not be used.
func DecodeIdentity(i *Identity, src []byte, identitySeed uint32) (ok bool) {
	if len(src) < IdentityBytes {
		*i = Identity{}
		return false
	}
	i.decode(src)
	return i.verifies(src, identitySeed)
}

// decode reads the fields and returns the CRC that stands beside them.
func (i *Identity) decode(s []byte) (identityCRC uint32) {
	le := binary.LittleEndian
	s = s[:IdentityBytes:IdentityBytes]
	i.PayloadBytes = le.Uint32(s[0:])
	i.Kind = s[4]
	i.ProducerEpoch = int16(le.Uint16(s[6:]))
	i.Records = le.Uint32(s[8:])
	i.Epoch = le.Uint32(s[12:])
	i.Base = Offset(le.Uint64(s[16:]))
	i.Nonce = le.Uint64(s[24:])
	i.AppendTime = Time(le.Uint64(s[32:]))
	i.MaxTime = Time(le.Uint64(s[40:]))
	i.ProducerID = int64(le.Uint64(s[48:]))
	i.Sequence = int32(le.Uint32(s[56:]))
	i.PayloadCRC = le.Uint32(s[60:])
	return le.Uint32(s[68:])
}

// verifies reports whether the bytes that i was decoded from can be those of an identity header.
func (i *Identity) verifies(s []byte, identitySeed uint32) bool {
	le := binary.LittleEndian
	return le.Uint32(s[68:]) == crc32.Update(identitySeed, castagnoli, s[:68]) &&
		s[5] == 0 && le.Uint32(s[64:]) == 0 && i.sane()
}

// sane reports whether an identity could have been written by this format's writers.
func (i *Identity) sane() bool {
	return i.PayloadBytes <= PayloadBytesMax &&
		(i.Kind == KindRecords || i.Kind == KindKafka) &&
		i.Records >= 1 &&
		i.Base >= 0 && i.Base <= math.MaxInt64-Offset(i.Records)
}
