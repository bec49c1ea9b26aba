package segment

import (
	"errors"
	"reflect"
	"testing"
)

func clone(b []byte) []byte { return append([]byte(nil), b...) }

func zeros(b []byte, from, to int64) { clear(b[from:to]) }

// The layout of three(): batches at 512 (412 bytes), 1024 (122), 1536 (152), 1688 (1312 to 3000).
func TestScanVerdicts(t *testing.T) {
	m := three(t)
	if !reflect.DeepEqual(m.starts, []int64{512, 1024, 1536, 1688}) || len(m.data) != 3000 {
		t.Fatalf("layout changed: %v, %d bytes", m.starts, len(m.data))
	}
	whole := "[1000,1011)@512-3000"
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want string
	}{
		{"clean", func(b []byte) []byte { return b }, "h0 e7 ev1004 " + whole},
		{"zeros behind", func(b []byte) []byte { return append(b, make([]byte, 5000)...) }, "h0 e7 ev1004 " + whole},
		{"only a header", func(b []byte) []byte { return b[:512] }, "h0 e0 ev0"},
		{"header and zeros", func(b []byte) []byte { zeros(b, 512, 3000); return b }, "h0 e0 ev0"},
		{"empty", func(b []byte) []byte { return b[:0] }, "h1 e0 ev0"},
		{"shorter than a header", func(b []byte) []byte { return b[:127] }, "h1 e0 ev0"},
		{"header without its padding", func(b []byte) []byte { return b[:128] }, "h0 e0 ev0"},
		{"padding of the header damaged", func(b []byte) []byte { b[200] = 1; return b }, "h0 e7 ev1004 " + whole},
		{"padding damaged", func(b []byte) []byte { b[930] = 1; b[1500] = 9; return b }, "h0 e7 ev1004 " + whole},
		{
			"payload bad at the end, all written", func(b []byte) []byte { b[2500] ^= 4; return b },
			"h0 e7 ev1004 tail [1000,1006)@512-1688 break2@1688",
		},
		{
			"payload bad, one sector zero", func(b []byte) []byte { zeros(b, 2048, 2560); return b },
			"h0 e7 ev1004 tail [1000,1006)@512-1688 break1@1688",
		},
		{
			"payload bad, last sector zero", func(b []byte) []byte { zeros(b, 2560, 3000); return b },
			"h0 e7 ev1004 tail [1000,1006)@512-1688 break1@1688",
		},
		{
			"header bad", func(b []byte) []byte { b[1700] ^= 1; return b },
			"h0 e7 ev1004 tail [1000,1006)@512-1688 break1@1688",
		},
		{
			"payload bad in the middle", func(b []byte) []byte { b[1140] ^= 1; return b },
			"h0 e7 ev1004 [1000,1003)@512-924 break2@1024 [1004,1011)@1536-3000",
		},
		{
			"header bad in the middle", func(b []byte) []byte { b[1030] ^= 1; return b },
			"h0 e7 ev1004 [1000,1003)@512-924 break1@924 [1004,1011)@1536-3000",
		},
		{
			"sector lost in the middle", func(b []byte) []byte { zeros(b, 1024, 1536); return b },
			"h0 e7 ev1004 [1000,1003)@512-924 break1@924 [1004,1011)@1536-3000",
		},
		{
			"first batch damaged", func(b []byte) []byte { b[700] ^= 1; return b },
			"h0 e7 ev1004 head2@512 [1003,1011)@1024-3000",
		},
		{
			"first batch lost", func(b []byte) []byte { zeros(b, 512, 1024); return b },
			"h0 e7 ev1004 head1@512 [1003,1011)@1024-3000",
		},
		{
			"payload bad, the next batch not at a sector", func(b []byte) []byte { b[1660] ^= 1; return b },
			"h0 e7 ev1004 [1000,1004)@512-1146 break2@1536 [1006,1011)@1688-3000",
		},
		{
			"all payloads bad", func(b []byte) []byte { b[700] ^= 1; b[1140] ^= 1; b[1660] ^= 1; b[2500] ^= 1; return b },
			"h0 e0 ev1004 tail head2@512",
		},
		{"header damaged", func(b []byte) []byte { b[3] ^= 1; return b }, "h1 e7 ev1004 " + whole},
		{"header damaged and all batches", func(b []byte) []byte {
			for p := range b {
				b[p] ^= 1
			}
			return b
		}, "h1 e0 ev0 tail head1@512"},
		{
			"garbage behind", func(b []byte) []byte { return append(b, 0, 0, 1) },
			"h0 e7 ev1004 tail [1000,1011)@512-3000 break1@3000",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := spell(m.scan(t, c.edit(clone(m.data)), true)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A cut anywhere inside the last batch ends the log before it, and only a torn tail is reported.
func TestScanTornAtEveryByte(t *testing.T) {
	m := three(t)
	for n := 1689; n < 3000; n++ {
		if got, want := spell(m.scan(t, m.data[:n], true)), "h0 e7 ev1004 tail [1000,1006)@512-1688 break1@1688"; got != want {
			t.Fatalf("cut at %d: got %s, want %s", n, got, want)
		}
	}
	if got, want := spell(m.scan(t, m.data[:1688], true)), "h0 e7 ev1004 [1000,1006)@512-1688"; got != want {
		t.Fatalf("cut at the batch: got %s, want %s", got, want)
	}
}

// Whatever single bit is wrong, a batch is never served with other content, and what is found is a
// subset of what was written.
func TestScanEveryFlip(t *testing.T) {
	m := three(t)
	clean := m.scan(t, m.data, true)
	var s Scanner
	var info FileInfo
	data := clone(m.data)
	f := m.file(data)
	for bit := 0; bit < 8*len(data); bit++ {
		data[bit/8] ^= 1 << (bit % 8)
		if err := s.Scan(&f, true, &info); err != nil {
			t.Fatal(err)
		}
		at := bit / 8
		padding := at >= 128 && at < 512 || at >= 924 && at < 1024 || at >= 1146 && at < 1536
		switch {
		case at < 128:
			info.Verdict = HeaderGood
			if !reflect.DeepEqual(info.Runs, clean.Runs) {
				t.Fatalf("flip of the header at byte %d: %s", at, spell(info))
			}
		case padding && !reflect.DeepEqual(info.Runs, clean.Runs):
			t.Fatalf("flip of padding at byte %d: %s", at, spell(info))
		case !padding:
			batches := uint64(0)
			for _, r := range info.Runs {
				batches += r.Batches
			}
			// A batch that is lost takes the rest of its commit with it where that cannot be found.
			if batches > 3 || batches < 2 {
				t.Fatalf("flip at byte %d of a batch: %s", at, spell(info))
			}
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
}

func TestScanStaleBatches(t *testing.T) {
	end := "h0 e7 ev1004 tail [1000,1011)@512-3000 break1@3000"
	for _, c := range []struct {
		name string
		edit func(m *maker)
	}{
		{"another segment", func(m *maker) { m.h.ID = MakeID(7, 2) }},
		{"another log", func(m *maker) { m.h.LogID[0]++ }},
		{"another epoch", func(m *maker) { m.h.Epoch = 8 }},
		{"wrong chain", func(m *maker) { m.chain++ }},
		{"gap", func(m *maker) { m.next++; m.footer.f.End++ }},
		{"falling counter", func(m *maker) { m.commit -= 2; m.footer.f.Commit = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := three(t)
			id, log := m.h.ID, m.h.LogID
			c.edit(m)
			m.batch(1, fill(20, 1))
			m.h.ID, m.h.LogID = id, log
			if got := spell(m.scan(t, m.data, true)); got != end {
				t.Errorf("directly behind: got %s, want %s", got, end)
			}
		})
	}
	t.Run("counter not risen at a boundary", func(t *testing.T) {
		m := three(t)
		m.pad()
		m.batch(1, fill(20, 1))
		// A batch of the same commit would be directly behind, so it does not follow; it is a run of its own.
		if got, want := spell(m.scan(t, m.data, true)), "h0 e7 ev1004 [1000,1011)@512-3000 break1@3000 [1011,1012)@3072-3204"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("older commit behind a break", func(t *testing.T) {
		m := three(t)
		m.data = append(m.data, 9)
		m.pad()
		m.commit = 1
		m.footer.f.Commit = 0
		m.batch(1, fill(20, 1))
		if got := spell(m.scan(t, m.data, true)); got != end {
			t.Errorf("got %s, want %s", got, end)
		}
	})
}

// A batch that was rolled back may have left its header; the batch at the next boundary, which
// names the same predecessor, is the one that counts.
func TestScanRolledBackCommit(t *testing.T) {
	m := newMaker(testHeader(), 1)
	m.batch(1, fill(20, 1))
	chain := m.chain
	m.cut()
	m.batch(4, fill(2000, 2))
	m.data = m.data[:1024-300] // torn by the roll-back
	m.data = append(m.data, make([]byte, 300)...)
	m.chain, m.next, m.footer.f.End = chain, 1001, 1001
	m.footer.f.DataEnd = 1024
	m.cut()
	m.batch(1, fill(30, 3))
	if got, want := spell(m.scan(t, m.data, true)), "h0 e7 ev0 [1000,1002)@512-1166"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestScanHeaders(t *testing.T) {
	m := three(t)
	scan := func(edit func(f *ScanFile)) FileInfo {
		var s Scanner
		var info FileInfo
		f := m.file(m.data)
		edit(&f)
		if err := s.Scan(&f, true, &info); err != nil {
			t.Fatal(err)
		}
		return info
	}
	for _, c := range []struct {
		name string
		edit func(f *ScanFile)
		want HeaderVerdict
	}{
		{"foreign", func(f *ScanFile) { f.LogID[3]++ }, HeaderForeign},
		{"id", func(f *ScanFile) { f.ID++ }, HeaderMisnamed},
		{"base", func(f *ScanFile) { f.Base++ }, HeaderMisnamed},
	} {
		if i := scan(c.edit); i.Verdict != c.want || len(i.Runs) != 0 || i.Scanned {
			t.Errorf("%s: verdict %d, want %d; %d runs", c.name, i.Verdict, c.want, len(i.Runs))
		}
	}
	if i := scan(func(*ScanFile) {}); i.Header != m.h {
		t.Errorf("header %+v, want %+v", i.Header, m.h)
	}

	m.data[0]++
	i := scan(func(*ScanFile) {})
	if i.Header.Kind != Created || i.Header.ID != m.h.ID || i.Header.Base != 1000 || i.Header.Epoch != 7 {
		t.Errorf("header by name and batches: %+v", i.Header)
	}
	h := testHeader()
	h.Kind, h.End, h.Epoch = Replacement, 1003, 5
	m = newMaker(h, 1)
	m.batch(3, fill(100, 1))
	m.data[0]++
	if i = scan(func(*ScanFile) {}); i.Header.Kind != Replacement || i.Header.End != 1003 || i.Header.Epoch != 5 {
		t.Errorf("replacement by name and batches: %+v", i.Header)
	}
}

func TestScanReadErrors(t *testing.T) {
	m := three(t)
	m.seal()
	for at := range m.data {
		var s Scanner
		var info FileInfo
		f := m.file(m.data)
		f.Source = broken{m.data, int64(at)}
		if err := s.Scan(&f, true, &info); !errors.Is(err, errBroken) {
			t.Fatalf("unreadable byte %d: %v", at, err)
		}
	}
	var s Scanner
	var info FileInfo
	f := m.file(m.data)
	f.Bytes++
	if err := s.Scan(&f, true, &info); !errors.Is(err, ErrShort) {
		t.Fatalf("a file that became shorter: %v", err)
	}
}

// Batches larger than the window, and many of them.
func TestScanLargeBatches(t *testing.T) {
	m := newMaker(testHeader(), 4096)
	for n, size := range []int{10, windowBytes, 3*windowBytes + 5, 1, windowBytes - BatchHeaderBytes, 700_000} {
		m.batch(1, fill(size, byte(n)))
		if n%2 == 0 {
			m.sync()
		}
	}
	m.seal()
	i := m.scan(t, m.data, true)
	if len(i.Runs) != 1 || i.Runs[0].Batches != 6 || !i.Sealed || i.Runs[0].Break != BreakNone {
		t.Errorf("got %s", spell(i))
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	m := three(t)
	m.seal()
	var s Scanner
	var info FileInfo
	f := m.file(m.data)
	for _, whole := range []bool{true, false} {
		if n := testing.AllocsPerRun(20, func() {
			if err := s.Scan(&f, whole, &info); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("whole=%v: %v allocations", whole, n)
		}
	}
}

func benchmarkScan(b *testing.B, payload int) {
	m := newMaker(testHeader(), 4096)
	body := fill(payload, 1)
	for len(m.data) < 64<<20 {
		m.batch(1, body)
	}
	m.seal()
	var s Scanner
	var info FileInfo
	f := m.file(m.data)
	b.SetBytes(int64(len(m.data)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := s.Scan(&f, true, &info); err != nil || len(info.Runs) != 1 {
			b.Fatal(err, spell(info))
		}
	}
}

func BenchmarkScan128(b *testing.B) { benchmarkScan(b, 128) }
func BenchmarkScan64K(b *testing.B) { benchmarkScan(b, 64<<10) }

func BenchmarkScanQuick(b *testing.B) {
	m := three(b)
	m.seal()
	var s Scanner
	var info FileInfo
	f := m.file(m.data)
	b.ReportAllocs()
	for range b.N {
		if err := s.Scan(&f, false, &info); err != nil {
			b.Fatal(err)
		}
	}
}
