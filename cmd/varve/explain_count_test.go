package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve"
	"varve/tiers"
	"varve/tiers/dirbucket"
)

// counting counts the requests that a bucket gets.
type counting struct {
	tiers.Bucket
	puts, gets, deletes, lists atomic.Int64
}

func (c *counting) Put(ctx context.Context, key string, b []byte, cond tiers.Condition) (tiers.Object, error) {
	c.puts.Add(1)
	return c.Bucket.Put(ctx, key, b, cond)
}

func (c *counting) Begin(ctx context.Context, key string) (string, error) {
	c.puts.Add(1)
	return c.Bucket.Begin(ctx, key)
}

func (c *counting) PutPart(ctx context.Context, key, id string, n int, b []byte) (tiers.Part, error) {
	c.puts.Add(1)
	return c.Bucket.PutPart(ctx, key, id, n, b)
}

func (c *counting) Finish(ctx context.Context, key, id string, parts []tiers.Part, cond tiers.Condition) (tiers.Object, error) {
	c.puts.Add(1)
	return c.Bucket.Finish(ctx, key, id, parts, cond)
}

func (c *counting) Get(ctx context.Context, key string, at int64, p []byte) (int, tiers.Object, error) {
	c.gets.Add(1)
	return c.Bucket.Get(ctx, key, at, p)
}

func (c *counting) Head(ctx context.Context, key string) (tiers.Object, error) {
	c.gets.Add(1)
	return c.Bucket.Head(ctx, key)
}

func (c *counting) Delete(ctx context.Context, key string) error {
	c.deletes.Add(1)
	return c.Bucket.Delete(ctx, key)
}

func (c *counting) List(ctx context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	c.lists.Add(1)
	return c.Bucket.List(ctx, prefix, after, limit)
}

func (c *counting) Uploads(ctx context.Context, prefix string) ([]tiers.Upload, error) {
	c.lists.Add(1)
	return c.Bucket.Uploads(ctx, prefix)
}

// TestExplainedRequestsAreThoseOfARun: a log writes as much as an explained day does, and the bucket
// counts its requests.
func TestExplainedRequestsAreThoseOfARun(t *testing.T) {
	for _, c := range []struct {
		segment, part int64
		batch         int
	}{
		{16 << 10, 5 << 20, 3000},
		{1 << 20, 5 << 20, 60 << 10},
		{12 << 20, 5 << 20, 60 << 10}, // of larger batches a reader asks for more at once
	} {
		t.Run(strconv.FormatInt(c.segment, 10), func(t *testing.T) {
			b, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			bucket := &counting{Bucket: b}
			dir := t.TempDir()
			o := varve.Options{
				Fsync: varve.None, SegmentBytes: c.segment, MinFreeBytes: -1, Cold: bucket, ColdPrefix: "x/", ColdPartBytes: c.part, Create: true,
			}
			l, err := varve.Open(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			for l.Stats().Rolls < 4 {
				if _, err := l.Append(t.Context(), varve.Record{Value: make([]byte, c.batch)}); err != nil {
					t.Fatal(err)
				}
				for l.Stats().ColdLagSegments > 1 { // in a day there is time between two segments
					time.Sleep(time.Millisecond)
				}
			}
			if err := l.Offload(t.Context(), l.Committed()); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			written := requestCost{Puts: bucket.puts.Load(), Gets: bucket.gets.Swap(0), Deletes: bucket.deletes.Load(), Lists: bucket.lists.Load() - 1} // one for a new log
			x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{Cold: bucket, ColdPrefix: "x/"})
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range x.Records(t.Context(), varve.Position{}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			written.ReadGets, written.Objects = bucket.gets.Load(), int64(len(x.Cold))
			objects := int64(len(x.Cold))
			args := fmt.Sprintf("--cold-url file:///x --segment-bytes %d --cold-part-bytes %d --segment-age=-1 --max-batch-bytes 1MiB --local-retention-age 1h", c.segment, c.part)
			var s nodeSettings
			want := explainedJSON(t, strings.Fields(args)...)
			for i := range table {
				if err := table[i].set(&s, strings.Trim(want.setting(table[i].name).Value, `"[]`)); err != nil {
					t.Fatal(err)
				}
			}
			cost := requestsOf(&s.settings, c.segment, objects)
			cost.ObjectBytes = 0
			if last := x.Cold[objects-1]; last.Bytes < c.segment/2 { // it has but one append
				whole, part := uploads(c.segment, c.part), uploads(last.Bytes, c.part)
				cost.Puts -= whole - part
				cost.Gets -= lookRequests(c.segment) - lookRequests(last.Bytes)
				cost.ReadGets -= reads(c.segment, readerBytes) - reads(last.Bytes, readerBytes)
			}
			if *cost != written {
				t.Errorf("explained %+v\ncounted   %+v", *cost, written)
			}
		})
	}
}
