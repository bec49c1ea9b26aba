package fakevalkey_test

import (
	"errors"
	"fmt"
	"testing"

	"varve/core/segment"
	"varve/faultfs"
	"varve/sim/fakevalkey"
	"varve/tiers/tiertest"
	"varve/tiers/valkey"
)

func newStore(t *testing.T, s *fakevalkey.Server) *valkey.Store {
	t.Helper()
	store, err := valkey.New("a", s, valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 1 << 20, Timeout: 1_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestFaultNames(t *testing.T) {
	for f := range fakevalkey.FaultCount {
		if g, ok := fakevalkey.ParseFault(f.String()); !ok || g != f {
			t.Errorf("%d is %v, and that is %d", f, f, g)
		}
	}
	if _, ok := fakevalkey.ParseFault("W0"); ok {
		t.Error("W0")
	}
}

// Each fault that strikes a call: what the store reports, what is in the stream.
func TestFaultsOfCalls(t *testing.T) {
	for _, c := range []struct {
		fault     fakevalkey.Fault
		err       error
		there     []bool // entries in the stream afterwards; nil: some
		confirmed int
	}{
		{fakevalkey.W1Before, valkey.ErrConnectionLost, []bool{false, false, false}, 0},
		{fakevalkey.W1Inside, valkey.ErrConnectionLost, nil, 0},
		{fakevalkey.W1After, valkey.ErrConnectionLost, []bool{true, true, true}, 0},
		{fakevalkey.W2Short, nil, []bool{true, true, true}, 0},
		{fakevalkey.W2Late, nil, []bool{true, true, true}, 0},
		{fakevalkey.W6OOM, nil, []bool{false, false, false}, 0},
		{fakevalkey.W7Duplicate, nil, []bool{true, true, true}, 0},
		{fakevalkey.W9Slow, nil, []bool{true, true, true}, 1},
		{fakevalkey.W12Before, valkey.ErrReconnected, []bool{true, true, true}, 0},
		{fakevalkey.W12Inside, valkey.ErrReconnected, []bool{true, true, true}, 0},
		{fakevalkey.W13Some, nil, []bool{false, true, true}, 0},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			s := fresh(7, fakevalkey.Config{Replicas: 1})
			store := newStore(t, s)
			f := valkey.Fence{Generation: 1, Marker: tiertest.WarmMarker(1), Ack: valkey.Ack{Replicas: 1, Wait: 1000}}
			if err := store.Fence(&f); err != nil || f.Confirmed != 1 {
				t.Fatalf("%v, %+v", err, f)
			}
			s.Arm(c.fault, 1)
			m := valkey.Mirror{On: f.On, Ack: f.Ack}
			for i := range segment.Offset(3) {
				m.Entries = append(m.Entries, valkey.Outgoing{ID: valkey.ID{Generation: 1, End: i + 1}, Value: tiertest.WarmData(1, i, nil)})
			}
			if err := store.Mirror(&m); !errors.Is(err, c.err) || m.Confirmed != c.confirmed {
				t.Errorf("%v, %+v", err, m)
			}
			for i, want := range c.there {
				if got := s.Has(store.Key(), m.Entries[i].ID); got != want {
					t.Errorf("entry %d is there: %v", i, got)
				}
			}
			if s.Count(c.fault) == 0 || s.Marks() != c.fault.Bit() && s.Marks() != c.fault.Bit()|fakevalkey.W3Other.Bit() {
				t.Errorf("%d times, marks %b", s.Count(c.fault), s.Marks())
			}
		})
	}
	s := fresh(7, fakevalkey.Config{})
	s.Arm(fakevalkey.W1Dial, 1)
	if err := newStore(t, s).Probe(&valkey.Probe{}); !errors.Is(err, valkey.ErrConnectionLost) || s.Count(fakevalkey.W1Dial) != 1 {
		t.Errorf("W1.dial: %v", err)
	}
}

