package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"varve"
	"varve/tiers"
)

type benchCommand struct {
	Dir     string        `required:"" placeholder:"D" help:"Where to measure; a log of its own is made there and removed again."`
	Writers int           `placeholder:"W" default:"64" help:"Concurrent writers; each waits for its ack; default 64."`
	Size    int           `placeholder:"B" default:"128" help:"Bytes of a record."`
	Batch   int           `placeholder:"K" default:"1" help:"Records in one batch; default 1."`
	Seconds float64       `placeholder:"S" default:"3" help:"Length of the measurement; default 3."`
	JSON    bool          `name:"json" help:"Print JSON."`
	warmUp  time.Duration `kong:"-"`

	configFlag
	settings
}

// Validate checks ranges.
func (c *benchCommand) Validate() error {
	if c.Seconds < 0.1 || c.Seconds > 3600 {
		return fmt.Errorf("--seconds %v: want 0.1 to 3600", c.Seconds)
	}
	if err := c.settings.Validate(); err != nil {
		return err
	}
	return validateLoad(0, c.Size, c.Writers, c.Batch, int64(c.MaxBatchBytes))
}

// benchReport is what a measurement found. Raw is pwrite and fdatasync of the mean commit's size on
// blocks that are written already, by one thread.
type benchReport struct {
	RecordsPerSecond float64 `json:"records_per_second"`
	MBPerSecond      float64 `json:"mb_per_second"`
	P50              float64 `json:"p50_us"`
	P99              float64 `json:"p99_us"`
	RecordsPerCommit float64 `json:"records_per_commit"`
	CPU              float64 `json:"cpu_us_per_record"`
	RawBefore        float64 `json:"raw_sync_per_second_before"`
	RawAfter         float64 `json:"raw_sync_per_second_after"`
	RatioToRaw       float64 `json:"ratio_to_raw"`
	RatioToCeiling   float64 `json:"ratio_to_ceiling"`
	CommitsPerSecond float64 `json:"commits_per_second"`
	BytesPerCommit   float64 `json:"bytes_per_commit"`
	Runs             int     `json:"runs"`
}

// Calibrations that differ by more than this make the measurement worthless; it is repeated.
const (
	calibrationSpread = 0.2
	benchRuns         = 3
)

// Run measures.
func (c *benchCommand) Run(ctx context.Context, s *streams) error {
	c.Create = true // a log of its own, here and in the bucket
	switch err := os.Mkdir(c.Dir, 0o755); {
	case err == nil:
		defer os.Remove(c.Dir) //nolint:errcheck // only if it is empty
	case !errors.Is(err, os.ErrExist):
		return err
	}
	dir, err := os.MkdirTemp(c.Dir, "varve-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is plain to see
	p := s.progress("seconds", 0)
	defer p.done()
	c.warmUp = time.Duration(min(0.5, c.Seconds/2) * float64(time.Second))
	var r *benchReport
	for run := 1; run <= benchRuns; run++ {
		if r, err = c.measure(ctx, s, dir, p); err != nil {
			return err
		}
		r.Runs = run
		if math.Abs(r.RawBefore-r.RawAfter) <= calibrationSpread*max(r.RawBefore, r.RawAfter) {
			break
		}
		s.note("raw speed changed from %.0f/s to %.0f/s during run %d; something else uses the disk", r.RawBefore, r.RawAfter, run)
	}
	p.done()
	if c.JSON {
		return json.NewEncoder(s.out).Encode(r)
	}
	fmt.Fprintf(s.out, "%d writers, batches of %d x %d B, fsync %v\n", c.Writers, c.Batch, c.Size, varve.FsyncMode(c.FsyncMode))
	fmt.Fprintf(s.out, "records/s   %.0f (%.1f MB/s), CPU %.2f us/record\n", r.RecordsPerSecond, r.MBPerSecond, r.CPU)
	fmt.Fprintf(s.out, "latency     p50 %.0f us, p99 %.0f us\n", r.P50, r.P99)
	fmt.Fprintf(s.out, "commits/s   %.0f of %.1f records, %.0f bytes\n", r.CommitsPerSecond, r.RecordsPerCommit, r.BytesPerCommit)
	fmt.Fprintf(s.out, "raw syncs/s %.0f before, %.0f after: ratio to raw %.2f, to the ceiling %.2f\n", r.RawBefore, r.RawAfter, r.RatioToRaw, r.RatioToCeiling)
	return nil
}

func (c *benchCommand) measure(ctx context.Context, s *streams, dir string, p *progress) (_ *benchReport, err error) {
	if c.cold() {
		c.ColdName = filepath.Base(dir)
	}
	c.WarmName = filepath.Base(dir)
	l, done, err := c.openLog(ctx, s, dir+"/log")
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		_ = l.Close(ctx) // a failed append has said why already
		done()
		err = errors.Join(err, os.RemoveAll(dir+"/log"), c.clearCold(ctx, dir), c.removeWarm(dir))
	}()
	warm, err := c.load(ctx, l, c.warmUp, nil)
	if err != nil {
		return nil, err
	}
	size := int(warm.bytesPerCommit()+511) &^ 511
	raw := time.Duration(max(0.3, c.Seconds/4) * float64(time.Second))
	r := &benchReport{}
	if r.RawBefore, err = rawSyncs(ctx, dir+"/raw", size, raw); err != nil {
		return nil, err
	}
	m, err := c.load(ctx, l, time.Duration(c.Seconds*float64(time.Second)), p)
	if err != nil {
		return nil, err
	}
	if r.RawAfter, err = rawSyncs(ctx, dir+"/raw", size, raw); err != nil {
		return nil, err
	}
	seconds, records := m.elapsed.Seconds(), float64(m.records)
	r.RecordsPerSecond = records / seconds
	r.MBPerSecond = r.RecordsPerSecond * float64(c.Size) / 1e6
	r.P50, r.P99 = m.latency.quantile(0.5), m.latency.quantile(0.99)
	r.CPU = float64(m.cpu.Nanoseconds()) / 1e3 / records
	r.CommitsPerSecond = float64(m.commits) / seconds
	r.RecordsPerCommit, r.BytesPerCommit = float64(m.commitRecords)/float64(m.commits), m.bytesPerCommit()
	mean := (r.RawBefore + r.RawAfter) / 2
	r.RatioToRaw = r.CommitsPerSecond / mean
	r.RatioToCeiling = r.RecordsPerSecond / (float64(c.Writers) * float64(c.Batch) * mean)
	return r, nil
}

