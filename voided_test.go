package varve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVoidedRecordsAreNamed: a directory that comes back after the log went on without it holds records that are
// void. The open that finds them says which file they are in.
func TestVoidedRecordsAreNamed(t *testing.T) {
	dir, bucket, said := filepath.Join(t.TempDir(), "log"), t.TempDir(), new(lines)
	o := Options{Create: true}
	l := coldLog(t, dir, bucket, o)
	appendValues(t, l, 0, 100)
	if err := l.Export(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 100, 110) // on the disk alone
	closeLog(t, l)
	if err := os.Rename(dir, dir+".lost"); err != nil {
		t.Fatal(err)
	}
	l = coldLog(t, dir, bucket, o)
	if l.Committed() != 100 {
		t.Fatalf("%+v", l.Stats())
	}
	appendValues(t, l, 100, 105)
	closeLog(t, l)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".lost", dir); err != nil {
		t.Fatal(err)
	}
	o.Logger = slog.New(slog.NewTextHandler(said, nil))
	l = coldLog(t, dir, bucket, o)
	defer closeLog(t, l)
	if text := said.String(); !strings.Contains(text, "without the records of these files") || !strings.Contains(text, "from=100 files=[00000000000000000100-") {
		t.Fatalf("%+v: %s", l.Stats(), text)
	}
	readAll(t, l, 0, 100)
}
