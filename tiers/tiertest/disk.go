// Package tiertest holds contract suites: every implementation of a seam runs the same one, the
// real ones and the simulated ones, so that what holds in simulation holds outside.
package tiertest

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"testing"

	"varve/tiers/disk"
)

// TestFS checks the contract of disk.FS, faults apart. newFS returns the file system of a log
// directory that does not exist yet, whose parent does; each call another one.
func TestFS(t *testing.T, newFS func(t *testing.T) disk.FS) {
	tests := []struct {
		name string
		run  func(t *testing.T, fs disk.FS)
	}{
		{"MissingDirectory", testMissing},
		{"Mkdir", testMkdir},
		{"OpenModes", testModes},
		{"BadNames", testNames},
		{"ReadWrite", testReadWrite},
		{"Gather", testGather},
		{"Zeros", testZeros},
		{"Truncate", testTruncate},
		{"BadRanges", testRanges},
		{"RemoveRename", testRemoveRename},
		{"RemoveOpen", testRemoveOpen},
		{"Quarantine", testQuarantine},
		{"List", testList},
		{"Lock", testLock},
		{"Closed", testClosed},
		{"Free", testFree},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, newFS(t)) })
	}
}

// ready makes the log directory.
func ready(t *testing.T, fs disk.FS) {
	t.Helper()
	no(t, fs.Mkdir(disk.DirLog))
	no(t, fs.SyncDir(disk.DirParent))
}

func no(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want one that is %v", err, target)
	}
}

// some wants an error that stands for no state that callers branch on.
func some(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, e := range []error{disk.ErrNotExist, disk.ErrExist, disk.ErrLocked, disk.ErrNoSpace, disk.ErrReadOnly} {
		if errors.Is(err, e) {
			t.Fatalf("error %v must not be %v", err, e)
		}
	}
}

func open(t *testing.T, fs disk.FS, name string, mode disk.Mode) disk.File {
	t.Helper()
	f, err := fs.Open(name, mode)
	no(t, err)
	t.Cleanup(func() { _ = f.Close() }) // most tests close it themselves
	return f
}

func put(t *testing.T, fs disk.FS, name, content string) {
	t.Helper()
	f := open(t, fs, name, disk.Create)
	n, err := f.WriteAt([][]byte{[]byte(content)}, 0)
	no(t, err)
	if n != len(content) {
		t.Fatalf("wrote %d of %d bytes", n, len(content))
	}
	no(t, f.Sync())
	no(t, f.Close())
}

func content(t *testing.T, f disk.File) []byte {
	t.Helper()
	size, err := f.Size()
	no(t, err)
	p := make([]byte, size)
	n, err := f.ReadAt(p, 0)
	if n != len(p) || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("read %d of %d bytes: %v", n, len(p), err)
	}
	return p
}

func has(t *testing.T, fs disk.FS, name, text string) {
	t.Helper()
	f := open(t, fs, name, disk.Read)
	if got := content(t, f); string(got) != text {
		t.Fatalf("%s holds %q, want %q", name, got, text)
	}
	no(t, f.Close())
}

func testMissing(t *testing.T, fs disk.FS) {
	for _, mode := range []disk.Mode{disk.Read, disk.Write, disk.Create} {
		_, err := fs.Open("a", mode)
		want(t, err, disk.ErrNotExist)
	}
	_, err := fs.List(nil)
	want(t, err, disk.ErrNotExist)
	want(t, fs.SyncDir(disk.DirLog), disk.ErrNotExist)
	want(t, fs.SyncDir(disk.DirQuarantine), disk.ErrNotExist)
	want(t, fs.Mkdir(disk.DirQuarantine), disk.ErrNotExist)
	want(t, fs.Remove("a"), disk.ErrNotExist)
	want(t, fs.Rename("a", "b"), disk.ErrNotExist)
	_, err = fs.Lock("lock")
	want(t, err, disk.ErrNotExist)
	no(t, fs.SyncDir(disk.DirParent))
}

