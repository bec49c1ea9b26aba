package fuzz

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"varve/core/segment"
)

// FuzzBatch: a batch header that decodes is the one encoding of what it decodes to, byte for byte.
func FuzzBatch(f *testing.F) {
	for _, m := range segments() {
		for i := range m.written {
			f.Add(m.written[i].raw)
		}
	}
	for _, at := range []int{5, 66} { // reserved zeros
		b := bytes.Clone(segments()[0].written[0].raw)
		b[segment.PlacementBytes+at] = 1
		f.Add(b)
	}
	eachForeign(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		batchIdentity(t, b)
		if len(b) >= segment.BatchHeaderBytes {
			batchIdentity(t, resealBatch(bytes.Clone(b)))
		}
	})
}

var batchID = createdHeader().ID

func batchIdentity(t *testing.T, b []byte) {
	placement, identity := segment.PlacementSeed(logID, batchID), segment.IdentitySeed(logID)
	p, i, crc, ok := segment.ReadBatchHeader(b, placement, identity)
	if !ok {
		return
	}
	if i.Records < 1 || i.Base < 0 || i.End() <= i.Base || p.Frontier > i.Base || p.Commit < 1 || i.PayloadBytes > segment.PayloadBytesMax {
		t.Fatalf("accepted: %+v %+v", p, i)
	}
	again := make([]byte, segment.BatchHeaderBytes)
	if crc2 := segment.PutBatchHeader(again, &p, &i, placement, identity); crc2 != crc || !bytes.Equal(again, b[:len(again)]) {
		t.Fatalf("%x\ndecodes to %+v %+v and encodes to\n%x", b[:len(again)], p, i, again)
	}
	if whole := segment.WholeBatch(b); whole != (int64(len(b)) >= segment.BatchHeaderBytes+int64(i.PayloadBytes)) {
		t.Fatalf("%d bytes, payload of %d: whole %v", len(b), i.PayloadBytes, whole)
	}
}

// resealBatch puts magic and checksums of the batch at the start of b right.
func resealBatch(b []byte) []byte {
	copy(b, "VRVB")
	le.PutUint64(b[8:], uint64(batchID))
	s := b[segment.PlacementBytes:segment.BatchHeaderBytes]
	if n := int64(le.Uint32(s)); n <= int64(len(b)-segment.BatchHeaderBytes) {
		le.PutUint32(s[60:], segment.PayloadCRC(b[segment.BatchHeaderBytes:][:n]))
	}
	le.PutUint32(s[68:], crc32.Update(segment.IdentitySeed(logID), castagnoli, s[:68]))
	copy(b[32:36], s[68:])
	le.PutUint32(b[36:], crc32.Update(segment.PlacementSeed(logID, batchID), castagnoli, b[:36]))
	return b
}

// FuzzRecords: a payload that decodes is the one encoding of its records; one that does not says
// where, and yields only records that lie before that place.
func FuzzRecords(f *testing.F) {
	for _, p := range payloads() {
		for n := range uint32(4) {
			f.Add(p, n)
		}
	}
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 2 | 8, 1, 'k'}, uint32(1)) // a flag that means nothing
	eachForeign(f, func(b []byte) { f.Add(b, uint32(1)) })
	f.Fuzz(func(t *testing.T, payload []byte, count uint32) {
		var it segment.RecordIter
		var recs []segment.Record
		var r segment.Record
		if n := allocated(func() {
			for it.Reset(payload, count); it.Next(&r); {
			}
		}); n > slack+96*uint64(len(payload)) { // two bytes can be a header, 48 bytes of slices, which grow
			t.Fatalf("%d bytes allocated for a payload of %d", n, len(payload))
		}
		size := 0
		for it.Reset(payload, count); it.Next(&r); {
			r.Headers = append([]segment.RecordHeader(nil), r.Headers...)
			recs = append(recs, r)
			size += len(r.Key) + len(r.Value)
		}
		if size > len(payload) || uint64(len(recs)) > uint64(count) {
			t.Fatalf("%d records of %d, %d bytes of %d", len(recs), count, size, len(payload))
		}
		err := it.Err()
		if err == nil {
			again, _ := segment.AppendRecords(nil, recs)
			if uint64(len(recs)) != uint64(count) || !bytes.Equal(again, payload) {
				t.Fatalf("%x as %d records encodes to %x", payload, len(recs), again)
			}
			return
		}
		var damage *segment.RecordsError
		if !errors.As(err, &damage) || damage.Pos < 0 || damage.Pos > int64(len(payload)) || int(damage.Record) != len(recs) {
			t.Fatalf("%v after %d records of a payload of %d bytes", err, len(recs), len(payload))
		}
	})
}
