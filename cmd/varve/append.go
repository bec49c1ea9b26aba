package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"varve"
)

// closeTimeout bounds how long a command waits for a clean close after it was interrupted.
const closeTimeout = 30 * time.Second

type appendCommand struct {
	Dir        string `required:"" placeholder:"D" help:"Directory of the log; an absent or empty one becomes a new log."`
	ReportAcks bool   `help:"Print a JSON line for each acked record: offset, epoch, CRC32C of its value."`

	UploadWait time.Duration `placeholder:"T" default:"30s" help:"With a cold tier: how long to wait at the end until it has what was appended; 0s: not at all; default 30s."`

	Count   int64 `placeholder:"N" help:"Append N generated records instead of lines."`
	Size    int   `placeholder:"B" default:"128" help:"Bytes of a generated record; default 128."`
	Writers int   `placeholder:"W" default:"1" help:"Concurrent writers of generated records; default 1."`
	Batch   int   `placeholder:"K" default:"1" help:"Generated records in one batch; default 1."`

	configFlag
	settings
}

// Validate checks the flags of generated load.
func (c *appendCommand) Validate() error {
	if err := c.settings.Validate(); err != nil {
		return err
	}
	if c.UploadWait < 0 {
		return fmt.Errorf("--upload-wait %v: want 0s or more", c.UploadWait)
	}
	if c.Count == 0 { // lines: the rest does not matter
		return nil
	}
	if err := validateLoad(c.Count, c.Size, c.Writers, c.Batch, int64(c.MaxBatchBytes)); err != nil {
		return err
	}
	return generatable(c.Size, uint64(c.Count)) // of a new log; with what the log holds it is looked at again
}

// loadBytesMax bounds what writers of generated records hold in memory, all together.
const loadBytesMax = 4 << 30

func validateLoad(count int64, size, writers, batch int, maxBatch int64) error {
	switch {
	case count < 0:
		return fmt.Errorf("--count %d: want 0 or more", count)
	case size < 1 || size > 1<<30:
		return fmt.Errorf("--size %d: want 1 byte to 1 GiB", size)
	case writers < 1 || writers > 65536:
		return fmt.Errorf("--writers %d: want 1 to 65536", writers)
	case batch < 1 || batch > 1<<20:
		return fmt.Errorf("--batch %d: want 1 to 1048576", batch)
	case int64(size)*int64(batch) > maxBatch:
		return fmt.Errorf("--size %d times --batch %d is more than max_batch_bytes (%d)", size, batch, maxBatch)
	case int64(size)*int64(batch)*int64(writers) > loadBytesMax: // at most 2^46
		return fmt.Errorf("--size %d times --batch %d times --writers %d is more than 4 GiB of memory", size, batch, writers)
	}
	return nil
}

// Run appends.
func (c *appendCommand) Run(ctx context.Context, s *streams) (err error) {
	l, done, err := c.openLog(ctx, s, c.Dir)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := closeLog(ctx, l); !errors.Is(err, closeErr) {
			err = errors.Join(err, closeErr)
		}
		if x := l.Stats(); err == nil && c.cold() && x.End > x.Exported && x.ColdError == nil {
			s.note("%s", unexportedText(&x))
		}
		if x := l.Stats(); err == nil && x.WarmEnd < x.Committed && c.warm() {
			s.note("varve: warning: the warm tier has not confirmed [%d, %d)", x.WarmEnd, x.Committed)
		}
		done()
		if errors.Is(err, varve.ErrNoSpace) {
			err = fmt.Errorf("%s: %w; min_free_bytes (%d) must stay free", c.Dir, err, c.MinFreeBytes)
		}
	}()
	if err := awaitTiers(ctx, s, l); err != nil {
		return err
	}
	if c.Count > 0 {
		err = c.generate(ctx, s, l)
	} else {
		err = c.lines(ctx, s, l)
	}
	if err != nil {
		x := l.Stats()
		err = c.unconfirmed(&x, err)
	}
	if err == nil && c.cold() && c.UploadWait > 0 {
		err = c.awaitUpload(ctx, s, l)
	}
	if x := l.Stats(); err == nil && x.ColdLagSegments > 0 && x.ColdError != nil {
		s.note("varve: warning: %s", lagText(&x))
	}
	return err
}

