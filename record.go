package varve

import (
	"bytes"
	"math"
	"sync"
	"time"

	"varve/core"
	"varve/core/segment"
)

// Record is one entry of a log. Nil and empty differ for Key and Value, and come back as given.
type Record struct {
	Key     []byte
	Value   []byte
	Headers []Header
	Time    time.Time // zero in an append: now; kept from 1678 to 2262, others become the nearest of those
	Offset  int64     // set by reads, ignored by appends
	Epoch   uint64    // set by reads: the life of the log that wrote it
}

// Header is a pair that travels with a record. Nil and empty differ for Value, not for Key.
type Header = segment.RecordHeader

// Clone returns a copy that owns its memory; what a reader yields is valid only until its next step.
func (r *Record) Clone() Record {
	c := *r
	c.Key, c.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	c.Headers = nil
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, Header{Key: bytes.Clone(h.Key), Value: bytes.Clone(h.Value)})
	}
	return c
}

// Position returns where to go on after this record.
func (r *Record) Position() Position { return Position{Offset: r.Offset + 1, Epoch: r.Epoch} }

// Span is the offsets [First, End) of a batch.
type Span struct{ First, End int64 }

// Position is where a reader stands: the next offset, and the epoch of the record before it. With
// an epoch other than 0, a reader that resumes finds out (*DivergedError) if a power loss gave the
// offsets behind it to other records.
type Position struct {
	Offset int64
	Epoch  uint64 // 0: do not check
}

func (p Position) core() core.Position {
	if p.Epoch > segment.EpochMax { // never given out, so no log has had it
		return core.Position{Offset: p.Offset, Epoch: segment.EpochMax}
	}
	return core.Position{Offset: p.Offset, Epoch: core.Epoch(p.Epoch)}
}

func positionOf(p core.Position) Position {
	return Position{Offset: p.Offset, Epoch: uint64(p.Epoch)}
}

// Producer identifies the batches of an idempotent producer: repeated ones are acked with the
// offsets of the first. ID < 0 means none.
type Producer = core.Producer

// NoProducer marks a batch that is not idempotent.
var NoProducer = core.NoProducer

// Batch is an encoded batch for AppendBatch. Payload must not change until the batch has its
// outcome.
type Batch struct {
	Payload  []byte
	Kind     uint8     // KindRecords or KindKafka
	Records  uint32    // at least 1
	MaxTime  time.Time // greatest timestamp of the records
	Producer *Producer // of an idempotent batch; nil: none
}

// Payload kinds.
const (
	KindRecords = segment.KindRecords // Varve records, as EncodeRecords makes them
	KindKafka   = segment.KindKafka   // one Kafka RecordBatch v2, verbatim
)

// EncodeRecords appends the payload of a batch of records to dst and returns it as a Batch.
func EncodeRecords(dst []byte, recs ...Record) Batch {
	start := len(dst)
	payload, maxTime := appendRecords(dst, recs, time.Now().UnixNano())
	return Batch{
		Payload: payload[start:], Kind: KindRecords, Records: uint32(len(recs)),
		MaxTime: time.Unix(0, maxTime),
	}
}

// appendRecords encodes records; now is the time of those that have none.
func appendRecords(dst []byte, recs []Record, now int64) (payload []byte, maxTime int64) {
	var e segment.RecordEncoder
	for i := range recs {
		r := &recs[i]
		at := now
		if !r.Time.IsZero() {
			at = nanos(r.Time)
		}
		dst = e.Append(dst, &segment.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Time: at})
	}
	return dst, e.MaxTime
}

// nanos returns a time in nanoseconds since 1970. Of times that an int64 cannot hold, UnixNano gives
// any; they become the nearest that it can.
func nanos(t time.Time) int64 {
	n := t.UnixNano()
	switch {
	case time.Unix(0, n).Equal(t):
		return n
	case t.Unix() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// buffer is the recycled memory of one append: its encoded payload.
type buffer struct {
	payload []byte
	next    *buffer   // in the list of its cohort
	small   [256]byte // where payload starts out, so that a small batch is one allocation
}

var buffers = sync.Pool{New: func() any {
	b := new(buffer)
	b.payload = b.small[:0]
	return b
}}

// bufferKeep bounds what a recycled buffer may hold on to.
const bufferKeep = 1 << 20

func (b *buffer) release() {
	if cap(b.payload) > bufferKeep {
		b.payload = b.small[:0]
	}
	b.next = nil
	buffers.Put(b)
}

// encode makes the core's batch of records in the buffer's own memory.
func (b *buffer) encode(recs []Record, now int64) core.Batch {
	var maxTime int64
	b.payload, maxTime = appendRecords(b.payload[:0], recs, now)
	return core.Batch{
		Payload: b.payload, PayloadCRC: segment.PayloadCRC(b.payload), Kind: KindRecords,
		Records: uint32(len(recs)), MaxTime: maxTime, Producer: core.NoProducer,
	}
}
