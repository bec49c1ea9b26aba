package faultfs

import (
	"bytes"
	"testing"

	"varve/tiers/disk"
)

// lose is a power loss with no fault switched on: exactly what was not synced is gone.
func lose(d *Disk) {
	var r Rand
	d.SetFaults(0)
	d.PowerLoss(&r, true)
}

// TestKernelAndDevice walks through what survives what, with no faults.
func TestKernelAndDevice(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a.seg", fill(1, 1024))
	write(t, f, fill(2, 512), 1024)
	fs.Kill()
	if m := image(d, "a.seg"); len(m.Kernel) != 1536 || len(m.Device) != 1024 || !m.Durable {
		t.Fatalf("after a kill: %d bytes in the kernel, %d on the device, durable %v", len(m.Kernel), len(m.Device), m.Durable)
	}
	lose(d)
	if m := image(d, "a.seg"); !bytes.Equal(m.Kernel, fill(1, 1024)) {
		t.Fatalf("after a power loss: %d bytes, want the 1024 that were synced", len(m.Kernel))
	}

	// An overwrite and a cut that were not synced come undone.
	f = mustOpen(t, fs, "a.seg", disk.Write)
	write(t, f, fill(3, 100), 0)
	must(t, f.Truncate(200))
	lose(d)
	if m := image(d, "a.seg"); !bytes.Equal(m.Kernel, fill(1, 1024)) {
		t.Fatal("unsynced overwrite or cut survived")
	}
	f = mustOpen(t, fs, "a.seg", disk.Write)
	must(t, f.Truncate(200))
	write(t, f, fill(4, 10), 300)
	must(t, f.Sync())
	lose(d)
	want := append(fill(1, 200), append(make([]byte, 100), fill(4, 10)...)...)
	if m := image(d, "a.seg"); !bytes.Equal(m.Kernel, want) {
		t.Fatal("synced cut and regrowth differ")
	}
}

// TestFailedSyncThenFreshDescriptor: the second sync "succeeds", also through a new descriptor,
// writes nothing, and the power loss shows it.
func TestFailedSyncThenFreshDescriptor(t *testing.T) {
	for _, fault := range []Fault{D17Clean, D17Revert, D13NoSpace} {
		t.Run(fault.String(), func(t *testing.T) {
			d := New()
			lost := 0
			for seed := uint64(0); seed < 50; seed++ {
				fs := ready(t, d, 0)
				d.Seed(seed)
				f := durable(t, fs, "a", fill(1, 4096))
				other := mustOpen(t, fs, "a", disk.Write)
				write(t, f, fill(2, 4096), 0)
				d.FailNext(OpSync, fault)
				if f.Sync() == nil {
					t.Fatal("the failed sync reported nothing")
				}
				if other.Sync() == nil {
					t.Fatal("a descriptor that was open did not hear of the error")
				}
				must(t, f.Sync())
				must(t, other.Sync())
				fresh := mustOpen(t, fs, "a", disk.Write)
				must(t, fresh.Sync())
				seen := append([]byte(nil), image(d, "a").Kernel...)
				if fault != D17Revert && !bytes.Equal(seen, fill(2, 4096)) {
					t.Fatal("the kernel forgot the new content")
				}
				lose(d)
				now := image(d, "a").Kernel
				if fault == D17Revert && !bytes.Equal(now, seen) {
					t.Fatal("reverted content differs from the device's")
				}
				if !bytes.Equal(now, fill(2, 4096)) {
					lost++
				}
				wantMark(t, d, fault)
			}
			if lost < 10 {
				t.Fatalf("only %d of 50 failed syncs lost anything", lost)
			}
		})
	}
}

