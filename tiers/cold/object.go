package cold

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"varve/core"
	"varve/tiers"
	"varve/tiers/disk"
)

// object reads an object as a file. It keeps its footer, so that a look-up asks once, and the last two
// ranges that were read: a reader goes back to the start of the batch that a range ends in. While a
// reader goes on in order the next range is on its way. It is used by one goroutine at a time.
type object struct {
	store  *Store
	key    string
	size   int64
	footer int64 // where it starts
	ahead  ranged
	behind ranged // directly before ahead
	index  ranged
	step   int // bytes that the next sequential read asks for

	coming  ranged     // directly behind ahead, once arrival says so
	arrival chan error // nil: nothing is on its way
}

// ranged is a range that was read.
type ranged struct {
	at  int64
	buf []byte
}

func (r *ranged) end() int64 { return r.at + int64(len(r.buf)) }

// ReadFirst is what a read at a new place asks for; it doubles while reads go on in order.
const ReadFirst = 64 << 10

// objects are closed ones, for their memory.
var objects = sync.Pool{New: func() any { return new(object) }}

// OpenObject implements disk.Objects.
func (s *Store) OpenObject(x *core.Extent) disk.File {
	of, o := x.Object(), objects.Get().(*object)
	o.store, o.key, o.size, o.footer, o.step = s, s.objectKey(&of), x.Bytes, x.Bytes-x.FooterBytes, ReadFirst
	return o
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
	for _, r := range [...]*ranged{&o.ahead, &o.behind, &o.index} {
		if at := off - r.at; at >= 0 && at < int64(len(r.buf)) {
			return copy(p, r.buf[at:]), nil
		}
	}
	if off >= o.footer && o.size-o.footer <= int64(o.store.options.ReadAheadBytes) {
		if err := o.get(&o.index, o.footer, int(o.size-o.footer)); err != nil {
			return 0, err
		}
	} else if err := o.advance(off, len(p)); err != nil {
		return 0, err
	}
	return o.read(p, off)
}

// advance makes ahead a range that starts at a position and has about so many bytes.
func (o *object) advance(off int64, bytes int) error {
	inOrder := off == o.ahead.end() && len(o.ahead.buf) > 0
	arrived := o.arrival != nil
	err := o.await()
	if arrived && inOrder && err != nil {
		return err
	}
	if !inOrder {
		o.step, o.behind.buf = ReadFirst, o.behind.buf[:0]
	} else {
		o.behind, o.ahead = o.ahead, o.behind
	}
	if arrived && inOrder {
		o.ahead, o.coming = o.coming, o.ahead
	} else if err := o.get(&o.ahead, off, o.next(off, bytes)); err != nil {
		return err
	}
	if end := o.ahead.end(); inOrder && o.store.options.ReadAhead && end < o.size {
		n := o.next(end, 0)
		o.arrival = make(chan error, 1)
		go func() { o.arrival <- o.get(&o.coming, end, n) }()
	}
	return nil
}

// next returns how many bytes the next range at a position has, at least so many.
func (o *object) next(off int64, least int) int {
	n := max(o.step, least)
	o.step = min(2*o.step, o.store.options.ReadAheadBytes)
	return int(min(int64(n), o.size-off))
}

// await waits for the range that is on its way.
func (o *object) await() error {
	if o.arrival == nil {
		return nil
	}
	err := <-o.arrival
	o.arrival = nil
	return err
}

// get reads a range.
func (o *object) get(r *ranged, from int64, n int) error {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	ctx, cancel := o.store.call()
	defer cancel()
	got, info, err := o.store.bucket.Get(ctx, o.key, from, r.buf[:n])
	r.at, r.buf = from, r.buf[:0]
	switch {
	case errors.Is(err, tiers.ErrNotFound):
		return disk.ErrNotExist
	case err != nil:
		return err
	case info.Bytes != o.size:
		return errOtherSize
	case got != n:
		return ErrShortObject
	}
	r.buf = r.buf[:n]
	return nil
}

// ErrShortObject says that an object has not the length that was expected.
var ErrShortObject = errors.New("cold: the object is not as long as the manifest says")

// errOtherSize is that error where the bucket says that the whole object has another size: the one that is listed is not there.
var errOtherSize = fmt.Errorf("%w: %w", ErrShortObject, disk.ErrNotExist)

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

// Close implements disk.File. It waits for what is on its way.
func (o *object) Close() error {
	_ = o.await() // nobody wants it any more
	*o = object{
		ahead: ranged{buf: o.ahead.buf[:0]}, behind: ranged{buf: o.behind.buf[:0]},
		index: ranged{buf: o.index.buf[:0]}, coming: ranged{buf: o.coming.buf[:0]},
	}
	objects.Put(o)
	return nil
}
