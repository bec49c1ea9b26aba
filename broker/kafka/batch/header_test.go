package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"testing"
	"testing/iotest"
)

// testRecord is what the encoder below makes a record of.
type testRecord struct {
	ms      int64
	key     []byte // nil: null
	value   []byte
	headers int
}

// encode makes a batch from scratch: an encoder that shares nothing with the package.
func encode(base int64, recs []testRecord) []byte {
	b := make([]byte, HeaderBytes)
	latest := int64(math.MinInt64)
	for i, r := range recs {
		var body []byte
		body = append(body, 0)
		body = binary.AppendVarint(body, r.ms-base)
		body = binary.AppendVarint(body, int64(i))
		body = appendBytes(body, r.key)
		body = appendBytes(body, r.value)
		body = binary.AppendVarint(body, int64(r.headers))
		for range r.headers {
			body = appendBytes(body, []byte("name"))
			body = appendBytes(body, nil)
		}
		b = binary.AppendVarint(b, int64(len(body)))
		b = append(b, body...)
		latest = max(latest, r.ms)
	}
	b[16] = 2
	binary.BigEndian.PutUint32(b[23:], uint32(len(recs)-1))
	binary.BigEndian.PutUint64(b[27:], uint64(base))
	binary.BigEndian.PutUint64(b[35:], uint64(latest))
	binary.BigEndian.PutUint64(b[43:], math.MaxUint64)
	binary.BigEndian.PutUint16(b[51:], math.MaxUint16)
	binary.BigEndian.PutUint32(b[53:], math.MaxUint32)
	binary.BigEndian.PutUint32(b[57:], uint32(len(recs)))
	return seal(b)
}

// seal makes length and checksum right.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func appendBytes(b, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(b, -1)
	}
	return append(binary.AppendVarint(b, int64(len(v))), v...)
}

func three() []byte {
	return encode(1000, []testRecord{
		{ms: 1000, key: []byte("k"), value: []byte("one")},
		{ms: 1300, value: bytes.Repeat([]byte("v"), 300), headers: 2},
		{ms: 900, key: []byte{}},
	})
}

func TestParse(t *testing.T) {
	h, err := Parse(three())
	if err != nil {
		t.Fatal(err)
	}
	want := Header{Records: 3, BaseTime: 1000, MaxTime: 1300, ProducerID: -1, ProducerEpoch: -1, Sequence: -1}
	if h != want {
		t.Errorf("got %+v, want %+v", h, want)
	}
}

// Whatever single thing is wrong with a header is refused, as the fault that it is.
func TestParseRefuses(t *testing.T) {
	set16 := func(at int, v uint16) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint16(b[at:], v); return seal(b) }
	}
	set32 := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], v); return seal(b) }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		fault  Fault
	}{
		"empty":             {func([]byte) []byte { return nil }, Corrupt},
		"cut in the header": {func(b []byte) []byte { return b[:60] }, Corrupt},
		"cut":               {func(b []byte) []byte { return b[:len(b)-1] }, Corrupt},
		"two batches":       {func(b []byte) []byte { return append(b, b...) }, Invalid},
		"negative length":   {func(b []byte) []byte { binary.BigEndian.PutUint32(b[8:], 1<<31); return b }, Corrupt},
		"magic 1":           {func(b []byte) []byte { b[16] = 1; return b }, OldFormat},
		"magic 3":           {func(b []byte) []byte { b[16] = 3; return b }, Corrupt},
		"a flipped bit":     {func(b []byte) []byte { b[len(b)-1] ^= 4; return b }, Corrupt},
		"control":           {set16(21, 1<<5), Invalid},
		"transactional":     {set16(21, 1<<4), Transactional},
		"append time":       {set16(21, 1<<3), BadTime},
		"delete horizon":    {set16(21, 1<<6), Invalid},
		"codec 5":           {set16(21, 5), Invalid},
		"no records":        {set32(57, 0), Invalid},
		"negative count":    {func(b []byte) []byte { set32(23, 1<<31)(b); return set32(57, 1<<31|1)(b) }, Invalid},
		"count and delta":   {set32(23, 3), Invalid},
		"more than fit":     {func(b []byte) []byte { set32(23, 999)(b); return set32(57, 1000)(b) }, Invalid},
		"producer id -2":    {func(b []byte) []byte { set32(43, 1<<32-1)(b); return set32(47, 1<<32-2)(b) }, Invalid},
		"no producer epoch": {func(b []byte) []byte { set32(43, 0)(b); return set32(47, 7)(b) }, Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.change(three()))
			var e *Error
			if !errors.As(err, &e) || e.Fault != c.fault {
				t.Errorf("got %v, want fault %d", err, c.fault)
			}
		})
	}
}

