package osfs

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"varve/tiers/disk"
)

var (
	errClosed     = errors.New("file is closed")
	errName       = errors.New("bad file name: want a plain name or quarantine/<name>")
	errDir        = errors.New("no such directory in a log")
	errIsDir      = errors.New("is a directory, want a regular file")
	errNotDir     = errors.New("is not a directory")
	errIrregular  = errors.New("is not a regular file")
	errSymlink    = errors.New("is a symbolic link, want a regular file")
	errRange      = errors.New("negative position or size")
	errNoProgress = errors.New("the kernel wrote nothing and gave no reason")
	errReadHandle = errors.New("file is open for reading only")
)

// Error is a failed call. It matches, with errors.Is, both the cause (a syscall.Errno as a rule)
// and the sentinel of package disk that the cause stands for.
type Error struct {
	Op   string // the call that failed
	Path string
	Kind error // disk.ErrNotExist, disk.ErrNoSpace, ...; nil for any other I/O error
	Err  error // the cause
}

func (e *Error) Error() string { return e.Op + " " + e.Path + ": " + e.Err.Error() }

// Unwrap returns cause and kind.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Kind}
}

// fail wraps the cause of a failed call; nil stays nil.
func fail(op, path string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Path: path, Err: err, Kind: kind(err)}
	switch err {
	case unix.ELOOP:
		e.Err = errSymlink
	case unix.EISDIR:
		e.Err = errIsDir
	}
	return e
}

// kind returns the sentinel that a cause stands for.
func kind(err error) error {
	if err == errReadHandle {
		return disk.ErrReadOnly
	}
	errno, ok := err.(syscall.Errno)
	if !ok {
		return nil
	}
	switch errno {
	case unix.ENOENT:
		return disk.ErrNotExist
	case unix.EEXIST:
		return disk.ErrExist
	case unix.EWOULDBLOCK:
		return disk.ErrLocked
	case unix.ENOSPC, unix.EDQUOT:
		return disk.ErrNoSpace
	case unix.EROFS, unix.EACCES, unix.EPERM:
		return disk.ErrReadOnly
	}
	return nil
}
