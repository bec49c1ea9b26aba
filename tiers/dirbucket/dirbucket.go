package dirbucket

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"sync/atomic"
	"syscall"

	"varve/tiers"
)

// Names in the bucket's own folder.
const (
	own         = ".varve"
	formatFile  = own + "/format"
	lockFile    = own + "/lock"
	dirtyFile   = own + "/dirty"
	tmpDir      = own + "/tmp"
	uploadsDir  = own + "/uploads"
	formatText  = "varve bucket 1\n"
	dirMode     = 0o750
	fileMode    = 0o640
	formatBytes = 64 // more than any format file has
)

// Bucket is a tiers.Bucket in a directory.
type Bucket struct {
	dir    string
	root   *os.Root
	lock   lock // of a bucket that is not read-only
	sealed bool // Options.ReadOnly
	// Replaced by tests.
	sync     func(root *os.Root, dir string) error // syncDir
	syncFile func(f *os.File) error
	failed   atomic.Pointer[error] // a sync failed: nothing is answered any more
}

var _ tiers.Bucket = (*Bucket)(nil)

// Options says how a bucket is opened.
type Options struct {
	Create   bool // make the bucket where there is none: the directory is absent or empty
	ReadOnly bool // write nothing, not even a lock: changes are ErrDenied, and what a power loss may undo is seen
}

