package dirbucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"varve/tiers"
)

// ErrAbsent is matched by the error of an Open that found no bucket, or a file system that does not
// answer: what a mount may mend, as opposed to what never will work.
var ErrAbsent = errors.New("the bucket is not there")

// absent marks an error that a mount may mend.
func absent(err error) error {
	for _, may := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.EIO, syscall.ESTALE, syscall.ENODEV, syscall.ENOTCONN, syscall.ETIMEDOUT, syscall.EHOSTDOWN} {
		if errors.Is(err, may) {
			return fmt.Errorf("%w: %w", ErrAbsent, err)
		}
	}
	return err
}

// Mount is the bucket in a directory whose file system may be mounted later, or not answer just now. Each
// call opens it if that has not succeeded yet, and says in its error why it is not there; from then on
// it is that bucket. It never creates one.
type Mount struct {
	dir  string
	find func() (*Bucket, error) // Open; replaced by tests

	mu     sync.Mutex
	bucket *Bucket // nil until an Open succeeds
	err    error   // of the last that did not
	trying chan struct{}
	closed bool
}

var _ tiers.Bucket = (*Mount)(nil)

// NewMount names a bucket, and does nothing else.
func NewMount(dir string, readOnly bool) *Mount {
	return &Mount{dir: dir, find: func() (*Bucket, error) { return Open(dir, Options{ReadOnly: readOnly}) }}
}

// Check opens the bucket, as each call would. Its error matches ErrAbsent, or that of the context, if the
// bucket may be there later.
func (m *Mount) Check(ctx context.Context) error {
	_, err := m.open(ctx)
	return err
}

// open returns the bucket. A file system that hangs holds up one goroutine, whoever asks, and no
// caller longer than its context allows.
func (m *Mount) open(ctx context.Context) (*Bucket, error) {
	m.mu.Lock()
	if m.bucket != nil {
		defer m.mu.Unlock()
		return m.bucket, nil
	}
	if m.trying == nil {
		m.trying = make(chan struct{})
		go m.try(m.trying)
	}
	tried := m.trying
	m.mu.Unlock()
	select {
	case <-tried:
	case <-ctx.Done():
		return nil, &Error{Call: "open " + m.dir, Err: fmt.Errorf("it does not answer: %w", ctx.Err())}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bucket != nil {
		return m.bucket, nil
	}
	return nil, m.err
}

func (m *Mount) try(tried chan struct{}) {
	b, err := m.find()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.closed {
		err = errors.Join(fs.ErrClosed, b.Close())
		b = nil
	}
	m.bucket, m.err, m.trying = b, err, nil
	close(tried)
}

// Close releases the directory. No call may be running.
func (m *Mount) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.bucket == nil {
		return nil
	}
	return m.bucket.Close()
}

// Put implements tiers.Bucket.
func (m *Mount) Put(ctx context.Context, key string, body []byte, cond tiers.Condition) (tiers.Object, error) {
	b, err := m.open(ctx)
	if err != nil {
		return tiers.Object{}, err
	}
	return b.Put(ctx, key, body, cond)
}

// Begin implements tiers.Bucket.
func (m *Mount) Begin(ctx context.Context, key string) (upload string, err error) {
	b, err := m.open(ctx)
	if err != nil {
		return "", err
	}
	return b.Begin(ctx, key)
}

// PutPart implements tiers.Bucket.
func (m *Mount) PutPart(ctx context.Context, key, upload string, number int, body []byte) (tiers.Part, error) {
	b, err := m.open(ctx)
	if err != nil {
		return tiers.Part{}, err
	}
	return b.PutPart(ctx, key, upload, number, body)
}

// Finish implements tiers.Bucket.
func (m *Mount) Finish(ctx context.Context, key, upload string, parts []tiers.Part, cond tiers.Condition) (tiers.Object, error) {
	b, err := m.open(ctx)
	if err != nil {
		return tiers.Object{}, err
	}
	return b.Finish(ctx, key, upload, parts, cond)
}

// Abort implements tiers.Bucket.
func (m *Mount) Abort(ctx context.Context, key, upload string) error {
	b, err := m.open(ctx)
	if err != nil {
		return err
	}
	return b.Abort(ctx, key, upload)
}

// Get implements tiers.Bucket.
func (m *Mount) Get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	b, err := m.open(ctx)
	if err != nil {
		return 0, tiers.Object{}, err
	}
	return b.Get(ctx, key, pos, p)
}

// Head implements tiers.Bucket.
func (m *Mount) Head(ctx context.Context, key string) (tiers.Object, error) {
	b, err := m.open(ctx)
	if err != nil {
		return tiers.Object{}, err
	}
	return b.Head(ctx, key)
}

// Delete implements tiers.Bucket.
func (m *Mount) Delete(ctx context.Context, key string) error {
	b, err := m.open(ctx)
	if err != nil {
		return err
	}
	return b.Delete(ctx, key)
}

// List implements tiers.Bucket.
func (m *Mount) List(ctx context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	b, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	return b.List(ctx, prefix, after, limit)
}

// Uploads implements tiers.Bucket.
func (m *Mount) Uploads(ctx context.Context, prefix string) ([]tiers.Upload, error) {
	b, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	return b.Uploads(ctx, prefix)
}
