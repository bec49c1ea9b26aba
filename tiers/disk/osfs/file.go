package osfs

import (
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A gathered write is copied together, gatherBytes for each pwrite, unless its buffers have
// vectorBytes or more in the mean: from there on pwritev is faster.
const (
	gatherBytes = 256 << 10
	vectorBytes = 4 << 10
)

// iovMax is how many buffers one pwritev takes.
const iovMax = 1024

var (
	gather = sync.Pool{New: func() any { b := make([]byte, 0, gatherBytes); return &b }}
	zeros  [256 << 10]byte
)

// File is an open file. The descriptor is closed when Close was called and the last running call
// has returned, so that no call ever meets a descriptor that is somebody else's by now.
type File struct {
	fd     int
	path   string
	write  bool
	closed atomic.Bool
	refs   atomic.Int32 // running calls, and 1 until Close
}

func newFile(fd int, path string, write bool) *File {
	f := &File{fd: fd, path: path, write: write}
	f.refs.Store(1)
	return f
}

// acquire keeps the descriptor open until release.
func (f *File) acquire() bool {
	for !f.closed.Load() {
		n := f.refs.Load()
		if n == 0 {
			break
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (f *File) release() error {
	if f.refs.Add(-1) == 0 {
		return unix.Close(f.fd)
	}
	return nil
}

// Close implements disk.File.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return fail("close", f.path, errClosed)
	}
	return fail("close", f.path, f.release())
}

// done ends a call.
func (f *File) done(op string, err error) error {
	if closed := f.release(); err == nil && closed != nil {
		err = closed
	}
	return fail(op, f.path, err)
}

// ReadAt implements disk.File.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fail("read", f.path, errRange)
	}
	if !f.acquire() {
		return 0, fail("read", f.path, errClosed)
	}
	n := 0
	for n < len(p) {
		m, err := unix.Pread(f.fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, f.done("read", err)
		case m == 0:
			if err := f.done("read", nil); err != nil {
				return n, err
			}
			return n, io.EOF
		default:
			n += m
		}
	}
	return n, f.done("read", nil)
}

// begin starts a call that changes the file at a position.
func (f *File) begin(op string, pos int64) error {
	switch {
	case !f.write:
		return fail(op, f.path, errReadHandle)
	case pos < 0:
		return fail(op, f.path, errRange)
	case !f.acquire():
		return fail(op, f.path, errClosed)
	}
	return nil
}

// WriteAt implements disk.File.
func (f *File) WriteAt(bufs [][]byte, off int64) (int, error) {
	if err := f.begin("write", off); err != nil {
		return 0, err
	}
	n, err := f.writeAll(bufs, off)
	return n, f.done("write", err)
}

func (f *File) writeAll(bufs [][]byte, off int64) (int, error) {
	if len(bufs) == 1 {
		return f.pwrite(bufs[0], off)
	}
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	if len(bufs) > 0 && total/len(bufs) >= vectorBytes {
		return f.pwritev(bufs, off)
	}
	return f.gathered(bufs, off)
}

// gathered copies small buffers together and writes them in as few pieces as fit the copy.
func (f *File) gathered(bufs [][]byte, off int64) (int, error) {
	g := gather.Get().(*[]byte)
	defer gather.Put(g)
	n, piece := 0, (*g)[:0]
	for _, b := range bufs {
		for len(b) > 0 {
			take := min(len(b), cap(piece)-len(piece))
			piece, b = append(piece, b[:take]...), b[take:]
			if len(piece) < cap(piece) {
				continue
			}
			m, err := f.pwrite(piece, off+int64(n))
			n += m
			if err != nil {
				return n, err
			}
			piece = piece[:0]
		}
	}
	m, err := f.pwrite(piece, off+int64(n))
	return n + m, err
}

// pwrite writes all of p.
func (f *File) pwrite(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		m, err := unix.Pwrite(f.fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m == 0:
			return n, errNoProgress
		default:
			n += m
		}
	}
	return n, nil
}

// pwritev writes all buffers, in batches that the kernel takes. A batch that it takes in part is
// finished buffer by buffer.
func (f *File) pwritev(bufs [][]byte, off int64) (int, error) {
	total := 0
	for len(bufs) > 0 {
		batch := bufs[:min(len(bufs), iovMax)]
		m, err := unix.Pwritev(f.fd, batch, off+int64(total))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return total, err
		}
		total += m
		for m > 0 && len(batch) > 0 && m >= len(batch[0]) {
			m -= len(batch[0])
			batch, bufs = batch[1:], bufs[1:]
		}
		for len(batch) > 0 && len(batch[0]) == 0 {
			batch, bufs = batch[1:], bufs[1:]
		}
		if len(batch) == 0 {
			continue
		}
		n, err := f.pwrite(batch[0][m:], off+int64(total))
		total += n
		if err != nil {
			return total, err
		}
		bufs = bufs[1:]
	}
	return total, nil
}

// WriteZeros implements disk.File.
func (f *File) WriteZeros(off, n int64) error {
	if n < 0 {
		off = n
	}
	if err := f.begin("write zeros", off); err != nil {
		return err
	}
	for done := int64(0); done < n; {
		m, err := f.pwrite(zeros[:min(n-done, int64(len(zeros)))], off+done)
		if err != nil {
			return f.done("write zeros", err)
		}
		// A sync of the file meanwhile waits for what is being written back: that is one piece, not
		// all of them. A hint only: file systems that do not know it write back later, or at the
		// next sync.
		flags := unix.SYNC_FILE_RANGE_WRITE
		if done += int64(m); done < n {
			flags |= unix.SYNC_FILE_RANGE_WAIT_AFTER
		}
		_ = unix.SyncFileRange(f.fd, off+done-int64(m), int64(m), flags)
	}
	return f.done("write zeros", nil)
}

// Truncate implements disk.File.
func (f *File) Truncate(size int64) error {
	if err := f.begin("truncate", size); err != nil {
		return err
	}
	for {
		if err := unix.Ftruncate(f.fd, size); err != unix.EINTR {
			return f.done("truncate", err)
		}
	}
}

// Sync implements disk.File.
func (f *File) Sync() error {
	if !f.acquire() {
		return fail("sync", f.path, errClosed)
	}
	for {
		if err := unix.Fdatasync(f.fd); err != unix.EINTR {
			return f.done("sync", err)
		}
	}
}

// Size implements disk.File.
func (f *File) Size() (int64, error) {
	if !f.acquire() {
		return 0, fail("stat", f.path, errClosed)
	}
	var st unix.Stat_t
	for {
		if err := unix.Fstat(f.fd, &st); err != unix.EINTR {
			return st.Size, f.done("stat", err)
		}
	}
}
