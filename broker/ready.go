package broker

import (
	"fmt"

	"varve/core/topics"
)

// Ready reports whether topics are served: the node was opened, and is not closed. opened and of are how far an open
// has come: how many partitions it has dealt with.
func (b *Broker) Ready() (ready bool, opened, of int) {
	return b.ready.Load(), int(b.opened.Load()), int(b.of.Load())
}

// Catalogue returns why topics cannot be changed now, nil if they can.
func (b *Broker) Catalogue() error {
	if why := b.stuck.Load(); why != nil {
		return *why
	}
	return nil
}

// report logs a phase that an operator should know of. The mutex is held.
func (b *Broker) report(p topics.Phase) {
	switch p {
	case topics.Opening:
		if others := b.machine.Others(); len(others) > 0 {
			b.logger.Warn("broker: what the catalogue does not know is left alone", "dir", b.tree.name(), "found", others)
		}
	case topics.Draining:
		b.logger.Error("broker: the catalogue is opened again", "dir", b.tree.name(), "cause", b.machine.Err())
	case topics.Down:
		b.logger.Error("broker: the catalogue cannot be opened; topics are served and cannot be changed", "dir", b.tree.name(), "cause", b.machine.Err())
	case topics.Failed:
		if b.ready.Load() { // else Open says so
			b.logger.Error("broker: the catalogue cannot be right; topics are served and cannot be changed until the node is started again", "dir", b.tree.name(), "cause", b.machine.Err())
		}
	case topics.Ready:
		if b.ready.Load() {
			b.logger.Warn("broker: the catalogue is open again, and topics can be changed", "dir", b.tree.name())
			return
		}
		opened, _ := b.machine.Opened()
		b.logger.Info("broker: node is open", "dir", b.tree.name(), "topics", len(b.topics), "partitions", opened)
	}
}

// whyStuck returns why topics cannot be changed in a phase, nil if they can. The mutex is held.
func (b *Broker) whyStuck(p topics.Phase) *error {
	if p == topics.Ready {
		return nil
	}
	err := fmt.Errorf("the catalogue is %s", p)
	if cause := b.machine.Err(); cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &err
}
