package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"varve"
	"varve/core"
	"varve/core/topics"
)

// Broker is an open node. Its methods may be called from any goroutine.
type Broker struct {
	tree    tree
	options Options
	tiered  bool  // there is a cold tier
	files   int64 // that the process may open
	budget  *varve.Budget
	logger  *slog.Logger
	lock    io.Closer

	known  atomic.Pointer[known]
	opened atomic.Int32
	of     atomic.Int32
	ready  atomic.Bool
	stuck  atomic.Pointer[error] // why topics cannot be changed

	mu      sync.Mutex // guards the machine and what follows
	machine topics.Machine
	version uint64 // of what was published
	phase   topics.Phase
	moved   chan struct{} // closed when the phase changes
	answers map[topics.Ticket]chan topics.Outcome
	topics  map[uint64]*Topic    // that exist, by incarnation
	parts   map[place]*Partition // of these, and of those that are made or removed
	removed map[uint64]span      // of a removal that is to go on: how far it came, by incarnation
	effects sync.WaitGroup

	complaints complaints

	log *varve.Log // the catalogue; only effects on it use it

	life    context.Context // ends with Close: nothing waits for a tier any more
	die     context.CancelFunc
	shut    sync.Once
	stopped chan struct{} // closed by shut: nothing is tried again
	ended   chan struct{} // closed when all is closed
	endErr  error         // of that
}

// place is where a partition is.
type place struct {
	incarnation uint64
	partition   int32
}

// known is what lookups see.
type known struct {
	byName []*Topic
	names  map[string]*Topic
	ids    map[[16]byte]*Topic
}

// Open opens the node in a directory, which is made if it is missing. It returns when all partitions were
// opened; one that cannot be is offline, and the others are served. Errors: those of varve.Open about the
// catalogue, *topics.UnreadyError, *topics.CatalogueError, *topics.UnknownDirError, ErrBudget, varve.ErrInUse, the context's.
func Open(ctx context.Context, dir string, o Options) (*Broker, error) {
	if dir == "" { // and not the one that the process is in
		return nil, errors.New("broker: open: the name of the directory is empty")
	}
	return openTree(ctx, &dirTree{dir: dir}, o)
}

func openTree(ctx context.Context, t tree, o Options) (*Broker, error) {
	o.defaults()
	if err := o.Log.Validate(); err != nil {
		return nil, err
	}
	max, err := o.partitionsMax()
	if err != nil {
		return nil, err
	}
	b := &Broker{
		tree: t, options: o, logger: o.Logger, budget: o.budget(),
		answers: make(map[topics.Ticket]chan topics.Outcome), topics: make(map[uint64]*Topic), parts: make(map[place]*Partition),
		removed: make(map[uint64]span), complaints: complaints{logger: o.Logger, said: make(map[complaint]*saying)},
		stopped: make(chan struct{}), ended: make(chan struct{}),
	}
	if b.files, err = filesMax(); err != nil {
		return nil, err
	}
	b.life, b.die = context.WithCancel(context.Background())
	if o.Tiers != nil {
		cold, _, _ := o.Tiers("tiers", 0, 0)
		b.tiered = cold != nil
	}
	b.publish(nil)
	if b.lock, err = t.lock(); err != nil {
		b.die()
		return nil, inUse(t.name(), err)
	}
	if o.Opening != nil {
		o.Opening(b)
	}
	cfg := topics.DefaultConfig()
	cfg.PartitionsMax, cfg.Tiered = max, b.tiered
	b.mu.Lock()
	b.machine.Begin(cfg)
	b.settle()
	if err := b.await(ctx); err != nil {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), openGrace)
		defer cancel()
		_ = b.Close(grace)
		return nil, unreadable(t.name(), err)
	}
	go b.retry()
	return b, nil
}

