package varve_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"varve"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// hookFS is a real directory whose segment files ask first: a hook may count, wait or fail.
type hookFS struct {
	disk.FS
	write, sync atomic.Pointer[func() error]
	writes      atomic.Int64 // of segment files, zero-filling apart
	syncs       atomic.Int64
	meta        atomic.Int64 // create, rename, remove, truncate, directory sync
	zeros       atomic.Int64
}

func hooked(dir string) *hookFS { return &hookFS{FS: osfs.New(dir)} }

// on sets a hook; nil takes it away.
func on(p *atomic.Pointer[func() error], f func() error) {
	if f == nil {
		p.Store(nil)
		return
	}
	p.Store(&f)
}

func call(p *atomic.Pointer[func() error]) error {
	if f := p.Load(); f != nil {
		return (*f)()
	}
	return nil
}

func (h *hookFS) Open(name string, mode disk.Mode) (disk.File, error) {
	if mode == disk.Create {
		h.meta.Add(1)
	}
	f, err := h.FS.Open(name, mode)
	if err != nil || !strings.HasSuffix(name, ".seg") || mode == disk.Read {
		return f, err
	}
	return &hookFile{File: f, fs: h}, nil
}

func (h *hookFS) Remove(name string) error {
	h.meta.Add(1)
	return h.FS.Remove(name)
}

func (h *hookFS) Rename(from, to string) error {
	h.meta.Add(1)
	return h.FS.Rename(from, to)
}

func (h *hookFS) SyncDir(dir string) error {
	h.meta.Add(1)
	return h.FS.SyncDir(dir)
}

type hookFile struct {
	disk.File
	fs *hookFS
}

func (f *hookFile) WriteAt(bufs [][]byte, off int64) (int, error) {
	f.fs.writes.Add(1)
	if err := call(&f.fs.write); err != nil {
		return 0, err
	}
	return f.File.WriteAt(bufs, off)
}

func (f *hookFile) WriteZeros(off, n int64) error {
	f.fs.zeros.Add(1)
	return f.File.WriteZeros(off, n)
}

func (f *hookFile) Truncate(size int64) error {
	f.fs.meta.Add(1)
	return f.File.Truncate(size)
}

func (f *hookFile) Sync() error {
	f.fs.syncs.Add(1)
	if err := call(&f.fs.sync); err != nil {
		return err
	}
	return f.File.Sync()
}

var errDisk = errors.New("input/output error")

func openHooked(t *testing.T, fs *hookFS, o varve.Options) *varve.Log {
	t.Helper()
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = -1
	}
	l, err := varve.OpenFS(t.Context(), fs, "log", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func rec(i int64) varve.Record { return varve.Record{Value: value(i)} }

func mustAppend(t *testing.T, l *varve.Log, i int64) {
	t.Helper()
	if s, err := l.Append(context.Background(), rec(i)); err != nil || s.First != i {
		t.Fatalf("append %d: %v %v", i, s, err)
	}
}
