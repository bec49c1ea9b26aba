package batch

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// recordBytesMin is the length of the smallest record: its length, attributes, two deltas, no key, no
// value, no headers; one byte each.
const recordBytesMin = 7

// recordBytesMax is what a record may be long: Kafka's lengths are 32 bits.
const recordBytesMax = math.MaxInt32

// Walker steps through the records of a batch. Keys and values are passed over; what is looked at is
// whether the bytes are that many records, and when each of them was.
//
// A compressed batch is read through a window, so that memory does not grow with what it decompresses
// to, and only so many bytes of it are looked at.
type Walker struct {
	h     Header
	buf   []byte // what is there and not consumed is buf[pos:]
	pos   int
	src   io.Reader // nil: buf is all there is
	store []byte    // memory behind buf, of a batch with a source
	left  int64     // bytes that the source may still give
	limit int64

	next uint32 // number of the next record
	rest int64  // bytes of the record at hand that are not consumed
	into *Record
	err  error
}

// Record is one record of a batch. Key, value and the value of a header are nil where they are null.
type Record struct {
	Number  uint32 // its offset delta
	Time    int64  // milliseconds since 1970
	Key     []byte
	Value   []byte
	Headers []RecordHeader
}

// RecordHeader is a pair that travels with a record.
type RecordHeader struct{ Key, Value []byte }

// Record reads one record whole, as Next does in all else. Its bytes are those that Plain was given: a walk
// over a source has none to give.
func (w *Walker) Record(r *Record) (ok bool) {
	*r = Record{Headers: r.Headers[:0]}
	w.into = r
	r.Number, r.Time, ok = w.Next()
	w.into = nil
	return ok
}

// Plain starts at the first record of a batch that is not compressed.
func (w *Walker) Plain(h *Header, records []byte) {
	*w = Walker{h: *h, buf: records, store: w.store}
}

// windowBytes is what a Walker holds of a compressed batch.
const windowBytes = 32 << 10

// Stream starts at the first record of a compressed batch. src decompresses it; behind limit bytes
// the walk ends with Oversized.
func (w *Walker) Stream(h *Header, src io.Reader, limit int64) {
	if w.store == nil {
		w.store = make([]byte, windowBytes)
	}
	*w = Walker{h: *h, src: src, left: limit, limit: limit, store: w.store}
}

// Err returns why Next reported false, nil at the end of a good batch.
func (w *Walker) Err() error { return w.err }

// Next reads one record and returns its number, which is its offset delta, and its time in
// milliseconds. It reports false at the end, which is an error where the bytes are not what the
// header says.
func (w *Walker) Next() (number uint32, ms int64, ok bool) {
	if w.err != nil {
		return 0, 0, false
	}
	if w.next == w.h.Records {
		w.end()
		return 0, 0, false
	}
	if ms, ok = w.record(); !ok {
		return 0, 0, false
	}
	if w.h.Attributes.AppendTime() {
		ms = w.h.MaxTime
	}
	w.next++
	return w.next - 1, ms, true
}

// MaxTime walks to the end and returns the greatest time of the records.
func (w *Walker) MaxTime() (int64, error) {
	latest := int64(math.MinInt64)
	for {
		_, ms, ok := w.Next()
		if !ok {
			return latest, w.err
		}
		latest = max(latest, ms)
	}
}

// end checks that nothing is behind the last record.
func (w *Walker) end() {
	if w.fill(1) {
		w.fail(Invalid, fmt.Sprintf("the end behind %d records", w.h.Records), "more bytes")
	}
}

func (w *Walker) record() (ms int64, ok bool) {
	w.rest = recordBytesMax
	length, ok := w.varint("a length")
	if !ok {
		return 0, false
	}
	if length < recordBytesMin-1 || length > recordBytesMax || w.src == nil && length > int64(len(w.buf)-w.pos) {
		return 0, w.fail(Invalid, "the length of a record", "%d", length)
	}
	w.rest = length
	attributes, ok := w.byte()
	if !ok {
		return 0, false
	}
	if attributes != 0 {
		return 0, w.fail(Invalid, "attributes 0", "%#x", attributes)
	}
	timeDelta, ok := w.varint("a timestamp delta")
	if !ok {
		return 0, false
	}
	offsetDelta, ok := w.varint("an offset delta")
	if !ok {
		return 0, false
	}
	if offsetDelta != int64(w.next) {
		return 0, w.fail(Invalid, fmt.Sprintf("offset delta %d", w.next), "%d", offsetDelta)
	}
	ms = w.h.BaseTime + timeDelta
	if (timeDelta > 0) != (ms > w.h.BaseTime) && timeDelta != 0 {
		return 0, w.fail(Invalid, "a timestamp of 64 bits", "%d and %d more", w.h.BaseTime, timeDelta)
	}
	return ms, w.fields()
}

