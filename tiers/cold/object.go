package cold

import (
	"errors"
	"io"

	"varve/core"
	"varve/tiers"
	"varve/tiers/disk"
)

// object reads an object as a file. It keeps one range of it and its footer, so that a sequential
// reader asks rarely and a look-up asks once. It is used by one goroutine at a time.
type object struct {
	store  *Store
	key    string
	size   int64
	footer int64 // where it starts
	ahead  ranged
	index  ranged
	step   int // bytes that the next sequential read asks for
}

// ranged is a range that was read.
type ranged struct {
	at  int64
	buf []byte
}

// readFirst is what a read at a new place asks for; it doubles while reads go on in order.
const readFirst = 64 << 10

// OpenObject implements disk.Objects.
func (s *Store) OpenObject(x *core.Extent) disk.File {
	o := x.Object()
	return &object{store: s, key: s.objectKey(&o), size: x.Bytes, footer: x.Bytes - x.FooterBytes, step: readFirst}
}

// ReadAt implements disk.File.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if off >= o.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), o.size-off)]
	n := 0
	for n < len(want) {
		got, err := o.read(want[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		n += got
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read copies what is kept of a range, after asking for it where nothing is.
func (o *object) read(p []byte, off int64) (int, error) {
	for _, r := range [...]*ranged{&o.ahead, &o.index} {
		if at := off - r.at; at >= 0 && at < int64(len(r.buf)) {
			return copy(p, r.buf[at:]), nil
		}
	}
	r, n, from := &o.ahead, o.step, off
	most := o.store.options.ReadAheadBytes
	switch {
	case off >= o.footer && o.size-o.footer <= int64(most):
		r, from, n = &o.index, o.footer, int(o.size-o.footer)
	case off != r.at+int64(len(r.buf)):
		n = readFirst
		o.step = 2 * readFirst
	default:
		o.step = min(2*o.step, most)
	}
	if r == &o.ahead {
		n = int(min(int64(max(min(n, most), len(p))), o.size-off))
	}
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	ctx, cancel := o.store.call()
	defer cancel()
	got, info, err := o.store.bucket.Get(ctx, o.key, from, r.buf[:n])
	r.at, r.buf = from, r.buf[:0]
	switch {
	case errors.Is(err, tiers.ErrNotFound):
		return 0, disk.ErrNotExist
	case err != nil:
		return 0, err
	case info.Bytes != o.size || got != n:
		return 0, ErrShortObject
	}
	r.buf = r.buf[:n]
	return o.read(p, off)
}

// ErrShortObject says that an object has not the length that was expected.
var ErrShortObject = errors.New("cold: the object is not as long as the manifest says")

var errReadOnly = errors.New("cold: objects are never written")

// WriteAt implements disk.File.
func (*object) WriteAt([][]byte, int64) (int, error) { return 0, errReadOnly }

// WriteZeros implements disk.File.
func (*object) WriteZeros(int64, int64) error { return errReadOnly }

// Truncate implements disk.File.
func (*object) Truncate(int64) error { return errReadOnly }

// Sync implements disk.File.
func (*object) Sync() error { return errReadOnly }

// Size implements disk.File.
func (o *object) Size() (int64, error) { return o.size, nil }

// Close implements disk.File.
func (*object) Close() error { return nil }
