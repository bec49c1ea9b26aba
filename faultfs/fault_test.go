package faultfs

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"varve/tiers/disk"
)

// call makes one call of a class that succeeds where no fault strikes.
func call(fs *FS, op Op, f *File) error {
	var err error
	switch op {
	case OpOpen:
		var g disk.File
		if g, err = fs.Open("a", disk.Read); err == nil {
			err = g.Close()
		}
	case OpCreate:
		var g disk.File
		if g, err = fs.Open("new", disk.Create); err == nil {
			err = g.Close()
		}
	case OpRead:
		_, err = f.ReadAt(make([]byte, 700), 300)
	case OpWrite:
		_, err = f.WriteAt([][]byte{fill(7, 600), fill(8, 900)}, 300)
	case OpZero:
		err = f.WriteZeros(300, 1500)
	case OpTruncate:
		err = f.Truncate(300)
	case OpSync:
		err = f.Sync()
	case OpSyncDir:
		err = fs.SyncDir(disk.DirLog)
	case OpRename:
		err = fs.Rename("b", "c")
	case OpRemove:
		err = fs.Remove("b")
	case OpMkdir:
		err = fs.Mkdir(disk.DirQuarantine)
	case OpList:
		_, err = fs.List(nil)
	case OpFree:
		_, err = fs.Free()
	case OpLock:
		var l io.Closer
		if l, err = fs.Lock("lock"); err == nil {
			err = l.Close()
		}
	case OpSize:
		_, err = f.Size()
	}
	return err
}

// TestEveryCallFault arms every fault on every class of calls that it can strike.
func TestEveryCallFault(t *testing.T) {
	silent := Set(D8Misdirect, D9Lie, D17Next)
	none := Set(D15Error, D14ReadOnce)
	d := New()
	for op := Op(0); op < OpCount; op++ {
		for f := Fault(1); f < FaultCount; f++ {
			if !CallFaults(op).Has(f) {
				continue
			}
			t.Run(op.String()+"/"+f.String(), func(t *testing.T) {
				for seed := uint64(0); seed < 20; seed++ {
					fs := ready(t, d, 0)
					d.Seed(seed)
					durable(t, fs, "b", fill(1, 2048))
					file := durable(t, fs, "a", fill(1, 2048))
					write(t, file, fill(2, 1024), 512)
					before := d.KernelHash()
					d.FailNext(op, f)
					err := call(fs, op, file)
					switch {
					case d.Armed() != 0:
						t.Fatal("the fault did not strike")
					case silent.Has(f) != (err == nil):
						t.Fatalf("error %v", err)
					case err != nil && !d.Marks().Has(f):
						t.Fatal("an error and no mark")
					case err != nil && d.Counts().Injected == 0:
						t.Fatal("an error that was not counted")
					case none.Has(f) && d.KernelHash() != before:
						t.Fatal("a call without effect had one")
					case f == D13NoSpace || f == D13Short:
						wantErr(t, err, disk.ErrNoSpace)
					}
					if f == D12Applied {
						after := d.KernelHash()
						fresh := ready(t, d, 0)
						durable(t, fresh, "b", fill(1, 2048))
						file := durable(t, fresh, "a", fill(1, 2048))
						write(t, file, fill(2, 1024), 512)
						must(t, call(fresh, op, file))
						if d.KernelHash() != after {
							t.Fatal("applied and failed differs from applied")
						}
					}
				}
			})
		}
	}
}

func TestShortWrites(t *testing.T) {
	for _, f := range []Fault{D11Short, D11Interrupt, D13Short} {
		d := New()
		partial := 0
		for seed := uint64(0); seed < 30; seed++ {
			fs := ready(t, d, 0)
			d.Seed(seed)
			file := durable(t, fs, "a", nil)
			d.FailNext(OpWrite, f)
			n, err := file.WriteAt([][]byte{fill(1, 1000), fill(2, 1000)}, 0)
			if err == nil || n >= 2000 {
				t.Fatalf("%v: wrote %d, %v", f, n, err)
			}
			whole := append(fill(1, 1000), fill(2, 1000)...)
			if got := image(d, "a").Kernel; !bytes.Equal(got, whole[:n]) {
				t.Fatalf("%v: %d bytes applied, %d reported", f, len(got), n)
			}
			if n > 0 {
				partial++
			}
		}
		if partial < 10 {
			t.Fatalf("%v: only %d of 30 writes were applied in part", f, partial)
		}
	}
}