// fields passes over key, value and headers, which must fill the record.
func (w *Walker) fields() bool {
	key, ok := w.bytes("a key", true)
	if !ok {
		return false
	}
	value, ok := w.bytes("a value", true)
	if !ok {
		return false
	}
	if w.into != nil {
		w.into.Key, w.into.Value = key, value
	}
	headers, ok := w.varint("a count of headers")
	if !ok {
		return false
	}
	if headers < 0 || headers > w.rest/2 {
		return w.fail(Invalid, "a count of headers", "%d in %d bytes", headers, w.rest)
	}
	for range headers {
		if key, ok = w.bytes("the key of a header", false); !ok {
			return false
		}
		if value, ok = w.bytes("the value of a header", true); !ok {
			return false
		}
		if w.into != nil {
			w.into.Headers = append(w.into.Headers, RecordHeader{key, value})
		}
	}
	if w.rest != 0 {
		return w.fail(Invalid, "the end of the record", "%d more bytes", w.rest)
	}
	return true
}

// bytes passes over a length and as many bytes, and returns them to who reads records whole; -1 stands for null.
func (w *Walker) bytes(what string, nullable bool) (b []byte, ok bool) {
	n, ok := w.varint(what)
	if !ok {
		return nil, false
	}
	if n == -1 && nullable {
		return nil, true
	}
	if n < 0 || n > w.rest {
		return nil, w.fail(Invalid, what+" within its record", "a length of %d, %d bytes left", n, w.rest)
	}
	at := w.pos
	if !w.skip(n) {
		return nil, false
	}
	if w.into != nil && int64(w.pos-at) == n {
		b = w.buf[at:w.pos:w.pos]
	}
	return b, true
}

func (w *Walker) byte() (byte, bool) {
	if w.rest == 0 || !w.fill(1) {
		return 0, w.short("a byte")
	}
	c := w.buf[w.pos]
	w.pos++
	w.rest--
	return c, true
}

// varint reads a zigzag varint. Nearly all have one byte or two, and there are six in a record: those are read here.
func (w *Walker) varint(what string) (int64, bool) {
	at := w.buf[w.pos:]
	if len(at) > 0 && w.rest > 0 && at[0] < 0x80 {
		w.pos++
		w.rest--
		return zigzag(uint64(at[0])), true
	}
	if len(at) > 1 && w.rest > 1 && at[1] < 0x80 {
		w.pos += 2
		w.rest -= 2
		return zigzag(uint64(at[0]&0x7f) | uint64(at[1])<<7), true
	}
	return w.longVarint(what)
}

func zigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// longVarint reads any varint, and says what is wrong with one that is none.
func (w *Walker) longVarint(what string) (int64, bool) {
	w.fill(varintBytesMax)
	var u uint64
	at := w.buf[w.pos:]
	for i := 0; i < varintBytesMax; i++ {
		if i >= len(at) || int64(i) >= w.rest {
			return 0, w.short(what)
		}
		c := at[i]
		if i == varintBytesMax-1 && c > 1 {
			break
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			w.pos += i + 1
			w.rest -= int64(i + 1)
			return zigzag(u), true
		}
	}
	return 0, w.fail(Invalid, what, "a number of more than 64 bits")
}

const (
	varintBytesMax = 10
	emptyReadsMax  = 100 // in a row, from a source that does not end
)

// skip passes over bytes of the record.
func (w *Walker) skip(n int64) bool {
	w.rest -= n
	for {
		have := min(n, int64(len(w.buf)-w.pos))
		w.pos += int(have)
		if n -= have; n == 0 {
			return true
		}
		if !w.fill(1) {
			return w.short("the bytes of a record")
		}
	}
}

// fill makes sure that so many bytes are in the window, if there are; it reports whether they are.
func (w *Walker) fill(n int) bool {
	for empty := 0; len(w.buf)-w.pos < n; empty++ {
		if w.src == nil || w.err != nil {
			return false
		}
		w.buf = w.store[:copy(w.store, w.buf[w.pos:])]
		w.pos = 0
		room := w.store[len(w.buf):]
		if int64(len(room)) > w.left+1 { // one more, to tell the end from the limit
			room = room[:w.left+1]
		}
		got, err := w.src.Read(room)
		if got > 0 {
			empty = 0
		} else if err == nil && empty == emptyReadsMax {
			err = io.ErrNoProgress
		}
		w.buf = w.store[:len(w.buf)+got]
		if w.left -= int64(got); w.left < 0 {
			return w.fail(Oversized, fmt.Sprintf("at most %d bytes after decompressing", w.limit), "more")
		}
		switch {
		case errors.Is(err, io.EOF):
			w.src = nil
		case err != nil:
			return w.fail(Corrupt, "records compressed by "+w.h.Attributes.Codec().String(), "%v", err)
		}
	}
	return true
}

// short is the end of the bytes within a record.
func (w *Walker) short(what string) bool {
	if w.err != nil {
		return false
	}
	return w.fail(Invalid, fmt.Sprintf("%s of record %d of %d", what, w.next, w.h.Records), "the end")
}

func (w *Walker) fail(f Fault, expected, format string, args ...any) bool {
	if w.err == nil {
		w.err = &Error{Fault: f, Record: int(w.next), Expected: expected, Found: fmt.Sprintf(format, args...)}
	}
	return false
}
