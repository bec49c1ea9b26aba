package fuzz

import (
	"bytes"
	"errors"
	"hash/crc32"
	"reflect"
	"testing"

	"varve/core/segment"
)

func supers() []segment.Superblock {
	s := segment.Superblock{
		Sequence: 4, LogID: logID, Epoch: 3, Nonce: 8, Sync: segment.Periodic, SectorBytes: 512, Complete: true,
		Start: 1, HotStart: 2, Frontier: 5, Committed: 6, CommittedEpoch: 2, Created: 99,
		Lineage: []segment.Lineage{{Epoch: 1, First: 0}, {Epoch: 3, First: 5}},
	}
	long := s
	long.Clean, long.Lineage = true, nil
	for e := range segment.Epoch(500) {
		long.Lineage = append(long.Lineage, segment.Lineage{Epoch: e + 1, First: segment.Offset(e) * 3})
	}
	return []segment.Superblock{{Sequence: 1, LogID: logID, SectorBytes: 4096}, s, long}
}

// FuzzSuper: a superblock that decodes encodes to the same bytes up to its stated length, and what it
// encodes to decodes to the same; one that does not is refused with a place, and changes nothing.
func FuzzSuper(f *testing.F) {
	for _, s := range supers() {
		b, err := segment.AppendSuper(nil, &s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:132+12*len(s.Lineage)])
		b = bytes.Clone(b)
		b[115] = 1 // a reserved zero
		f.Add(b)
	}
	eachForeign(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		superIdentity(t, b)
		if len(b) < 132 {
			return
		}
		b = bytes.Clone(b)
		copy(b, "VARVESUP")
		used := le.Uint32(b[12:])
		if used < 132 || int64(used) > int64(len(b)) {
			used = uint32(132 + (len(b)-132)/12*12)
			le.PutUint32(b[12:], used)
		}
		le.PutUint32(b[used-4:], crc32.Checksum(b[:used-4], castagnoli))
		superIdentity(t, b)
	})
}

func superIdentity(t *testing.T, b []byte) {
	before := segment.Superblock{Sequence: 12345, Lineage: []segment.Lineage{{Epoch: 1, First: 2}}}
	s := before
	var err error
	if n := allocated(func() {
		s = before
		err = segment.ReadSuper(b, &s)
	}); n > slack+4*uint64(len(b)) {
		t.Fatalf("%d bytes allocated for a superblock of %d", n, len(b))
	}
	if err != nil {
		var bad *segment.SuperError
		if !errors.Is(err, segment.ErrSuperNewer) && (!errors.As(err, &bad) || bad.Pos < 0 || bad.Pos > int64(len(b))) {
			t.Fatalf("refused without a place: %v", err)
		}
		if !reflect.DeepEqual(s, before) {
			t.Fatalf("refused, and yet it left %+v", s)
		}
		return
	}
	again, err := segment.AppendSuper(nil, &s)
	if err != nil {
		t.Fatal(err)
	}
	used := int(le.Uint32(b[12:]))
	if !bytes.Equal(again[:used], b[:used]) {
		t.Fatalf("%x\ndecodes to %+v and encodes to\n%x", b[:used], s, again[:used])
	}
	var twice segment.Superblock
	if err := segment.ReadSuper(again, &twice); err != nil {
		t.Fatal(err)
	}
	if len(s.Lineage) == 0 {
		s.Lineage, twice.Lineage = nil, nil
	}
	if !reflect.DeepEqual(s, twice) {
		t.Fatalf("%+v became %+v", s, twice)
	}
}
