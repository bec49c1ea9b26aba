package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// Superblock is the log's root: identity, claims and watermarks. Two slots hold it; the valid one
// with the higher sequence wins. Every watermark in it may be stale: each is only ever raised.
type Superblock struct {
	Sequence         uint64 // of the save, rises by one each save
	LogID            LogID
	Epoch            Epoch // highest epoch claimed by an open
	Nonce            uint64
	Sync             SyncMode
	SectorBytes      uint32
	Clean            bool // the last act of a life that closed: Frontier is the end
	Complete         bool // the open that claimed Epoch has finished its recovery; Lineage counts
	Start            Offset
	HotStart         Offset
	Frontier         Offset // proven durable
	Committed        Offset // and the epoch that owned it
	CommittedEpoch   Epoch
	ManifestSequence uint64    // highest seen; 0 without a cold tier
	Created          Time      // wall time of the log's creation
	Lineage          []Lineage // of the last completed open, from the entry that owns Start-1 on
}

// SuperBytesMin is the size of a superblock file; a long lineage grows it in steps of this size.
const SuperBytesMin = 4096

// SuperBytesMax bounds a superblock file; a lineage that does not fit is refused.
const SuperBytesMax = 1 << 20

const (
	superMagic       = "VARVESUP"
	superFixedBytes  = 128 // before the lineage
	superCRCBytes    = 4
	superFlagClean   = 1
	superFlagDone    = 2
	superLineageMax  = (SuperBytesMax - superFixedBytes - superCRCBytes) / LineageBytes
	superReservedPos = 112
)

// ErrSuperNewer says that a superblock is of a newer format: refused by its version, untouched.
var ErrSuperNewer = errors.New("segment: superblock of a newer format")

// SuperError says why a superblock slot does not count.
type SuperError struct {
	Pos      int64 // byte position in the file
	Expected string
	Found    string
}

func (e *SuperError) Error() string {
	return fmt.Sprintf("segment: superblock at byte %d: expected %s, found %s", e.Pos, e.Expected, e.Found)
}

// What a torn save leaves is met at every other crash; these are shared so that a slot that does
// not count costs no allocation.
var (
	errSuperEmpty  = &SuperError{0, "a superblock", "an empty file"}
	errSuperZeros  = &SuperError{0, "magic " + superMagic, "zeros"}
	errSuperMagic  = &SuperError{0, "magic " + superMagic, "other bytes"}
	errSuperShort  = &SuperError{0, "at least 132 bytes", "a shorter file"}
	errSuperLength = &SuperError{12, "a length of 132 bytes up to 1 MiB", "another"}
	errSuperCut    = &SuperError{12, "as many bytes as the length states", "a shorter file"}
	errSuperCRC    = &SuperError{12, "a checksum, at the end of the length stated here, that matches the bytes before it", "another"}
)

// AppendSuper appends the encoded superblock, zero-padded to a multiple of SuperBytesMin. It fails
// only for a lineage so long that the file would pass SuperBytesMax.
func AppendSuper(dst []byte, s *Superblock) ([]byte, error) {
	if len(s.Lineage) > superLineageMax {
		return dst, fmt.Errorf("segment: superblock: lineage of %d epochs, at most %d fit", len(s.Lineage), superLineageMax)
	}
	check(validSector(s.SectorBytes), "sector size of a superblock")
	used := superFixedBytes + LineageBytes*len(s.Lineage) + superCRCBytes
	padded := (used + SuperBytesMin - 1) / SuperBytesMin * SuperBytesMin
	at := len(dst)
	dst = slices.Grow(dst, padded)[:at+padded]
	b := dst[at:]
	clear(b)

	le := binary.LittleEndian
	copy(b, superMagic)
	le.PutUint16(b[8:], FormatVersion)
	b[10] = byte(s.Sync)
	if s.Clean {
		b[11] |= superFlagClean
	}
	if s.Complete {
		b[11] |= superFlagDone
	}
	le.PutUint32(b[12:], uint32(used))
	copy(b[16:32], s.LogID[:])
	le.PutUint64(b[32:], s.Sequence)
	le.PutUint64(b[40:], s.Nonce)
	le.PutUint32(b[48:], s.Epoch)
	le.PutUint32(b[52:], s.CommittedEpoch)
	le.PutUint64(b[56:], uint64(s.Start))
	le.PutUint64(b[64:], uint64(s.HotStart))
	le.PutUint64(b[72:], uint64(s.Frontier))
	le.PutUint64(b[80:], uint64(s.Committed))
	le.PutUint64(b[88:], s.ManifestSequence)
	le.PutUint64(b[96:], uint64(s.Created))
	le.PutUint32(b[104:], s.SectorBytes)
	le.PutUint32(b[108:], uint32(len(s.Lineage)))
	PutLineage(b[superFixedBytes:], s.Lineage)
	le.PutUint32(b[used-superCRCBytes:], crc32.Update(0, castagnoli, b[:used-superCRCBytes]))
	check(superSane(b[:used]) == nil, "superblock that ReadSuper would refuse")
	return dst, nil
}

