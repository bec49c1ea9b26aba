package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve"
)

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.seg")
	if err != nil || len(names) == 0 {
		t.Fatal("no segments", err)
	}
	return names
}

func flip(t *testing.T, name string, pos int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, pos); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, pos); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsReportedByPlace(t *testing.T) {
	dir := t.TempDir() + "/log"
	mustRun(t, "", appendArgs(dir, "--count", "50", "--size", "100")...)
	name := segments(t, dir)[0]
	flip(t, name, 5*512+200) // in the payload of offset 4 (a commit a sector)
	r := varveRun(t, "", "log", "read", "--dir", dir)
	if r.code != exitDamaged || strings.Count(r.out, "\n") != 4 {
		t.Fatalf("exit %d after %d records: %s", r.code, strings.Count(r.out, "\n"), r.err)
	}
	for _, want := range []string{filepath.Base(name), "byte 2560", "offset 4", "expected payload checksum", "found"} {
		if !strings.Contains(r.err, want) {
			t.Fatalf("no %q in %s", want, r.err)
		}
	}
	if strings.Count(r.err, "\n") != 1 {
		t.Fatalf("more than one line: %s", r.err)
	}
	if r := varveRun(t, "", "log", "read", "--dir", dir, "--from", "5"); r.code != exitOK || strings.Count(r.out, "\n") != 45 {
		t.Fatalf("behind the damage: exit %d, %d records: %s", r.code, strings.Count(r.out, "\n"), r.err)
	}
	if r := varveRun(t, "", "log", "check", "--dir", dir, "--deep"); r.code != exitDamaged || !strings.Contains(r.out, "damaged") {
		t.Fatalf("check: %+v", r)
	}
	before := snapshot(t, dir)
	for _, args := range [][]string{{"check"}, {"check", "--deep"}, {"read"}, {"dump"}, {"repair"}} {
		_ = varveRun(t, "", append([]string{"log", args[0], "--dir", dir}, args[1:]...)...)
	}
	if snapshot(t, dir) != before {
		t.Fatal("a command that only looks changed the directory")
	}
}

func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Size(), info.Mode(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			b.Write(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadBesideAWriterAndFollow(t *testing.T) {
	dir := t.TempDir() + "/log"
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	say := func(v string) {
		if _, err := l.Append(t.Context(), varve.Record{Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	say("a")
	say("b")
	time.Sleep(50 * time.Millisecond) // the frontier is saved when idle
	if out := mustRun(t, "", "log", "read", "--dir", dir); out != "a\nb\n" {
		t.Fatalf("read beside a writer: %q", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, w := io.Pipe()
	go func() {
		code := run(ctx, []string{"log", "read", "--dir", dir, "--follow", "--max", "4"}, strings.NewReader(""), w, io.Discard)
		w.CloseWithError(fmt.Errorf("exit %d", code))
	}()
	got := make([]byte, 4)
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "a\nb\n" {
		t.Fatalf("follow: %q %v", got, err)
	}
	say("c")
	say("d")
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "c\nd\n" {
		t.Fatalf("follow: %q %v", got, err)
	}
	if _, err := out.Read(got); err == nil || err.Error() != "exit 0" {
		t.Fatalf("follow ended with %v", err)
	}
}

func TestUnprovenRecordsAreMarked(t *testing.T) {
	// A copy of a running log is what a killed process leaves.
	dir, copied := t.TempDir()+"/log", t.TempDir()
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1, Fsync: varve.None})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	for range 3 {
		if _, err := l.Append(t.Context(), varve.Record{Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	r := varveRun(t, "", "log", "read", "--dir", copied, "--json")
	if r.code != exitOK || strings.Count(r.out, `"proven":false`) != 3 || !strings.HasPrefix(r.err, "3 records above evidence") {
		t.Fatalf("%+v", r)
	}
	if r := varveRun(t, "", "log", "check", "--dir", copied); r.code != exitOK || !strings.Contains(r.out, "rescue") {
		t.Fatalf("check: %+v", r)
	}
}
