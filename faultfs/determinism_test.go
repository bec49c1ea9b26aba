package faultfs

import (
	"bytes"
	"testing"

	"varve/tiers/disk"
)

var storyNames = [...]string{"super.0", "super.1", "a.seg", "b.seg", "c.seg", "x.tmp", "quarantine/q"}

// story is a random walk through everything that a disk can do. It returns a hash over all answers.
func story(d *Disk, seed uint64, steps int, each func()) uint64 {
	var r, event Rand
	r.Seed(seed)
	d.Reset(Params{Capacity: int64(r.Below(3)) * 30_000})
	d.SetFaults(FaultSet(r.Next()))
	var rates Rates
	for i := range rates {
		rates[i] = uint16(r.Below(12000))
	}
	hash := uint64(0)
	note := func(x uint64) { hash = mix(hash ^ x) }
	said := func(err error) {
		if err != nil {
			for _, c := range []byte(err.Error()) {
				note(uint64(c))
			}
		}
	}
	var files [4]disk.File
	var list [16]disk.Entry
	var buf [3000]byte
	var bufs [2][]byte
	for range steps {
		event.Seed(r.Next())
		d.Seed(event.Next())
		d.SetRates(&rates)
		fs := d.FS(int(event.Below(2)))
		slot := event.Below(uint64(len(files)))
		f := files[slot]
		name := storyNames[event.Below(uint64(len(storyNames)))]
		off := int64(event.Below(9000))
		op := event.Below(24)
		if f == nil && op >= 8 && op < 16 {
			op = 0
		}
		var err error
		n := 0
		switch op {
		case 0, 1:
			if f != nil {
				_ = f.Close()
			}
			files[slot], err = fs.Open(name, disk.Mode(event.Below(3)))
		case 2:
			err = fs.Remove(name)
		case 3:
			err = fs.Rename(name, storyNames[event.Below(uint64(len(storyNames)))])
		case 4:
			err = fs.SyncDir([...]string{"", "..", "quarantine"}[event.Below(3)])
		case 5:
			err = fs.Mkdir([...]string{"", "quarantine"}[event.Below(2)])
		case 6:
			entries, e := fs.List(list[:0])
			n, err = len(entries), e
		case 7:
			free, e := fs.Free()
			n, err = int(free), e
		case 8, 9, 10:
			for i := range buf {
				buf[i] = byte(event.state>>8) + byte(i)
			}
			bufs[0], bufs[1] = buf[:event.Below(1500)], buf[:event.Below(3000)]
			n, err = f.WriteAt(bufs[:], off)
		case 11:
			err = f.WriteZeros(off, int64(event.Below(5000)))
		case 12:
			err = f.Truncate(off)
		case 13, 14:
			err = f.Sync()
		case 15:
			n, err = f.ReadAt(buf[:], off)
		case 16:
			_ = fs.BeginSync(name)
		case 17:
			d.WriteBack(&event)
		case 18:
			d.MemoryPressure(&event)
		case 19:
			d.FailWriteBack(&event)
		case 20:
			if x, ok := d.Rot(&event, ""); ok {
				n = int(x.Pos)
			}
		case 21:
			if event.Below(4) == 0 {
				fs.SetCallBudget(int64(event.Below(5)), event.Below(2) == 0)
			}
		case 22:
			if event.Below(3) == 0 {
				fs.Kill()
			}
		case 23:
			if event.Below(3) == 0 {
				d.PowerLoss(&event, event.Below(2) == 0)
			}
		}
		note(uint64(n))
		said(err)
		note(d.KernelHash())
		note(d.DurableHash())
		note(uint64(d.Marks()))
		if each != nil {
			each()
		}
	}
	return hash
}

// TestSameSeedSameDisk: fresh and used disks answer alike, to the byte.
func TestSameSeedSameDisk(t *testing.T) {
	used := New()
	hashes := map[uint64]bool{}
	var marks FaultSet
	for seed := uint64(0); seed < 400; seed++ {
		a := story(New(), seed, 120, nil)
		b := story(used, seed, 120, nil)
		if a != b {
			t.Fatalf("seed %d: a fresh disk and a used one differ", seed)
		}
		hashes[a] = true
		marks |= used.Marks()
	}
	if len(hashes) != 400 {
		t.Fatalf("400 seeds, %d different runs", len(hashes))
	}
	for f := Fault(1); f < FaultCount; f++ {
		if f != D21Locked && !marks.Has(f) {
			t.Errorf("no run had %v", f)
		}
	}
}