// clearCold deletes what the log left in the bucket.
func (c *benchCommand) clearCold(ctx context.Context, dir string) error {
	t, err := c.openCold(ctx, dir, writes)
	if err != nil || t.bucket == nil {
		return err
	}
	defer t.close()
	for {
		all, err := t.bucket.List(ctx, t.prefix, "", tiers.PageMax)
		if err != nil || len(all) == 0 {
			return err
		}
		for i := range all {
			if err := t.bucket.Delete(ctx, all[i].Key); err != nil {
				return err
			}
		}
	}
}

// measurement is what one period of load did.
type measurement struct {
	records                             int64
	commits, commitRecords, commitBytes uint64
	elapsed, cpu                        time.Duration
	latency                             histogram
}

func (m *measurement) bytesPerCommit() float64 {
	return float64(m.commitBytes) / float64(max(m.commits, 1))
}

// load lets all writers append for a time.
func (c *benchCommand) load(ctx context.Context, l *varve.Log, length time.Duration, p *progress) (*measurement, error) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	results := make([]measurement, c.Writers)
	errs := make([]error, c.Writers)
	before, cpu, began := l.Stats(), cpuTime(), time.Now()
	for w := range c.Writers {
		wg.Go(func() { errs[w] = c.writer(l, w, &stop, &results[w]) })
	}
	for time.Since(began) < length && ctx.Err() == nil {
		time.Sleep(min(length-time.Since(began), progressInterval))
		if p != nil {
			p.at(int64(time.Since(began).Seconds()))
		}
	}
	stop.Store(true)
	wg.Wait()
	m := &measurement{elapsed: time.Since(began), cpu: cpuTime() - cpu}
	after := l.Stats()
	m.commits, m.commitRecords = after.Commits-before.Commits, after.CommitRecords-before.CommitRecords
	m.commitBytes = after.CommitBytes - before.CommitBytes
	for w := range results {
		m.records += results[w].records
		m.latency.add(&results[w].latency)
	}
	return m, errors.Join(append(errs, ctx.Err())...)
}

func (c *benchCommand) writer(l *varve.Log, w int, stop *atomic.Bool, m *measurement) error {
	recs := make([]varve.Record, c.Batch)
	for i := range recs {
		recs[i].Value = make([]byte, c.Size)
		generate(recs[i].Value, uint64(w*c.Batch+i))
	}
	for !stop.Load() {
		began := time.Now()
		if _, err := l.Append(context.Background(), recs...); err != nil {
			return err
		}
		m.latency.record(time.Since(began))
		m.records += int64(c.Batch)
	}
	return nil
}

// rawSyncs measures pwrite and fdatasync of a size, over and over the same written blocks.
func rawSyncs(ctx context.Context, name string, size int, length time.Duration) (perSecond float64, err error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(name)) }()
	total := max(32<<20, 4*size) / size * size
	buf := make([]byte, size)
	generate(buf, 1)
	for pos := 0; pos < total; pos += size {
		if _, err := f.WriteAt(buf, int64(pos)); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	n, pos, began := 0, 0, time.Now()
	for time.Since(began) < length {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := f.WriteAt(buf, int64(pos)); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		n++
		if pos += size; pos == total {
			pos = 0
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// histogram counts durations in buckets 1/16 of their power of two wide.
type histogram struct{ counts [64 * 16]int64 }

func (h *histogram) record(d time.Duration) { h.counts[bucketOf(uint64(max(d, 1)))]++ }

func bucketOf(v uint64) int {
	if v < 16 {
		return int(v)
	}
	exp := 0
	for v >= 32 {
		v >>= 1
		exp++
	}
	return 16*(exp+1) + int(v-16)
}

// bucketTop returns the greatest value of a bucket.
func bucketTop(b int) uint64 {
	if b < 16 {
		return uint64(b)
	}
	return (uint64(b%16)+17)<<(b/16-1) - 1
}

func (h *histogram) add(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
}

// quantile returns a quantile in microseconds.
func (h *histogram) quantile(q float64) float64 {
	total := int64(0)
	for _, n := range h.counts {
		total += n
	}
	left := int64(q * float64(total))
	i := slices.IndexFunc(h.counts[:], func(n int64) bool { left -= n; return left < 0 })
	if i < 0 {
		return 0
	}
	return float64(bucketTop(i)) / 1e3
}
