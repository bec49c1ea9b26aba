//go:build !mutant

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"varve"
	"varve/core/segment"
)

// recover is step 2: every acked record is there, and nothing that nobody wrote.
func (d *demo) recover(ctx context.Context) error {
	began := time.Now()
	l, err := varve.Open(ctx, d.log, varve.Options{MinFreeBytes: -1})
	if err != nil {
		return err
	}
	took := time.Since(began)
	stats := l.Stats()
	found, err := d.killed.check(func(yield func(varve.Record, error) bool) { l.Records(ctx, varve.Position{})(yield) })
	if err := errors.Join(err, l.Close(ctx)); err != nil {
		return err
	}
	extra := found - len(d.killed.acked)
	if extra > d.killed.flying {
		return fmt.Errorf("%d records are there that were not acked, and only %d were in flight", extra, d.killed.flying)
	}
	d.say("open in %.1f ms, of which recovery %.1f ms", milliseconds(took), milliseconds(stats.Recovery))
	d.say("all %s acked records are there, byte for byte, in order; and %d of the %d that were in flight", group(len(d.killed.acked)),
		extra, d.killed.flying)
	return nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// check compares a log with what its writers said, and returns how many records it has: dense
// offsets, every acked record at its offset, and of each writer its first ones, in order, once.
func (k *killed) check(records func(yield func(varve.Record, error) bool)) (found int, err error) {
	acked := 0
	next := map[int]int{} // by writer
	for r, err := range records {
		if err != nil {
			return found, err
		}
		if r.Offset != int64(found) {
			return found, fmt.Errorf("offset %d follows %d", r.Offset, found-1)
		}
		found++
		_, writer, n, ok := demoName(r.Value)
		if !ok || n != next[writer] {
			return found, fmt.Errorf("offset %d holds %.60q, which no writer wrote there", r.Offset, r.Value)
		}
		next[writer]++
		if value, ok := k.acked[r.Offset]; ok {
			acked++
			if value != string(r.Value) {
				return found, fmt.Errorf("offset %d was acked with another record than %.60q", r.Offset, r.Value)
			}
		}
	}
	if acked != len(k.acked) {
		return found, fmt.Errorf("%d of %d acked records are gone", len(k.acked)-acked, len(k.acked))
	}
	return found, nil
}

// torn is step 3: a last batch that is cut, at any byte, is no damage.
func (d *demo) torn(ctx context.Context) error {
	w := demoWriterCommand{Dir: filepath.Join(d.root, "torn"), Fsync: "none", Writers: 1, Life: 1, Segment: 256 << 20}
	k, err := w.kill(ctx, 300)
	if err != nil {
		return err
	}
	x, err := varve.Inspect(ctx, w.Dir, varve.InspectOptions{})
	if err != nil {
		return err
	}
	last, err := lastBatch(x, w.Dir)
	if err != nil {
		return err
	}
	if x.Proven > last.base {
		return fmt.Errorf("the last batch, at offset %d, was synced: evidence reaches %d", last.base, x.Proven)
	}
	for offset := range k.acked { // the cut takes only what comes last, which nothing has synced
		if offset >= last.base {
			delete(k.acked, offset)
		}
	}
	if err := d.cuts(ctx, w.Dir, last); err != nil {
		return err
	}
	l, err := varve.Open(ctx, w.Dir, varve.Options{Fsync: varve.None, MinFreeBytes: -1})
	if err != nil {
		return err
	}
	found, err := k.check(func(yield func(varve.Record, error) bool) { l.Records(ctx, varve.Position{})(yield) })
	if err := errors.Join(err, l.Close(ctx)); err != nil {
		return err
	}
	if int64(found) != last.base {
		return fmt.Errorf("%d records are left, want %d", found, last.base)
	}
	d.say("fsync none: acked means in the page cache, so a power loss may take what was not synced; we play it")
	d.say("last batch of %s cut at each of its %d bytes: recovery keeps all %s records before it", filepath.Base(last.file),
		last.end-last.pos, group(found))
	d.say("the log opens without a flag or an operator, and every record before the cut is there")
	return nil
}

// cuts cuts the file inside the last batch, one byte more each time, and asks each time what
// recovery would keep. It leaves the file cut in the middle of the batch.
func (d *demo) cuts(ctx context.Context, dir string, last batchPlace) error {
	whole, err := os.ReadFile(last.file)
	if err != nil {
		return err
	}
	for size := last.end - 1; size >= last.pos; size-- {
		if err := os.Truncate(last.file, size); err != nil {
			return err
		}
		x, err := varve.Inspect(ctx, dir, varve.InspectOptions{})
		if err != nil {
			return fmt.Errorf("cut at byte %d: %w", size, err)
		}
		if x.Refused != nil {
			return fmt.Errorf("cut at byte %d: refused: %w", size, x.Refused)
		}
		if x.End != last.base {
			return fmt.Errorf("cut at byte %d: recovery would end at %d, want %d", size, x.End, last.base)
		}
	}
	return os.WriteFile(last.file, whole[:(last.pos+last.end)/2], 0o644)
}

// damage is step 4: a flipped bit is found, named, and served around only if that is asked for.
func (d *demo) damage(ctx context.Context) error {
	x, err := varve.Inspect(ctx, d.log, varve.InspectOptions{})
	if err != nil {
		return err
	}
	hit, err := victim(x, d.log)
	if err != nil {
		return err
	}
	if err := flip(hit.file, (hit.pos+hit.end)/2); err != nil {
		return err
	}
	d.say("%d sealed segments; one bit flipped in %s at byte %s, in the batch at byte %s, offset %s", len(x.View.Extents),
		filepath.Base(hit.file), group((hit.pos+hit.end)/2), group(hit.pos), group(hit.base))
	found, err := readAll(ctx, d.log, varve.Options{MinFreeBytes: -1})
	if err := hit.named(err, found, hit.base); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	var typed *varve.CorruptError
	_ = errors.As(err, &typed)
	d.say("a read gives the %s records before it, then: %s", group(found), strings.TrimPrefix(typed.Error(), "core: "))
	l, err := varve.Open(ctx, d.log, varve.Options{MinFreeBytes: -1, VerifyAllOnOpen: true})
	if err == nil {
		err = l.Close(ctx)
		return errors.Join(errors.New("an open that verifies everything did not refuse"), err)
	}
	if err := hit.named(err, 0, 0); err != nil {
		return fmt.Errorf("open that verifies everything: %w", err)
	}
	around, err := readAround(ctx, d.log, hit)
	if err != nil {
		return err
	}
	if around != x.End-x.Start-hit.records {
		return fmt.Errorf("%d records served around the damage, want %d", around, x.End-x.Start-hit.records)
	}
	d.say("an open with verify_all_on_open refuses; with allow_damaged the other %s of %s records are served", group(around),
		group(x.End-x.Start))
	return nil
}

// victim picks a batch in the middle of a sealed segment in the middle of the log.
func victim(x *varve.Inspection, dir string) (batchPlace, error) {
	xs := x.View.Extents
	if len(xs) < 3 {
		return batchPlace{}, fmt.Errorf("only %d segments, want at least 3", len(xs))
	}
	e := &xs[len(xs)/2]
	batches, err := batchesOf(filepath.Join(dir, segment.Name(e.Base, e.Segment)), x.View.LogID)
	if err != nil {
		return batchPlace{}, err
	}
	if len(batches) < 3 {
		return batchPlace{}, fmt.Errorf("only %d batches in %s", len(batches), segment.Name(e.Base, e.Segment))
	}
	return batches[len(batches)/2], nil
}

func flip(file string, pos int64) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	if _, err = f.ReadAt(b[:], pos); err == nil {
		b[0] ^= 0x10
		_, err = f.WriteAt(b[:], pos)
	}
	return errors.Join(err, f.Close())
}

