package segment

import (
	"errors"
	"fmt"
)

// Source is bytes at positions: an open file. ReadAt returns fewer than len(p) bytes only with an
// error.
type Source interface {
	ReadAt(p []byte, off int64) (int, error)
}

// ErrShort says that a file ended before the size that it had when the scan began.
var ErrShort = errors.New("segment: file became shorter during the scan")

// windowBytes is how much a scan reads at once; only a longer batch makes it more.
const windowBytes = 256 << 10

// window shows a file piece by piece. Its memory is reused from file to file and never exceeds the
// larger of windowBytes and the longest batch, nor the size of the file.
type window struct {
	src  Source
	size int64
	buf  []byte
	at   int64 // position of buf[0]
	n    int   // bytes of buf that are filled
}

func (w *window) reset(src Source, size int64) {
	w.src, w.size, w.at, w.n = src, size, 0, 0
}

// bytes returns the n bytes at pos, which lie within the file; they are valid until the next call.
func (w *window) bytes(pos, n int64) ([]byte, error) {
	if pos >= w.at && pos+n <= w.at+int64(w.n) {
		return w.buf[pos-w.at : pos-w.at+n], nil
	}
	return w.load(pos, n, windowBytes)
}

// load reads at least n and up to ahead bytes from pos, keeping what it has of them.
func (w *window) load(pos, n, ahead int64) ([]byte, error) {
	check(pos >= 0 && n >= 0 && pos <= w.size-n, "window beyond the file")
	want := min(max(n, ahead), w.size-pos)
	kept := 0
	var old []byte
	if pos >= w.at && pos < w.at+int64(w.n) {
		old = w.buf[pos-w.at : w.n]
		kept = min(len(old), int(want))
	}
	if int64(cap(w.buf)) < want {
		w.buf = append(make([]byte, 0, want), old[:kept]...)
	} else {
		copy(w.buf[:cap(w.buf)], old[:kept])
	}
	w.buf = w.buf[:want]
	w.at, w.n = pos, kept
	got, err := w.src.ReadAt(w.buf[kept:], pos+int64(kept))
	w.n = kept + got
	if int64(w.n) < want {
		w.n = 0
		if err == nil || isEOF(err) {
			err = fmt.Errorf("%w: %d bytes at position %d, found %d", ErrShort, want, pos, kept+got)
		}
		return nil, err
	}
	return w.buf[:n], nil
}

// isEOF recognises io.EOF by its text: this package does not import io.
func isEOF(err error) bool { return err.Error() == "EOF" }
