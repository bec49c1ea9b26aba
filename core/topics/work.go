package topics

import (
	"fmt"
	"slices"
)

// workKind is what a work does.
type workKind uint8

const (
	workCreate workKind = iota
	workDelete
	workGrow
	workConfigure
	workProducer
	workReopen
)

// step is where a work stands.
type step uint8

const (
	stepQueued  step = iota // it has done nothing yet
	stepIntent              // its entry of intent is on its way
	stepOpening             // partitions are opened
	stepEntry               // the entry that makes it so is due
	stepFinal               // and on its way
	stepEnded               // it was told how it ended; what is in flight is waited for
)

// work is a request under way.
type work struct {
	ticket Ticket // 0: nobody waits for its outcome
	kind   workKind
	step   step
	waited bool // for another one of its topic

	name        string
	incarnation uint64
	count       int32
	id          ID
	time        int64
	before      []Pair // what config was made of
	config      []Pair

	at     int32 // next partition to open, below count
	flying int32 // of them in flight
	err    error // why one could not be opened
	late   bool  // partitions of it were offline before

	next *work // in the list of those that are free
}

// again reports whether a work opens logs that were open before. They may hang for long: half of what may be in
// flight is left to all else.
func (w *work) again() bool { return w.kind == workReopen || w.kind == workConfigure }

// add appends a work.
func (m *Machine) add(kind workKind, name string) *work {
	w := m.freeWorks
	if w == nil {
		w = new(work)
	} else {
		m.freeWorks = w.next
	}
	*w = work{kind: kind, name: name, before: w.before[:0], config: w.config[:0]}
	m.works = append(m.works, w)
	return w
}

// remove takes a work out.
func (m *Machine) remove(w *work) {
	i := slices.Index(m.works, w)
	m.works = slices.Delete(m.works, i, i+1)
	w.next, m.freeWorks = m.freeWorks, w
}

// tell ends a work for whoever asked for it, unless it has ended for them already.
func (m *Machine) tell(w *work, err error) {
	if w.ticket == 0 {
		return
	}
	m.outcomes = append(m.outcomes, Outcome{Ticket: w.ticket, Err: err, Incarnation: w.incarnation})
	w.ticket = 0
}

// end tells and removes a work of which nothing is in flight.
func (m *Machine) end(w *work, err error) {
	m.tell(w, err)
	m.remove(w)
}

// abort ends the works under way, but for one whose last entry is in flight; with all those that wait, too.
func (m *Machine) abort(err error, all bool) {
	for i := len(m.works) - 1; i >= 0; i-- {
		w := m.works[i]
		switch {
		case w.step == stepQueued && !all, w.step == stepIntent, w.step == stepFinal:
			continue
		case w.step != stepQueued && all:
			m.mark(MarkClosedUnderWay)
		case w.step != stepQueued:
			m.mark(MarkAborted)
		}
		if w.flying > 0 {
			m.tell(w, err)
			w.step = stepEnded
			continue
		}
		m.end(w, err)
	}
}

// blocked reports whether another work of the same topic comes first.
func (m *Machine) blocked(i int) bool {
	w := m.works[i]
	if w.kind == workProducer {
		return false
	}
	for _, x := range m.works[:i] {
		if x.kind != workProducer && x.name == w.name {
			if !w.waited {
				w.waited = true
				m.mark(MarkWaited)
			}
			return true
		}
	}
	return false
}

// nextEntry returns the next effect on the catalogue.
func (m *Machine) nextEntry() Effect {
	if m.trimTo > 0 {
		m.trim = Trim{Before: m.trimTo}
		m.trimTo = 0
		return &m.trim
	}
	if m.replayed > m.cfg.SnapshotEntries+4*int64(len(m.state.Incarnations)) && !m.snapshots {
		var e Entry
		m.state.Snapshot(&e)
		return m.issue(&e, appending{snapshot: true})
	}
	for i := 0; i < len(m.works); {
		w := m.works[i]
		if w.step == stepEntry {
			return m.issueFinal(w)
		}
		if w.step != stepQueued || m.phase != Ready || m.blocked(i) {
			i++
			continue
		}
		if e := m.start(w); e != nil {
			return e
		}
		if i < len(m.works) && m.works[i] == w { // it did not end
			i++
		}
	}
	return m.nextSweepEntry()
}