func TestPatchKeepsTheChecksum(t *testing.T) {
	b := three()
	Patch(b, 1<<40, 77)
	if _, err := Parse(b); err != nil {
		t.Fatal(err)
	}
	if got := int64(binary.BigEndian.Uint64(b)); got != 1<<40 {
		t.Errorf("base offset %d", got)
	}
	if got := binary.BigEndian.Uint32(b[12:]); got != 77 {
		t.Errorf("epoch %d", got)
	}
}

// An empty batch has a header that says the truth, and no records; a producer may not send one.
func TestEmpty(t *testing.T) {
	b := Empty(7, 1234)
	Patch(b, 40, 3)
	h, err := Stored(b)
	if err != nil || h != (Header{BaseTime: 1234, MaxTime: 1234, ProducerID: -1, ProducerEpoch: -1, Sequence: -1}) {
		t.Errorf("%+v, %v", h, err)
	}
	if delta := binary.BigEndian.Uint32(b[23:]); delta != 6 || !bytes.Equal(seal(bytes.Clone(b)), b) {
		t.Errorf("last offset delta %d, or length or checksum are wrong", delta)
	}
	var w Walker
	w.Plain(&h, Records(b))
	if _, _, ok := w.Next(); ok || w.Err() != nil {
		t.Errorf("a record, or %v", w.Err())
	}
	var e *Error
	if _, err := Parse(b); !errors.As(err, &e) || e.Fault != Invalid {
		t.Errorf("got %v, want an invalid batch", err)
	}
}

func TestSetMaxTime(t *testing.T) {
	b := three()
	h, _ := Parse(b)
	SetMaxTime(b, &h, 5000, false)
	if again, err := Parse(b); err != nil || again != h || h.MaxTime != 5000 {
		t.Fatalf("%+v, %v", again, err)
	}
	SetMaxTime(b, &h, 6000, true)
	stored, err := Stored(b)
	if err != nil || !stored.Attributes.AppendTime() {
		t.Fatalf("%+v, %v", stored, err)
	}
	var w Walker
	w.Plain(&stored, Records(b))
	for range 3 {
		if _, ms, ok := w.Next(); !ok || ms != 6000 {
			t.Errorf("time %d, %v", ms, w.Err())
		}
	}
}

// times walks a batch, as it is and through a reader that gives one byte at a time.
func times(t *testing.T, b []byte) []int64 {
	t.Helper()
	h, err := Stored(b)
	if err != nil {
		t.Fatal(err)
	}
	var all [2][]int64
	for i := range all {
		var w Walker
		if w.Plain(&h, Records(b)); i == 1 {
			w.Stream(&h, iotest.OneByteReader(bytes.NewReader(Records(b))), 1<<20)
		}
		for n := uint32(0); ; n++ {
			number, ms, ok := w.Next()
			if !ok {
				break
			}
			if number != n {
				t.Errorf("record %d is called %d", n, number)
			}
			all[i] = append(all[i], ms)
		}
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
	}
	if len(all[0]) != len(all[1]) {
		t.Fatalf("whole: %v, in pieces: %v", all[0], all[1])
	}
	return all[0]
}

func TestWalk(t *testing.T) {
	got := times(t, three())
	if len(got) != 3 || got[0] != 1000 || got[1] != 1300 || got[2] != 900 {
		t.Errorf("got %v", got)
	}
	long := encode(0, []testRecord{{value: make([]byte, 3*windowBytes)}, {ms: math.MaxInt64}, {ms: -1}})
	if got := times(t, long); len(got) != 3 || got[1] != math.MaxInt64 || got[2] != -1 {
		t.Errorf("got %v", got)
	}
}

// Records read whole are what was encoded; null and empty differ.
func TestRecord(t *testing.T) {
	b := encode(1000, []testRecord{{ms: 1000, key: []byte("k"), value: []byte("one")}, {ms: 900, value: []byte{}, headers: 2}, {ms: 1001}})
	h, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	var w Walker
	w.Plain(&h, Records(b))
	var got []string
	for r := (Record{}); w.Record(&r); {
		text := fmt.Sprintf("%d %d %q %v %q %v", r.Number, r.Time, r.Key, r.Key == nil, r.Value, r.Value == nil)
		for _, x := range r.Headers {
			text += fmt.Sprintf(" %s %v", x.Key, x.Value == nil)
		}
		got = append(got, text)
	}
	want := []string{`0 1000 "k" false "one" false`, `1 900 "" true "" false name true name true`, `2 1001 "" true "" true`}
	if w.Err() != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; %v", got, want, w.Err())
	}
}

// A broker may have given a stored batch append times; a producer may not. Damage is found in both.
func TestVerify(t *testing.T) {
	b := three()
	h, _ := Parse(b)
	SetMaxTime(b, &h, 6000, true)
	if got, err := Verify(b); err != nil || got != h {
		t.Errorf("%+v, %v", got, err)
	}
	b[len(b)-1] ^= 1
	var e *Error
	if _, err := Verify(b); !errors.As(err, &e) || e.Fault != Corrupt {
		t.Errorf("got %v, want a corrupt batch", err)
	}
}