// TestInvariants checks after every step what the fields of an inode promise.
func TestInvariants(t *testing.T) {
	d := New()
	for seed := uint64(1000); seed < 1300; seed++ {
		story(d, seed, 120, func() { invariants(t, d, seed) })
		var r Rand
		d.PowerLoss(&r, true)
		invariants(t, d, seed)
		d.Reset(Params{})
		for _, n := range d.free {
			if !allZero(n.k) || !allZero(n.d) || !noBits(n.dirty) || !noBits(n.ghost) || !noBits(n.synced) {
				t.Fatalf("seed %d: Reset left bytes behind", seed)
			}
		}
	}
}

func noBits(b bitmap) bool {
	for _, w := range b {
		if w != 0 {
			return false
		}
	}
	return true
}

func invariants(t *testing.T, d *Disk, seed uint64) {
	t.Helper()
	used, open := int64(0), 0
	for _, n := range d.inodes {
		if n.links > 0 || n.opens > 0 {
			used += n.sizeK
		}
		open += n.opens
		if n.sizeK > n.hi || n.sizeD > n.hi || n.hi > int64(len(n.k)) || len(n.k) != len(n.d) {
			t.Fatalf("seed %d: sizes %d, %d above the mark %d", seed, n.sizeK, n.sizeD, n.hi)
		}
		if !allZero(n.k[n.sizeK:]) || !allZero(n.d[n.hi:]) {
			t.Fatalf("seed %d: bytes beyond the size", seed)
		}
		ghosts := false
		for w := range n.dirty {
			if n.dirty[w]&n.ghost[w] != 0 {
				t.Fatalf("seed %d: a sector is dirty and a ghost", seed)
			}
			if n.dirty[w] != 0 && (w < n.dirtyLo || w >= n.dirtyHi) {
				t.Fatalf("seed %d: a dirty sector outside the range", seed)
			}
			ghosts = ghosts || n.ghost[w] != 0
		}
		if ghosts && !n.ghosts {
			t.Fatalf("seed %d: unknown ghosts", seed)
		}
		for s := int64(0); s < sectors(n.sizeK); s++ {
			same := bytes.Equal(n.k[s*Sector:(s+1)*Sector], n.d[s*Sector:(s+1)*Sector])
			if !same && !n.dirty.has(s) && !n.ghost.has(s) {
				t.Fatalf("seed %d: %s sector %d differs and is neither dirty nor a ghost (sizes %d, %d)", seed, n.name, s, n.sizeK, n.sizeD)
			}
		}
	}
	if used != d.used {
		t.Fatalf("seed %d: %d bytes used, %d counted", seed, used, d.used)
	}
	if open != d.open {
		t.Fatalf("seed %d: %d handles open, %d counted", seed, open, d.open)
	}
}

// TestSteadyStateAllocatesNothing: a world that has been run once needs no memory any more.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	d := New()
	bufs := [][]byte{make([]byte, 1024)}
	var r Rand
	run := func() {
		for seed := uint64(0); seed < 20; seed++ {
			d.Reset(Params{LogDir: true})
			d.SetFaults(AllFaults)
			r.Seed(seed)
			world(d.FS(0), bufs)
			d.WriteBack(&r)
			d.FailNext(OpSync, D17Clean)
			d.FS(0).SetCallBudget(50, true)
			world(d.FS(0), bufs)
			d.MemoryPressure(&r)
			d.PowerLoss(&r, false)
			world(d.FS(1), bufs)
			d.DurableHash()
		}
	}
	run()
	if n := testing.AllocsPerRun(5, run); n != 0 {
		t.Fatalf("%v allocations a run", n)
	}
}

// TestLargeFile: several MiB, written in pieces, synced and lost in part.
func TestLargeFile(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := mustOpen(t, fs, "big.seg", disk.Create)
	must(t, fs.SyncDir(""))
	const piece, pieces = 100_000, 60
	for i := range pieces {
		write(t, f, fill(byte(i+1), piece), int64(i)*piece)
		if i%2 == 1 && i < 50 {
			must(t, f.Sync())
		}
	}
	lose(d)
	p := image(d, "big.seg").Kernel
	if len(p) != 50*piece {
		t.Fatalf("%d bytes, want the %d that were synced", len(p), 50*piece)
	}
	for i := range 50 {
		if !bytes.Equal(p[i*piece:(i+1)*piece], fill(byte(i+1), piece)) {
			t.Fatalf("piece %d differs", i)
		}
	}
	f = mustOpen(t, fs, "big.seg", disk.Write)
	if _, err := f.WriteAt([][]byte{{1}}, MaxFileBytes); err == nil {
		t.Fatal("a file beyond the largest size")
	}
}

