package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
)

// cloneRecord keeps a record beyond the next Next.
func cloneRecord(r *Record) Record {
	c := *r
	c.Headers = append([]RecordHeader(nil), r.Headers...)
	return c
}

func readRecords(it *RecordIter, payload []byte, count uint32) (recs []Record, err error) {
	var r Record
	for it.Reset(payload, count); it.Next(&r); {
		recs = append(recs, cloneRecord(&r))
	}
	if it.Next(&r) {
		return recs, errors.New("Next goes on after it said no")
	}
	return recs, it.Err()
}

func TestRecordsGolden(t *testing.T) {
	recs := goldenRecords()
	payload, maxTime := AppendRecords([]byte("before"), recs)
	if want := append([]byte("before"), unhex(t, goldenPayload)...); !bytes.Equal(payload, want) {
		t.Fatalf("encoded %x, want %x", payload, want)
	}
	if maxTime != goldenTime+4 {
		t.Fatalf("greatest time %d", maxTime)
	}
	got, err := readRecords(new(RecordIter), unhex(t, goldenPayload), uint32(len(recs)))
	if err != nil || !reflect.DeepEqual(got, recs) {
		t.Fatalf("decoded %+v, %v", got, err)
	}
	if payload, maxTime := AppendRecords(nil, nil); payload != nil || maxTime != 0 {
		t.Fatalf("no records: %x, %d", payload, maxTime)
	}
}

func randomRecords(r *splitMix) []Record {
	recs := make([]Record, 1+r.below(20))
	now := Time(r.next())
	for i := range recs {
		if r.below(3) == 0 {
			now += Time(r.span()) // may wrap: any time is legal
		}
		recs[i] = Record{Value: r.bytes(300), Time: now}
		if r.below(3) == 0 {
			recs[i].Key = r.bytes(200)
		}
		for range r.below(3) * r.below(4) {
			h := RecordHeader{Key: append([]byte{}, r.bytes(150)...), Value: r.bytes(20)}
			recs[i].Headers = append(recs[i].Headers, h)
		}
	}
	return recs
}

func TestRecordsRoundTrip(t *testing.T) {
	r := splitMix(5)
	var it RecordIter
	var payload []byte
	for n := range 3_000 {
		recs := randomRecords(&r)
		var maxTime Time
		payload, maxTime = AppendRecords(payload[:0], recs)
		got, err := readRecords(&it, payload, uint32(len(recs)))
		if err != nil || !reflect.DeepEqual(got, recs) {
			t.Fatalf("%d: %+v became %+v, %v", n, recs, got, err)
		}
		want := Time(math.MinInt64)
		for i := range recs {
			want = max(want, recs[i].Time)
		}
		if maxTime != want {
			t.Fatalf("%d: greatest time %d, want %d", n, maxTime, want)
		}
	}
}

func TestRecordsExtremeTimes(t *testing.T) {
	recs := []Record{{Time: math.MaxInt64}, {Time: math.MinInt64}, {Time: math.MaxInt64}, {Time: 0}, {Time: -1}}
	payload, _ := AppendRecords(nil, recs)
	got, err := readRecords(new(RecordIter), payload, uint32(len(recs)))
	if err != nil || !reflect.DeepEqual(got, recs) {
		t.Fatalf("%+v became %+v, %v", recs, got, err)
	}
}

// Whatever decodes without an error is the one encoding of what it decodes to: so no payload has
// two readings. Here every cut and every flip of one, plus wrong counts.
func TestRecordsDamage(t *testing.T) {
	r := splitMix(6)
	var it RecordIter
	verify := func(what string, payload []byte, count uint32) {
		t.Helper()
		verifyUnique(t, &it, what, payload, count)
	}
	for range 10 {
		recs := randomRecords(&r)
		payload, _ := AppendRecords(nil, recs)
		count := uint32(len(recs))
		for n := range payload {
			if _, err := readRecords(&it, payload[:n], count); err == nil {
				t.Fatalf("cut to %d of %d bytes: no error", n, len(payload))
			}
			verify("cut", payload[:n], count)
		}
		for bit := range 8 * len(payload) {
			payload[bit/8] ^= 1 << (bit % 8)
			verify("flip", payload, count)
			payload[bit/8] ^= 1 << (bit % 8)
		}
		for _, wrong := range []uint32{0, count - 1, count + 1, math.MaxUint32} {
			if _, err := readRecords(&it, payload, wrong); err == nil {
				t.Fatalf("%d records read as %d", count, wrong)
			}
		}
		if _, err := readRecords(&it, append(payload, 0), count); err == nil {
			t.Fatal("a byte behind the last record goes unseen")
		}
	}
}

// verifyUnique reads a payload that may be anything; it reports whether it was a good one.
func verifyUnique(t *testing.T, it *RecordIter, what string, payload []byte, count uint32) bool {
	t.Helper()
	got, err := readRecords(it, payload, count)
	var damage *RecordsError
	switch {
	case err == nil:
		if again, _ := AppendRecords(nil, got); len(got) != int(count) || !bytes.Equal(again, payload) {
			t.Fatalf("%s: %x reads as %x, %d of %d records", what, payload, again, len(got), count)
		}
	case !errors.As(err, &damage) || damage.Pos < 0 || damage.Pos > int64(len(payload)) ||
		int(damage.Record) != len(got) || damage.Expected == "" || damage.Found == "":
		t.Fatalf("%s: %v after %d records", what, err, len(got))
	}
	return err == nil
}