func TestArmSkipsAndSuffix(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	a, b := durable(t, fs, "a.seg", nil), durable(t, fs, "super.0", nil)
	d.Arm(OpWrite, D15Error, 1, ".seg")
	for i, f := range []*File{b, a, b, a, a} {
		_, err := f.WriteAt([][]byte{{1}}, 0)
		if (err != nil) != (i == 3) {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Fatal("a fault that cannot strike a call was armed")
		}
	}()
	d.FailNext(OpRead, D17Clean)
}

func TestRates(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 512))
	rates := Rates{OpWrite: 1 << 14}
	d.SetRates(&rates)
	struck := func() (n int) {
		for i := range 1000 {
			d.Seed(uint64(i))
			if _, err := f.WriteAt([][]byte{{1}}, 0); err != nil {
				n++
			}
		}
		return n
	}
	if n := struck(); n != 0 {
		t.Fatalf("%d faults with all switched off", n)
	}
	d.SetFaults(Set(D15Error, D17Clean))
	if n := struck(); n < 200 || n > 300 {
		t.Fatalf("%d faults in 1000 calls at a rate of 1/4", n)
	}
	if d.Marks() != Set(D15Error) {
		t.Fatalf("marks %b", d.Marks())
	}
	d.Heal()
	if n := struck(); n != 0 {
		t.Fatalf("%d faults after healing", n)
	}
}

func TestUnreadableSector(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 4096))
	d.FailNext(OpRead, D14ReadBad)
	p := make([]byte, 4096)
	_, err := f.ReadAt(p, 0)
	wantErr(t, err, ErrIO)
	_, err = f.ReadAt(p, 0)
	wantErr(t, err, ErrIO) // for good
	lose(d)
	f = mustOpen(t, fs, "a", disk.Write)
	_, err = f.ReadAt(p, 0)
	wantErr(t, err, ErrIO)
	good := 0
	for off := int64(0); off < 4096; off += Sector {
		if _, err := f.ReadAt(p[:Sector], off); err == nil {
			good++
		}
	}
	if good != 7 {
		t.Fatalf("%d of 8 sectors readable, want 7", good)
	}
	write(t, f, fill(2, 4096), 0)
	_, err = f.ReadAt(p, 0)
	must(t, err)
	wantMark(t, d, D14ReadBad)
}

func TestCapacity(t *testing.T) {
	d := New()
	fs := ready(t, d, 10_000)
	f := durable(t, fs, "a", fill(1, 6000))
	free, err := fs.Free()
	must(t, err)
	if free != 4000 {
		t.Fatalf("%d bytes free, want 4000", free)
	}
	n, err := f.WriteAt([][]byte{fill(2, 3000), fill(3, 3000)}, 6000)
	wantErr(t, err, disk.ErrNoSpace)
	if n != 3728 || len(image(d, "a").Kernel) != 9728 { // whole sectors
		t.Fatalf("wrote %d bytes where 4000 were free, of which 3728 end at a sector", n)
	}
	write(t, f, fill(4, 10_000), 0) // overwriting needs no space
	_, err = fs.Open("b", disk.Create)
	wantErr(t, err, disk.ErrNoSpace)
	wantErr(t, f.WriteZeros(9999, 2), disk.ErrNoSpace)
	must(t, f.Truncate(5000))
	must(t, f.WriteZeros(5000, 5000))
	must(t, fs.Remove("a"))
	if d.Used() != 10_000 {
		t.Fatal("an open file gave its space back")
	}
	must(t, f.Close())
	if d.Used() != 0 {
		t.Fatalf("%d bytes used by nothing", d.Used())
	}
	lose(d) // with all names kept: the file is gone for good
	if d.Used() != 0 {
		t.Fatalf("%d bytes used after the power loss", d.Used())
	}
	wantMark(t, d, D13Capacity)
}