// TestRemovedFilesAreKept: memory of a removed file is not used again while a handle or a power
// loss can still reach it.
func TestRemovedFilesAreKept(t *testing.T) {
	churn := func(fs *FS) {
		for range 200 {
			create(fs, "x.tmp")
			must(t, fs.Remove("x.tmp"))
			must(t, fs.SyncDir(disk.DirQuarantine))
		}
	}
	setup := func() (*Disk, *FS, *File) {
		d := New()
		fs := ready(t, d, 0)
		must(t, fs.Mkdir(disk.DirQuarantine))
		return d, fs, durable(t, fs, "a", fill(7, 1000))
	}
	d, fs, f := setup() // the durable name comes back
	must(t, f.Close())
	must(t, fs.Remove("a"))
	churn(fs)
	d.dirs[dirLog].pending = d.dirs[dirLog].pending[:0] // all undone
	lose(d)
	if !bytes.Equal(image(d, "a").Kernel, fill(7, 1000)) {
		t.Fatal("a durable name leads to other content")
	}

	d, fs, f = setup() // the handle still reads
	must(t, fs.Remove("a"))
	must(t, fs.SyncDir(""))
	churn(fs)
	p := make([]byte, 1000)
	_, err := f.ReadAt(p, 0)
	must(t, err)
	if !bytes.Equal(p, fill(7, 1000)) || d.Used() != 1000 {
		t.Fatal("an open file lost its content")
	}

	d, fs, _ = setup() // a pending name is kept by the power loss, its unlink is not
	must(t, fs.Remove("a"))
	must(t, fs.SyncDir(""))
	g := mustOpen(t, fs, "b", disk.Create)
	write(t, g, fill(8, 1000), 0)
	must(t, g.Sync())
	must(t, g.Close())
	must(t, fs.Remove("b"))
	churn(fs)
	x := d.dirs[dirLog]
	x.pending = x.pending[:1]
	lose(d)
	if !bytes.Equal(image(d, "b").Kernel, fill(8, 1000)) {
		t.Fatal("a pending name leads to other content")
	}
}

// TestManyFiles: files come and go without end in one life, and memory is used again.
func TestManyFiles(t *testing.T) {
	d := New()
	fs := ready(t, d, 1<<20)
	for i := range 2000 {
		f := mustOpen(t, fs, storyNames[2+i%3], disk.Create)
		write(t, f, fill(1, 8000), 0)
		must(t, f.Close())
		if i%7 == 0 {
			must(t, fs.SyncDir(""))
		}
		must(t, fs.Remove(storyNames[2+i%3]))
	}
	must(t, fs.SyncDir(""))
	if n := len(d.inodes) + len(d.free); n > 64 {
		t.Fatalf("%d inodes in memory for one file at a time", n)
	}
	if d.Used() != 0 {
		t.Fatalf("%d bytes used by nothing", d.Used())
	}
}

// TestSweepForgetsTheRunBefore: which files a disk still knows, and with that every draw over them,
// depends on this run alone, not on what the disk was used for before.
func TestSweepForgetsTheRunBefore(t *testing.T) {
	used, fresh := New(), New()
	fs := ready(t, used, 1<<20)
	for i := range 60 {
		must(t, mustOpen(t, fs, string(rune('a'+i%26))+string(rune('a'+i/26)), disk.Create).Close())
	}
	fsUsed, fsFresh := ready(t, used, 1<<20), ready(t, fresh, 1<<20)
	for i := range 100 {
		for _, fs := range []*FS{fsUsed, fsFresh} {
			must(t, mustOpen(t, fs, "x.tmp", disk.Create).Close())
			must(t, fs.Remove("x.tmp"))
			if i%5 == 0 {
				must(t, fs.SyncDir(""))
			}
		}
		if len(used.inodes) != len(fresh.inodes) {
			t.Fatalf("after %d files: a used disk knows %d, a fresh one %d", i+1, len(used.inodes), len(fresh.inodes))
		}
	}
}