// readAll opens a log and counts the records up to the first error.
func readAll(ctx context.Context, dir string, o varve.Options) (found int64, err error) {
	l, err := varve.Open(ctx, dir, o)
	if err != nil {
		return 0, err
	}
	for _, err = range l.Records(ctx, varve.Position{}) {
		if err != nil {
			break
		}
		found++
	}
	return found, errors.Join(err, l.Close(ctx))
}

// named verifies that an error is the typed one and names the place, and that exactly the records
// before it were read.
func (p *batchPlace) named(err error, found, want int64) error {
	var typed *varve.CorruptError
	switch {
	case err == nil:
		return fmt.Errorf("no error; byte %d of %s is damaged", p.pos, filepath.Base(p.file))
	case !errors.As(err, &typed):
		return fmt.Errorf("expected a *CorruptError, found: %w", err)
	case typed.Name() != filepath.Base(p.file) || typed.Pos < p.pos || typed.Pos >= p.end || typed.Offset != p.base:
		return fmt.Errorf("the error names another place than byte %d of %s, offset %d: %w", p.pos, filepath.Base(p.file), p.base, err)
	case found != want:
		return fmt.Errorf("%d records before the damage, want %d", found, want)
	}
	return nil
}

// readAround opens a log in spite of its damage and counts what it serves.
func readAround(ctx context.Context, dir string, hit batchPlace) (found int64, err error) {
	l, err := varve.Open(ctx, dir, varve.Options{MinFreeBytes: -1, AllowDamaged: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close(ctx)) }()
	next := int64(0)
	for next < l.Committed() {
		for r, err := range l.Records(ctx, varve.Position{Offset: next}) {
			var typed *varve.CorruptError
			if errors.As(err, &typed) && typed.Offset == next && next == hit.base {
				next = hit.base + hit.records
				break
			}
			if err != nil {
				return found, err
			}
			if r.Offset != next {
				return found, fmt.Errorf("offset %d follows %d", r.Offset, next-1)
			}
			next++
			found++
		}
	}
	return found, nil
}

