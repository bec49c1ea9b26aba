package faultfs

import (
	"strings"
	"testing"

	"varve/tiers/disk"
)

// doubtful leaves a disk with dirty sectors over old and over no content, a file that grew, one that was
// cut, a rename, a removal and a new name, none of it durable.
func doubtful(t *testing.T, d *Disk) *FS {
	t.Helper()
	fs := ready(t, d, 0)
	old := durable(t, fs, "old", fill(1, 2*Sector))
	cut := durable(t, fs, "cut", fill(2, 3*Sector))
	must(t, durable(t, fs, "gone", fill(3, 10)).Close())
	write(t, old, fill(4, Sector+100), Sector)
	must(t, cut.Truncate(Sector+7))
	must(t, fs.Remove("gone"))
	tmp := mustOpen(t, fs, "x.tmp", disk.Create)
	write(t, tmp, fill(5, 2*Sector), 0)
	must(t, fs.Rename("x.tmp", "x"))
	return fs
}

// Images with equal hashes are the same on the disk that takes them, others are not; the one that
// lost everything is what the device holds, the one that lost nothing is what processes see.
func TestDoubtImages(t *testing.T) {
	d, to := New(), New()
	doubtful(t, d)
	var x, again Doubt
	d.Doubts(&x)
	if n := x.Len(); n < 10 || n > 16 {
		t.Fatalf("%d things in doubt: %s", n, x.Describe(0))
	}
	byHash := map[uint64]uint64{}
	content := map[uint64]bool{}
	for image := range uint64(1) << x.Len() {
		to.TakeImage(&x, image)
		have := to.KernelHash()
		if have != to.DurableHash() {
			t.Fatalf("image %#x: kernel and device differ after a power loss", image)
		}
		h := x.Hash(image)
		if was, ok := byHash[h]; ok && was != have {
			t.Fatalf("image %#x: an equal hash and other content", image)
		} else if !ok && content[have] {
			t.Fatalf("image %#x: equal content and another hash", image)
		}
		byHash[h], content[have] = have, true
		to.Doubts(&again)
		if again.Len() != 0 || again.Hash(0) != h || to.KilledHash(&again) != h {
			t.Fatalf("image %#x: the disk that took it says hash %x, %d in doubt; want %x", image, again.Hash(0), again.Len(), h)
		}
	}
	to.TakeImage(&x, 0)
	if to.KernelHash() != d.DurableHash() {
		t.Error("with nothing kept the image is not what the device holds")
	}
	to.TakeImage(&x, 1<<x.Len()-1)
	if to.KernelHash() != d.KernelHash() {
		t.Error("with everything kept the image is not what processes see")
	}
}

// Whatever a drawn power loss leaves, of the kinds that are old or new, is one of the images.
func TestDoubtHoldsWhatPowerLossDraws(t *testing.T) {
	d, to := New(), New()
	images := map[uint64]bool{}
	doubtful(t, d)
	var x Doubt
	d.Doubts(&x)
	for image := range uint64(1) << x.Len() {
		to.TakeImage(&x, image)
		images[to.KernelHash()] = true
	}
	drawn := map[uint64]bool{}
	for seed := range uint64(3000) {
		doubtful(t, d)
		d.SetFaults(Set(D5DirOps, D5RenameHalf, D5Parent))
		if seed&1 != 0 {
			d.SetFaults(Set(D1Sectors))
		}
		r := Rand{}
		r.Seed(seed)
		d.PowerLoss(&r, true)
		h := d.KernelHash()
		if drawn[h] = true; !images[h] && !zeroed(d) {
			t.Fatalf("seed %d: a power loss left what is no image", seed)
		}
	}
	if len(drawn) < 20 {
		t.Errorf("only %d outcomes were drawn", len(drawn))
	}
}

// zeroed reports whether a sector that had old content came out as zeros, which no image has.
func zeroed(d *Disk) bool {
	for _, m := range d.Images(nil) {
		if (m.Name == "old" || m.Name == "cut") && allZero(m.Kernel[Sector:min(len(m.Kernel), 2*Sector)]) {
			return true
		}
	}
	return false
}

