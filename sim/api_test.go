package sim

import (
	"testing"

	"varve/core"
	"varve/core/topics"
	"varve/faultfs"
	"varve/sim/fakebucket"
	"varve/sim/fakevalkey"
)

// The counts name the marks exactly as the registry does, each at its own place.
func TestMarkCountsFollowTheRegistry(t *testing.T) {
	var all Marks
	all.Disk = ^faultfs.FaultSet(0)
	all.Core = core.MarkSet{^uint64(0), ^uint64(0)}
	all.Bucket, all.Tiers = ^fakebucket.FaultSet(0), Tiers{core.TierCold: true, core.TierWarm: true}
	all.Server = ^fakevalkey.FaultSet(0)
	all.Sim, all.Topics = ^uint64(0), ^topics.MarkSet(0)
	var c MarkCounts
	c.Add(&all)
	list := c.List()
	names := registry()
	if len(list) != len(names) {
		t.Fatalf("%d counts for %d marks", len(list), len(names))
	}
	for i, e := range names {
		if list[i].Name != e.name || list[i].Runs != 1 {
			t.Errorf("mark %d is %+v, want one run of %q", i, list[i], e.name)
		}
	}
	var one Marks
	one.add(MarkHang)
	var d MarkCounts
	d.Add(&one)
	d.Add(&one)
	c.Join(&d)
	for _, m := range c.List() {
		want := int64(1)
		if m.Name == "sim hang" {
			want = 3
		}
		if m.Runs != want {
			t.Errorf("%s: %d runs, want %d", m.Name, m.Runs, want)
		}
	}
}

// Hashes has one entry for each HashEvery events, and is a prefix of the same run's every time.
func TestHashes(t *testing.T) {
	var s Schedule
	Expand(&s, 3, 200)
	w := NewWorld()
	r := w.Run(&s)
	if got, want := len(w.Hashes()), r.Events/HashEvery; got != want {
		t.Fatalf("%d hashes after %d events, want %d", got, r.Events, want)
	}
}

// Each mark that List names can be put back.
func TestMarkCountsPut(t *testing.T) {
	var all, back MarkCounts
	for _, e := range registry() {
		if !all.Put(e.name, 7) {
			t.Errorf("no mark %q", e.name)
		}
	}
	for i, m := range all.List() {
		if m.Runs != 7 || !back.Put(m.Name, int64(i)) {
			t.Errorf("mark %q is %d", m.Name, m.Runs)
		}
	}
	for i, m := range back.List() {
		if i > 0 && m.Runs != int64(i) {
			t.Errorf("mark %q is %d, want %d", m.Name, m.Runs, i)
		}
	}
	if all.Put("disk D99", 1) || all.Put("", 1) {
		t.Error("a mark that is none")
	}
}
