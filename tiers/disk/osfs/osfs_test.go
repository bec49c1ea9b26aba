package osfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"varve/tiers/disk"
	"varve/tiers/tiertest"
)

func TestContract(t *testing.T) {
	tiertest.TestFS(t, func(t *testing.T) disk.FS { return New(filepath.Join(t.TempDir(), "log")) })
}

// TestContractTmpfs runs the suite on another file system, where there is one.
func TestContractTmpfs(t *testing.T) {
	base, err := os.MkdirTemp("/dev/shm", "varve")
	if err != nil {
		tiertest.Lacks(t, "a writable tmpfs at /dev/shm", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	n := 0
	tiertest.TestFS(t, func(t *testing.T) disk.FS {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return New(filepath.Join(dir, "log"))
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logDir makes a log directory and returns its file system and path.
func logDir(t testing.TB) (*FS, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	f := New(dir)
	must(t, f.Mkdir(disk.DirLog))
	return f, dir
}

func mustOpen(t testing.TB, f *FS, name string, mode disk.Mode) disk.File {
	t.Helper()
	x, err := f.Open(name, mode)
	must(t, err)
	t.Cleanup(func() { _ = x.Close() }) // some tests close it themselves
	return x
}

// TestIrregular: what is no regular file is refused by kind, at once, and never changed.
func TestIrregular(t *testing.T) {
	f, dir := logDir(t)
	must(t, os.WriteFile(dir+"/target", []byte("text"), 0o600))
	must(t, os.Symlink("target", dir+"/link.seg"))
	must(t, os.Symlink("nowhere", dir+"/dangling.seg"))
	must(t, os.Mkdir(dir+"/dir.seg", 0o755))
	must(t, unix.Mkfifo(dir+"/pipe.seg", 0o600))
	for name, text := range map[string]string{
		"link.seg": "symbolic link", "dangling.seg": "symbolic link", "dir.seg": "directory", "pipe.seg": "not a regular file",
	} {
		for _, mode := range []disk.Mode{disk.Read, disk.Write} {
			_, err := f.Open(name, mode)
			if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), dir+"/"+name) {
				t.Errorf("open %s: %v, want one that names %q and the path", name, err, text)
			}
		}
		if _, err := f.Open(name, disk.Create); !errors.Is(err, disk.ErrExist) {
			t.Errorf("create %s: %v", name, err)
		}
		if err := f.Rename(name, "other"); err == nil {
			t.Errorf("renamed %s", name)
		}
		if _, err := f.Lock(name); err == nil {
			t.Errorf("locked %s", name)
		}
	}
	list, err := f.List(nil)
	must(t, err)
	if len(list) != 5 {
		t.Fatalf("entries %v", list)
	}
}

// TestLogPathIsAFile: a file where the log directory should be.
func TestLogPathIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(path, nil, 0o600))
	f := New(path)
	if err := f.Mkdir(disk.DirLog); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("mkdir: %v", err)
	}
	if _, err := f.List(nil); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("list: %v", err)
	}
	if _, err := f.Open("a", disk.Create); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("open: %v", err)
	}
}

// TestErrorsKeepTheCause: callers branch on the seam's errors, people read the system's.
func TestErrorsKeepTheCause(t *testing.T) {
	f, dir := logDir(t)
	_, err := f.Open("a.seg", disk.Read)
	var e *Error
	if !errors.Is(err, disk.ErrNotExist) || !errors.Is(err, unix.ENOENT) || !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &e) {
		t.Fatalf("%v", err)
	}
	if e.Path != dir+"/a.seg" || e.Op != "open" {
		t.Fatalf("%+v", e)
	}
	table := map[unix.Errno]error{
		unix.ENOENT: disk.ErrNotExist, unix.EEXIST: disk.ErrExist, unix.EAGAIN: disk.ErrLocked,
		unix.ENOSPC: disk.ErrNoSpace, unix.EDQUOT: disk.ErrNoSpace,
		unix.EROFS: disk.ErrReadOnly, unix.EACCES: disk.ErrReadOnly, unix.EPERM: disk.ErrReadOnly,
	}
	sentinels := []error{disk.ErrNotExist, disk.ErrExist, disk.ErrLocked, disk.ErrNoSpace, disk.ErrReadOnly}
	for _, errno := range []unix.Errno{
		unix.ENOENT, unix.EEXIST, unix.EAGAIN, unix.ENOSPC, unix.EDQUOT, unix.EROFS,
		unix.EACCES, unix.EPERM, unix.EIO, unix.EBADF, unix.EINVAL, unix.EFBIG, unix.ENOTDIR,
	} {
		err := fail("write", "x", errno)
		for _, s := range sentinels {
			if errors.Is(err, s) != (table[errno] == s) {
				t.Errorf("%v and %v: %v", errno, s, errors.Is(err, s))
			}
		}
		if !errors.Is(err, errno) {
			t.Errorf("%v lost its cause", errno)
		}
	}
}

