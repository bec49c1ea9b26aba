//go:build !mutant

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"varve"
	"varve/core/segment"
	"varve/tiers/dirbucket"
)

// tiered is step 6: a log in two tiers, whose disk is damaged and then lost.
func (d *demo) tiered(ctx context.Context) (err error) {
	b, err := dirbucket.Open(filepath.Join(d.root, "bucket"), dirbucket.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	t := &demoTiers{d: d, dir: filepath.Join(d.root, "orders"), options: varve.Options{
		SegmentBytes: 32 << 10, MinFreeBytes: -1, Cold: b, ColdPrefix: "orders/",
	}}
	for _, life := range []func(context.Context, *varve.Log) error{t.first, t.rebuilt} {
		t.options.Create = t.records == 0
		l, err := varve.Open(ctx, t.dir, t.options)
		if err != nil {
			return err
		}
		if err := errors.Join(life(ctx, l), l.Close(ctx)); err != nil {
			return err
		}
		if err := os.RemoveAll(t.dir); err != nil {
			return err
		}
	}
	return nil
}

// demoTiers is a log in two tiers.
type demoTiers struct {
	d       *demo
	dir     string
	options varve.Options
	records int
}

// append appends records and waits until the bucket holds all of them.
func (t *demoTiers) append(ctx context.Context, l *varve.Log, n int) error {
	var last varve.Pending
	for range n {
		var err error
		if last, err = l.AppendAsync(varve.Record{Value: demoValue(0, 0, t.records)}); err != nil {
			return err
		}
		t.records++
		if t.records%50 == 0 {
			if _, err := last.Wait(ctx); err != nil {
				return err
			}
		}
	}
	_, err := last.Wait(ctx)
	if err == nil {
		err = l.Roll(ctx)
	}
	for err == nil && l.Stats().Exported < int64(t.records) {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return err
}

// check reads everything, and draws the map.
func (t *demoTiers) check(ctx context.Context, l *varve.Log, what string) error {
	if err := checkLives(ctx, l, 1, t.records); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	t.d.say("%s", what)
	m := l.TierMap("orders", "bucket")
	for line := range strings.Lines(m.String()) {
		t.d.say("   %s", strings.TrimRight(line, "\n"))
	}
	return nil
}

// first is the life that fills the bucket.
func (t *demoTiers) first(ctx context.Context, l *varve.Log) error {
	if err := t.append(ctx, l, 2000); err != nil {
		return err
	}
	if err := t.check(ctx, l, "2,000 records; each segment that is full is copied into a bucket, here a directory:"); err != nil {
		return err
	}
	if err := l.Offload(ctx, 1500); err != nil {
		return err
	}
	if s := l.Stats(); s.HotStart == 0 || s.HotStart > 1500 {
		return fmt.Errorf("the disk begins at offset %d, want one above 0, up to 1500", s.HotStart)
	}
	if err := t.check(ctx, l, "what lies before offset 1,500 leaves the disk; a reader still sees all of it:"); err != nil {
		return err
	}
	x, err := varve.Inspect(ctx, t.dir, varve.InspectOptions{Cold: t.options.Cold, ColdPrefix: t.options.ColdPrefix})
	if err != nil {
		return err
	}
	files, err := segmentsIn(t.dir)
	if err != nil {
		return err
	}
	for len(files) > 0 && filepath.Base(files[0]) < segment.Name(l.Stats().HotStart, 0) { // about to be removed
		files = files[1:]
	}
	if len(files) == 0 {
		return errors.New("no segment is left on disk")
	}
	batches, err := batchesOf(files[0], x.View.LogID)
	switch {
	case err != nil:
		return err
	case len(batches) == 0:
		return fmt.Errorf("no batch in %s", files[0])
	}
	hit := batches[len(batches)/2]
	if err := flip(hit.file, (hit.pos+hit.end)/2); err != nil {
		return err
	}
	err = t.check(ctx, l, fmt.Sprintf("one bit flipped in %s: the damage is found, and the bucket serves what the file held:", filepath.Base(hit.file)))
	if s := l.Stats(); err == nil && s.Corruptions == 0 {
		err = errors.New("nobody met the damage")
	}
	return err
}

// rebuilt is the life after the disk was lost.
func (t *demoTiers) rebuilt(ctx context.Context, l *varve.Log) error {
	if err := t.check(ctx, l, "the directory deleted, and the log opened again: it is rebuilt from the bucket, with every record:"); err != nil {
		return err
	}
	if err := t.append(ctx, l, 500); err != nil {
		return err
	}
	return t.check(ctx, l, "500 records more; the log goes on:")
}