// unreadable says of a catalogue that is damaged which one it is, and what to do.
func unreadable(dir string, err error) error {
	var damage *varve.CorruptError
	var entry *topics.CatalogueError
	why := ""
	switch {
	case errors.As(err, &damage):
		why = fmt.Sprintf("damage in %s, offset %d: expected %s, found %s", damage.Place(), damage.Offset, damage.Expected, damage.Found)
	case errors.As(err, &entry):
		why = fmt.Sprintf("entry %d: %s", entry.Offset, entry.Why)
	default:
		return fmt.Errorf("%s: %w", dir, err)
	}
	return &damagedCatalogueError{
		text: fmt.Sprintf("%s/%s: %s; to make a catalogue of what is left: varve topic rebuild-catalogue --dir %s", dir, catalogueName, why, dir), err: err,
	}
}

type damagedCatalogueError struct {
	text string
	err  error
}

func (e *damagedCatalogueError) Error() string { return e.text }
func (e *damagedCatalogueError) Unwrap() error { return e.err }

const (
	openGrace  = 2 * time.Second  // how long a failed Open waits for the disk
	retryPause = 10 * time.Second // between attempts at what failed
	lookPause  = time.Second      // between looks for what goes wrong
)

// await waits until the machine has opened the node.
func (b *Broker) await(ctx context.Context) error {
	for {
		b.mu.Lock()
		phase, err := b.phase, b.machine.Err()
		if b.moved == nil {
			b.moved = make(chan struct{})
		}
		moved := b.moved
		b.mu.Unlock()
		switch phase {
		case topics.Ready:
			return nil
		case topics.Failed:
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle ends every critical section: it publishes what the machine says, starts its effects, hands out
// its outcomes, and gives the mutex back.
func (b *Broker) settle() {
	b.publishState()
	for e := b.machine.Next(); e != nil; e = b.machine.Next() {
		b.effects.Add(1)
		go b.carry(e)
	}
	for o, ok := b.machine.NextOutcome(); ok; o, ok = b.machine.NextOutcome() {
		b.answers[o.Ticket] <- o // it has room for the one
		delete(b.answers, o.Ticket)
	}
	opened, of := b.machine.Opened()
	b.opened.Store(int32(opened))
	b.of.Store(int32(of))
	var moved chan struct{}
	if p := b.machine.Phase(); p != b.phase {
		b.stuck.Store(b.whyStuck(p))
		b.report(p)
		b.phase = p
		switch p {
		case topics.Ready:
			b.ready.Store(true)
		case topics.Closing, topics.Closed:
			b.ready.Store(false)
		}
		moved, b.moved = b.moved, nil
	}
	b.mu.Unlock()
	if moved != nil {
		close(moved)
	}
}

// publishState makes what exists visible if it changed. The mutex is held.
func (b *Broker) publishState() {
	v := b.machine.Version()
	if v == b.version {
		return
	}
	b.version = v
	var all []*Topic
	live := make(map[uint64]*Topic)
	s := b.machine.State()
	for i := range s.Incarnations {
		if x := &s.Incarnations[i]; x.Status == topics.Live {
			t := b.topicOf(x)
			live[x.Incarnation] = t
			all = append(all, t)
		}
	}
	b.topics = live
	b.publish(all)
}

// topicOf returns the Topic of an incarnation that exists, brought up to date. The mutex is held.
func (b *Broker) topicOf(x *topics.Topic) *Topic {
	t := b.topics[x.Incarnation]
	if t == nil {
		t = &Topic{Name: x.Name, ID: x.ID, Incarnation: x.Incarnation}
		t.partitions.Store(new([]*Partition))
	}
	v := values(x.Config)
	t.config.Store(&v)
	if n := t.Partitions(); n < x.Partitions {
		list := slices.Clone(*t.partitions.Load())
		for ; n < x.Partitions; n++ {
			list = append(list, b.part(topics.Dir{Topic: x.Name, Incarnation: x.Incarnation, Partition: n}))
		}
		t.partitions.Store(&list)
	}
	return t
}

// part returns a partition, which is offline until it is opened. The mutex is held.
func (b *Broker) part(d topics.Dir) *Partition {
	at := place{d.Incarnation, d.Partition}
	p := b.parts[at]
	if p == nil {
		p = &Partition{Number: d.Partition, Dir: b.tree.name() + "/" + d.String()}
		p.state.Store(&served{err: offline(d, errNotYet), epoch: -1})
		b.parts[at] = p
	}
	return p
}

func (b *Broker) publish(all []*Topic) {
	k := &known{byName: all, names: make(map[string]*Topic, len(all)), ids: make(map[[16]byte]*Topic, len(all))}
	slices.SortFunc(all, func(x, y *Topic) int { return strings.Compare(x.Name, y.Name) })
	for _, t := range all {
		k.names[t.Name], k.ids[t.ID] = t, t
	}
	b.known.Store(k)
}

// retry has the machine try again what failed, opens what is poisoned, and tells what goes wrong meanwhile.
func (b *Broker) retry() {
	tick, look := time.NewTicker(retryPause), time.NewTicker(lookPause)
	defer tick.Stop()
	defer look.Stop()
	var t troubles
	for {
		select {
		case <-b.stopped:
			return
		case <-tick.C:
			b.mend()
		case <-look.C:
			b.look(&t)
		}
	}
}

// mend is one round of retry.
func (b *Broker) mend() {
	b.mu.Lock()
	b.machine.Retry()
	for at, p := range b.parts {
		switch l := p.Log(); {
		case l == nil:
		case errors.Is(l.Err(), varve.ErrOwnerFenced):
			d := topics.Dir{Incarnation: at.incarnation, Partition: at.partition}
			if t := b.machine.State().Find(at.incarnation); t != nil {
				d.Topic = t.Name
			}
			b.complain("broker: partition is offline: another node has taken it over; end one of the two", d, l.Err())
			p.leave(offline(d, l.Err())) // what this node still has of it may be void: nobody is to read it
		case dead(l):
			b.machine.Reopen(at.incarnation)
		}
	}
	b.settle()
}

// dead reports whether only opening a log again can help it. One that waits for a tier heals by itself, and one
// whose place another owner has taken would take it back, and again: who acked what would be anybody's guess.
func dead(l *varve.Log) bool {
	err := l.Err()
	if err == nil || errors.Is(err, varve.ErrOwnerFenced) {
		return false
	}
	phase := l.Phase()
	return phase == core.Poisoned || phase == core.Failed
}

// Close ends the node: requests under way end, all partitions and the catalogue are closed. It returns
// when that is done, or with the context's error; the closing then goes on, and Close may be called again
// to wait for it. An error says that something did not close cleanly: what was acked is safe.
func (b *Broker) Close(ctx context.Context) error {
	b.shut.Do(func() {
		close(b.stopped)
		b.mu.Lock()
		b.machine.Close()
		b.settle()
		b.die()
		go b.end()
	})
	select {
	case <-b.ended:
		return b.endErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end closes everything once no effect is in flight.
func (b *Broker) end() {
	b.effects.Wait()
	b.mu.Lock()
	var logs []*varve.Log
	for _, p := range b.parts {
		if l := p.state.Load().log; l != nil {
			logs = append(logs, l)
		}
	}
	b.mu.Unlock()
	errs := make([]error, len(logs))
	var done sync.WaitGroup
	gate := make(chan struct{}, closingMax)
	for i, l := range logs {
		gate <- struct{}{}
		done.Go(func() {
			errs[i] = l.Close(context.Background())
			<-gate
		})
	}
	done.Wait()
	if b.log != nil { // last: it says what the others are
		errs = append(errs, b.log.Close(context.Background()))
	}
	_ = b.lock.Close()
	b.endErr = errors.Join(errs...)
	close(b.ended)
}

// closingMax is how many logs are closed at once.
const closingMax = 64

// Topics returns all topics, sorted by name.
func (b *Broker) Topics() []*Topic { return slices.Clone(b.known.Load().byName) }

// Topic returns a topic by name, or ErrUnknownTopic.
func (b *Broker) Topic(name string) (*Topic, error) {
	if t := b.known.Load().names[name]; t != nil {
		return t, nil
	}
	return nil, ErrUnknownTopic
}

// TopicByID returns a topic by id, or ErrUnknownTopic.
func (b *Broker) TopicByID(id [16]byte) (*Topic, error) {
	if t := b.known.Load().ids[id]; t != nil {
		return t, nil
	}
	return nil, ErrUnknownTopic
}
