package sim

import (
	"bytes"
	"testing"
)

// TestBrokerSeeds runs seeds of a node: in a world that others have used and in a fresh one, and from
// their text, each is the same run.
func TestBrokerSeeds(t *testing.T) {
	w := NewWorld()
	var s Schedule
	acked := 0
	for seed := range uint64(400) {
		ExpandMix(&s, MixBroker, seed, 0)
		text := s.AppendText(nil)
		r := w.Run(&s)
		if r.Violation != "" {
			t.Fatalf("seed %d: %s: %s", seed, r.Check, r.Violation)
		}
		acked += r.Acked
		if seed%8 != 0 {
			continue
		}
		hash := r.Hash
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(again.AppendText(nil), text) {
			t.Fatalf("seed %d: the text changes when it is read", seed)
		}
		if r := NewWorld().Run(again); r.Hash != hash {
			t.Errorf("seed %d: hash %016x, from its text in a fresh world %016x", seed, hash, r.Hash)
		}
	}
	if acked < 400 {
		t.Errorf("%d batches were acked in 400 seeds", acked)
	}
}

// A run of a node allocates little: texts of entries that are new to the machine, errors.
func TestRunOfANodeAllocatesLittle(t *testing.T) {
	w := NewWorld()
	var s Schedule
	const seeds = 200
	seed := uint64(0)
	run := func() {
		ExpandMix(&s, MixBroker, seed%seeds, 50)
		w.Run(&s)
		seed++
	}
	for range 2 * seeds {
		run()
	}
	if n := testing.AllocsPerRun(seeds, run); n > 64 {
		t.Errorf("%.0f allocations a seed, want at most 64", n)
	}
}

// The name of a directory says which partition it is of.
func TestPathsOfPartitions(t *testing.T) {
	var p paths
	p.init()
	for _, c := range []struct {
		topic       int
		incarnation uint64
		partition   int32
	}{{0, 1, 0}, {1, 42, 3}, {3, 511, 2}} {
		place := placeOf(c.topic, c.incarnation, c.partition)
		if found, ok := p.find(p.name(place)); !ok || found != place {
			t.Errorf("%q is found as %d, %v, want %d", p.name(place), found, ok, place)
		}
		if topic, incarnation, partition := p.parts(place); topic != c.topic || incarnation != c.incarnation || partition != c.partition {
			t.Errorf("%q is %d/%d/%d, want %+v", p.name(place), topic, incarnation, partition, c)
		}
	}
	if _, ok := p.find("topics/other/1/0"); ok {
		t.Error("a name of no topic is found")
	}
}
