package manifest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"varve/core/segment"
)

func TestSplit(t *testing.T) {
	m := many(SegmentsMax)
	var page PageText
	if text, ok := Split(m, SegmentsMax, 5, &page, []byte("x")); ok || string(text) != "x" || len(m.Segments) != SegmentsMax {
		t.Fatal("split without need")
	}
	m = many(SegmentsMax + 1)
	dead, started := m.Segments[3], m.Segments[4]
	dead.State, dead.Attempt = Dead, 5001
	started.State, started.Attempt = Started, 5002
	m.Segments[7] = Segment{Base: 70, End: 80, Epoch: 9, State: Lost}
	m.Segments = slices.Insert(m.Segments, 4, dead)
	m.Segments = slices.Insert(m.Segments, 6, started)
	m.Segments[1].MinTime, m.Segments[1].MaxTime, m.Segments[1].AppendTime = -7, goldenTime+9000, goldenTime+8000
	before := slices.Clone(m.Segments)
	text, ok := Split(m, SegmentsMax, 5, &page, []byte("x"))
	if !ok || text[0] != 'x' || len(page.Segments) != 501 || len(m.Segments) != 502 || m.Exported() != 10010 {
		t.Fatalf("%v: %d in the page, %d in the manifest, exported %d", ok, len(page.Segments), len(m.Segments), m.Exported())
	}
	if m.Segments[0] != dead || m.Segments[1] != started || m.Segments[2].Base != 5010 {
		t.Errorf("left %+v", m.Segments[:3])
	}
	if got := m.Pages[0]; got.Base != 0 || got.End != 5010 || got.Number != 5 || got.Count != 501 ||
		got.MinTime != -7 || got.MaxTime != goldenTime+9000 || got.AppendTime != goldenTime+8000 {
		t.Errorf("page %+v", got)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
	var again PageText
	if err := ParsePage(text[1:], &again); err != nil || !reflect.DeepEqual(again, page) {
		t.Errorf("page %v", err)
	}
	if err := m.Pages[0].Verify(m.LogID, text[1:], &again); err != nil {
		t.Error(err)
	}
	all := append(slices.Clone(page.Segments), m.Segments...)
	slices.SortFunc(all, compareEntries)
	if !reflect.DeepEqual(all, before) {
		t.Error("entries lost")
	}
}

func compareEntries(a, b Segment) int {
	if a.Base != b.Base {
		return int(a.Base - b.Base)
	}
	return int(a.Attempt) - int(b.Attempt)
}

// TestDropBelow: at every mark the entries that end above it stay, and no others.
func TestDropBelow(t *testing.T) {
	for mark := segment.Offset(0); mark <= 200; mark++ {
		m := many(20)
		m.Start = 200
		var page PageText
		for k, most := range []int{15, 6} {
			if _, ok := Split(m, most, uint64(k)+1, &page, nil); !ok {
				t.Fatal("no split")
			}
		}
		m.DropBelow(mark)
		m.DropBelow(mark - 1) // never back
		if err := m.Verify(); err != nil || m.DeletedTo != mark || m.Exported() != 200 {
			t.Fatalf("mark %d: %v, deleted to %d, exported %d", mark, err, m.DeletedTo, m.Exported())
		}
		for _, p := range m.Pages {
			if p.End <= mark {
				t.Fatalf("mark %d: page [%d, %d) is still there", mark, p.Base, p.End)
			}
		}
		if n := int(20 - max(mark/10, 17)); len(m.Segments) != n {
			t.Fatalf("mark %d: %d segments", mark, len(m.Segments))
		}
	}
}

func TestKeys(t *testing.T) {
	p := Page{Base: 40, Number: 7}
	s := Segment{Base: 1000, End: NumberMax, Epoch: 0xab, Attempt: NumberMax, State: Started}
	for _, c := range []struct {
		key  string
		want Key
	}{
		{"manifest.json", Key{Kind: KeyManifest}},
		{string(p.AppendKey(nil)), Key{Kind: KeyPage, Base: 40, Number: 7}},
		{string(s.AppendKey(nil)), Key{Kind: KeySegment, Base: 1000, End: NumberMax, Epoch: 0xab, Attempt: NumberMax}},
	} {
		if got, ok := ParseKey(c.key); !ok || got != c.want {
			t.Errorf("%s: %+v, %v", c.key, got, ok)
		}
	}
	if got := string(p.AppendKey(nil)); got != "pages/00000000000000000040-7.json" {
		t.Error(got)
	}
	if got := string(s.AppendKey([]byte("a/"))); got != "a/segments/00000000000000001000-04611686018427387903-000000ab-4611686018427387903.seg" {
		t.Error(got)
	}
	for _, key := range []string{
		"", "/manifest.json", "manifest.json/", "manifest.jso", "../manifest.json", "pages/", "segments/", "segments/../manifest.json",
		"pages/00000000000000000040-07.json", "pages/00000000000000000040-0.json", "pages/00000000000000000040-7.seg",
		"pages/0000000000000000040-7.json", "pages/000000000000000000040-7.json", "pages/00000000000000000040-7.json\x00",
		"pages/04611686018427387904-7.json", "pages/99999999999999999999-7.json", "pages/00000000000000000040-4611686018427387904.json",
		"segments/00000000000000000040-00000000000000000040-00000001-1.seg", "segments/00000000000000000040-00000000000000000041-00000000-1.seg",
		"segments/00000000000000000040-00000000000000000041-0000000A-1.seg", "segments/00000000000000000040-00000000000000000041-00000001-0.seg",
		"segments/00000000000000000040-00000000000000000041-00000001-1", "segments/00000000000000000040-00000000000000000041-00000001-1/2.seg",
		"segments/" + strings.Repeat("0", 1000) + ".seg",
	} {
		if k, ok := ParseKey(key); ok {
			t.Errorf("%q is read as %+v", key, k)
		}
	}
}
