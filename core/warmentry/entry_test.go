package warmentry_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"varve/core/segment"
	"varve/core/warmentry"
)

// Golden vectors of version 1, the same as in docs/format.md. They were computed by a second
// implementation (struct packing and a bitwise CRC), not by this package.
const (
	goldenMarker = "564152564557524d010001009c000000000102030405060708090a0b0c0d0e0f" +
		"0500000000000000887766554433221100000000000000000000000000000000" +
		"6400000000000000ec0300000000000084030000000000000000000000000000" +
		"0300000003000000000000000200000000000000000000000000000000000000" +
		"01000000000000000000000003000000e80300000000000014eeab52"
	goldenData = "564152564557524d010002009c000000000102030405060708090a0b0c0d0e0f" +
		"05000000000000008877665544332211e803000000000000ed03000000000000" +
		"6400000000000000ec0300000000000084030000000000006800000000000000" +
		"0300000003000000010000000200000000000000000000000000000000000000" +
		"01000000000000000000000003000000e8030000000000003d90b39a20000000" +
		"0100ffff0500000003000000e80300000000000088776655443322110065f753" +
		"fe9c971704002a36fe9c9717ffffffffffffffffffffffff6094669400000000" +
		"4b57779501002a36fe9c97170c68656c6c6f0002050706016b02016800000176" +
		"01030700"
)

var goldenLog = segment.LogID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func goldenEntry(kind warmentry.Kind) warmentry.Entry {
	e := warmentry.Entry{
		Kind: kind, LogID: goldenLog, Generation: 5, Epoch: 3, Nonce: 0x1122334455667788,
		Start: 100, Committed: 1004, CommittedEpoch: 3, WarmFrom: 900,
		Lineage: []segment.Lineage{{Epoch: 1, First: 0}, {Epoch: 3, First: 1000}},
	}
	if kind == warmentry.Data {
		e.First, e.End, e.Batches, e.BodyBytes = 1000, 1005, 1, 104
	}
	return e
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	page, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := strings.Join(strings.Fields(string(page)), "")
	for kind, text := range map[warmentry.Kind]string{warmentry.Marker: goldenMarker, warmentry.Data: goldenData} {
		want := unhex(t, text)
		e := goldenEntry(kind)
		got, err := warmentry.AppendHeader(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, want[len(got):]...)
		if !bytes.Equal(got, want) {
			t.Errorf("%v is written\n%x, want\n%x", kind, got, want)
		}
		if !strings.Contains(documented, text) {
			t.Errorf("docs/format.md does not have the %v", kind)
		}
	}
}

// TestGoldenIsRead also runs in a program of a made-up version 2.
func TestGoldenIsRead(t *testing.T) {
	for kind, text := range map[warmentry.Kind]string{warmentry.Marker: goldenMarker, warmentry.Data: goldenData} {
		e := goldenEntry(kind)
		var read warmentry.Entry
		if _, err := warmentry.Read(unhex(t, text), &read); err != nil || !reflect.DeepEqual(read, e) {
			t.Errorf("%v is read as\n%+v, %v, want\n%+v", kind, read, err, e)
		}
	}
}

// batch is an identity header and its payload.
func batch(base segment.Offset, records uint32, epoch segment.Epoch, payload []byte) []byte {
	var d [segment.IdentityBytes]byte
	segment.PutIdentity(d[:], &segment.Identity{
		PayloadBytes: uint32(len(payload)), Kind: segment.KindRecords, Records: records, Base: base, Epoch: epoch,
		Nonce: 7, ProducerID: -1, ProducerEpoch: -1, Sequence: -1, PayloadCRC: segment.PayloadCRC(payload),
	}, segment.IdentitySeed(goldenLog))
	return warmentry.AppendBatch(nil, d[:], payload)
}

// encoded is an entry with these batches; whatever the header says besides is kept.
func encoded(t interface{ Fatal(args ...any) }, e warmentry.Entry, batches ...[]byte) []byte {
	e.Batches, e.BodyBytes = uint32(len(batches)), 0
	for _, b := range batches {
		e.BodyBytes += int64(len(b))
	}
	b, err := warmentry.AppendHeader(nil, &e)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, bytes.Join(batches, nil)...)
}

func three(t *testing.T) []byte {
	e := goldenEntry(warmentry.Data)
	e.End = 1008
	return encoded(t, e, batch(1000, 5, 3, []byte("five")), batch(1005, 1, 1, nil), batch(1006, 2, 3, []byte("two")))
}

