package varve_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"varve"
)

// readLog is a log of about a size, in batches of 100 records.
func readLog(b *testing.B, record, bytes int) (*varve.Log, int64) {
	b.Helper()
	l := benchLog(b, varve.Options{Fsync: varve.None, SegmentBytes: 64 << 20})
	recs := make([]varve.Record, 100)
	for i := range recs {
		recs[i].Value = make([]byte, record)
	}
	total := int64(bytes / record / 100)
	for range total {
		if _, err := l.Append(context.Background(), recs...); err != nil {
			b.Fatal(err)
		}
	}
	return l, 100 * total
}

// BenchmarkRead: sequential verified read through Records, from the page cache (G8).
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{128, 1024} {
		b.Run(fmt.Sprintf("record=%d", size), func(b *testing.B) {
			l, total := readLog(b, size, 128<<20)
			b.ReportAllocs()
			b.SetBytes(int64(size) * total)
			cpu := cpuTime()
			b.ResetTimer()
			n := int64(0)
			for range b.N {
				for _, err := range l.Records(context.Background(), varve.Position{}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
			}
			b.StopTimer()
			if n != total*int64(b.N) {
				b.Fatalf("read %d records", n)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(n)/(cpuTime()-cpu).Seconds(), "records/cpu-s")
		})
	}
}

// BenchmarkReadBatches: the same through a Reader, without decoding records.
func BenchmarkReadBatches(b *testing.B) {
	l, total := readLog(b, 1024, 128<<20)
	b.SetBytes(1024 * total)
	b.ResetTimer()
	for range b.N {
		r := l.NewReader(varve.Position{}, varve.ReadOptions{})
		n := int64(0)
		for n < total {
			v, ok, err := r.Poll()
			if !ok || err != nil {
				b.Fatal(ok, err)
			}
			n += int64(v.Records)
		}
		_ = r.Close()
	}
}

// BenchmarkOpen: a log of 256 MiB, sealed (footers vouch for it) and as a kill leaves it (the active
// segment is read whole), in batches of 100 KiB and of 128 B (G9).
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct {
		name          string
		sealed        bool
		batch, record int
	}{
		{"sealed", true, 100, 1024},
		{"killed", false, 100, 1024},
		{"killed/singles", false, 1, 128},
	} {
		b.Run(c.name, func(b *testing.B) {
			const total = 256 << 20
			dir := openBenchDir(b, c.sealed, c.batch, c.record, total)
			b.SetBytes(total)
			b.ResetTimer()
			for range b.N {
				if _, err := varve.Inspect(b.Context(), dir, varve.InspectOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*(1<<30)/total, "s/GiB")
		})
	}
}

// openBenchDir is a log of at least total bytes, sealed or as a kill leaves it.
func openBenchDir(b *testing.B, sealed bool, batch, record int, total int64) string {
	dir := b.TempDir()
	o := varve.Options{Fsync: varve.None, SegmentBytes: 1 << 30, MinFreeBytes: -1}
	if sealed {
		o.SegmentBytes = 64 << 20
	}
	l, err := varve.Open(b.Context(), dir, o)
	if err != nil {
		b.Fatal(err)
	}
	recs := make([]varve.Record, batch)
	for i := range recs {
		recs[i].Value = make([]byte, record)
	}
	var last varve.Pending
	for int64(l.Stats().CommitBytes) < total {
		for range 1 << 20 / (batch * record) {
			if last, err = l.AppendAsync(recs...); err != nil {
				b.Fatal(err)
			}
		}
		if _, err = last.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	kept := dir
	if !sealed { // what a kill leaves is a copy of the running log
		kept = b.TempDir() + "/log"
		if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	return kept
}
