package topics

import (
	"errors"
	"fmt"

	"varve/core"
)

// Phase is where a machine stands in its life.
type Phase uint8

// Phases. Loading leads to Listing, Listing to Opening, that to Ready. A catalogue that fails under way
// leads from anywhere to Draining and back to Loading; one that cannot be opened again to Down, until
// Retry. What makes no sense ends in Failed, Close in Closing and Closed.
const (
	Loading  Phase = iota
	Listing        // of what is on disk
	Opening        // of partitions
	Ready          // requests are carried out
	Draining       // waits for effects in flight before the catalogue is opened again
	Down           // the catalogue cannot be opened
	Closing        // waits for effects in flight
	Closed
	Failed
)

// String returns the phase's name.
func (p Phase) String() string {
	return [...]string{"loading", "listing", "opening", "ready", "draining", "down", "closing", "closed", "failed"}[p]
}

// Config is the numbers of a machine.
type Config struct {
	PartitionsMax   int32 // of the node
	Tiered          bool  // there is a cold tier
	InFlightMax     int   // effects on partitions at once
	RequestsMax     int   // that wait or are under way
	ProducersBlock  int64 // producer ids that one entry reserves
	SnapshotEntries int64 // a snapshot is due after so many entries, and four for each incarnation
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{PartitionsMax: 4096, InFlightMax: 32, RequestsMax: 1024, ProducersBlock: 1000, SnapshotEntries: 1000}
}

// Machine decides everything about topics; the driver acts. It is not safe for concurrent use.
type Machine struct {
	cfg     Config
	phase   Phase
	err     error // why it is Down or Failed
	marks   MarkSet
	state   State
	version uint64 // moves with what a client may see of the topics
	ticket  Ticket
	reader  Reader

	// Invariant: of load, read, list, append and trim at most one is in flight.
	catalogue bool // one of them is
	load      Load
	read      Read
	loaded    bool        // the log is ready: it is to be read
	next      core.Offset // of the entry that Replay has to be given next
	list      List
	append    Append
	trim      Trim
	appending appending
	out       Entry // that Append carries, but for a snapshot
	in        Entry // that Replay reads

	replayed  int64 // entries since the last snapshot, or the start
	replayErr error
	trimTo    int64 // 0: nothing to trim
	snapshots bool  // the last one failed: not before Retry
	spare     int64 // producer ids below state.NextProducer that are not given out

	// Invariant: flying counts the effects Open and Remove in flight, reopening those of works that open again.
	flying    int
	reopening int
	boot      boot
	works     []*work // in the order of their requests
	sweeps    []sweep // one for each incarnation of which something is to be removed
	offline   []uint64
	everOpen  bool // it was Ready: requests may wait

	freeWorks   *work
	freeOpens   *Open
	freeRemoves *Remove
	outcomes    []Outcome
	taken       int // outcomes that were handed out
}

// boot is the opening of partitions that exist.
type boot struct {
	at     uint64 // incarnation that is next, if it is there
	next   int32  // and its partition
	opened int
	of     int
}

// appending says what the Append in flight is for.
type appending struct {
	work     *work
	sweep    uint64 // incarnation; 0: none
	snapshot bool
}

// Begin starts a machine: its first effect is Load.
func (m *Machine) Begin(cfg Config) {
	keepWorks, keepOpens, keepRemoves := m.freeWorks, m.freeOpens, m.freeRemoves
	for _, w := range m.works {
		w.next, keepWorks = keepWorks, w
	}
	*m = Machine{
		cfg: cfg, state: m.state, reader: m.reader, list: List{Dirs: m.list.Dirs, Others: m.list.Others},
		append: Append{Entry: m.append.Entry}, in: Entry{Config: m.in.Config, Topics: m.in.Topics},
		works: m.works[:0], sweeps: m.sweeps[:0], offline: m.offline[:0], outcomes: m.outcomes[:0],
		freeWorks: keepWorks, freeOpens: keepOpens, freeRemoves: keepRemoves,
	}
	m.state.Reset()
}

// Phase returns where the machine stands.
func (m *Machine) Phase() Phase { return m.phase }

// Err returns why the machine is Down or Failed.
func (m *Machine) Err() error { return m.err }

