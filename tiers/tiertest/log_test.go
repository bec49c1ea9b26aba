package tiertest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/tiertest"
)

// act makes one random request and says all that came of it.
func (l *pureLog) act(r *faultfs.Rand) string {
	text := ""
	switch k := r.Below(20); {
	case k < 12:
		for range 1 + r.Below(4) {
			text += fmt.Sprint("append ", l.append(int(8+r.Below(3000))), " ")
		}
		l.pump()
	case k == 12:
		text = fmt.Sprint("roll ", l.log.Roll(l.now))
		l.pump()
	case k == 13:
		before := core.Offset(r.Below(uint64(l.log.End()) + 2))
		text = fmt.Sprint("trim ", before, " ", l.log.Trim(l.now, before))
		l.pump()
	case k < 17:
		l.pass(core.Time(r.Below(400_000_000)))
	case k == 17:
		l.log.Close(l.now)
		l.pump()
		text = fmt.Sprint("close ", l.log.Phase(), l.log.Err())
		l.kill()
		l.open()
	default:
		l.kill()
		l.open()
	}
	return fmt.Sprintf("%s| %v start %d committed %d end %d frontier %d | %s", text, l.log.Phase(),
		l.log.Start(), l.log.Committed(), l.log.End(), l.log.Frontier(), l.outcomes)
}

// TestLogAgreesOnBothDisks runs the same random requests on the simulated disk, with no faults, and
// on a real one: every answer, every record and every byte of every file must be the same.
func TestLogAgreesOnBothDisks(t *testing.T) {
	seeds := 0
	rolls, trims, lives := uint64(0), 0, 0
	for seed := uint64(1); seed <= 12; seed++ {
		var draw [2]faultfs.Rand
		draw[0].Seed(seed)
		draw[1].Seed(seed)
		cfg := pureConfig()
		cfg.Sync = segment.SyncMode(seed % 3)
		cfg.Preallocate = seed%2 == 0
		d := faultfs.New()
		dir := t.TempDir()
		sides := [2]*pureLog{newPureLog(t, d.FS(0), cfg), newPureLog(t, osfs.New(filepath.Join(dir, "log")), cfg)}
		for _, l := range sides {
			l.mustOpen()
		}
		for i := range 40 {
			simulated, actual := sides[0].act(&draw[0]), sides[1].act(&draw[1])
			if simulated != actual {
				t.Fatalf("seed %d, request %d\nsimulated %s\nreal      %s", seed, i, simulated, actual)
			}
		}
		for _, l := range sides {
			l.wantAcked()
		}
		compareFiles(t, d, filepath.Join(dir, "log"))
		rolls += sides[1].log.Stats().Rolls
		lives += int(sides[1].log.Epoch())
		if sides[1].log.Start() > 0 {
			trims++
		}
		for _, l := range sides {
			l.kill()
		}
		seeds++
	}
	if rolls == 0 || trims == 0 || lives < 2*seeds {
		t.Errorf("%d seeds, %d rolls in last lives, %d trimmed, %d lives: too little happens", seeds, rolls, trims, lives)
	}
	t.Logf("%d seeds, %d lives, %d logs trimmed", seeds, lives, trims)
}

// compareFiles wants the same names with the same bytes on both.
func compareFiles(t *testing.T, d *faultfs.Disk, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	images := d.Images(nil)
	if len(images) != len(entries) {
		t.Errorf("%d files simulated, %d on the real disk", len(images), len(entries))
	}
	for _, m := range images {
		b, err := os.ReadFile(filepath.Join(dir, m.Name))
		if err != nil || string(b) != string(m.Kernel) {
			t.Errorf("%s differs, %v: %d bytes simulated, %d real", m.Name, err, len(m.Kernel), len(b))
		}
	}
}

// ballast takes space, up to the last byte if bytes is 0.
func ballast(t *testing.T, path string, bytes int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for n := 0; bytes == 0 || n < bytes; n += len(block) {
		if _, err := f.Write(block); err != nil {
			if bytes == 0 && errors.Is(err, unix.ENOSPC) {
				return
			}
			t.Fatal(err)
		}
	}
}

