package osfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"varve/tiers/disk"
	"varve/tiers/tiertest"
)

// TestSU6SparseFileOnAFullDisk: a file with holes, as every file is that was made longer, on a file system
// without a free block. A write into a hole ends in ENOSPC, at every position; nothing kills the
// process, because nothing is written through a mapping.
func TestSU6SparseFileOnAFullDisk(t *testing.T) {
	base := tiertest.Tmpfs(t, 0, "size=1m")
	f := New(base + "/log")
	must(t, f.Mkdir(disk.DirLog))
	x := mustOpen(t, f, "a.seg", disk.Create)
	must(t, x.Truncate(64<<20)) // a hole
	filler := mustOpen(t, f, "b.seg", disk.Create)
	block := [][]byte{make([]byte, 4096)}
	for at := int64(0); ; at += 4096 {
		if _, err := filler.WriteAt(block, at); err != nil {
			if !errors.Is(err, disk.ErrNoSpace) {
				t.Fatal(err)
			}
			break
		}
	}
	record := [][]byte{[]byte("header"), []byte("payload")}
	for at := int64(0); at < 64<<20; at += 5<<20 + 4099 {
		n, err := x.WriteAt(record, at)
		if !errors.Is(err, disk.ErrNoSpace) || n != 0 {
			t.Fatalf("a write into a hole at %d: %d, %v", at, n, err)
		}
		if err := x.WriteZeros(at, 4096); !errors.Is(err, disk.ErrNoSpace) {
			t.Fatalf("zeros into a hole at %d: %v", at, err)
		}
	}
	b := make([]byte, 64)
	if _, err := x.ReadAt(b, 32<<20); err != nil || !bytes.Equal(b, make([]byte, 64)) {
		t.Fatalf("the hole reads as %x, %v", b, err)
	}

	mapping := regexp.MustCompile(`\b[Mm]map\(`)
	root := "../../.."
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, filepath.Join(root, "bench")) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && mapping.Match(text) {
			t.Errorf("%s maps memory", path)
		}
		return err
	})
	must(t, err)
}