func testMkdir(t *testing.T, fs disk.FS) {
	no(t, fs.Mkdir(disk.DirLog))
	no(t, fs.Mkdir(disk.DirLog))
	no(t, fs.SyncDir(disk.DirLog))
	no(t, fs.SyncDir(disk.DirParent))
	no(t, fs.SyncDir(disk.DirParent))
	want(t, fs.SyncDir(disk.DirQuarantine), disk.ErrNotExist)
	no(t, fs.Mkdir(disk.DirQuarantine))
	no(t, fs.Mkdir(disk.DirQuarantine))
	no(t, fs.SyncDir(disk.DirQuarantine))
	some(t, fs.Mkdir("other"))
	some(t, fs.Mkdir(disk.DirParent))
	some(t, fs.SyncDir("other"))
}

func testModes(t *testing.T, fs disk.FS) {
	ready(t, fs)
	_, err := fs.Open("a", disk.Read)
	want(t, err, disk.ErrNotExist)
	_, err = fs.Open("a", disk.Write)
	want(t, err, disk.ErrNotExist)
	put(t, fs, "a", "text")
	_, err = fs.Open("a", disk.Create)
	want(t, err, disk.ErrExist)
	has(t, fs, "a", "text")

	r := open(t, fs, "a", disk.Read)
	_, err = r.WriteAt([][]byte{[]byte("x")}, 0)
	want(t, err, disk.ErrReadOnly)
	want(t, r.WriteZeros(0, 1), disk.ErrReadOnly)
	want(t, r.Truncate(0), disk.ErrReadOnly)
	w := open(t, fs, "a", disk.Write)
	_, err = w.WriteAt([][]byte{[]byte("T")}, 0)
	no(t, err)
	if got := content(t, r); string(got) != "Text" {
		t.Fatalf("a reader sees %q after a write by another handle", got)
	}
}

func testNames(t *testing.T, fs disk.FS) {
	ready(t, fs)
	no(t, fs.Mkdir(disk.DirQuarantine))
	for _, name := range []string{"", ".", "..", "../a", "a/b", "quarantine/", "quarantine/..", "quarantine/a/b", "/a", "a\x00b"} {
		_, err := fs.Open(name, disk.Create)
		some(t, err)
		some(t, fs.Remove(name))
		some(t, fs.Rename(name, "x"))
		some(t, fs.Rename("x", name+"/y"))
		_, err = fs.Lock(name)
		some(t, err)
	}
	_, err := fs.Open(disk.DirQuarantine, disk.Read)
	some(t, err)
	_, err = fs.Open(disk.DirQuarantine, disk.Write)
	some(t, err)
	_, err = fs.Open(disk.DirQuarantine, disk.Create)
	want(t, err, disk.ErrExist)
	some(t, fs.Remove(disk.DirQuarantine))
	some(t, fs.Rename(disk.DirQuarantine, "x"))
	put(t, fs, "a", "text")
	some(t, fs.Rename("a", disk.DirQuarantine))
	_, err = fs.Lock(disk.DirQuarantine)
	some(t, err)
	has(t, fs, "a", "text")
}

func testReadWrite(t *testing.T, fs disk.FS) {
	ready(t, fs)
	f := open(t, fs, "a", disk.Create)
	if n, err := f.ReadAt(make([]byte, 1), 0); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("empty file: read %d, %v", n, err)
	}
	_, err := f.WriteAt([][]byte{[]byte("world")}, 600)
	no(t, err)
	_, err = f.WriteAt([][]byte{[]byte("hello")}, 0)
	no(t, err)
	expect := make([]byte, 605)
	copy(expect, "hello")
	copy(expect[600:], "world")
	if got := content(t, f); !bytes.Equal(got, expect) {
		t.Fatalf("content %q", got)
	}
	p := make([]byte, 10)
	n, err := f.ReadAt(p, 600)
	if n != 5 || !errors.Is(err, io.EOF) || string(p[:5]) != "world" {
		t.Fatalf("read across the end: %d, %v, %q", n, err, p[:n])
	}
	n, err = f.ReadAt(p[:5], 600)
	if n != 5 || err != nil {
		t.Fatalf("read up to the end: %d, %v", n, err)
	}
	n, err = f.ReadAt(p, 605)
	if n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("read at the end: %d, %v", n, err)
	}
	n, err = f.ReadAt(nil, 0)
	if n != 0 || err != nil {
		t.Fatalf("empty read: %d, %v", n, err)
	}
	no(t, f.Sync())
	no(t, f.Sync())
}

