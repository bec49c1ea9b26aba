package core

import (
	"errors"
	"fmt"
	"testing"

	"varve/core/segment"
)

// tape is a segment file in memory, written by the rules of the format.
type tape struct {
	id      segment.ID
	epoch   Epoch
	bytes   []byte
	next    Offset
	chain   uint32
	commit  uint64
	starts  []int64 // positions of the batches
	dataPos int64
}

var tapeLog = segment.LogID{1, 2, 3}

const tapeSector = 512

func newTape(id segment.ID, epoch Epoch, base Offset) *tape {
	t := &tape{id: id, epoch: epoch, next: base, dataPos: tapeSector}
	t.bytes = make([]byte, tapeSector)
	h := segment.Header{Kind: segment.Created, SectorBytes: tapeSector, LogID: tapeLog, ID: id, Epoch: epoch, Base: base}
	t.chain = segment.PutHeader(t.bytes, &h)
	return t
}

// add appends a batch whose payload names its own offsets.
func (t *tape) add(records uint32, payloadBytes int) {
	t.commit++
	payload := make([]byte, payloadBytes)
	for i := range payload {
		payload[i] = byte(int(t.next) + i)
	}
	id := segment.Identity{
		PayloadBytes: uint32(payloadBytes), Kind: segment.KindRecords, Records: records, Base: t.next,
		Epoch: t.epoch, ProducerID: -1, ProducerEpoch: -1, Sequence: -1, PayloadCRC: segment.PayloadCRC(payload),
	}
	p := segment.Placement{ID: t.id, Commit: t.commit, Chain: t.chain}
	var h [segment.BatchHeaderBytes]byte
	t.chain = segment.PutBatchHeader(h[:], &p, &id, segment.PlacementSeed(tapeLog, t.id), segment.IdentitySeed(tapeLog))
	t.starts = append(t.starts, int64(len(t.bytes)))
	t.bytes = append(append(t.bytes, h[:]...), payload...)
	t.next = id.End()
}

// pad fills up to the next sector boundary with a byte.
func (t *tape) pad(with byte) {
	for len(t.bytes)%tapeSector != 0 {
		t.bytes = append(t.bytes, with)
	}
}

func (t *tape) extent(first, end Offset) Extent {
	return Extent{First: first, End: end, Segment: t.id, Base: t.base(), Epoch: t.epoch, DataPos: t.dataPos, Sector: tapeSector}
}

func (t *tape) base() Offset {
	h, _, _, _ := segment.ReadHeader(t.bytes)
	return h.Base
}

// shelf answers fetches from tapes.
type shelf struct {
	tapes   []*tape
	fetches int
	index   func(f *Fetch) int64 // position for Pos == 0; nil: DataPos
}

func (s *shelf) fetch(f *Fetch) error {
	s.fetches++
	for _, t := range s.tapes {
		if t.id != f.Extent.Segment {
			continue
		}
		pos := f.Pos
		if pos == 0 {
			pos = f.Extent.DataPos
			if !f.NoIndex && s.index != nil {
				pos = s.index(f)
			}
		}
		end := min(pos+int64(f.Bytes), int64(len(t.bytes)))
		if pos > end {
			end = pos
		}
		if pos < int64(len(t.bytes)) {
			_, id, _, ok := segment.ReadBatchHeader(t.bytes[pos:], segment.PlacementSeed(tapeLog, t.id), segment.IdentitySeed(tapeLog))
			if ok {
				end = min(max(end, pos+segment.BatchHeaderBytes+int64(id.PayloadBytes)), int64(len(t.bytes)))
			}
			f.Buf = append(f.Buf[:0], t.bytes[pos:end]...)
		}
		f.At, f.EOF = pos, end >= int64(len(t.bytes))
		return nil
	}
	f.Missing = true
	return errors.New("no such file")
}

// readAll reads up to committed and returns the bases of the batches, or the error that stopped it.
func readAll(t *testing.T, c *Cursor, s *shelf, v *View, committed Offset, bytes int) ([]Offset, error) {
	t.Helper()
	var got []Offset
	for i := 0; ; i++ {
		if i > 10_000 {
			t.Fatal("the cursor makes no progress")
		}
		f, err := c.Next(v, committed, bytes)
		if f == nil {
			return got, err
		}
		if err := c.Complete(f, s.fetch(f)); err != nil {
			return got, err
		}
		for b, ok := c.Batch(); ok; b, ok = c.Batch() {
			if want := segment.PayloadCRC(b.Payload); want != b.PayloadCRC {
				t.Fatalf("batch at %d served with a wrong payload", b.Base)
			}
			got = append(got, b.Base)
		}
	}
}

func viewOf(xs ...Extent) *View {
	v := &View{LogID: tapeLog, Extents: xs, Epoch: 9}
	for _, x := range xs {
		v.Lineage = append(v.Lineage, segment.Lineage{Epoch: x.Epoch, First: x.First})
	}
	return v
}

