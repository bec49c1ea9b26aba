package core

import "varve/core/segment"

// producers remembers the last batches of each idempotent producer, so that a repeated batch gets
// its original span. At the limit the producer that was silent longest is forgotten: a rule that
// depends on the log's content alone, so that recovery ends with the same set.
//
// Invariant: a batch is remembered provisionally from accept on; undoLog holds, oldest first, what
// each batch that has not landed replaced.
type producers struct {
	max     int
	table   []segment.ProducerState // sorted by id
	undoLog ring[producerUndo]
}

type producerUndo struct {
	before    segment.ProducerState
	known     bool // before is valid; else the producer was new
	evicted   segment.ProducerState
	forgotten bool // evicted is valid
	id        int64
}

type producerVerdict uint8

const (
	producerNext producerVerdict = iota
	producerDuplicate
	producerGap
	producerOld
)

func (p *producers) reset(limit int) {
	p.max = limit
	p.table = p.table[:0]
	p.undoLog.reset()
}

// find returns where a producer is, or where it belongs.
func (p *producers) find(id int64) (int, bool) {
	lo, hi := 0, len(p.table)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.table[mid].ID < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(p.table) && p.table[lo].ID == id
}

// look judges a batch: the next in sequence, a duplicate (with the original span), a gap, or of an
// old epoch. Sequences wrap at 2^31 as in Kafka. An unknown producer may start anywhere.
func (p *producers) look(b Producer, records uint32) (first, end Offset, v producerVerdict) {
	i, ok := p.find(b.ID)
	if !ok {
		return 0, 0, producerNext
	}
	s := &p.table[i]
	switch {
	case b.Epoch < s.Epoch:
		return 0, 0, producerOld
	case b.Epoch > s.Epoch:
		if b.Sequence != 0 {
			return 0, 0, producerGap
		}
		return 0, 0, producerNext
	}
	for j := int(s.Count) - 1; j >= 0; j-- { // newest first: a batch sent again while forgotten is there twice
		if o := &s.Batches[j]; o.Sequence == b.Sequence && o.Records == records {
			return o.Base, o.Base + Offset(records), producerDuplicate
		}
	}
	last := &s.Batches[s.Count-1]
	if next := (uint32(last.Sequence) + last.Records) & (1<<31 - 1); uint32(b.Sequence) != next {
		return 0, 0, producerGap
	}
	return 0, 0, producerNext
}

// add remembers an accepted batch provisionally; it reports whether a producer was forgotten for it.
func (p *producers) add(b *segment.Identity) bool {
	u := p.undoLog.push()
	*u = producerUndo{id: b.ProducerID}
	i, ok := p.find(b.ProducerID)
	if ok {
		u.before, u.known = p.table[i], true
	} else {
		if len(p.table) >= p.max {
			u.evicted, u.forgotten = p.forget(), true
			i, _ = p.find(b.ProducerID)
		}
		p.insert(i, segment.ProducerState{ID: b.ProducerID, Epoch: b.ProducerEpoch})
	}
	p.table[i].Remember(b)
	return u.forgotten
}

func (p *producers) insert(i int, s segment.ProducerState) {
	p.table = append(p.table, segment.ProducerState{})
	copy(p.table[i+1:], p.table[i:])
	p.table[i] = s
}

func (p *producers) remove(i int) { p.table = append(p.table[:i], p.table[i+1:]...) }

// forget drops the producer whose newest batch is oldest.
func (p *producers) forget() segment.ProducerState {
	oldest := 0
	for i := range p.table {
		if p.table[i].Last() < p.table[oldest].Last() {
			oldest = i
		}
	}
	s := p.table[oldest]
	p.remove(oldest)
	return s
}

// undo takes the newest provisional batch back.
func (p *producers) undo() {
	u := p.undoLog.popBack()
	i, ok := p.find(u.id)
	check(ok, "a provisional producer is in the table")
	if u.known {
		p.table[i] = u.before
		return
	}
	p.remove(i)
	if u.forgotten {
		i, _ = p.find(u.evicted.ID)
		p.insert(i, u.evicted)
	}
}

// settle makes the oldest provisional batch permanent.
func (p *producers) settle() { p.undoLog.pop() }

// merge takes what a file recorded of a producer; files come in offset order, and after each trim
// brings the table back to its limit. Within a file producers come by id, so until all are known
// nobody can tell who was silent longest.
func (p *producers) merge(s *segment.ProducerState, epoch Epoch, lineage Lineage) {
	for j := range int(s.Count) {
		b := &s.Batches[j]
		if owner, _ := ownerOf(lineage, b.Base); owner != epoch && epoch != 0 {
			continue // void
		}
		i, ok := p.find(s.ID)
		if !ok {
			p.insert(i, segment.ProducerState{ID: s.ID, Epoch: s.Epoch})
		}
		if t := &p.table[i]; t.Count == 0 || b.Base > t.Last() {
			t.RememberBatch(s.Epoch, *b)
		}
	}
}

// trim forgets who was silent longest until the table keeps to its limit.
func (p *producers) trim() {
	for len(p.table) > p.max {
		p.forget()
	}
}
