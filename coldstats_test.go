package varve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"varve/tiers"
	"varve/tiers/dirbucket"
)

// moody is a bucket that may not answer.
type moody struct {
	tiers.Bucket
	down atomic.Bool
}

var errOutage = errors.New("503 from the bucket")

func (m *moody) Put(ctx context.Context, key string, b []byte, c tiers.Condition) (tiers.Object, error) {
	if m.down.Load() {
		return tiers.Object{}, errOutage
	}
	return m.Bucket.Put(ctx, key, b, c)
}

func (m *moody) Get(ctx context.Context, key string, at int64, p []byte) (int, tiers.Object, error) {
	if m.down.Load() {
		return 0, tiers.Object{}, errOutage
	}
	return m.Bucket.Get(ctx, key, at, p)
}

// lines is a buffer for several goroutines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestOutageOfTheBucket: appends go on, an operator sees how far the bucket is behind and why, and it
// catches up by itself. An open without it serves what the disk holds, and takes appends once the bucket
// answers.
func TestOutageOfTheBucket(t *testing.T) {
	b, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	bucket, log := &moody{Bucket: b}, &lines{}
	dir := filepath.Join(t.TempDir(), "log")
	o := Options{
		Cold: bucket, ColdPrefix: coldPrefix, Create: true, MinFreeBytes: -1, SegmentBytes: 16 << 10, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.ColdError != nil || s.ColdLagSegments != 0 || s.ColdLagBytes != 0 || s.Exported != 0 {
		t.Fatalf("%+v", s)
	}
	bucket.down.Store(true)
	appendValues(t, l, 0, 200)
	eventually(t, "the outage is seen", func() bool { return errors.Is(l.Stats().ColdError, errOutage) })
	eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "the cold tier does not answer as it should") })
	if s := l.Stats(); s.ColdLagSegments < 4 || s.ColdLagBytes < 4*8<<10 || s.Exported != 0 || s.HotStart != 0 || s.Phase != "ready" {
		t.Fatalf("%+v", s)
	}
	bucket.down.Store(false)
	eventually(t, "it catches up", func() bool { s := l.Stats(); return s.ColdError == nil && s.ColdLagSegments <= 1 && s.Exported > 100 })
	eventually(t, "and that is logged", func() bool { return strings.Contains(log.String(), "answers again") })
	if err := l.Offload(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.HotStart == 0 || s.HotStart > 100 {
		t.Fatalf("%+v", s)
	}
	closeLog(t, l)

	bucket.down.Store(true)
	x, err := Inspect(t.Context(), dir, InspectOptions{Cold: bucket, ColdPrefix: coldPrefix})
	if err != nil || !errors.Is(x.ColdDown, errOutage) || x.End != 200 || x.Exported != -1 {
		t.Fatalf("%+v, %v", x, err)
	}
	var tier *TierError
	for _, err := range x.Records(t.Context(), Position{}) {
		if !errors.As(err, &tier) {
			t.Fatal(err)
		}
	}
	if _, err := PlanRepair(t.Context(), dir, Options{Cold: bucket, ColdPrefix: coldPrefix}); !errors.Is(err, errOutage) {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), dir+"-absent", InspectOptions{Cold: bucket, ColdPrefix: coldPrefix}); !errors.Is(err, errOutage) {
		t.Fatal(err)
	}
	if l, err = Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	// What the bucket has is not known before it answers.
	if s := l.Stats(); s.Phase != "recovering" || !errors.Is(s.ColdError, errOutage) || s.Exported != -1 || s.ColdLagBytes != -1 || s.ColdLagSegments != -1 {
		t.Fatalf("%+v", s)
	}
	eventually(t, "that is logged as it is", func() bool {
		return strings.Contains(log.String(), "exported=unknown lag_bytes=unknown lag_segments=unknown")
	})
	if _, err := l.Append(t.Context(), Record{}); !errors.Is(err, ErrTierDown) {
		t.Fatal(err)
	}
	bucket.down.Store(false)
	eventually(t, "the open ends", func() bool { s := l.Stats(); return s.Phase == "ready" && s.Exported > 0 && s.ColdLagBytes >= 0 })
	appendValues(t, l, 200, 201)
	readAll(t, l, 0, 201)
	closeLog(t, l)
}

// TestColdOptionsOutOfRange: they are refused by name, before anything is done.
func TestColdOptionsOutOfRange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	for want, o := range map[string]Options{
		"cold.part_bytes":        {ColdPartBytes: 1 << 20},
		"ends in a slash":        {Cold: &moody{}, ColdPrefix: "a"},
		"leads elsewhere":        {Cold: &moody{}, ColdPrefix: "../a/"},
		"has a control":          {Cold: &moody{}, ColdPrefix: "a\x00/"},
		"cold.max_upload_age":    {ColdMaxUploadAge: 1},
		"more than 255":          {Cold: &moody{}, ColdPrefix: strings.Repeat("a", 300) + "/"},
		"cold prefix = //":       {Cold: &moody{}, ColdPrefix: "//"},
		"cold.part_bytes = 6442": {ColdPartBytes: 6 << 30},
	} {
		if _, err := Open(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if absent := absentDirs(dir); len(absent) != 1 {
		t.Error("something was made")
	}
}