// TestMemoryPressure: content that a failed sync left in the kernel alone goes with no crash.
func TestMemoryPressure(t *testing.T) {
	d := New()
	var r Rand
	dropped := 0
	for seed := uint64(0); seed < 50; seed++ {
		fs := ready(t, d, 0)
		d.Seed(seed)
		r.Seed(seed)
		f := durable(t, fs, "a", fill(1, 4096))
		write(t, f, fill(2, 8192), 0)
		d.FailNext(OpSync, D17Clean)
		if f.Sync() == nil {
			t.Fatal("no error")
		}
		fs.Kill()
		d.MemoryPressure(&r)
		if !d.Marks().Has(D18Pressure) {
			continue
		}
		dropped++
		m := image(d, "a")
		if n := min(len(m.Kernel), len(m.Device)); !bytes.Equal(m.Kernel[:n], m.Device[:n]) {
			t.Fatal("the kernel still differs from the device")
		}
		if f, err := fs.Open("a", disk.Read); err != nil || f.Sync() != nil {
			t.Fatal("a fresh descriptor must know of nothing")
		}
	}
	if dropped < 10 {
		t.Fatalf("only %d of 50 dropped anything", dropped)
	}
	// What is dirty stays.
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 4096))
	write(t, f, fill(2, 4096), 0)
	for range 20 {
		d.MemoryPressure(&r)
	}
	if !bytes.Equal(image(d, "a").Kernel, fill(2, 4096)) {
		t.Fatal("memory pressure dropped dirty pages")
	}
}

func TestSyncReportedLater(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 512))
	write(t, f, fill(2, 512), 0)
	d.FailNext(OpSync, D17Next)
	must(t, f.Sync())
	if !bytes.Equal(image(d, "a").Device, fill(2, 512)) {
		t.Fatal("the sync that succeeded wrote nothing")
	}
	must(t, f.Close())
	fresh := mustOpen(t, fs, "a", disk.Write)
	wantErr(t, fresh.Sync(), ErrIO) // nobody had seen it
	must(t, fresh.Sync())
	must(t, mustOpen(t, fs, "a", disk.Write).Sync()) // somebody has seen it
	wantMark(t, d, D17Next)
}

func TestBackgroundWriteBackFails(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	var r Rand
	if d.FailWriteBack(&r) {
		t.Fatal("nothing was dirty")
	}
	f := durable(t, fs, "a", fill(1, 4096))
	write(t, f, fill(2, 4096), 0)
	if !d.FailWriteBack(&r) {
		t.Fatal("something was dirty")
	}
	wantErr(t, f.Sync(), ErrIO)
	must(t, f.Sync())
	wantMark(t, d, D17WriteBack)

	write(t, f, fill(3, 4096), 0)
	d.FailWriteBack(&r)
	lose(d)
	must(t, mustOpen(t, fs, "a", disk.Write).Sync()) // a reboot forgets
}

func TestSyncTurnsReadOnly(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 512))
	write(t, f, fill(2, 512), 0)
	d.FailNext(OpSync, D17ReadOnly)
	wantErr(t, f.Sync(), ErrIO)
	_, err := f.WriteAt([][]byte{{1}}, 0)
	wantErr(t, err, disk.ErrReadOnly)
	wantErr(t, f.Sync(), disk.ErrReadOnly)
	wantErr(t, f.Truncate(0), disk.ErrReadOnly)
	wantErr(t, fs.Remove("a"), disk.ErrReadOnly)
	wantErr(t, fs.Rename("a", "b"), disk.ErrReadOnly)
	wantErr(t, fs.SyncDir(disk.DirLog), disk.ErrReadOnly)
	_, err = fs.Open("b", disk.Create)
	wantErr(t, err, disk.ErrReadOnly)
	_, err = fs.Lock("lock")
	wantErr(t, err, disk.ErrReadOnly)
	must(t, mustOpen(t, fs, "a", disk.Read).Close())
	fs.Kill()
	if !d.ReadOnly() {
		t.Fatal("the end of a process must not mend it")
	}
	lose(d)
	if d.ReadOnly() {
		t.Fatal("still read-only after the power loss")
	}
	wantMark(t, d, D17ReadOnly)
}

