package faultfs

import (
	"bytes"
	"testing"

	"varve/tiers/disk"
)

// The states tell why kernel and device differ: not synced yet, given up by a failed sync, unreadable;
// and which names the device holds.
func TestStates(t *testing.T) {
	d := New()
	fs := ready(t, d, 0)
	a := mustOpen(t, fs, "a", disk.Create)
	block := bytes.Repeat([]byte{1}, Sector)
	want := func(live, durable bool, states ...SectorState) {
		t.Helper()
		all := d.States(nil)
		if len(all) != 1 || all[0].Name != "a" || all[0].Live != live || all[0].Durable != durable {
			t.Fatalf("found %+v, want one a, live %t, durable %t", all, live, durable)
		}
		for s, state := range states {
			if got := all[0].State(int64(s)); got != state {
				t.Errorf("sector %d: state %d, want %d", s, got, state)
			}
		}
	}
	write(t, a, block, 0)
	want(true, false, SectorDirty, SectorClean)
	must(t, a.Sync())
	must(t, fs.SyncDir(disk.DirLog))
	want(true, true, SectorClean)

	for d.States(nil)[0].State(1) != SectorGhost { // a failed sync may have written the sector
		write(t, a, block, 1*Sector)
		d.FailNext(OpSync, D17Clean)
		wantErr(t, a.Sync(), ErrIO)
	}
	write(t, a, block, 2*Sector)
	want(true, true, SectorClean, SectorGhost, SectorDirty, SectorClean)

	d.FailNext(OpRead, D14ReadBad)
	_, err := a.ReadAt(block, 0)
	wantErr(t, err, ErrIO)
	want(true, true, SectorBad)

	must(t, fs.Remove("a"))
	want(false, true)
	mustOpen(t, fs, "a", disk.Create)
	if all := d.States(nil); len(all) != 2 || !all[0].Live || all[0].Durable || all[1].Live || !all[1].Durable {
		t.Errorf("a name of two files: %+v", all)
	}
}
