package varve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/tiertest"
)

// rottingFS is a disk on which what holds the word "rotten" rots as soon as it is written.
type rottingFS struct{ disk.FS }

type rottingFile struct{ disk.File }

func (d rottingFS) Open(name string, mode disk.Mode) (disk.File, error) {
	f, err := d.FS.Open(name, mode)
	return rottingFile{f}, err
}

func (f rottingFile) WriteAt(bufs [][]byte, pos int64) (int, error) {
	n, err := f.File.WriteAt(bufs, pos)
	all := bytes.Join(bufs, nil)
	if i := bytes.Index(all, []byte("rotten")); i >= 0 && err == nil {
		_, err = f.File.WriteAt([][]byte{[]byte("R")}, pos+int64(i))
	}
	return n, err
}

// TestDamageUnderAMirror: a batch that rots before it is mirrored does not stop the log. What lies before it
// is mirrored; whoever waited for it has an unknown outcome; the message names file and position; a reader
// has the same error; what comes after it is acked.
func TestDamageUnderAMirror(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	log := &lines{}
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := OpenFS(ctx, rottingFS{osfs.New(dir)}, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 1)
	var pending []Pending
	for _, v := range []string{"good", "good", "rotten"} { // in one commit, or not
		p, err := l.AppendAsync(Record{Value: []byte(v)})
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
	}
	if _, err := pending[2].Wait(ctx); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	appendValues(t, l, 4, 20)
	if s := l.Stats(); s.Committed != 20 || s.WarmFrom != 4 || s.WarmEnd != 20 || s.WarmError != nil || s.WarmStalled {
		t.Fatalf("%+v", s)
	}
	readAll(t, l, 4, 20)
	var damage *CorruptError
	for _, err := range l.Records(ctx, Position{Offset: 3}) {
		if !errors.As(err, &damage) {
			t.Fatal(err)
		}
	}
	want := "records [3, 4) cannot be read and will not be in the warm tier: core: damage in " + damage.Place()
	if damage.Offset != 3 || !strings.Contains(log.String(), want) {
		t.Fatalf("%v; %q is not in\n%s", damage, want, log)
	}
	closeLog(t, l)
}
