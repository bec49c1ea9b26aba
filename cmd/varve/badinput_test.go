package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"varve"
	"varve/core/segment"
	"varve/tiers/dirbucket"
	"varve/tiers/tiertest"
)

// fails runs a command that must fail: with this exit code, one line that holds all of want, and
// nothing below root made, changed or lost.
func fails(t *testing.T, root string, code int, args []string, want ...string) result {
	t.Helper()
	before := content(t, root)
	r := varveRun(t, "x\n", args...)
	name := strings.Join(args, " ")
	if r.code != code || strings.Count(r.err, "\n") != 1 {
		t.Errorf("varve %s: exit %d, want %d, %q", name, r.code, code, r.err)
	}
	for _, w := range want {
		if !strings.Contains(r.err, w) {
			t.Errorf("varve %s: no %q in %q", name, w, r.err)
		}
	}
	if content(t, root) != before {
		t.Errorf("varve %s changed something", name)
	}
	return r
}

// content is a snapshot without the times of directories, in which a lock may have come and gone.
func content(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(snapshot(t, root)) {
		if f := strings.Fields(line); len(f) == 4 && strings.HasPrefix(f[2], "d") {
			line = f[0] + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

func logArgs(command, dir string, more ...string) []string {
	args := []string{"log", command, "--dir", dir}
	if command == "append" {
		args = append(args, "--min-free-bytes", "0")
	}
	return append(args, more...)
}

func TestForeignDirectory(t *testing.T) {
	root := t.TempDir()
	dir := root + "/foreign"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/notes.txt", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, root, exitFailed, logArgs("append", dir), dir, "holds no log", "notes.txt", "choose an empty directory")
	for _, command := range []string{"read", "check", "repair", "dump"} {
		fails(t, root, exitFailed, logArgs(command, dir), dir, "holds no log", "name the directory of a log")
		fails(t, root, exitFailed, logArgs(command, root+"/absent"), root+"/absent", "name the directory of a log")
		fails(t, root, exitFailed, logArgs(command, dir+"/notes.txt"), "notes.txt", "not a directory")
	}
	fails(t, root, exitFailed, logArgs("append", dir+"/notes.txt/a/log"), "notes.txt", "not a directory")
}

// newer turns the version of a header or superblock slot up and mends its checksum, whose position
// is given.
func newer(t *testing.T, name string, crcPos func(b []byte) int) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint16(b[8:], segment.FormatVersion+1)
	at := crcPos(b)
	binary.LittleEndian.PutUint32(b[at:], crc32.Checksum(b[:at], castagnoli))
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNewerFormat(t *testing.T) {
	dir := threeLives(t)
	newer(t, dir+"/super.1", func(b []byte) int { return int(binary.LittleEndian.Uint32(b[12:])) - 4 })
	for _, command := range []string{"append", "read", "check", "repair"} {
		fails(t, dir, exitFailed, logArgs(command, dir), "super.1", "version 2", "reads up to 1", "use a newer varve")
	}
	dir = threeLives(t)
	name := segments(t, dir)[1]
	newer(t, name, func([]byte) int { return segment.HeaderBytes - 4 })
	for _, command := range []string{"append", "read", "check", "repair"} {
		fails(t, dir, exitFailed, logArgs(command, dir), filepath.Base(name), "version 2", "reads up to 1", "use a newer varve")
	}
}

func TestDirectoryInUse(t *testing.T) {
	dir := threeLives(t)
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	fails(t, dir, exitFailed, logArgs("append", dir), dir, "in use", "log read and log check work beside it")
	fails(t, dir, exitFailed, logArgs("repair", dir), dir, "in use")
	fails(t, dir, exitFailed, logArgs("repair", dir, "--apply"), dir, "in use")
	mustRun(t, "", logArgs("check", dir, "--deep", "--generated")...)
	mustRun(t, "", logArgs("dump", dir)...)
	if n, code := records(t, dir); n != 90 || code != exitOK {
		t.Fatalf("read beside a writer: %d records, exit %d", n, code)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	root := tiertest.Tmpfs(t, 0, "size=8m")
	dir := root + "/log"
	mustRun(t, "", appendArgs(dir, "--count", "30", "--size", "60")...)
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	fails(t, root, exitFailed, logArgs("append", dir), dir, "read-only", "log read and log check only read")
	fails(t, root, exitFailed, logArgs("append", root+"/a/b"), root+"/a", "read-only")
	mustRun(t, "", logArgs("check", dir, "--deep", "--generated")...)
	mustRun(t, "", logArgs("repair", dir, "--apply")...) // nothing to repair
	if n, code := records(t, dir); n != 30 || code != exitOK {
		t.Fatalf("%d records, exit %d", n, code)
	}
	if err := unix.Mount("", root, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Remove(dir+"/super.0"), os.Remove(dir+"/super.1")
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	fails(t, root, exitFailed, logArgs("repair", dir, "--apply"), dir, "read-only")
}

func TestFullDisk(t *testing.T) {
	root := tiertest.Tmpfs(t, 0, "size=256k")
	dir := root + "/log"
	r := varveRun(t, "", appendArgs(dir, "--count", "10000", "--size", "1000", "--report-acks")...)
	acked := strings.Count(r.out, "\n")
	if r.code != exitFailed || acked == 0 || strings.Count(r.err, "\n") != 1 {
		t.Fatalf("%d acks, exit %d, %s", acked, r.code, r.err)
	}
	contains(t, r.err, dir, "no space left", "free some space, or let old records go: no retention is set (retention_bytes, retention_age)")
	if n, code := records(t, dir); n < acked || code != exitOK {
		t.Fatalf("%d records of %d acked, exit %d", n, acked, code)
	}
	mustRun(t, "", logArgs("check", dir, "--deep", "--generated")...)
	fill(t, root)
	for range 2 {
		r := varveRun(t, "x\n", appendArgs(dir)...)
		if r.code != exitFailed || strings.Count(r.err, "\n") != 1 {
			t.Fatalf("%+v", r)
		}
		contains(t, r.err, dir, "no space left", "free some space", "acked: 0 records")
	}
	r = varveRun(t, "x\n", appendArgs(dir, "--retention-age", "48h")...)
	contains(t, r.err, "no space left", "free some space, or let retention keep less")
	if strings.Contains(r.err, "no retention is set") {
		t.Error(r)
	}
	fails(t, root, exitFailed, logArgs("append", root+"/a/b"), root+"/a/b", "no space left", "free some space")
	if n, code := records(t, dir); n < acked || code != exitOK {
		t.Fatalf("%d records of %d acked, exit %d", n, acked, code)
	}
	if err := unix.Mount("", root, "", unix.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	contains(t, varveRun(t, "x\n", "log", "append", "--dir", dir).err, "no space left", "min_free_bytes (268435456)")
	mustRun(t, "", appendArgs(dir, "--count", "5", "--size", "60")...)
	mustRun(t, "", logArgs("check", dir, "--deep", "--generated")...)
	if n, _ := records(t, dir); n < acked+5 {
		t.Fatalf("%d records of %d acked", n, acked+5)
	}
}

// TestBucketDirectoryWithErrors: a bucket on a full or a read-only file system. What is said is said of the
// bucket, not of the directory of the log; records on disk can be read.
func TestBucketDirectoryWithErrors(t *testing.T) {
	defer func(d time.Duration) { tierWait = d }(tierWait)
	tierWait = time.Second
	root, mounted := t.TempDir(), tiertest.Tmpfs(t, 0, "size=256k")
	dir := root + "/orders"
	with := func(command string, more ...string) []string {
		return append(logArgs(command, dir, "--cold-url", "file://"+mounted+"/bucket", "--min-free-bytes", "0"), more...)
	}
	said := func(r result, want ...string) {
		t.Helper()
		contains(t, r.err, append(want, mounted+"/bucket")...)
		if r.code != exitFailed || strings.Contains(r.err, "free some space") || strings.Contains(r.err, "log read and log check only read") {
			t.Errorf("%+v", r)
		}
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", mounted, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, mounted)
	said(varveRun(t, "x\n", with("append", "--create")...), "no space left", "make room there")
	remount(unix.MS_RDONLY)
	said(varveRun(t, "x\n", with("append", "--create")...), "read-only", "let this process write there")
	remount(0)
	if err := os.Remove(mounted + "/filler"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "x\n", with("append", "--create")...)
	remount(unix.MS_RDONLY)
	said(varveRun(t, "x\n", with("append")...), "read-only", "let this process write there")
	if out := mustRun(t, "", logArgs("read", dir, "--cold-url", "file://"+mounted+"/bucket")...); out != "x\n" {
		t.Errorf("read %q", out)
	}
	remount(0)

	denied := &dirbucket.Error{Call: "open /bucket", Err: syscall.EACCES}
	s := &streams{}
	if got := s.advice(denied); got != "" || outage(denied) {
		t.Errorf("advice %q, outage %v", got, outage(denied))
	}
	if got := s.advice(syscall.EACCES); !strings.Contains(got, "only read") {
		t.Errorf("advice %q", got)
	}
}

// fill takes all the space that is left.
func fill(t *testing.T, root string) {
	t.Helper()
	f, err := os.Create(root + "/filler")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}

// TestDamagedFiles: files that are cut, zeroed, empty or gone. What is good before the damage is
// read, and the error names the place and the next step.
func TestDamagedFiles(t *testing.T) {
	write := func(change func(b []byte) []byte) func(t *testing.T, name string) {
		return func(t *testing.T, name string) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, change(b), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	zero := write(func(b []byte) []byte { return bytes.Repeat([]byte{0}, len(b)) })
	empty := write(func([]byte) []byte { return nil })
	half := write(func(b []byte) []byte { return b[:len(b)/2] })
	cut := write(func(b []byte) []byte { return b[:100] })
	gone := func(t *testing.T, name string) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name  string
		spoil func(t *testing.T, name string)
		file  int // of the three segments
		good  int // records before the damage
		want  []string
		lost  []string // what append says, if that is something else
	}{
		{"zero", zero, 1, 30, []string{"00000000000000000030-0000000200000001.seg", "offset 30", "expected", "found"}, nil},
		{"empty", empty, 1, 30, []string{"00000000000000000030-0000000200000001.seg", "offset 30", "expected", "found"}, nil},
		{"half", half, 1, 45, []string{"00000000000000000030-0000000200000001.seg at byte", "offset 4", "expected", "found"}, nil},
		{"gone", gone, 1, 30, []string{"offset 30", "expected", "found"}, nil},
		{
			"last zero", zero, 2, 60,
			[]string{"00000000000000000060-0000000300000001.seg", "offset 60", "expected", "found"},
			[]string{"00000000000000000060-0000000300000001.seg ends at byte", "[60, 90) are missing"},
		},
		{
			"last empty", empty, 2, 60,
			[]string{"offset 60", "expected", "found"},
			[]string{"00000000000000000060-0000000300000001.seg ends at byte 0", "[60, 90) are missing"},
		},
		{
			"last half", half, 2, 75,
			[]string{"00000000000000000060-0000000300000001.seg at byte", "offset 7", "expected", "found"},
			[]string{"00000000000000000060-0000000300000001.seg ends at byte", "90) are missing"},
		},
		{"last gone", gone, 2, 60, []string{"offset 60", "expected", "found"}, []string{"[60, 90) are missing", "evidence reaches 90"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := threeLives(t)
			tt.spoil(t, segments(t, dir)[tt.file])
			if tt.lost == nil {
				tt.lost = tt.want
			}
			fails(t, dir, exitDamaged, logArgs("append", dir), append(tt.lost, "run: varve log check")...)
			fails(t, dir, exitDamaged, logArgs("check", dir), append(tt.want, "varve log repair")...)
			r := fails(t, dir, exitDamaged, logArgs("read", dir), append(tt.want, "run: varve log check")...)
			if n := strings.Count(r.out, "\n"); n < tt.good-1 || n > tt.good {
				t.Errorf("%d records before the damage, want %d", n, tt.good)
			}
			mustRun(t, "", logArgs("dump", dir)...)
		})
	}
	for _, spoil := range []func(*testing.T, string){zero, empty, cut, gone} {
		dir := threeLives(t)
		spoil(t, dir+"/super.0")
		mustRun(t, "", logArgs("check", dir, "--deep", "--generated")...) // one slot is enough
		spoil(t, dir+"/super.1")
		fails(t, dir, exitDamaged, logArgs("append", dir), "super", "run: varve log repair")
		fails(t, dir, exitDamaged, logArgs("check", dir), "super", "run: varve log repair")
		fails(t, dir, exitDamaged, logArgs("read", dir), "super", "run: varve log repair")
		mustRun(t, "", logArgs("repair", dir, "--apply")...)
		if n, code := records(t, dir); n != 90 || code != exitOK {
			t.Errorf("after a repair: %d records, exit %d", n, code)
		}
	}
}

func TestFlagsOutOfRange(t *testing.T) {
	root := t.TempDir()
	for _, tt := range []struct {
		args string
		want string
	}{
		{"--retention-bytes 0", "above 0, or -1 for unlimited"},
		{"--retention-bytes=-2", "above 0, or -1 for unlimited"},
		{"--retention-age 0", "above 0, such as 24h, or -1 for unlimited"},
		{"--local-retention-age=-5s", "above 0, such as 24h, or -1 for unlimited"},
		{"--segment-age 0", "above 0, such as 24h, or -1 for unlimited"},
		{"--segment-bytes 1000", "segment_bytes"},
		{"--segment-bytes 9999TiB", "segment_bytes"},
		{"--segment-bytes 99999999TiB", "no number of bytes"},
		{"--max-batch-bytes 2GiB --pending-bytes 4GiB", "max_batch_bytes"},
		{"--max-batch-bytes 0", "max_batch_bytes"},
		{"--pending-bytes 5", "pending_bytes"},
		{"--index-spacing-bytes 0", "index_spacing_bytes"},
		{"--fsync-interval-ms 0", "fsync_interval_ms"},
		{"--fsync always", "on_commit, periodic, none"},
		{"--retention-check-interval 0s", "retention_check_interval"},
		{"--count 3 --size 17000000", "max_batch_bytes"},
	} {
		fails(t, root, exitUsage, logArgs("append", root+"/log", strings.Fields(tt.args)...), tt.want)
	}
	for _, unlimited := range []string{"--retention-bytes=-1", "--retention-age=-1", "--segment-age=-1", "--fsync=none"} {
		dir := t.TempDir() + "/log"
		mustRun(t, "x\n", appendArgs(dir, unlimited)...)
	}
}

func TestReadBehindTheEnd(t *testing.T) {
	dir := threeLives(t)
	fails(t, dir, exitFailed, logArgs("read", dir, "--from", "91"), "offset 91", "90")
	if n, code := records(t, dir, "--from", "90"); n != 0 || code != exitOK {
		t.Fatalf("at the end: %d records, exit %d", n, code)
	}
	fails(t, dir, exitUsage, logArgs("dump", dir, "--segment", "nonsense"), "nonsense", "name of a segment")
	fails(t, dir, exitFailed, logArgs("dump", dir, "--segment", "00000000000000000077-0000000200000001.seg"), "00000000000000000077")
}
