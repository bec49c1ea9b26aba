package faultfs

import (
	"bytes"
	"testing"

	"varve/tiers/disk"
)

// crashes runs a set-up and a power loss under many seeds, until see says that all was seen.
func crashes(t *testing.T, faults FaultSet, judged bool, setup func(d *Disk, fs *FS), see func(d *Disk)) FaultSet {
	t.Helper()
	d := New()
	var r Rand
	var marks FaultSet
	for seed := uint64(0); seed < 400; seed++ {
		fs := ready(t, d, 0)
		setup(d, fs)
		d.SetFaults(faults)
		r.Seed(seed)
		d.PowerLoss(&r, judged)
		marks |= d.Marks()
		if d.KernelHash() != d.DurableHash() {
			t.Fatalf("seed %d: processes and device differ after a power loss", seed)
		}
		if d.OpenFiles() != 0 {
			t.Fatal("handles survived")
		}
		see(d)
	}
	return marks
}

// sectorKinds counts in p the sectors of each fill value; 255: neither.
func sectorKinds(p []byte, counts *[256]int) {
	for len(p) > 0 {
		s := p[:min(Sector, len(p))]
		p = p[len(s):]
		v := s[0]
		if !bytes.Equal(s, fill(v, len(s))) || v > 9 {
			v = 255
		}
		counts[v]++
	}
}

func overwrite(d *Disk, fs *FS) {
	f, _ := fs.Open("a", disk.Create)
	_, _ = f.WriteAt([][]byte{fill(1, 4096)}, 0)
	_ = f.Sync()
	_ = fs.SyncDir(disk.DirLog)
	_, _ = f.WriteAt([][]byte{fill(2, 2048)}, 1024)
}

func TestPowerLossSectors(t *testing.T) {
	for _, judged := range []bool{true, false} {
		var counts [256]int
		images := map[string]bool{}
		marks := crashes(t, Set(D1Sectors, D1Garbage), judged, overwrite, func(d *Disk) {
			p := image(d, "a").Kernel
			if !bytes.Equal(p[:1024], fill(1, 1024)) || !bytes.Equal(p[3072:], fill(1, 1024)) {
				t.Fatal("a sector that was not dirty changed")
			}
			var pattern [256]int
			sectorKinds(p[1024:3072], &counts)
			sectorKinds(p[1024:3072], &pattern)
			images[string([]byte{p[1024], p[1536], p[2048], p[2560]})] = true
		})
		if counts[0] == 0 || counts[1] == 0 || counts[2] == 0 || (counts[255] == 0) != judged {
			t.Fatalf("judged %v: %d zero, %d old, %d new, %d garbage", judged, counts[0], counts[1], counts[2], counts[255])
		}
		if len(images) < 30 {
			t.Fatalf("only %d different images", len(images))
		}
		if !marks.Has(D1Sectors) || marks.Has(D1Garbage) == judged {
			t.Fatalf("marks %b", marks)
		}
	}
}

func TestPowerLossSwitchedOff(t *testing.T) {
	marks := crashes(t, 0, false, func(d *Disk, fs *FS) {
		overwrite(d, fs)
		f, _ := fs.Open("new", disk.Create)
		_, _ = f.WriteAt([][]byte{fill(2, 100)}, 0)
	}, func(d *Disk) {
		if !bytes.Equal(image(d, "a").Kernel, fill(1, 4096)) {
			t.Fatal("something unsynced survived")
		}
		if m := image(d, "new"); m.Name == "" || len(m.Kernel) != 0 {
			t.Fatal("the new name is lost, or has content")
		}
	})
	if marks != 0 {
		t.Fatalf("marks %b", marks)
	}
}

func TestPowerLossTornWrite(t *testing.T) {
	for _, judged := range []bool{true, false} {
		inside := 0
		marks := crashes(t, Set(D1Sectors, D2Torn), judged, overwrite, func(d *Disk) {
			if !d.Marks().Has(D2Torn) {
				return
			}
			p := image(d, "a").Kernel[1024:3072]
			n := bytes.IndexByte(p, 1)
			if !bytes.Equal(p, append(fill(2, n), fill(1, 2048-n)...)) {
				t.Fatal("not a prefix")
			}
			if n%Sector != 0 {
				inside++
			}
		})
		if !marks.Has(D2Torn) || (inside > 0) == judged {
			t.Fatalf("judged %v: %d torn inside a sector, marks %b", judged, inside, marks)
		}
	}
}

