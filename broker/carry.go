package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"varve"
	"varve/core/topics"
	"varve/tiers/disk"
)

// closeGrace is how long an effect waits for a log to close.
const closeGrace = time.Minute

// openWait is how long the open of a partition may wait for its tiers. Then it is offline, which holds up nobody
// else, and opened again like any other that is.
const openWait = 30 * time.Second

var (
	errNotYet   = errors.New("it is not open yet")
	errDeleted  = errors.New("its topic is deleted")
	errOpening  = errors.New("it is being opened again")
	errNotFresh = errors.New("its tiers hold what another log left, which is not touched: give the node a prefix and names of its own")
)

// carry carries an effect of the machine out.
func (b *Broker) carry(e topics.Effect) {
	defer b.effects.Done()
	var err error
	switch e := e.(type) {
	case *topics.Load:
		err = b.carryLoad(e)
	case *topics.Read:
		err = b.carryRead()
	case *topics.List:
		e.Dirs, e.Others, err = b.tree.list(e.Dirs, e.Others)
	case *topics.Append:
		err = b.carryAppend(e)
	case *topics.Trim:
		err = b.log.Trim(context.Background(), e.Before)
		e.Dead = err != nil && b.log.Err() != nil
	case *topics.Open:
		err = b.carryOpen(e)
	case *topics.Remove:
		err = b.carryRemove(e)
	}
	b.mu.Lock()
	b.machine.Complete(e, err)
	b.settle()
}

// carryLoad opens the catalogue.
func (b *Broker) carryLoad(e *topics.Load) error {
	if b.log != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		_ = b.log.Close(ctx) // it may be poisoned; if it is not closed, it cannot be opened
		b.log = nil
	}
	fs, there, err := b.tree.catalogue()
	if err != nil {
		return err
	}
	if !there { // before one is made
		dirs, _, err := b.tree.list(nil, nil)
		if err != nil {
			return err
		}
		if len(dirs) > 0 {
			return &topics.UnknownDirError{Dir: dirs[0], Next: 1}
		}
	}
	l, err := varve.OpenFS(context.Background(), fs, b.tree.name()+"/"+catalogueName, catalogueOptions(b.logger))
	if err != nil {
		return err
	}
	b.log = l
	s := l.Stats()
	e.Phase, e.Start, e.End, e.Cause = l.Phase(), s.Start, s.End, l.Err()
	return nil
}

// catalogueOptions are those of the log of the catalogue.
func catalogueOptions(logger *slog.Logger) varve.Options {
	return varve.Options{SegmentBytes: catalogueBytes, NoPreallocate: true, MinFreeBytes: -1, ProducersMax: 1, Logger: logger}
}

// carryRead replays the catalogue.
func (b *Broker) carryRead() error {
	for r, err := range b.log.Records(context.Background(), varve.Position{Offset: b.log.Start()}) {
		if err != nil {
			return err
		}
		b.mu.Lock()
		refused := b.machine.Replay(r.Offset, r.Value)
		b.mu.Unlock()
		if refused != nil {
			return nil // the machine has it
		}
	}
	return nil
}

// catalogueBytes is the size of a segment of the catalogue, which is trimmed by whole segments.
const catalogueBytes = 1 << 20

func (b *Broker) carryAppend(e *topics.Append) error {
	span, err := b.log.Append(context.Background(), varve.Record{Value: e.Entry})
	e.Offset = span.First
	if err != nil {
		e.Unknown, e.Dead = errors.Is(err, varve.ErrUnknown), b.log.Err() != nil
	}
	return err
}

// carryOpen opens a partition, or opens it again.
func (b *Broker) carryOpen(e *topics.Open) error {
	d := topics.Dir{Topic: e.Topic, Incarnation: e.Incarnation, Partition: e.Partition}
	b.mu.Lock()
	p := b.part(d)
	b.mu.Unlock()
	old := p.state.Load()
	if old.log != nil {
		if err := old.log.Err(); errors.Is(err, varve.ErrOwnerFenced) { // for good: see dead
			p.leave(offline(d, err))
			return err
		}
		if old.err == nil && !dead(old.log) && slices.Equal(old.config, e.Config) {
			return nil
		}
		p.leave(offline(d, errOpening))
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		_ = old.log.Close(ctx) // if it is not closed, it cannot be opened
	}
	s, err := b.openLog(d, e.Config, e.Create)
	if err != nil {
		s = &served{log: old.log, err: offline(d, err), epoch: p.Epoch()}
		b.complain("broker: partition is offline", d, err)
	}
	p.state.Store(s)
	return err
}