// fillUp appends until the log has no space, and wants every failure to be definite and to say so.
func (l *pureLog) fillUp() {
	l.t.Helper()
	before := len(l.acked)
	for n := 0; ; n++ {
		refused := l.refused
		err := l.append(3000)
		if err != nil && !errors.Is(err, core.ErrNoSpace) {
			l.t.Fatalf("an append on a full disk gets %v", err)
		}
		l.pump()
		if l.refused > refused {
			break
		}
		if n > 10000 {
			l.t.Fatal("the disk never gets full")
		}
	}
	if l.log.Phase() != core.Ready || len(l.acked) == before {
		l.t.Fatalf("phase %v, %v; %d acked before it was full", l.log.Phase(), l.log.Err(), len(l.acked)-before)
	}
	l.wantAcked()
}

// goOn wants appends to work again by themselves.
func (l *pureLog) goOn() {
	l.t.Helper()
	for range 3 {
		l.pass(1_500_000_000) // the free space is looked at now and then
	}
	before := len(l.acked)
	for range 10 {
		if err := l.append(3000); err != nil {
			l.t.Fatalf("space is back: %v", err)
		}
		l.pump()
	}
	if len(l.acked) != before+10 {
		l.t.Fatalf("%d of 10 appends acked after space is back: %s", len(l.acked)-before, l.outcomes)
	}
	l.wantAcked()
}

// TestFullDisk: a real file system runs full under a log, gets space again, by a file that goes and
// by Trim, and is reopened when it is full to the last byte. No append that was acked is lost and no
// other one appears.
func TestFullDisk(t *testing.T) {
	for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic} {
		for _, minFree := range []int64{0, 256 << 10} {
			t.Run(fmt.Sprintf("%v/min_free_bytes=%d", mode, minFree), func(t *testing.T) { fullDisk(t, mode, minFree) })
		}
	}
}

func fullDisk(t *testing.T, mode segment.SyncMode, minFree int64) {
	dir := tiertest.Tmpfs(t, 0, "size=4m")
	cfg := pureConfig()
	cfg.Sync, cfg.MinFreeBytes = mode, minFree
	cfg.SegmentBytes, cfg.PrepareBytes = 128<<10, 32<<10
	ballast(t, dir+"/one", 1<<20)
	ballast(t, dir+"/two", 512<<10)
	l := newPureLog(t, osfs.New(dir+"/log"), cfg)
	l.mustOpen()
	l.fillUp()
	if err := os.Remove(dir + "/one"); err != nil {
		t.Fatal(err)
	}
	l.goOn()
	l.fillUp()
	full := len(l.acked)

	// Trim works with no free byte, and gives some.
	ballast(t, dir+"/rest", 0)
	if err := l.log.Trim(l.now, core.Offset(full/2)); err != nil {
		t.Fatal(err)
	}
	l.pump()
	if l.log.Start() != core.Offset(full/2) {
		l.pass(1_500_000_000)
	}
	if l.log.Start() != core.Offset(full/2) {
		t.Fatalf("start %d after a trim to %d on a full disk", l.log.Start(), full/2)
	}
	l.goOn()

	// Reopen with no free byte: what is proven is served at once, the rest when space is back.
	l.fillUp()
	ballast(t, dir+"/last", 0)
	l.kill()
	l.open()
	if l.log.Phase() != core.Recovering {
		t.Fatalf("open on a full disk ends in %v: %v", l.log.Phase(), l.log.Err())
	}
	proven := l.contents()
	for i, n := range proven {
		if n != l.acked[int(l.log.Start())+i] {
			t.Fatalf("record %d holds %d while recovering", int(l.log.Start())+i, n)
		}
	}
	if mode == segment.OnCommit && int(l.log.Start())+len(proven) < len(l.acked)-1 {
		t.Errorf("%d records are served while recovering, %d were acked", len(proven), len(l.acked)-int(l.log.Start()))
	}
	if err := errors.Join(os.Remove(dir+"/last"), os.Remove(dir+"/rest"), os.Remove(dir+"/two")); err != nil {
		t.Fatal(err)
	}
	l.pass(1_500_000_000)
	if l.log.Phase() != core.Ready {
		t.Fatalf("space is back, phase %v: %v", l.log.Phase(), l.log.Err())
	}
	l.wantAcked()
	l.goOn()
	l.kill()
	t.Logf("%d acked, %d refused, start %d", len(l.acked), l.refused, l.log.Start())
}

// TestContractOnASmallDisk runs the contract suite on a real tmpfs of 4 MiB.
func TestContractOnASmallDisk(t *testing.T) {
	base := tiertest.Tmpfs(t, 0, "size=4m")
	n := 0
	tiertest.TestFS(t, func(t *testing.T) disk.FS {
		n++
		dir := fmt.Sprintf("%s/%d", base, n)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) }) // 4 MiB are not much
		return osfs.New(dir + "/log")
	})
}
