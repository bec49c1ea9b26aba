package cold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"varve/core"
	"varve/core/manifest"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/disk"
)

// Options are the numbers of a Store.
type Options struct {
	PartBytes      int           // an object larger than this is uploaded in parts of this size
	ReadAheadBytes int           // most that one sequential reader asks for at once, and keeps
	ReadAhead      bool          // a sequential reader's next range is asked for by a goroutine, which ends with the file
	PartsAtOnce    int           // parts of an upload that are on their way at a time; up to 1: none in a goroutine
	ManifestBytes  int           // what the first read of a manifest asks for: one that is longer is read twice
	Timeout        time.Duration // of one call of the bucket; 0: none
	AskTimeout     time.Duration // of a read of the manifest or of a page of it, for which an open waits; 0: Timeout
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		PartBytes: 8 << 20, ReadAheadBytes: 4 << 20, ReadAhead: true, PartsAtOnce: 3, ManifestBytes: 1 << 20,
		Timeout: 30 * time.Second, AskTimeout: 6 * time.Second,
	}
}

// Store carries out effects on the objects of one log, which are under one prefix of a bucket. The
// effects of the two lanes may run at once, those of one lane one after the other. Any number of
// readers may use objects at the same time.
type Store struct {
	bucket  tiers.Bucket
	prefix  string
	root    string // key of the manifest
	files   *disk.Store
	options Options
	ctx     context.Context
	cancel  context.CancelFunc

	mu   sync.Mutex
	keys [keySlots]keySlot

	up      upload          // of the Uploads lane
	scanner segment.Scanner // of the Catalogue lane

	rootBytes int // that a read of the manifest asks for

	taken atomic.Int64 // bytes of objects that the bucket has taken
}

// NewStore returns a store. Segments to upload are read through files.
func NewStore(b tiers.Bucket, prefix string, files *disk.Store, o Options) *Store {
	s := new(Store)
	s.Reset(b, prefix, files, o)
	return s
}

// Reset points the store at another bucket, or another life of the same log. An upload that is not
// finished is forgotten.
func (s *Store) Reset(b tiers.Bucket, prefix string, files *disk.Store, o Options) {
	if s.cancel == nil || s.ctx.Err() != nil {
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	if s.root == "" || prefix != s.prefix {
		s.root, s.keys = prefix+manifest.ManifestKey, [keySlots]keySlot{}
	}
	s.bucket, s.prefix, s.files, s.options = b, prefix, files, o
	s.rootBytes = 0
	s.up.forget()
}

// Close ends calls that are under way. The store is of no use afterwards.
func (s *Store) Close() { s.cancel() }

// Taken returns how many bytes of objects and parts of them the bucket has taken, those of uploads that failed
// later with them.
func (s *Store) Taken() int64 { return s.taken.Load() }

// call returns the context of one call of the bucket.
func (s *Store) call() (context.Context, context.CancelFunc) {
	return s.within(s.options.Timeout)
}

// ask returns the context of a call that an open waits for: what is on disk is served without a bucket that
// hangs, and soon.
func (s *Store) ask() (context.Context, context.CancelFunc) {
	return s.within(cmp.Or(s.options.AskTimeout, s.options.Timeout))
}

func (s *Store) within(limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return s.ctx, func() {}
	}
	return context.WithTimeout(s.ctx, limit)
}

// Run carries out an effect.
func (s *Store) Run(e core.Effect) error {
	for {
		done, err := s.Step(e)
		if done || err != nil {
			return err
		}
	}
}

// Step carries out the next step of an effect, at most one call of the bucket that changes anything:
// Result.Stage says which. Done means that the effect is complete. After an error it has ended too.
func (s *Store) Step(e core.Effect) (done bool, err error) {
	r := e.Result()
	switch e := e.(type) {
	case *core.Upload:
		done, err = s.upload(r, e)
	case *core.LoadManifest:
		done, err = true, s.loadManifest(r, e)
	case *core.SwapManifest:
		done, err = true, s.swapManifest(r, e)
	case *core.ScanObject:
		done, err = true, s.scanObject(r, e)
	case *core.LoadPage:
		done, err = true, s.loadPage(r, e)
	case *core.SavePage:
		done, err = true, s.savePage(r, e)
	case *core.Delete:
		done, err = s.delete(r, e)
	default:
		panic(fmt.Sprintf("cold: unknown effect %T", e))
	}
	r.Stage++
	return done, err
}