// A kill keeps what is in doubt; the disk that takes it goes on as the first one would.
func TestTakeKilled(t *testing.T) {
	a, b := New(), New()
	fs := doubtful(t, a)
	var x, y Doubt
	a.Doubts(&x)
	b.TakeKilled(a, &x)
	b.Doubts(&y)
	if a.KernelHash() != b.KernelHash() || a.DurableHash() != b.DurableHash() || a.KilledHash(&x) != b.KilledHash(&y) || x.Len() != y.Len() {
		t.Fatal("the disk that took a killed process's is another one")
	}
	fs.Kill()
	for _, d := range []*Disk{a, b} {
		fs := d.FS(0)
		f := mustOpen(t, fs, "old", disk.Write)
		must(t, f.Sync())
		must(t, fs.SyncDir(disk.DirLog))
	}
	if a.KernelHash() != b.KernelHash() || a.DurableHash() != b.DurableHash() {
		t.Error("after the same calls they differ")
	}
	a.Doubts(&x)
	b.Doubts(&y)
	if x.Len() == 0 || a.KilledHash(&x) != b.KilledHash(&y) {
		t.Error("after the same calls other things are in doubt")
	}
}

// What the device holds counts, too: two killed disks that show the same and would lose different things
// are not the same.
func TestKilledHashKnowsTheDevice(t *testing.T) {
	var hashes [2]uint64
	for i := range hashes {
		d := New()
		fs := ready(t, d, 0)
		f := durable(t, fs, "a", fill(byte(i), Sector))
		write(t, f, fill(9, Sector), 0)
		var x Doubt
		d.Doubts(&x)
		hashes[i] = d.KilledHash(&x)
	}
	if hashes[0] == hashes[1] {
		t.Error("equal hashes")
	}
}

// A directory whose own name is lost takes everything with it, however durable that was.
func TestDoubtOfTheDirectory(t *testing.T) {
	d, to := New(), New()
	fs := d.FS(0)
	var empty, x, got Doubt
	d.Doubts(&empty)
	nothing := empty.Hash(0)
	must(t, fs.Mkdir(disk.DirLog))
	durable(t, fs, "a", fill(1, 10))
	d.Doubts(&x)
	if x.Len() != 1 || x.Hash(0) != nothing || x.Hash(1) == nothing || x.Describe(0) != "lost: the name log" {
		t.Fatalf("%d in doubt, %s", x.Len(), x.Describe(0))
	}
	for image := range uint64(2) {
		to.TakeImage(&x, image)
		to.Doubts(&got)
		if got.Hash(0) != x.Hash(image) || len(to.Images(nil)) != int(image) {
			t.Errorf("image %d has %d files", image, len(to.Images(nil)))
		}
	}
}

// looks records what an observer sees.
type looks struct {
	d    *Disk
	seen []string
	dev  int
}

func (l *looks) Before(op Op, name string) { l.seen = append(l.seen, op.String()+" "+name) }

func (l *looks) Inside(sectors int64) {
	l.seen = append(l.seen, strings.Repeat("#", int(sectors)))
	for _, m := range l.d.Images(nil) {
		l.dev = len(m.Kernel)
	}
}

// An observer sees every call, and every sector boundary inside writes, with what is written so far.
func TestObserve(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	l := &looks{d: d}
	fs.Observe(l)
	f := mustOpen(t, fs, "a", disk.Create)
	write(t, f, fill(1, 3*Sector), 100) // in four sectors
	if l.dev != 3*Sector {
		t.Errorf("at the last boundary the file has %d bytes, want %d", l.dev, 3*Sector)
	}
	must(t, f.WriteZeros(4*Sector, 2*Sector))
	must(t, f.Sync())
	fs.Kill()
	_, err := fs.List(nil)
	must(t, err)
	fs.Observe(nil)
	mustOpen(t, fs, "a", disk.Read)
	want := "create a,write a,#,##,###,zero a,#,sync a,list "
	if got := strings.Join(l.seen, ","); got != want {
		t.Errorf("saw %q, want %q", got, want)
	}
}

func TestDoubtAllocatesNothing(t *testing.T) {
	d, to := New(), New()
	doubtful(t, d)
	var x Doubt
	work := func() {
		d.Doubts(&x)
		for image := range uint64(8) {
			_ = x.Hash(image)
			to.TakeImage(&x, image)
		}
		to.TakeKilled(d, &x)
		_ = d.KilledHash(&x)
	}
	work()
	if n := testing.AllocsPerRun(20, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