// TestSyncParents: whoever made the directories above a log, they are synced, up to the root of the
// file system; a failure counts where an entry of ours may be.
func TestSyncParents(t *testing.T) {
	base := tiertest.Tmpfs(t, 0, "size=64k")
	must(t, New(base+"/a/b/log").Mkdir(disk.DirLog))
	synced := func(dir string) string {
		var dirs []string
		must(t, eachAncestor(dir, func(dir string) error { dirs = append(dirs, dir); return syncDir(dir) }))
		return strings.Join(dirs, " ")
	}
	all := base + "/a/b " + base + "/a " + base
	if got := synced(base + "/a/b/log"); got != all {
		t.Fatalf("synced %s, want %s", got, all)
	}
	if got := synced(base + "/a/b/absent"); got != all {
		t.Fatalf("synced %s, want %s", got, all)
	}
	if got := synced(base); got != "" {
		t.Fatalf("above a mount point: synced %s", got)
	}
	if got := synced("/"); got != "" {
		t.Fatalf("above the root: synced %s", got)
	}
	t.Chdir(base + "/a/b/log")
	if got := synced("."); got != ".. ../.. ../../.." {
		t.Fatalf("above the working directory: synced %s", got)
	}
	broken := func(string) error { return unix.EIO }
	if err := eachAncestor(base+"/a/b/log", broken); err != unix.EIO {
		t.Fatalf("a failed sync: %v", err)
	}
	must(t, unix.Mount("", base, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := eachAncestor(base+"/a/b/log", broken); err != nil {
		t.Fatalf("a failed sync where nothing can be ours: %v", err)
	}
	if err := New(base + "/x/log").SyncDir(disk.DirParent); !errors.Is(err, disk.ErrNotExist) {
		t.Fatalf("synced a directory that is not there: %v", err)
	}
}

// TestRelative: a relative path works, also one that ends above itself.
func TestRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"log", "./x/../y/log", "."} {
		f := New(dir)
		must(t, f.Mkdir(disk.DirLog))
		must(t, f.SyncDir(disk.DirParent))
		x, err := f.Open("a", disk.Create)
		must(t, err)
		must(t, x.Close())
		if _, err := f.Free(); err != nil {
			t.Fatal(err)
		}
	}
	if parent("..") != "../.." || parent(".") != ".." || parent("/") != "/" || parent("a/b") != "a" || parent("a") != "." {
		t.Fatal("parent of a path")
	}
}

// TestFullDisk: real ENOSPC on a small tmpfs. What fits is written, and reported.
func TestFullDisk(t *testing.T) {
	dir := tiertest.Tmpfs(t, 0, "size=64k")
	f := New(dir)
	free, err := f.Free()
	must(t, err)
	if free <= 0 || free > 64<<10 {
		t.Fatalf("%d bytes free of 64 KiB", free)
	}
	x, err := f.Open("a", disk.Create)
	must(t, err)
	defer func() { must(t, x.Close()) }()
	n, err := x.WriteAt([][]byte{make([]byte, 40<<10), bytes.Repeat([]byte{1}, 40<<10)}, 0)
	if !errors.Is(err, disk.ErrNoSpace) || !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	size, err := x.Size()
	must(t, err)
	if size != int64(n) || n != 64<<10 {
		t.Fatalf("%d bytes reported, %d there", n, size)
	}
	must(t, x.Truncate(0))
	if err := x.WriteZeros(0, 100<<10); !errors.Is(err, disk.ErrNoSpace) {
		t.Fatalf("zeros: %v", err)
	}
	big := make([][]byte, 3)
	for i := range big {
		big[i] = make([]byte, 200<<10)
	}
	must(t, x.Truncate(0))
	n, err = x.WriteAt(big, 0)
	size, serr := x.Size()
	must(t, serr)
	if !errors.Is(err, disk.ErrNoSpace) || size != int64(n) {
		t.Fatalf("large gathered write: %d bytes reported, %d there, %v", n, size, err)
	}
}

// TestReadOnlyMount: a real EROFS.
func TestReadOnlyMount(t *testing.T) {
	dir := tiertest.Tmpfs(t, unix.MS_RDONLY, "size=64k")
	f := New(dir)
	_, err := f.Open("a", disk.Create)
	_, lerr := f.Lock("lock")
	for _, err := range []error{err, lerr, New(dir + "/log").Mkdir(disk.DirLog)} {
		if !errors.Is(err, disk.ErrReadOnly) {
			t.Errorf("%v", err)
		}
	}
}