// threeTapes is a log of 60 batches of two records in three files, with padding of all kinds.
func threeTapes() (*shelf, *View) {
	s := &shelf{}
	v := &View{LogID: tapeLog, Epoch: 3}
	next := Offset(0)
	for n := uint32(1); n <= 3; n++ {
		t := newTape(segment.MakeID(n, 1), n, next)
		for i := 0; i < 20; i++ {
			t.add(2, 10+37*i)
			if i%3 == 0 {
				t.pad(byte(0xaa * (i % 2))) // damaged padding is harmless
			}
		}
		s.tapes = append(s.tapes, t)
		x := t.extent(next, t.next)
		next = t.next
		if n == 3 {
			x.End = EndNone
		}
		v.Extents = append(v.Extents, x)
		v.Lineage = append(v.Lineage, segment.Lineage{Epoch: n, First: x.First})
	}
	return s, v
}

func wantBases(t *testing.T, got []Offset, first, end Offset) {
	t.Helper()
	want := first &^ 1
	for _, b := range got {
		if b != want {
			t.Fatalf("got batch %d, want %d (all: %v)", b, want, got)
		}
		want += 2
	}
	if want != end {
		t.Fatalf("read up to %d, want %d", want, end)
	}
}

func TestCursorReadsEveryOffsetWithAnyBudget(t *testing.T) {
	s, v := threeTapes()
	for _, bytes := range []int{1, 200, 513, 4096, 1 << 20} {
		for from := Offset(0); from <= 120; from++ {
			for _, committed := range []Offset{0, 2, 38, 40, 42, 80, 118, 120} {
				var c Cursor
				c.Reset(Position{Offset: from})
				got, err := readAll(t, &c, s, v, committed, bytes)
				if err != nil {
					t.Fatalf("from %d, budget %d: %v", from, bytes, err)
				}
				if from >= committed {
					if len(got) != 0 {
						t.Fatalf("from %d read beyond %d: %v", from, committed, got)
					}
					continue
				}
				wantBases(t, got, from, committed)
				if p := c.Position(); p.Offset != committed || p.Epoch != v.EpochAt(committed-1) {
					t.Fatalf("position %+v after reading up to %d", p, committed)
				}
			}
		}
	}
}

func TestCursorEveryBitFlipIsHarmlessOrNamed(t *testing.T) {
	s, v := threeTapes()
	tp := s.tapes[1]
	padding := map[int]bool{}
	for i := range tp.bytes {
		padding[i] = i < tapeSector
	}
	for i := range tp.bytes {
		inside := i < tapeSector
		for k, start := range tp.starts {
			if int64(i) >= start && int64(i) < start+segment.BatchHeaderBytes+int64(10+37*k) {
				inside = true
			}
		}
		padding[i] = padding[i] || !inside
	}
	for i := range tp.bytes {
		tp.bytes[i] ^= 1 << (i % 8)
		var c Cursor
		c.Reset(Position{})
		got, err := readAll(t, &c, s, v, 120, 700)
		var ce *CorruptError
		switch {
		case padding[i] && err == nil:
			wantBases(t, got, 0, 120)
		case padding[i]:
			t.Fatalf("flip of header or padding byte %d: %v", i, err)
		case !errors.As(err, &ce):
			t.Fatalf("flip of byte %d not found: %v", i, err)
		default:
			wantBases(t, got, 0, ce.Offset)
			k := int(ce.Offset-40) / 2
			if end := tp.starts[k] + segment.BatchHeaderBytes + int64(10+37*k); int64(i) < tp.starts[k] || int64(i) >= end ||
				ce.Segment != tp.id {
				t.Fatalf("flip of byte %d blamed on %v", i, err)
			}
			// What lies behind the damage can be read by who starts there.
			if after := ce.Offset + 2; after < 80 {
				c.Reset(Position{Offset: after})
				if got, err := readAll(t, &c, s, v, 120, 700); err == nil {
					wantBases(t, got, after, 120)
				} else if !errors.As(err, &ce) {
					t.Fatal(err)
				}
			}
		}
		tp.bytes[i] ^= 1 << (i % 8)
	}
}

func TestCursorDistrustsIndexAndHint(t *testing.T) {
	s, v := threeTapes()
	for i := range v.Extents {
		v.Extents[i].Index = IndexFooter
	}
	for _, lie := range []int64{1, tapeSector + 1, 2 * tapeSector, 9 * tapeSector, 1 << 40} {
		s.index = func(*Fetch) int64 { return lie }
		var c Cursor
		for from := Offset(0); from < 120; from += 7 {
			c.Reset(Position{Offset: from})
			got, err := readAll(t, &c, s, v, 120, 600)
			if err != nil {
				t.Fatalf("index entry %d, from %d: %v", lie, from, err)
			}
			wantBases(t, got, from, 120)
		}
	}
}

