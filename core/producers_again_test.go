package core

import (
	"testing"

	"varve/core/segment"
)

// A producer that was forgotten sends a batch again: it is in the log twice. After a reopen both
// are found, and the newest one is what the producer was told.
func TestProducerDuplicateIsTheNewest(t *testing.T) {
	var p producers
	p.reset(2)
	for _, base := range []Offset{8, 19} {
		s := segment.ProducerState{ID: 3}
		s.RememberBatch(0, segment.ProducerBatch{Sequence: 1, Records: 1, Base: base})
		p.merge(&s, 1, Lineage{{Epoch: 1, First: 0}})
	}
	first, end, verdict := p.look(Producer{ID: 3, Epoch: 0, Sequence: 1}, 1)
	if verdict != producerDuplicate || first != 19 || end != 20 {
		t.Errorf("got [%d, %d), verdict %d; want the newest batch, [19, 20)", first, end, verdict)
	}
}