// ReadSuper decodes a superblock file into s and reuses the memory of s.Lineage; on an error s is
// unchanged. The error is a *SuperError, or matches ErrSuperNewer. Bytes behind the stated length
// are padding and do not count.
func ReadSuper(src []byte, s *Superblock) error {
	used, err := superUsed(src)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	b := src[:used]
	if v := le.Uint16(b[8:]); v > FormatVersion {
		return fmt.Errorf("%w: version %d, this program reads up to %d", ErrSuperNewer, v, FormatVersion)
	}
	if err := superSane(b); err != nil {
		return err
	}
	lineage := AppendLineage(s.Lineage[:0], b[superFixedBytes:used-superCRCBytes])
	*s = Superblock{
		Sequence: le.Uint64(b[32:]), LogID: LogID(b[16:32]),
		Epoch: le.Uint32(b[48:]), Nonce: le.Uint64(b[40:]),
		Sync: SyncMode(b[10]), SectorBytes: le.Uint32(b[104:]),
		Clean: b[11]&superFlagClean != 0, Complete: b[11]&superFlagDone != 0,
		Start: Offset(le.Uint64(b[56:])), HotStart: Offset(le.Uint64(b[64:])),
		Frontier: Offset(le.Uint64(b[72:])), Committed: Offset(le.Uint64(b[80:])),
		CommittedEpoch: le.Uint32(b[52:]), ManifestSequence: le.Uint64(b[88:]),
		Created: Time(le.Uint64(b[96:])), Lineage: lineage,
	}
	return nil
}

// superUsed finds the used part of a superblock and verifies what every version keeps: magic,
// version, length at 12, and a CRC as the last four bytes of that length.
func superUsed(src []byte) (int, error) {
	switch {
	case len(src) == 0:
		return 0, errSuperEmpty
	case len(src) < superFixedBytes+superCRCBytes:
		return 0, errSuperShort
	case string(src[:8]) != superMagic:
		for _, c := range src[:8] {
			if c != 0 {
				return 0, errSuperMagic
			}
		}
		return 0, errSuperZeros
	}
	le := binary.LittleEndian
	used := le.Uint32(src[12:])
	switch {
	case used < superFixedBytes+superCRCBytes || used > SuperBytesMax:
		return 0, errSuperLength
	case int64(used) > int64(len(src)):
		return 0, errSuperCut
	case le.Uint32(src[used-superCRCBytes:]) != crc32.Update(0, castagnoli, src[:used-superCRCBytes]):
		return 0, errSuperCRC
	}
	return int(used), nil
}

// superSane checks the fields of a used part whose checksum is right: what fails here was written
// by a program that is not of this format.
func superSane(b []byte) error {
	le := binary.LittleEndian
	bad := func(pos int64, expected string, found any) error {
		return &SuperError{pos, expected, fmt.Sprint(found)}
	}
	if v := le.Uint16(b[8:]); v == 0 {
		return bad(8, "a version of 1 or more", v)
	}
	if SyncMode(b[10]) > NoSync {
		return bad(10, "an ack policy of 0 to 2", b[10])
	}
	if b[11]&^(superFlagClean|superFlagDone) != 0 {
		return bad(11, "no flag above 2", b[11])
	}
	for pos := int64(56); pos <= 80; pos += 8 {
		if v := int64(le.Uint64(b[pos:])); v < 0 {
			return bad(pos, "an offset of 0 or more", v)
		}
	}
	if n := le.Uint32(b[104:]); !validSector(n) {
		return bad(104, "a sector size, a power of two in 512..4096", n)
	}
	want := (len(b) - superFixedBytes - superCRCBytes) / LineageBytes
	if n := le.Uint32(b[108:]); int64(n) != int64(want) ||
		len(b) != superFixedBytes+LineageBytes*want+superCRCBytes {
		return bad(108, fmt.Sprintf("a lineage that fills the length of %d bytes", len(b)), fmt.Sprintf("%d entries", n))
	}
	for pos := superReservedPos; pos < superFixedBytes; pos++ {
		if b[pos] != 0 {
			return bad(int64(pos), "a reserved zero", b[pos])
		}
	}
	if pos, expected, found := CheckLineage(b[superFixedBytes : len(b)-superCRCBytes]); expected != "" {
		return bad(superFixedBytes+int64(pos), expected, found)
	}
	return nil
}