// openLog opens the log of a partition, which is a new one, or must exist.
func (b *Broker) openLog(d topics.Dir, config []topics.Pair, create bool) (*served, error) {
	o := b.logOptions(d, config)
	o.Create, o.Existing = create, !create
	if create && b.options.Tiers != nil {
		if err := b.reserve(d, &o); err != nil {
			return nil, err
		}
	}
	o.TierWait = openWait
	ctx, cancel := context.WithTimeout(b.life, 2*openWait)
	defer cancel()
	fs := b.tree.partition(d)
	_, listed := fs.List(nil)
	l, err := varve.OpenFS(ctx, fs, b.tree.name()+"/"+d.String(), o)
	if err != nil {
		if !create && errors.Is(listed, disk.ErrNotExist) {
			b.tree.vacate(d)
		}
		if errors.Is(err, disk.ErrNoSpace) && !errors.Is(err, varve.ErrNoSpace) {
			err = fmt.Errorf("%w: %w", varve.ErrNoSpace, err)
		}
		return nil, err
	}
	s := l.Stats()
	if !create && errors.Is(listed, disk.ErrNotExist) {
		b.logger.Warn("broker: the directory of a partition was gone, and is made anew from its tiers: what they did not have yet was there alone",
			"partition", d.String(), "start", s.Start, "end", s.Committed)
	}
	return &served{log: l, config: slices.Clone(config), epoch: int32(s.Epoch)}, nil
}

// reserve makes the directory of a partition that is to have tiers, once these were found empty. Where there
// is a directory, what they hold is this partition's.
func (b *Broker) reserve(d topics.Dir, o *varve.Options) error {
	switch empty, err := varve.TiersEmpty(b.life, *o); {
	case err != nil:
		return err
	case !empty:
		return errNotFresh
	}
	fs := b.tree.partition(d)
	if err := fs.Mkdir(disk.DirLog); err != nil {
		return err
	}
	return fs.SyncDir(disk.DirParent)
}

// carryRemove removes partitions: their logs are closed, then the tiers emptied, then the directories go. A large
// topic takes its time, of which each partition has its own: what is gone is not looked at again when the rest is
// tried again, and a node that closes leaves the rest to its next life.
func (b *Broker) carryRemove(e *topics.Remove) error {
	b.mu.Lock()
	done := b.removed[e.Incarnation]
	b.mu.Unlock()
	if done.from != e.From { // it is another removal
		done = span{e.From, e.From}
	}
	for ; done.to < e.To; done.to++ {
		d := topics.Dir{Topic: e.Topic, Incarnation: e.Incarnation, Partition: done.to}
		err := b.life.Err()
		if err == nil {
			err = b.removePartition(d, e.Begun)
		}
		if err != nil {
			b.complain("broker: a partition of a deleted topic cannot be removed; it is tried again", d, err)
			b.mu.Lock()
			b.removed[e.Incarnation] = done
			b.mu.Unlock()
			return err
		}
	}
	b.mu.Lock()
	delete(b.removed, e.Incarnation)
	b.mu.Unlock()
	if !e.Whole {
		return nil
	}
	return b.tree.remove(topics.Dir{Topic: e.Topic, Incarnation: e.Incarnation, Partition: -1})
}

// span is the partitions [from, to).
type span struct{ from, to int32 }

func (b *Broker) removePartition(d topics.Dir, begun bool) error {
	at := place{d.Incarnation, d.Partition}
	b.mu.Lock()
	p := b.parts[at]
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(b.life, closeGrace) // a node that closes waits for no tier
	defer cancel()
	if p != nil {
		p.leave(offline(d, errDeleted))
		if l := p.state.Load().log; l != nil {
			if err := l.Close(ctx); err != nil && ctx.Err() != nil {
				return err
			}
		}
	}
	erase := b.options.Tiers != nil
	if erase && begun {
		if _, err := b.tree.partition(d).List(nil); errors.Is(err, disk.ErrNotExist) {
			erase = false // never reserved: what the tiers hold is somebody else's
		} else if err != nil {
			return err
		}
	}
	if erase {
		if err := varve.EraseTiers(ctx, b.logOptions(d, nil)); err != nil {
			return err
		}
	}
	if err := b.tree.remove(d); err != nil && !errors.Is(err, disk.ErrNotExist) {
		return err
	}
	b.mu.Lock()
	delete(b.parts, at)
	b.mu.Unlock()
	return nil
}

// complain logs an error about a partition, unless the node is closing, or says so anyway.
func (b *Broker) complain(what string, d topics.Dir, err error) {
	if b.life.Err() == nil {
		b.complaints.say(time.Now(), what, d.String(), b.tree.name()+"/"+d.String(), err)
	}
}

// inUse says that the node's directory cannot be taken.
func inUse(name string, err error) error {
	var held *disk.LockedError
	switch {
	case errors.As(err, &held):
		return fmt.Errorf("%s: %w (%s)", name, varve.ErrInUse, held.Owner)
	case errors.Is(err, disk.ErrLocked):
		return fmt.Errorf("%s: %w", name, varve.ErrInUse)
	}
	return fmt.Errorf("%s: %w", name, err)
}
