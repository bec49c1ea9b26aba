package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"varve"
)

func TestMain(m *testing.M) {
	// A command ends with its process; the last read of standard input may outlive run.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("varve/cmd/varve.newLineReader.func1"))
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

func varveRun(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// mustRun runs a command that must succeed and returns its output.
func mustRun(t *testing.T, in string, args ...string) string {
	t.Helper()
	r := varveRun(t, in, args...)
	if r.code != exitOK {
		t.Fatalf("varve %s: exit %d, %s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// appendArgs avoids the limit on free space, which a small test machine may not have.
// flip changes one byte of a file.
// snapshot returns names, sizes, times and contents of a directory.
func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{},
		{"log"},
		{"log", "append"},
		{"log", "nothing", "--dir", dir},
		{"log", "append", "--dir", dir, "--fsync", "sometimes"},
		{"log", "append", "--dir", dir, "--segment-bytes", "many"},
		{"log", "append", "--dir", dir, "--segment-bytes", "0"},
		{"log", "append", "--dir", dir, "--retention-bytes", "0"},
		{"log", "append", "--dir", dir, "--retention-age", "0"},
		{"log", "append", "--dir", dir, "--retention-age", "0s"},
		{"log", "append", "--dir", dir, "--retention-bytes", "-2"},
		{"log", "append", "--dir", dir, "--count", "-1"},
		{"log", "append", "--dir", dir, "--upload-wait", "-1s"},
		{"log", "append", "--dir", dir, "--count", "1", "--size", "0"},
		{"log", "append", "--dir", dir, "--count", "1", "--writers", "0"},
		{"log", "append", "--dir", dir, "--fsync-interval-ms", "0"},
		{"log", "append", "--dir", dir, "--pending-bytes", "1"},
		{"log", "read", "--dir", dir, "--from", "-1"},
		{"log", "read", "--dir", dir, "--max", "-2"},
		{"log", "bench", "--dir", dir, "--seconds", "0"},
		{"log", "dump", "--dir", dir, "--segment", "../x"},
	} {
		r := varveRun(t, "x\n", args...)
		if r.code != exitUsage || r.err == "" {
			t.Errorf("varve %s: exit %d, %s", strings.Join(args, " "), r.code, r.err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Fatalf("usage errors made %v", entries)
	}
	if r := varveRun(t, "", "--help"); r.code != exitOK || !strings.Contains(r.out, "log append") {
		t.Fatalf("help: %+v", r)
	}
	if out := mustRun(t, "", "version"); !strings.HasPrefix(out, "varve ") {
		t.Fatal(out)
	}
}

func TestRetentionFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VARVE_RETENTION_BYTES", "0")
	if r := varveRun(t, "", appendArgs(dir+"/log")...); r.code != exitUsage {
		t.Fatalf("%+v", r)
	}
	t.Setenv("VARVE_RETENTION_BYTES", "-1")
	t.Setenv("VARVE_SEGMENT_BYTES", "4KiB")
	mustRun(t, "", appendArgs(dir+"/log", "--count", "100")...)
	if n := len(segments(t, dir+"/log")); n < 5 {
		t.Fatalf("%d segments of 4 KiB", n)
	}
}

func TestFailuresCreateNothing(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []string{"read", "check", "dump", "repair"} {
		if r := varveRun(t, "", "log", c, "--dir", dir+"/absent"); r.code != exitFailed || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s of an absent directory: %+v", c, r)
		}
	}
	if err := os.WriteFile(dir+"/stranger", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"append", "read", "check", "repair"} {
		if r := varveRun(t, "x\n", "log", c, "--dir", dir); r.code != exitFailed || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s of a foreign directory: %+v", c, r)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("failed commands left %v", entries)
	}
	l, err := varve.Open(t.Context(), dir+"/log", varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	if r := varveRun(t, "x\n", appendArgs(dir+"/log")...); r.code != exitFailed || !strings.Contains(r.err, "in use") {
		t.Fatalf("append beside a writer: %+v", r)
	}
}

func TestExitOfABrokenPipe(t *testing.T) {
	s := &streams{err: io.Discard}
	if code := s.exit(errors.New("x")); code != exitFailed {
		t.Fatal(code)
	}
}

// TestReadmeListsTheSettings compares the table in the README with the flags.
func TestReadmeListsTheSettings(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	for i := range table {
		k := &table[i]
		row := ""
		for line := range strings.Lines(readme) {
			if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && strings.Contains(cell, "`"+k.name+"`") {
				row = line
			}
		}
		if row == "" || k.defaultValue != "-1" && !strings.Contains(row, k.defaultValue) {
			t.Errorf("README.md: no row for %s with default %s: %q", k.name, k.defaultValue, row)
		}
		name := reflect.TypeFor[nodeSettings]().FieldByIndex(k.field).Name
		_, ok := reflect.TypeFor[varve.Options]().FieldByName(name)
		if other := strings.Contains(row, "`"+name+"`"); ok != other && name != "FsyncMode" && name != "Preallocate" {
			t.Errorf("README.md: %s is an option: %v; in its row: %v", name, ok, other)
		}
	}
}