// What the world does, and what is left: the entries of [0, 10), of which the replica has [0, 6).
func TestFaultsOfTheWorld(t *testing.T) {
	for _, c := range []struct {
		name    string
		persist fakevalkey.Persist
		arm     fakevalkey.Fault
		do      func(s *fakevalkey.Server, key string)
		marks   []fakevalkey.Fault
		left    func(first, end segment.Offset, last valkey.ID) bool
	}{
		{
			"failover", 0, 0, func(s *fakevalkey.Server, _ string) { s.Failover() },
			[]fakevalkey.Fault{fakevalkey.W4Suffix},
			func(first, end segment.Offset, last valkey.ID) bool { return first == 0 && end == 6 && last.End == 6 },
		},
		{
			"failover, acked", 0, fakevalkey.W4Acked, func(s *fakevalkey.Server, _ string) { s.Failover() },
			[]fakevalkey.Fault{fakevalkey.W4Suffix, fakevalkey.W4Acked},
			func(first, end segment.Offset, last valkey.ID) bool { return first <= 0 && end < 6 },
		},
		{
			"restart, always", fakevalkey.Always, 0, func(s *fakevalkey.Server, _ string) { s.Restart() }, nil,
			func(first, end segment.Offset, last valkey.ID) bool { return first == 0 && end == 10 && last.End == 10 },
		},
		{
			"restart, suffix", fakevalkey.Always, fakevalkey.W5Suffix, func(s *fakevalkey.Server, _ string) { s.Restart() },
			[]fakevalkey.Fault{fakevalkey.W5Suffix},
			func(first, end segment.Offset, last valkey.ID) bool { return end < 10 },
		},
		{
			"restart, nothing", fakevalkey.Nothing, 0, func(s *fakevalkey.Server, _ string) { s.Restart() },
			[]fakevalkey.Fault{fakevalkey.W5Suffix, fakevalkey.W5All},
			func(first, end segment.Offset, last valkey.ID) bool { return end == -1 && last.IsZero() },
		},
		{
			"restart, prefix", fakevalkey.Always, fakevalkey.W5Prefix, func(s *fakevalkey.Server, _ string) { s.Restart() },
			[]fakevalkey.Fault{fakevalkey.W5Prefix},
			func(first, end segment.Offset, last valkey.ID) bool { return first > 0 && last.End == 10 },
		},
		{
			"eviction", 0, 0, func(s *fakevalkey.Server, key string) { s.Evict(key) },
			[]fakevalkey.Fault{fakevalkey.W6Evict},
			func(first, end segment.Offset, last valkey.ID) bool { return end == -1 && last.IsZero() },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(3, fakevalkey.Config{Replicas: 1, Persist: c.persist})
			store := newStore(t, s)
			fill(t, s, store)
			if c.arm != 0 {
				s.Arm(c.arm, 1)
			}
			c.do(s, store.Key())
			first, end, last := content(t, store)
			if !c.left(first, end, last) {
				t.Errorf("[%d, %d), last id %v", first, end, last)
			}
			var want fakevalkey.FaultSet
			for _, f := range c.marks {
				want |= f.Bit()
			}
			if s.Marks() != want {
				t.Errorf("marks %b, want %b", s.Marks(), want)
			}
		})
	}
}

// fill writes a marker and the entries of [0, 10), of which the replica has [0, 6).
func fill(t *testing.T, s *fakevalkey.Server, store *valkey.Store) {
	t.Helper()
	f := valkey.Fence{Generation: 1, Marker: tiertest.WarmMarker(1), Ack: valkey.Ack{Replicas: 1, Wait: 1000}}
	if err := store.Fence(&f); err != nil {
		t.Fatal(err)
	}
	for i := range segment.Offset(10) {
		s.SetFrozen(0, i >= 6)
		m := valkey.Mirror{On: f.On, Ack: f.Ack, Entries: []valkey.Outgoing{
			{ID: valkey.ID{Generation: 1, End: i + 1}, Value: tiertest.WarmData(1, i, nil)},
		}}
		if err := store.Mirror(&m); err != nil || !m.AllDone() || (m.Confirmed == 1) != (i < 6) {
			t.Fatalf("%v, %+v", err, m)
		}
	}
}

