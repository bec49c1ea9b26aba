package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// HeaderBytes is the length of a batch's header.
const HeaderBytes = 61

// positions of fields, as in the package comment.
const (
	atLength    = 8
	atEpoch     = 12
	atMagic     = 16
	atCRC       = 17
	atBody      = 21 // what the checksum covers begins here
	atLastDelta = 23
	atBaseTime  = 27
	atMaxTime   = 35
	atProducer  = 43
	atProdEpoch = 51
	atSequence  = 53
	atCount     = 57
)

const magic = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Codec is how the records of a batch are compressed.
type Codec uint8

// Codecs, by Kafka's numbers.
const (
	Plain Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
	codecCount
)

var codecNames = [codecCount]string{"none", "gzip", "snappy", "lz4", "zstd"}

func (c Codec) String() string {
	if c < codecCount {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// Attributes are the flags of a batch.
type Attributes uint16

const (
	codecMask     Attributes = 0b111
	appendTime    Attributes = 1 << 3
	transactional Attributes = 1 << 4
	control       Attributes = 1 << 5
)

// Codec returns how the records are compressed.
func (a Attributes) Codec() Codec { return Codec(a & codecMask) }

// AppendTime reports whether the time of every record is the max timestamp, given by the broker.
func (a Attributes) AppendTime() bool { return a&appendTime != 0 }

// Header is a batch's header, without what the broker gives it.
type Header struct {
	Attributes    Attributes
	Records       uint32
	BaseTime      int64 // milliseconds since 1970
	MaxTime       int64
	ProducerID    int64 // -1: the batch is not idempotent
	ProducerEpoch int16
	Sequence      int32
}

// Fault says what kind of thing is wrong with a batch: clients are told by different codes.
type Fault uint8

// Faults.
const (
	Corrupt       Fault = iota + 1 // the bytes are not what the producer made
	Invalid                        // they are, and the producer should not have made them so
	OldFormat                      // a message set of format v0 or v1
	BadTime                        // a timestamp that the producer may not give
	Transactional                  // part of a transaction
	Oversized                      // more bytes after decompressing than are looked at
)

// Error says what is wrong with a batch, and where.
type Error struct {
	Fault    Fault
	Record   int // number of the record in the batch; -1: the header
	Expected string
	Found    string
}

func (e *Error) Error() string {
	where := "header"
	if e.Record >= 0 {
		where = fmt.Sprintf("record %d", e.Record)
	}
	return fmt.Sprintf("kafka: batch refused at its %s: expected %s, found %s", where, e.Expected, e.Found)
}

func headerError(f Fault, expected, format string, args ...any) error {
	return &Error{Fault: f, Record: -1, Expected: expected, Found: fmt.Sprintf(format, args...)}
}

// Parse checks the header of exactly one batch, as a producer may send it, and the checksum of all of
// it. It does not look at the records: see Walker.
func Parse(b []byte) (h Header, err error) {
	if h, err = Verify(b); err == nil && h.Attributes.AppendTime() {
		err = headerError(BadTime, "times of creation", "append times, which only a broker gives")
	}
	return h, err
}

// Verify checks a stored batch as Parse does one that comes: the broker may have given it append times.
func Verify(b []byte) (h Header, err error) {
	if len(b) <= atMagic {
		return h, headerError(Corrupt, "at least 61 bytes", "%d", len(b))
	}
	if m := b[atMagic]; m != magic {
		if m < magic {
			return h, headerError(OldFormat, "magic 2", "%d, a message set of a client before Kafka 0.11", m)
		}
		return h, headerError(Corrupt, "magic 2", "%d", m)
	}
	if len(b) < HeaderBytes {
		return h, headerError(Corrupt, "at least 61 bytes", "%d", len(b))
	}
	switch length := int64(int32(binary.BigEndian.Uint32(b[atLength:]))) + atEpoch; {
	case length < HeaderBytes || length > int64(len(b)):
		return h, headerError(Corrupt, fmt.Sprintf("a batch of %d bytes", len(b)), "a length of %d", length)
	case length < int64(len(b)):
		return h, headerError(Invalid, "one batch", "%d bytes behind it", int64(len(b))-length)
	}
	if want, found := binary.BigEndian.Uint32(b[atCRC:]), crc32.Checksum(b[atBody:], castagnoli); want != found {
		return h, headerError(Corrupt, fmt.Sprintf("checksum %08x", want), "%08x", found)
	}
	h = decode(b)
	return h, h.check(int32(binary.BigEndian.Uint32(b[atLastDelta:])), len(b)-HeaderBytes)
}

// Stored reads the header of a batch that Parse has checked when it came.
func Stored(b []byte) (Header, error) {
	if len(b) < HeaderBytes || b[atMagic] != magic {
		return Header{}, headerError(Corrupt, "a stored batch", "%d bytes", len(b))
	}
	return decode(b), nil
}

func decode(b []byte) Header {
	_ = b[HeaderBytes-1]
	return Header{
		Attributes:    Attributes(binary.BigEndian.Uint16(b[atBody:])),
		Records:       binary.BigEndian.Uint32(b[atCount:]),
		BaseTime:      int64(binary.BigEndian.Uint64(b[atBaseTime:])),
		MaxTime:       int64(binary.BigEndian.Uint64(b[atMaxTime:])),
		ProducerID:    int64(binary.BigEndian.Uint64(b[atProducer:])),
		ProducerEpoch: int16(binary.BigEndian.Uint16(b[atProdEpoch:])),
		Sequence:      int32(binary.BigEndian.Uint32(b[atSequence:])),
	}
}

// check says what in a header cannot be. bytes is the length of what is behind it.
func (h *Header) check(lastDelta int32, bytes int) error {
	switch {
	case h.Attributes&control != 0:
		return headerError(Invalid, "records", "a control batch, which only a broker writes")
	case h.Attributes&transactional != 0:
		return headerError(Transactional, "no transaction", "attributes %#x", uint16(h.Attributes))
	case h.Attributes&^(codecMask|appendTime) != 0 || h.Attributes.Codec() >= codecCount:
		return headerError(Invalid, "attributes 0 to 4, the codec", "%#x", uint16(h.Attributes))
	case h.Records == 0 || h.Records > 1<<31-1:
		return headerError(Invalid, "at least one record", "a count of %d", int32(h.Records))
	case int64(lastDelta) != int64(h.Records)-1:
		return headerError(Invalid, fmt.Sprintf("last offset delta %d", h.Records-1), "%d", lastDelta)
	case h.Attributes.Codec() == Plain && int64(h.Records)*recordBytesMin > int64(bytes):
		return headerError(Invalid, fmt.Sprintf("at least %d bytes of records", int64(h.Records)*recordBytesMin), "%d", bytes)
	case h.ProducerID < -1:
		return headerError(Invalid, "producer id -1 or above", "%d", h.ProducerID)
	case h.ProducerID >= 0 && h.ProducerEpoch < 0:
		return headerError(Invalid, "the epoch of an idempotent producer", "%d", h.ProducerEpoch)
	case h.ProducerID >= 0 && h.Sequence < 0:
		return headerError(Invalid, "the sequence of an idempotent producer", "%d", h.Sequence)
	}
	return nil
}

// Records returns what is behind the header.
func Records(b []byte) []byte { return b[HeaderBytes:] }

// Patch writes what the broker gives a batch: none of it is in the checksum.
func Patch(b []byte, base int64, epoch int32) {
	_ = b[HeaderBytes-1]
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint32(b[atEpoch:], uint32(epoch))
}

// SetMaxTime writes the greatest timestamp, and whether it is the append time of all records, as a
// broker does where the producer's header says something else. The checksum is made anew.
func SetMaxTime(b []byte, h *Header, ms int64, isAppendTime bool) {
	_ = b[HeaderBytes-1]
	h.MaxTime = ms
	if isAppendTime {
		h.Attributes |= appendTime
	}
	binary.BigEndian.PutUint16(b[atBody:], uint16(h.Attributes))
	binary.BigEndian.PutUint64(b[atMaxTime:], uint64(ms))
	binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atBody:], castagnoli))
}

// Empty returns a batch without records that stands for as many offsets, as a compacted log of Kafka's has
// them: a client gets nothing of it, and goes on behind it.
func Empty(offsets uint32, ms int64) []byte {
	b := make([]byte, HeaderBytes)
	binary.BigEndian.PutUint32(b[atLength:], HeaderBytes-atEpoch)
	b[atMagic] = magic
	binary.BigEndian.PutUint32(b[atLastDelta:], offsets-1)
	binary.BigEndian.PutUint64(b[atBaseTime:], uint64(ms))
	binary.BigEndian.PutUint64(b[atMaxTime:], uint64(ms))
	for i := atProducer; i < atCount; i++ { // no producer: -1, -1, -1
		b[i] = 0xff
	}
	binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atBody:], castagnoli))
	return b
}
