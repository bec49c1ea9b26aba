package disk_test

import (
	"bytes"
	"errors"
	"testing"

	"varve/core"
	"varve/faultfs"
	"varve/tiers/disk"
)

// full fills a disk that holds a new log, and returns the store of its next life.
func full(t *testing.T, d *faultfs.Disk, s *disk.Store) {
	t.Helper()
	for slot := range 2 {
		if err := s.Run(&core.SaveSuper{Slot: slot, Fresh: true, NewLog: slot == 0, Bytes: bytes.Repeat([]byte{1}, 4096)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(&core.List{}); err != nil {
		t.Fatal(err)
	}
	d.SetCapacity(d.Used())
}

func contentOf(d *faultfs.Disk, name string) []byte {
	for _, m := range d.Images(nil) {
		if m.Name == name {
			return m.Kernel
		}
	}
	return nil
}

// TestSpare: without a free byte fresh saves take the spare and leave a new one, as often as one likes.
func TestSpare(t *testing.T) {
	d := faultfs.New()
	s := disk.NewStore(d.FS(0))
	full(t, d, s)
	for n := range byte(6) {
		content := bytes.Repeat([]byte{2 + n}, 4096)
		e := &core.SaveSuper{Slot: int(n & 1), Fresh: true, Bytes: content}
		if err := s.Run(e); err != nil || e.NoSpace {
			t.Fatalf("save %d: %v, no space %v", n, err, e.NoSpace)
		}
		name := [...]string{"super.0", "super.1"}[n&1]
		if !bytes.Equal(contentOf(d, name), content) {
			t.Fatalf("save %d: %s holds something else", n, name)
		}
		if !bytes.Equal(contentOf(d, "spare"), make([]byte, 4096)) {
			t.Fatalf("save %d leaves no spare", n)
		}
	}
}

// TestSpareThatIsNone: a power loss may undo one half of a rename, so that a slot has the spare's name
// too. It is not written over; its name goes, and the save finds no space.
func TestSpareThatIsNone(t *testing.T) {
	for _, size := range []int64{0, 100, 4096} {
		d := faultfs.New()
		fs := d.FS(0)
		s := disk.NewStore(fs)
		full(t, d, s)
		f, err := fs.Open("spare", disk.Write)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		if size == 4096 {
			if _, err := f.WriteAt([][]byte{{7}}, 4095); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		d.SetCapacity(d.Used())
		e := &core.SaveSuper{Fresh: true, Bytes: bytes.Repeat([]byte{2}, 4096)}
		if err := s.Run(e); err == nil || !e.NoSpace {
			t.Errorf("%d bytes: %v, no space %v", size, err, e.NoSpace)
		}
		if contentOf(d, "spare") != nil {
			t.Errorf("%d bytes: it is still there", size)
		}
		if !bytes.Equal(contentOf(d, "super.0"), bytes.Repeat([]byte{1}, 4096)) {
			t.Errorf("%d bytes: super.0 has changed", size)
		}
	}
}

// TestSpareGrows: slots grow with the lineage, and the spare with them. One that a crash left short is
// replaced too.
func TestSpareGrows(t *testing.T) {
	for _, left := range []int64{0, 100, 4096} {
		d := faultfs.New()
		fs := d.FS(0)
		s := disk.NewStore(fs)
		full(t, d, s)
		d.SetCapacity(0)
		f, err := fs.Open("spare", disk.Write)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(left), f.Close(), s.Run(&core.List{})); err != nil {
			t.Fatal(err)
		}
		for n, bytes8k := range []bool{false, true, true, true} { // the last two on a full disk
			content := bytes.Repeat([]byte{2 + byte(n)}, 4096)
			if bytes8k {
				content = append(content, content...)
			}
			if n >= 2 {
				d.SetCapacity(d.Used())
			}
			e := &core.SaveSuper{Slot: 1, Fresh: true, Bytes: content}
			if err := s.Run(e); err != nil {
				t.Fatalf("%d bytes left, save %d: %v", left, n, err)
			}
			if !bytes.Equal(contentOf(d, "super.1"), content) || !bytes.Equal(contentOf(d, "spare"), make([]byte, len(content))) {
				t.Fatalf("%d bytes left, save %d: slot or spare is not what it should be", left, n)
			}
		}
	}
}

// TestSpareRemovedMeanwhile: somebody takes the spare away from a log that runs. A save that would need
// it finds no space, and the next one that has space makes a new one.
func TestSpareRemovedMeanwhile(t *testing.T) {
	d := faultfs.New()
	s := disk.NewStore(d.FS(0))
	full(t, d, s)
	if err := d.FS(0).Remove("spare"); err != nil {
		t.Fatal(err)
	}
	d.SetCapacity(d.Used())
	e := &core.SaveSuper{Fresh: true, Bytes: bytes.Repeat([]byte{2}, 4096)}
	if err := s.Run(e); err == nil || !e.NoSpace {
		t.Fatalf("%v, no space %v", err, e.NoSpace)
	}
	d.SetCapacity(0)
	if err := s.Run(&core.SaveSuper{Fresh: true, Bytes: e.Bytes}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(contentOf(d, "spare"), make([]byte, 4096)) {
		t.Error("there is no new spare")
	}
}
