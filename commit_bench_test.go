package varve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"varve"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

func benchLog(b *testing.B, o varve.Options) *varve.Log {
	b.Helper()
	o.MinFreeBytes = -1
	l, err := varve.Open(b.Context(), b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return l
}

func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(syscall.TimevalToNsec(syscall.Timeval(u.Utime)) + syscall.TimevalToNsec(syscall.Timeval(u.Stime)))
}

// appendFrom appends records of 128 B from so many goroutines.
func appendFrom(b *testing.B, l *varve.Log, writers, records int) {
	var wg sync.WaitGroup
	for w := range writers {
		n := records / writers
		if w < records%writers {
			n++
		}
		wg.Go(func() {
			r := varve.Record{Value: make([]byte, 128)}
			for range n {
				if _, err := l.Append(context.Background(), r); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkCommit: writers that wait for their own ack, records of 128 B, on_commit (G2 - G5).
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := benchLog(b, varve.Options{})
			before, cpu := l.Stats(), cpuTime()
			b.ReportAllocs()
			b.ResetTimer()
			appendFrom(b, l, writers, b.N)
			b.StopTimer()
			after := l.Stats()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(after.CommitRecords-before.CommitRecords)/float64(after.Commits-before.Commits), "records/commit")
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/1e3/float64(b.N), "cpu-us/record")
		})
	}
}

// BenchmarkCommitCancellable: one writer whose context can be cancelled, and so hands every commit
// over.
func BenchmarkCommitCancellable(b *testing.B) {
	l := benchLog(b, varve.Options{})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	r := varve.Record{Value: make([]byte, 128)}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := l.Append(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRawSync is the ceiling: pwrite and fdatasync over written blocks.
func BenchmarkRawSync(b *testing.B) {
	for _, size := range []int{512, 16 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, err := os.Create(b.TempDir() + "/raw")
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			if _, err := f.Write(make([]byte, 32<<20)); err != nil {
				b.Fatal(err)
			}
			_ = f.Sync()
			buf, pos := make([]byte, size), int64(0)
			b.ResetTimer()
			for range b.N {
				if _, err := f.WriteAt(buf, pos); err != nil {
					b.Fatal(err)
				}
				if err := unix.Fdatasync(int(f.Fd())); err != nil {
					b.Fatal(err)
				}
				pos = (pos + int64(size)) % (32 << 20)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
		})
	}
}

// BenchmarkBatchesNotSynced: batches of 100 records of 128 B, one caller, none (G7).
func BenchmarkBatchesNotSynced(b *testing.B) {
	l := benchLog(b, varve.Options{Fsync: varve.None})
	recs := make([]varve.Record, 100)
	for i := range recs {
		recs[i].Value = make([]byte, 128)
	}
	cpu := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := l.Append(context.Background(), recs...); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(100*float64(b.N)/(cpuTime()-cpu).Seconds(), "records/cpu-s")
}

// BenchmarkAppendAsync: single records of 128 B, not synced, not waited for (G7).
func BenchmarkAppendAsync(b *testing.B) {
	l := benchLog(b, varve.Options{Fsync: varve.None})
	r := varve.Record{Value: make([]byte, 128)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	b.ResetTimer()
	var last varve.Pending
	for range b.N {
		for {
			p, err := l.AppendAsync(r)
			if err == nil {
				last = p
				break
			}
			if !errors.Is(err, varve.ErrOverloaded) {
				b.Fatal(err)
			}
			if _, err := last.Wait(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if _, err := last.Wait(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(b.N)/(cpuTime()-cpu).Seconds(), "records/cpu-s")
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/record")
}

// BenchmarkRawGrow is the ceiling of BenchmarkMiBBatches: write and fdatasync of a growing file.
func BenchmarkRawGrow(b *testing.B) {
	f, err := os.Create(b.TempDir() + "/raw")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	b.ResetTimer()
	for range b.N {
		if _, err := f.Write(buf); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMiBBatches: on_commit, against the bandwidth of a growing file (G6).
func BenchmarkMiBBatches(b *testing.B) {
	l := benchLog(b, varve.Options{NoPreallocate: true})
	v := varve.EncodeRecords(nil, varve.Record{Value: make([]byte, 1<<20-64)})
	b.SetBytes(1 << 20)
	b.ResetTimer()
	for range b.N {
		p, err := l.AppendBatch(v)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// idleDisk swallows what is written to segment files: what is left is the cost of core and driver.
type idleDisk struct{ disk.FS }

type idleFile struct{ disk.File }

func (d idleDisk) Open(name string, mode disk.Mode) (disk.File, error) {
	f, err := d.FS.Open(name, mode)
	if err == nil && strings.HasSuffix(name, ".seg") {
		return idleFile{f}, nil
	}
	return f, err
}

func (idleFile) WriteAt(bufs [][]byte, _ int64) (n int, err error) {
	for _, b := range bufs {
		n += len(b)
	}
	return n, nil
}

func (idleFile) Sync() error                   { return nil }
func (idleFile) WriteZeros(int64, int64) error { return nil }
func (idleFile) Truncate(int64) error          { return nil }

// BenchmarkDriver: commits on a disk that costs nothing.
func BenchmarkDriver(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l, err := varve.OpenFS(b.Context(), idleDisk{osfs.New(b.TempDir())}, "log", varve.Options{MinFreeBytes: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close(context.Background())
			cpu := cpuTime()
			b.ReportAllocs()
			b.ResetTimer()
			appendFrom(b, l, writers, b.N)
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/record")
		})
	}
}
