package fuzz

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"varve"
)

// TestCorpusThroughTheLog appends every file of the foreign corpus, or of the project's own seeds
// where there is none, as the value of a record, and its name as the key, and reads all of it back
// byte for byte after the log was reopened.
func TestCorpusThroughTheLog(t *testing.T) {
	files, err := foreign()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range segments() {
		files = append(files, File{fmt.Sprint("segment ", i), m.data}, File{fmt.Sprint("nothing ", i), []byte{}})
	}
	ctx, dir := t.Context(), t.TempDir()+"/log"
	open := func() *varve.Log {
		l, err := varve.Open(ctx, dir, varve.Options{
			MinFreeBytes: -1, Fsync: varve.None, SegmentBytes: 128 << 10, NoPreallocate: true, MaxBatchBytes: 2 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	for len(files[l.Stats().End:]) > 0 { // batches of 1, 2, 3 ... 9 records
		rest := files[l.Stats().End:]
		recs := make([]varve.Record, min(len(rest), 1+int(l.Stats().End%9)))
		for i := range recs {
			recs[i] = varve.Record{Key: []byte(rest[i].Name), Value: rest[i].Bytes}
		}
		if _, err := l.Append(ctx, recs...); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	l = open()
	at := 0
	for r, err := range l.Records(ctx, varve.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f := files[at]; string(r.Key) != f.Name || !bytes.Equal(r.Value, f.Bytes) || r.Offset != int64(at) {
			t.Fatalf("offset %d holds %q, %d bytes; want %q, %d bytes", r.Offset, r.Key, len(r.Value), f.Name, len(f.Bytes))
		}
		at++
	}
	if at != len(files) {
		t.Fatalf("%d of %d files read back", at, len(files))
	}
	if err := l.Close(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files", at)
}

func TestLoadCorpus(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.zip")
	writeZip(t, archive, map[string]string{"a/b": "hello", "a/c": ""})
	tree := filepath.Join(dir, "tree")
	for name, text := range map[string]string{"a/b": "hello", "a/c": ""} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{archive, tree} {
		files, err := LoadCorpus(path)
		if err != nil || len(files) != 2 || files[0].Name != "a/b" || string(files[0].Bytes) != "hello" || len(files[1].Bytes) != 0 {
			t.Errorf("%s: %q, %v", path, files, err)
		}
	}
}

// What is too much, or nothing, is an error that names the place.
func TestLoadCorpusRefuses(t *testing.T) {
	dir := t.TempDir()
	bomb := filepath.Join(dir, "bomb.zip")
	writeZip(t, bomb, map[string]string{"zeros": strings.Repeat("\x00", fileBytesMax+1)})
	large, empty := filepath.Join(dir, "large"), filepath.Join(dir, "empty")
	for _, path := range []string{large, empty} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range totalBytesMax/fileBytesMax + 1 {
		path := filepath.Join(large, fmt.Sprint(i))
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, fileBytesMax); err != nil { // zeros that take no space
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		bomb: "zeros", large: "in all", empty: "no files", other: "want a folder or a zip", filepath.Join(dir, "absent"): "absent",
	} {
		if _, err := LoadCorpus(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want an error with %q", path, err, want)
		}
	}
}

func writeZip(t *testing.T, path string, files map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
