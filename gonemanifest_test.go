package varve

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve/tiers"
	"varve/tiers/dirbucket"
)

// tally is a bucket that counts what is asked of it.
type tally struct {
	tiers.Bucket
	asked atomic.Int64
}

func (c *tally) Get(ctx context.Context, key string, at int64, p []byte) (int, tiers.Object, error) {
	c.asked.Add(1)
	return c.Bucket.Get(ctx, key, at, p)
}

func (c *tally) List(ctx context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	c.asked.Add(1)
	return c.Bucket.List(ctx, prefix, after, limit)
}

// TestManifestThatStaysAway: a manifest that is gone for good is asked for less and less often, and the error goes on
// naming the way back. When it is back, so is the log.
func TestManifestThatStaysAway(t *testing.T) {
	db, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b, dir := &tally{Bucket: db}, filepath.Join(t.TempDir(), "log")
	o := Options{Cold: b, ColdPrefix: coldPrefix, Create: true, MinFreeBytes: -1, SegmentBytes: 8 << 10, NoPreallocate: true}
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 300)
	if err := l.Export(t.Context(), 300); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	key, kept := coldPrefix+"manifest.json", make([]byte, 1<<20)
	n, _, err := db.Get(t.Context(), key, 0, kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	b.asked.Store(0)
	if l, err = Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if got := b.asked.Load(); got < 4 || got > 20 { // of 40 in a loop; two each time
		t.Errorf("it was asked %d times in 2 s", got)
	}
	if err := l.Stats().ColdError; err == nil || !strings.Contains(err.Error(), "rebuild-manifest") {
		t.Errorf("%v", err)
	}
	if _, err := db.Put(t.Context(), key, kept[:n], tiers.Condition{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is back", func() bool { return l.Stats().Phase == "ready" })
	readAll(t, l, 0, 300)
	closeLog(t, l)
}
