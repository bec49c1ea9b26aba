package topics

import "fmt"

// Ticket names a request that was accepted. It ends with exactly one Outcome.
type Ticket uint64

// Outcome is how a request ended. Err matches ErrUnknown if nobody knows; every other error is definite:
// nothing of the request exists, or will.
type Outcome struct {
	Ticket      Ticket
	Err         error
	Incarnation uint64 // that was created, changed or deleted
	Producer    int64  // the id given out
}

// NextOutcome returns the outcomes since the last call, one by one. Ask after Next has no more effects.
func (m *Machine) NextOutcome() (Outcome, bool) {
	if m.taken == len(m.outcomes) {
		m.outcomes, m.taken = m.outcomes[:0], 0
		return Outcome{}, false
	}
	m.taken++
	return m.outcomes[m.taken-1], true
}

// Create asks for a new topic; id and time (milliseconds since 1970) are drawn by the driver, and config
// is sorted by name. Requests about one topic are carried out one after the other.
func (m *Machine) Create(name string, partitions int32, config []Pair, id ID, time int64) (Ticket, error) {
	if err := m.checkCreate(name, partitions, config); err != nil {
		return 0, err
	}
	w, err := m.request(workCreate, name)
	if err != nil {
		return 0, err
	}
	w.count, w.id, w.time = partitions, id, time
	w.config = append(w.config, config...)
	return w.ticket, nil
}

// CheckCreate says how Create would end as things are, nil if well.
func (m *Machine) CheckCreate(name string, partitions int32, config []Pair) error {
	if err := m.checkCreate(name, partitions, config); err != nil {
		return err
	}
	if m.phase != Ready {
		return m.refusal()
	}
	if m.state.Named(name) != nil {
		return ErrExists
	}
	return m.budget(partitions)
}

func (m *Machine) checkCreate(name string, partitions int32, config []Pair) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if partitions < 1 || partitions > PartitionsMax {
		return fmt.Errorf("%w: %d, want 1 to %d", ErrPartitions, partitions, PartitionsMax)
	}
	return CheckConfig(config, m.cfg.Tiered)
}

// Delete asks for a topic to be deleted: for the incarnation that is meant, so that none which took its name
// meanwhile is deleted in its place; 0 is whichever has the name.
func (m *Machine) Delete(name string, incarnation uint64) (Ticket, error) {
	w, err := m.request(workDelete, name)
	if err != nil {
		return 0, err
	}
	w.incarnation = incarnation
	return w.ticket, nil
}

// Grow asks for more partitions of a topic, count in all.
func (m *Machine) Grow(name string, count int32) (Ticket, error) {
	w, err := m.request(workGrow, name)
	if err != nil {
		return 0, err
	}
	w.count = count
	return w.ticket, nil
}

// CheckGrow says how Grow would end as things are, nil if well.
func (m *Machine) CheckGrow(name string, count int32) error {
	if m.phase != Ready {
		return m.refusal()
	}
	return m.mayGrow(m.state.Named(name), count)
}

func (m *Machine) mayGrow(t *Topic, count int32) error {
	switch {
	case t == nil:
		return ErrNotFound
	case count <= t.Partitions || count > PartitionsMax:
		return fmt.Errorf("%w: topic %s has %d, it cannot become %d", ErrPartitions, t.Name, t.Partitions, count)
	case t.Growing != 0:
		return fmt.Errorf("%w: what a growth of topic %s left is being removed", ErrBusy, t.Name)
	}
	return m.budget(count - t.Partitions)
}

// Configure asks for another configuration of a topic, in place of all that it sets; sorted by name. It was made
// of what the topic set before: if that is not what it sets when the request has its turn, the request ends with
// ErrChanged, so that of two changes at once none is lost.
func (m *Machine) Configure(name string, before, config []Pair) (Ticket, error) {
	if err := CheckConfig(config, m.cfg.Tiered); err != nil {
		return 0, err
	}
	w, err := m.request(workConfigure, name)
	if err != nil {
		return 0, err
	}
	w.before = append(w.before, before...)
	w.config = append(w.config, config...)
	return w.ticket, nil
}

// Producer asks for a producer id that was never given out before.
func (m *Machine) Producer() (Ticket, error) {
	w, err := m.request(workProducer, "")
	if err != nil {
		return 0, err
	}
	return w.ticket, nil
}

// Reopen opens the partitions of an incarnation again as far as that is needed: those that are offline
// or poisoned. It has no outcome.
func (m *Machine) Reopen(incarnation uint64) {
	t := m.state.Find(incarnation)
	if m.phase != Ready || t == nil || t.Status != Live {
		return
	}
	for _, w := range m.works {
		if w.kind == workReopen && w.incarnation == incarnation {
			return
		}
	}
	w := m.add(workReopen, t.Name)
	w.incarnation = incarnation
}

// request accepts a request, or says why not.
func (m *Machine) request(kind workKind, name string) (*work, error) {
	switch {
	case m.phase == Closing || m.phase == Closed:
		return nil, ErrClosed
	case m.phase == Failed || m.phase == Down:
		return nil, m.refusal()
	case m.asked() >= m.cfg.RequestsMax:
		return nil, fmt.Errorf("%w: %d requests are waiting", ErrBusy, m.cfg.RequestsMax)
	}
	w := m.add(kind, name)
	m.ticket++
	w.ticket = m.ticket
	return w, nil
}

// asked returns how many requests wait for their outcome. What the machine does on its own does not keep
// anybody from asking.
func (m *Machine) asked() (n int) {
	for _, w := range m.works {
		if w.ticket != 0 {
			n++
		}
	}
	return n
}

// refusal is why nothing is accepted.
func (m *Machine) refusal() error {
	switch {
	case m.phase == Closing || m.phase == Closed:
		return ErrClosed
	case m.err != nil:
		return fmt.Errorf("%w: %w", ErrNotReady, m.err)
	}
	return ErrNotReady
}

// budget says whether the node may have so many partitions more.
func (m *Machine) budget(more int32) error {
	n := int64(more)
	for i := range m.state.Incarnations {
		if t := &m.state.Incarnations[i]; t.Status != Dead {
			n += int64(max(t.Partitions, t.Growing))
		}
	}
	if n > int64(m.cfg.PartitionsMax) {
		m.mark(MarkBudget)
		return fmt.Errorf("%w: it would have %d, at most %d", ErrBudget, n, m.cfg.PartitionsMax)
	}
	return nil
}