// content returns the span of the entries, -1 where there is none, and the last id.
func content(t *testing.T, store *valkey.Store) (first, end segment.Offset, last valkey.ID) {
	t.Helper()
	_ = store.Close() // its connection may be gone
	r := valkey.ReadWarm{Count: 100}
	if err := store.ReadWarm(&r); err != nil {
		t.Fatal(err)
	}
	first, end = -1, -1
	for i := range r.Entries {
		if e := &r.Entries[i]; e.ID.End > 0 {
			if first < 0 {
				first = e.ID.End - 1
			}
			end = e.ID.End
		}
	}
	var b valkey.Probe
	if err := store.Probe(&b); err != nil {
		t.Fatal(err)
	}
	return first, end, b.LastID
}

// After a cut of the append-only file a stream gives ids again that it gave before.
func TestLastIDRegresses(t *testing.T) {
	s := fresh(3, fakevalkey.Config{})
	store := newStore(t, s)
	fill1 := func(generation uint64) valkey.Outcome {
		f := valkey.Fence{Generation: generation, Marker: tiertest.WarmMarker(generation)}
		if err := store.Fence(&f); err != nil {
			t.Fatal(err)
		}
		return f.XADD.Outcome
	}
	fill1(5)
	trim := valkey.TrimWarm{Below: valkey.ID{Generation: 6}}
	if err := store.TrimWarm(&trim); err != nil || trim.Removed != 1 {
		t.Fatalf("%v, %+v", err, trim)
	}
	if o := fill1(4); o != valkey.Smaller {
		t.Fatalf("the last id is gone with the last entry: %v", o)
	}
	for range 100 { // until the cut leaves the trim
		s.Arm(fakevalkey.W5Regress, 1)
		s.Restart()
		_ = store.Close()
		if fill1(4) == valkey.Done {
			if s.Count(fakevalkey.W5Regress) == 0 {
				t.Fatal("no mark")
			}
			return
		}
	}
	t.Fatal("the last id never regresses")
}

// run is a random life of a log's stream, with every fault on; it returns what was seen.
func run(s *fakevalkey.Server, stores *[2]*valkey.Store, seed uint64, r *faultfs.Rand, o *ops) uint64 {
	r.Seed(seed)
	s.Reset(fakevalkey.Config{Replicas: int(seed % 3), Persist: fakevalkey.Persist(seed % 4)})
	var rates fakevalkey.Rates
	for f := range rates {
		rates[f] = 2000
	}
	s.SetFaults(fakevalkey.AllFaults, &rates)
	h := seed
	note := func(v uint64) { h = (h ^ v) * 0x9e3779b97f4a7c15 }
	for _, store := range stores {
		_ = store.Close()
	}
	generation, end := uint64(1), segment.Offset(0)
	var on valkey.ConnID
	for range 60 {
		store := stores[r.Below(2)]
		var err error
		switch r.Below(12) {
		case 0, 1:
			generation++
			o.fence.Generation, o.fence.Marker = generation, o.value(generation, 0)
			err = store.Fence(&o.fence)
			on = o.fence.On
			note(uint64(o.fence.Confirmed) + uint64(o.fence.XADD.Outcome)<<8)
		case 2, 3, 4, 5, 6:
			end++
			o.mirror.On = on
			o.mirror.Entries[0].ID = valkey.ID{Generation: generation, End: end}
			o.mirror.Entries[0].Value = o.value(generation, end)
			err = store.Mirror(&o.mirror)
			note(uint64(o.mirror.Confirmed) + uint64(o.mirror.Predecessor.ID.End)<<8)
		case 7:
			err = store.ReadWarm(&o.read)
			note(uint64(len(o.read.Entries)))
		case 8:
			o.trim.Below = valkey.ID{Generation: generation, End: segment.Offset(r.Below(uint64(end + 1)))}
			err = store.TrimWarm(&o.trim)
			note(uint64(o.trim.Removed))
		case 9:
			err = store.Probe(&o.probe)
			note(uint64(o.probe.Entries) + o.probe.LastID.Generation<<8)
		case 10:
			s.Failover()
		case 11:
			s.Restart()
		}
		if err != nil {
			note(1 << 40)
		}
		note(uint64(s.TakeDelay()))
	}
	return h + uint64(s.Marks())
}

