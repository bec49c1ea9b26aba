// Package warmentry is the format of what the warm tier holds: entries of a stream, each of them one
// commit of the log, or the marker that begins a generation.
//
// An entry is a header, in which the writer says who it is and where the log stands, and behind it the
// batches of the commit: identity header and payload of each, as they are in every tier. Each part has
// a checksum of its own, so that writing one costs no second pass over payloads. Docs: format.md.
package warmentry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"varve/core/segment"
)

// Version is the version that is written.
const Version = 1

// Kind says what an entry is.
type Kind uint8

// Kinds of entries.
const (
	Marker Kind = 1 // begins a generation, or announces what a header says; no batches
	Data   Kind = 2 // the batches of a commit
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Marker:
		return "marker"
	case Data:
		return "data"
	}
	return "unknown kind"
}

// Entry is the header of an entry.
type Entry struct {
	Kind           Kind
	LogID          segment.LogID
	Generation     uint64 // of its id; never below Epoch
	Epoch          segment.Epoch
	Nonce          uint64
	First, End     segment.Offset // span of its batches; both 0 in a marker
	Start          segment.Offset // first offset of the log
	Committed      segment.Offset
	CommittedEpoch segment.Epoch  // that owned Committed
	WarmFrom       segment.Offset // first offset that the warm tier means to hold
	Batches        uint32
	BodyBytes      int64             // of all batches, identity headers included
	Lineage        []segment.Lineage // of the log, from the entry that owns Start-1 on
}

