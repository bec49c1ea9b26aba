package faultfs

import (
	"errors"
	"slices"
	"testing"

	"varve/tiers/disk"
)

// beside makes a log directory beside the first one, with one synced file and one that is not.
func beside(t *testing.T, d *Disk, name string, sync bool) *FS {
	t.Helper()
	x := &FS{}
	d.FS(0).Beside(x, name)
	must(t, x.Mkdir(disk.DirLog))
	durable(t, x, "a.seg", fill('x', 700))
	if sync {
		must(t, x.SyncDir(disk.DirParent))
	}
	return x
}

func dirsOf(t *testing.T, d *Disk) []string {
	t.Helper()
	names, err := d.FS(0).Dirs(nil)
	must(t, err)
	slices.Sort(names)
	return names
}

func TestLogsBesideEachOther(t *testing.T) {
	d := New()
	first := ready(t, d, 0)
	durable(t, first, "a.seg", fill('1', 100))
	b := beside(t, d, "topics/b/1/0", true)
	beside(t, d, "topics/c/2/0", true)
	must(t, b.Mkdir(disk.DirQuarantine))
	must(t, b.Rename("a.seg", "quarantine/a.seg"))
	if _, err := first.Open("a.seg", disk.Read); err != nil {
		t.Errorf("the file of another log went: %v", err)
	}
	if _, err := b.Open("a.seg", disk.Read); !errors.Is(err, disk.ErrNotExist) {
		t.Errorf("a file that was moved away is there: %v", err)
	}
	if got := dirsOf(t, d); !slices.Equal(got, []string{"topics/b/1/0", "topics/c/2/0"}) {
		t.Errorf("log directories %q", got)
	}
	used := d.Used()
	must(t, b.RemoveDir())
	if _, err := b.List(nil); !errors.Is(err, disk.ErrNotExist) {
		t.Errorf("a removed directory is listed: %v", err)
	}
	if err := b.RemoveDir(); !errors.Is(err, disk.ErrNotExist) {
		t.Errorf("a removed directory is removed: %v", err)
	}
	d.FS(0).Kill()
	if got := dirsOf(t, d); len(got) != 1 || d.Used() >= used {
		t.Errorf("log directories %q, %d of %d bytes used", got, d.Used(), used)
	}
}

// A power loss takes entries that were not synced, and brings back those whose removal was not; a sync of
// one entry is not one of another.
func TestEntriesBesideEachOther(t *testing.T) {
	d := New()
	var r Rand
	lost, back, mixed := false, false, false
	for seed := range uint64(64) {
		ready(t, d, 0)
		d.SetFaults(Set(D5DirOps, D5Parent))
		synced := beside(t, d, "synced", true)
		beside(t, d, "lost", false)
		gone := beside(t, d, "gone", true)
		must(t, gone.RemoveDir())
		must(t, gone.SyncDir(disk.DirParent))
		old := beside(t, d, "back", true)
		must(t, old.RemoveDir())
		r.Seed(seed)
		d.PowerLoss(&r, true)
		got := dirsOf(t, d)
		if !slices.Contains(got, "synced") || slices.Contains(got, "gone") {
			t.Fatalf("seed %d: log directories %q", seed, got)
		}
		if f, err := synced.Open("a.seg", disk.Read); err != nil {
			t.Fatalf("seed %d: %v, %v", seed, f, err)
		}
		lost = lost || !slices.Contains(got, "lost")
		if slices.Contains(got, "back") {
			_, err := old.Open("a.seg", disk.Read)
			back, mixed = back || err == nil, mixed || err != nil
		}
	}
	if !lost || !back || !mixed {
		t.Errorf("lost %v, back with its file %v, without it %v: want all", lost, back, mixed)
	}
}

// A directory that is made again under the name of a removed one has nothing of it.
func TestNameOfARemovedLog(t *testing.T) {
	d := New()
	ready(t, d, 0)
	x := beside(t, d, "x", true)
	must(t, x.RemoveDir())
	must(t, x.Mkdir(disk.DirLog))
	if names, err := x.List(nil); err != nil || len(names) != 0 {
		t.Errorf("a new directory holds %v, %v", names, err)
	}
}

// The process dies as one: calls of all its directories count.
func TestBudgetOfAllLogs(t *testing.T) {
	d := New()
	first := ready(t, d, 0)
	x := beside(t, d, "x", true)
	first.SetCallBudget(1, false)
	if _, err := x.List(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := x.List(nil); !errors.Is(err, ErrDead) || !first.Dead() {
		t.Errorf("after its last call: %v, dead %v", err, first.Dead())
	}
	first.Kill()
	if _, err := x.List(nil); err != nil {
		t.Errorf("in the next life: %v", err)
	}
	if d.OpenFiles() != 0 {
		t.Errorf("%d files are open", d.OpenFiles())
	}
}
