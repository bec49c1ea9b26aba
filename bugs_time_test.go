package varve_test

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// countingFS counts the bytes that are read.
type countingFS struct {
	disk.FS
	read atomic.Int64
}

type countingFile struct {
	disk.File
	fs *countingFS
}

func (c *countingFS) Open(name string, mode disk.Mode) (disk.File, error) {
	f, err := c.FS.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return countingFile{f, c}, nil
}

func (f countingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.fs.read.Add(int64(n))
	return n, err
}

var dawn = time.Unix(1_000_000, 0)

// TestTS4TimesInsideABatch: one batch with the times 5, 9, 7. A look-up finds the very record, while the
// segment is active, sealed, and after its index was lost and derived again.
func TestTS4TimesInsideABatch(t *testing.T) {
	dir := t.TempDir()
	at := func(s int) time.Time { return dawn.Add(time.Duration(s) * time.Second) }
	l := open(t, dir, varve.Options{})
	for range 3 { // 0-2, 3-5, 6-8: the same times again
		if _, err := l.Append(t.Context(), varve.Record{Time: at(5)}, varve.Record{Time: at(9)}, varve.Record{Time: at(7)}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string) {
		t.Helper()
		for s, want := range map[int]int64{0: 0, 5: 0, 6: 1, 7: 1, 8: 1, 9: 1, 10: 9} {
			if p, err := l.OffsetAt(t.Context(), at(s)); err != nil || p.Offset != want {
				t.Errorf("%s: time %d is at %v, %v; want %d", what, s, p, err, want)
			}
		}
	}
	check("active")
	if err := l.Roll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("sealed")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, varve.Options{})
	check("reopened")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(names(t, dir)) { // cut the footer off
		if strings.HasSuffix(name, ".seg") {
			st, err := os.Stat(filepath.Join(dir, name))
			if err == nil {
				err = os.Truncate(filepath.Join(dir, name), st.Size()-1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	l = open(t, dir, varve.Options{})
	check("index derived again")
}

// TestTS5TimesBelowStart: a trim leaves Start inside a segment, whose file still holds what was let go.
// A look-up by a time from before Start gives the first record that can be read.
func TestTS5TimesBelowStart(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{})
	for i := range 50 {
		if _, err := l.Append(t.Context(), varve.Record{Value: value(int64(i)), Time: dawn.Add(time.Duration(i) * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Trim(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	for _, sealed := range []bool{false, true} {
		if sealed {
			if err := l.Roll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for s, want := range map[int]int64{-5: 30, 0: 30, 17: 30, 29: 30, 30: 30, 31: 31, 49: 49, 50: 50} {
			if p, err := l.OffsetAt(t.Context(), dawn.Add(time.Duration(s)*time.Second)); err != nil || p.Offset != want {
				t.Errorf("sealed %v: second %d is at %v, %v; want %d", sealed, s, p, err, want)
			}
		}
	}
	if n := readAll(t, l, 30); n != 20 {
		t.Errorf("%d records", n)
	}
}

// TestTS8LookUpsByTimeReadLittle: a time behind the last record, in a log of many sealed segments and a
// large active one: nothing is read. Any other look-up reads one segment, and there an index block
// and about what one entry of the index covers.
func TestTS8LookUpsByTimeReadLittle(t *testing.T) {
	dir := t.TempDir()
	fs := &countingFS{FS: osfs.New(dir)}
	l, err := varve.OpenFS(t.Context(), fs, "log", varve.Options{Fsync: varve.None, SegmentBytes: 64 << 10, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	const total = 4000 // 4 MB in 64 segments
	payload := make([]byte, 1000)
	at := func(i int64) time.Time { return dawn.Add(time.Duration(i) * time.Second) }
	for i := range int64(total) {
		if _, err := l.Append(t.Context(), varve.Record{Value: payload, Time: at(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(50) { // a new active segment, nearly full
		if i == 0 {
			if err := l.Roll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Append(t.Context(), varve.Record{Value: payload, Time: at(total + i)}); err != nil {
			t.Fatal(err)
		}
	}
	if s := l.Stats(); s.SealedSegments < 50 {
		t.Fatalf("%d sealed segments", s.SealedSegments)
	}
	look := func(when time.Time, want, atMost int64) {
		t.Helper()
		before := fs.read.Load()
		p, err := l.OffsetAt(t.Context(), when)
		if err != nil || p.Offset != want {
			t.Fatalf("%v is at %v, %v; want %d", when, p, err, want)
		}
		if n := fs.read.Load() - before; n > atMost {
			t.Errorf("the look-up of record %d reads %d bytes, want at most %d", want, n, atMost)
		}
	}
	look(at(total+3600), total+50, 0)
	look(time.Unix(math.MaxInt64/1_000_000_000, 0), total+50, 0)
	for _, i := range []int64{0, 1, 1000, 2500, total - 3, total + 1, total + 25, total + 49} {
		look(at(i), i, 24<<10)
	}
}

// TestCF2DefaultIsSynced: with no configuration at all an ack comes after a sync of what was written, for
// each commit. Weaker modes have names that say so.
func TestCF2DefaultIsSynced(t *testing.T) {
	fs := hooked(t.TempDir())
	l, err := varve.OpenFS(t.Context(), fs, "log", varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	for i := range int64(20) {
		writes, syncs := fs.writes.Load(), fs.syncs.Load()
		mustAppend(t, l, i)
		if fs.writes.Load() == writes || fs.syncs.Load() == syncs {
			t.Fatalf("append %d was acked after %d writes and %d syncs", i, fs.writes.Load()-writes, fs.syncs.Load()-syncs)
		}
		if s := l.Stats(); s.Frontier != i+1 {
			t.Fatalf("append %d was acked, proven is %d", i, s.Frontier)
		}
	}
	for mode, name := range map[varve.FsyncMode]string{varve.FsyncMode(0): "on_commit", varve.Periodic: "periodic", varve.None: "none"} {
		if mode.String() != name {
			t.Errorf("mode %d is called %q", mode, mode)
		}
	}
}

// TestCF5ValuesThatDoNotFitEachOther: each value is good, the combination is not. What cannot work is
// refused by name; retention that cannot do what it says, because segments are larger or grow older
// than it keeps, is warned of when the log opens, and deletes no more than it was asked to.
func TestCF5ValuesThatDoNotFitEachOther(t *testing.T) {
	var out strings.Builder
	logger := slog.New(slog.NewTextHandler(&out, nil))
	for _, tt := range []struct {
		name   string
		o      varve.Options
		refuse bool
		want   []string
	}{
		{"a batch larger than what may be pending", varve.Options{MaxBatchBytes: 1 << 20, PendingBytes: 1 << 19}, true, []string{"pending_bytes", "max_batch_bytes"}},
		{"segments as large as what is kept", varve.Options{SegmentBytes: 4096, RetentionBytes: 4096}, false, []string{"segment_bytes", "retention_bytes"}},
		{"segments larger than what is kept here", varve.Options{SegmentBytes: 8192, LocalRetentionBytes: 4096}, false, []string{"segment_bytes", "local_retention_bytes"}},
		{"segments that grow older than what is kept", varve.Options{RetentionAge: time.Hour}, false, []string{"segment_age", "retention_age"}},
		{"segments that never grow old", varve.Options{SegmentAge: varve.Unlimited, LocalRetentionAge: time.Hour}, false, []string{"segment_age", "local_retention_age"}},
		{"looks at retention that come too late", varve.Options{RetentionAge: time.Second, SegmentAge: time.Second}, false, []string{"retention_check_interval", "retention_age"}},
		{"all is well", varve.Options{RetentionBytes: 1 << 30, RetentionAge: 48 * time.Hour}, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out.Reset()
			tt.o.Logger, tt.o.MinFreeBytes = logger, -1
			l, err := varve.Open(t.Context(), t.TempDir()+"/log", tt.o)
			text := out.String()
			if tt.refuse {
				if err == nil {
					t.Fatal("it is accepted")
				}
				text = err.Error()
			} else if err != nil {
				t.Fatal(err)
			} else if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, w := range tt.want {
				if !strings.Contains(text, w) {
					t.Errorf("no %s in %q", w, text)
				}
			}
			if warned := strings.Contains(text, "level=WARN"); warned != (tt.want != nil && !tt.refuse) {
				t.Errorf("warned %v: %q", warned, text)
			}
		})
	}
}