const (
	magic      = "VARVEWRM"
	fixedBytes = 128 // before the lineage
	crcBytes   = 4
	reserved   = 112

	// LineageMax bounds the lineage of an entry.
	LineageMax = 87370
	headerMax  = fixedBytes + segment.LineageBytes*LineageMax + crcBytes
	// HeaderBytesMin is the size of a header without lineage.
	HeaderBytesMin = fixedBytes + crcBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrNewer says that an entry is of a newer format.
var ErrNewer = errors.New("warmentry: entry of a newer format")

// ErrForeign says that the bytes are no entry of any log.
var ErrForeign = errors.New("warmentry: no entry of a log")

// Error says why an entry does not count.
type Error struct {
	Pos      int64 // byte position in the entry
	Expected string
	Found    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("warmentry: entry at byte %d: expected %s, found %s", e.Pos, e.Expected, e.Found)
}

// HeaderBytes returns the size of the header of an entry with a lineage of n epochs.
func HeaderBytes(n int) int { return fixedBytes + segment.LineageBytes*n + crcBytes }

// AppendHeader appends the encoded header. The batches must follow: Batches of them, with BodyBytes in
// all. It fails only for a lineage that is too long.
func AppendHeader(dst []byte, e *Entry) ([]byte, error) {
	if len(e.Lineage) > LineageMax {
		return dst, fmt.Errorf("warmentry: lineage of %d epochs, at most %d fit", len(e.Lineage), LineageMax)
	}
	used := HeaderBytes(len(e.Lineage))
	at := len(dst)
	dst = slices.Grow(dst, used)[:at+used]
	b := dst[at:]
	clear(b[:fixedBytes])

	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint16(b[8:], Version)
	b[10] = byte(e.Kind)
	le.PutUint32(b[12:], uint32(used))
	copy(b[16:], e.LogID[:])
	le.PutUint64(b[32:], e.Generation)
	le.PutUint64(b[40:], e.Nonce)
	le.PutUint64(b[48:], uint64(e.First))
	le.PutUint64(b[56:], uint64(e.End))
	le.PutUint64(b[64:], uint64(e.Start))
	le.PutUint64(b[72:], uint64(e.Committed))
	le.PutUint64(b[80:], uint64(e.WarmFrom))
	le.PutUint64(b[88:], uint64(e.BodyBytes))
	le.PutUint32(b[96:], e.Epoch)
	le.PutUint32(b[100:], e.CommittedEpoch)
	le.PutUint32(b[104:], e.Batches)
	le.PutUint32(b[108:], uint32(len(e.Lineage)))
	segment.PutLineage(b[fixedBytes:], e.Lineage)
	le.PutUint32(b[used-crcBytes:], crc32.Update(0, castagnoli, b[:used-crcBytes]))
	if err := sane(b); err != nil {
		panic("warmentry: an entry that no reader would take: " + err.Error())
	}
	return dst, nil
}

// AppendBatch appends a batch: the encoded identity header, as it stands in the segment, and payload.
func AppendBatch(dst, identity, payload []byte) []byte {
	return append(append(dst, identity[:segment.IdentityBytes]...), payload...)
}

// ReadHeader decodes the header of an entry into e and reuses the memory of e.Lineage; on an error e is
// unchanged. body are the bytes behind it, as many as the header states; Walk verifies them. The error
// is a *Error, or matches ErrForeign or ErrNewer.
func ReadHeader(src []byte, e *Entry) (body []byte, err error) {
	used, err := checkHeader(src)
	if err != nil {
		return nil, err
	}
	fill(src[:used], e)
	return src[used:], nil
}

// Read is ReadHeader, and verifies every batch too.
func Read(src []byte, e *Entry) (body []byte, err error) {
	used, err := checkHeader(src)
	if err != nil {
		return nil, err
	}
	var h Entry
	h.decode(src[:used])
	w := h.Walk(src[used:])
	w.pos = int64(used)
	var i segment.Identity
	for err == nil {
		_, err = w.Next(&i)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	fill(src[:used], e)
	return src[used:], nil
}

func fill(b []byte, e *Entry) {
	e.decode(b)
	e.Lineage = segment.AppendLineage(e.Lineage[:0], b[fixedBytes:len(b)-crcBytes])
}

// decode reads all of a header but the lineage.
func (e *Entry) decode(b []byte) {
	le := binary.LittleEndian
	b = b[:fixedBytes:fixedBytes]
	e.Kind, e.LogID = Kind(b[10]), segment.LogID(b[16:32])
	e.Generation, e.Nonce = le.Uint64(b[32:]), le.Uint64(b[40:])
	e.First, e.End = segment.Offset(le.Uint64(b[48:])), segment.Offset(le.Uint64(b[56:]))
	e.Start, e.Committed = segment.Offset(le.Uint64(b[64:])), segment.Offset(le.Uint64(b[72:]))
	e.WarmFrom, e.BodyBytes = segment.Offset(le.Uint64(b[80:])), int64(le.Uint64(b[88:]))
	e.Epoch, e.CommittedEpoch, e.Batches = le.Uint32(b[96:]), le.Uint32(b[100:]), le.Uint32(b[104:])
}

// checkHeader returns the size of the header of an entry, all of which holds.
func checkHeader(src []byte) (int, error) {
	used, err := headerBytes(src)
	if err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	b := src[:used]
	if v := le.Uint16(b[8:]); v > Version {
		return 0, fmt.Errorf("%w: version %d, this program reads up to %d", ErrNewer, v, Version)
	}
	if err := sane(b); err != nil {
		return 0, err
	}
	if n := int64(le.Uint64(b[88:])); n != int64(len(src)-used) {
		return 0, &Error{88, fmt.Sprintf("a body of the %d bytes that follow the header", len(src)-used), fmt.Sprint(n)}
	}
	return used, nil
}

// headerBytes finds the header and verifies what every version keeps: magic, version, length at 12,
// and a CRC as the last four bytes of that length.
func headerBytes(src []byte) (int, error) {
	if len(src) < len(magic) || string(src[:len(magic)]) != magic {
		return 0, fmt.Errorf("%w: %d bytes that do not begin with %s", ErrForeign, len(src), magic)
	}
	if len(src) < HeaderBytesMin {
		return 0, &Error{int64(len(src)), fmt.Sprintf("a header of at least %d bytes", HeaderBytesMin), "the end"}
	}
	le := binary.LittleEndian
	used := int64(le.Uint32(src[12:]))
	if used < HeaderBytesMin || used > headerMax || used > int64(len(src)) {
		return 0, &Error{12, fmt.Sprintf("a header length of %d to %d", HeaderBytesMin, min(headerMax, len(src))), fmt.Sprint(used)}
	}
	if sum, want := le.Uint32(src[used-crcBytes:]), crc32.Update(0, castagnoli, src[:used-crcBytes]); sum != want {
		return 0, &Error{used - crcBytes, fmt.Sprintf("the checksum %08x of the header", want), fmt.Sprintf("%08x", sum)}
	}
	return int(used), nil
}

// sane checks the fields of a header whose checksum is right: what fails here was written by a program
// that is not of this format.
func sane(b []byte) error {
	le := binary.LittleEndian
	bad := func(pos int64, expected string, found any) error {
		return &Error{pos, expected, fmt.Sprint(found)}
	}
	kind := Kind(b[10])
	first, end := int64(le.Uint64(b[48:])), int64(le.Uint64(b[56:]))
	batches, body := le.Uint32(b[104:]), int64(le.Uint64(b[88:]))
	switch {
	case le.Uint16(b[8:]) == 0:
		return bad(8, "a version of 1 or more", 0)
	case kind != Marker && kind != Data:
		return bad(10, "a kind of 1 or 2", b[10])
	case b[11] != 0:
		return bad(11, "a reserved zero", b[11])
	case le.Uint32(b[96:]) == 0:
		return bad(96, "an epoch of 1 or more", 0)
	case le.Uint64(b[32:]) < uint64(le.Uint32(b[96:])):
		return bad(32, fmt.Sprintf("a generation of at least the epoch, %d", le.Uint32(b[96:])), le.Uint64(b[32:]))
	case kind == Marker && (first != 0 || end != 0 || batches != 0 || body != 0):
		return bad(48, "no batches in a marker", fmt.Sprintf("[%d, %d), %d batches of %d bytes", first, end, batches, body))
	case kind == Data && (first < 0 || end <= first):
		return bad(48, "a span of offsets", fmt.Sprintf("[%d, %d)", first, end))
	case kind == Data && (batches == 0 || body/segment.IdentityBytes < int64(batches)):
		return bad(88, fmt.Sprintf("a body that holds the identity headers of its batches, at least one, found %d", batches), body)
	}
	for pos := int64(64); pos <= 80; pos += 8 {
		if v := int64(le.Uint64(b[pos:])); v < 0 {
			return bad(pos, "an offset of 0 or more", v)
		}
	}
	if n, want := int64(le.Uint32(b[108:])), (len(b)-HeaderBytesMin)/segment.LineageBytes; n != int64(want) || len(b) != HeaderBytes(want) {
		return bad(108, fmt.Sprintf("a lineage that fills the header of %d bytes", len(b)), fmt.Sprintf("%d entries", n))
	}
	if le.Uint64(b[reserved:])|le.Uint64(b[reserved+8:]) != 0 {
		for pos := reserved; pos < fixedBytes; pos++ {
			if b[pos] != 0 {
				return bad(int64(pos), "a reserved zero", b[pos])
			}
		}
	}
	if pos, expected, found := segment.CheckLineage(b[fixedBytes : len(b)-crcBytes]); expected != "" {
		return bad(fixedBytes+int64(pos), expected, found)
	}
	return nil
}