// restart is step 5.
func (d *demo) restart(ctx context.Context) error {
	const records = 1000
	for _, mode := range demoModes {
		dir := filepath.Join(d.root, mode.String())
		o := varve.Options{Fsync: mode, MinFreeBytes: -1, SegmentBytes: 32 << 10}
		for life := range 2 {
			if err := appendLife(ctx, dir, o, life, records); err != nil {
				return fmt.Errorf("%v: %w", mode, err)
			}
		}
		began := time.Now()
		l, err := varve.Open(ctx, dir, o)
		if err != nil {
			return fmt.Errorf("%v: %w", mode, err)
		}
		took := time.Since(began)
		err = checkLives(l.Records(ctx, varve.Position{}), 2, records)
		if err := errors.Join(err, l.Close(ctx)); err != nil {
			return fmt.Errorf("%v: %w", mode, err)
		}
		d.say("%-9s  two lives, closed each time: all %s records are there; the last open took %.1f ms", mode, group(2*records),
			milliseconds(took))
	}
	return nil
}

func appendLife(ctx context.Context, dir string, o varve.Options, life, records int) error {
	l, err := varve.Open(ctx, dir, o)
	if err != nil {
		return err
	}
	var last varve.Pending
	for n := range records {
		if last, err = l.AppendAsync(varve.Record{Value: demoValue(life, 0, n)}); err != nil {
			break
		}
	}
	if err == nil {
		_, err = last.Wait(ctx)
	}
	return errors.Join(err, l.Close(ctx))
}

func checkLives(found iter.Seq2[varve.Record, error], lives, records int) error {
	next := 0
	for r, err := range found {
		if err != nil {
			return err
		}
		if string(r.Value) != string(demoValue(next/records, 0, next%records)) {
			return fmt.Errorf("offset %d holds %.60q", r.Offset, r.Value)
		}
		next++
	}
	if next != lives*records {
		return fmt.Errorf("%d records, want %d", next, lives*records)
	}
	return nil
}