func failed(r *core.Result, step core.Step, err error) error {
	r.Failed = step
	return err
}

// keySlot remembers the key of an object, which is needed again and again for a while.
type keySlot struct {
	of  core.Object
	key string
}

// keySlots is how many keys the slots hold.
const keySlots = 1 << 6

// objectKey returns the key of an object.
func (s *Store) objectKey(o *core.Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.keys[o.Attempt%keySlots]
	if k.of != *o {
		e := manifest.Segment{Base: o.Base, End: o.End, Epoch: o.Epoch, Attempt: o.Attempt}
		*k = keySlot{*o, string(e.AppendKey(append(make([]byte, 0, 128), s.prefix...)))}
	}
	return k.key
}

func (s *Store) loadManifest(r *core.Result, e *core.LoadManifest) (err error) {
	e.Bytes, e.Tag, e.Missing, err = s.whole(r, s.root, e.Bytes, s.options.ManifestBytes)
	if err == nil && e.Missing && e.Look {
		e.Objects, err = s.objects(r)
	}
	return err
}

// objects reports whether there is an object of a segment. Keys of something else may lie among them; where a whole page is of those,
// nobody can say.
func (s *Store) objects(r *core.Result) (bool, error) {
	ctx, cancel := s.ask()
	defer cancel()
	list, err := s.bucket.List(ctx, s.prefix+manifest.SegmentPrefix, "", tiers.PageMax)
	for i := range list {
		if k, ours := manifest.ParseKey(list[i].Key[len(s.prefix):]); ours && k.Kind == manifest.KeySegment {
			return true, nil
		}
	}
	if err == nil && len(list) == tiers.PageMax {
		err = fmt.Errorf("%d keys below %s are no objects of a log, and more may be", len(list), s.prefix+manifest.SegmentPrefix)
	}
	if err != nil {
		err = failed(r, core.StepRead, fmt.Errorf("no manifest is there; look whether objects are: %w", err))
	}
	return false, err
}

// whole reads an object, which has about so many bytes, into the memory of buf. It may be replaced while we read: what one call returns
// is one version, so a longer one is asked for again from its start.
func (s *Store) whole(r *core.Result, key string, buf []byte, size int) (text []byte, tag string, missing bool, err error) {
	ctx, cancel := s.ask()
	defer cancel()
	if key == s.root { // by what it had last, not by the memory there is: the simulator's worlds are used again
		size = max(size, s.rootBytes)
	}
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	for {
		n, o, err := s.bucket.Get(ctx, key, 0, buf)
		switch {
		case errors.Is(err, tiers.ErrNotFound):
			return buf[:0], "", true, nil
		case errors.Is(err, tiers.ErrCorrupt):
			// What the bucket keeps beside the bytes may be of another version; the text has a checksum of
			// its own, which decides.
			text, tag, err := s.unverified(key)
			if errors.Is(err, tiers.ErrCorrupt) { // it answers: with a text that does not verify
				return buf[:0], "", false, nil
			}
			if err != nil {
				return buf[:0], "", false, failed(r, core.StepRead, err)
			}
			return text, tag, false, nil
		case err != nil:
			return buf[:0], "", false, failed(r, core.StepRead, err)
		case o.Bytes > manifest.BytesMax:
			return buf[:0], "", false, failed(r, core.StepRead, fmt.Errorf("cold: %s has %d bytes, more than any manifest", key, o.Bytes))
		case o.Bytes > int64(len(buf)):
			buf = make([]byte, o.Bytes+o.Bytes/4)
			if key == s.root {
				s.rootBytes = len(buf)
			}
			continue
		case int64(n) != o.Bytes:
			return buf[:0], "", false, failed(r, core.StepRead, fmt.Errorf("cold: %s: %d bytes of %d were read", key, n, o.Bytes))
		}
		if len(buf) > bufferKept && n < len(buf)/2 {
			s.rootBytes = 0
			return append([]byte(nil), buf[:n]...), o.Tag, false, nil
		}
		return buf[:n], o.Tag, false, nil
	}
}