// Damage anywhere is seen: every bit, every cut, every byte too many.
func TestDamageIsSeen(t *testing.T) {
	for _, b := range [][]byte{unhex(t, goldenMarker), unhex(t, goldenData), three(t)} {
		var e warmentry.Entry
		if _, err := warmentry.Read(b, &e); err != nil {
			t.Fatal(err)
		}
		before := e
		refused := func(what string, at int, b []byte) {
			t.Helper()
			_, err := warmentry.Read(b, &e)
			var bad *warmentry.Error
			if !errors.As(err, &bad) && !errors.Is(err, warmentry.ErrForeign) || bad != nil && (bad.Pos < 0 || bad.Pos > int64(len(b))) {
				t.Fatalf("%s %d: %v", what, at, err)
			}
			if !reflect.DeepEqual(e, before) {
				t.Fatalf("%s %d: refused, and yet it left %+v", what, at, e)
			}
		}
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			refused("bit", bit, b)
			b[bit/8] ^= 1 << (bit % 8)
		}
		for n := range b {
			refused("cut to", n, b[:n])
		}
		refused("longer by a byte", 0, append(bytes.Clone(b), 0))
	}
}

// What a right checksum covers is judged all the same.
func TestAbsurdEntries(t *testing.T) {
	le := binary.LittleEndian
	reseal := func(b []byte) []byte {
		if used := le.Uint32(b[12:]); int(used) <= len(b) && used >= 4 {
			le.PutUint32(b[used-4:], crc32.Checksum(b[:used-4], crc32.MakeTable(crc32.Castagnoli)))
		}
		return b
	}
	put := func(b []byte, at int, v uint64, n int) []byte {
		var w [8]byte
		le.PutUint64(w[:], v)
		copy(b[at:at+n], w[:])
		return reseal(b)
	}
	var e warmentry.Entry
	for _, c := range []struct {
		at, size int
		value    uint64
		pos      int64
	}{
		{8, 2, 0, 8},
		{10, 1, 0, 10},
		{10, 1, 1, 48},
		{10, 1, 3, 10},
		{11, 1, 1, 11},
		{12, 4, 1 << 31, 12},
		{12, 4, 131, 12},
		{32, 8, 2, 32},
		{48, 8, 1005, 48},
		{48, 8, 1 << 63, 48},
		{56, 8, 1000, 48},
		{64, 8, 1 << 63, 64},
		{72, 8, 1 << 63, 72},
		{80, 8, 1 << 63, 80},
		{88, 8, 71, 88},
		{88, 8, 105, 88},
		{88, 8, 1 << 63, 88},
		{96, 4, 0, 96},
		{104, 4, 0, 88},
		{104, 4, 2, 88},
		{104, 4, 1<<32 - 1, 88},
		{108, 4, 3, 108},
		{112, 1, 1, 112},
		{127, 1, 1, 127},
		{140, 4, 1, 140},
		{132, 8, 1001, 144},
	} {
		_, err := warmentry.Read(put(unhex(t, goldenData), c.at, c.value, c.size), &e)
		var bad *warmentry.Error
		if !errors.As(err, &bad) || bad.Pos != c.pos {
			t.Errorf("%d at byte %d: %v, want one about byte %d", c.value, c.at, err, c.pos)
		}
	}
	if _, err := warmentry.Read(put(unhex(t, goldenData), 8, 2, 2), &e); !errors.Is(err, warmentry.ErrNewer) {
		t.Errorf("version 2: %v", err)
	}
	if _, err := warmentry.Read([]byte("hello"), &e); !errors.Is(err, warmentry.ErrForeign) {
		t.Errorf("hello: %v", err)
	}
}

// Batches that verify, but are not those of the entry.
func TestBatchesThatDoNotFit(t *testing.T) {
	e := goldenEntry(warmentry.Data)
	e.End = 1008
	one, two, rest := batch(1000, 5, 3, []byte("five")), batch(1005, 1, 1, nil), batch(1006, 2, 3, []byte("two"))
	for what, batches := range map[string][][]byte{
		"a hole":              {one, rest},
		"the end missing":     {one, two},
		"the begin missing":   {two, rest},
		"another order":       {two, one, rest},
		"one twice":           {one, one, two, rest},
		"beyond the end":      {one, two, rest, batch(1008, 1, 3, nil)},
		"over the end":        {one, two, batch(1006, 3, 3, nil)},
		"a later epoch":       {one, two, batch(1006, 2, 4, nil)},
		"no epoch":            {one, two, batch(1006, 2, 0, nil)},
		"one as two":          {append(bytes.Clone(one), two...), rest, nil},
		"identity of nothing": {one, two, make([]byte, 100)},
	} {
		var read warmentry.Entry
		var bad *warmentry.Error
		if _, err := warmentry.Read(encoded(t, e, batches...), &read); !errors.As(err, &bad) && what != "one as two" {
			t.Errorf("%s: %v", what, err)
		} else if what == "one as two" && err != nil {
			t.Errorf("%s: what counts is the bytes: %v", what, err)
		}
	}
	shorter := e
	shorter.End = 1006
	var behind *warmentry.Error
	if _, err := warmentry.Read(encoded(t, shorter, one, append(bytes.Clone(two), 1, 2, 3)), new(warmentry.Entry)); !errors.As(err, &behind) {
		t.Errorf("bytes behind the last batch: %v", err)
	}
	foreign := e
	foreign.LogID[0]++
	var read warmentry.Entry
	if _, err := warmentry.Read(encoded(t, foreign, one, two, rest), &read); err == nil {
		t.Error("batches of another log count")
	}
}

