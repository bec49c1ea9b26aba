package kafka

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"varve/broker/kafka/batch"
)

// codecs decompress batches. What that may cost is bounded whatever the batches claim: so many at
// once, each with at most bigBytes of memory, and one more that needs up to what a batch may have
// after decompressing.
type codecs struct {
	limit int64         // bytes of a batch after decompressing
	slots chan struct{} // held while a batch is decompressed
	big   chan struct{} // held by the one that needs more than bigBytes
}

const (
	bigBytes  = 8 << 20
	keptBytes = 1 << 20 // of a buffer that is kept
)

func newCodecs(limit int64) codecs {
	return codecs{limit: limit, slots: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), big: make(chan struct{}, 1)}
}

// walk starts a walk over the records of a batch and hands it to use.
func (c *codecs) walk(w *batch.Walker, h *batch.Header, records []byte, use func(*batch.Walker) error) error {
	codec := h.Attributes.Codec()
	if codec == batch.Plain {
		w.Plain(h, records)
		return use(w)
	}
	if needs(codec, records) > bigBytes { // first: who waits for this one keeps nobody else waiting
		c.big <- struct{}{}
		defer func() { <-c.big }()
	}
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	d := decompressors[codec].Get().(decompressor)
	err := d.reset(records, c.limit)
	if err == nil {
		w.Stream(h, d, c.limit)
		err = use(w)
	} else {
		err = &batch.Error{Fault: batch.Corrupt, Record: 0, Expected: "records compressed by " + codec.String(), Found: err.Error()}
	}
	if d.rest() {
		decompressors[codec].Put(d)
	}
	return err
}

// needs estimates the memory that decompressing takes.
func needs(codec batch.Codec, records []byte) int64 {
	switch codec {
	case batch.Snappy:
		return snappyNeeds(records)
	case batch.Zstd:
		var h zstd.Header
		if err := h.Decode(records); err != nil {
			return 0
		}
		if h.SingleSegment { // the content is the window
			h.WindowSize = h.FrameContentSize
		}
		return int64(min(h.WindowSize, 1<<62))
	}
	return 0
}

// snappyNeeds returns what the longest block may decompress to. Blocks that cannot be end the walk: they are
// refused when they are read.
func snappyNeeds(records []byte) (most int64) {
	var r snappyReader
	if r.reset(records, 0) != nil {
		return 0
	}
	for len(r.src) > 0 {
		block, err := r.next()
		if err != nil {
			break
		}
		if size, err := snappy.DecodedLen(block); err == nil {
			most = max(most, min(int64(size), snappyRatioMax*int64(len(block))))
		}
	}
	return most
}

// decompressor reads one piece of compressed bytes.
type decompressor interface {
	io.Reader
	reset(src []byte, limit int64) error
	// rest lets go of what it read, and reports whether it is worth keeping.
	rest() bool
}

var decompressors = [...]sync.Pool{
	batch.Gzip:   {New: func() any { return new(gzipReader) }},
	batch.Snappy: {New: func() any { return new(snappyReader) }},
	batch.LZ4:    {New: func() any { return new(lz4Reader) }},
	batch.Zstd:   {New: func() any { return new(zstdReader) }},
}

type gzipReader struct {
	gzip.Reader
	src bytes.Reader
}

func (r *gzipReader) reset(src []byte, _ int64) error {
	r.src.Reset(src)
	return r.Reset(&r.src)
}

func (r *gzipReader) rest() bool {
	r.src.Reset(nil)
	return true
}

type lz4Reader struct {
	*lz4.Reader
	src bytes.Reader
}

func (r *lz4Reader) reset(src []byte, _ int64) error {
	r.src.Reset(src)
	if r.Reader == nil {
		r.Reader = lz4.NewReader(&r.src)
		return nil
	}
	r.Reset(&r.src)
	return nil
}

func (r *lz4Reader) rest() bool {
	r.src.Reset(nil)
	return true
}