// awaitUpload waits until the cold tier has what was appended: a log that is open for a moment only, again
// and again, would never get it there. It goes on without that after an interrupt, in the end, and once
// the bucket does not answer: the records are safe on this disk, and the next run uploads them.
func (c *appendCommand) awaitUpload(ctx context.Context, s *streams, l *varve.Log) error {
	waiting, cancel := context.WithTimeout(ctx, c.UploadWait)
	defer cancel()
	was, end, answered := l.Stats(), l.Committed(), time.Now()
	p := s.progress("in the cold tier, of what was not there yet,", end-was.Exported)
	defer p.done()
	err := whileWaiting(func() error { return l.Export(waiting, end) }, func() {
		x := l.Stats()
		p.at(x.Exported - was.Exported)
		if x.ColdError == nil {
			answered = time.Now()
		} else if time.Since(answered) > downAfter {
			cancel()
		}
	})
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// downAfter is for how long a bucket has given no answer that was of use when nobody waits for it any more.
const downAfter = 2 * time.Second

// closeLog closes a log, also after an interrupt.
func closeLog(ctx context.Context, l *varve.Log) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return l.Close(closing)
}

// batchTarget is how many bytes of lines go into one batch at most, unless one line is longer.
const batchTarget = 256 << 10

// lines appends standard input. Lines that arrive together are one batch: what a read returned is
// appended without waiting for more.
func (c *appendCommand) lines(ctx context.Context, s *streams, l *varve.Log) error {
	ctx, stop := context.WithCancel(ctx) // with the first append that failed: the next line may be long in coming
	defer stop()
	a := newAcks(ctx, stop, s, l, c.ReportAcks)
	in := newLineReader(s.in, int(c.MaxBatchBytes))
	var readErr error
	for readErr == nil && a.failed() == nil {
		var lines [][]byte
		if lines, readErr = in.next(ctx); len(lines) > 0 {
			if err := a.append(ctx, lines); err != nil {
				readErr = err
			}
		}
	}
	err := a.wait()
	if err == nil && !errors.Is(readErr, io.EOF) {
		err = readErr
	}
	if err != nil {
		return fmt.Errorf("%w (acked: %s)", err, count(int(a.acked.Load()), "record"))
	}
	s.note("appended %s, %s", count(int(a.acked.Load()), "record"), a.span())
	return nil
}

// lineReader splits what arrives into lines.
type lineReader struct {
	chunks chan chunk
	free   chan []byte
	rest   []byte // an unfinished line: no end in it yet
	line   int64  // of rest
	max    int
}

type chunk struct {
	bytes []byte
	err   error
}

