package fuzz

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"reflect"
	"testing"

	"varve/core/segment"
	"varve/core/warmentry"
)

// warmEntries are a marker, and commits made of the batches of segments.
func warmEntries(f *testing.F) [][]byte {
	f.Helper()
	e := warmentry.Entry{
		Kind: warmentry.Marker, LogID: logID, Generation: 9, Epoch: 4, Nonce: 8, Start: 1, Committed: 6, CommittedEpoch: 2, WarmFrom: 3,
		Lineage: []segment.Lineage{{Epoch: 1, First: 0}, {Epoch: 3, First: 5}},
	}
	marker, err := warmentry.AppendHeader(nil, &e)
	if err != nil {
		f.Fatal(err)
	}
	all := [][]byte{marker}
	for _, m := range segments() {
		e.Kind, e.First, e.BodyBytes, e.Batches = warmentry.Data, m.written[0].identity.Base, 0, uint32(len(m.written))
		e.Epoch = m.h.Epoch
		var body []byte
		for i := range m.written {
			e.End = m.written[i].identity.End()
			body = append(body, m.written[i].raw[segment.PlacementBytes:]...)
		}
		e.BodyBytes = int64(len(body))
		b, err := warmentry.AppendHeader(nil, &e)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, append(b, body...))
	}
	return all
}

// FuzzWarmEntry: an entry that is read is the one encoding of what it says; one that is not is refused
// with a place and changes nothing.
func FuzzWarmEntry(f *testing.F) {
	for _, b := range warmEntries(f) {
		f.Add(b)
	}
	eachForeign(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		warmIdentity(t, b)
		if len(b) >= warmentry.HeaderBytesMin {
			warmIdentity(t, resealWarm(bytes.Clone(b)))
		}
	})
}

// resealWarm puts magic, lengths and every checksum right, as far as the bytes go.
func resealWarm(b []byte) []byte {
	copy(b, "VARVEWRM")
	used := int64(le.Uint32(b[12:]))
	if used < int64(warmentry.HeaderBytesMin) || used > int64(len(b)) {
		used = int64(warmentry.HeaderBytesMin)
		le.PutUint32(b[12:], uint32(used))
	}
	le.PutUint64(b[88:], uint64(int64(len(b))-used))
	seed := segment.IdentitySeed(segment.LogID(b[16:32]))
	for s := b[used:]; len(s) >= segment.IdentityBytes; {
		n := min(int64(le.Uint32(s)), int64(len(s)-segment.IdentityBytes))
		le.PutUint32(s, uint32(n))
		le.PutUint32(s[60:], segment.PayloadCRC(s[segment.IdentityBytes:][:n]))
		le.PutUint32(s[68:], crc32.Update(seed, castagnoli, s[:68]))
		s = s[segment.IdentityBytes+n:]
	}
	le.PutUint32(b[used-4:], crc32.Checksum(b[:used-4], castagnoli))
	return b
}

func warmIdentity(t *testing.T, b []byte) {
	before := warmentry.Entry{Generation: 12345, Lineage: []segment.Lineage{{Epoch: 1, First: 2}}}
	var e warmentry.Entry
	var body []byte
	var err error
	if n := allocated(func() {
		e = before
		body, err = warmentry.Read(b, &e)
	}); n > slack+4*uint64(len(b)) {
		t.Fatalf("%d bytes allocated for an entry of %d", n, len(b))
	}
	if err != nil {
		var bad *warmentry.Error
		if !errors.Is(err, warmentry.ErrNewer) && !errors.Is(err, warmentry.ErrForeign) &&
			(!errors.As(err, &bad) || bad.Pos < 0 || bad.Pos > int64(len(b))) {
			t.Fatalf("refused without a place: %v", err)
		}
		if !reflect.DeepEqual(e, before) {
			t.Fatalf("refused, and yet it left %+v", e)
		}
		return
	}
	again, err := warmentry.AppendHeader(nil, &e)
	if err != nil {
		t.Fatal(err)
	}
	w := e.Walk(body)
	var i segment.Identity
	next := e.First
	for {
		batch, err := w.Next(&i)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || i.Base != next || i.Records == 0 || i.End() > e.End {
			t.Fatalf("batch %+v at offset %d of %+v: %v", i, next, e, err)
		}
		next = i.End()
		again = warmentry.AppendBatch(again, batch, batch[segment.IdentityBytes:])
	}
	if next != e.End || !bytes.Equal(again, b) {
		t.Fatalf("%x\ndecodes to %+v and encodes to\n%x", b, e, again)
	}
}