func testGather(t *testing.T, fs disk.FS) {
	ready(t, fs)
	f := open(t, fs, "a", disk.Create)
	var whole []byte
	pos := int64(3)
	for _, shape := range [][]int{{}, {0}, {1}, {0, 0}, {3, 0, 5}, {100, 4000, 1}, many(3000, 7), many(2500, 200), {300 << 10, 0, 1, 300 << 10}} {
		var bufs [][]byte
		total := 0
		for i, n := range shape {
			b := bytes.Repeat([]byte{byte(i + n + 1)}, n)
			bufs = append(bufs, b)
			whole = append(whole, b...)
			total += n
		}
		n, err := f.WriteAt(bufs, pos)
		no(t, err)
		if n != total {
			t.Fatalf("%d buffers: wrote %d of %d bytes", len(shape), n, total)
		}
		pos += int64(n)
	}
	if got := content(t, f); !bytes.Equal(got[3:], whole) || !bytes.Equal(got[:3], []byte{0, 0, 0}) {
		t.Fatal("content differs from what was written")
	}
}

func many(n, size int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = size
	}
	return s
}

func testZeros(t *testing.T, fs disk.FS) {
	ready(t, fs)
	put(t, fs, "a", "abcdefgh")
	f := open(t, fs, "a", disk.Write)
	no(t, f.WriteZeros(2, 3))
	no(t, f.WriteZeros(0, 0))
	if got := content(t, f); string(got) != "ab\x00\x00\x00fgh" {
		t.Fatalf("content %q", got)
	}
	no(t, f.WriteZeros(6, 700<<10))
	expect := make([]byte, 6+(700<<10))
	copy(expect, "ab\x00\x00\x00f")
	if got := content(t, f); !bytes.Equal(got, expect) {
		t.Fatalf("%d bytes, not %d with zeros behind", len(got), 6+(700<<10))
	}
	no(t, f.Sync())
}

func testTruncate(t *testing.T, fs disk.FS) {
	ready(t, fs)
	put(t, fs, "a", "abcdefgh")
	f := open(t, fs, "a", disk.Write)
	no(t, f.Truncate(3))
	_, err := f.WriteAt([][]byte{[]byte("Z")}, 5)
	no(t, err)
	if got := content(t, f); string(got) != "abc\x00\x00Z" {
		t.Fatalf("content %q: bytes that were cut came back", got)
	}
	no(t, f.Truncate(2000))
	if got := content(t, f); len(got) != 2000 || !bytes.Equal(got[6:], make([]byte, 1994)) {
		t.Fatalf("%d bytes after growing", len(got))
	}
	no(t, f.Truncate(0))
	no(t, f.Truncate(0))
	if got := content(t, f); len(got) != 0 {
		t.Fatalf("%d bytes after cutting all", len(got))
	}
	no(t, f.Sync())
}

func testRanges(t *testing.T, fs disk.FS) {
	ready(t, fs)
	put(t, fs, "a", "abc")
	f := open(t, fs, "a", disk.Write)
	_, err := f.ReadAt(make([]byte, 1), -1)
	some(t, err)
	if errors.Is(err, io.EOF) {
		t.Fatal("a negative position is not the end of the file")
	}
	_, err = f.WriteAt([][]byte{{1}}, -1)
	some(t, err)
	some(t, f.WriteZeros(-1, 5))
	some(t, f.WriteZeros(0, -1))
	some(t, f.Truncate(-1))
	has(t, fs, "a", "abc")
}

func testRemoveRename(t *testing.T, fs disk.FS) {
	ready(t, fs)
	put(t, fs, "a", "one")
	put(t, fs, "b", "two")
	no(t, fs.Rename("a", "b"))
	no(t, fs.SyncDir(disk.DirLog))
	has(t, fs, "b", "one")
	want(t, fs.Remove("a"), disk.ErrNotExist)
	want(t, fs.Rename("a", "c"), disk.ErrNotExist)
	want(t, fs.Rename("b", "quarantine/b"), disk.ErrNotExist)
	no(t, fs.Rename("b", "b"))
	has(t, fs, "b", "one")
	no(t, fs.Remove("b"))
	want(t, fs.Remove("b"), disk.ErrNotExist)
	put(t, fs, "b", "three")
	has(t, fs, "b", "three")
}