// start begins a work that has waited for its turn. It returns its first entry, nil if it needs none or
// has ended.
func (m *Machine) start(w *work) Effect {
	t := m.state.Named(w.name)
	if t != nil && w.incarnation != 0 && t.Incarnation != w.incarnation {
		m.mark(MarkAnother)
		t = nil
	}
	if t != nil {
		w.incarnation = t.Incarnation
	}
	switch w.kind {
	case workCreate:
		return m.startCreate(w, t)
	case workGrow:
		if err := m.mayGrow(t, w.count); err != nil {
			m.end(w, err)
			return nil
		}
		w.at, w.step = t.Partitions, stepIntent
		m.out = Entry{Kind: Grow, Topic: t.Name, Incarnation: t.Incarnation, Count: int64(w.count)}
		return m.issue(&m.out, appending{work: w})
	case workProducer:
		if m.spare == 0 {
			return m.issueFinal(w)
		}
		m.spare--
		m.outcomes = append(m.outcomes, Outcome{Ticket: w.ticket, Producer: m.state.NextProducer - m.spare - 1})
		m.remove(w)
		return nil
	case workReopen:
		m.startReopen(w, t)
		return nil
	}
	switch {
	case t == nil:
		m.end(w, ErrNotFound)
		return nil
	case w.kind == workConfigure && !slices.Equal(t.Config, w.before):
		m.mark(MarkChanged)
		m.end(w, ErrChanged)
		return nil
	}
	return m.issueFinal(w)
}

func (m *Machine) startCreate(w *work, t *Topic) Effect {
	if t != nil {
		if w.waited {
			m.mark(MarkExistsLate)
		}
		w.incarnation = 0
		m.end(w, ErrExists)
		return nil
	}
	if err := m.budget(w.count); err != nil {
		m.end(w, err)
		return nil
	}
	for i := range m.state.Incarnations {
		if m.state.Incarnations[i].Name == w.name {
			m.mark(MarkRecreated)
		}
	}
	w.incarnation, w.step = m.state.NextIncarnation, stepIntent
	m.out = Entry{Kind: Begin, Topic: w.name, Incarnation: w.incarnation, Count: int64(w.count)}
	return m.issue(&m.out, appending{work: w})
}

func (m *Machine) startReopen(w *work, t *Topic) {
	if t == nil { // it is deleted
		m.remove(w)
		return
	}
	if i, ok := slices.BinarySearch(m.offline, w.incarnation); ok {
		m.offline = slices.Delete(m.offline, i, i+1)
		w.late = true
	}
	w.at, w.count, w.step = 0, t.Partitions, stepOpening
}

// issueFinal returns the entry that makes a work so.
func (m *Machine) issueFinal(w *work) Effect {
	w.step = stepFinal
	e := &m.out
	*e = Entry{Topic: w.name, Incarnation: w.incarnation, Count: int64(w.count)}
	switch w.kind {
	case workCreate:
		e.Kind, e.ID, e.Time, e.Config = Create, w.id, w.time, w.config
	case workGrow:
		e.Kind = Partitions
	case workDelete:
		e.Kind = Delete
	case workConfigure:
		e.Kind, e.Config = Configure, w.config
	case workProducer:
		*e = Entry{Kind: Producers, Count: m.state.NextProducer + m.cfg.ProducersBlock}
	}
	return m.issue(e, appending{work: w})
}

// issue returns the effect that appends an entry.
func (m *Machine) issue(e *Entry, a appending) Effect {
	m.appending = a
	m.append = Append{Entry: AppendEntry(m.append.Entry[:0], e)}
	return &m.append
}

func (m *Machine) onAppend(e *Append, err error) {
	a := m.appending
	m.appending = appending{}
	if err != nil {
		m.onAppendError(e, a, err)
		return
	}
	m.replayed++
	if a.snapshot {
		m.mark(MarkSnapshot)
		m.replayed, m.trimTo = 1, e.Offset
		return
	}
	applied := m.state.Apply(&m.out)
	check(applied == nil, "an entry follows those before it")
	if a.work != nil {
		m.onEntry(a.work)
		return
	}
	m.dropSweep(a.sweep)
}

