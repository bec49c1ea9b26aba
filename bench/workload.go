package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Sizes of the workloads.
const (
	recordBytes = 128
	batchSize   = 100
	// runBytesMax ends a cell before it fills the page cache with dirty pages.
	runBytesMax = 1 << 30
)

// measurement is what one run of a cell gives. Rates are per second, times microseconds.
type measurement struct {
	RecordsPerSecond float64 `json:"records_per_second"`
	MBPerSecond      float64 `json:"mb_per_second"`
	P50              float64 `json:"p50_us"`
	P99              float64 `json:"p99_us"`
	CPUPerRecord     float64 `json:"cpu_us_per_record"`
	RecordsPerCommit float64 `json:"records_per_commit"` // 0: the store does not tell
	AllocsPerRecord  float64 `json:"allocs_per_record"`
}

// usage is a point in time with the process's totals.
type usage struct {
	at     time.Time
	cpu    time.Duration
	allocs uint64
}

func now() usage {
	var r syscall.Rusage
	var m runtime.MemStats
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // fails only for a bad argument
	runtime.ReadMemStats(&m)
	cpu := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	return usage{at: time.Now(), cpu: cpu, allocs: m.Mallocs}
}

// measure turns the work done between two points into figures.
func measure(from, to usage, records, bytes, commits uint64, latency *histogram) measurement {
	if records == 0 {
		return measurement{}
	}
	seconds := to.at.Sub(from.at).Seconds()
	n := float64(records)
	m := measurement{
		RecordsPerSecond: n / seconds,
		MBPerSecond:      float64(bytes) / 1e6 / seconds,
		CPUPerRecord:     float64((to.cpu - from.cpu).Nanoseconds()) / 1e3 / n,
		AllocsPerRecord:  float64(to.allocs-from.allocs) / n,
		P50:              float64(latency.quantile(0.50).Nanoseconds()) / 1e3,
		P99:              float64(latency.quantile(0.99).Nanoseconds()) / 1e3,
	}
	if commits > 0 {
		m.RecordsPerCommit = n / float64(commits)
	}
	return m
}

// settle lets a cell start from a quiet disk and an empty heap.
func settle() {
	syscall.Sync()
	runtime.GC()
}

// inDir runs f in a fresh directory below dir and removes it.
func inDir(dir string, f func(dir string) error) error {
	dir, err := os.MkdirTemp(dir, "varve-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return f(filepath.Join(dir, "log"))
}

// appends measures writers that each append batches of records, one after the other.
func appends(c contender, dir string, sync bool, writers, batch int, length time.Duration) (out measurement, err error) {
	err = inDir(dir, func(dir string) error {
		s, err := c.open(dir, sync)
		if err != nil {
			return err
		}
		settle()
		before, from := s.commits(), now()
		latency, ops, err := drive(writers, batch, length, s.append)
		to, commits := now(), s.commits()-before
		records := ops * uint64(batch)
		out = measure(from, to, records, records*recordBytes, commits, latency)
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
		return readBack(c, dir, records)
	})
	return out, err
}

// drive calls op from writers goroutines until the time or the bytes are used up.
func drive(writers, batch int, length time.Duration, op func([][]byte) error) (*histogram, uint64, error) {
	var (
		stop    atomic.Bool
		total   histogram
		mu      sync.Mutex
		failure error
		group   sync.WaitGroup
	)
	limit := max(1, runBytesMax/(writers*batch*recordBytes))
	timer := time.AfterFunc(length, func() { stop.Store(true) })
	defer timer.Stop()
	for w := range writers {
		group.Go(func() {
			latency, err := write(&stop, limit, records(w, batch, recordBytes), op)
			mu.Lock()
			defer mu.Unlock()
			total.merge(latency)
			if err != nil {
				failure = err
				stop.Store(true)
			}
		})
	}
	group.Wait()
	return &total, total.total, failure
}

// write is one writer.
func write(stop *atomic.Bool, limit int, recs [][]byte, op func([][]byte) error) (*histogram, error) {
	latency := &histogram{}
	for i := 0; i < limit && !stop.Load(); i++ {
		binary.LittleEndian.PutUint64(recs[0], uint64(i))
		from := time.Now()
		if err := op(recs); err != nil {
			return latency, err
		}
		latency.add(time.Since(from))
	}
	return latency, nil
}

// records makes the records of a batch. They are hard to compress, as real ones are.
func records(seed, batch, size int) [][]byte {
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	recs := make([][]byte, batch)
	for i := range recs {
		recs[i] = make([]byte, size)
		for j := range recs[i] {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			recs[i][j] = byte(x >> 32)
		}
	}
	return recs
}

// readBack opens the store again and counts what it holds: a store that loses records is not fast.
func readBack(c contender, dir string, want uint64) error {
	s, err := c.open(dir, true)
	if err != nil {
		return err
	}
	var count tally
	err = s.read(&count)
	if closeErr := s.close(); err == nil {
		err = closeErr
	}
	if err == nil && count.records != want {
		err = fmt.Errorf("%d records were acknowledged, %d are there", want, count.records)
	}
	return err
}

// reads measures one reader over a log of n records that were written before, in the page cache.
func reads(c contender, dir string, size, n int, length time.Duration) (out measurement, err error) {
	err = inDir(dir, func(dir string) error {
		if err := fill(c, dir, size, n); err != nil {
			return err
		}
		s, err := c.open(dir, true)
		if err != nil {
			return err
		}
		settle()
		var count tally
		from := now()
		for rounds := 1; ; rounds++ {
			if err := s.read(&count); err != nil {
				return err
			}
			if count.records != uint64(rounds*n) {
				return fmt.Errorf("read %d records in %d rounds over %d", count.records, rounds, n)
			}
			if time.Since(from.at) >= length {
				break
			}
		}
		out = measure(from, now(), count.records, count.bytes, 0, &histogram{})
		return s.close()
	})
	return out, err
}

// fill writes n records of a size and closes the store.
func fill(c contender, dir string, size, n int) error {
	s, err := c.open(dir, false)
	if err != nil {
		return err
	}
	recs := records(1, batchSize, size)
	for left := n; left > 0; left -= len(recs) {
		if err := s.append(recs[:min(left, len(recs))]); err != nil {
			return err
		}
	}
	return s.close()
}

// ceiling measures the raw device: commits of as many records as there are writers.
func ceiling(dir string, writers int, length time.Duration) (out measurement, err error) {
	err = inDir(dir, func(dir string) error {
		r, err := openRaw(filepath.Dir(dir), writers*recordBytes)
		if err != nil {
			return err
		}
		settle()
		var latency histogram
		from := now()
		for time.Since(from.at) < length {
			began := time.Now()
			if err := r.commit(); err != nil {
				return err
			}
			latency.add(time.Since(began))
		}
		records := latency.total * uint64(writers)
		out = measure(from, now(), records, records*recordBytes, latency.total, &latency)
		return r.close()
	})
	return out, err
}