func TestCallBudget(t *testing.T) {
	d := New()
	for n := int64(0); n < 4; n++ {
		fs := ready(t, d, 0)
		fs.SetCallBudget(n, false)
		f, err := fs.Open("a", disk.Create)
		if n > 0 {
			_, err = f.WriteAt([][]byte{fill(1, 512)}, 0)
		}
		if n > 1 {
			err = f.Sync()
		}
		if n > 2 {
			err = fs.SyncDir(disk.DirLog)
		}
		wantErr(t, err, ErrDead)
		if !fs.Dead() || fs.Calls() != uint64(n) {
			t.Fatalf("dead %v after %d calls, want %d", fs.Dead(), fs.Calls(), n)
		}
		for op := Op(0); n > 0 && op < OpCount; op++ {
			wantErr(t, call(fs, op, f.(*File)), ErrDead)
		}
		if m := image(d, "a"); len(m.Kernel) != min(1, max(0, int(n)-1))*512 || (len(m.Device) > 0) != (n > 2) {
			t.Fatalf("after %d calls: %d bytes, %d on the device", n, len(m.Kernel), len(m.Device))
		}
		wantMark(t, d, D19Dead)
		fs.Kill()
		if d.OpenFiles() != 0 || fs.Dead() {
			t.Fatal("the next life is not fresh")
		}
		must(t, fs.SyncDir(disk.DirLog))
	}
}

func TestTornLastCall(t *testing.T) {
	d := New()
	sizes := map[int]bool{}
	for seed := uint64(0); seed < 40; seed++ {
		fs := ready(t, d, 0)
		d.Seed(seed)
		f := durable(t, fs, "a", fill(1, 100))
		fs.SetCallBudget(0, true)
		_, err := f.WriteAt([][]byte{fill(2, 2000)}, 100)
		wantErr(t, err, ErrDead)
		got := image(d, "a").Kernel
		if len(got) != 100 && len(got)%Sector != 0 || !bytes.Equal(got, append(fill(1, 100), fill(2, len(got)-100)...)) {
			t.Fatalf("torn at %d", len(got))
		}
		sizes[len(got)] = true
		wantMark(t, d, D19TornCall)
		wantErr(t, f.Sync(), ErrDead)
	}
	if len(sizes) < 4 {
		t.Fatalf("sizes %v", sizes)
	}
}

// A write within one sector is done or not: a death in it tears nothing.
func TestNoTearInsideASector(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	f := durable(t, fs, "a", fill(1, 100))
	fs.SetCallBudget(0, true)
	_, err := f.WriteAt([][]byte{fill(2, 412)}, 100)
	wantErr(t, err, ErrDead)
	if got := image(d, "a").Kernel; !bytes.Equal(got, fill(1, 100)) {
		t.Errorf("%d bytes", len(got))
	}
	if d.Marks().Has(D19TornCall) {
		t.Error("marked as torn")
	}
	wantMark(t, d, D19Dead)
}

func TestTornLastSync(t *testing.T) {
	d := New()
	partial := 0
	for seed := uint64(0); seed < 40; seed++ {
		fs := ready(t, d, 0)
		d.Seed(seed)
		f := durable(t, fs, "a", fill(1, 4096))
		write(t, f, fill(2, 4096), 0)
		fs.SetCallBudget(0, true)
		wantErr(t, f.Sync(), ErrDead)
		lose(d)
		if p := image(d, "a").Kernel; !bytes.Equal(p, fill(1, 4096)) && !bytes.Equal(p, fill(2, 4096)) {
			partial++
		}
	}
	if partial < 10 {
		t.Fatalf("written in part in %d of 40", partial)
	}
}

