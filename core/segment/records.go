package segment

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Record is one record of a payload of kind KindRecords. Nil and empty differ for Key and Value.
type Record struct {
	Key     []byte
	Value   []byte
	Headers []RecordHeader
	Time    Time
}

// RecordHeader is a pair that travels with a record. Nil and empty differ for Value, not for Key.
type RecordHeader struct {
	Key   []byte
	Value []byte
}

// recordsBaseBytes is the first record's time, which opens a payload.
const recordsBaseBytes = 8

// Flags of a record that is more than a value.
const (
	recordHasTime    = 1 << iota // its time differs from that of the record before
	recordHasKey                 // its key is not nil
	recordHasHeaders             // it has at least one header
	recordFlags      = recordHasTime | recordHasKey | recordHasHeaders
)

// RecordEncoder makes the payload of a batch, record by record. There is one encoding of given
// records. The zero value is ready.
type RecordEncoder struct {
	MaxTime Time // greatest time of the records, for the identity header
	last    Time
	begun   bool
}

// Append encodes one more record at the end of dst.
func (e *RecordEncoder) Append(dst []byte, r *Record) []byte {
	if !e.begun {
		e.begun, e.last, e.MaxTime = true, r.Time, r.Time
		dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Time))
	}
	head := valueHead(r.Value) << 1
	if r.Key == nil && len(r.Headers) == 0 && r.Time == e.last {
		return append(binary.AppendUvarint(dst, head), r.Value...)
	}
	dst = appendExtras(binary.AppendUvarint(dst, head|1), r, e.last)
	e.last, e.MaxTime = r.Time, max(e.MaxTime, r.Time)
	return append(dst, r.Value...)
}

// AppendRecords appends the payload of a batch and returns the greatest time of its records. No
// records append nothing.
func AppendRecords(dst []byte, recs []Record) (payload []byte, maxTime Time) {
	var e RecordEncoder
	for i := range recs {
		dst = e.Append(dst, &recs[i])
	}
	return dst, e.MaxTime
}

// valueHead is a length in which nil differs from empty.
func valueHead(v []byte) uint64 {
	if v == nil {
		return 0
	}
	return uint64(len(v)) + 1
}

func appendExtras(dst []byte, r *Record, last Time) []byte {
	var flags byte
	if r.Time != last {
		flags |= recordHasTime
	}
	if r.Key != nil {
		flags |= recordHasKey
	}
	if len(r.Headers) > 0 {
		flags |= recordHasHeaders
	}
	dst = append(dst, flags)
	if flags&recordHasTime != 0 {
		dst = binary.AppendVarint(dst, r.Time-last) // wraps; the reader's sum wraps back
	}
	if flags&recordHasKey != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(r.Key)))
		dst = append(dst, r.Key...)
	}
	if flags&recordHasHeaders != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(r.Headers)))
		for i := range r.Headers {
			h := &r.Headers[i]
			dst = binary.AppendUvarint(dst, uint64(len(h.Key)))
			dst = append(dst, h.Key...)
			dst = binary.AppendUvarint(dst, valueHead(h.Value))
			dst = append(dst, h.Value...)
		}
	}
	return dst
}

// RecordsError says where a payload of records is malformed.
type RecordsError struct {
	Record   uint32 // index of the record in its batch
	Pos      int64  // byte position in the payload
	Expected string
	Found    string
}

func (e *RecordsError) Error() string {
	return fmt.Sprintf("segment: record %d of the batch, byte %d of its payload: expected %s, found %s",
		e.Record, e.Pos, e.Expected, e.Found)
}

// RecordIter walks the records of a payload without copying: slices alias the payload, and Headers
// is reused by the next Next. One goroutine at a time. The zero value has no records.
type RecordIter struct {
	payload []byte
	pos     int
	time    Time   // of the record before
	index   uint32 // of the next record
	count   uint32
	headers []RecordHeader
	err     *RecordsError
}

// Reset starts over at a payload that must hold exactly count records.
func (it *RecordIter) Reset(payload []byte, count uint32) {
	*it = RecordIter{payload: payload, count: count, headers: it.headers[:0]}
	switch room := len(payload) - recordsBaseBytes; {
	case count == 0:
		it.fail(0, "at least one record", "none")
	case room < 0:
		it.fail(0, "8 bytes of base time", fmt.Sprintf("%d bytes", len(payload)))
	case int64(count) > int64(room): // a record takes a byte or more
		it.fail(recordsBaseBytes, fmt.Sprintf("%d records", count), fmt.Sprintf("%d bytes", room))
	default:
		it.time = Time(binary.LittleEndian.Uint64(payload))
		it.pos = recordsBaseBytes
	}
}

// Err returns why Next stopped before the last record: nil, or a *RecordsError.
func (it *RecordIter) Err() error {
	if it.err == nil {
		return nil
	}
	return it.err
}