func TestLyingSync(t *testing.T) {
	d := New()
	for seed := uint64(0); ; seed++ {
		fs := ready(t, d, 0)
		d.Seed(seed)
		f := durable(t, fs, "a", fill(1, 4096))
		write(t, f, fill(2, 4096), 0)
		d.FailNext(OpSync, D9Lie)
		must(t, f.Sync())
		must(t, f.Sync())
		if !d.Marks().Has(D9Lie) {
			continue // all sectors were written after all
		}
		lose(d)
		if bytes.Equal(image(d, "a").Kernel, fill(2, 4096)) {
			t.Fatal("nothing was lost")
		}
		break
	}
	for seed := range uint64(50) { // a lie about the size alone is a lie
		fs := ready(t, d, 0)
		d.Seed(seed)
		f := durable(t, fs, "a", fill(1, 512))
		write(t, f, fill(2, 100), 512)
		d.FailNext(OpSync, D9Lie)
		must(t, f.Sync())
		lied := d.Marks().Has(D9Lie)
		lose(d)
		if whole := bytes.Equal(image(d, "a").Kernel, append(fill(1, 512), fill(2, 100)...)); whole == lied {
			t.Fatalf("seed %d: marked as a lie: %v, and what was synced is there: %v", seed, lied, whole)
		}
	}
	fs := ready(t, d, 0)
	mustOpen(t, fs, "a", disk.Create)
	d.FailNext(OpSyncDir, D9Lie)
	must(t, fs.SyncDir(disk.DirLog))
	wantMark(t, d, D9Lie)
	if image(d, "a").Durable {
		t.Fatal("the name is durable")
	}
}

func TestMisdirectedWrite(t *testing.T) {
	d := New()
	struck := 0
	for seed := uint64(0); seed < 40; seed++ {
		fs := ready(t, d, 0)
		d.Seed(seed)
		durable(t, fs, "a", fill(1, 4096))
		f := durable(t, fs, "b", fill(2, 4096))
		write(t, f, fill(3, 512), 1024)
		d.FailNext(OpSync, D8Misdirect)
		must(t, f.Sync())
		if !d.Marks().Has(D8Misdirect) {
			continue
		}
		struck++
		b := image(d, "b")
		if bytes.Equal(b.Kernel, b.Device) || bytes.Equal(b.Device[1024:1536], fill(3, 512)) {
			t.Fatal("the right place was written")
		}
		lose(d)
		hits := bytes.Count(image(d, "a").Kernel, fill(3, 512)) + bytes.Count(image(d, "b").Kernel, fill(3, 512))
		if hits != 1 {
			t.Fatalf("the sector is in %d places", hits)
		}
	}
	if struck < 20 {
		t.Fatalf("struck %d of 40 times", struck)
	}
}

// TestOverlappingSync: a sync covers what was written before it was issued, and no sector that was
// written again since.
func TestOverlappingSync(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 1024))
	write(t, f, fill(2, 1024), 1024)
	must(t, fs.BeginSync("a"))
	write(t, f, fill(3, 100), 2048-512) // again, inside what the sync covers
	write(t, f, fill(3, 512), 2048)     // after it was issued
	must(t, f.Sync())
	lose(d)
	want := append(fill(1, 1024), append(fill(2, 512), make([]byte, 512)...)...)
	if m := image(d, "a"); !bytes.Equal(m.Kernel, want) {
		t.Fatalf("%d bytes, and not those that the sync covers", len(m.Kernel))
	}
	f = mustOpen(t, fs, "a", disk.Write)
	write(t, f, fill(4, 512), 0)
	must(t, fs.BeginSync("a"))
	must(t, f.Sync())
	write(t, f, fill(5, 512), 512)
	must(t, f.Sync()) // no longer the outstanding one
	lose(d)
	if m := image(d, "a").Kernel; m[0] != 4 || m[512] != 5 {
		t.Fatal("a sync without BeginSync must cover everything")
	}
	if d.Violation() != "" {
		t.Fatal(d.Violation())
	}
}

// TestSizeLost: a failed sync can lose the size for good, until the file reaches beyond it again.
func TestSizeLost(t *testing.T) {
	d := New()
	for seed := uint64(0); ; seed++ {
		fs := ready(t, d, 0)
		d.Seed(seed)
		f := durable(t, fs, "a", fill(1, 512))
		write(t, f, fill(2, 512), 512)
		d.FailNext(OpSync, D17Clean)
		_ = f.Sync()
		if !f.node.sizeGhost {
			continue
		}
		write(t, f, fill(3, 512), 0)
		must(t, f.Sync())
		if got := len(image(d, "a").Device); got != 512 {
			t.Fatalf("the device has size %d, though the kernel takes it for written", got)
		}
		write(t, f, fill(4, 512), 512)
		must(t, f.Sync())
		lose(d)
		if !bytes.Equal(image(d, "a").Kernel, append(fill(3, 512), fill(4, 512)...)) {
			t.Fatal("a later write and sync did not bring the size")
		}
		return
	}
}

