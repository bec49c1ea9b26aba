package varve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve/tiers/dirbucket"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/tiertest"
)

// slowFS is a disk that takes its time for each file that is read.
type slowFS struct {
	disk.FS
	pause atomic.Int64
}

func (f *slowFS) Open(name string, mode disk.Mode) (disk.File, error) {
	if strings.HasSuffix(name, ".seg") && mode == disk.Read {
		time.Sleep(time.Duration(f.pause.Load()))
	}
	return f.FS.Open(name, mode)
}

// TestTierWaitIsForTiers: TierWait bounds the wait for a tier, and not what the disk takes meanwhile, whatever the
// tier answered: here that a replica is missing, which the policy goes on without.
func TestTierWaitIsForTiers(t *testing.T) {
	server := tiertest.StartValkey(t)
	dir := filepath.Join(t.TempDir(), "log")
	fs := &slowFS{FS: osfs.New(dir)}
	o := warmOptions(t, server)
	o.Warm.Wait, o.Warm.AckOnTimeout = 20*time.Millisecond, true
	o.SegmentBytes, o.NoPreallocate = 8<<10, true
	l, err := OpenFS(t.Context(), fs, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 300)
	closeLog(t, l)
	fs.pause.Store(int64(300 * time.Millisecond))
	o.TierWait = 2 * time.Second
	began := time.Now()
	if l, err = OpenFS(t.Context(), fs, dir, o); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < o.TierWait {
		t.Fatalf("it took %v: this tests nothing", took)
	}
	closeLog(t, l)
}

// TestManifestGoneWithAWarmTier: where the directory and the manifest are lost, the bucket holds objects and Valkey the
// newest records, nobody is advised to give up what is in the bucket.
func TestManifestGoneWithAWarmTier(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	bucket, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	o.Cold, o.ColdPrefix = bucket, coldPrefix
	o.SegmentBytes, o.Warm.Segments = 8<<10, 1
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 300)
	if err := l.Export(t.Context(), 300); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Valkey is trimmed", func() bool { return l.Stats().WarmFrom > 0 })
	closeLog(t, l)
	if err := bucket.Delete(t.Context(), coldPrefix+"manifest.json"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o.Create = false
	var refused *RefusedError
	if _, err := Open(t.Context(), dir, o); !errors.As(err, &refused) || refused.Next != "run: varve cold rebuild-manifest" {
		t.Fatal(err)
	}
}
