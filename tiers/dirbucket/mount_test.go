package dirbucket_test

import (
	"errors"
	"os"
	"testing"

	"varve/tiers"
	"varve/tiers/dirbucket"
	"varve/tiers/tiertest"
)

// TestMountIsABucket: once it is there it is the bucket of the directory.
func TestMountIsABucket(t *testing.T) {
	tiertest.TestBucket(t, tiertest.BucketTraits{Folders: true}, func(t *testing.T) tiers.Bucket {
		dir := t.TempDir()
		b, err := dirbucket.Open(dir, dirbucket.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		m := dirbucket.NewMount(dir, false)
		t.Cleanup(func() { _ = m.Close() })
		return m
	})
}

// TestMountComesLater: every call fails and creates nothing while the directory is missing, or is the
// empty place of a mount, and works once the bucket is there.
func TestMountComesLater(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()+"/bucket"
	m := dirbucket.NewMount(dir, false)
	fails := func(when string) {
		t.Helper()
		_, put := m.Put(ctx, "k", nil, tiers.Condition{})
		_, begin := m.Begin(ctx, "k")
		_, part := m.PutPart(ctx, "k", "u", 1, []byte("x"))
		_, finish := m.Finish(ctx, "k", "u", nil, tiers.Condition{})
		_, _, get := m.Get(ctx, "k", 0, nil)
		_, head := m.Head(ctx, "k")
		_, list := m.List(ctx, "", "", 1)
		_, uploads := m.Uploads(ctx, "")
		for i, err := range []error{m.Check(ctx), put, begin, part, finish, m.Abort(ctx, "k", "u"), get, head, m.Delete(ctx, "k"), list, uploads} {
			if !errors.Is(err, dirbucket.ErrAbsent) {
				t.Errorf("%s: call %d: %v", when, i, err)
			}
			if errors.Is(err, tiers.ErrNotFound) || errors.Is(err, tiers.ErrNoUpload) {
				t.Errorf("%s: call %d says that an object is not there: %v", when, i, err)
			}
		}
	}
	fails("no directory")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("it was made")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fails("not mounted")
	b, err := dirbucket.Open(dir, dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := m.Put(ctx, "k", []byte("x"), tiers.Condition{Absent: true}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := dirbucket.NewMount(dir, false).Close(); err != nil { // which was never opened
		t.Fatal(err)
	}
}

// TestMountOfSomethingElse: what no mount mends is not taken for a bucket that comes later.
func TestMountOfSomethingElse(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/.varve", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/.varve/format", []byte("varve bucket 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := dirbucket.NewMount(dir, true).Check(t.Context()); err == nil || errors.Is(err, dirbucket.ErrAbsent) {
		t.Error(err)
	}
}
