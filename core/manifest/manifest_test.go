package manifest

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"

	"varve/core/segment"
)

// many returns a manifest with n finished objects of ten records.
func many(n int) *Manifest {
	m := &Manifest{LogID: goldenLog(), Epoch: 9, Nonce: 77, Sequence: 12, Lineage: []segment.Lineage{{Epoch: 9}}}
	for i := range n {
		at := segment.Offset(i)
		m.Segments = append(m.Segments, Segment{
			Base: 10 * at, End: 10*at + 10, Epoch: 9, State: Finished, Attempt: uint64(i) + 1, ID: segment.MakeID(9, uint32(i)+1),
			Bytes: 268_435_456 + at, FooterBytes: 65_536, CRC: uint32(i) * 2654435761,
			MinTime: goldenTime + at, MaxTime: goldenTime + at + 1, AppendTime: goldenTime + at + 2,
		})
	}
	return m
}

// sealed returns a text with its checksum put right.
func sealed(text string) []byte {
	body := text[:len(text)-tailBytes]
	crc := crc32.Checksum([]byte(body), castagnoli)
	return fmt.Appendf(nil, "%s%s%08x%s", body, tailBegin, crc, tailEnd)
}

func wantError(t *testing.T, err error, line int, field, expected, found string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Line != line || e.Field != field || !strings.Contains(e.Expected, expected) || !strings.Contains(e.Found, found) {
		t.Errorf("got %v, want line %d, %q, expected %q, found %q", err, line, field, expected, found)
	}
}

