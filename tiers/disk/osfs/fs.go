package osfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"varve/tiers/disk"
)

// FS is one log directory. Its methods may be called from several goroutines.
type FS struct{ dir string }

// New returns the file system of a log directory, which need not exist.
func New(dir string) *FS { return &FS{dir: filepath.Clean(dir)} }

// path returns where a name is, or why it is no name of a log.
func (f *FS) path(op, name string) (string, error) {
	plain := strings.TrimPrefix(name, disk.DirQuarantine+"/")
	if plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\x00") {
		return "", fail(op, name, errName)
	}
	return f.dir + "/" + name, nil
}

// dirPath returns where a directory of the seam is.
func (f *FS) dirPath(op, dir string) (string, error) {
	switch dir {
	case disk.DirLog:
		return f.dir, nil
	case disk.DirParent:
		return parent(f.dir), nil
	case disk.DirQuarantine:
		return f.dir + "/" + dir, nil
	}
	return "", fail(op, dir, errDir)
}

// parent returns the directory that holds the entry of dir.
func parent(dir string) string {
	if base := filepath.Base(dir); base == "." || base == ".." {
		return filepath.Join(dir, "..")
	}
	return filepath.Dir(dir)
}

// Open implements disk.FS. Directories, symbolic links and devices are refused.
func (f *FS) Open(name string, mode disk.Mode) (disk.File, error) {
	path, err := f.path("open", name)
	if err != nil {
		return nil, err
	}
	flags := unix.O_RDONLY
	switch mode {
	case disk.Write:
		flags = unix.O_RDWR
	case disk.Create:
		flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
	}
	fd, err := openFile(path, flags)
	if err != nil {
		return nil, fail("open", path, err)
	}
	return newFile(fd, path, mode != disk.Read), nil
}

// openFile opens a regular file. It never waits, not even for the other end of a pipe.
func openFile(path string, flags int) (int, error) {
	fd, err := open(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			return fd, nil
		case unix.S_IFDIR:
			err = errIsDir
		default:
			err = errIrregular
		}
	}
	_ = unix.Close(fd) // nothing was written through it
	return -1, err
}

func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Remove implements disk.FS.
func (f *FS) Remove(name string) error {
	path, err := f.path("remove", name)
	if err != nil {
		return err
	}
	return fail("remove", path, again(func() error { return unix.Unlink(path) }))
}

// Rename implements disk.FS. Only regular files are renamed.
func (f *FS) Rename(from, to string) error {
	a, err := f.path("rename", from)
	if err != nil {
		return err
	}
	b, err := f.path("rename", to)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := again(func() error { return unix.Lstat(a, &st) }); err != nil {
		return fail("rename", a, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return fail("rename", a, errIsDir)
	default:
		return fail("rename", a, errIrregular)
	}
	return fail("rename", b, again(func() error { return unix.Rename(a, b) }))
}

// List implements disk.FS. A file that vanishes meanwhile is left out.
func (f *FS) List(dst []disk.Entry) ([]disk.Entry, error) {
	d, err := os.Open(f.dir)
	if err != nil {
		return dst, fail("list", f.dir, cause(err))
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	entries, err := d.ReadDir(-1)
	if err != nil {
		return dst, fail("list", f.dir, cause(err))
	}
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return dst, fail("list", f.dir+"/"+e.Name(), cause(err))
		}
		dst = append(dst, disk.Entry{Name: e.Name(), Bytes: info.Size(), Dir: info.IsDir()})
	}
	return dst, nil
}

// cause takes the system call's error out of package os's wrapping.
func cause(err error) error {
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return err
}

// Mkdir implements disk.FS.
func (f *FS) Mkdir(dir string) error {
	switch dir {
	case disk.DirLog:
		return mkdirAll(f.dir)
	case disk.DirQuarantine:
		return mkdir(f.dir + "/" + dir)
	}
	return fail("mkdir", dir, errDir)
}