// Payloads made of the bytes that mean something: many are good, and each of those is the one
// encoding of its records.
func TestRecordsUnique(t *testing.T) {
	const alphabet = "\x00\x00\x01\x01\x02\x03\x04\x05\x06\x07\x80\x83"
	r := splitMix(7)
	var it RecordIter
	payload := make([]byte, 8, 24)
	good := 0
	for range 100_000 {
		payload = payload[:8+r.below(12)]
		for i := 8; i < len(payload); i++ {
			payload[i] = alphabet[r.below(len(alphabet))]
		}
		if verifyUnique(t, &it, "alphabet", payload, 1+uint32(r.below(4))) {
			good++
		}
	}
	if good < 1000 {
		t.Fatalf("only %d good payloads", good)
	}
}

func TestRecordsMalformed(t *testing.T) {
	base := make([]byte, 8)
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	for _, c := range []struct {
		name  string
		tail  []byte
		count uint32
		pos   int64
	}{
		{"value beyond the end", []byte{12, 1, 2, 3, 4}, 1, 9},
		{"value of 2^63 bytes", huge, 1, 18},
		{"varint of 65 bits", append(bytes.Repeat([]byte{0xff}, 9), 2), 1, 8},
		{"varint without an end", []byte{0x80}, 1, 8},
		{"varint longer than needed", []byte{0x80, 0x00}, 1, 8},
		{"head longer than needed", []byte{0x82, 0x00}, 1, 8},
		{"no flags", []byte{1}, 1, 9},
		{"flags 0", []byte{1, 0}, 1, 9},
		{"flags 8", []byte{1, 8}, 1, 9},
		{"time delta in the first record", []byte{1, 1, 2}, 1, 9},
		{"time delta 0", []byte{0, 1, 1, 0}, 2, 11},
		{"key beyond the end", []byte{1, 2, 5, 'k'}, 1, 11},
		{"key of 2^64-1 bytes", append([]byte{1, 2}, huge...), 1, 20},
		{"headers 0", []byte{1, 4, 0}, 1, 10},
		{"headers beyond the end", []byte{1, 4, 2, 0, 0, 0}, 1, 10},
		{"2^64-1 headers", append([]byte{1, 4}, huge...), 1, 10},
		{"header value beyond the end", []byte{1, 4, 1, 0, 3, 9}, 1, 13},
		{"trailing byte", []byte{0, 0}, 1, 9},
		{"more records than bytes", []byte{0, 0}, 3, 8},
	} {
		recs, err := readRecords(new(RecordIter), append(base[:8:8], c.tail...), c.count)
		var damage *RecordsError
		if !errors.As(err, &damage) || damage.Pos != c.pos || int(damage.Record) != len(recs) {
			t.Errorf("%s: %d records, %v, want position %d", c.name, len(recs), err, c.pos)
		}
	}
}

// The overhead of the common record stays within three bytes: no key, no headers, the same time.
func TestRecordsOverhead(t *testing.T) {
	for _, n := range []int{0, 1, 62, 63, 128, 1024, 8190, 8191, 1<<20 - 2} {
		value := make([]byte, n)
		one, _ := AppendRecords(nil, []Record{{Value: value}})
		two, _ := AppendRecords(nil, []Record{{Value: value}, {Value: value}})
		if over := len(two) - len(one) - n; over > 3 || n == 128 && over != 2 {
			t.Errorf("%d B values: %d bytes a record", n, over)
		}
	}
}

func TestRecordsAllocations(t *testing.T) {
	recs := goldenRecords()
	var it RecordIter
	var r Record
	payload, _ := AppendRecords(nil, recs)
	n := testing.AllocsPerRun(100, func() {
		payload, _ = AppendRecords(payload[:0], recs)
		for it.Reset(payload, uint32(len(recs))); it.Next(&r); {
		}
		if it.Err() != nil {
			panic(it.Err())
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func benchRecords(n, size int) []Record {
	recs := make([]Record, n)
	for i := range recs {
		recs[i] = Record{Value: bytes.Repeat([]byte{byte(i)}, size), Time: goldenTime}
	}
	return recs
}

func BenchmarkAppendRecords(b *testing.B) {
	recs := benchRecords(100, 128)
	var payload []byte
	b.ReportAllocs()
	for b.Loop() {
		payload, _ = AppendRecords(payload[:0], recs)
	}
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}

func BenchmarkRecordIter(b *testing.B) {
	for _, keyed := range []bool{false, true} {
		b.Run(fmt.Sprintf("128B/keyed=%v", keyed), func(b *testing.B) {
			recs := benchRecords(100, 128)
			for i := range recs {
				if keyed {
					recs[i].Key, recs[i].Time = []byte("some-key"), goldenTime+Time(i)
				}
			}
			payload, _ := AppendRecords(nil, recs)
			var it RecordIter
			var r Record
			b.ReportAllocs()
			for b.Loop() {
				for it.Reset(payload, 100); it.Next(&r); {
				}
			}
			if it.Err() != nil {
				b.Fatal(it.Err())
			}
			b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
		})
	}
}