// TestVerify: every rule, one after the other broken in a manifest that is good but for that, with the
// line that the text has.
func TestVerify(t *testing.T) {
	for _, c := range []struct {
		line         int
		field, found string
		breakIt      func(m *Manifest)
	}{
		{2, "epoch", "0", func(m *Manifest) { m.Epoch = 0 }},
		{2, "sequence", "0", func(m *Manifest) { m.Sequence = 0 }},
		{2, "sequence", "4611686018427387904", func(m *Manifest) { m.Sequence = 1 << 62 }},
		{3, "start", "-1", func(m *Manifest) { m.Start = -1 }},
		{3, "start", "4611686018427387904", func(m *Manifest) { m.Start = 1 << 62 }},
		{3, "deleted_to", "101", func(m *Manifest) { m.DeletedTo = 101 }},
		{3, "deleted_to", "-1", func(m *Manifest) { m.DeletedTo = -1 }},
		{5, "lineage[0].first", "101", func(m *Manifest) { m.Lineage[0].First = 101 }},
		{5, "lineage[0].epoch", "0", func(m *Manifest) { m.Lineage[0].Epoch = 0 }},
		{6, "lineage[1].epoch", "1", func(m *Manifest) { m.Lineage[1].Epoch = 1 }},
		{6, "lineage[1].epoch", "4", func(m *Manifest) { m.Lineage[1].Epoch = 4 }},
		{6, "lineage[1].first", "-3", func(m *Manifest) { m.Lineage[1].First = -3 }},
		{9, "segments[0].base", "999", func(m *Manifest) { m.Segments[0].Base = 999 }},
		{9, "segments[0].base", "1001", func(m *Manifest) { m.Segments[0].Base = 1001 }},
		{9, "segments[0].end", "1000", func(m *Manifest) { m.Segments[0].End = 1000 }},
		{9, "segments[0].epoch", "2", func(m *Manifest) { m.Segments[0].Epoch = 2 }},
		{9, "segments[0].epoch", "4", func(m *Manifest) { m.Segments[0].Epoch = 4 }},
		{9, "segments[0].state", "unknown", func(m *Manifest) { m.Segments[0].State = 5 }},
		{9, "segments[0].attempt", "0", func(m *Manifest) { m.Segments[0].Attempt = 0 }},
		{9, "segments[0].id", "0", func(m *Manifest) { m.Segments[0].ID = 0 }},
		{9, "segments[0].bytes", "0", func(m *Manifest) { m.Segments[0].Bytes = 0 }},
		{9, "segments[0].bytes", "5497558138881", func(m *Manifest) { m.Segments[0].Bytes = ObjectMax + 1 }},
		{9, "segments[0].footer_bytes", "1000", func(m *Manifest) { m.Segments[0].FooterBytes = 1000 }},
		{9, "segments[0].footer_bytes", "167", func(m *Manifest) { m.Segments[0].FooterBytes = 167 }},
		{9, "segments[0].max_time", "17", func(m *Manifest) { m.Segments[0].MaxTime = m.Segments[0].MinTime - 1 }},
		{9, "segments[0].end", "1005", func(m *Manifest) { m.Start, m.DeletedTo, m.Pages = 1005, 1005, nil }},
		{10, "segments[1].base", "1006", func(m *Manifest) { m.Segments[1].Base = 1006 }},
		{10, "segments[1].attempt", "1", func(m *Manifest) { m.Segments[1].Attempt = 1 }},
		{10, "segments[1].bytes", "1", func(m *Manifest) { m.Segments[1].Bytes = 1 }},
		{11, "segments[2].attempt", "8", func(m *Manifest) { m.Segments[2].Attempt = 8 }},
		{11, "segments[2].base", "1000", func(m *Manifest) { m.Segments[2].Base = 1000 }},
		{12, "segments[3].attempt", "9", func(m *Manifest) { m.Segments[3].Attempt = 9 }},
		{12, "segments[3].attempt", "7", func(m *Manifest) { m.Segments[3].Attempt = 7 }},
		{11, "segments[2].end", "1002", func(m *Manifest) {
			m.Start, m.DeletedTo, m.Pages = 1003, 1003, nil
			m.Segments[2].Base, m.Segments[2].End, m.Segments[1] = 1000, 1002, m.Segments[2]
			m.Segments[1].Base, m.Segments[1].End = 1000, 1004
			m.Segments[2].Attempt, m.Segments[3].Attempt = 11, 12
		}},
		{12, "segments[3].end", "4611686018427387904", func(m *Manifest) { m.Segments[3].End = 1 << 62 }},
		{15, "pages[0].base", "101", func(m *Manifest) { m.Pages[0].Base = 101 }},
		{15, "pages[0].end", "1000", func(m *Manifest) { m.Start, m.DeletedTo = 1000, 1000 }},
		{15, "pages[0].end", "0", func(m *Manifest) { m.Pages[0].End = 0 }},
		{15, "pages[0].number", "0", func(m *Manifest) { m.Pages[0].Number = 0 }},
		{15, "pages[0].count", "0", func(m *Manifest) { m.Pages[0].Count = 0 }},
		{15, "pages[0].count", "1001", func(m *Manifest) { m.Pages[0].Count = 1001 }},
		{15, "pages[0].bytes", "0", func(m *Manifest) { m.Pages[0].Bytes = 0 }},
		{15, "pages[0].object_bytes", "-1", func(m *Manifest) { m.Pages[0].ObjectBytes = -1 }},
		{9, "segments[0].bytes", "1024", func(m *Manifest) { m.Pages[0].ObjectBytes = NumberMax }},
		{15, "pages[0].max_time", "-6", func(m *Manifest) { m.Pages[0].MaxTime = -6 }},
		{16, "pages[1].number", "7", func(m *Manifest) { m.Pages = append(m.Pages, m.Pages[0]); m.Pages[1].Base, m.Pages[1].End = 1000, 1010 }},
		{16, "pages[1].base", "0", func(m *Manifest) { m.Pages = append(m.Pages, m.Pages[0]); m.Pages[1].Number = 8 }},
	} {
		m := goldenManifestFields()
		c.breakIt(m)
		wantError(t, m.Verify(), c.line, c.field, "", c.found)
	}
}

