package passthrough

import (
	"varve/faultfs"
	"varve/tiers/disk"
)

// file wraps an open file.
type file struct {
	fs    *FS
	inner disk.File
	name  string
}

// ReadAt implements disk.File.
func (h *file) ReadAt(p []byte, off int64) (n int, err error) {
	v := h.fs.enter(faultfs.OpRead, h.name, false)
	switch {
	case v.end:
		return 0, h.fs.ended()
	case v.err != nil:
		return 0, v.err
	}
	n, err = h.inner.ReadAt(p, off)
	h.fs.mu.Lock()
	h.fs.counts.ReadBytes += uint64(n)
	h.fs.mu.Unlock()
	return n, err
}

// WriteAt implements disk.File.
func (h *file) WriteAt(bufs [][]byte, off int64) (int, error) {
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	n, err := h.write(faultfs.OpWrite, int64(total), func(n int64) (int64, error) {
		m, err := h.inner.WriteAt(prefix(bufs, n), off)
		return int64(m), err
	})
	h.fs.mu.Lock()
	h.fs.counts.WriteBytes += uint64(n)
	h.fs.mu.Unlock()
	return int(n), err
}

// WriteZeros implements disk.File.
func (h *file) WriteZeros(off, n int64) error {
	done, err := h.write(faultfs.OpZero, n, func(n int64) (int64, error) {
		if err := h.inner.WriteZeros(off, n); err != nil {
			return 0, err
		}
		return n, nil
	})
	h.fs.mu.Lock()
	h.fs.counts.ZeroBytes += uint64(done)
	h.fs.mu.Unlock()
	return err
}

// write makes a write of which a part can be applied.
func (h *file) write(op faultfs.Op, total int64, call func(n int64) (int64, error)) (int64, error) {
	v := h.fs.enter(op, h.name, true)
	if v.err != nil {
		return 0, v.err
	}
	var failure error
	switch v.fault {
	case faultfs.D11Short:
		failure = errIO
	case faultfs.D11Interrupt:
		failure = errIntr
	case faultfs.D13Short:
		failure = errNoSpace
	}
	if total <= 0 || failure == nil && !v.end {
		n, err := call(total)
		if err == nil && v.fault == faultfs.D12Applied {
			err = h.fs.injected(errIO)
		}
		return n, err
	}
	n, err := call(int64(v.part % uint64(total)))
	switch {
	case v.end:
		return n, h.fs.ended()
	case err != nil:
		return n, err
	}
	return n, h.fs.injected(failure)
}

// prefix returns the first n bytes of gathered buffers.
func prefix(bufs [][]byte, n int64) [][]byte {
	out := make([][]byte, 0, len(bufs))
	for _, b := range bufs {
		if int64(len(b)) > n {
			b = b[:n]
		}
		n -= int64(len(b))
		out = append(out, b)
	}
	return out
}

// Truncate implements disk.File.
func (h *file) Truncate(size int64) error {
	return h.fs.do(faultfs.OpTruncate, h.name, true, func() error { return h.inner.Truncate(size) })
}

// Sync implements disk.File.
func (h *file) Sync() error { return h.fs.sync(faultfs.OpSync, h.name, h.inner.Sync) }

// Size implements disk.File.
func (h *file) Size() (size int64, err error) {
	err = h.fs.do(faultfs.OpSize, h.name, false, func() (err error) {
		size, err = h.inner.Size()
		return err
	})
	return size, err
}

// Close implements disk.File. No fault strikes it.
func (h *file) Close() error { return h.inner.Close() }
