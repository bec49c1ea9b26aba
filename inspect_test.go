package varve_test

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"varve"
	"varve/core/segment"

	"golang.org/x/sys/unix"
)

// TestSpareThatIsMissing: a look says so, also beside the writer; so does the writer if it cannot be made.
func TestSpareThatIsMissing(t *testing.T) {
	dir := t.TempDir()
	spared := func() bool {
		x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return x.Super.Spare
	}
	l := open(t, dir, varve.Options{})
	mustAppend(t, l, 0)
	if !spared() || l.Stats().NoSpare {
		t.Error("a new log has no spare")
	}
	if err := os.Remove(dir + "/spare"); err != nil {
		t.Fatal(err)
	}
	if spared() {
		t.Error("the spare is gone, and nobody says so")
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/spare", 0o755); err != nil { // which is in its place
		t.Fatal(err)
	}
	var said strings.Builder
	l = open(t, dir, varve.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if !l.Stats().NoSpare || !strings.Contains(said.String(), "spare of the superblock could not be made") || spared() {
		t.Errorf("no spare can be made, and nobody says so: %s", &said)
	}
	if err := errors.Join(l.Close(t.Context()), os.Remove(dir+"/spare"), os.WriteFile(dir+"/spare", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if spared() {
		t.Error("an empty one is taken for whole")
	}
	if l = open(t, dir, varve.Options{}); l.Stats().NoSpare || !spared() {
		t.Error("an open makes none")
	}
}

// Files that a writer takes away after the look are trimmed, not damaged; one that nobody trimmed is.
func TestInspectionOutlivesATrim(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{SegmentBytes: 2048})
	for i := range int64(60) {
		mustAppend(t, l, i)
	}
	if err := l.Roll(t.Context()); err != nil {
		t.Fatal(err)
	}
	looks := make([]*varve.Inspection, 2)
	for i := range looks {
		var err error
		if looks[i], err = varve.Inspect(t.Context(), dir, varve.InspectOptions{Deep: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Trim(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	first := looks[0].View.Extents[0]
	gone := dir + "/" + segment.Name(first.Base, first.Segment)
	for began := time.Now(); exists(gone); time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%s is still there", gone)
		}
	}
	var trimmed *varve.TrimmedError
	for _, err := range looks[0].Records(t.Context(), varve.Position{}) {
		if !errors.As(err, &trimmed) || trimmed.Start != 40 {
			t.Fatalf("a record, or %v", err)
		}
	}
	n := int64(40)
	for r, err := range looks[0].Records(t.Context(), varve.Position{Offset: 40}) {
		if err != nil || r.Offset != n {
			t.Fatalf("record %d: %d %v", n, r.Offset, err)
		}
		n++
	}
	if n != looks[0].End {
		t.Fatalf("read up to %d of %d", n, looks[0].End)
	}
	if p, err := looks[1].OffsetAt(t.Context(), time.Unix(0, 0)); err != nil || p.Offset != 40 {
		t.Fatalf("first offset by time: %v %v", p, err)
	}

	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := x.View.Extents[len(x.View.Extents)-1]
	if err := os.Remove(dir + "/" + segment.Name(last.Base, last.Segment)); err != nil {
		t.Fatal(err)
	}
	var damage *varve.CorruptError
	for _, err = range x.Records(t.Context(), varve.Position{Offset: last.First}) {
		if !errors.As(err, &damage) || damage.Offset != last.First {
			t.Fatalf("a file that is gone: a record, or %v", err)
		}
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// A pipe called lock has no writer behind it; looking at it must not wait for one.
func TestInspectBesideAPipe(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{})
	mustAppend(t, l, 0)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(dir+"/lock"), unix.Mkfifo(dir+"/lock", 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting")
	}
}