// TestLineageOwns: an object stands where the lineage has its epoch, and in no other place.
func TestLineageOwns(t *testing.T) {
	for _, c := range []struct {
		lineage []segment.Lineage
		want    string
	}{
		{[]segment.Lineage{{Epoch: 1, First: 0}, {Epoch: 2, First: 20}, {Epoch: 9, First: 20}}, ""},
		{[]segment.Lineage{{Epoch: 2, First: 20}, {Epoch: 9, First: 20}}, ""}, // cut below Start
		{[]segment.Lineage{{Epoch: 1, First: 0}, {Epoch: 9, First: 15}}, "segments[1].end"},
		{[]segment.Lineage{{Epoch: 1, First: 0}, {Epoch: 9, First: 30}}, "segments[2].epoch"},
		{[]segment.Lineage{{Epoch: 1, First: 20}, {Epoch: 9, First: 20}}, "segments[0].epoch"},
		{[]segment.Lineage{{Epoch: 9, First: 15}}, "segments[1].end"},
		{nil, "segments[0].epoch"},
	} {
		m := many(4)
		m.Segments[0].Epoch, m.Segments[1].Epoch = 1, 1
		m.Start, m.Lineage = 20, c.lineage
		err := m.Verify()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want+":")) {
			t.Errorf("%v: got %v, want %q", c.lineage, err, c.want)
		}
	}
}

func TestPageVerify(t *testing.T) {
	p, text, of := goldenPageFields(), []byte(goldenPage), goldenManifestFields().Pages[0]
	wantError(t, of.Verify(segment.LogID{1}, text, p), 2, "log", "01", "0001")
	other := of
	other.Number = 8
	wantError(t, other.Verify(goldenLog(), text, p), 2, "number", "8", "7")
	other = of
	other.CRC++
	wantError(t, other.Verify(goldenLog(), text, p), 1, "", "6d3a186e", "6d3a186d")
	other = of
	other.MaxTime++
	wantError(t, other.Verify(goldenLog(), text, p), 4, "segments", "MaxTime:1700000000000000010", "MaxTime:1700000000000000009")
	p.Segments[1].State = Dead
	wantError(t, p.Verify(), 5, "segments[1].state", "", "dead")
	p.Segments = nil
	wantError(t, p.Verify(), 4, "segments", "at least one", "none")
	p = goldenPageFields()
	p.Number = 0
	wantError(t, p.Verify(), 2, "number", "1 or more", "0")
	p = goldenPageFields()
	p.Segments[1].Base++
	wantError(t, p.Verify(), 5, "segments[1].base", "400", "401")
}