// newLineReader starts reading. The goroutine ends with the input, or blocks in its last read.
func newLineReader(r io.Reader, maxLine int) *lineReader {
	lr := &lineReader{chunks: make(chan chunk), free: make(chan []byte, 1), line: 1, max: maxLine}
	lr.free <- make([]byte, 64<<10)
	go func() {
		for buf := range lr.free {
			n, err := r.Read(buf[:cap(buf)])
			lr.chunks <- chunk{buf[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return lr
}

// next waits for input and returns the lines that it completes, in memory of their own. The error
// is io.EOF with the last lines.
func (r *lineReader) next(ctx context.Context) (lines [][]byte, err error) {
	var c chunk
	select {
	case c = <-r.chunks:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	data, looked := append(r.rest, c.bytes...), len(r.rest)
	if c.err == nil {
		r.free <- c.bytes
	}
	for {
		n := bytes.IndexByte(data[looked:], '\n')
		if n < 0 {
			break
		}
		n, looked = n+looked, 0
		if n > r.max {
			return lines, r.tooLong()
		}
		lines, data = append(lines, data[:n:n]), data[n+1:]
		r.line++
	}
	if len(data) > r.max {
		return lines, r.tooLong()
	}
	if errors.Is(c.err, io.EOF) {
		if len(data) > 0 {
			lines = append(lines, data)
		}
		return lines, io.EOF
	}
	if c.err != nil {
		return lines, fmt.Errorf("read standard input: %w", c.err)
	}
	if len(lines) > 0 || cap(data)-len(data) < cap(c.bytes) {
		data = append(make([]byte, 0, 2*len(data)+cap(c.bytes)), data...)
	}
	r.rest = data
	return lines, nil
}

func (r *lineReader) tooLong() error {
	return fmt.Errorf("line %d is longer than max_batch_bytes (%d); it and what follows were not appended", r.line, r.max)
}

// acks waits for outcomes in order, in a goroutine of its own, and reports them.
type acks struct {
	s       *streams
	epoch   uint64
	report  bool
	pending chan ack
	done    chan struct{}
	log     *varve.Log
	ctx     context.Context // of the waiting; outlives the reading
	stop    func()          // ends the reading

	acked      atomic.Int64
	first, end int64

	mu  sync.Mutex
	err error
}

type ack struct {
	pending varve.Pending
	sums    []uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newAcks(ctx context.Context, stop func(), s *streams, l *varve.Log, report bool) *acks {
	a := &acks{
		s: s, epoch: l.Stats().Epoch, report: report, log: l, pending: make(chan ack, 1024),
		done: make(chan struct{}), ctx: context.WithoutCancel(ctx), stop: stop, first: -1,
	}
	go a.run()
	return a
}

// append hands lines to the log in batches of bounded size; it waits while too much is pending.
func (a *acks) append(ctx context.Context, lines [][]byte) error {
	now := time.Now()
	for len(lines) > 0 {
		n, size := 0, 0
		for n < len(lines) && (n == 0 || size+len(lines[n]) <= batchTarget) {
			size += len(lines[n])
			n++
		}
		recs := make([]varve.Record, n)
		k := ack{}
		for i, line := range lines[:n] {
			recs[i] = varve.Record{Value: line, Time: now}
			if a.report {
				k.sums = append(k.sums, crc32.Checksum(line, castagnoli))
			}
		}
		var err error
		for {
			if k.pending, err = a.log.AppendAsync(recs...); !errors.Is(err, varve.ErrOverloaded) {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
		if err != nil {
			return err
		}
		a.pending <- k
		lines = lines[n:]
	}
	return nil
}

func (a *acks) run() {
	defer close(a.done)
	for k := range a.pending {
		span, err := k.pending.Wait(a.ctx)
		if err != nil {
			a.fail(err)
			continue // the others resolve, too
		}
		if a.first < 0 {
			a.first = span.First
		}
		a.end = span.End
		a.acked.Add(span.End - span.First)
		for i, sum := range k.sums {
			fmt.Fprintf(a.s.out, "{\"offset\":%d,\"epoch\":%d,\"sum\":\"%08x\"}\n", span.First+int64(i), a.epoch, sum)
		}
		if a.report && len(a.pending) == 0 {
			if err := a.s.out.Flush(); err != nil {
				a.fail(fmt.Errorf("write acks: %w", err))
			}
		}
	}
}

func (a *acks) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
		a.stop()
	}
}

// failed returns the first error.
func (a *acks) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// wait waits for what is pending.
func (a *acks) wait() error {
	close(a.pending)
	<-a.done
	return a.failed()
}

func (a *acks) span() string {
	if a.first < 0 {
		return "nothing"
	}
	return fmt.Sprintf("offsets [%d, %d) of epoch %d", a.first, a.end, a.epoch)
}

// generate appends Count generated records. Record i goes on from the end of the log, so that a
// later run does not repeat an earlier one.
func (c *appendCommand) generate(ctx context.Context, s *streams, l *varve.Log) error {
	base := l.Stats().End
	if err := generatable(c.Size, uint64(base+c.Count)); err != nil {
		return usageError{err}
	}
	p := s.progress("appended", c.Count)
	defer p.done()
	var next, done atomic.Int64
	var out sync.Mutex
	epoch := l.Stats().Epoch
	began := time.Now()
	writers := int(min(int64(c.Writers), (c.Count-1)/int64(c.Batch)+1)) // no more than there are batches
	errs := make(chan error, writers)
	for range writers {
		go func() {
			errs <- c.writer(ctx, l, base, &next, func(span varve.Span, recs []varve.Record) error {
				done.Add(span.End - span.First)
				if !c.ReportAcks {
					return nil
				}
				out.Lock()
				defer out.Unlock()
				for i := range recs {
					fmt.Fprintf(s.out, "{\"offset\":%d,\"epoch\":%d,\"sum\":\"%08x\"}\n", span.First+int64(i), epoch,
						crc32.Checksum(recs[i].Value, castagnoli))
				}
				return s.out.Flush()
			})
		}()
	}
	var err error
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for running := writers; running > 0; {
		select {
		case e := <-errs:
			running--
			if err == nil {
				err = e
			}
		case <-ticker.C:
			p.at(done.Load())
		}
	}
	p.done()
	if err != nil {
		return fmt.Errorf("%w (acked: %s)", err, count(int(done.Load()), "record"))
	}
	seconds := time.Since(began).Seconds()
	s.note("appended %d records of %d bytes in %.2f s: %.0f/s", done.Load(), c.Size, seconds, float64(done.Load())/seconds)
	return nil
}

// writer appends batches of generated records until there are no more to take.
func (c *appendCommand) writer(ctx context.Context, l *varve.Log, base int64, next *atomic.Int64,
	acked func(varve.Span, []varve.Record) error,
) error {
	memory := make([]byte, c.Size*c.Batch)
	recs := make([]varve.Record, c.Batch)
	for {
		first := next.Add(int64(c.Batch)) - int64(c.Batch)
		n := min(int64(c.Batch), c.Count-first)
		if n <= 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range n {
			recs[i].Value = memory[int(i)*c.Size:][:c.Size]
			generate(recs[i].Value, uint64(base+first+i))
		}
		span, err := l.Append(context.WithoutCancel(ctx), recs[:n]...)
		if err != nil {
			return err
		}
		if err := acked(span, recs[:n]); err != nil {
			return fmt.Errorf("write acks: %w", err)
		}
	}
}
