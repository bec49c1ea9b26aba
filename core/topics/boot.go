package topics

import (
	"fmt"
	"slices"

	"varve/core"
)

// Replay takes an entry of the catalogue while Read is carried out. After an error the rest may be left
// out: Complete the effect then, with a nil error.
func (m *Machine) Replay(offset int64, b []byte) error {
	if m.replayErr != nil {
		return m.replayErr
	}
	m.next = offset + 1
	err := m.reader.Read(b, &m.in)
	switch {
	case err != nil:
	case m.in.Kind == Snapshot:
		err = m.replaySnapshot(offset)
	case m.replayed == 0 && offset > 0:
		err = errShortCatalogue
	default:
		err = m.state.Apply(&m.in)
		m.replayed++
	}
	if err != nil {
		m.replayErr = &CatalogueError{Offset: offset, Why: err.Error()}
	}
	return m.replayErr
}

// replaySnapshot takes a snapshot, which must say what the entries before it amount to, if there are any.
func (m *Machine) replaySnapshot(offset int64) error {
	if m.replayed > 0 {
		m.mark(MarkReplayAgain)
		m.trimTo = offset
		if !m.state.equal(&m.in) {
			return fmt.Errorf("the snapshot is not what the entries before it amount to")
		}
	} else {
		m.mark(MarkReplaySnapshot)
	}
	m.replayed = 1
	return m.state.Apply(&m.in)
}

// equal reports whether a snapshot says what the state is.
func (s *State) equal(e *Entry) bool {
	return e.Incarnation == s.NextIncarnation && e.Count == s.NextProducer &&
		slices.EqualFunc(e.Topics, s.Incarnations, func(a, b Topic) bool {
			return a.Name == b.Name && a.ID == b.ID && a.Incarnation == b.Incarnation && a.Partitions == b.Partitions &&
				a.Growing == b.Growing && a.Status == b.Status && a.Time == b.Time && slices.Equal(a.Config, b.Config)
		})
}

// onLoad decides whether the catalogue is read. What a log that is not ready does not show would be taken
// for nobody's, and removed.
func (m *Machine) onLoad(err error) {
	switch {
	case m.phase != Loading:
	case err != nil:
		m.unopened(err)
	case m.load.Phase != core.Ready:
		m.mark(MarkUnready)
		m.unopened(&UnreadyError{Phase: m.load.Phase, Err: m.load.Cause})
	default:
		m.loaded, m.next = true, m.load.Start
	}
}

// onRead goes on once all of the catalogue was replayed.
func (m *Machine) onRead(err error) {
	m.loaded = false
	switch {
	case m.phase != Loading:
	case m.replayErr != nil:
		m.fail(m.replayErr)
	case err != nil:
		m.unopened(err)
	case m.next != m.load.End:
		m.unopened(fmt.Errorf("topics: the catalogue ends at entry %d and shows those below %d alone", m.load.End, m.next))
	default:
		m.phase = Listing
	}
}

// unopened ends an attempt to open the catalogue: what was open once is tried again.
func (m *Machine) unopened(err error) {
	if !m.everOpen {
		m.fail(err)
		return
	}
	m.mark(MarkReloadFailed)
	m.err = err
	m.phase = Down
	m.abort(fmt.Errorf("%w: %w", ErrNotReady, err), true)
}

// onList compares what is on disk with what the catalogue says. What it cannot know is refused: it may be
// the catalogue of another node, or an older copy.
func (m *Machine) onList(err error) {
	switch {
	case m.phase != Listing:
		return
	case err != nil:
		m.unopened(err)
		return
	}
	known := m.list.Dirs[:0]
	for _, d := range m.list.Dirs {
		t := m.state.Find(d.Incarnation)
		switch {
		case d.Incarnation >= m.state.NextIncarnation:
			m.mark(MarkRefused)
			m.fail(&UnknownDirError{Dir: d, Next: m.state.NextIncarnation})
			return
		case t == nil || t.Name != d.Topic || d.Partition >= max(t.Partitions, t.Growing):
			m.mark(MarkUnlisted)
			m.list.Others = append(m.list.Others, d.String())
		default:
			known = append(known, d)
		}
	}
	m.list.Dirs = known
	m.beginOpening()
}

// Others returns what the last List found in the place of partitions and the catalogue does not name. It
// is left alone. Good until the next List.
func (m *Machine) Others() []string { return m.list.Others }

// beginOpening opens what exists, and removes what does not.
func (m *Machine) beginOpening() {
	m.phase, m.err = Opening, nil
	m.version++
	m.boot = boot{}
	m.offline = m.offline[:0]
	for i := range m.state.Incarnations {
		t := &m.state.Incarnations[i]
		switch {
		case t.Status == Live:
			m.boot.of += int(t.Partitions)
			if t.Growing == 0 {
				continue
			}
			m.mark(MarkSweepGrowth)
		case t.Status == Begun:
			m.mark(MarkSweepBegun)
		default:
			m.mark(MarkSweepDead)
		}
		m.sweep(t.Incarnation)
	}
	m.bootDone()
}

// nextBoot returns the opening of the next partition that exists, nil if all are under way.
func (m *Machine) nextBoot() Effect {
	b := &m.boot
	for {
		i, _ := m.state.find(b.at)
		if i == len(m.state.Incarnations) {
			return nil
		}
		t := &m.state.Incarnations[i]
		if t.Incarnation != b.at {
			b.at, b.next = t.Incarnation, 0
		}
		if t.Status == Live && b.next < t.Partitions {
			b.next++
			return m.open(t, b.next-1, nil)
		}
		b.at, b.next = t.Incarnation+1, 0
	}
}

// open returns the effect that opens a partition.
func (m *Machine) open(t *Topic, partition int32, w *work) *Open {
	e := m.freeOpens
	if e == nil {
		e = new(Open)
	} else {
		m.freeOpens = e.in
	}
	*e = Open{Topic: t.Name, Incarnation: t.Incarnation, Partition: partition, Config: t.Config, work: w}
	return e
}

func (m *Machine) onOpen(e *Open, err error) {
	switch {
	case e.work != nil:
		m.onWorkOpen(e, err)
		return
	case err != nil:
		m.setOffline(e.Incarnation)
	}
	m.boot.opened++
	m.bootDone()
}

func (m *Machine) setOffline(incarnation uint64) {
	m.mark(MarkOffline)
	if i, ok := slices.BinarySearch(m.offline, incarnation); !ok {
		m.offline = slices.Insert(m.offline, i, incarnation)
	}
}

// bootDone ends the opening of what exists.
func (m *Machine) bootDone() {
	if m.phase == Opening && m.boot.opened == m.boot.of {
		m.phase, m.everOpen = Ready, true
	}
}
