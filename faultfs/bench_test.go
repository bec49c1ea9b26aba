package faultfs

import (
	"testing"

	"varve/tiers/disk"
)

// BenchmarkWriteSync is the pair that most simulated commits are. Budget: 300 ns.
func BenchmarkWriteSync(b *testing.B) {
	d := New()
	f := mustOpen(b, ready(b, d, 0), "a.seg", disk.Create)
	bufs := [][]byte{make([]byte, 100), make([]byte, 412)}
	bufs[0][0] = 1
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%16 == 0 {
			_ = f.Truncate(0)
			d.violation = violation{}
		}
		_, _ = f.WriteAt(bufs, int64(i%16)*Sector)
		_ = f.Sync()
	}
}

// BenchmarkOpenClose: budget 60 ns.
func BenchmarkOpenClose(b *testing.B) {
	d := New()
	fs := ready(b, d, 0)
	for _, name := range []string{"super.0", "super.1", "lock", "00000000000000000000-0000000100000001.seg", "00000000000000000009-0000000100000002.seg"} {
		_ = mustOpen(b, fs, name, disk.Create).Close()
	}
	b.ReportAllocs()
	for b.Loop() {
		f, _ := fs.Open("00000000000000000009-0000000100000002.seg", disk.Read)
		_ = f.Close()
	}
}

// world writes eight files of 1 to 8 KiB, half of them synced, as far as the process lives.
func world(fs *FS, bufs [][]byte) {
	for i, name := range [...]string{"super.0", "super.1", "a.seg", "b.seg", "c.seg", "d.seg", "e.seg", "f.seg"} {
		f, err := fs.Open(name, disk.Create)
		if err != nil {
			f, err = fs.Open(name, disk.Write)
		}
		if err != nil {
			return
		}
		for j := 0; j <= i; j++ {
			_, _ = f.WriteAt(bufs, int64(j)*1024)
		}
		if i%2 == 0 {
			_ = f.Sync()
		}
		_ = f.Close()
	}
	_ = fs.SyncDir(disk.DirLog)
}

// BenchmarkWorld is Reset, eight files and a power loss.
func BenchmarkWorld(b *testing.B) {
	d := New()
	var r Rand
	bufs := [][]byte{make([]byte, 1024)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Reset(Params{LogDir: true})
		d.SetFaults(AllFaults)
		r.Seed(uint64(i))
		world(d.FS(0), bufs)
		d.PowerLoss(&r, true)
	}
}

// BenchmarkReset: budget 2 us for a world of eight files.
func BenchmarkReset(b *testing.B) {
	d := New()
	bufs := [][]byte{make([]byte, 1024)}
	world(ready(b, d, 0), bufs)
	saved := append([]*inode(nil), d.inodes...)
	b.ReportAllocs()
	for b.Loop() {
		d.Reset(Params{LogDir: true})
		// Make the same files look used again, so that Reset has all of it to clear.
		d.free = d.free[:0]
		d.inodes = append(d.inodes[:0], saved...)
		for i, n := range saved {
			n.hi = int64(i+1) * 1024
		}
	}
}
