package dirbucket

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"varve/tiers"
	"varve/tiers/tiertest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, target error, texts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want one that is %v", err, target)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Fatalf("error %q does not say %q", err, text)
		}
	}
}

func put(t *testing.T, b *Bucket, key, body string) tiers.Object {
	t.Helper()
	o, err := b.Put(t.Context(), key, []byte(body), tiers.Condition{})
	must(t, err)
	return o
}

func TestTagIsNeverUsedTwice(t *testing.T) {
	b := newBucket(t)
	first := put(t, b, "k", "same")
	if again := put(t, b, "k", "same"); again.Tag == first.Tag {
		t.Fatalf("two objects with the tag %s", first.Tag)
	}
	_, err := b.Put(t.Context(), "k", nil, tiers.Condition{Tag: first.Tag})
	want(t, err, tiers.ErrPrecondition)
}

// TestEveryFlippedBit flips each bit of an object's file: nothing of it is served as whole.
func TestEveryFlippedBit(t *testing.T) {
	b := newBucket(t)
	put(t, b, "a/k", "some bytes")
	path := filepath.Join(b.dir, "a/k")
	file, err := os.ReadFile(path)
	must(t, err)
	p := make([]byte, 100)
	for bit := range len(file) * 8 {
		file[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(path, file, 0o600))
		if _, _, err := b.Get(t.Context(), "a/k", 0, p); !errors.Is(err, tiers.ErrCorrupt) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
		file[bit/8] ^= 1 << (bit % 8)
	}
	for n := range len(file) {
		must(t, os.WriteFile(path, file[:n], 0o600))
		_, _, err := b.Get(t.Context(), "a/k", 0, p)
		want(t, err, tiers.ErrCorrupt, "a/k", b.dir, "another tier")
		_, err = b.Head(t.Context(), "a/k")
		want(t, err, tiers.ErrCorrupt)
	}
	// It is listed, so that a scrub finds it, keeps its place, and can be replaced.
	list, err := b.List(t.Context(), "", "", 10)
	must(t, err)
	if len(list) != 1 || list[0].Key != "a/k" || list[0].Tag != "" {
		t.Fatalf("a damaged object is listed as %+v", list)
	}
	_, err = b.Put(t.Context(), "a/k", nil, tiers.Condition{Absent: true})
	want(t, err, tiers.ErrPrecondition)
	put(t, b, "a/k", "healed")
	// Moved by hand it is another object's bytes.
	must(t, os.Rename(path, filepath.Join(b.dir, "a/other")))
	_, err = b.Head(t.Context(), "a/other")
	want(t, err, tiers.ErrCorrupt, "another name")
}

