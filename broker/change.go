package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"varve/core/topics"
)

// TopicSpec is what a topic is created with.
type TopicSpec struct {
	Name         string
	Partitions   int32 // 0: as Options say
	Config       map[string]string
	ValidateOnly bool
}

// Create creates a topic. With ValidateOnly it says what it would: the topic that it returns is nil.
func (b *Broker) Create(ctx context.Context, s TopicSpec) (*Topic, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	if err := topics.CheckName(s.Name); err != nil {
		return nil, err
	}
	if b.state.Named(s.Name) != nil {
		return nil, ErrTopicExists
	}
	count := s.Partitions
	if count == 0 {
		count = b.options.Partitions
	}
	if count < 1 {
		return nil, fmt.Errorf("%w: %d", ErrPartitions, count)
	}
	config := pairs(s.Config)
	if err := topics.CheckConfig(config, b.tiered); err != nil {
		return nil, err
	}
	if err := b.budget(count); err != nil || s.ValidateOnly {
		return nil, err
	}
	e := topics.Entry{Kind: topics.Begin, Topic: s.Name, Incarnation: b.state.NextIncarnation, Count: int64(count)}
	if err := b.commit(ctx, &e); err != nil {
		return nil, err
	}
	list := b.open(ctx, s.Name, e.Incarnation, 0, count, config, true)
	t := &Topic{Name: s.Name, Incarnation: e.Incarnation}
	t.partitions.Store(&list)
	b.configured(t, config)
	for _, p := range list {
		if p.Err() != nil {
			_ = b.shut(ctx, t)
			return nil, p.Err()
		}
	}
	_, _ = rand.Read(t.ID[:])
	e.Kind, e.ID, e.Time, e.Config = topics.Create, t.ID, time.Now().UnixMilli(), config
	if err := b.commit(ctx, &e); err != nil {
		return nil, err
	}
	b.publish(append(b.Topics(), t))
	return t, nil
}

func (b *Broker) budget(more int32) error {
	n := more
	for i := range b.state.Incarnations {
		n += b.state.Incarnations[i].Partitions
	}
	if n > b.options.PartitionsMax {
		return fmt.Errorf("%w: %d, at most %d", ErrBudget, n, b.options.PartitionsMax)
	}
	return nil
}

// Delete deletes a topic with all that its partitions hold.
func (b *Broker) Delete(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.change(name)
	if err != nil {
		return err
	}
	if err := b.commit(ctx, &topics.Entry{Kind: topics.Delete, Topic: name, Incarnation: t.Incarnation}); err != nil {
		return err
	}
	b.publish(slices.DeleteFunc(b.Topics(), func(x *Topic) bool { return x == t }))
	_ = b.shut(ctx, t)
	return b.remove(*b.state.Find(t.Incarnation))
}

// change returns the topic that is about to be changed. The mutex is held.
func (b *Broker) change(name string) (*Topic, error) {
	if b.closed {
		return nil, ErrClosed
	}
	return b.Topic(name)
}

// AddPartitions gives a topic more partitions, so that it has count.
func (b *Broker) AddPartitions(ctx context.Context, name string, count int32, validateOnly bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.change(name)
	if err != nil {
		return err
	}
	have := t.Partitions()
	if count <= have {
		return fmt.Errorf("%w: topic %s has %d, cannot become %d", ErrPartitions, name, have, count)
	}
	if err := b.budget(count - have); err != nil || validateOnly {
		return err
	}
	e := topics.Entry{Kind: topics.Grow, Topic: name, Incarnation: t.Incarnation, Count: int64(count)}
	if err := b.commit(ctx, &e); err != nil {
		return err
	}
	list := b.open(ctx, name, t.Incarnation, have, count, pairs(t.Config()), true)
	e.Kind = topics.Partitions
	if err := b.commit(ctx, &e); err != nil {
		return err
	}
	list = append(slices.Clone(*t.partitions.Load()), list...)
	t.partitions.Store(&list)
	return nil
}

// Configure gives a topic another configuration, in place of all that it sets.
func (b *Broker) Configure(ctx context.Context, name string, config map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.change(name)
	if err != nil {
		return err
	}
	list := pairs(config)
	if err := topics.CheckConfig(list, b.tiered); err != nil {
		return err
	}
	if err := b.commit(ctx, &topics.Entry{Kind: topics.Configure, Topic: name, Incarnation: t.Incarnation, Config: list}); err != nil {
		return err
	}
	b.configured(t, list)
	return nil
}

// producersBlock is how many producer ids are reserved at once.
const producersBlock = 1000

// ProducerID returns an id that was never given out before, whatever crashed meanwhile.
func (b *Broker) ProducerID(ctx context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, ErrClosed
	}
	if b.spare == 0 {
		next := b.state.NextProducer + producersBlock
		if err := b.commit(ctx, &topics.Entry{Kind: topics.Producers, Count: next}); err != nil {
			return 0, err
		}
		b.spare = producersBlock
	}
	b.spare--
	return b.state.NextProducer - b.spare - 1, nil
}