// mkdirAll makes a directory and its missing parents, topmost first.
func mkdirAll(dir string) error {
	err := mkdir(dir)
	if errors.Is(err, disk.ErrNotExist) && parent(dir) != dir {
		if err := mkdirAll(parent(dir)); err != nil {
			return err
		}
		err = mkdir(dir)
	}
	return err
}

// mkdir makes one directory, unless it exists.
func mkdir(path string) error {
	err := again(func() error { return unix.Mkdir(path, 0o755) })
	if err == unix.EEXIST {
		var st unix.Stat_t
		err = again(func() error { return unix.Stat(path, &st) })
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = errNotDir
		}
	}
	return fail("mkdir", path, err)
}

// SyncDir implements disk.FS.
func (f *FS) SyncDir(dir string) error {
	if dir == disk.DirParent {
		return eachAncestor(f.dir, syncDir)
	}
	path, err := f.dirPath("sync", dir)
	if err != nil {
		return err
	}
	return syncDir(path)
}

// eachAncestor calls do for every directory above dir, nearest first, up to the root of the file
// system that it lies in. Which of them this process made says nothing: an earlier life may have
// made the others and died before it synced anything. Where we may not write, nothing is of our
// making, and it does not matter if do fails.
func eachAncestor(dir string, do func(dir string) error) error {
	var below, st unix.Stat_t
	err := again(func() error { return unix.Stat(dir, &below) })
	known := err == nil
	for {
		dir = parent(dir)
		if err := again(func() error { return unix.Stat(dir, &st) }); err != nil {
			return fail("sync", dir, err)
		}
		if known && (st.Dev != below.Dev || st.Ino == below.Ino) { // mounted here, or the root
			return nil
		}
		if err := do(dir); err != nil && writable(dir) {
			return err
		}
		below, known = st, true
	}
}

// writable reports whether entries may be made in a directory, or it is unknown.
func writable(dir string) bool {
	switch unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) {
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return false
	}
	return true
}

func syncDir(path string) error {
	fd, err := open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fail("sync", path, err)
	}
	err = again(func() error { return unix.Fsync(fd) })
	if closed := unix.Close(fd); err == nil {
		err = closed
	}
	return fail("sync", path, err)
}

// Free implements disk.FS. Before the log directory exists it answers for the nearest parent.
func (f *FS) Free() (int64, error) {
	var st unix.Statfs_t
	for dir := f.dir; ; dir = parent(dir) {
		err := again(func() error { return unix.Statfs(dir, &st) })
		if err == unix.ENOENT && parent(dir) != dir {
			continue
		}
		if err != nil {
			return 0, fail("statfs", dir, err)
		}
		unit := uint64(st.Frsize)
		if unit == 0 {
			unit = uint64(st.Bsize)
		}
		if unit == 0 || st.Bavail > (1<<63-1)/unit {
			return 1<<63 - 1, nil
		}
		return int64(st.Bavail * unit), nil
	}
}

// Lock implements disk.FS with flock, which ends with the process, and works between two opens of
// one process as well.
func (f *FS) Lock(name string) (io.Closer, error) {
	path, err := f.path("lock", name)
	if err != nil {
		return nil, err
	}
	fd, err := openFile(path, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, fail("lock", path, err)
	}
	err = again(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil && !sameFile(fd, path) {
		// Its owner removed it between our open and our lock, and another may have made it anew.
		err = unix.EWOULDBLOCK
	}
	if err != nil {
		if err == unix.EWOULDBLOCK {
			if owner := lockOwner(fd); owner != "" {
				err = &disk.LockedError{Owner: owner}
			}
		}
		_ = unix.Close(fd) // nothing was written through it
		return nil, fail("lock", path, err)
	}
	return newFile(fd, path, false), nil
}

// sameFile reports whether a path still leads to an open file.
func sameFile(fd int, path string) bool {
	var open, named unix.Stat_t
	err := again(func() error { return unix.Fstat(fd, &open) })
	if err == nil {
		err = again(func() error { return unix.Stat(path, &named) })
	}
	return err == nil && open.Dev == named.Dev && open.Ino == named.Ino
}

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
