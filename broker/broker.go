package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"varve"
	"varve/core/topics"
)

// Broker is an open node. Its methods may be called from any goroutine.
type Broker struct {
	dir     string
	options Options
	tiered  bool // there is a cold tier

	mu      sync.Mutex // one change at a time
	state   topics.State
	log     *varve.Log
	spare   int64 // producer ids below NextProducer that are not given out
	closed  bool
	encoded []byte

	known  atomic.Pointer[known]
	opened atomic.Int32
	of     atomic.Int32
	ready  atomic.Bool
}

// known is what lookups see.
type known struct {
	byName []*Topic
	names  map[string]*Topic
	ids    map[[16]byte]*Topic
}

// Open opens the node in a directory, which is made if it is missing.
func Open(ctx context.Context, dir string, o Options) (*Broker, error) {
	o.defaults()
	if err := o.Log.Validate(); err != nil {
		return nil, err
	}
	b := &Broker{dir: dir, options: o}
	b.state.Reset()
	b.publish(nil)
	var err error
	if b.log, err = varve.Open(ctx, filepath.Join(dir, "catalogue"), varve.Options{Logger: o.Logger}); err != nil {
		return nil, err
	}
	if err := b.recover(ctx); err != nil {
		_ = b.Close(ctx)
		return nil, err
	}
	b.ready.Store(true)
	return b, nil
}

// recover reads the catalogue and opens what it names.
func (b *Broker) recover(ctx context.Context) error {
	var r topics.Reader
	var e topics.Entry
	for rec, err := range b.log.Records(ctx, varve.Position{Offset: b.log.Start()}) {
		if err != nil {
			return err
		}
		if err := r.Read(rec.Value, &e); err != nil {
			return &topics.CatalogueError{Offset: rec.Offset, Why: err.Error()}
		}
		if err := b.state.Apply(&e); err != nil {
			return &topics.CatalogueError{Offset: rec.Offset, Why: err.Error()}
		}
	}
	var all []*Topic
	for i := range b.state.Incarnations {
		if t := &b.state.Incarnations[i]; t.Status == topics.Live {
			b.of.Add(t.Partitions)
		}
	}
	for _, t := range slices.Clone(b.state.Incarnations) {
		if t.Status != topics.Live {
			if err := b.remove(t); err != nil {
				return err
			}
			continue
		}
		x := &Topic{Name: t.Name, ID: t.ID, Incarnation: t.Incarnation}
		b.configured(x, t.Config)
		list := b.open(ctx, t.Name, t.Incarnation, 0, t.Partitions, t.Config, false)
		x.partitions.Store(&list)
		all = append(all, x)
	}
	b.publish(all)
	return nil
}

func (b *Broker) configured(t *Topic, config []topics.Pair) {
	v := values(config)
	t.config.Store(&v)
}

func (b *Broker) publish(all []*Topic) {
	k := &known{byName: all, names: make(map[string]*Topic), ids: make(map[[16]byte]*Topic)}
	slices.SortFunc(all, func(x, y *Topic) int { return strings.Compare(x.Name, y.Name) })
	for _, t := range all {
		k.names[t.Name], k.ids[t.ID] = t, t
	}
	b.known.Store(k)
}

func (b *Broker) dirOf(topic string, incarnation uint64, partition int32) string {
	return filepath.Join(b.dir, "topics", topic, strconv.FormatUint(incarnation, 10), strconv.Itoa(int(partition)))
}

// open opens the logs of partitions [from, to).
func (b *Broker) open(ctx context.Context, topic string, incarnation uint64, from, to int32, config []topics.Pair, create bool) []*Partition {
	var list []*Partition
	for i := from; i < to; i++ {
		p, s := &Partition{Number: i}, new(served)
		dir := b.dirOf(topic, incarnation, i)
		o := b.logOptions(topic, incarnation, i, config)
		o.Create = create
		if _, err := os.Stat(dir); !create && err != nil && o.Cold == nil && o.Warm.Dialer == nil {
			s.err = offline(topic, i, err)
		} else if s.log, err = varve.Open(ctx, dir, o); err != nil {
			s.log, s.err = nil, offline(topic, i, err)
		} else {
			s.epoch = int32(s.log.Stats().Epoch)
		}
		p.state.Store(s)
		list = append(list, p)
		b.opened.Add(1)
	}
	return list
}

// remove removes what is left of an incarnation.
func (b *Broker) remove(t topics.Topic) error {
	dir := filepath.Dir(b.dirOf(t.Name, t.Incarnation, 0))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(dir))
	return b.commit(context.Background(), &topics.Entry{Kind: topics.Gone, Topic: t.Name, Incarnation: t.Incarnation})
}

// commit appends an entry and applies it.
func (b *Broker) commit(ctx context.Context, e *topics.Entry) error {
	b.encoded = topics.AppendEntry(b.encoded[:0], e)
	_, err := b.log.Append(context.WithoutCancel(ctx), varve.Record{Value: b.encoded})
	switch {
	case errors.Is(err, varve.ErrUnknown):
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case err != nil:
		return err
	}
	return b.state.Apply(e)
}

// Close closes all partitions and the catalogue.
func (b *Broker) Close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.ready.Store(false)
	var errs []error
	for _, t := range b.known.Load().byName {
		errs = append(errs, b.shut(ctx, t))
	}
	errs = append(errs, b.log.Close(ctx))
	return errors.Join(errs...)
}

func (b *Broker) shut(ctx context.Context, t *Topic) error {
	var errs []error
	for _, p := range *t.partitions.Load() {
		if l := p.Log(); l != nil {
			errs = append(errs, l.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

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

// Ready reports whether the node is open, and how many of its partitions have been opened so far.
func (b *Broker) Ready() (ready bool, opened, of int) {
	return b.ready.Load(), int(b.opened.Load()), int(b.of.Load())
}