// TestCutIsForgotten: after a synced cut nothing of the old tail costs or comes back.
func TestCutIsForgotten(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 8192))
	must(t, f.Truncate(100))
	must(t, f.Sync())
	if f.node.hi != 100 {
		t.Fatalf("%d bytes count as used, want 100", f.node.hi)
	}
	must(t, f.Truncate(8192))
	must(t, f.Sync())
	lose(d)
	if !allZero(image(d, "a").Kernel[100:]) {
		t.Fatal("the old tail came back")
	}
}

func TestViolations(t *testing.T) {
	tests := []struct {
		name string
		run  func(fs *FS, f *File)
		bad  bool
	}{
		{"two syncs of a file", func(fs *FS, _ *File) { _ = fs.BeginSync("a.seg"); _ = fs.BeginSync("a.seg") }, true},
		{"two syncs in turn", func(fs *FS, f *File) { _ = fs.BeginSync("a.seg"); _ = f.Sync(); _ = fs.BeginSync("a.seg") }, false},
		{"a sync ended by a kill", func(fs *FS, _ *File) { _ = fs.BeginSync("a.seg"); fs.Kill(); _ = fs.BeginSync("a.seg") }, false},
		{"write into a synced sector", func(_ *FS, f *File) { _, _ = f.WriteAt([][]byte{{1}}, 700) }, true},
		{"write behind it", func(_ *FS, f *File) { _, _ = f.WriteAt([][]byte{{1}}, 1024) }, false},
		{"write into synced zeros", func(_ *FS, f *File) {
			_ = f.WriteZeros(1024, 1024)
			_ = f.Sync()
			_, _ = f.WriteAt([][]byte{{1}}, 1024)
		}, false},
		{"write into a written-back sector", func(fs *FS, f *File) {
			_, _ = f.WriteAt([][]byte{{1}}, 1024)
			var r Rand
			for range 20 {
				fs.d.WriteBack(&r)
			}
			_, _ = f.WriteAt([][]byte{{1}}, 1025)
		}, false},
		{"zeros into a synced sector", func(_ *FS, f *File) { _ = f.WriteZeros(600, 1) }, true},
		{"cut of synced bytes", func(_ *FS, f *File) { _ = f.Truncate(100) }, true},
		{"cut of unsynced bytes", func(_ *FS, f *File) {
			_, _ = f.WriteAt([][]byte{{1}}, 1024)
			_ = f.Truncate(1024)
		}, false},
		{"write to an old segment", func(fs *FS, _ *File) {
			fs.Kill()
			f, _ := fs.Open("a.seg", disk.Write)
			_, _ = f.WriteAt([][]byte{{1}}, 4096)
		}, true},
		{"cut of an old segment", func(fs *FS, _ *File) {
			fs.Kill()
			f, _ := fs.Open("a.seg", disk.Write)
			_ = f.Truncate(1000)
		}, true},
		{"an old superblock in place", func(fs *FS, _ *File) {
			fs.Kill()
			f, _ := fs.Open("super.0", disk.Write)
			_, _ = f.WriteAt([][]byte{{1}}, 0)
		}, false},
		{"a renamed segment", func(fs *FS, f *File) {
			_ = fs.Rename("super.0", "b.seg")
			g, _ := fs.Open("b.seg", disk.Write)
			_, _ = g.WriteAt([][]byte{{1}}, 0)
		}, true},
	}
	d := New()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := ready(t, d, 0)
			f := durable(t, fs, "a.seg", fill(1, 1024))
			durable(t, fs, "super.0", fill(1, 512))
			tt.run(fs, f)
			if got := d.Violation(); (got != "") != tt.bad {
				t.Fatalf("violation %q, want one: %v", got, tt.bad)
			}
		})
	}
}
