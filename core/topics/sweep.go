package topics

import "slices"

// sweep is the removal of what an incarnation leaves: all of it, or what a growth of it left. What that
// is follows from the state each time, because a topic may be deleted while a growth is undone.
type sweep struct {
	incarnation uint64
	removing    bool // Remove is in flight
	removed     bool // it is done, and the entry that says so is due
	whole       bool // and what it did
	failed      bool // it waits for Retry
}

// sweep begins the removal of what an incarnation leaves, if it is not under way.
func (m *Machine) sweep(incarnation uint64) {
	if m.sweepOf(incarnation) == nil {
		m.sweeps = append(m.sweeps, sweep{incarnation: incarnation})
	}
}

func (m *Machine) sweepOf(incarnation uint64) *sweep {
	for i := range m.sweeps {
		if m.sweeps[i].incarnation == incarnation {
			return &m.sweeps[i]
		}
	}
	return nil
}

func (m *Machine) dropSweep(incarnation uint64) {
	m.sweeps = slices.DeleteFunc(m.sweeps, func(s sweep) bool { return s.incarnation == incarnation })
}

// nextRemove returns the next removal.
func (m *Machine) nextRemove() Effect {
	for i := range m.sweeps {
		s := &m.sweeps[i]
		if s.removing || s.removed || s.failed {
			continue
		}
		t := m.state.Find(s.incarnation)
		check(t != nil, "what is removed is known")
		s.removing, s.whole = true, t.Status != Live
		e := m.freeRemoves
		if e == nil {
			e = new(Remove)
		} else {
			m.freeRemoves = e.in
		}
		*e = Remove{Topic: t.Name, Incarnation: t.Incarnation, To: max(t.Partitions, t.Growing), Whole: s.whole}
		e.Begun = t.Status == Begun
		if !s.whole {
			e.From, e.Begun = t.Partitions, true
		}
		return e
	}
	return nil
}

func (m *Machine) onRemove(e *Remove, err error) {
	s := m.sweepOf(e.Incarnation)
	check(s != nil && s.removing, "a removal that was asked for")
	s.removing = false
	if err != nil {
		m.mark(MarkRemoveFailed)
		s.failed = true
		return
	}
	s.removed = true
}

// nextSweepEntry returns the entry that says that something is gone.
func (m *Machine) nextSweepEntry() Effect {
	for i := range m.sweeps {
		s := &m.sweeps[i]
		if !s.removed || s.failed {
			continue
		}
		t := m.state.Find(s.incarnation)
		if !s.whole && t.Status != Live { // deleted meanwhile
			m.mark(MarkRemovedPartly)
			s.removed = false
			continue
		}
		m.out = Entry{Kind: Gone, Topic: t.Name, Incarnation: t.Incarnation}
		if !s.whole {
			m.out.Kind = Shrunk
		}
		return m.issue(&m.out, appending{sweep: s.incarnation})
	}
	return nil
}
