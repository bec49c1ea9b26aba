package scrub

import (
	"fmt"
	"strings"
	"testing"

	"varve/core/manifest"
	"varve/core/segment"
)

func object(base, end segment.Offset, epoch segment.Epoch, attempt uint64) manifest.Segment {
	return manifest.Segment{
		Base: base, End: end, Epoch: epoch, Attempt: attempt, ID: segment.MakeID(epoch, uint32(attempt)), State: manifest.Finished,
		Bytes: 4096, FooterBytes: 512,
	}
}

func TestChoose(t *testing.T) {
	text := func(all []manifest.Segment) string {
		var b strings.Builder
		for _, s := range all {
			fmt.Fprintf(&b, "[%d,%d)e%d#%d ", s.Base, s.End, s.Epoch, s.Attempt)
		}
		return strings.TrimSpace(b.String())
	}
	for name, c := range map[string]struct {
		all                  []manifest.Segment
		chosen, others, gaps string
	}{
		"none":             {nil, "", "", "[]"},
		"in order":         {[]manifest.Segment{object(10, 20, 1, 2), object(0, 10, 1, 1)}, "[0,10)e1#1 [10,20)e1#2", "", "[]"},
		"two attempts":     {[]manifest.Segment{object(0, 10, 1, 2), object(0, 10, 1, 1)}, "[0,10)e1#1", "[0,10)e1#2", "[]"},
		"one reaches on":   {[]manifest.Segment{object(0, 10, 1, 1), object(0, 15, 1, 2), object(15, 20, 1, 3)}, "[0,15)e1#2 [15,20)e1#3", "[0,10)e1#1", "[]"},
		"a gap":            {[]manifest.Segment{object(0, 10, 1, 1), object(12, 20, 1, 3)}, "[0,10)e1#1 [12,20)e1#3", "", "[{10 12}]"},
		"a newer epoch":    {[]manifest.Segment{object(0, 10, 1, 1), object(10, 20, 3, 2)}, "[0,10)e1#1 [10,20)e3#2", "", "[]"},
		"a fenced owner":   {[]manifest.Segment{object(0, 10, 1, 1), object(10, 30, 1, 2), object(10, 15, 2, 3)}, "[0,10)e1#1 [10,15)e2#3", "[10,30)e1#2", "[]"},
		"reaching beyond":  {[]manifest.Segment{object(0, 10, 1, 1), object(10, 30, 1, 2), object(15, 20, 2, 3)}, "[0,10)e1#1 [15,20)e2#3", "[10,30)e1#2", "[{10 15}]"},
		"and behind":       {[]manifest.Segment{object(0, 10, 2, 1), object(20, 30, 1, 2)}, "[0,10)e2#1", "[20,30)e1#2", "[]"},
		"overlap in epoch": {[]manifest.Segment{object(0, 10, 1, 1), object(5, 20, 1, 2), object(10, 20, 1, 3)}, "[0,10)e1#1 [10,20)e1#3", "[5,20)e1#2", "[]"},
	} {
		got := choose(c.all)
		if text(got.chosen) != c.chosen || text(got.others) != c.others || fmt.Sprint(got.gaps) != c.gaps {
			t.Errorf("%s: %s, others %s, gaps %v", name, text(got.chosen), text(got.others), got.gaps)
		}
	}
}

// TestBuildPages: a log of many objects gets pages, and a manifest that is read as it was meant.
func TestBuildPages(t *testing.T) {
	const n = 4300
	var c chain
	for i := range segment.Offset(n) {
		if i == 2000 { // lost
			continue
		}
		c.chosen = append(c.chosen, object(7+i*10, 17+i*10, 1+segment.Epoch(i/1500), uint64(i)+1))
	}
	r := &Rebuilt{}
	r.build(segment.LogID{1}, &c, 41)
	var m manifest.Manifest
	if err := manifest.Parse(manifest.Append(nil, r.Manifest), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Pages) < 6 || len(m.Pages) != len(r.Pages) || m.Exported() != 7+n*10 || m.Start != 7 || len(m.Lineage) != 3 || m.Epoch != 3+epochMargin {
		t.Fatalf("%d pages, %d written, %d lineage, start %d, exported %d", len(m.Pages), len(r.Pages), len(m.Lineage), m.Start, m.Exported())
	}
	total := len(m.Segments)
	for i := range m.Pages {
		var p manifest.PageText
		if err := manifest.ParsePage(r.Pages[i].Text, &p); err != nil {
			t.Fatal(err)
		}
		if err := m.Pages[i].Verify(m.LogID, r.Pages[i].Text, &p); err != nil || r.Pages[i].Key != string(m.Pages[i].AppendKey(nil)) || p.Number <= 41 {
			t.Fatal(r.Pages[i].Key, err)
		}
		total += len(p.Segments)
	}
	if total != n { // the lost one is an entry, too
		t.Errorf("%d entries, want %d", total, n)
	}
}

func TestNamesOfLogs(t *testing.T) {
	seg := "segments/00000000000000000000-00000000000000000010-00000001-1.seg"
	for k, want := range map[string]string{
		"a/manifest.json": "a/", "manifest.json": "", "a/b/" + seg: "a/b/", seg: "", "a/pages/00000000000000000000-3.json": "a/",
		"segments/" + seg: "segments/", "pages/manifest.json": "pages/",
	} {
		if got, ok := prefixOf(k); !ok || got != want {
			t.Errorf("%s: %q, %v", k, got, ok)
		}
	}
	for _, k := range []string{"a", "a/b", "a/segments/x", "a/manifest.json/x", "varve-probe-1"} {
		if got, ok := prefixOf(k); ok {
			t.Errorf("%s: %q", k, got)
		}
	}
}
