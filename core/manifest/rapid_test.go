package manifest

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"varve/core/segment"
)

// drawManifest draws a valid manifest: a dense row of objects and lost spans cut up by epochs, some of
// it in pages, attempts and dead objects between.
func drawManifest(t *rapid.T) *Manifest {
	times := rapid.Int64()
	m := &Manifest{
		Nonce: rapid.Uint64().Draw(t, "nonce"), Sequence: rapid.Uint64Range(1, NumberMax).Draw(t, "sequence"),
		DeletedTo: rapid.Int64Range(0, NumberMax/2).Draw(t, "deleted to"),
	}
	copy(m.LogID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "log"))
	m.Start = m.DeletedTo + rapid.Int64Range(0, NumberMax/4).Draw(t, "start")
	at := m.DeletedTo - rapid.Int64Range(0, min(m.DeletedTo, 50)).Draw(t, "before")
	epoch := segment.Epoch(1)
	m.Lineage = append(m.Lineage, segment.Lineage{Epoch: epoch, First: rapid.Int64Range(0, at).Draw(t, "first")})
	attempt := uint64(0)
	next := func(state State, base segment.Offset) Segment {
		s := Segment{Base: base, End: base + rapid.Int64Range(60, 1<<40).Draw(t, "records"), Epoch: epoch, State: state}
		if state != Lost {
			attempt += rapid.Uint64Range(1, 1<<40).Draw(t, "attempt")
			s.Attempt, s.ID = attempt, segment.ID(rapid.Uint64Range(1, math.MaxUint64).Draw(t, "id"))
			s.Bytes = rapid.Int64Range(ObjectMin, ObjectMax).Draw(t, "bytes")
			s.FooterBytes = rapid.Int64Range(FooterMin, s.Bytes-ObjectMin+FooterMin).Draw(t, "footer")
			s.CRC = rapid.Uint32().Draw(t, "crc")
		}
		a, b := times.Draw(t, "time"), times.Draw(t, "time")
		s.MinTime, s.MaxTime, s.AppendTime = min(a, b), max(a, b), times.Draw(t, "append time")
		return s
	}
	for range rapid.IntRange(0, 30).Draw(t, "segments") {
		if rapid.IntRange(0, 4).Draw(t, "new epoch") == 0 {
			epoch += rapid.Uint32Range(1, 1<<20).Draw(t, "epoch")
			m.Lineage = append(m.Lineage, segment.Lineage{Epoch: epoch, First: at})
		}
		s := next(rapid.SampledFrom([]State{Finished, Finished, Lost}).Draw(t, "state"), at)
		m.Segments = append(m.Segments, s)
		if rapid.IntRange(0, 3).Draw(t, "beside") == 0 {
			m.Segments = append(m.Segments, next(rapid.SampledFrom([]State{Started, Dead}).Draw(t, "state beside"), s.Base))
		}
		at = s.End
	}
	m.Epoch = epoch + rapid.Uint32Range(0, 3).Draw(t, "claimed")
	var page PageText
	number := uint64(0)
	for range rapid.IntRange(0, 3).Draw(t, "splits") {
		number += rapid.Uint64Range(1, 1<<50).Draw(t, "number")
		Split(m, rapid.IntRange(1, 20).Draw(t, "most"), number, &page, nil)
	}
	return m
}

// TestRapidRoundTrip: any manifest and its pages come back as they were, also after a mark has moved,
// and a text with any one byte changed is refused.
func TestRapidRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawManifest(t)
		if err := m.Verify(); err != nil {
			t.Fatal(err)
		}
		before := m.Exported()
		var page, pageAgain PageText
		if text, ok := Split(m, 1, 1<<60, &page, nil); ok {
			if err := ParsePage(text, &pageAgain); err != nil || !reflect.DeepEqual(page, pageAgain) {
				t.Fatalf("%v: %+v became %+v", err, page, pageAgain)
			}
		}
		if m.Exported() != before {
			t.Fatalf("exported up to %d, after a split to %d", before, m.Exported())
		}
		m.DropBelow(rapid.Int64Range(m.DeletedTo, min(m.Start, max(before, m.DeletedTo))).Draw(t, "mark"))
		if m.Exported() != before {
			t.Fatalf("exported up to %d, after a drop to %d", before, m.Exported())
		}
		text := Append(nil, m)
		var again, copied Manifest
		if err := Parse(text, &again); err != nil {
			t.Fatal(err)
		}
		copied.CopyFrom(m)
		for _, other := range []*Manifest{&again, &copied} {
			if string(Append(nil, other)) != string(text) || len(other.Segments) != len(m.Segments) {
				t.Fatalf("%+v became %+v", m, other)
			}
			for i := range other.Segments {
				if other.Segments[i] != m.Segments[i] {
					t.Fatalf("%+v became %+v", m.Segments[i], other.Segments[i])
				}
			}
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		text[at] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
		if Parse(text, &again) == nil {
			t.Fatalf("byte %d may be %q", at, text[at])
		}
	})
}

// TestRapidKeys: a key comes back as what it was made of.
func TestRapidKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Segment{
			Base: rapid.Int64Range(0, NumberMax-1).Draw(t, "base"), Epoch: rapid.Uint32Range(1, segment.EpochMax).Draw(t, "epoch"),
			Attempt: rapid.Uint64Range(1, NumberMax).Draw(t, "attempt"), State: Finished,
		}
		s.End = rapid.Int64Range(s.Base+1, NumberMax).Draw(t, "end")
		p := Page{Base: s.Base, Number: s.Attempt}
		want := Key{Kind: KeySegment, Base: s.Base, End: s.End, Epoch: s.Epoch, Attempt: s.Attempt}
		if got, ok := ParseKey(string(s.AppendKey(nil))); !ok || got != want {
			t.Fatalf("%+v, %v, want %+v", got, ok, want)
		}
		want = Key{Kind: KeyPage, Base: s.Base, Number: s.Attempt}
		if got, ok := ParseKey(string(p.AppendKey(nil))); !ok || got != want {
			t.Fatalf("%+v, %v, want %+v", got, ok, want)
		}
	})
}
