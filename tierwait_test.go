package varve

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve/tiers"
	"varve/tiers/dirbucket"
)

// halting is a bucket that may be read and not written, or that hangs.
type halting struct {
	tiers.Bucket
	readOnly, hangs atomic.Bool
}

func (h *halting) Put(ctx context.Context, key string, b []byte, c tiers.Condition) (tiers.Object, error) {
	if h.readOnly.Load() {
		return tiers.Object{}, errOutage
	}
	return h.Bucket.Put(ctx, key, b, c)
}

func (h *halting) Get(ctx context.Context, key string, at int64, p []byte) (int, tiers.Object, error) {
	if h.hangs.Load() {
		<-ctx.Done()
		return 0, tiers.Object{}, ctx.Err()
	}
	return h.Bucket.Get(ctx, key, at, p)
}

func haltingBucket(t *testing.T) *halting {
	t.Helper()
	b, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return &halting{Bucket: b}
}

// TestOpenOfABucketThatMayOnlyBeRead: what the log holds is served, appends are refused with the cause, and
// taken once the bucket can be written to. A log that is new has nothing to serve: its open ends after
// TierWait, and so does a repair.
func TestOpenOfABucketThatMayOnlyBeRead(t *testing.T) {
	bucket, dir := haltingBucket(t), filepath.Join(t.TempDir(), "log")
	o := Options{Cold: bucket, ColdPrefix: coldPrefix, Create: true, MinFreeBytes: -1, SegmentBytes: 16 << 10, TierWait: time.Second}
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 200)
	if err := l.Offload(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)

	bucket.readOnly.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if l, err = Open(ctx, dir, o); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.Phase != "recovering" || !errors.Is(s.ColdError, errOutage) || s.Committed != 200 || s.Exported != -1 || s.ColdLagSegments != -1 {
		t.Fatalf("%+v", s)
	}
	if _, err := l.Append(ctx, Record{}); !errors.Is(err, ErrTierDown) {
		t.Fatal(err)
	}
	readAll(t, l, 0, 200)
	bucket.readOnly.Store(false)
	eventually(t, "the open ends", func() bool { return l.Stats().Phase == "ready" })
	appendValues(t, l, 200, 201)
	readAll(t, l, 0, 201)
	closeLog(t, l)

	bucket.readOnly.Store(true)
	o.ColdPrefix = "new/"
	if _, err := Open(ctx, dir+"-new", o); !errors.Is(err, ErrTierDown) || !errors.Is(err, errOutage) {
		t.Fatal(err)
	}
}

// TestBucketThatHangs: an open says so, and ends after TierWait. A look shows what is on disk without it, and says
// why that is all; an open that waits as long as that serves what is on disk, and goes on once the bucket answers.
func TestBucketThatHangs(t *testing.T) {
	wasSlow, wasWait := tierSlow, lookWait
	tierSlow, lookWait = 40*time.Millisecond, 800*time.Millisecond
	defer func() { tierSlow, lookWait = wasSlow, wasWait }()
	bucket, dir, log := haltingBucket(t), filepath.Join(t.TempDir(), "log"), &lines{}
	o := Options{Cold: bucket, ColdPrefix: coldPrefix, Create: true, MinFreeBytes: -1, Logger: slog.New(slog.NewTextHandler(log, nil))}
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 20)
	closeLog(t, l)

	bucket.hangs.Store(true)
	o.TierWait = 400 * time.Millisecond
	began := time.Now()
	if _, err := Open(t.Context(), dir, o); !errors.Is(err, ErrTierDown) {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "the open waits for a tier that does not answer") {
		t.Fatalf("nothing is said: %s", log)
	}
	x, err := Inspect(t.Context(), dir, InspectOptions{Cold: bucket, ColdPrefix: coldPrefix, Logger: o.Logger})
	if err != nil || !errors.Is(x.ColdDown, context.DeadlineExceeded) || x.End != 20 {
		t.Fatalf("%+v, %v", x, err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Fatalf("it took %v", took)
	}
	if !strings.Contains(log.String(), "the cold tier has not answered yet") {
		t.Fatalf("nothing is said: %s", log)
	}
	n := int64(0)
	for _, err := range x.Records(t.Context(), Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 20 {
		t.Fatalf("%d records", n)
	}

	o.TierWait, began = 0, time.Now()
	if l, err = Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.Phase != "recovering" || !errors.Is(s.ColdError, context.DeadlineExceeded) {
		t.Fatalf("%+v", s)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Fatalf("it took %v", took)
	}
	readAll(t, l, 0, 20)
	bucket.hangs.Store(false)
	eventually(t, "the bucket is back", func() bool { return l.Stats().Phase == "ready" })
	appendValues(t, l, 20, 21)
	closeLog(t, l)
}