func TestCounts(t *testing.T) {
	d := New()
	for range 2 {
		fs := ready(t, d, 0)
		f := mustOpen(t, fs, "a", disk.Create)
		write(t, f, fill(1, 700), 0)
		must(t, f.WriteZeros(1024, 512))
		must(t, f.Sync())
		_, err := f.ReadAt(make([]byte, 100), 0)
		must(t, err)
		must(t, fs.SyncDir(""))
		must(t, fs.Rename("a", "b"))
		must(t, fs.Remove("b"))
		want := Counts{WriteBytes: 700, ZeroBytes: 512, ReadBytes: 100}
		for _, op := range []Op{OpCreate, OpWrite, OpZero, OpSync, OpRead, OpSyncDir, OpRename, OpRemove} {
			want.Calls[op] = 1
		}
		if *d.Counts() != want {
			t.Fatalf("counts %+v, want %+v", *d.Counts(), want)
		}
	}
	d.ResetCounts()
	if *d.Counts() != (Counts{}) {
		t.Fatal("counts after ResetCounts")
	}
}

func TestTwoProcesses(t *testing.T) {
	d := New()
	a := ready(t, d, 0)
	b := d.FS(1)
	_, err := a.Lock("lock")
	must(t, err)
	_, err = b.Lock("lock")
	wantErr(t, err, disk.ErrLocked)
	wantMark(t, d, D21Locked)
	f := mustOpen(t, a, "x", disk.Create)
	write(t, f, fill(1, 10), 0)
	g := mustOpen(t, b, "x", disk.Read)
	p := make([]byte, 10)
	_, err = g.ReadAt(p, 0)
	must(t, err)
	a.Kill()
	if _, err := f.ReadAt(p, 0); err == nil {
		t.Fatal("a dead process reads")
	}
	_, err = b.Lock("lock")
	must(t, err)
	_, err = g.ReadAt(p, 0)
	must(t, err)
	if d.OpenFiles() != 2 {
		t.Fatalf("%d handles open, want 2", d.OpenFiles())
	}
}

func TestRot(t *testing.T) {
	d := New()
	var r Rand
	seen := 0
	for seed := uint64(0); seed < 40; seed++ {
		fs := ready(t, d, 0)
		r.Seed(seed)
		durable(t, fs, "super.0", fill(1, 512))
		durable(t, fs, "a.seg", fill(1, 2048))
		x, ok := d.Rot(&r, ".seg")
		if !ok || x.Name != "a.seg" {
			t.Fatalf("struck %v, %v", x, ok)
		}
		m := image(d, "a.seg")
		if m.Device[x.Pos] != 1^1<<x.Bit || (m.Kernel[x.Pos] != 1) != x.Seen {
			t.Fatalf("the bit at %d: device %x, kernel %x, seen %v", x.Pos, m.Device[x.Pos], m.Kernel[x.Pos], x.Seen)
		}
		if x.Seen {
			seen++
		}
		lose(d)
		if image(d, "a.seg").Kernel[x.Pos] != 1^1<<x.Bit {
			t.Fatal("a power loss mended it")
		}
	}
	if seen < 10 || seen > 30 {
		t.Fatalf("seen at once in %d of 40", seen)
	}
	ready(t, d, 0)
	if _, ok := d.Rot(&r, ""); ok {
		t.Fatal("rot with no file")
	}
	if d.RotAt("a.seg", 0, 0) {
		t.Fatal("rot in a missing file")
	}
}

func TestFaultNames(t *testing.T) {
	for f := Fault(0); f < FaultCount; f++ {
		if g, ok := ParseFault(f.String()); !ok || g != f {
			t.Errorf("fault %d is called %q, which is %v", f, f.String(), g)
		}
	}
	if _, ok := ParseFault("D99"); ok || !errors.Is(errFull, disk.ErrNoSpace) {
		t.Error("an unknown name is a fault")
	}
}