// Next decodes the next record into r. It returns false at the end and at damage; Err tells which.
// Bytes behind the last record are damage, reported in place of that record.
func (it *RecordIter) Next(r *Record) bool {
	if it.index >= it.count || it.err != nil {
		return false
	}
	head, ok := it.uvarint()
	if !ok {
		return false
	}
	r.Key, r.Headers = nil, nil
	if head&1 != 0 && !it.extras(r) {
		return false
	}
	r.Time = it.time
	r.Value, ok = it.bytesOrNil(head >> 1)
	if !ok {
		return false
	}
	it.index++
	if it.index == it.count && it.pos != len(it.payload) {
		it.index--
		return it.fail(it.pos, "the end of the payload", fmt.Sprintf("%d more bytes", len(it.payload)-it.pos))
	}
	return true
}

func (it *RecordIter) extras(r *Record) bool {
	if it.pos >= len(it.payload) {
		return it.fail(it.pos, "flags", "the end of the payload")
	}
	flags := it.payload[it.pos]
	if flags == 0 || flags&^recordFlags != 0 {
		return it.fail(it.pos, "flags of 1 to 7", fmt.Sprint(flags))
	}
	if flags&recordHasTime != 0 && it.index == 0 {
		return it.fail(it.pos, "no time delta in the first record", "one")
	}
	it.pos++
	if flags&recordHasTime != 0 {
		at := it.pos
		v, ok := it.uvarint()
		if !ok {
			return false
		}
		if v == 0 {
			return it.fail(at, "a time delta other than 0", "0")
		}
		it.time += Time(v>>1) ^ -Time(v&1)
	}
	if flags&recordHasKey != 0 {
		n, ok := it.uvarint()
		if !ok {
			return false
		}
		if r.Key, ok = it.bytes(n); !ok {
			return false
		}
	}
	return flags&recordHasHeaders == 0 || it.readHeaders(r)
}

func (it *RecordIter) readHeaders(r *Record) bool {
	at := it.pos
	n, ok := it.uvarint()
	if !ok {
		return false
	}
	if room := uint64(len(it.payload) - it.pos); n == 0 || n > room/2 { // a header takes two bytes or more
		return it.fail(at, fmt.Sprintf("1 to %d headers", room/2), fmt.Sprint(n))
	}
	it.headers = it.headers[:0]
	for ; n > 0; n-- {
		var h RecordHeader
		size, ok := it.uvarint()
		if !ok {
			return false
		}
		if h.Key, ok = it.bytes(size); !ok {
			return false
		}
		if size, ok = it.uvarint(); !ok {
			return false
		}
		if h.Value, ok = it.bytesOrNil(size); !ok {
			return false
		}
		it.headers = append(it.headers, h)
	}
	r.Headers = it.headers
	return true
}

// uvarint reads one varint; lengths of one and two bytes are nearly all there are.
func (it *RecordIter) uvarint() (uint64, bool) {
	p := it.payload
	if i := it.pos; i >= 0 && i+1 < len(p) {
		b := p[i]
		if b < 0x80 {
			it.pos = i + 1
			return uint64(b), true
		}
		if c := p[i+1]; c < 0x80 && c != 0 {
			it.pos = i + 2
			return uint64(b&0x7f) | uint64(c)<<7, true
		}
	}
	return it.uvarintSlow()
}

func (it *RecordIter) uvarintSlow() (uint64, bool) {
	v, n := binary.Uvarint(it.payload[it.pos:])
	switch {
	case n == 0:
		return 0, it.fail(it.pos, "a varint", "the end of the payload")
	case n < 0:
		return 0, it.fail(it.pos, "a varint of at most 64 bits", "a longer one")
	case n != max(1, (bits.Len64(v)+6)/7):
		return 0, it.fail(it.pos, "a varint in its shortest form", fmt.Sprintf("%d in %d bytes", v, n))
	}
	it.pos += n
	return v, true
}

// bytesOrNil takes a slice whose stored length is 0 for nil, else one more than its length.
func (it *RecordIter) bytesOrNil(n uint64) ([]byte, bool) {
	if n == 0 {
		return nil, true
	}
	return it.bytes(n - 1)
}

// bytes takes n bytes. Its capacity ends with it, so that appending to a value cannot reach the
// next record.
func (it *RecordIter) bytes(n uint64) ([]byte, bool) {
	room := uint64(len(it.payload) - it.pos)
	if n > room {
		return nil, it.fail(it.pos, fmt.Sprintf("%d bytes", n), fmt.Sprintf("%d before the end of the payload", room))
	}
	end := it.pos + int(n)
	b := it.payload[it.pos:end:end]
	it.pos = end
	return b, true
}

// fail records the first error; it returns false for the caller to pass on.
func (it *RecordIter) fail(pos int, expected, found string) bool {
	it.err = &RecordsError{Record: it.index, Pos: int64(pos), Expected: expected, Found: found}
	return false
}
