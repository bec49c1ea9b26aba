package warm_test

import (
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/core/warmentry"
	"varve/faultfs"
	"varve/sim/fakevalkey"
	"varve/tiers/disk"
	"varve/tiers/valkey"
	"varve/tiers/warm"
)

// TestEntriesThatDoNotCount: what is in the stream beside good entries is read, and said to be what it
// is. The core passes over it.
func TestEntriesThatDoNotCount(t *testing.T) {
	server := fakevalkey.New(func(n uint64) uint64 { return 0 })
	server.Reset(fakevalkey.Config{})
	stream := func() *valkey.Store {
		s, err := valkey.New("log", server, valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 1 << 16, Timeout: 1e9})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	side := stream()
	store := warm.NewStore(stream(), side, disk.NewStore(faultfs.New().FS(0)))
	run := func(e core.Effect) {
		t.Helper()
		if err := store.Run(e); err != nil {
			t.Fatal(err)
		}
	}
	marker := warmentry.Entry{
		Kind: warmentry.Marker, LogID: segment.LogID{1}, Generation: 5, Epoch: 3, Nonce: 7,
		Lineage: []segment.Lineage{{Epoch: 3, First: 0}},
	}
	run(&core.FenceWarm{Marker: marker})
	good, err := warmentry.AppendHeader(nil, &marker)
	if err != nil {
		t.Fatal(err)
	}
	values := map[core.WarmEntryState][]byte{
		core.WarmDamaged: append([]byte(nil), good...), core.WarmForeign: []byte("hello"), core.WarmNewer: append([]byte(nil), good...),
	}
	values[core.WarmDamaged][40] ^= 1
	newer := values[core.WarmNewer]
	newer[8] = 2
	sum := segment.PayloadCRC(newer[:len(newer)-4])
	for i := range 4 {
		newer[len(newer)-4+i] = byte(sum >> (8 * i))
	}
	want := []core.WarmEntryState{core.WarmGood}
	for _, state := range [...]core.WarmEntryState{core.WarmDamaged, core.WarmForeign, core.WarmNewer} {
		server.Foreign(side.Key(), "e", string(values[state]))
		want = append(want, state)
	}
	server.Foreign(side.Key(), "other", "x")
	want = append(want, core.WarmForeign)

	read := &core.ReadWarm{Front: true}
	run(read)
	if len(read.Entries) != len(want) || read.More {
		t.Fatalf("%d entries, want %d; more: %v", len(read.Entries), len(want), read.More)
	}
	for i := range want {
		if got := read.Entries[i].State; got != want[i] {
			t.Errorf("entry %d is of state %d, want %d", i, got, want[i])
		}
	}
	if h := &read.First.Header; read.First.State != core.WarmGood || h.Generation != 5 || h.Nonce != 7 || len(h.Lineage) != 1 {
		t.Errorf("the first entry is %+v", read.First)
	}
	probe := new(core.ProbeWarm)
	run(probe)
	if probe.Top.State != core.WarmForeign || probe.LastID.Generation <= 5 {
		t.Errorf("the top is %+v, last id %v", probe.Top, probe.LastID)
	}
	server.SetType(side.Key())
	run(probe)
	if probe.Top.State != core.WarmForeign {
		t.Errorf("another type is %+v", probe.Top)
	}
}
