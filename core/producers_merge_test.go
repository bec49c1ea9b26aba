package core_test

import (
	"errors"
	"testing"

	"varve/core"
)

// appendOf appends one record of a producer.
func (r *rig) appendOf(id int64, sequence int32) (core.Ticket, error) {
	b := batchOf(int(r.log.End()))
	b.Producer = core.Producer{ID: id, Sequence: sequence}
	t, err := r.log.Append(r.now, &b)
	r.pump()
	return t, err
}

// A reopened log remembers the producers that the log before it remembered, in whatever order their
// ids are: those whose newest batches are newest.
func TestReopenRemembersTheNewestProducers(t *testing.T) {
	cfg := smokeConfig()
	cfg.ProducersMax = 2
	for _, ids := range [][3]int64{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		r := newRig(t)
		r.open(cfg)
		for _, id := range ids { // the first is forgotten for the last
			if _, err := r.appendOf(id, 0); err != nil {
				t.Fatal(err)
			}
		}
		r.close()
		r.open(cfg)
		for at := 1; at < 3; at++ {
			if got, err := r.appendOf(ids[at], 0); err != nil || !got.Duplicate || got.First != core.Offset(at) {
				t.Fatalf("producers %v: a batch of %d sent again gets %+v, %v; want offset %d", ids, ids[at], got, err, at)
			}
		}
	}
}

// A producer of two files keeps its batches of the first one, although others of the second file
// are newer than those.
func TestReopenKeepsBatchesAcrossFiles(t *testing.T) {
	cfg := smokeConfig()
	cfg.ProducersMax = 2
	r := newRig(t)
	r.open(cfg)
	must := func(id int64, sequence int32) {
		t.Helper()
		if _, err := r.appendOf(id, sequence); err != nil {
			t.Fatal(err)
		}
	}
	must(7, 0) // offset 0
	must(8, 0)
	if err := r.log.Roll(r.now); err != nil {
		t.Fatal(err)
	}
	r.pump()
	must(7, 1) // 7 and 8 are remembered; 1 takes the place of 8
	must(1, 0)
	must(7, 2)
	r.close()
	r.open(cfg)
	for sequence, want := range []core.Offset{0, 2, 4} {
		got, err := r.appendOf(7, int32(sequence))
		if errors.Is(err, core.ErrSequence) || !got.Duplicate || got.First != want {
			t.Fatalf("sequence %d sent again gets %+v, %v; want offset %d", sequence, got, err, want)
		}
	}
}
