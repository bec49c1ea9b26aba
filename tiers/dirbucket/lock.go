package dirbucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"varve/tiers"
)

// Waiting for the lock starts with waitMin between two tries and slows down to waitMax. It is held
// for one synced change as a rule.
const (
	waitMin = 50 * time.Microsecond
	waitMax = 10 * time.Millisecond
)

// lock excludes all other changes of the bucket: a token within this Bucket, flock outside.
type lock struct {
	token chan struct{}
	file  *os.File
}

func (l *lock) open(root *os.Root) (err error) {
	l.token = make(chan struct{}, 1)
	l.file, err = root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, fileMode)
	return err
}

func (l *lock) close() { _ = l.file.Close() }

// acquire waits for the lock as long as the context allows. A process that holds it and hangs would
// else hang all others.
func (l *lock) acquire(ctx context.Context) error {
	select {
	case l.token <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for the lock: %w", ctx.Err())
	}
	for wait := waitMin; ; wait = min(2*wait, waitMax) {
		err := flock(l.file, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			<-l.token
			return fmt.Errorf("lock %s: %w", lockFile, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			<-l.token
			return fmt.Errorf("wait for the lock that another process holds on %s: %w", lockFile, ctx.Err())
		}
	}
}

func (l *lock) release() {
	_ = flock(l.file, syscall.LOCK_UN) // cannot fail on a descriptor that is open
	<-l.token
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			return err
		}
	}
}

// change makes a change in a folder, under the lock, if allowed does not object. act says up to which
// folder, from dir upwards, something changed.
func (b *Bucket) change(ctx context.Context, dir string, allowed func() error, act func() (top string, err error)) error {
	if b.sealed {
		return errReadOnly
	}
	if err := b.lock.acquire(ctx); err != nil {
		return err
	}
	defer b.lock.release()
	if err := b.clean(); err != nil {
		return err
	}
	if err := allowed(); err != nil {
		return err
	}
	if err := writeSmall(b.root, dirtyFile, dir, false); err != nil {
		return fmt.Errorf("write %s: %w", dirtyFile, err)
	}
	top, err := act()
	if err != nil {
		return errors.Join(err, b.clean())
	}
	return b.synced(dir, top)
}

var errReadOnly = fmt.Errorf("%w: the bucket was opened read-only", tiers.ErrDenied)

// settle waits until what a caller has just seen is durable.
func (b *Bucket) settle(ctx context.Context) error {
	if b.sealed {
		return nil
	}
	if _, err := b.root.Lstat(dirtyFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := b.lock.acquire(ctx); err != nil {
		return err
	}
	defer b.lock.release()
	return b.clean()
}

// clean makes the change durable that somebody left behind, if there is one. The lock is held.
func (b *Bucket) clean() error {
	dir, err := readSmall(b.root, dirtyFile)
	switch {
	case errors.Is(err, tiers.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", dirtyFile, err)
	}
	// Empty: the writer died before it changed anything. Unfit: a power loss left it, and what is
	// there after a power loss is durable.
	if dir != "." && tiers.CheckKey(dir) != nil {
		dir = "."
	}
	return b.synced(dir, ".")
}

// synced syncs the folders from dir up to top, then takes dirty away. The lock is held.
func (b *Bucket) synced(dir, top string) error {
	for ; ; dir = path.Dir(dir) {
		if err := b.sync(b.root, dir); err != nil {
			// Not wrapped: whatever the cause promises, here the effect is unknown.
			err = errors.New("sync folder " + dir + ": " + err.Error())
			b.failed.CompareAndSwap(nil, &err)
			return fmt.Errorf("%w: the change may or may not last: check the disk, open the bucket again", err)
		}
		if dir == top || dir == "." {
			break
		}
	}
	if err := b.root.Remove(dirtyFile); err != nil {
		return errors.New("remove " + dirtyFile + ": " + err.Error())
	}
	return nil
}