// unverified reads an object in two ranges, which a bucket's checksum of the whole says nothing about.
func (s *Store) unverified(key string) (text []byte, tag string, err error) {
	ctx, cancel := s.ask()
	defer cancel()
	o, err := s.bucket.Head(ctx, key)
	if err != nil || o.Bytes < 2 || o.Bytes > manifest.BytesMax {
		return nil, "", errors.Join(err, tiers.ErrCorrupt)
	}
	text = make([]byte, o.Bytes)
	at := o.Bytes - 1
	for _, part := range [][2]int64{{0, at}, {at, o.Bytes}} {
		n, p, err := s.bucket.Get(ctx, key, part[0], text[part[0]:part[1]])
		if err != nil {
			return nil, "", err
		}
		if p.Tag != o.Tag || int64(n) != part[1]-part[0] {
			return nil, "", fmt.Errorf("cold: %s was replaced while it was read: read it again", key)
		}
	}
	return text, o.Tag, nil
}

// bufferKept bounds the memory that a manifest leaves behind which is far shorter than what was asked for.
const bufferKept = 64 << 10

func (s *Store) swapManifest(r *core.Result, e *core.SwapManifest) error {
	ctx, cancel := s.call()
	defer cancel()
	o, err := s.bucket.Put(ctx, s.root, e.Bytes, tiers.Condition{Absent: e.Tag == "", Tag: e.Tag})
	if err != nil {
		e.Lost = errors.Is(err, tiers.ErrPrecondition) || errors.Is(err, tiers.ErrNotFound)
		return failed(r, core.StepWrite, err)
	}
	e.NewTag = o.Tag
	return nil
}

func (s *Store) delete(r *core.Result, e *core.Delete) (done bool, err error) {
	ctx, cancel := s.call()
	defer cancel()
	var key string
	if n := len(e.Objects); r.Stage < n {
		key = s.objectKey(&e.Objects[r.Stage])
	} else {
		p := &e.Pages[r.Stage-n]
		key = s.pageKey(p.Base, p.Number)
	}
	if err := s.bucket.Delete(ctx, key); err != nil {
		return false, failed(r, core.StepWrite, err)
	}
	return r.Stage == len(e.Objects)+len(e.Pages)-1, nil
}

func (s *Store) pageKey(base core.Offset, number uint64) string {
	p := manifest.Page{Base: base, Number: number}
	return string(p.AppendKey(append(make([]byte, 0, 128), s.prefix...)))
}

func (s *Store) loadPage(r *core.Result, e *core.LoadPage) (err error) {
	e.Bytes, _, e.Missing, err = s.whole(r, s.pageKey(e.Base, e.Number), e.Bytes, int(e.Size))
	return err
}

func (s *Store) scanObject(r *core.Result, e *core.ScanObject) error {
	x := &e.Extent
	f := s.OpenObject(x)
	defer f.Close() //nolint:errcheck // it waits for what was read ahead
	err := s.scanner.Scan(&segment.ScanFile{
		Source: f, Bytes: x.Bytes, ID: x.Segment, Base: x.Base, LogID: e.LogID,
		SectorBytes: segment.SectorBytesMin, Lineage: e.Lineage,
	}, false, &e.Info)
	switch {
	case errors.Is(err, disk.ErrNotExist), errors.Is(err, ErrShortObject), errors.Is(err, tiers.ErrCorrupt):
		e.Info = segment.FileInfo{} // nothing to read: it is not the object that the manifest lists
	case err != nil:
		return failed(r, core.StepRead, err)
	}
	return nil
}

func (s *Store) savePage(r *core.Result, e *core.SavePage) error {
	ctx, cancel := s.call()
	defer cancel()
	if _, err := s.bucket.Put(ctx, s.pageKey(e.Base, e.Number), e.Bytes, tiers.Condition{Absent: true}); err != nil {
		return failed(r, core.StepWrite, err)
	}
	return nil
}

var (
	errObjectDiffers = errors.New("cold: the bucket's checksum or size of the object is not that of what was sent")
	errSource        = errors.New("cold: the segment does not verify over the span that is to be exported")
)

var _ disk.Objects = (*Store)(nil)