// TestRefused: texts whose checksum is right and which are not what Append makes.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		old, new     string
		line         int
		field, found string
	}{
		{`"epoch":3,"nonce"`, `"epoch": 3,"nonce"`, 2, "epoch", " 3"},
		{`"epoch":3,"nonce"`, `"epoch":03,"nonce"`, 2, "epoch", "03"},
		{`"epoch":3,"nonce"`, `"epoch":3.0,"nonce"`, 2, "nonce", ".0"},
		{`"epoch":3,"nonce"`, `"epoch":4294967296,"nonce"`, 2, "epoch", "4294967296"},
		{`"epoch":3,"nonce"`, `"epoch":-3,"nonce"`, 2, "epoch", "-3"},
		{`"sequence":9007199254740993`, `"sequence":9e15`, 2, "sequence", "e15"},
		{`"sequence":9007199254740993`, `"sequence":18446744073709551616`, 2, "sequence", "18446744073709551616"},
		{`"sequence":9007199254740993`, `"sequence":18446744073709551619`, 2, "sequence", "18446744073709551619"},
		{`"nonce":"1122334455667788"`, `"nonce":"1122"`, 2, "nonce", "1122"},
		{`"nonce":"1122334455667788"`, `"nonce":"112233445566778G"`, 2, "nonce", "G"},
		{`"nonce":"1122334455667788"`, `"nonce":"112233445566778A"`, 2, "nonce", "A"},
		{`"start":100`, `"begin":100`, 3, "start", "begin"},
		{`"state":"dead"`, `"state":"deadly"`, 11, "segments[2].state", "ly"},
		{`"state":"dead"`, `"state":"gone"`, 11, "segments[2].state", "gone"},
		{`"min_time":-5`, `"min_time":-0`, 15, "pages[0].min_time", "-0"},
		{`"min_time":-5`, `"min_time":-9223372036854775809`, 15, "pages[0].min_time", "9223372036854775809"},
		{`"start":100,"deleted_to":0,`, `"start":100,"deleted_to":0,"more":1,`, 3, "deleted_to", "more"},
		{"},\n{\"epoch\":3,", "}\n{\"epoch\":3,", 6, "lineage", "epoch"},
		{"\"first\":1000}\n", "\"first\":1000},\n", 7, "lineage[2].epoch", "]"},
		{"],\n\"crc\"", "],\n\"more\":1,\n\"crc\"", 17, "crc", "more"},
		{`"deleted_to":0`, `"deleted_to":101`, 3, "deleted_to", "101"},
	} {
		text := strings.Replace(goldenManifest, c.old, c.new, 1)
		if text == goldenManifest {
			t.Fatalf("%q is not in the text", c.old)
		}
		m := *goldenManifestFields()
		err := Parse(sealed(text), &m)
		wantError(t, err, c.line, c.field, "", c.found)
		if m.Epoch != 0 || len(m.Segments)+len(m.Lineage)+len(m.Pages) != 0 {
			t.Errorf("%q: refused, and yet %+v", c.new, m)
		}
	}
	var m Manifest
	var p PageText
	wantError(t, Parse(nil, &m), 1, "", "varve", "the end")
	wantError(t, Parse([]byte("<html>"), &m), 1, "", "varve", "<html>")
	wantError(t, Parse([]byte(goldenPage), &m), 1, "", "manifest", "page")
	wantError(t, ParsePage([]byte(goldenManifest), &p), 1, "", "page", "manifest")
	wantError(t, Parse([]byte(goldenManifest)[:40], &m), 1, "", "a whole text", "40 bytes")
	wantError(t, Parse([]byte(goldenManifest+"\n"), &m), 17, "crc", "crc", "rc")
	wantError(t, Parse(make([]byte, BytesMax+1), &m), 1, "", "at most 33554432", "33554433")
	bad := strings.Replace(goldenManifest, `"start":100`, `"start":101`, 1)
	wantError(t, Parse([]byte(bad), &m), 17, "crc", "checksum of the bytes before it", "c7fe05c7")
}

