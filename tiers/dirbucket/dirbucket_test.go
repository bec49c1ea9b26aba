package dirbucket

import (
	"path/filepath"
	"testing"

	"varve/tiers"
	"varve/tiers/tiertest"
)

func newBucket(t *testing.T) *Bucket {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "bucket"))
}

func openAt(t *testing.T, dir string) *Bucket {
	t.Helper()
	b, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestContract(t *testing.T) {
	tiertest.TestBucket(t, tiertest.BucketTraits{Folders: true}, func(t *testing.T) tiers.Bucket { return newBucket(t) })
}
