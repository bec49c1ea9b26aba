package varve

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/tiers"
	"varve/tiers/dirbucket"
)

// TestManifestThatStaysAway: a manifest that is gone for good is asked for less and less often, and the error goes on
// naming the way back. When it is back, so is the log.
func TestManifestThatStaysAway(t *testing.T) {
	db, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b, dir := &counting{Bucket: db, n: map[string]int{}, got: map[string]int64{}}, filepath.Join(t.TempDir(), "log")
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
	size, _, err := db.Get(t.Context(), key, 0, kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	b.take()
	if l, err = Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	n := b.take()
	if got := n["get manifest.json"] + n["list "]; got < 4 || got > 20 { // of 40 in a loop; two each time
		t.Errorf("it was asked %d times in 2 s: %v", got, n)
	}
	if err := l.Stats().ColdError; err == nil || !strings.Contains(err.Error(), "rebuild-manifest") {
		t.Errorf("%v", err)
	}
	if _, err := db.Put(t.Context(), key, kept[:size], tiers.Condition{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is back", func() bool { return l.Stats().Phase == "ready" })
	readAll(t, l, 0, 300)
	closeLog(t, l)
}
