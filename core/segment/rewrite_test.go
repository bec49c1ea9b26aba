package segment

import (
	"bytes"
	"testing"
)

// rewrite copies [base, end) of a file into a replacement, as the hot store does.
func rewrite(t *testing.T, m *maker, base, end, frontier Offset) (Header, []byte) {
	t.Helper()
	var s Scanner
	var w Rewriter
	f := m.file(m.data)
	if err := s.Start(&f); err != nil {
		t.Fatal(err)
	}
	h := m.h
	h.Kind, h.ID, h.Base, h.End = Replacement, MakeID(9, 1), base, end
	out := w.Begin(nil, &h, frontier, 1)
	var b Batch
	for w.End() < end {
		more, err := s.Next(&b)
		if err != nil || !more {
			t.Fatalf("source ends at %d: %v", w.End(), err)
		}
		if b.Identity.Base >= base {
			out = w.Add(out, &b)
		}
	}
	out, n := w.Finish(out)
	if int(n) != len(out) {
		t.Fatalf("says %d bytes, made %d", n, len(out))
	}
	return h, out
}

func TestRewriteScansClean(t *testing.T) {
	m := three(t)
	h, out := rewrite(t, m, 1003, 1011, 1005)
	var s Scanner
	var info FileInfo
	f := m.file(out)
	f.ID, f.Base = h.ID, h.Base
	for _, whole := range []bool{false, true} {
		if err := s.Scan(&f, whole, &info); err != nil {
			t.Fatal(err)
		}
		want := "h0 e7 ev0 sealed"
		if whole {
			want = "h0 e7 ev1005 sealed [1003,1011)@512-2098"
		}
		if got := spell(info); got != want || info.Header != h {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// Identities and payloads are the same bytes.
	if from := m.starts[1]; !bytes.Equal(out[512+PlacementBytes:512+122], m.data[from+PlacementBytes:from+122]) {
		t.Error("the first batch changed")
	}
	if from, n := m.starts[3], 1312; !bytes.Equal(out[2098-n+PlacementBytes:2098], m.data[int(from)+PlacementBytes:int(from)+n]) {
		t.Error("the last batch changed")
	}
	if info.Runs[0].Commit != 3 {
		t.Errorf("commit counter ends at %d", info.Runs[0].Commit)
	}
}
