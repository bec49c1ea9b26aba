package passthrough

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"varve/faultfs"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/tiertest"
)

// TestContract: with no fault armed nothing changes.
func TestContract(t *testing.T) {
	tiertest.TestFS(t, func(t *testing.T) disk.FS {
		return New(osfs.New(filepath.Join(t.TempDir(), "log")), 1)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world makes a log directory with one file of four bytes, open for writing.
func world(t *testing.T) (*FS, disk.File, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	f := New(osfs.New(dir), 1)
	must(t, f.Mkdir(disk.DirLog))
	x, err := f.Open("a", disk.Create)
	must(t, err)
	t.Cleanup(func() { _ = x.Close() }) // some tests end the process before
	_, err = x.WriteAt([][]byte{[]byte("text")}, 0)
	must(t, err)
	return f, x, dir
}

// call makes one call of a class.
func call(f *FS, op faultfs.Op, x disk.File) error {
	var err error
	switch op {
	case faultfs.OpOpen:
		_, err = f.Open("a", disk.Read)
	case faultfs.OpCreate:
		_, err = f.Open("new", disk.Create)
	case faultfs.OpRead:
		_, err = x.ReadAt(make([]byte, 4), 0)
	case faultfs.OpWrite:
		_, err = x.WriteAt([][]byte{[]byte("01234567"), []byte("89")}, 4)
	case faultfs.OpZero:
		err = x.WriteZeros(4, 100)
	case faultfs.OpTruncate:
		err = x.Truncate(2)
	case faultfs.OpSync:
		err = x.Sync()
	case faultfs.OpSyncDir:
		err = f.SyncDir(disk.DirLog)
	case faultfs.OpRename:
		err = f.Rename("a", "b")
	case faultfs.OpRemove:
		err = f.Remove("a")
	case faultfs.OpMkdir:
		err = f.Mkdir(disk.DirQuarantine)
	case faultfs.OpList:
		_, err = f.List(nil)
	case faultfs.OpFree:
		_, err = f.Free()
	case faultfs.OpLock:
		_, err = f.Lock("lock")
	case faultfs.OpSize:
		_, err = x.Size()
	}
	return err
}

// TestEveryFault injects every supported fault into every class of calls that it can strike.
func TestEveryFault(t *testing.T) {
	struck := faultfs.FaultSet(0)
	for op := range faultfs.OpCount {
		for x := range faultfs.FaultCount {
			if !Supported.Has(x) || !faultfs.CallFaults(op).Has(x) {
				continue
			}
			t.Run(op.String()+"/"+x.String(), func(t *testing.T) {
				f, h, _ := world(t)
				f.Arm(op, x, 0, "")
				err := call(f, op, h)
				quiet := x == faultfs.D9Lie || x == faultfs.D17Next
				if quiet != (err == nil) {
					t.Fatalf("error %v", err)
				}
				if !f.Marks().Has(x) || err != nil && f.Counts().Injected != 1 {
					t.Fatalf("marks %b, %d errors counted", f.Marks(), f.Counts().Injected)
				}
				if full := x == faultfs.D13NoSpace || x == faultfs.D13Short; full != errors.Is(err, disk.ErrNoSpace) {
					t.Fatalf("error %v", err)
				}
				struck |= x.Bit()
				switch x {
				case faultfs.D17Next:
					if err := h.Sync(); !errors.Is(err, syscall.EIO) {
						t.Fatalf("the next sync: %v", err)
					}
					must(t, h.Sync())
				case faultfs.D17ReadOnly:
					if _, err := h.WriteAt([][]byte{{1}}, 0); !errors.Is(err, disk.ErrReadOnly) {
						t.Fatalf("write to a read-only file system: %v", err)
					}
					must(t, call(f, faultfs.OpRead, h))
				}
			})
		}
	}
	if struck != Supported {
		t.Errorf("struck %b of %b", struck, Supported)
	}
}

func TestShortWriteIsReal(t *testing.T) {
	f, h, dir := world(t)
	whole := []byte("text0123456789")
	partial := false
	for range 20 {
		f.Arm(faultfs.OpWrite, faultfs.D11Short, 0, "")
		must(t, h.Truncate(4))
		n, err := h.WriteAt([][]byte{[]byte("01234567"), []byte("89")}, 4)
		if !errors.Is(err, syscall.EIO) || n >= 10 {
			t.Fatalf("wrote %d: %v", n, err)
		}
		got, rerr := os.ReadFile(dir + "/a")
		must(t, rerr)
		if !bytes.Equal(got, whole[:4+n]) {
			t.Fatalf("%d bytes reported, the file holds %q", n, got)
		}
		partial = partial || n > 0
	}
	if !partial {
		t.Fatal("never wrote a part")
	}
}

func TestAppliedThenError(t *testing.T) {
	f, h, dir := world(t)
	f.Arm(faultfs.OpRename, faultfs.D12Applied, 0, "b")
	f.Arm(faultfs.OpWrite, faultfs.D12Applied, 0, "")
	n, err := h.WriteAt([][]byte{[]byte("T")}, 0)
	if n != 1 || !errors.Is(err, syscall.EIO) {
		t.Fatalf("%d, %v", n, err)
	}
	if err := f.Rename("a", "b"); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dir + "/b")
	must(t, err)
	if string(got) != "Text" {
		t.Fatalf("%q", got)
	}
	f.Arm(faultfs.OpCreate, faultfs.D12Applied, 0, "")
	if _, err := f.Open("c", disk.Create); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(dir + "/c"); err != nil {
		t.Fatal("the file was not made")
	}
}

func TestEndAfter(t *testing.T) {
	f, h, dir := world(t)
	ended := 0
	f.EndAfter(1, func() { ended++ })
	must(t, h.Sync())
	n, err := h.WriteAt([][]byte{[]byte("0123456789")}, 4)
	if !errors.Is(err, faultfs.ErrDead) || ended != 1 {
		t.Fatalf("%v, ended %d times", err, ended)
	}
	got, rerr := os.ReadFile(dir + "/a")
	must(t, rerr)
	if len(got) != 4+n || !bytes.HasPrefix([]byte("text0123456789"), got) {
		t.Fatalf("the file holds %q after a write of %d bytes", got, n)
	}
	for op := range faultfs.OpCount {
		if err := call(f, op, h); !errors.Is(err, faultfs.ErrDead) {
			t.Errorf("%v after the end: %v", op, err)
		}
	}
	if ended != 1 {
		t.Fatalf("ended %d times", ended)
	}
}

func TestRatesFromManyGoroutines(t *testing.T) {
	f, h, _ := world(t)
	f.SetRates(faultfs.AllFaults, faultfs.Rates{faultfs.OpRead: 1 << 14, faultfs.OpSize: 1 << 14})
	var wg sync.WaitGroup
	failed := make([]int, 4)
	for i := range failed {
		wg.Go(func() {
			for range 500 {
				if call(f, faultfs.OpRead, h) != nil {
					failed[i]++
				}
			}
		})
	}
	wg.Wait()
	sum := failed[0] + failed[1] + failed[2] + failed[3]
	if sum < 400 || sum > 600 || uint64(sum) != f.Counts().Injected {
		t.Fatalf("%d of 2000 calls failed at a rate of 1/4, %d counted", sum, f.Counts().Injected)
	}
	f.Heal()
	must(t, call(f, faultfs.OpRead, h))
}

func TestUnsupported(t *testing.T) {
	f, _, _ := world(t)
	defer func() {
		if recover() == nil {
			t.Fatal("armed a fault that needs a device")
		}
	}()
	f.Arm(faultfs.OpSync, faultfs.D8Misdirect, 0, "")
}
