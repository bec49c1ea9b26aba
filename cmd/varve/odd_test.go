package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"varve"
	"varve/core/segment"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// An empty variable in a shell script must not make a log of the directory that it runs in.
func TestEmptyDirectoryName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, command := range []string{"append", "read", "check", "dump", "repair", "bench"} {
		if r := varveRun(t, "x\n", "log", command, "--dir", ""); r.code != exitUsage || !strings.Contains(r.err, "--dir is empty") {
			t.Errorf("log %s: %+v", command, r)
		}
	}
	if l, err := varve.Open(t.Context(), "", varve.Options{}); err == nil {
		t.Error("opened", l.Close(t.Context()))
	}
	if files := names(t, "."); len(files) > 0 {
		t.Errorf("made %v", files)
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestGeneratedNumbersThatDoNotFitMakeNoLog(t *testing.T) {
	dir := t.TempDir() + "/log"
	if r := varveRun(t, "", appendArgs(dir, "--count", "300", "--size", "1")...); r.code != exitUsage || !strings.Contains(r.err, "--size of 16") {
		t.Fatalf("%+v", r)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Fatal("a log was made")
	}
}

// dump says what is wrong with a file and goes on with the others; it waits for no pipe.
func TestDumpOfOddFiles(t *testing.T) {
	dir := threeLives(t)
	files := segments(t, dir)
	odd := []string{files[0], dir + "/super.0", dir + "/" + segment.Name(500, 9<<32|1)}
	if err := errors.Join(os.Remove(odd[0]), os.Remove(odd[1])); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Mkfifo(odd[0], 0o600), unix.Mkfifo(odd[1], 0o600), os.Mkdir(odd[2], 0o700)); err != nil {
		t.Fatal(err)
	}
	done := make(chan result)
	go func() { done <- varveRun(t, "", "log", "dump", "--dir", dir) }()
	select {
	case r := <-done:
		if r.code != exitFailed || strings.Count(r.out, "is not a regular file") != 2 || strings.Count(r.out, "is a directory") != 1 {
			t.Errorf("%+v", r)
		}
		if strings.Count(r.out, "footer verifies") != len(files)-1 {
			t.Errorf("the good files are not all there: %s", r.out)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting for a pipe")
	}
}

// Bytes that are no text come back from --json, wherever they are.
func TestBinaryHeaderKey(t *testing.T) {
	dir := t.TempDir()
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), varve.Record{Headers: []varve.Header{{Key: []byte("\xff\x00"), Value: []byte{}}, {}, {Key: []byte("k")}}})
	if err = errors.Join(err, l.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	var line struct{ Headers []map[string]any }
	if err := json.Unmarshal([]byte(mustRun(t, "", "log", "read", "--dir", dir, "--json")), &line); err != nil || len(line.Headers) != 3 {
		t.Fatalf("%v %v", line, err)
	}
	h := line.Headers
	if _, value := h[0]["value"]; h[0]["key_base64"] != "/wA=" || h[0]["key"] != nil || !value || len(h[0]) != 2 {
		t.Errorf("binary key, empty value: %v", h[0])
	}
	if h[1]["key"] != "" || len(h[1]) != 1 || h[2]["key"] != "k" || len(h[2]) != 1 {
		t.Errorf("no value: %v %v", h[1], h[2])
	}
}

// failingFS fails the writes of segments.
type failingFS struct{ disk.FS }

type failingFile struct{ disk.File }

func (f failingFS) Open(name string, mode disk.Mode) (disk.File, error) {
	file, err := f.FS.Open(name, mode)
	if err == nil && strings.HasSuffix(name, ".seg") {
		file = failingFile{file}
	}
	return file, err
}

func (failingFile) Sync() error { return unix.EIO }

// An append that failed ends the command at once, not with the next line.
func TestAppendFailsWhileInputIsIdle(t *testing.T) {
	dir := t.TempDir()
	l, err := varve.OpenFS(t.Context(), failingFS{osfs.New(dir)}, dir, varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background()) //nolint:errcheck // it is poisoned
	in, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, "a\n")
	s := &streams{in: in, out: bufio.NewWriter(io.Discard), err: io.Discard}
	done := make(chan error, 1)
	go func() { done <- (&appendCommand{settings: settings{MaxBatchBytes: 1 << 20}}).lines(t.Context(), s, l) }()
	select {
	case err := <-done:
		if !errors.Is(err, varve.ErrUnknown) && !errors.Is(err, varve.ErrPoisoned) && !errors.Is(err, varve.ErrWriteFailed) {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting for a line")
	}
}

// A long line that arrives in small pieces is looked at once, not once a piece.
func TestLongLineInPieces(t *testing.T) {
	const size, piece = 32 << 20, 512
	r := newLineReader(&pieces{left: size, piece: piece}, size)
	began := time.Now()
	for {
		lines, err := r.next(t.Context())
		if len(lines) > 0 {
			if len(lines[0]) != size {
				t.Fatal(len(lines[0]))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Fatalf("%v for a line of %d bytes in pieces of %d", d, size, piece)
	}
}

type pieces struct{ left, piece int }

func (p *pieces) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := min(p.piece, p.left, len(b))
	for i := range b[:n] {
		b[i] = 'x'
	}
	p.left -= n
	return n, nil
}

// Nothing can follow on a log that recovery refuses: that is said, with exit code 3, and not waited for.
func TestFollowOfADamagedEnd(t *testing.T) {
	dir := damagedTail(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out, errOut strings.Builder
	code := run(ctx, []string{"log", "read", "--dir", dir, "--follow"}, strings.NewReader(""), &out, &errOut)
	plain := varveRun(t, "", "log", "read", "--dir", dir)
	if code != exitDamaged || ctx.Err() != nil || out.String() != plain.out || errOut.String() != plain.err {
		t.Fatalf("exit %d, %s, want what a plain read says: %+v", code, errOut.String(), plain)
	}
}

func TestLoadThatNeedsTooMuchMemory(t *testing.T) {
	if err := validateLoad(1, 1_000_000, 60_000, 1, 16<<20); err == nil || !strings.Contains(err.Error(), "4 GiB") {
		t.Error(err)
	}
	if err := validateLoad(1, 1<<20, 64, 16, 16<<20); err != nil {
		t.Error(err)
	}
}
