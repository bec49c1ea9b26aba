package sim

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"varve/core"
	"varve/faultfs"
)

// reaches reports whether a schedule, run in w, reaches a mark and violates nothing.
func reaches(w *World, s *Schedule, mark func(m *Marks) bool) bool {
	r := w.Run(s)
	return r.Violation == "" && mark(&r.Marks)
}

func has(m *Marks, x Mark) bool { return m.Sim>>x&1 != 0 }

// A run that reaches a rare branch stands for one that fails: what has to stay is known then. Each
// result is short, plain, and made twice the same.
func TestShrink(t *testing.T) {
	w := NewWorld()
	for _, x := range []struct {
		name   string
		mark   func(m *Marks) bool
		events int // at most
		kinds  []Kind
	}{
		{"nothing", func(*Marks) bool { return true }, 0, nil},
		{"a pause", func(m *Marks) bool { return has(m, MarkPause) }, 1, []Kind{Pause}},
		{"a failed sync", func(m *Marks) bool { return m.Disk.Has(faultfs.D17Clean) && m.Core.Has(core.MarkPoisonSync) }, 3, []Kind{Arm}},
		{"a rescue", func(m *Marks) bool { return m.Core.Has(core.MarkRescue) }, 4, []Kind{Append}},
		{"a rescue of a rescue", func(m *Marks) bool { return m.Core.Has(core.MarkRescueReplacement) }, 6, []Kind{Append}},
		{"a roll-back", func(m *Marks) bool { return m.Core.Has(core.MarkRollback) }, 3, []Kind{Arm}},
		{"rot that is refused", func(m *Marks) bool {
			return m.Disk&damage == faultfs.D7Rot.Bit() && has(m, MarkOpenRefused)
		}, 6, []Kind{Rot}},
	} {
		var s Schedule
		seed := uint64(0)
		for Expand(&s, seed, 0); !reaches(w, &s, x.mark) && seed < 5000; Expand(&s, seed, 0) {
			seed++
		}
		before := len(s.Events)
		tries := Shrink(&s, 50_000, func(s *Schedule) bool { return reaches(w, s, x.mark) })
		text := s.AppendText(nil)
		t.Logf("%s: seed %d, %d events of %d, %d tries\n%s", x.name, seed, len(s.Events), before, tries, text)
		if len(s.Events) > x.events || tries >= 50_000 {
			t.Errorf("%s: seed %d: %d events of %d after %d tries, want %d", x.name, seed, len(s.Events), before, tries, x.events)
		}
		for _, kind := range x.kinds {
			if !slices.ContainsFunc(s.Events, func(e Event) bool { return e.Kind == kind }) {
				t.Errorf("%s: no %s is left", x.name, kind)
			}
		}
		parsed, err := Parse(text)
		if err != nil || !reaches(NewWorld(), parsed, x.mark) {
			t.Errorf("%s: the text does not do what the schedule does: %v", x.name, err)
		}
		var again Schedule
		Expand(&again, seed, 0)
		Shrink(&again, 50_000, func(s *Schedule) bool { return reaches(w, s, x.mark) })
		if !bytes.Equal(again.AppendText(nil), text) {
			t.Errorf("%s: another result the second time", x.name)
		}
	}
}

// Schedules that stayed long until what is to be filled could become smaller, or a later event throw
// other dice, or all the tries went into the dice of a death.
func TestShrinkKept(t *testing.T) {
	w := NewWorld()
	for _, x := range []struct {
		file   string
		mark   func(m *Marks) bool
		events int // at most; without that: 30, 10, 4
	}{
		{"no-room-for-a-footer", func(m *Marks) bool {
			return m.Disk == faultfs.Set(faultfs.D13Capacity) && m.Core.Has(core.MarkSealFailed)
		}, 2},
		{"full-segment", func(m *Marks) bool { return m.Core.Has(core.MarkRollSize) }, 1},
		{"deaths-in-saves", func(m *Marks) bool {
			return has(m, MarkSaveCrash) && has(m, MarkPower) && m.Core.Has(core.MarkSuperOneSlot)
		}, 3},
		{"doom-with-dice", func(m *Marks) bool { return has(m, MarkRot) && has(m, MarkOpenRefused) }, 4},
	} {
		text, err := os.ReadFile("testdata/shrink/" + x.file + ".schedule")
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if err != nil || !reaches(w, s, x.mark) {
			t.Errorf("%s: not the run that was kept: %v", x.file, err)
			continue
		}
		before := len(s.Events)
		if tries := Shrink(s, 50_000, func(s *Schedule) bool { return reaches(w, s, x.mark) }); len(s.Events) > x.events || tries == 50_000 {
			t.Errorf("%s: %d events of %d after %d tries, want %d\n%s", x.file, len(s.Events), before, tries, x.events, s.AppendText(nil))
		}
	}
}