// onEntry goes on with a work whose entry is in the catalogue.
func (m *Machine) onEntry(w *work) {
	if w.step == stepIntent {
		if m.phase == Closing {
			m.mark(MarkClosedUnderWay)
			m.end(w, ErrClosed)
			return
		}
		w.step = stepOpening
		return
	}
	switch w.kind {
	case workProducer:
		m.mark(MarkProducersBlock)
		m.spare = m.cfg.ProducersBlock - 1
		m.outcomes = append(m.outcomes, Outcome{Ticket: w.ticket, Producer: m.state.NextProducer - m.cfg.ProducersBlock})
		m.remove(w)
		return
	case workDelete:
		m.sweep(w.incarnation)
	case workConfigure:
		m.version++
		m.tell(w, nil)
		if m.phase == Ready {
			m.mark(MarkReconfigured)
			m.startReopen(w, m.state.Find(w.incarnation))
			return
		}
	}
	m.version++
	m.end(w, nil)
}

// onAppendError ends a work whose entry is not in the catalogue, or may be. What is only meant, or only
// reserved, does not exist either way.
func (m *Machine) onAppendError(e *Append, a appending, err error) {
	m.mark(MarkEntryFailed)
	if e.Unknown {
		m.mark(MarkEntryUnknown)
	}
	switch w := a.work; {
	case w != nil:
		if e.Unknown && w.step == stepFinal && w.kind != workProducer {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		} else {
			err = fmt.Errorf("topics: the catalogue takes no entry: %w", err)
		}
		undo := !e.Unknown && w.step == stepFinal && (w.kind == workCreate || w.kind == workGrow)
		if undo {
			m.sweep(w.incarnation)
		}
		m.end(w, err)
	case a.snapshot:
		m.snapshots = true
	default:
		m.sweepOf(a.sweep).failed = true
	}
	if e.Unknown || e.Dead {
		m.again(err)
	}
}

func (m *Machine) onTrim(e *Trim, err error) {
	switch {
	case err == nil:
		m.mark(MarkTrim)
	case e.Dead:
		m.again(err)
	}
}

// nextDisk returns the next effect on partitions.
func (m *Machine) nextDisk() Effect {
	switch m.phase {
	case Opening:
		if e := m.nextBoot(); e != nil {
			return e
		}
	case Ready:
		for _, w := range m.works {
			if w.step == stepOpening && w.err == nil && w.at < w.count && (!w.again() || m.reopening < max(1, m.cfg.InFlightMax/2)) {
				return m.nextOpen(w)
			}
		}
	default:
		return nil
	}
	return m.nextRemove()
}

// nextOpen returns the opening of the next partition of a work.
func (m *Machine) nextOpen(w *work) Effect {
	t := m.state.Find(w.incarnation)
	check(t != nil, "what is opened is there")
	e := m.open(t, w.at, w)
	e.Create = w.kind == workCreate || w.kind == workGrow
	if w.kind == workCreate {
		e.Config = w.config
	}
	w.at++
	w.flying++
	if w.again() {
		m.reopening++
	}
	return e
}

func (m *Machine) onWorkOpen(e *Open, err error) {
	w := e.work
	w.flying--
	if w.again() {
		m.reopening--
	}
	if err != nil && w.step == stepOpening {
		if w.again() {
			m.setOffline(w.incarnation)
			w.late = false
		} else if w.err == nil {
			w.err = err
		}
	}
	if w.flying > 0 || w.step == stepOpening && w.err == nil && w.at < w.count {
		return
	}
	switch {
	case w.step == stepEnded:
		m.remove(w)
	case w.again():
		if w.late {
			m.mark(MarkOpenedLater)
		}
		m.version++
		m.remove(w)
	case w.err != nil:
		if w.kind == workCreate {
			m.mark(MarkCreateFailed)
		} else {
			m.mark(MarkGrowFailed)
		}
		m.sweep(w.incarnation)
		m.end(w, fmt.Errorf("topics: a partition of %s could not be made: %w", w.name, w.err))
	default:
		w.step = stepEntry
	}
}
