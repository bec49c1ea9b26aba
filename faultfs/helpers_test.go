package faultfs

import (
	"bytes"
	"errors"
	"testing"

	"varve/tiers/disk"
)

// ready resets a disk to one with a durable, empty log directory.
func ready(t testing.TB, d *Disk, capacity int64) *FS {
	t.Helper()
	d.Reset(Params{Capacity: capacity, LogDir: true})
	return d.FS(0)
}

func mustOpen(t testing.TB, fs *FS, name string, mode disk.Mode) *File {
	t.Helper()
	f, err := fs.Open(name, mode)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	return f.(*File)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want %v", err, target)
	}
}

// write writes one buffer, all of it.
func write(t testing.TB, f *File, p []byte, off int64) {
	t.Helper()
	n, err := f.WriteAt([][]byte{p}, off)
	must(t, err)
	if n != len(p) {
		t.Fatalf("wrote %d of %d bytes", n, len(p))
	}
}

// fill returns n bytes of one value.
func fill(v byte, n int) []byte { return bytes.Repeat([]byte{v}, n) }

// durable makes a file with contents and name on the device, and leaves it open.
func durable(t testing.TB, fs *FS, name string, p []byte) *File {
	t.Helper()
	f := mustOpen(t, fs, name, disk.Create)
	write(t, f, p, 0)
	must(t, f.Sync())
	must(t, fs.SyncDir(disk.DirLog))
	return f
}

// image returns a file, the zero Image if there is none.
func image(d *Disk, name string) Image {
	for _, m := range d.Images(nil) {
		if m.Name == name {
			return m
		}
	}
	return Image{}
}

func wantMark(t testing.TB, d *Disk, f Fault) {
	t.Helper()
	if !d.Marks().Has(f) {
		t.Fatalf("no mark %v; marks %b", f, d.Marks())
	}
}