// ops are requests that are used again.
type ops struct {
	fence  valkey.Fence
	mirror valkey.Mirror
	read   valkey.ReadWarm
	trim   valkey.TrimWarm
	probe  valkey.Probe
	values [64][64][]byte // made before, by generation and end
}

// value returns an entry, the marker if it ends at 0.
func (o *ops) value(generation uint64, end segment.Offset) []byte {
	b := &o.values[generation][end]
	switch {
	case *b != nil:
	case end == 0:
		*b = tiertest.WarmMarker(generation)
	default:
		*b = tiertest.WarmData(generation, end-1, make([]byte, 40))
	}
	return *b
}

func newOps() *ops {
	ack := valkey.Ack{Replicas: 1, Wait: 1000}
	return &ops{
		fence: valkey.Fence{Ack: ack}, read: valkey.ReadWarm{Count: 10},
		mirror: valkey.Mirror{Ack: ack, Entries: make([]valkey.Outgoing, 1)},
	}
}

// The same seed gives the same life, whatever came before, and lives in steady state allocate nothing.
func TestLivesRepeat(t *testing.T) {
	var r faultfs.Rand
	s := fakevalkey.New(r.Below)
	s.Reset(fakevalkey.Config{})
	stores := [2]*valkey.Store{newStore(t, s), newStore(t, s)}
	o := newOps()
	var first []uint64
	var marks fakevalkey.FaultSet
	for seed := range uint64(3000) {
		first = append(first, run(s, &stores, seed, &r, o))
		marks |= s.Marks()
	}
	for f := fakevalkey.Fault(1); f < fakevalkey.FaultCount; f++ {
		if world := f == fakevalkey.W10Type || f == fakevalkey.W10Foreign; !world && !marks.Has(f) {
			t.Errorf("%v never struck", f)
		}
	}
	again := func() {
		for seed := range uint64(300) {
			run(s, &stores, seed, &r, o)
		}
	}
	if n := testing.AllocsPerRun(2, again); n != 0 {
		t.Errorf("%v allocations in 300 lives", n)
	}
	for seed := uint64(2999); seed > 7; seed -= 7 {
		if h := run(s, &stores, seed, &r, o); h != first[seed] {
			t.Fatalf("seed %d: %x, then %x", seed, first[seed], h)
		}
		var r2 faultfs.Rand
		s2 := fakevalkey.New(r2.Below)
		if h := run(s2, &[2]*valkey.Store{newStore(t, s2), newStore(t, s2)}, seed, &r2, newOps()); seed%20 == 0 && h != first[seed] {
			t.Fatalf("seed %d in a fresh world: %x, then %x", seed, first[seed], h)
		}
	}
}

func Example() {
	s := fakevalkey.New(func(uint64) uint64 { return 0 })
	s.Reset(fakevalkey.Config{Replicas: 1})
	store, _ := valkey.New("orders-0", s, valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 1 << 20, Timeout: 1e9})
	f := valkey.Fence{Generation: 1, Marker: tiertest.WarmMarker(1), Ack: valkey.Ack{Replicas: 1, Wait: 1e8}}
	err := store.Fence(&f)
	fmt.Println(err, f.XADD.Outcome, f.Top.ID, f.Confirmed)
	// Output: <nil> done 1-0 1
}