// testRemoveOpen: a file that is open lives on without its name.
func testRemoveOpen(t *testing.T, fs disk.FS) {
	ready(t, fs)
	put(t, fs, "a", "one")
	f := open(t, fs, "a", disk.Write)
	no(t, fs.Remove("a"))
	put(t, fs, "a", "other")
	_, err := f.WriteAt([][]byte{[]byte("O")}, 0)
	no(t, err)
	no(t, f.Sync())
	if got := content(t, f); string(got) != "One" {
		t.Fatalf("the removed file holds %q", got)
	}
	no(t, f.Close())
	has(t, fs, "a", "other")
}

func testQuarantine(t *testing.T, fs disk.FS) {
	ready(t, fs)
	no(t, fs.Mkdir(disk.DirQuarantine))
	put(t, fs, "a", "one")
	put(t, fs, "quarantine/a", "old")
	no(t, fs.Rename("a", "quarantine/b"))
	no(t, fs.SyncDir(disk.DirLog))
	no(t, fs.SyncDir(disk.DirQuarantine))
	has(t, fs, "quarantine/b", "one")
	has(t, fs, "quarantine/a", "old")
	_, err := fs.Open("a", disk.Read)
	want(t, err, disk.ErrNotExist)
	no(t, fs.Rename("quarantine/b", "a"))
	has(t, fs, "a", "one")
	no(t, fs.Remove("quarantine/a"))
	want(t, fs.Remove("quarantine/a"), disk.ErrNotExist)
}

func testList(t *testing.T, fs disk.FS) {
	ready(t, fs)
	no(t, fs.Mkdir(disk.DirQuarantine))
	put(t, fs, "a", "one")
	put(t, fs, "b", "")
	put(t, fs, "quarantine/c", "hidden")
	l, err := fs.Lock("lock")
	no(t, err)
	no(t, l.Close())
	list, err := fs.List([]disk.Entry{{Name: "kept"}})
	no(t, err)
	if list[0].Name != "kept" {
		t.Fatal("List overwrote what dst held")
	}
	list = list[1:]
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	expect := []disk.Entry{{Name: "a", Bytes: 3}, {Name: "b"}, {Name: "lock"}, {Name: disk.DirQuarantine, Dir: true}}
	if len(list) != len(expect) {
		t.Fatalf("entries %v, want %v", list, expect)
	}
	for i := range list {
		if list[i].Dir {
			list[i].Bytes = 0 // the size of a directory means nothing
		}
		if list[i] != expect[i] {
			t.Fatalf("entry %v, want %v", list[i], expect[i])
		}
	}
}

func testLock(t *testing.T, fs disk.FS) {
	ready(t, fs)
	l, err := fs.Lock("lock")
	no(t, err)
	_, err = fs.Lock("lock")
	want(t, err, disk.ErrLocked)
	other, err := fs.Lock("lock2")
	no(t, err)
	no(t, other.Close())
	no(t, l.Close())
	l, err = fs.Lock("lock")
	no(t, err)
	no(t, l.Close())
}

func testClosed(t *testing.T, fs disk.FS) {
	ready(t, fs)
	f := open(t, fs, "a", disk.Create)
	no(t, f.Close())
	some(t, f.Close())
	_, err := f.ReadAt(make([]byte, 1), 0)
	some(t, err)
	if errors.Is(err, io.EOF) {
		t.Fatal("a closed file is not at its end")
	}
	_, err = f.WriteAt([][]byte{{1}}, 0)
	some(t, err)
	some(t, f.WriteZeros(0, 1))
	some(t, f.Truncate(0))
	some(t, f.Sync())
	_, err = f.Size()
	some(t, err)
}

func testFree(t *testing.T, fs disk.FS) {
	free, err := fs.Free()
	no(t, err)
	if free <= 0 {
		t.Fatalf("free %d bytes before the directory exists", free)
	}
	ready(t, fs)
	free, err = fs.Free()
	no(t, err)
	if free <= 0 {
		t.Fatalf("free %d bytes", free)
	}
}