func TestCursorNewView(t *testing.T) {
	s, v := threeTapes()
	good := s.tapes[1]
	// The file of [40, 80) was replaced by another one and is gone.
	moved := newTape(segment.MakeID(3, 7), good.epoch, 40)
	for i := 0; i < 20; i++ {
		moved.add(2, 10+37*i)
	}
	s.tapes[1] = moved
	var c Cursor
	c.Reset(Position{Offset: 44})
	f, err := c.Next(v, 120, 512)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Complete(f, s.fetch(f)); err != nil {
		t.Fatal(err)
	}
	newer := *v
	newer.Extents = append([]Extent{}, v.Extents...)
	newer.Extents[1] = moved.extent(40, 80)
	got, err := readAll(t, &c, s, &newer, 120, 512)
	if err != nil {
		t.Fatal(err)
	}
	wantBases(t, got, 44, 120)

	// Under the old view the missing file is damage, by name.
	c.Reset(Position{Offset: 44})
	_, err = readAll(t, &c, s, v, 120, 512)
	var ce *CorruptError
	if !errors.As(err, &ce) || ce.Segment != good.id || ce.Pos != -1 {
		t.Fatalf("missing file: %v", err)
	}
}

func TestCursorErrors(t *testing.T) {
	s, v := threeTapes()
	v.Start, v.HotStart = 10, 0
	var c Cursor
	c.Reset(Position{Offset: 9})
	var te *TrimmedError
	if _, err := c.Next(v, 120, 512); !errors.As(err, &te) || *te != (TrimmedError{Requested: 9, Start: 10}) {
		t.Fatalf("below start: %v", err)
	}
	for _, p := range []Position{{Offset: 45, Epoch: 1}, {Offset: 120, Epoch: 2}, {Offset: 500, Epoch: 2}, {Offset: 500, Epoch: 4}} {
		c.Reset(p)
		var de *DivergedError
		if _, err := c.Next(v, 120, 512); !errors.As(err, &de) || de.Position != p {
			t.Fatalf("%+v: %v", p, err)
		}
	}
	for _, p := range []Position{{Offset: 40, Epoch: 1}, {Offset: 80, Epoch: 2}, {Offset: 120, Epoch: 3}} {
		c.Reset(p)
		if _, err := readAll(t, &c, s, v, 120, 512); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
	}
	v.Extents[1].Damage, v.Extents[1].DamagePos = segment.BreakPayload, 777
	c.Reset(Position{Offset: 38})
	got, err := readAll(t, &c, s, v, 120, 512)
	var ce *CorruptError
	if !errors.As(err, &ce) || ce.Pos != 777 || ce.Offset != 40 || ce.End != 80 {
		t.Fatalf("damaged extent: %v", err)
	}
	wantBases(t, got, 38, 40)

	c.Reset(Position{Offset: 10})
	f, _ := c.Next(v, 120, 512)
	var ioe *IOError
	if err := c.Complete(f, errors.New("EIO")); !errors.As(err, &ioe) {
		t.Fatalf("I/O error: %v", err)
	}
	if got, err = readAll(t, &c, s, v, 40, 512); err != nil {
		t.Fatalf("after an I/O error: %v", err)
	}
	wantBases(t, got, 10, 40)
}

func TestCursorStepsOverDamageBelow(t *testing.T) {
	// allow_damaged: one file, its middle damaged, what follows is an extent of its own.
	tp := newTape(segment.MakeID(1, 1), 1, 0)
	for i := 0; i < 60; i++ {
		tp.add(1, 100)
		if i%4 == 3 {
			tp.pad(0)
		}
	}
	for i := tp.starts[20]; i < tp.starts[28]; i++ {
		tp.bytes[i] = 0x55
	}
	bad := tp.extent(20, 28)
	bad.Damage, bad.DamagePos = segment.BreakTorn, tp.starts[20]
	s, v := &shelf{tapes: []*tape{tp}}, viewOf(tp.extent(0, 20), bad, tp.extent(28, EndNone))
	v.Lineage = v.Lineage[:1]
	for _, bytes := range []int{1, 300, 1 << 16} {
		for from := Offset(28); from < 60; from++ {
			var c Cursor
			c.Reset(Position{Offset: from})
			got, err := readAll(t, &c, s, v, 60, bytes)
			if err != nil || len(got) != int(60-from) || got[0] != from {
				t.Fatalf("from %d: %v %v", from, got, err)
			}
		}
	}
}

func TestCursorAllocatesNothing(t *testing.T) {
	s, v := threeTapes()
	var c Cursor
	read := func() {
		c.Reset(Position{})
		if got := drain(&c, s, v, 120); got != 60 {
			panic(fmt.Sprint("read ", got))
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Fatalf("%v allocations a pass", n)
	}
}

func drain(c *Cursor, s *shelf, v *View, committed Offset) (batches int) {
	for {
		f, err := c.Next(v, committed, 1000)
		if err != nil {
			panic(err)
		}
		if f == nil {
			return batches
		}
		if err := c.Complete(f, s.fetch(f)); err != nil {
			panic(err)
		}
		for _, ok := c.Batch(); ok; _, ok = c.Batch() {
			batches++
		}
	}
}