// What does not matter is taken away, whatever it is, and nothing else is.
func TestShrinkMakesPlain(t *testing.T) {
	var s Schedule
	for seed := uint64(0); s.Header.Switches&(1<<SwConfig) == 0 || len(s.Events) < 100 || s.Header.Rates == (faultfs.Rates{}); seed++ {
		Expand(&s, seed, 0)
	}
	var want Event
	for i := range s.Events {
		if e := &s.Events[i]; e.Kind == Append && e.A > 8 && e.At > 2*second/1000 {
			want = *e
		}
	}
	Shrink(&s, 50_000, func(s *Schedule) bool {
		return slices.ContainsFunc(s.Events, func(e Event) bool { return e.Sub == want.Sub && e.A > 8 })
	})
	if len(s.Events) != 1 || s.Events[0] != (Event{Kind: Append, A: 10, B: 1, Sub: want.Sub}) {
		t.Errorf("events %+v", s.Events)
	}
	h, plain := s.Header, plainConfig()
	plain.LogID, plain.Nonce = h.Config[0].LogID, h.Config[0].Nonce
	if want := (Header{
		Seed: h.Seed, Profile: h.Profile, Clients: 1, Write: plainWrite, Sync: plainSync, Config: [2]core.Config{plain, plain},
	}); h != want {
		t.Errorf("header %+v\nwant   %+v", h, want)
	}
}

func TestUnusual(t *testing.T) {
	plain := Header{Clients: 1, Write: plainWrite, Sync: plainSync, Config: [2]core.Config{plainConfig(), plainConfig()}}
	if got := plain.Unusual(); len(got) != 0 {
		t.Errorf("a plain header: %q", got)
	}
	h := plain
	h.Write, h.Sync, h.Capacity, h.Switches, h.Faults = 1, 2, 3, 1<<SwTrim|1<<SwIdle, faultfs.Set(faultfs.D7Rot)
	h.Clients, h.Rates[faultfs.OpSync], h.Config[1].SegmentBytes = 2, 9, 1024
	want := []string{
		"clients 2", "latency write=1", "latency sync=2", "capacity 3", "switch trim", "switch idle", "fault D7.rot", "rate sync=9", "config.1 segment_bytes=1024",
	}
	if got := h.Unusual(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// However little the failure needs, what is tried is a schedule that can be judged, is within the
// bound, and is never longer than the one before.
func TestShrinkStaysLegal(t *testing.T) {
	var s Schedule
	for seed := range uint64(40) {
		ExpandMix(&s, Mix(seed)%mixCount, seed, 40)
		n, most := 0, len(s.Events)
		tries := Shrink(&s, 700, func(s *Schedule) bool {
			n++
			if len(s.Events) > most {
				t.Fatalf("seed %d: %d events after %d", seed, len(s.Events), most)
			}
			if _, err := Parse(s.AppendText(nil)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			damaging, trims := false, false
			for _, e := range s.Events {
				damaging = damaging || e.Kind == Rot || e.Kind == Arm && damage.Has(faultfs.Fault(e.A))
				trims = trims || e.Kind == Trim
			}
			if damaging && !s.Header.Damaging() || trims && !s.Header.On(SwTrim) {
				t.Fatalf("seed %d: %s", seed, s.AppendText(nil))
			}
			if sub(seed, uint64(n))&3 != 0 {
				return false
			}
			most = len(s.Events)
			return true
		})
		if tries != n || tries > 700 {
			t.Errorf("seed %d: %d tries, %d calls", seed, tries, n)
		}
	}
}
