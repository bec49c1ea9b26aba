package varve_test

import (
	"runtime"
	"testing"

	"varve"
)

// TestReaderMemory reads a log far larger than a reader's buffer: what the reader holds does not
// grow with what it has read.
func TestReaderMemory(t *testing.T) {
	const batches, perBatch, bytes = 2000, 100, 512 // 100 MB
	l := open(t, t.TempDir()+"/log", varve.Options{Fsync: varve.None, SegmentBytes: 8 << 20})
	recs := make([]varve.Record, perBatch)
	for i := range recs {
		recs[i].Value = make([]byte, bytes)
	}
	for range batches {
		if _, err := l.Append(t.Context(), recs...); err != nil {
			t.Fatal(err)
		}
	}
	r := l.NewReader(varve.Position{}, varve.ReadOptions{})
	defer r.Close()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, peak := heap(), uint64(0)
	for n := 0; ; n++ {
		_, ok, err := r.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if n != batches {
				t.Fatalf("%d batches, want %d", n, batches)
			}
			break
		}
		if n%100 == 0 {
			peak = max(peak, heap())
		}
	}
	if peak > before+4<<20 {
		t.Fatalf("a reader holds %d bytes more after a while, want at most 4 MiB", peak-before)
	}
}