// TestNewer: a newer version is refused by its version, whatever it has between first and last line,
// and damage is not taken for one.
func TestNewer(t *testing.T) {
	var m Manifest
	var p PageText
	for _, text := range []string{goldenManifest, goldenPage} {
		newer := strings.Replace(text, `"version":1,`, `"version":2,`, 1)
		for _, whole := range []string{newer, strings.Replace(newer, `"log"`, `"renamed"`, 1)} {
			b := sealed(whole)
			err, other := Parse(b, &m), ParsePage(b, &p)
			if text == goldenPage {
				err, other = other, err
			}
			if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "version 2") || errors.Is(other, ErrNewer) {
				t.Errorf("%v, %v", err, other)
			}
		}
		if err := errors.Join(Parse([]byte(newer), &m), ParsePage([]byte(newer), &p)); errors.Is(err, ErrNewer) {
			t.Errorf("damage is a newer version: %v", err)
		}
		for _, v := range []string{"0", "01", "-1", `"1"`} {
			b := sealed(strings.Replace(text, `"version":1,`, `"version":`+v+",", 1))
			if err := errors.Join(Parse(b, &m), ParsePage(b, &p)); errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "line 1, version") {
				t.Errorf("version %s: %v", v, err)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	m := many(EntriesMax)
	b := Append(nil, m)
	if err := Parse(b, &Manifest{}); err != nil {
		t.Error(err)
	}
	last := Append(nil, many(1))
	item := string(last[strings.Index(string(last), `{"base"`):strings.LastIndex(string(last), "\n],\n\"pages\"")])
	more := strings.Replace(string(b), "\n],\n\"pages\"", ",\n"+item+"\n],\n\"pages\"", 1)
	wantError(t, Parse(sealed(more), &Manifest{}), 8+EntriesMax, "segments[2000]", "at most 2000", "more")
	m = many(EntriesMax + 1)
	wantError(t, m.Verify(), 8+EntriesMax, "segments[2000]", "at most 2000", "2001")

	m = &Manifest{Epoch: segment.EpochMax, Sequence: NumberMax, Start: NumberMax, Nonce: math.MaxUint64}
	for i := range LineageMax {
		m.Lineage = append(m.Lineage, segment.Lineage{Epoch: segment.EpochMax - LineageMax + 1 + segment.Epoch(i), First: NumberMax})
	}
	for i := range segment.Offset(PagesMax) {
		from := NumberMax - PagesMax - EntriesMax + i
		m.Pages = append(m.Pages, Page{
			Base: from, End: from + 1, Number: uint64(NumberMax - PagesMax + i), Count: 1, Bytes: BytesMax, CRC: math.MaxUint32, ObjectBytes: 1 << 45,
			MinTime: math.MinInt64, MaxTime: math.MaxInt64, AppendTime: math.MinInt64,
		})
	}
	m.DeletedTo = m.Pages[0].Base
	for i := range segment.Offset(EntriesMax) {
		from := NumberMax - EntriesMax + i
		m.Segments = append(m.Segments, Segment{
			Base: from, End: from + 1, Epoch: segment.EpochMax - LineageMax, State: Finished, Attempt: uint64(NumberMax - EntriesMax + i), ID: math.MaxUint64,
			Bytes: ObjectMax / 4, FooterBytes: 1 << 39, CRC: math.MaxUint32, MinTime: math.MinInt64, MaxTime: math.MaxInt64, AppendTime: math.MinInt64,
		})
	}
	if b = Append(b[:0], m); len(b) > BytesMax {
		t.Errorf("the largest manifest has %d bytes, more than %d", len(b), BytesMax)
	}
	var again Manifest
	if err := Parse(b, &again); err != nil || !reflect.DeepEqual(&again, m) {
		t.Errorf("the largest manifest: %v", err)
	}
	t.Logf("the largest manifest has %d bytes", len(b))
	m.Pages = append(m.Pages, m.Pages[0])
	wantError(t, m.Verify(), 5+LineageMax+2+EntriesMax+2+PagesMax, "pages[65536]", "at most 65536", "65537")
	m.Lineage = append(m.Lineage, m.Lineage[0])
	wantError(t, m.Verify(), 5+LineageMax, "lineage[131072]", "at most 131072", "131073")
}

// TestNoAllocations: nothing is allocated once memory has grown.
func TestNoAllocations(t *testing.T) {
	m, b := many(SegmentsMax), []byte(nil)
	var again, copied Manifest
	var page PageText
	var text []byte
	round := func() {
		b = Append(b[:0], m)
		if Parse(b, &again) != nil || again.Verify() != nil {
			t.Fatal("refused")
		}
		copied.CopyFrom(&again)
		text, _ = Split(&copied, 900, 1, &page, text[:0])
		if ParsePage(text, &page) != nil || copied.Pages[0].Verify(m.LogID, text, &page) != nil {
			t.Fatal("refused")
		}
		copied.Start = 5010
		copied.DropBelow(5005)
		text = copied.Segments[0].AppendKey(text[:0])
	}
	round()
	if n := testing.AllocsPerRun(5, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	m, text := many(SegmentsMax), []byte(nil)
	for b.Loop() {
		text = Append(text[:0], m)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
}

func BenchmarkParse(b *testing.B) {
	var m Manifest
	text := Append(nil, many(SegmentsMax))
	for b.Loop() {
		if err := Parse(text, &m); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
}