// State returns what the catalogue amounts to. It must not be changed, and is good until the next call.
func (m *Machine) State() *State { return &m.state }

// Version moves whenever another set of topics, partitions or configurations exists for clients.
func (m *Machine) Version() uint64 { return m.version }

// Opened returns how many partitions of those that exist an open has dealt with so far.
func (m *Machine) Opened() (opened, of int) { return m.boot.opened, m.boot.of }

// Next returns an effect for the driver to carry out, nil if there is none now. Ask until there is none,
// after every call that changes something. Effects may be carried out at the same time, in any order.
func (m *Machine) Next() Effect {
	if m.phase == Closing || m.phase == Draining {
		m.drained()
	}
	if !m.catalogue {
		if e := m.nextCatalogue(); e != nil {
			m.catalogue = true
			return e
		}
	}
	if m.flying < m.cfg.InFlightMax {
		if e := m.nextDisk(); e != nil {
			m.flying++
			return e
		}
	}
	return nil
}

// drained moves on once nothing is in flight.
func (m *Machine) drained() {
	switch {
	case m.catalogue || m.flying > 0:
	case m.phase == Closing:
		m.phase = Closed
	case m.phase == Draining:
		m.reload()
	}
}

func (m *Machine) nextCatalogue() Effect {
	switch m.phase {
	case Loading:
		if m.loaded {
			return &m.read
		}
		m.load = Load{}
		m.state.Reset()
		m.replayed, m.replayErr, m.trimTo, m.spare = 0, nil, 0, 0
		return &m.load
	case Listing:
		m.list.Dirs, m.list.Others = m.list.Dirs[:0], m.list.Others[:0]
		return &m.list
	case Opening, Ready:
		return m.nextEntry()
	}
	return nil
}

// Complete takes the answer to an effect: the very one that Next returned.
func (m *Machine) Complete(e Effect, err error) {
	switch e := e.(type) {
	case *Open:
		m.flying--
		m.onOpen(e, err)
		*e = Open{in: m.freeOpens}
		m.freeOpens = e
	case *Remove:
		m.flying--
		m.onRemove(e, err)
		*e = Remove{in: m.freeRemoves}
		m.freeRemoves = e
	case *Load:
		m.catalogue = false
		m.onLoad(err)
	case *Read:
		m.catalogue = false
		m.onRead(err)
	case *List:
		m.catalogue = false
		m.onList(err)
	case *Append:
		m.catalogue = false
		m.onAppend(e, err)
	case *Trim:
		m.catalogue = false
		m.onTrim(e, err)
	}
	m.drained()
}

// Retry tries again what failed: to open the catalogue, to open partitions that are offline, to remove
// what could not be removed. The driver calls it every now and then.
func (m *Machine) Retry() {
	m.snapshots = false
	for i := range m.sweeps {
		m.sweeps[i].failed = false
	}
	switch m.phase {
	case Down:
		m.phase = Loading
	case Ready:
		for i := len(m.offline) - 1; i >= 0; i-- {
			m.Reopen(m.offline[i])
		}
	}
}

// Close ends the machine: requests that wait, and those under way whose last entry is not yet on its way
// to the catalogue, end with ErrClosed. It is Closed when no effect is in flight any more.
func (m *Machine) Close() {
	if m.phase >= Closing && m.phase != Failed {
		return
	}
	m.abort(ErrClosed, true)
	m.phase = Closing
	m.drained()
}

// fail ends the machine because what it was told makes no sense.
func (m *Machine) fail(err error) {
	m.phase, m.err = Failed, err
	m.abort(err, true)
}

// again opens the catalogue again: it is poisoned, or nobody knows what it holds.
func (m *Machine) again(cause error) {
	if m.phase != Opening && m.phase != Ready {
		return
	}
	m.mark(MarkReload)
	m.err = cause
	m.phase = Draining
	m.abort(fmt.Errorf("%w: %w", ErrNotReady, cause), false)
}

// reload begins again with the catalogue.
func (m *Machine) reload() {
	m.phase, m.loaded = Loading, false
	m.sweeps = m.sweeps[:0]
}

var errShortCatalogue = errors.New("its first entry is not a snapshot, and entries before it are gone")