// TestLockOtherProcess: the lock excludes another process and ends with it, however it ends.
func TestLockOtherProcess(t *testing.T) {
	if dir := os.Getenv("VARVE_LOCK_DIR"); dir != "" {
		holdLock(dir)
		return
	}
	f, dir := logDir(t)
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, "-test.run=^TestLockOtherProcess$")
	cmd.Env = append(os.Environ(), "VARVE_LOCK_DIR="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ready := make([]byte, 6)
	if _, err := io.ReadFull(out, ready); err != nil || string(ready) != "locked" {
		t.Fatalf("the other process said %q, %v", ready, err)
	}
	if _, err := f.Lock("lock"); !errors.Is(err, disk.ErrLocked) {
		t.Fatalf("lock held elsewhere: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	l, err := f.Lock("lock")
	must(t, err)
	must(t, l.Close())
}

func holdLock(dir string) {
	_, err := New(dir).Lock("lock")
	if err == nil {
		_, err = os.Stdout.WriteString("locked")
	}
	if err != nil {
		panic(err)
	}
	select {} // until killed
}

// TestCloseWhileBusy: calls that run while another goroutine closes the file work or say closed;
// none ever meets another file behind a reused descriptor.
func TestCloseWhileBusy(t *testing.T) {
	f, _ := logDir(t)
	w := mustOpen(t, f, "a", disk.Create)
	_, err := w.WriteAt([][]byte{bytes.Repeat([]byte{1}, 4096)}, 0)
	must(t, err)
	other := mustOpen(t, f, "b", disk.Create)
	_, err = other.WriteAt([][]byte{bytes.Repeat([]byte{2}, 4096)}, 0)
	must(t, err)
	for range 200 {
		x, err := f.Open("a", disk.Read)
		must(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				p := make([]byte, 4096)
				for {
					if n, err := x.ReadAt(p, 0); err != nil {
						if !errors.Is(err, errClosed) {
							t.Error(n, err)
						}
						return
					}
					if p[0] != 1 {
						t.Error("read another file")
						return
					}
				}
			})
		}
		wg.Go(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
			y, err := f.Open("b", disk.Read)
			if err == nil {
				err = y.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		must(t, noDescriptorLeft(x))
	}
}

// noDescriptorLeft reports an error if the file still holds its descriptor.
func noDescriptorLeft(x disk.File) error {
	if n := x.(*File).refs.Load(); n != 0 {
		return fmt.Errorf("%d references left", n)
	}
	return nil
}

// TestAllocations: the calls of a commit allocate nothing.
func TestAllocations(t *testing.T) {
	f, _ := logDir(t)
	x := mustOpen(t, f, "a", disk.Create)
	one := [][]byte{make([]byte, 512)}
	few := [][]byte{make([]byte, 112), make([]byte, 400), make([]byte, 512)}
	p := make([]byte, 512)
	n := testing.AllocsPerRun(50, func() {
		_, err := x.WriteAt(one, 0)
		must(t, err)
		_, err = x.WriteAt(few, 512)
		must(t, err)
		must(t, x.WriteZeros(4096, 4096))
		_, err = x.ReadAt(p, 0)
		must(t, err)
		_, err = x.Size()
		must(t, err)
		must(t, x.Sync())
	})
	if n > 0 {
		t.Fatalf("%v allocations a round of six calls", n)
	}
}

// BenchmarkWriteSync compares a commit's two calls with the bare system calls, on written blocks.
func BenchmarkWriteSync(b *testing.B) {
	f, dir := logDir(b)
	x := mustOpen(b, f, "a", disk.Create)
	must(b, x.WriteZeros(0, 1<<20))
	must(b, x.Sync())
	bufs := [][]byte{make([]byte, 112), make([]byte, 4096-112)}
	whole := make([]byte, 4096)
	b.Run("osfs", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := x.WriteAt(bufs, int64(i%256)*4096); err != nil {
				b.Fatal(err)
			}
			if err := x.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		fd, err := unix.Open(dir+"/a", unix.O_RDWR|unix.O_CLOEXEC, 0)
		must(b, err)
		defer unix.Close(fd) //nolint:errcheck // a benchmark
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := unix.Pwrite(fd, whole, int64(i%256)*4096); err != nil {
				b.Fatal(err)
			}
			if err := unix.Fdatasync(fd); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWrite is the write alone, in the shapes that a commit has.
func BenchmarkWrite(b *testing.B) {
	f, _ := logDir(b)
	x := mustOpen(b, f, "a", disk.Create)
	for _, shape := range []struct{ buffers, bytes int }{{1, 512}, {2, 256}, {128, 128}, {1024, 240}, {8, 32 << 10}, {8, 64 << 10}, {2000, 256}} {
		bufs := make([][]byte, shape.buffers)
		for i := range bufs {
			bufs[i] = make([]byte, shape.bytes)
		}
		b.Run(fmt.Sprintf("%dx%d", shape.buffers, shape.bytes), func(b *testing.B) {
			b.SetBytes(int64(shape.buffers * shape.bytes))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.WriteAt(bufs, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