func TestPowerLossSizeAndTail(t *testing.T) {
	sizes := map[int]bool{}
	zeroTail := 0
	marks := crashes(t, Set(D1Sectors, D3Size), true, func(_ *Disk, fs *FS) {
		f, _ := fs.Open("a", disk.Create)
		_, _ = f.WriteAt([][]byte{fill(1, 1000)}, 0)
		_ = f.Sync()
		_ = fs.SyncDir(disk.DirLog)
		_, _ = f.WriteAt([][]byte{fill(2, 3000)}, 1000)
	}, func(d *Disk) {
		p := image(d, "a").Kernel
		if len(p) < 1000 || len(p) > 4000 {
			t.Fatalf("size %d, neither 1000 nor 4000 nor between", len(p))
		}
		sizes[len(p)] = true
		if d.Marks().Has(D1Sectors) && len(p) == 4000 && p[3999] == 0 {
			zeroTail++
		}
	})
	if !sizes[1000] || !sizes[4000] || len(sizes) < 20 || zeroTail == 0 {
		t.Fatalf("%d sizes, %d zero tails", len(sizes), zeroTail)
	}
	if !marks.Has(D3Size) || !marks.Has(D1Sectors) {
		t.Fatalf("marks %b", marks)
	}
}

// TestPowerLossCut: a cut that was not synced comes undone, in whole or in part.
func TestPowerLossCut(t *testing.T) {
	revived := 0
	crashes(t, Set(D1Sectors, D3Size), true, func(_ *Disk, fs *FS) {
		f, _ := fs.Open("a", disk.Create)
		_, _ = f.WriteAt([][]byte{fill(1, 4096)}, 0)
		_ = f.Sync()
		_ = fs.SyncDir(disk.DirLog)
		_ = f.Truncate(1024)
	}, func(d *Disk) {
		p := image(d, "a").Kernel
		if !bytes.Equal(p[:1024], fill(1, 1024)) {
			t.Fatal("the part that stays changed")
		}
		if len(p) == 4096 && p[4095] == 1 {
			revived++
		}
	})
	if revived < 20 {
		t.Fatalf("revived in %d of 400", revived)
	}
}

func TestPowerLossNames(t *testing.T) {
	tests := []struct {
		name   string
		faults FaultSet
		marks  FaultSet
		setup  func(fs *FS)
		seen   []string // every combination of names that must come up, and no other
	}{
		{"create", Set(D5DirOps), Set(D5DirOps), func(fs *FS) { create(fs, "x"); create(fs, "y") }, []string{"", "x", "y", "xy"}},
		{"remove", Set(D5DirOps), Set(D5DirOps), func(fs *FS) {
			create(fs, "x")
			_ = fs.SyncDir("")
			_ = fs.Remove("x")
		}, []string{"", "x"}},
		{"rename whole", Set(D5DirOps), Set(D5DirOps), func(fs *FS) {
			create(fs, "x")
			_ = fs.SyncDir("")
			_ = fs.Rename("x", "y")
		}, []string{"x", "y"}},
		{"rename halves", Set(D5DirOps, D5RenameHalf), Set(D5DirOps, D5RenameHalf), func(fs *FS) {
			create(fs, "x")
			_ = fs.SyncDir("")
			_ = fs.Rename("x", "y")
		}, []string{"", "x", "y", "xy"}},
		{"rename into quarantine", Set(D5DirOps), Set(D5DirOps), func(fs *FS) {
			create(fs, "x")
			_ = fs.Mkdir(disk.DirQuarantine)
			_ = fs.SyncDir("")
			_ = fs.Rename("x", "quarantine/y")
		}, []string{"x", "y"}},
		{"quarantine itself", Set(D5DirOps), Set(D5DirOps), func(fs *FS) {
			_ = fs.Mkdir(disk.DirQuarantine)
			create(fs, "quarantine/x")
			_ = fs.SyncDir(disk.DirQuarantine)
		}, []string{"", "x"}},
		{"synced", Set(D5DirOps, D5RenameHalf, D5Parent), 0, func(fs *FS) {
			create(fs, "x")
			create(fs, "y")
			_ = fs.Rename("x", "z")
			_ = fs.SyncDir("")
		}, []string{"yz"}},
		{"off", 0, 0, func(fs *FS) { create(fs, "x"); _ = fs.Rename("x", "y") }, []string{"y"}},
		{"failed directory sync", Set(D5DirOps), Set(D5DirOps, D22DirSync), func(fs *FS) {
			create(fs, "x")
			fs.d.FailNext(OpSyncDir, D22DirSync)
			if fs.SyncDir("") == nil || fs.SyncDir("") != nil {
				panic("want an error, then none")
			}
			create(fs, "y")
			_ = fs.SyncDir("")
		}, []string{"y", "xy"}},
		{"removed after a failed directory sync", Set(D5DirOps), Set(D22DirSync), func(fs *FS) {
			fs.d.FailNext(OpSyncDir, D22DirSync)
			create(fs, "x")
			_ = fs.SyncDir("")
			_ = fs.Remove("x")
			_ = fs.SyncDir("")
		}, []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seen := map[string]int{}
			marks := crashes(t, tt.faults, true, func(_ *Disk, fs *FS) { tt.setup(fs) }, func(d *Disk) {
				var names [256]bool
				for _, m := range d.Images(nil) {
					names[m.Name[0]] = true
				}
				var s []byte
				for c, ok := range names {
					if ok {
						s = append(s, byte(c))
					}
				}
				seen[string(s)]++
			})
			for _, s := range tt.seen {
				if seen[s] == 0 {
					t.Errorf("never %q: %v", s, seen)
				}
			}
			if len(seen) != len(tt.seen) || marks != tt.marks {
				t.Errorf("outcomes %v, want %q; marks %b, want %b", seen, tt.seen, marks, tt.marks)
			}
		})
	}
}

