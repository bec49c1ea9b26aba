package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
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

// ask makes a request of the machine and waits for its outcome. If the context ends first, the request is
// under way: ErrUnknown.
func (b *Broker) ask(ctx context.Context, request func() (topics.Ticket, error)) (topics.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return topics.Outcome{}, err
	}
	answer := make(chan topics.Outcome, 1)
	b.mu.Lock()
	t, err := request()
	if err != nil {
		b.mu.Unlock()
		return topics.Outcome{}, err
	}
	b.answers[t] = answer
	b.settle()
	select {
	case o := <-answer:
		return o, o.Err
	case <-ctx.Done():
		return topics.Outcome{}, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
}

// Create creates a topic: it is there, durably, when Create returns. With ValidateOnly it says what it
// would: the topic that it returns then is nil. Errors: *NameError, *ConfigError, ErrPartitions,
// ErrTopicExists, ErrBudget, ErrBusy, ErrNotReady, ErrUnknown, ErrClosed, or what a partition's log could
// not be made for.
func (b *Broker) Create(ctx context.Context, s TopicSpec) (*Topic, error) {
	count, config := s.Partitions, pairs(s.Config)
	if count == 0 {
		count = b.options.Partitions
	}
	if err := topics.CheckName(s.Name); err != nil { // before it reaches Options.Tiers
		return nil, err
	}
	if err := b.checkConfig(s.Name, config); err != nil {
		return nil, err
	}
	if s.ValidateOnly {
		b.mu.Lock()
		defer b.mu.Unlock()
		return nil, b.machine.CheckCreate(s.Name, count, config)
	}
	var id topics.ID
	_, _ = rand.Read(id[:]) // never fails
	o, err := b.ask(ctx, func() (topics.Ticket, error) {
		return b.machine.Create(s.Name, count, config, id, time.Now().UnixMilli())
	})
	if err != nil {
		return nil, err
	}
	if t, err := b.TopicByID(id); err == nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: incarnation %d of %s was deleted at once", ErrUnknownTopic, o.Incarnation, s.Name)
}

// checkConfig says whether a log can be opened with a configuration. The error is a *ConfigError.
func (b *Broker) checkConfig(topic string, config []topics.Pair) error {
	if err := topics.CheckConfig(config, b.tiered); err != nil {
		return err
	}
	o := b.logOptions(topics.Dir{Topic: topic}, config)
	if err := o.Validate(); err != nil {
		return &ConfigError{Want: strings.TrimPrefix(err.Error(), "core: ")} // of several values together
	}
	return nil
}

// Delete deletes a topic: it does not exist any more when Delete returns, and comes back in no case. What
// its partitions hold is removed from all tiers afterwards. Only the incarnation that is meant is deleted, not one
// that has taken its name meanwhile: then it is ErrUnknownTopic. 0 is whichever has the name.
func (b *Broker) Delete(ctx context.Context, name string, incarnation uint64) error {
	_, err := b.ask(ctx, func() (topics.Ticket, error) { return b.machine.Delete(name, incarnation) })
	return err
}

// AutoCreate reports whether topics are created as soon as somebody asks for them.
func (b *Broker) AutoCreate() bool { return b.options.AutoCreate }

// AddPartitions gives a topic more partitions, so that it has count.
func (b *Broker) AddPartitions(ctx context.Context, name string, count int32, validateOnly bool) error {
	if validateOnly {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.machine.CheckGrow(name, count)
	}
	_, err := b.ask(ctx, func() (topics.Ticket, error) { return b.machine.Grow(name, count) })
	return err
}

// Configure gives a topic another configuration: change is given a copy of all that the topic sets, and changes it.
// If somebody else was faster it is called again with what that one has set. The configuration holds when Configure
// returns; the logs are then opened again with it, and meanwhile their partitions are offline for a moment. With
// validateOnly nothing is changed: the error is the one that it would be.
func (b *Broker) Configure(ctx context.Context, name string, change func(config map[string]string), validateOnly bool) error {
	for {
		t, err := b.Topic(name)
		if err != nil {
			return err
		}
		config := t.Config()
		before := pairs(config)
		change(config)
		after := pairs(config)
		if err := b.checkConfig(name, after); err != nil || validateOnly {
			return err
		}
		_, err = b.ask(ctx, func() (topics.Ticket, error) { return b.machine.Configure(name, before, after) })
		if !errors.Is(err, topics.ErrChanged) {
			return err
		}
	}
}

// ProducerID returns an id that was never given out before, whatever crashed meanwhile.
func (b *Broker) ProducerID(ctx context.Context) (int64, error) {
	o, err := b.ask(ctx, b.machine.Producer)
	return o.Producer, err
}
