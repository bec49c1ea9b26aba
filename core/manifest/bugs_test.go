package manifest

import (
	"errors"
	"testing"

	"varve/core/segment"
)

// TestSR4SpansBeyond32Bits: spans as long as 2^31, 2^32 and far more records are written and read as they are, in
// the manifest, in a page and in a key, and cover what they say. One that ends before it begins, which is
// what a narrowed length makes of them, is refused: nothing is deleted by a list that cannot be.
func TestSR4SpansBeyond32Bits(t *testing.T) {
	of := func(base, end segment.Offset) Manifest {
		return Manifest{
			LogID: segment.LogID{1}, Epoch: 1, Nonce: 1, Sequence: 1, Lineage: []segment.Lineage{{Epoch: 1}},
			Segments: []Segment{{Base: base, End: end, Epoch: 1, State: Finished, Attempt: 1, ID: 1, Bytes: ObjectMin, FooterBytes: FooterMin}},
		}
	}
	for _, length := range []segment.Offset{1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<33 + 5, 1 << 61} {
		m := of(0, length)
		var got Manifest
		if err := Parse(Append(nil, &m), &got); err != nil || got.Segments[0] != m.Segments[0] || got.Exported() != length {
			t.Errorf("%d records: %+v, exported %d, %v", length, got.Segments, got.Exported(), err)
		}
		k, ok := ParseKey(string(m.Segments[0].AppendKey(nil)))
		if !ok || k.Base != 0 || k.End != length {
			t.Errorf("%d records: key %+v", length, k)
		}
		page := PageText{LogID: m.LogID, Number: 1, Segments: m.Segments}
		var read PageText
		if err := ParsePage(AppendPage(nil, &page), &read); err != nil || read.Segments[0] != m.Segments[0] {
			t.Errorf("%d records in a page: %+v, %v", length, read.Segments, err)
		}
		for _, end := range []segment.Offset{segment.Offset(int32(length)), length - 1<<32, length - 1<<62} {
			if end > 0 && end <= length {
				continue
			}
			m := of(0, end)
			var bad *Error
			if err := m.Verify(); !errors.As(err, &bad) || bad.Field == "" {
				t.Errorf("a span [0, %d): %v", end, err)
			}
		}
	}
}
