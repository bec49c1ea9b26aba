package core

import "varve/core/segment"

// superState is the superblock and its two slots. Invariant: next never names the only slot that
// is known to be durable and current; the first save of a slot in a life goes through a rename,
// because what was read at open may never have reached the device.
type superState struct {
	state   segment.Superblock // as of the newest save that was tried
	next    int                // slot that the next save goes to
	renamed [2]bool            // saved through a rename in this life
	bytes   [2]int             // size of the slot's file
	start   [2]Offset          // Start and HotStart in the slot, once saved in this life
	hot     [2]Offset
	ends    [2]Offset // frontier in the slot
	retryAt Time      // Mono; after a failed save

	effect SaveSuper
	buf    []byte
}

func (s *superState) reset() {
	lineage := s.state.Lineage[:0]
	*s = superState{buf: s.buf[:0]}
	s.state.Lineage = lineage
}

// A slot whose fields contradict each other was not written by this program, whatever its checksum.
var (
	errSuperSequence = &segment.SuperError{Pos: 32, Expected: "a sequence below 2^62", Found: "another"}
	errSuperEpoch    = &segment.SuperError{Pos: 48, Expected: "an epoch that is not below those of the lineage", Found: "another"}
	errSuperStart    = &segment.SuperError{Pos: 56, Expected: "HotStart <= Start <= Frontier < 2^62", Found: "another order"}
	errSuperLineage  = &segment.SuperError{Pos: 128, Expected: "a lineage that names the owner of HotStart", Found: "another"}
)

// contradiction tells why a slot that verifies cannot be true, nil if it can.
func contradiction(s *segment.Superblock) error {
	n := len(s.Lineage)
	switch {
	case s.Sequence >= 1<<62:
		return errSuperSequence
	case n == 0 || s.Lineage[0].Epoch == 0 || s.Lineage[0].First > s.HotStart:
		return errSuperLineage
	case s.Lineage[n-1].Epoch > s.Epoch:
		return errSuperEpoch
	case s.HotStart > s.Start && s.ManifestSequence == 0 || s.HotStart > s.Frontier || s.Start > s.Frontier ||
		s.Frontier > offsetMax:
		return errSuperStart
	}
	return nil
}

// save issues a save of state to the next slot. Every attempt takes a sequence of its own.
func (l *Log) save(newLog bool) Effect {
	s := &l.super
	s.state.Sequence++
	var err error
	s.buf, err = segment.AppendSuper(s.buf[:0], &s.state)
	if err != nil {
		l.fail(&RefusedError{Why: "its lineage no longer fits into a superblock: " + err.Error(), Next: "let retention trim the log"})
		return nil
	}
	fresh := !s.renamed[s.next] || s.bytes[s.next] != len(s.buf)
	if fresh && s.renamed[s.next] {
		l.mark(MarkSuperGrown)
	}
	s.effect = SaveSuper{Slot: s.next, Fresh: fresh, NewLog: newLog, Bytes: s.buf}
	return &s.effect
}

// saved notes a successful save: the other slot is next.
func (l *Log) saved(e *SaveSuper) {
	s := &l.super
	s.renamed[e.Slot] = true
	s.bytes[e.Slot] = len(e.Bytes)
	s.start[e.Slot], s.hot[e.Slot], s.ends[e.Slot] = s.state.Start, s.state.HotStart, s.state.Frontier
	s.next = 1 - e.Slot
	s.retryAt = 0
	l.stats.SuperSaves++
	if e.Fresh {
		l.stats.NoSpare = !e.Spare
	}
}

// snapshot brings the superblock's watermarks up to date.
func (l *Log) snapshot() {
	s := &l.super.state
	s.Frontier = l.frontier
	s.Committed = min(l.committed, l.frontier)
	s.CommittedEpoch = l.epochAt(max(s.Committed-1, 0))
	if l.cfg.Cold {
		s.ManifestSequence = max(s.ManifestSequence, l.cold.m.Sequence)
	}
}

// lastSavedFrontier is the greatest frontier that a slot holds.
func (s *superState) lastSavedFrontier() Offset { return max(s.ends[0], s.ends[1]) }