// Open opens the bucket in a directory. Without Options.Create a directory that is no bucket is an
// error, so that a file system that is not mounted does not look like a bucket without objects.
func Open(dir string, o Options) (*Bucket, error) {
	if o.Create {
		if err := create(dir); err != nil {
			return nil, &Error{Call: "create " + dir, Err: hinted(err)}
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		next := "mount it, or create the bucket"
		if errors.Is(err, fs.ErrPermission) {
			next = "the directory of a bucket must be open to its user"
		}
		return nil, &Error{Call: "open " + dir, Err: fmt.Errorf("%w: %s", absent(err), next)}
	}
	b := &Bucket{dir: dir, root: root, sealed: o.ReadOnly, sync: syncDir, syncFile: (*os.File).Sync}
	if err := b.begin(); err != nil {
		_ = root.Close()
		return nil, &Error{Call: "open " + dir, Err: hinted(absent(err))}
	}
	return b, nil
}

// begin checks the format, opens the lock and removes what dead writers left.
func (b *Bucket) begin() error {
	text, err := readSmall(b.root, formatFile)
	switch {
	case errors.Is(err, tiers.ErrNotFound):
		return fmt.Errorf("%w: %s is missing: this is no bucket: mount the right file system, bring %s along if this is a copy of one, or create a bucket in an empty directory", ErrAbsent, formatFile, own)
	case err != nil:
		return err
	case text != formatText:
		return fmt.Errorf("%s says %.40q, want %q: use a program that knows it", formatFile, text, formatText)
	}
	if b.sealed {
		return nil
	}
	if err := b.lock.open(b.root); err != nil {
		return err
	}
	if err := b.settle(context.Background()); err != nil {
		b.lock.close()
		return err
	}
	b.sweep()
	return nil
}

// Close releases the directory. No call may be running.
func (b *Bucket) Close() error {
	if !b.sealed {
		b.lock.close()
	}
	return b.root.Close()
}

// create makes an empty bucket; where there is one already it does nothing.
func create(dir string) error {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat(formatFile); err == nil {
		return nil
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Name() != own { // which an earlier try may have left
			return fmt.Errorf("it holds %q and is no bucket: choose an empty directory", e.Name())
		}
	}
	for _, name := range []string{own, tmpDir, uploadsDir} {
		if err := root.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	// The format file comes last, whole: without it there is no bucket.
	tmp := tmpDir + "/format"
	if err := writeSmall(root, tmp, formatText, true); err != nil {
		return err
	}
	if err := root.Rename(tmp, formatFile); err != nil {
		return err
	}
	for _, name := range []string{own, "."} {
		if err := syncDir(root, name); err != nil {
			return err
		}
	}
	parent, err := os.Open(path.Dir(path.Clean(dir)))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// Put implements tiers.Bucket.
func (b *Bucket) Put(ctx context.Context, key string, body []byte, cond tiers.Condition) (tiers.Object, error) {
	err := b.check(ctx, key)
	if err == nil {
		err = cond.Check()
	}
	if err != nil {
		return tiers.Object{}, b.fail("put", key, err)
	}
	t, err := b.newTmp(key)
	if err != nil {
		return tiers.Object{}, b.fail("put", key, err)
	}
	defer t.remove()
	if _, err = t.Write(body); err == nil {
		err = t.finish()
	}
	if err == nil {
		err = b.place(ctx, t, key, cond, nil)
	}
	if err != nil {
		return tiers.Object{}, b.fail("put", key, err)
	}
	return t.trailer.object(key), nil
}

// place makes a finished file the object of a key if the condition holds, and allowed has no objection.
func (b *Bucket) place(ctx context.Context, t *tmp, key string, cond tiers.Condition, allowed func() error) error {
	check := func() error {
		if allowed != nil {
			if err := allowed(); err != nil {
				return err
			}
		}
		return b.holds(key, cond)
	}
	return b.change(ctx, path.Dir(key), check, func() (string, error) {
		top, err := makeDirs(b.root, path.Dir(key))
		if err == nil {
			err = t.rename(key)
		}
		return top, err
	})
}

// holds looks at a condition. The lock is held.
func (b *Bucket) holds(key string, cond tiers.Condition) error {
	o, err := b.head(key)
	damage := errors.Is(err, tiers.ErrCorrupt)
	switch {
	case cond.Absent && (err == nil || damage):
		return fmt.Errorf("%w: there is an object already", tiers.ErrPrecondition)
	case errors.Is(err, tiers.ErrNotFound) && cond.Tag == "" || damage && cond.Tag == "":
		return nil // a damaged object may be replaced
	case err != nil:
		return err
	case cond.Tag != "" && o.Tag != cond.Tag:
		return fmt.Errorf("%w: the object's tag is %s, not %s", tiers.ErrPrecondition, o.Tag, cond.Tag)
	}
	return nil
}

// Get implements tiers.Bucket. A whole object is checked against its checksum.
func (b *Bucket) Get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	n, o, err := 0, tiers.Object{}, b.check(ctx, key)
	if err == nil && pos < 0 {
		err = fmt.Errorf("%w: position %d", tiers.ErrInvalid, pos)
	}
	if err == nil {
		err = b.read(ctx, key, func(f *os.File, x trailer) error {
			o = x.object(key)
			n = int(min(int64(len(p)), max(0, x.bytes-pos)))
			if _, err := f.ReadAt(p[:n], pos); err != nil {
				return err
			}
			if int64(n) == x.bytes && crc32.Checksum(p[:n], castagnoli) != x.crc {
				return damaged("its checksum does not match")
			}
			return nil
		})
	}
	if err != nil {
		return 0, tiers.Object{}, b.fail("get", key, err)
	}
	return n, o, nil
}

// Head implements tiers.Bucket.
func (b *Bucket) Head(ctx context.Context, key string) (tiers.Object, error) {
	o, err := tiers.Object{}, b.check(ctx, key)
	if err == nil {
		err = b.read(ctx, key, func(_ *os.File, x trailer) error { o = x.object(key); return nil })
	}
	if err != nil {
		return tiers.Object{}, b.fail("head", key, err)
	}
	return o, nil
}

// read opens an object for use, once it is sure that no power loss can take it back. The file that
// was opened never changes.
func (b *Bucket) read(ctx context.Context, key string, use func(*os.File, trailer) error) error {
	f, x, err := b.open(key)
	if f != nil {
		defer func() { _ = f.Close() }()
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return use(f, x)
}

// head describes an object as the directory shows it now.
func (b *Bucket) head(key string) (tiers.Object, error) {
	f, x, err := b.open(key)
	if err != nil {
		return tiers.Object{}, err
	}
	return x.object(key), f.Close()
}

// open opens the file of a key or of a part and reads its trailer.
func (b *Bucket) open(name string) (*os.File, trailer, error) {
	var x trailer
	f, size, err := openRegular(b.root, name)
	if err != nil {
		return nil, x, err
	}
	var buf [trailerBytes]byte
	p := buf[:min(size, trailerBytes)]
	if _, err = f.ReadAt(p, size-int64(len(p))); err == nil {
		err = x.parse(p, name, size)
	}
	if err != nil {
		_ = f.Close()
		return nil, x, err
	}
	return f, x, nil
}

// Delete implements tiers.Bucket. Folders that it leaves empty go too.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	err := b.check(ctx, key)
	if err == nil {
		check := func() error {
			_, err := lstatRegular(b.root, key)
			return err
		}
		err = b.change(ctx, path.Dir(key), check, func() (string, error) {
			err := b.root.Remove(key)
			return removeEmpty(b.root, path.Dir(key)), err
		})
	}
	if errors.Is(err, tiers.ErrNotFound) {
		err = nil
	}
	return b.fail("delete", key, err)
}

// check says why a call cannot begin.
func (b *Bucket) check(ctx context.Context, key string) error {
	if err := tiers.CheckKey(key); err != nil {
		return err
	}
	if within(key, own) {
		return fmt.Errorf("%w: %s is the bucket's own folder: name the key otherwise", tiers.ErrInvalid, own)
	}
	return b.usable(ctx)
}

func (b *Bucket) usable(ctx context.Context) error {
	if err := b.failed.Load(); err != nil {
		return fmt.Errorf("an earlier sync failed: open the bucket again: %w", *err)
	}
	return ctx.Err()
}

// Error is the error of a call to the bucket: what it says of files and space is said of the bucket's.
type Error struct {
	Call string // and what it was about
	Err  error
}

// Error names the call.
func (e *Error) Error() string { return "dirbucket: " + e.Call + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail names call, key and directory; nil stays nil.
func (b *Bucket) fail(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Call: fmt.Sprintf("%s %q in %s", op, key, b.dir), Err: hinted(err)}
}

// hinted adds the next step to an error of the system that a person must mend.
func hinted(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room there", err)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w: let this process write there", tiers.ErrDenied, err)
	}
	return err
}

func readSmall(root *os.Root, name string) (string, error) {
	f, _, err := openRegular(root, name)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, tiers.KeyBytesMax+formatBytes))
	return string(text), errors.Join(err, f.Close())
}

func writeSmall(root *os.Root, name, text string, sync bool) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(text); err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
