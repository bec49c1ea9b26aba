package tiertest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"varve/faultfs"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// side is one of the two file systems that a list of operations runs on.
type side struct {
	fs    disk.FS
	files [4]disk.File
	locks [2]io.Closer
}

// class maps an error to what callers can tell apart.
func class(err error) string {
	for _, e := range []error{disk.ErrNotExist, disk.ErrExist, disk.ErrLocked, disk.ErrNoSpace, disk.ErrReadOnly, io.EOF} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	if err != nil {
		return "other error"
	}
	return "ok"
}

var names = [...]string{"super.0", "a.seg", "b.seg", "c.tmp", "quarantine/a.seg", "quarantine", "lock"}

// op is one operation; its arguments mean what the kind makes of them.
type op struct {
	kind, slot, name, other int
	off, size               int64
	fill                    byte
}

// step runs one operation and returns all that a caller learns from it.
func (s *side) step(o op) string {
	f, name := s.files[o.slot], names[o.name]
	if f == nil && o.kind < 8 {
		o.kind = 8
	}
	switch o.kind {
	case 0, 1:
		p := make([]byte, o.size)
		n, err := f.ReadAt(p, o.off)
		return fmt.Sprintf("read %d %x %s", n, p[:n], class(err))
	case 2, 3, 4:
		cut := o.size / 3
		n, err := f.WriteAt([][]byte{bytes.Repeat([]byte{o.fill}, int(cut)), nil, bytes.Repeat([]byte{o.fill + 1}, int(o.size-cut))}, o.off)
		return fmt.Sprintf("write %d %s", n, class(err))
	case 5:
		return "zeros " + class(f.WriteZeros(o.off, o.size))
	case 6:
		return "truncate " + class(f.Truncate(o.off))
	case 7:
		size, err := f.Size()
		return fmt.Sprintf("size %d %s, sync %s", size, class(err), class(f.Sync()))
	case 8, 9:
		if f != nil {
			_ = f.Close() // the next open takes its place
		}
		var err error
		s.files[o.slot], err = s.fs.Open(name, disk.Mode(o.other%3))
		if err != nil {
			s.files[o.slot] = nil
		}
		return "open " + name + " " + class(err)
	case 10:
		return "remove " + name + " " + class(s.fs.Remove(name))
	case 11:
		return "rename " + name + " " + names[o.other] + " " + class(s.fs.Rename(name, names[o.other]))
	case 12:
		dir := [...]string{disk.DirLog, disk.DirQuarantine}[o.slot%2]
		return "mkdir " + dir + " " + class(s.fs.Mkdir(dir))
	case 13:
		dir := [...]string{disk.DirLog, disk.DirQuarantine, disk.DirParent}[o.slot%3]
		return "syncdir " + dir + " " + class(s.fs.SyncDir(dir))
	case 14:
		if l := s.locks[o.slot%2]; l != nil {
			s.locks[o.slot%2] = nil
			return "unlock " + class(l.Close())
		}
		l, err := s.fs.Lock(name)
		if err == nil {
			s.locks[o.slot%2] = l
		}
		return "lock " + name + " " + class(err)
	}
	list, err := s.fs.List(nil)
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	for i := range list {
		if list[i].Dir {
			list[i].Bytes = 0
		}
	}
	return fmt.Sprintf("list %v %s", list, class(err))
}

func (s *side) close() {
	for _, f := range s.files {
		if f != nil {
			_ = f.Close() // only to give descriptors back
		}
	}
	for _, l := range s.locks {
		if l != nil {
			_ = l.Close()
		}
	}
}

// TestSimulatedAgreesWithReal runs the same random operations on the simulated disk, with no
// faults, and on the real one: every answer must be the same.
func TestSimulatedAgreesWithReal(t *testing.T) {
	base, err := os.MkdirTemp("/dev/shm", "varve")
	if err != nil {
		base = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	d := faultfs.New()
	answers := map[string]int{}
	for seed := uint64(0); seed < 200; seed++ {
		var r faultfs.Rand
		r.Seed(seed)
		dir := filepath.Join(base, fmt.Sprint(seed))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		d.Reset(faultfs.Params{})
		simulated, actual := side{fs: d.FS(0)}, side{fs: osfs.New(filepath.Join(dir, "log"))}
		for i := range 150 {
			o := op{
				kind: int(r.Below(16)), slot: int(r.Below(4)), name: int(r.Below(uint64(len(names)))),
				other: int(r.Below(uint64(len(names)))), off: int64(r.Below(6000)) - 10, size: int64(r.Below(4000)), fill: byte(r.Next() >> 56),
			}
			if i == 3 {
				o = op{kind: 12}
			}
			got, want := simulated.step(o), actual.step(o)
			if got != want {
				t.Fatalf("seed %d, operation %d, %+v:\nsimulated: %s\nreal:      %s", seed, i, o, got, want)
			}
			answers[gist(got)]++
		}
		simulated.close()
		actual.close()
		if n := d.OpenFiles(); n != 0 {
			t.Fatalf("seed %d: %d handles left", seed, n)
		}
	}
	if len(answers) < 30 {
		t.Fatalf("only %d kinds of answers: %v", len(answers), answers)
	}
}

// gist reduces an answer to its first and last words.
func gist(s string) string {
	i, j := bytes.IndexByte([]byte(s), ' '), bytes.LastIndexByte([]byte(s), ' ')
	return s[:i] + s[j:]
}