func create(fs *FS, name string) {
	f, err := fs.Open(name, disk.Create)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

// TestReplaceByRename: the old file, the new one, but never none, and the content follows the name.
func TestReplaceByRename(t *testing.T) {
	var olds, news int
	crashes(t, AllFaults, true, func(_ *Disk, fs *FS) {
		f, _ := fs.Open("super.0", disk.Create)
		_, _ = f.WriteAt([][]byte{fill(1, 512)}, 0)
		_ = f.Sync()
		g, _ := fs.Open("super.tmp", disk.Create)
		_ = fs.SyncDir("")
		_, _ = g.WriteAt([][]byte{fill(2, 512)}, 0)
		_ = g.Sync()
		_ = fs.Rename("super.tmp", "super.0")
	}, func(d *Disk) {
		switch p := image(d, "super.0").Kernel; {
		case bytes.Equal(p, fill(1, 512)):
			olds++
		case bytes.Equal(p, fill(2, 512)):
			news++
		default:
			t.Fatalf("neither the old file nor the new one: %d bytes", len(p))
		}
	})
	if olds == 0 || news == 0 {
		t.Fatalf("%d old, %d new", olds, news)
	}
}

func TestPowerLossParent(t *testing.T) {
	d := New()
	var r Rand
	gone := 0
	for seed := uint64(0); seed < 60; seed++ {
		d.Reset(Params{})
		fs := d.FS(0)
		must(t, fs.Mkdir(disk.DirLog))
		create(fs, "x")
		must(t, fs.SyncDir(disk.DirLog))
		if seed%2 == 0 {
			must(t, fs.SyncDir(disk.DirParent))
		}
		d.SetFaults(AllFaults)
		r.Seed(seed)
		d.PowerLoss(&r, true)
		_, err := fs.List(nil)
		switch {
		case err == nil:
			continue
		case seed%2 == 0:
			t.Fatal("the directory is gone though its parent was synced")
		}
		wantErr(t, err, disk.ErrNotExist)
		wantMark(t, d, D5Parent)
		gone++
		must(t, fs.Mkdir(disk.DirLog))
		if list, err := fs.List(nil); err != nil || len(list) != 0 {
			t.Fatalf("the new directory holds %v, %v", list, err)
		}
	}
	if gone < 5 {
		t.Fatalf("gone %d times of 30", gone)
	}
}

func TestStaleBytes(t *testing.T) {
	setup := func(_ *Disk, fs *FS) {
		f, _ := fs.Open("dead", disk.Create)
		_, _ = f.WriteAt([][]byte{fill(7, 4096)}, 0)
		_ = f.Sync()
		g, _ := fs.Open("a", disk.Create)
		_, _ = g.WriteAt([][]byte{fill(1, 1024)}, 0)
		_ = g.Sync()
		_ = fs.SyncDir("")
		_, _ = g.WriteAt([][]byte{fill(2, 4096)}, 1024)
	}
	for _, judged := range []bool{true, false} {
		stale := 0
		marks := crashes(t, AllFaults, judged, setup, func(d *Disk) {
			p := image(d, "a").Kernel
			if !bytes.Equal(p[:1024], fill(1, 1024)) {
				t.Fatal("synced bytes changed")
			}
			if bytes.Contains(p, fill(7, Sector)) {
				stale++
			}
		})
		if (stale == 0) != judged || marks.Has(D6Stale) == judged {
			t.Fatalf("judged %v: stale bytes in %d", judged, stale)
		}
	}
}

func TestWriteBack(t *testing.T) {
	d := New()
	var r Rand
	images := map[string]bool{}
	names := 0
	for seed := uint64(0); seed < 100; seed++ {
		fs := ready(t, d, 0)
		f := durable(t, fs, "a", fill(1, 2048))
		write(t, f, fill(2, 2048), 0)
		create(fs, "b")
		r.Seed(seed)
		d.WriteBack(&r)
		if !bytes.Equal(image(d, "a").Kernel, fill(2, 2048)) {
			t.Fatal("processes see a write-back")
		}
		if image(d, "b").Durable {
			names++
		}
		lose(d)
		p := image(d, "a").Kernel
		images[string([]byte{p[0], p[512], p[1024], p[1536]})] = true
	}
	if len(images) < 6 || names < 10 || names > 60 {
		t.Fatalf("%d images, %d names", len(images), names)
	}
	wantMark(t, d, D10WriteBack)
}
