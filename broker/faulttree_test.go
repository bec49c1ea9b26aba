package broker

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"varve/core/topics"
	"varve/faultfs"
	"varve/tiers/disk"
)

// faultTree is a node's tree on a simulated disk, for one life of the process: afterwards every call of it
// is refused, so that goroutines of that life cannot touch the next.
type faultTree struct {
	mu   *sync.Mutex // the disk belongs to one goroutine at a time
	main *faultfs.FS
	over *bool
}

func newFaultTree(mu *sync.Mutex, d *faultfs.Disk) *faultTree {
	return &faultTree{mu: mu, main: d.FS(0), over: new(bool)}
}

// end ends the life: power is lost.
func (t *faultTree) end(d *faultfs.Disk, r *faultfs.Rand) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*t.over = true
	d.PowerLoss(r, true)
}

func (t *faultTree) fs(name string) disk.FS {
	x := new(faultfs.FS)
	t.main.Beside(x, name)
	return &lockedFS{t, x}
}

func (t *faultTree) name() string { return "node" }

func (t *faultTree) lock() (io.Closer, error) {
	fs := &lockedFS{t, t.main}
	if err := fs.Mkdir(disk.DirLog); err != nil {
		return nil, err
	}
	return fs.Lock(lockName)
}

func (t *faultTree) dirs() (all []string, err error) {
	err = t.do(func() error {
		all, err = t.main.Dirs(nil)
		return err
	})
	return all, err
}

func (t *faultTree) catalogue() (disk.FS, bool, error) {
	all, err := t.dirs()
	there := false
	for _, name := range all {
		there = there || name == catalogueName
	}
	return t.fs(catalogueName), there, err
}

func (t *faultTree) partition(d topics.Dir) disk.FS { return t.fs(d.String()) }

func (t *faultTree) list(dirs []topics.Dir, others []string) ([]topics.Dir, []string, error) {
	all, err := t.dirs()
	for _, name := range all {
		d := topics.Dir{}
		if n, _ := fmt.Sscanf(strings.ReplaceAll(name, "/", " "), "topics %s %d %d", &d.Topic, &d.Incarnation, &d.Partition); n == 3 {
			dirs = append(dirs, d)
		}
	}
	return dirs, others, err
}

func (t *faultTree) remove(d topics.Dir) error {
	if d.Partition < 0 {
		return nil
	}
	x := new(faultfs.FS)
	t.main.Beside(x, d.String())
	if err := t.do(x.RemoveDir); err != nil {
		return err
	}
	return t.do(func() error { return x.SyncDir(disk.DirParent) })
}

func (t *faultTree) vacate(topics.Dir) {}

// do makes a call of this life.
func (t *faultTree) do(call func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *t.over {
		return faultfs.ErrDead
	}
	return call()
}

// lockedFS makes a simulated directory safe for several goroutines.
type lockedFS struct {
	t  *faultTree
	fs *faultfs.FS
}

func (f *lockedFS) Open(name string, mode disk.Mode) (out disk.File, err error) {
	err = f.t.do(func() error {
		x, err := f.fs.Open(name, mode)
		if err == nil {
			out = &lockedFile{f.t, x}
		}
		return err
	})
	return out, err
}

func (f *lockedFS) Remove(name string) error {
	return f.t.do(func() error { return f.fs.Remove(name) })
}

func (f *lockedFS) Rename(from, to string) error {
	return f.t.do(func() error { return f.fs.Rename(from, to) })
}

func (f *lockedFS) List(dst []disk.Entry) (out []disk.Entry, err error) {
	err = f.t.do(func() error {
		out, err = f.fs.List(dst)
		return err
	})
	return out, err
}

func (f *lockedFS) Mkdir(dir string) error { return f.t.do(func() error { return f.fs.Mkdir(dir) }) }

func (f *lockedFS) SyncDir(dir string) error {
	return f.t.do(func() error { return f.fs.SyncDir(dir) })
}

func (f *lockedFS) Free() (n int64, err error) {
	err = f.t.do(func() error {
		n, err = f.fs.Free()
		return err
	})
	return n, err
}

func (f *lockedFS) Lock(name string) (out io.Closer, err error) {
	err = f.t.do(func() error {
		x, err := f.fs.Lock(name)
		if err == nil {
			out = &lockedCloser{f.t, x}
		}
		return err
	})
	return out, err
}

type lockedCloser struct {
	t *faultTree
	x io.Closer
}

func (c *lockedCloser) Close() error { return c.t.do(c.x.Close) }

type lockedFile struct {
	t *faultTree
	x disk.File
}

func (f *lockedFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.t.do(func() error {
		n, err = f.x.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *lockedFile) WriteAt(bufs [][]byte, off int64) (n int, err error) {
	err = f.t.do(func() error {
		n, err = f.x.WriteAt(bufs, off)
		return err
	})
	return n, err
}

func (f *lockedFile) WriteZeros(off, n int64) error {
	return f.t.do(func() error { return f.x.WriteZeros(off, n) })
}

func (f *lockedFile) Truncate(n int64) error { return f.t.do(func() error { return f.x.Truncate(n) }) }
func (f *lockedFile) Sync() error            { return f.t.do(f.x.Sync) }
func (f *lockedFile) Close() error           { return f.t.do(f.x.Close) }
func (f *lockedFile) Size() (n int64, err error) {
	err = f.t.do(func() error {
		n, err = f.x.Size()
		return err
	})
	return n, err
}