// Records that are not what the header says end the walk with an error, never with a record too many.
func TestWalkRefuses(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"cut":                   func(b []byte) []byte { return b[:len(b)-1] },
		"one byte more":         func(b []byte) []byte { return append(b, 0) },
		"offset delta":          func(b []byte) []byte { b[HeaderBytes+3] = 2; return b },
		"attributes":            func(b []byte) []byte { b[HeaderBytes+1] = 1; return b },
		"key beyond the record": func(b []byte) []byte { b[HeaderBytes+4] = 60; return b },
		"key length -2":         func(b []byte) []byte { b[HeaderBytes+4] = 3; return b },
		"length beyond the end": func(b []byte) []byte { b[HeaderBytes], b[HeaderBytes+1] = 0xfe, 0x7f; return b },
		"length 0":              func(b []byte) []byte { b[HeaderBytes] = 0; return b },
		"endless varint": func(b []byte) []byte {
			return append(b[:HeaderBytes], bytes.Repeat([]byte{0xff}, 40)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := change(three())
			h, _ := Stored(b)
			var whole, pieces Walker
			whole.Plain(&h, Records(b))
			pieces.Stream(&h, bytes.NewReader(Records(b)), 1<<20)
			for _, w := range []*Walker{&whole, &pieces} {
				var e *Error
				if _, err := w.MaxTime(); !errors.As(err, &e) || e.Fault != Invalid {
					t.Errorf("got %v, want an invalid batch", err)
				}
			}
		})
	}
}

// A source that gives more than the limit is left there; one that fails or stands still is corrupt.
func TestStreamIsBounded(t *testing.T) {
	h := Header{Records: 1, ProducerID: -1}
	var w Walker
	record := append(binary.AppendVarint(nil, 1<<40), 0, 0, 0)
	bomb := binary.AppendVarint(append(binary.AppendVarint(nil, 1<<30), 0, 0, 0, 1), 1<<29)
	for name, c := range map[string]struct {
		src   io.Reader
		fault Fault
	}{
		"bomb":         {io.MultiReader(bytes.NewReader(bomb), zeros{}), Oversized},
		"length":       {bytes.NewReader(record), Invalid},
		"failing":      {iotest.ErrReader(errors.New("flate: corrupt")), Corrupt},
		"standing":     {standing{}, Corrupt},
		"records only": {io.LimitReader(zeros{}, 100), Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			w.Stream(&h, c.src, 1<<20)
			var e *Error
			if _, err := w.MaxTime(); !errors.As(err, &e) || e.Fault != c.fault {
				t.Errorf("got %v, want fault %d", err, c.fault)
			}
			if w.left < -1 {
				t.Errorf("%d bytes more than the limit were read", -w.left)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type standing struct{}

func (standing) Read([]byte) (int, error) { return 0, nil }

func TestAllocations(t *testing.T) {
	b := three()
	var w Walker
	if n := testing.AllocsPerRun(100, func() {
		h, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		w.Plain(&h, Records(b))
		if _, err := w.MaxTime(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzRecordBatch: what is accepted has exactly the records that its header says, walked as a whole and in
// pieces alike, and stays accepted when it is patched.
func FuzzRecordBatch(f *testing.F) {
	f.Add(three())
	f.Add(encode(0, []testRecord{{}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= HeaderBytes { // the checksum would keep the fuzzer out
			seal(b)
		}
		h, err := Parse(b)
		if err != nil {
			return
		}
		var whole, pieces Walker
		whole.Plain(&h, Records(b))
		pieces.Stream(&h, iotest.HalfReader(bytes.NewReader(Records(b))), 1<<20)
		for {
			n1, ms1, ok1 := whole.Next()
			n2, ms2, ok2 := pieces.Next()
			if ok1 != ok2 || n1 != n2 || ms1 != ms2 {
				t.Fatalf("whole: %d %d %v %v, in pieces: %d %d %v %v", n1, ms1, ok1, whole.Err(), n2, ms2, ok2, pieces.Err())
			}
			if !ok1 {
				break
			}
		}
		if (whole.Err() == nil) != (pieces.Err() == nil) {
			t.Fatalf("whole: %v, in pieces: %v", whole.Err(), pieces.Err())
		}
		if whole.Err() == nil && whole.next != h.Records {
			t.Fatalf("%d records walked, the header says %d", whole.next, h.Records)
		}
		Patch(b, 12345, 6)
		if again, err := Parse(b); err != nil || again != h {
			t.Fatalf("patched: %+v, %v", again, err)
		}
	})
}
