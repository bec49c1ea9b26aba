package disk

import (
	"errors"
	"io"
)

// FS is one log directory as the hot store sees it: a flat name space plus the sub-directory
// quarantine/. Names are plain ("super.0") or one level deep ("quarantine/x"). An FS is used by
// one log at a time; its methods may be called from several goroutines.
//
// Durability contract, which the simulated disk enforces: nothing survives a power loss unless it
// was synced. File contents and sizes by File.Sync; names (create, rename, remove) by SyncDir of
// the directory that holds them. After any failed sync the state on the device is unknown.
type FS interface {
	// Open opens a file. A missing file is ErrNotExist; Create on an existing one is ErrExist.
	Open(name string, mode Mode) (File, error)
	// Remove unlinks a file; removing a missing file is ErrNotExist.
	Remove(name string) error
	// Rename replaces to with from, within this name space (also into quarantine/).
	Rename(from, to string) error
	// List appends every entry of the log directory (not of quarantine/) to dst, in any order.
	List(dst []Entry) ([]Entry, error)
	// Mkdir makes a directory if it is missing: DirLog (with missing parents) or DirQuarantine.
	Mkdir(dir string) error
	// SyncDir makes the names in a directory durable: DirLog, DirParent (the entry of the log
	// directory itself, and of every parent that Mkdir made, in this life or an earlier one) or
	// DirQuarantine.
	SyncDir(dir string) error
	// Free returns the bytes that an unprivileged writer may still allocate.
	Free() (int64, error)
	// Lock takes the exclusive advisory lock on a file (made if missing) until the closer is
	// closed or the process ends. A lock held elsewhere is ErrLocked, at once; as a *LockedError where
	// the system says by whom.
	Lock(name string) (io.Closer, error)
}

// File is an open file. All positions and sizes are bytes. Reads may run beside writes.
type File interface {
	// ReadAt reads len(p) bytes at off; fewer only with an error, io.EOF at the end of the file.
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt writes the buffers one after the other at off, as one write. It returns the bytes
	// written; fewer than the sum of the lengths only with an error.
	WriteAt(bufs [][]byte, off int64) (int, error)
	// WriteZeros writes n zero bytes at off and starts their write-back, of which it awaits no more
	// than keeps a Sync beside it short.
	WriteZeros(off, n int64) error
	// Truncate sets the size.
	Truncate(size int64) error
	// Sync makes contents and size durable (fdatasync). It may overlap WriteAt of the same file,
	// and then covers only what was written before it was called.
	Sync() error
	// Size returns the current size.
	Size() (int64, error)
	Close() error
}

// Mode says how Open opens a file.
type Mode uint8

// Open modes.
const (
	Read   Mode = iota // read only; the file must exist
	Write              // read and write; the file must exist
	Create             // read and write; the file must not exist and is made
)

// Directories of an FS, for Mkdir and SyncDir.
const (
	DirLog        = ""
	DirParent     = ".."
	DirQuarantine = "quarantine"
)

// Entry is one directory entry.
type Entry struct {
	Name  string
	Bytes int64
	Dir   bool
}

// Errors of the seam. Implementations return errors that match these with errors.Is; every other
// error is an I/O error.
var (
	ErrNotExist = errors.New("file does not exist")
	ErrExist    = errors.New("file exists already")
	ErrLocked   = errors.New("locked by another process")
	ErrNoSpace  = errors.New("no space left on device") // ENOSPC, EDQUOT
	ErrReadOnly = errors.New("read-only")               // EROFS, EACCES, EPERM
)

// LockedError is ErrLocked, with the process that holds the lock.
type LockedError struct{ Owner string }

func (e *LockedError) Error() string { return ErrLocked.Error() + ": " + e.Owner }

// Is makes it match ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }
