package varve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"varve/tiers/dirbucket"
	"varve/tiers/tiertest"
)

// TestEraseTiers: what a log has in its tiers is gone, what lies beside it stays, and the log cannot come
// back; again is no error.
func TestEraseTiers(t *testing.T) {
	ctx := t.Context()
	primary, _ := tiertest.StartPair(t)
	bucket, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	o := warmOptions(t, primary)
	o.Cold, o.ColdPrefix = bucket, "a/"
	dir := filepath.Join(t.TempDir(), "log")
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 100)
	if err := errors.Join(l.Export(ctx, 100), l.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	beside := o
	beside.ColdPrefix, beside.Warm.Name = "ab/", "orders-1"
	m := warmLog(t, filepath.Join(t.TempDir(), "log"), beside)
	appendValues(t, m, 0, 10)
	if err := errors.Join(m.Export(ctx, 10), m.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	look := func(want bool) {
		t.Helper()
		alone := o
		alone.Cold, alone.ColdPrefix = nil, ""
		for _, o := range []Options{o, alone} {
			if empty, err := TiersEmpty(ctx, o); err != nil || empty != want {
				t.Fatalf("empty %v, %v", empty, err)
			}
		}
	}
	look(false)
	for range 2 {
		if err := EraseTiers(ctx, o); err != nil {
			t.Fatal(err)
		}
		look(true)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o.Create, o.Existing = true, true
	var refused *RefusedError
	if _, err := Open(ctx, dir, o); !errors.As(err, &refused) {
		t.Errorf("the log came back: %v", err)
	}
	if list, err := bucket.List(ctx, "a", "", 10); err != nil || len(list) == 0 || strings.HasPrefix(list[0].Key, "a/") {
		t.Errorf("the bucket holds %v, %v", list, err)
	}
	if got := primary.Do("EXISTS", "varve:{orders-0}", "varve:{orders-1}"); !strings.Contains(got, "1") {
		t.Errorf("of two streams there are %q", got)
	}
	beside.Existing = true
	m = warmLog(t, filepath.Join(t.TempDir(), "log"), beside)
	readAll(t, m, 0, 10)
	if err := m.Close(ctx); err != nil {
		t.Fatal(err)
	}
	o.ColdPrefix = ""
	if err := EraseTiers(ctx, o); err == nil || !strings.Contains(err.Error(), "whole bucket") {
		t.Errorf("a whole bucket: %v", err)
	}
}

// TestExisting: a log that should be there is not begun anew in silence.
func TestExisting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	o := Options{MinFreeBytes: -1, Existing: true}
	var refused *RefusedError
	if _, err := Open(t.Context(), dir, o); !errors.As(err, &refused) || !strings.Contains(err.Error(), "should hold a log") {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	l, err := Open(t.Context(), dir, Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
