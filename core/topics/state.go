package topics

import (
	"fmt"
	"slices"
)

// State is what the entries of a catalogue amount to.
type State struct {
	NextIncarnation uint64  // never given out so far
	NextProducer    int64   // the same of producer ids
	Incarnations    []Topic // that are not gone, in order of their numbers
	names           map[string]uint64
}

// Reset makes it the state of an empty catalogue.
func (s *State) Reset() {
	s.NextIncarnation, s.NextProducer = 1, 0
	s.Incarnations = s.Incarnations[:0]
	if s.names == nil {
		s.names = make(map[string]uint64)
	}
	clear(s.names)
}

// Find returns an incarnation, nil if it is not there or gone. The pointer is good until the next Apply.
func (s *State) Find(incarnation uint64) *Topic {
	if i, ok := s.find(incarnation); ok {
		return &s.Incarnations[i]
	}
	return nil
}

func (s *State) find(incarnation uint64) (int, bool) {
	return slices.BinarySearchFunc(s.Incarnations, incarnation, func(t Topic, n uint64) int {
		switch {
		case t.Incarnation < n:
			return -1
		case t.Incarnation > n:
			return 1
		}
		return 0
	})
}

// Named returns the incarnation that has a name: the one that exists, nil if none does.
func (s *State) Named(name string) *Topic {
	if n, ok := s.names[name]; ok {
		return s.Find(n)
	}
	return nil
}

// Apply changes the state as an entry says. An error says why the entry cannot follow those before it.
func (s *State) Apply(e *Entry) error {
	switch e.Kind {
	case Producers:
		if e.Count < s.NextProducer {
			return fmt.Errorf("producer ids go back to %d, %d are given out", e.Count, s.NextProducer)
		}
		s.NextProducer = e.Count
		return nil
	case Snapshot:
		return s.restore(e)
	case Begin:
		if e.Incarnation != s.NextIncarnation {
			return fmt.Errorf("incarnation %d begins, %d is the next", e.Incarnation, s.NextIncarnation)
		}
		s.NextIncarnation++
		t := s.add()
		t.Name, t.Incarnation, t.Partitions, t.Status = e.Topic, e.Incarnation, int32(e.Count), Begun
		return nil
	}
	t := s.Find(e.Incarnation)
	if t == nil {
		return fmt.Errorf("%s of incarnation %d, which is not there", e.Kind, e.Incarnation)
	}
	if t.Name != e.Topic {
		return fmt.Errorf("%s of incarnation %d names topic %s, it is %s", e.Kind, e.Incarnation, e.Topic, t.Name)
	}
	return s.change(t, e)
}

// change applies an entry about one incarnation that is there.
func (s *State) change(t *Topic, e *Entry) error {
	want := Live
	switch e.Kind {
	case Create:
		want = Begun
	case Gone:
		want = t.Status
		if t.Status == Live {
			want = Dead
		}
	}
	if t.Status != want {
		return fmt.Errorf("%s of incarnation %d, which is %s", e.Kind, e.Incarnation, t.Status)
	}
	count := int32(e.Count)
	switch e.Kind {
	case Create:
		if other, ok := s.names[t.Name]; ok {
			return fmt.Errorf("create of incarnation %d, topic %s is incarnation %d", e.Incarnation, t.Name, other)
		}
		if count != t.Partitions {
			return fmt.Errorf("create of %d partitions, %d were begun", count, t.Partitions)
		}
		t.Status, t.ID, t.Time = Live, e.ID, e.Time
		t.Config = append(t.Config[:0], e.Config...)
		s.names[t.Name] = t.Incarnation
	case Grow:
		if count <= t.Partitions || t.Growing != 0 {
			return fmt.Errorf("growth to %d partitions of %d, %d under way", count, t.Partitions, t.Growing)
		}
		t.Growing = count
	case Partitions:
		if count != t.Growing {
			return fmt.Errorf("%d partitions, %d were begun", count, t.Growing)
		}
		t.Partitions, t.Growing = count, 0
	case Shrunk:
		t.Growing = 0
	case Configure:
		t.Config = append(t.Config[:0], e.Config...)
	case Delete:
		t.Status = Dead
		delete(s.names, t.Name)
	case Gone:
		s.drop(t)
	}
	return nil
}

// add returns a cleared incarnation at the end, with the memory of one that was there.
func (s *State) add() *Topic {
	n := len(s.Incarnations)
	if n < cap(s.Incarnations) {
		s.Incarnations = s.Incarnations[:n+1]
	} else {
		s.Incarnations = append(s.Incarnations, Topic{})
	}
	t := &s.Incarnations[n]
	*t = Topic{Config: t.Config[:0]}
	return t
}

// drop takes an incarnation out; its memory goes to the end.
func (s *State) drop(t *Topic) {
	i, _ := s.find(t.Incarnation)
	gone := s.Incarnations[i]
	copy(s.Incarnations[i:], s.Incarnations[i+1:])
	s.Incarnations[len(s.Incarnations)-1] = gone
	s.Incarnations = s.Incarnations[:len(s.Incarnations)-1]
}

// Snapshot makes e the entry that says it all. It shares memory with the state.
func (s *State) Snapshot(e *Entry) {
	*e = Entry{Kind: Snapshot, Incarnation: s.NextIncarnation, Count: s.NextProducer, Topics: s.Incarnations}
}

// restore makes the state what a snapshot says, which is what it is already if there are entries before.
func (s *State) restore(e *Entry) error {
	s.Reset()
	s.NextIncarnation, s.NextProducer = e.Incarnation, e.Count
	last := uint64(0)
	for i := range e.Topics {
		from := &e.Topics[i]
		if from.Incarnation <= last || from.Incarnation >= e.Incarnation {
			return fmt.Errorf("snapshot has incarnation %d behind %d, below %d", from.Incarnation, last, e.Incarnation)
		}
		last = from.Incarnation
		if from.Growing != 0 && (from.Growing <= from.Partitions || from.Status == Begun) {
			return fmt.Errorf("snapshot has incarnation %d growing to %d from %d", last, from.Growing, from.Partitions)
		}
		t := s.add()
		config := t.Config
		*t = *from
		t.Config = append(config, from.Config...)
		if t.Status != Live {
			continue
		}
		if other, ok := s.names[t.Name]; ok {
			return fmt.Errorf("snapshot has topic %s as incarnations %d and %d", t.Name, other, last)
		}
		s.names[t.Name] = last
	}
	return nil
}
