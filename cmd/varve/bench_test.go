package main

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

func TestBenchReport(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, "", "log", "bench", "--dir", dir, "--writers", "4", "--seconds", "0.1", "--min-free-bytes", "0", "--json")
	var m map[string]float64
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"records_per_second", "mb_per_second", "p50_us", "p99_us", "records_per_commit", "cpu_us_per_record",
		"raw_sync_per_second_before", "raw_sync_per_second_after", "ratio_to_raw", "ratio_to_ceiling",
	} {
		if m[key] <= 0 {
			t.Errorf("%s = %v", key, m[key])
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Fatalf("bench left %v", entries)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.record(time.Duration(i) * time.Microsecond)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.99: 990} {
		if got := h.quantile(q); got < want || got > want*1.07 {
			t.Errorf("quantile %v: %v us, want %v", q, got, want)
		}
	}
	for v := uint64(1); v < 1<<40; v = v*5/4 + 1 {
		if top := bucketTop(bucketOf(v)); top < v || float64(top) > float64(v)*1.07+1 {
			t.Errorf("%d in a bucket up to %d", v, top)
		}
	}
}
