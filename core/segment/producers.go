package segment

import "slices"

// FooterProducersMax bounds the producers of one footer; a segment that touched so many rolls.
const FooterProducersMax = 4096

// producerTable folds batches, in file order, into the last batches of each producer.
type producerTable struct {
	states []ProducerState
	order  []producerRef // sorted by id
	last   int           // index into states of the last hit; most batches come in rows
}

type producerRef struct {
	id int64
	at int32 // in states
}

func (t *producerTable) reset() {
	t.states, t.order, t.last = t.states[:0], t.order[:0], 0
}

// add remembers a batch. A batch of an older producer epoch than the one known changes nothing; a
// newer epoch forgets the batches of the old one.
func (t *producerTable) add(i *Identity) {
	if i.ProducerID < 0 {
		return
	}
	s := t.find(i.ProducerID)
	if s.Count > 0 && i.ProducerEpoch < s.Epoch {
		return
	}
	if s.Count == 0 {
		s.Epoch = i.ProducerEpoch
	}
	s.Remember(i)
}

// find returns the state of a producer, made if it is new.
func (t *producerTable) find(id int64) *ProducerState {
	if t.last < len(t.states) && t.states[t.last].ID == id {
		return &t.states[t.last]
	}
	at, known := slices.BinarySearchFunc(t.order, id, func(r producerRef, id int64) int {
		switch {
		case r.id < id:
			return -1
		case r.id > id:
			return 1
		}
		return 0
	})
	if !known {
		t.order = slices.Insert(t.order, at, producerRef{id: id, at: int32(len(t.states))})
		t.states = append(t.states, ProducerState{ID: id})
	}
	t.last = int(t.order[at].at)
	return &t.states[t.last]
}

// appendTo appends the states, sorted by id.
func (t *producerTable) appendTo(dst []ProducerState) []ProducerState {
	for _, r := range t.order {
		dst = append(dst, t.states[r.at])
	}
	return dst
}