type zstdReader struct {
	small, large *zstd.Decoder
	at           *zstd.Decoder
	src          bytes.Reader
}

func (r *zstdReader) Read(b []byte) (int, error) { return r.at.Read(b) }

func (r *zstdReader) reset(src []byte, limit int64) (err error) {
	r.src.Reset(src)
	if needs(batch.Zstd, src) <= bigBytes {
		if r.small == nil {
			r.small, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(bigBytes))
		}
		r.at = r.small
	} else {
		r.large, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(uint64(max(limit, bigBytes))))
		r.at = r.large
	}
	if err != nil {
		return err
	}
	return r.at.Reset(&r.src)
}

func (r *zstdReader) rest() bool {
	r.src.Reset(nil)
	if r.large != nil { // it may hold a long window
		r.large.Close()
		r.large = nil
	}
	return r.small != nil && r.small.Reset(nil) == nil
}

// snappyReader reads a block of snappy, or a row of them in the frame of the Java library, which most
// clients use.
type snappyReader struct {
	src    []byte
	framed bool
	out    []byte // what is left of the block at hand
	store  []byte
	limit  int64
}

var snappyMagic = []byte("\x82SNAPPY\x00")

const (
	snappyFrameBytes = 16 // magic and two versions
	snappyRatioMax   = 24 // no element of snappy makes more of its bytes
)

func (r *snappyReader) reset(src []byte, limit int64) error {
	r.src, r.framed, r.out, r.limit = src, false, nil, limit
	if bytes.HasPrefix(src, snappyMagic) {
		if len(src) < snappyFrameBytes {
			return io.ErrUnexpectedEOF
		}
		r.src, r.framed = src[snappyFrameBytes:], true
	}
	return nil
}

func (r *snappyReader) rest() bool {
	if r.src, r.out = nil, nil; cap(r.store) > keptBytes {
		r.store = nil
	}
	return true
}

func (r *snappyReader) Read(b []byte) (int, error) {
	for len(r.out) == 0 {
		if len(r.src) == 0 {
			return 0, io.EOF
		}
		if err := r.block(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.out)
	r.out = r.out[n:]
	return n, nil
}

// next takes the next block, still compressed.
func (r *snappyReader) next() (block []byte, err error) {
	if block = r.src; !r.framed {
		r.src = nil
		return block, nil
	}
	if len(block) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	n := binary.BigEndian.Uint32(block)
	if block = block[4:]; int64(n) > int64(len(block)) {
		return nil, io.ErrUnexpectedEOF
	}
	r.src = r.src[4+n:]
	return block[:n], nil
}

func (r *snappyReader) block() error {
	block, err := r.next()
	if err != nil {
		return err
	}
	size, err := snappy.DecodedLen(block)
	switch {
	case err != nil:
		return err
	case int64(size) > snappyRatioMax*int64(len(block)):
		return fmt.Errorf("a block of %d bytes cannot hold %d", len(block), size)
	case int64(size) > r.limit:
		return errors.New("a block longer than a batch may be")
	}
	if size > cap(r.store) {
		r.store = make([]byte, size)
	}
	r.out, err = snappy.Decode(r.store[:cap(r.store)], block)
	return err
}

// checker checks what producers send, to the last record.
type checker struct {
	walker batch.Walker
	latest int64
	use    func(*batch.Walker) error // made once, so that a check allocates nothing
}

// check checks a batch, and makes its greatest timestamp right where it is not, as Kafka does.
func (c *checker) check(codecs *codecs, b []byte) (batch.Header, error) {
	h, err := batch.Parse(b)
	if err != nil {
		return h, err
	}
	if c.use == nil {
		c.use = func(w *batch.Walker) (err error) {
			c.latest, err = w.MaxTime()
			return err
		}
	}
	if err := codecs.walk(&c.walker, &h, batch.Records(b), c.use); err != nil {
		return h, err
	}
	if c.latest != h.MaxTime {
		batch.SetMaxTime(b, &h, c.latest, false)
	}
	return h, nil
}
