package varve

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"varve/tiers"
	"varve/tiers/dirbucket"
)

// exportedLog makes a log of 300 records that its bucket holds, too, and closes it.
func exportedLog(t *testing.T, dir string, o Options) {
	t.Helper()
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 300)
	if err := l.Export(t.Context(), 300); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
}

// TestNoNewLogOverObjects: where the bucket holds objects of the log and no manifest, nobody begins anew: a log with
// an empty directory, and one that had no cold tier yet. Keys of something else are no objects.
func TestNoNewLogOverObjects(t *testing.T) {
	db, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	o := Options{Cold: db, ColdPrefix: coldPrefix, Create: true, MinFreeBytes: -1, SegmentBytes: 8 << 10, NoPreallocate: true}
	exportedLog(t, filepath.Join(root, "log"), o)
	if err := db.Delete(t.Context(), coldPrefix+"manifest.json"); err != nil {
		t.Fatal(err)
	}
	objects := func() []tiers.Object {
		list, err := db.List(t.Context(), "", "", tiers.PageMax)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, key := range []string{"segments/0", "segments/zzz"} { // beside what is the log's
		if _, err := db.Put(t.Context(), coldPrefix+key, []byte("x"), tiers.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	was := objects()
	fresh := filepath.Join(root, "fresh")
	var refused *RefusedError
	if _, err := Open(t.Context(), fresh, o); !errors.As(err, &refused) || !strings.Contains(refused.Next, "rebuild-manifest; for a new log") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left something: %v", err)
	}
	hot := o
	hot.Cold, hot.ColdPrefix = nil, ""
	l, err := Open(t.Context(), fresh, hot)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 10)
	closeLog(t, l)
	if l, err = Open(t.Context(), fresh, o); err != nil { // what is on disk is served
		t.Fatal(err)
	}
	if s := l.Stats(); !errors.As(s.ColdError, &refused) || s.Phase != "recovering" {
		t.Errorf("%s, %v", s.Phase, s.ColdError)
	}
	readAll(t, l, 0, 10)
	closeLog(t, l)
	if got := objects(); !slices.Equal(got, was) {
		t.Errorf("the bucket holds %v, held %v", got, was)
	}
	o.ColdPrefix = "other/"
	for _, key := range []string{"other/log/segments/1", "other/segments/0", "other/zzz"} {
		if _, err := db.Put(t.Context(), key, []byte("x"), tiers.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	if l, err = Open(t.Context(), filepath.Join(root, "other"), o); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
}

// TestManifestThatStaysAway: a manifest that is gone for good is asked for less and less often, and the error goes on
// naming the way back. When it is back, so is the log.
func TestManifestThatStaysAway(t *testing.T) {
	db, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b, dir := &counting{Bucket: db, n: map[string]int{}, got: map[string]int64{}}, filepath.Join(t.TempDir(), "log")
	o := Options{Cold: b, ColdPrefix: coldPrefix, Create: true, MinFreeBytes: -1, SegmentBytes: 8 << 10, NoPreallocate: true}
	exportedLog(t, dir, o)
	key, kept := coldPrefix+"manifest.json", make([]byte, 1<<20)
	size, _, err := db.Get(t.Context(), key, 0, kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	b.take()
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	n := b.take()
	if got := n["get manifest.json"] + n["list segments"]; got < 4 || got > 20 { // of 40 in a loop; two each time
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