func TestWalkGivesBatchesAsTheyAre(t *testing.T) {
	want := [][]byte{batch(1000, 5, 3, []byte("five")), batch(1005, 1, 1, nil), batch(1006, 2, 3, []byte("two"))}
	b := three(t)
	var e warmentry.Entry
	var i segment.Identity
	read := func() {
		body, err := warmentry.Read(b, &e)
		if err != nil {
			t.Fatal(err)
		}
		w := e.Walk(body)
		for n := range want {
			if got, err := w.Next(&i); err != nil || !bytes.Equal(got, want[n]) {
				t.Fatalf("batch %d is %x, %v", n, got, err)
			}
		}
		if _, err := w.Next(&i); !errors.Is(err, io.EOF) {
			t.Fatalf("behind the last batch: %v", err)
		}
	}
	read()
	if n := testing.AllocsPerRun(20, read); n != 0 {
		t.Errorf("%v allocations to read", n)
	}
	mine := goldenEntry(warmentry.Marker)
	dst := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(20, func() { dst, _ = warmentry.AppendHeader(dst[:0], &mine) }); n != 0 {
		t.Errorf("%v allocations to write", n)
	}
}

func TestLineageHasABound(t *testing.T) {
	e := goldenEntry(warmentry.Marker)
	e.Lineage = nil
	for n := range segment.Epoch(warmentry.LineageMax) {
		e.Lineage = append(e.Lineage, segment.Lineage{Epoch: n + 1})
	}
	b, err := warmentry.AppendHeader(nil, &e)
	if err != nil {
		t.Fatal(err)
	}
	var read warmentry.Entry
	if _, err := warmentry.Read(b, &read); err != nil || len(read.Lineage) != warmentry.LineageMax {
		t.Fatalf("%d epochs, %v", len(read.Lineage), err)
	}
	e.Lineage = append(e.Lineage, segment.Lineage{Epoch: 1 << 30})
	if b, err := warmentry.AppendHeader(nil, &e); err == nil || b != nil {
		t.Fatal("a lineage that no reader would take was written")
	}
}

// Any entry comes back as it was written.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(0, 1<<62)
		e := warmentry.Entry{
			Kind: warmentry.Marker, LogID: goldenLog, Epoch: rapid.Uint32Min(1).Draw(t, "epoch"), Nonce: rapid.Uint64().Draw(t, "nonce"),
			Start: offset.Draw(t, "start"), Committed: offset.Draw(t, "committed"), WarmFrom: offset.Draw(t, "warm from"),
			CommittedEpoch: rapid.Uint32().Draw(t, "committed epoch"),
		}
		e.Generation = rapid.Uint64Min(uint64(e.Epoch)).Draw(t, "generation")
		for first := segment.Offset(0); len(e.Lineage) < rapid.IntRange(0, 5).Draw(t, "epochs"); {
			first += rapid.Int64Range(0, 1000).Draw(t, "first")
			e.Lineage = append(e.Lineage, segment.Lineage{Epoch: segment.Epoch(3*len(e.Lineage) + 1), First: first})
		}
		var batches [][]byte
		if rapid.Bool().Draw(t, "data") {
			e.Kind, e.First = warmentry.Data, offset.Draw(t, "first")
			e.End = e.First
			for range rapid.IntRange(1, 4).Draw(t, "batches") {
				n := rapid.Uint32Range(1, 9).Draw(t, "records")
				batches = append(batches, batch(e.End, n, rapid.Uint32Range(1, e.Epoch).Draw(t, "of epoch"), rapid.SliceOf(rapid.Byte()).Draw(t, "payload")))
				e.End += segment.Offset(n)
			}
		}
		b := encoded(t, e, batches...)
		var read warmentry.Entry
		body, err := warmentry.Read(b, &read)
		if err != nil || !bytes.Equal(body, bytes.Join(batches, nil)) {
			t.Fatalf("%v: body %x", err, body)
		}
		again, err := warmentry.AppendHeader(nil, &read)
		if err != nil || !bytes.Equal(append(again, body...), b) {
			t.Fatalf("%x became %x, %v", b, again, err)
		}
		e.Batches, e.BodyBytes = read.Batches, read.BodyBytes
		if len(e.Lineage) == 0 {
			e.Lineage, read.Lineage = nil, nil
		}
		if !reflect.DeepEqual(read, e) {
			t.Fatalf("%+v became %+v", e, read)
		}
	})
}
