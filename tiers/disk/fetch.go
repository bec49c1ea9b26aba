package disk

import (
	"errors"
	"io"

	"varve/core"
	"varve/core/segment"
)

// Handle is a reader's own open file: it is reused from fetch to fetch, as long as they stay in one
// segment. The zero value is ready. It is used by one goroutine at a time; Close it when done.
type Handle struct {
	id    segment.ID
	tier  core.Tier
	made  uint64 // the attempt that made the object
	file  File   // nil: none open
	index File   // the sidecar, once it was needed

	looked bool // layout was looked for
	found  bool // and verified
	layout segment.Layout
	buf    [segment.IndexBlockBytes]byte
}

// Close closes the files of the handle. It may be used again.
func (h *Handle) Close() error {
	var err error
	if h.file != nil {
		err = h.file.Close()
	}
	if h.index != nil {
		err = errors.Join(err, h.index.Close())
	}
	h.file, h.index, h.looked, h.found = nil, nil, false, false
	return err
}

// Forget drops the files without closing them, after a simulated crash has closed them all.
func (h *Handle) Forget() { h.file, h.index, h.looked, h.found = nil, nil, false, false }

// open makes sure that the file of an extent is open in h.
func (h *Handle) open(s *Store, x *core.Extent) error {
	if h.file != nil && h.id == x.Segment && h.tier == x.Tier && h.made == x.Attempt {
		return nil
	}
	_ = h.Close() // opened for reading only
	h.tier, h.made = x.Tier, x.Attempt
	if x.Tier == core.TierCold {
		h.id, h.file = x.Segment, s.objects.OpenObject(x)
		return nil
	}
	f, err := s.fs.Open(s.segmentName(x.Base, x.Segment), Read)
	if err != nil {
		return err
	}
	h.id, h.file = x.Segment, f
	return nil
}

// Objects opens objects of the cold tier, which are read as files are.
type Objects interface {
	OpenObject(x *core.Extent) File
}

// SetObjects says where extents of the cold tier are read. It is called before any of them is.
func (s *Store) SetObjects(o Objects) { s.objects = o }

// OpenSegment opens a segment file for reading.
func (s *Store) OpenSegment(e *core.FileEntry) (f File, size int64, err error) {
	if f, err = s.fs.Open(s.segmentName(e.Base, e.ID), Read); err != nil {
		return nil, 0, err
	}
	if size, err = f.Size(); err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// Fetch reads bytes of one extent from a batch boundary on: at f.Pos, or where the index says that
// f.From may be found. A batch at that position that is longer than f.Bytes is read whole. An
// error leaves h closed, and f.Missing set if the file is not there any more.
func (s *Store) Fetch(f *core.Fetch, h *Handle) error {
	f.Missing, f.EOF, f.At = false, false, 0
	if f.Again {
		_ = h.Close() // opened for reading only
	}
	err := h.open(s, &f.Extent)
	if err == nil {
		f.At = f.Pos
		if f.At == 0 {
			f.At = s.locate(f, h)
		}
		f.Buf, f.EOF, err = h.read(f.Buf[:0], f.At, max(f.Bytes, segment.BatchHeaderBytes))
	}
	if err == nil {
		err = h.complete(f)
	}
	if err != nil {
		f.Missing = errors.Is(err, ErrNotExist)
		f.Buf = f.Buf[:0]
		_ = h.Close()
	}
	return err
}

// locate finds the position to start at. Without an index, or with a damaged one, that is the first
// batch: slow, never wrong.
func (s *Store) locate(f *core.Fetch, h *Handle) int64 {
	x := &f.Extent
	if f.NoIndex || f.From <= x.Base {
		return x.DataPos
	}
	if src := s.footer(x, f.LogID, h); src != nil {
		if pos, _, ok := h.layout.Seek(src, f.From, h.buf[:]); ok {
			return pos
		}
	}
	return x.DataPos
}

// OffsetForTime returns where to start looking for the first record of an extent that is not older
// than t: a batch boundary within the extent before which every record is older.
func (s *Store) OffsetForTime(x *core.Extent, log segment.LogID, t core.Time, h *Handle) (pos int64, base core.Offset, err error) {
	if err := h.open(s, x); err != nil {
		return 0, 0, err
	}
	if src := s.footer(x, log, h); src != nil {
		// A footer may reach further than the extent: a power loss took batches that it lists.
		if pos, base, ok := h.layout.SeekTime(src, t, h.buf[:]); ok && base < x.End {
			return pos, base, nil
		}
	}
	return x.DataPos, x.Base, nil
}

// footer returns the file that holds the footer of an extent, once its trailer has verified; nil
// if there is none. A failure to read it is no failure of the reader.
func (s *Store) footer(x *core.Extent, log segment.LogID, h *Handle) segment.Source {
	sidecar := x.Index == core.IndexSidecar
	if !sidecar && x.Index != core.IndexFooter {
		return nil
	}
	if !h.looked {
		h.looked = true
		h.found = s.readTrailer(x, log, h, sidecar)
	}
	switch {
	case !h.found:
		return nil
	case sidecar:
		return h.index
	}
	return h.file
}

func (s *Store) readTrailer(x *core.Extent, log segment.LogID, h *Handle, sidecar bool) (ok bool) {
	f := h.file
	if sidecar {
		var err error
		if f, err = s.fs.Open(s.indexName(x.Base, x.Segment), Read); err != nil {
			return false
		}
		h.index = f
	}
	size, err := f.Size()
	if err != nil || size < segment.TrailerBytes {
		return false
	}
	b := h.buf[:segment.TrailerBytes]
	if err := readFull(f, b, size-segment.TrailerBytes); err != nil {
		return false
	}
	_, h.layout, ok = segment.ReadTrailer(b, size, log, x.Segment, sidecar)
	return ok
}

// read appends up to n bytes at pos to dst; fewer at the end of the file.
func (h *Handle) read(dst []byte, pos int64, n int) (out []byte, eof bool, err error) {
	at := len(dst)
	dst = grow(dst, n)
	got, err := h.file.ReadAt(dst[at:], pos)
	if errors.Is(err, io.EOF) {
		return dst[:at+got], true, nil
	}
	if err == nil && got < n {
		err = errShortRead
	}
	return dst[:at+got], false, err
}

// complete reads the rest of the first batch, if it is longer than what was asked for. Its length
// is believed only if its header verifies and the file is long enough.
func (h *Handle) complete(f *core.Fetch) error {
	if f.EOF || segment.WholeBatch(f.Buf) {
		return nil
	}
	_, i, _, ok := segment.ReadBatchHeader(f.Buf, segment.PlacementSeed(f.LogID, f.Extent.Segment), segment.IdentitySeed(f.LogID))
	whole := segment.BatchHeaderBytes + int64(i.PayloadBytes)
	if !ok || whole <= int64(len(f.Buf)) {
		return nil
	}
	size, err := h.file.Size()
	if err != nil || f.At+whole > size {
		return err
	}
	have := len(f.Buf)
	f.Buf, f.EOF, err = h.read(f.Buf, f.At+int64(have), int(whole)-have)
	return err
}

// grow extends b by n bytes of any content.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(make([]byte, 0, len(b)+n), b...)
	}
	return b[:len(b)+n]
}

// readFull reads len(p) bytes or fails.
func readFull(f File, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil {
		err = errShortRead
	}
	return err
}