func TestNewerVersion(t *testing.T) {
	b := newBucket(t)
	x := trailer{}.append(nil, "k")
	x[8] = 2
	x = append(x[:36], trailer{}.append(nil, "k")[36:]...)
	_, err := b.Head(t.Context(), "k")
	want(t, err, tiers.ErrNotFound)
	var y trailer
	if err := y.parse(x, "k", trailerBytes); !errors.Is(err, tiers.ErrCorrupt) {
		t.Fatalf("a version without its checksum: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(b.dir, formatFile), []byte("varve bucket 2\n"), 0o600))
	_, err = Open(b.dir, Options{})
	if err == nil || !strings.Contains(err.Error(), "varve bucket 2") {
		t.Fatalf("a newer bucket: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"absent", ""} {
		if _, err := Open(filepath.Join(dir, name), Options{}); err == nil || !strings.Contains(err.Error(), "mount") {
			t.Errorf("%q: %v", name, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	if _, err := Open(dir, Options{Create: true}); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("a directory with files: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "notes.txt"), Options{Create: true}); err == nil {
		t.Error("a file was taken for a bucket")
	}
	// A creation that died half-way is gone on with.
	half := filepath.Join(dir, "half")
	must(t, os.MkdirAll(filepath.Join(half, tmpDir), 0o700))
	must(t, os.WriteFile(filepath.Join(half, tmpDir, "format"), []byte("var"), 0o600))
	openAt(t, half)
	openAt(t, half) // and again
}

// TestNothingOutside plants links: no call reads, writes or removes behind them.
func TestNothingOutside(t *testing.T) {
	b := newBucket(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	must(t, os.WriteFile(secret, trailer{}.append(nil, "link"), 0o600))
	put(t, b, "real/k", "x")
	must(t, os.Symlink(outside, filepath.Join(b.dir, "folder")))
	must(t, os.Symlink(secret, filepath.Join(b.dir, "link")))
	must(t, os.Symlink("real/k", filepath.Join(b.dir, "inside")))
	must(t, os.Symlink("real", filepath.Join(b.dir, "near")))
	must(t, syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600))
	ctx := t.Context()
	for _, key := range []string{"folder/secret", "link", "inside", "near/k", "pipe"} {
		if _, _, err := b.Get(ctx, key, 0, make([]byte, 9)); err == nil {
			t.Errorf("get %s served something", key)
		}
		if _, err := b.Put(ctx, key, []byte("new"), tiers.Condition{}); err == nil {
			t.Errorf("put %s did something", key)
		}
		if err := b.Delete(ctx, key); err == nil && key != "pipe" {
			t.Errorf("delete %s did something", key)
		}
	}
	if _, err := b.Put(ctx, "folder/new", []byte("new"), tiers.Condition{}); err == nil {
		t.Error("put through a link did something")
	}
	list, err := b.List(ctx, "", "", 10)
	must(t, err)
	if len(list) != 1 || list[0].Key != "real/k" {
		t.Errorf("list %+v", list)
	}
	names, err := os.ReadDir(outside)
	must(t, err)
	if text, err := os.ReadFile(secret); len(names) != 1 || err != nil || len(text) != trailerBytes {
		t.Errorf("outside: %v, %d bytes, %v", names, len(text), err)
	}
	_, err = b.Put(ctx, ".varve/format", nil, tiers.Condition{})
	want(t, err, tiers.ErrInvalid, "own folder")
}

func TestObjectAndFolder(t *testing.T) {
	b := newBucket(t)
	put(t, b, "a", "x")
	_, err := b.Put(t.Context(), "a/b/c", nil, tiers.Condition{})
	want(t, err, tiers.ErrInvalid, "a is an object or a link")
	_, err = b.Head(t.Context(), "a/b/c")
	want(t, err, tiers.ErrNotFound)
	must(t, b.Delete(t.Context(), "a/b/c"))
	put(t, b, "f/k", "x")
	_, err = b.Put(t.Context(), "f", nil, tiers.Condition{})
	want(t, err, tiers.ErrInvalid, "folder")
	_, err = b.Head(t.Context(), "f")
	want(t, err, tiers.ErrNotFound)
}

// TestDirty leaves what a killed writer leaves; who comes next syncs and goes on.
func TestDirty(t *testing.T) {
	b := newBucket(t)
	put(t, b, "a/b/k", "x")
	dirty := filepath.Join(b.dir, dirtyFile)
	for _, text := range []string{"", ".", "a/b", "a/b/gone", "a/b/k/below", "../../etc", "\x00\xff"} {
		must(t, os.WriteFile(dirty, []byte(text), 0o600))
		_, err := b.Head(t.Context(), "a/b/k")
		must(t, err)
		if _, err := os.Lstat(dirty); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("dirty %q was left: %v", text, err)
		}
		must(t, os.WriteFile(dirty, []byte(text), 0o600))
		put(t, b, "a/b/k", "y")
		must(t, os.WriteFile(dirty, []byte(text), 0o600))
		other, err := Open(b.dir, Options{})
		must(t, err)
		must(t, other.Close())
	}
}

// TestSyncs says which folders each change syncs.
func TestSyncs(t *testing.T) {
	b := newBucket(t)
	ctx := t.Context()
	var synced []string
	b.sync = func(root *os.Root, dir string) error {
		synced = append(synced, dir)
		return syncDir(root, dir)
	}
	b.syncFile = func(f *os.File) error {
		synced = append(synced, "file")
		return f.Sync()
	}
	id, part := "", tiers.Part{}
	steps := []struct {
		name string
		do   func() error
		want string
	}{
		{"put in new folders", func() error { _, err := b.Put(ctx, "a/b/k", nil, tiers.Condition{}); return err }, "file a/b a ."},
		{"put beside it", func() error { _, err := b.Put(ctx, "a/b/l", nil, tiers.Condition{}); return err }, "file a/b"},
		{"put at the top", func() error { _, err := b.Put(ctx, "k", nil, tiers.Condition{}); return err }, "file ."},
		{"put refused", func() error {
			_, err := b.Put(ctx, "k", nil, tiers.Condition{Absent: true})
			if errors.Is(err, tiers.ErrPrecondition) {
				return nil
			}
			return err
		}, "file"},
		{"get", func() error { _, err := b.Head(ctx, "k"); return err }, ""},
		{"delete", func() error { return b.Delete(ctx, "a/b/l") }, "a/b"},
		{"delete the last of two folders", func() error { return b.Delete(ctx, "a/b/k") }, "a/b a ."},
		{"begin", func() (err error) { id, err = b.Begin(ctx, "u/k"); return err }, uploadsDir + "/ID " + uploadsDir},
		{"part", func() (err error) { part, err = b.PutPart(ctx, "u/k", id, 1, []byte("x")); return err }, "file " + uploadsDir + "/ID"},
		{"finish", func() error { _, err := b.Finish(ctx, "u/k", id, []tiers.Part{part}, tiers.Condition{}); return err }, "file u . " + uploadsDir},
		{"a put after a writer that was killed", func() error {
			must(t, os.WriteFile(filepath.Join(b.dir, dirtyFile), []byte("u"), 0o600))
			_, err := b.Put(ctx, "k", nil, tiers.Condition{})
			return err
		}, "file u . ."},
		{"a list after a writer that was killed", func() error {
			must(t, os.WriteFile(filepath.Join(b.dir, dirtyFile), []byte("u"), 0o600))
			_, err := b.List(ctx, "", "", 1)
			return err
		}, "u ."},
	}
	for _, s := range steps {
		synced = nil
		must(t, s.do())
		if got := strings.ReplaceAll(strings.Join(synced, " "), cmp.Or(id, "none"), "ID"); got != s.want {
			t.Errorf("%s syncs %q, want %q", s.name, got, s.want)
		}
	}
}

// TestFailedSync: the change may last or not, and nothing is answered before the bucket is opened
// again.
func TestFailedSync(t *testing.T) {
	b := newBucket(t)
	put(t, b, "k", "x")
	b.sync = func(*os.Root, string) error { return syscall.EACCES }
	_, err := b.Put(t.Context(), "k", nil, tiers.Condition{})
	if err == nil || errors.Is(err, tiers.ErrDenied) || !strings.Contains(err.Error(), "may or may not last") {
		t.Fatalf("a put whose sync failed: %v", err)
	}
	b.sync = syncDir
	for name, err := range map[string]error{
		"head":    second(b.Head(t.Context(), "k")),
		"put":     second(b.Put(t.Context(), "k", nil, tiers.Condition{})),
		"delete":  b.Delete(t.Context(), "k"),
		"list":    second(b.List(t.Context(), "", "", 1)),
		"uploads": second(b.Uploads(t.Context(), "")),
	} {
		if err == nil || !strings.Contains(err.Error(), "open the bucket again") {
			t.Errorf("%s after a sync that failed: %v", name, err)
		}
	}
	// What is there when it is opened again is synced first.
	if _, err := os.Lstat(filepath.Join(b.dir, dirtyFile)); err != nil {
		t.Fatalf("the failed change is forgotten: %v", err)
	}
	o, err := openAt(t, b.dir).Head(t.Context(), "k")
	if err != nil || o.Bytes != 0 {
		t.Fatalf("%+v, %v", o, err)
	}
}

// TestFailedFileSync: nothing appears, nothing is left, and the next put is as good as any.
func TestFailedFileSync(t *testing.T) {
	b := newBucket(t)
	put(t, b, "k", "x")
	b.syncFile = func(*os.File) error { return syscall.EIO }
	_, err := b.Put(t.Context(), "k", []byte("y"), tiers.Condition{})
	want(t, err, syscall.EIO, "sync")
	b.syncFile = (*os.File).Sync
	list, err := os.ReadDir(filepath.Join(b.dir, tmpDir))
	if o, err2 := b.Head(t.Context(), "k"); err != nil || err2 != nil || len(list) != 0 || o.CRC != put(t, b, "other", "x").CRC {
		t.Fatalf("%+v, %v, %v, left %v", o, err2, err, list)
	}
}

func second[T any](_ T, err error) error { return err }

// TestAbortedWhileFinishing aborts an upload between the copy of its parts and the moment at which the
// object would appear.
func TestAbortedWhileFinishing(t *testing.T) {
	b := newBucket(t)
	ctx := t.Context()
	id, err := b.Begin(ctx, "k")
	must(t, err)
	part, err := b.PutPart(ctx, "k", id, 1, []byte("body"))
	must(t, err)
	other := openAt(t, b.dir)
	must(t, other.lock.acquire(ctx))
	done := make(chan error)
	go func() { done <- second(b.Finish(ctx, "k", id, []tiers.Part{part}, tiers.Condition{})) }()
	for copied := false; !copied; time.Sleep(time.Millisecond) {
		list, err := os.ReadDir(filepath.Join(b.dir, tmpDir))
		must(t, err)
		for _, e := range list {
			info, err := e.Info()
			copied = copied || err == nil && info.Size() == int64(len("body"))+trailerBytes
		}
	}
	must(t, os.RemoveAll(filepath.Join(b.dir, uploadsDir, id)))
	other.lock.release()
	want(t, <-done, tiers.ErrNoUpload)
	_, err = b.Head(ctx, "k")
	want(t, err, tiers.ErrNotFound)
}

func TestLeftovers(t *testing.T) {
	b := newBucket(t)
	writing, err := b.newTmp("k")
	must(t, err)
	old, young := filepath.Join(b.dir, tmpDir, "old"), filepath.Join(b.dir, tmpDir, "young")
	must(t, os.WriteFile(old, []byte("old"), 0o600))
	must(t, os.WriteFile(young, []byte("young"), 0o600))
	folder := filepath.Join(b.dir, tmpDir, "folder")
	must(t, os.MkdirAll(filepath.Join(folder, "x"), 0o700))
	past := time.Now().Add(-2 * leftoverAge)
	for _, name := range []string{old, folder, filepath.Join(b.dir, writing.name)} {
		must(t, os.Chtimes(name, past, past))
	}
	list, err := b.Leftovers(t.Context())
	must(t, err)
	if len(list) != 3 || list[2].Path != tmpDir+"/young" || list[2].Bytes != 5 {
		t.Fatalf("leftovers %+v", list)
	}
	other := openAt(t, b.dir)
	list, err = other.Leftovers(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].Path != tmpDir+"/young" {
		t.Fatalf("leftovers after an open %+v", list)
	}
	if _, err := os.Lstat(filepath.Join(b.dir, writing.name)); err != nil {
		t.Fatalf("a file being written was removed: %v", err)
	}
	writing.remove()
}

func TestDiskFull(t *testing.T) {
	dir := tiertest.Tmpfs(t, 0, "size=1m")
	b, err := Open(filepath.Join(dir, "bucket"), Options{Create: true})
	must(t, err)
	defer func() { must(t, b.Close()) }()
	put(t, b, "k", "x")
	_, err = b.Put(t.Context(), "k", make([]byte, 2<<20), tiers.Condition{})
	want(t, err, syscall.ENOSPC, "make room", "k", b.dir)
	must(t, b.Delete(t.Context(), "k"))
	list, err := b.Leftovers(t.Context())
	must(t, err)
	if len(list) != 0 {
		t.Fatalf("a failed put left %+v", list)
	}
}

// TestHeldLock: a process that hangs with the lock does not hang those that have a deadline.
func TestHeldLock(t *testing.T) {
	b := newBucket(t)
	other := openAt(t, b.dir)
	must(t, other.lock.acquire(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Put(ctx, "k", nil, tiers.Condition{})
	want(t, err, context.DeadlineExceeded, lockFile)
	other.lock.release()
	put(t, b, "k", "x")
}

const childEnv = "VARVE_DIRBUCKET_CHILD"

// TestMain makes the test binary the other process of TestKilled.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		count(dir)
	}
	os.Exit(m.Run())
}

// count raises a counter in an object by compare-and-swap, for ever, and says each value that it set.
func count(dir string) {
	b, err := Open(dir, Options{})
	for ctx := context.Background(); err == nil; {
		var p [1000]byte
		var o tiers.Object
		var n int
		if n, o, err = b.Get(ctx, "n/counter", 0, p[:]); err != nil {
			break
		}
		was, _ := strconv.Atoi(strings.TrimSpace(string(p[:n])))
		// Through an upload at every third value: its steps are killed too.
		err = swap(ctx, b, fmt.Appendf(nil, "%999d", was+1), o.Tag, was%3 == 0)
		switch {
		case err == nil:
			fmt.Println(was + 1)
		case errors.Is(err, tiers.ErrPrecondition):
			err = nil
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

func swap(ctx context.Context, b *Bucket, body []byte, tag string, upload bool) error {
	cond := tiers.Condition{Tag: tag}
	if !upload {
		_, err := b.Put(ctx, "n/counter", body, cond)
		return err
	}
	id, err := b.Begin(ctx, "n/counter")
	if err != nil {
		return err
	}
	part, err := b.PutPart(ctx, "n/counter", id, 1, body)
	if err == nil {
		_, err = b.Finish(ctx, "n/counter", id, []tiers.Part{part}, cond)
	}
	if err != nil {
		return errors.Join(err, b.Abort(ctx, "n/counter", id))
	}
	return nil
}

// TestKilled lets three processes swap one object and kills them, again and again: no value is set
// twice, none is lost, and the object is always whole.
func TestKilled(t *testing.T) {
	b := newBucket(t)
	_, err := b.Put(t.Context(), "n/counter", fmt.Appendf(nil, "%999d", 0), tiers.Condition{Absent: true})
	must(t, err)
	said := map[int]bool{}
	for round := 0; round < 10 || len(said) < 30; round++ {
		if round == 200 {
			t.Fatalf("only %d values were set", len(said))
		}
		var children [3]*exec.Cmd
		var outs [3]bytes.Buffer
		for i := range children {
			children[i] = exec.Command(os.Args[0])
			children[i].Env = append(os.Environ(), childEnv+"="+b.dir)
			children[i].Stdout = &outs[i]
			must(t, children[i].Start())
		}
		time.Sleep(100 * time.Millisecond)
		for i := range children {
			must(t, children[i].Process.Kill())
			_ = children[i].Wait()
			for lines := bufio.NewScanner(&outs[i]); lines.Scan(); {
				n, err := strconv.Atoi(lines.Text())
				if err != nil {
					t.Fatalf("a child says %s", lines.Text())
				}
				if said[n] {
					t.Fatalf("two processes set the value %d", n)
				}
				said[n] = true
			}
		}
		var p [1000]byte
		n, _, err := b.Get(t.Context(), "n/counter", 0, p[:])
		must(t, err)
		now, err := strconv.Atoi(strings.TrimSpace(string(p[:n])))
		must(t, err)
		for v := range said {
			if v > now {
				t.Fatalf("the value %d was set, the object says %d", v, now)
			}
		}
	}
	t.Logf("%d values set", len(said))
	uploads, err := b.Uploads(t.Context(), "")
	must(t, err)
	for _, u := range uploads {
		must(t, b.Abort(t.Context(), u.Key, u.ID))
	}
	list, err := b.List(t.Context(), "", "", 10)
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("list %+v", list)
	}
}

// TestReadOnly: who only looks writes nothing, and may look where nothing can be written.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	b, err := Open(dir, Options{Create: true})
	must(t, err)
	_, err = b.Put(ctx, "a/b", []byte("text"), tiers.Condition{})
	must(t, err)
	id, err := b.Begin(ctx, "a/c")
	must(t, err)
	must(t, b.Close())
	must(t, os.Remove(filepath.Join(dir, lockFile)))
	must(t, os.WriteFile(filepath.Join(dir, dirtyFile), []byte("a"), fileMode))
	names := func() (all []string) {
		must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			all = append(all, path)
			return err
		}))
		return all
	}
	before := names()
	b, err = Open(dir, Options{ReadOnly: true})
	must(t, err)
	p := make([]byte, 10)
	if n, _, err := b.Get(ctx, "a/b", 0, p); err != nil || string(p[:n]) != "text" {
		t.Errorf("%q, %v", p[:n], err)
	}
	if all, err := b.List(ctx, "", "", 10); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := b.Uploads(ctx, ""); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	_, put := b.Put(ctx, "a/b", nil, tiers.Condition{})
	_, begin := b.Begin(ctx, "a/b")
	_, part := b.PutPart(ctx, "a/c", id, 1, []byte("x"))
	for name, err := range map[string]error{
		"put": put, "begin": begin, "put part": part, "delete": b.Delete(ctx, "a/b"), "abort": b.Abort(ctx, "a/c", id),
	} {
		if !errors.Is(err, tiers.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, b.Close())
	if after := names(); !slices.Equal(before, after) {
		t.Errorf("before %v\nafter %v", before, after)
	}
}
