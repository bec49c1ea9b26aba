package core_test

import (
	"testing"

	"varve/core"
	"varve/core/segment"
)

// A footer lists the producers that its segment touched, and has room for so many: then the segment
// rolls, long before it is full.
func TestRollsWhenTheFooterIsFull(t *testing.T) {
	cfg := smokeConfig()
	cfg.SegmentBytes, cfg.PendingBytes, cfg.Preallocate = 64<<20, 8<<20, false
	cfg.ProducersMax = 2 * segment.FooterProducersMax
	r := newRig(t)
	r.open(cfg)
	send := func(id int64) {
		b := batchOf(int(id))
		b.Producer = core.Producer{ID: id, Epoch: 0, Sequence: 0}
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(segment.FooterProducersMax) {
		send(id)
	}
	r.pump()
	r.wantNoMarks(core.MarkRollProducers)
	send(segment.FooterProducersMax)
	r.pump()
	r.wantMarks(core.MarkRollProducers)
	r.wantRecords(0, segment.FooterProducersMax+1)
	if n := r.log.Stats().Rolls; n != 1 {
		t.Fatalf("%d rolls, want 1", n)
	}
	r.close()
	r.open(cfg)
	b := batchOf(0)
	b.Producer = core.Producer{ID: 0, Epoch: 0, Sequence: 0}
	if ticket, err := r.log.Append(r.now, &b); err != nil || !ticket.Duplicate || ticket.First != 0 {
		t.Fatalf("the first producer after a reopen: %+v, %v", ticket, err)
	}
}
