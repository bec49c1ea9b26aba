package sim

import (
	"errors"
	"fmt"

	"varve/core"
	"varve/core/segment"
	"varve/core/topics"
	"varve/tiers/disk"
)

// task is an effect of the machine on its way.
type task struct {
	effect topics.Effect
	stage  int
	unit   int32 // that it waits for; -1: none
}

// What the driver of a node meets besides the errors of its logs.
var (
	errNoPartition  = errors.New("the partition's directory is missing")
	errOldPartition = errors.New("the partition's directory exists already")
	errCatalogue    = errors.New("the catalogue takes no entries")
)

// drive carries out what the machine asks for, and takes its answers.
func (b *broker) drive() (again bool) {
	w := b.w
	for w.process.up {
		b.publish()
		e := b.machine.Next()
		if e == nil {
			break
		}
		again = true
		i := 0
		for i < len(b.tasks) && b.tasks[i].effect != nil {
			i++
		}
		if i == len(b.tasks) {
			b.tasks = append(b.tasks, task{})
		}
		b.tasks[i] = task{effect: e, unit: -1}
		if w.Trace != nil {
			w.say(trackLog, Note, "machine: %s", taskText(e))
		}
		b.advance(i)
		if w.fs.Dead() {
			return true
		}
	}
	return b.answers() || again
}

func taskText(e topics.Effect) string {
	switch e := e.(type) {
	case *topics.Append:
		return "append " + string(e.Entry)
	case *topics.Open:
		return fmt.Sprintf("open %s/%d/%d create=%v", e.Topic, e.Incarnation, e.Partition, e.Create)
	case *topics.Remove:
		return fmt.Sprintf("remove %s/%d, partitions [%d, %d)", e.Topic, e.Incarnation, e.From, e.To)
	case *topics.Trim:
		return fmt.Sprintf("trim the catalogue to %d", e.Before)
	case *topics.List:
		return "list"
	case *topics.Read:
		return "read the catalogue"
	}
	return "load the catalogue"
}

// later lets a task go on after the time that a call takes.
func (b *broker) later(i int, sync bool) {
	w := b.w
	w.queue.push(entry{at: w.clock.mono + w.latency(sync), kind: wakeTask, arg: int32(i), life: w.process.life})
}

// taskStep goes on with a task that waited for time to pass.
func (b *broker) taskStep(i int) {
	if b.tasks[i].effect != nil {
		b.advance(i)
	}
}

// finish tells the machine how an effect ended.
func (b *broker) finish(i int, err error) {
	w := b.w
	if w.fs.Dead() {
		return
	}
	e := b.tasks[i].effect
	b.tasks[i] = task{unit: -1}
	w.note(hashTask, uint64(i), boolHash(err != nil))
	if w.Trace != nil && err != nil {
		w.say(trackLog, Failed, "machine: %s: %v", taskText(e), err)
	}
	b.machine.Complete(e, err)
	if err != nil || b.machine.Phase() == topics.Down {
		b.retryLater()
	}
	b.units[catalogueUnit].ask = true // the loop asks the machine again
}

// await lets a task go on when a log has been opened, or has ended.
func (b *broker) await(i int, u *unit) { u.task, b.tasks[i].unit = i, u.slot }

func (b *broker) advance(i int) {
	t := &b.tasks[i]
	switch e := t.effect.(type) {
	case *topics.Load:
		b.load(i, e)
	case *topics.Read:
		b.finish(i, b.replay(b.units[catalogueUnit]))
	case *topics.List:
		b.list(i, e)
	case *topics.Append:
		b.appendEntry(i, e)
	case *topics.Trim:
		u := b.units[catalogueUnit]
		err := errCatalogue
		if u.state == unitOpen {
			err = u.log.Trim(b.w.clock.now(), e.Before)
			u.ask = true
		}
		e.Dead = u.state != unitOpen || u.log.Phase() != core.Ready
		b.finish(i, err)
	case *topics.Open:
		b.openTask(i, e)
	case *topics.Remove:
		b.removeTask(i, e)
	}
}

// load opens the catalogue, after it was closed.
func (b *broker) load(i int, e *topics.Load) {
	t, u := &b.tasks[i], b.units[catalogueUnit]
	switch t.stage {
	case 0:
		t.stage = 1
		if u.state == unitOpen || u.state == unitOpening {
			u.state, u.ask = unitClosing, true
			u.log.Close(b.w.clock.now())
		}
		if u.state == unitClosing {
			b.await(i, u)
			return
		}
		fallthrough
	case 1:
		t.stage = 2
		u.forget()
		if err := b.open(u); err != nil {
			b.judgeUnit(err)
			b.release(u)
			u.state = unitOffline
			b.finish(i, err)
			return
		}
		b.await(i, u)
	case 2:
		e.Phase, e.Start, e.End, e.Cause = u.phase, u.log.Start(), u.log.End(), u.log.Err()
		switch {
		case u.state == unitOpen:
			b.finish(i, nil)
		case u.state != unitOpening:
			b.finish(i, u.err)
		case u.log.Plan().New: // there is nothing to show yet
			b.finish(i, core.ErrNoSpace)
		default:
			b.finish(i, nil)
		}
	}
}

// replay reads the catalogue.
func (b *broker) replay(u *unit) error {
	w := b.w
	c := &w.auditor.cursor
	if u.view.Version != u.log.ViewVersion() {
		u.log.FillView(&u.view)
	}
	c.Reset(core.Position{Offset: u.log.Start()})
	defer func() { _ = w.auditor.handle.Close() }()
	for {
		f, err := c.Next(&u.view, u.log.Committed(), 1<<16)
		if err != nil || f == nil {
			return err
		}
		b.locate(u, f)
		if err := c.Complete(f, u.store.Fetch(f, &w.auditor.handle)); err != nil {
			return err
		}
		for x, ok := c.Batch(); ok; x, ok = c.Batch() {
			w.note(hashRead, uint64(x.Base), uint64(x.PayloadCRC))
			if b.machine.Replay(x.Base, x.Payload) != nil {
				return nil // the machine knows
			}
		}
	}
}

func (b *broker) locate(u *unit, f *core.Fetch) {
	if f.Pos == 0 && !f.NoIndex && f.Extent.Index == core.IndexCore {
		if pos, _, ok := u.log.Locate(f.Extent.Segment, f.From); ok {
			f.Pos = pos
		}
	}
}

func (b *broker) list(i int, e *topics.List) {
	t := &b.tasks[i]
	if t.stage == 0 {
		t.stage = 1
		b.later(i, false)
		return
	}
	names, err := b.w.fs.Dirs(b.dirs[:0])
	b.dirs = names
	for _, name := range names {
		if place, ok := b.paths.find(name); ok {
			topic, incarnation, partition := b.paths.parts(place)
			e.Dirs = append(e.Dirs, topics.Dir{Topic: topicNames[topic], Incarnation: incarnation, Partition: partition})
		}
	}
	b.finish(i, err)
}

// appendEntry puts an entry into the catalogue; its outcome ends the effect.
func (b *broker) appendEntry(i int, e *topics.Append) {
	u := b.units[catalogueUnit]
	if u.state != unitOpen {
		e.Dead = true
		b.finish(i, errCatalogue)
		return
	}
	now := b.w.clock.now()
	x := core.Batch{
		Payload: e.Entry, PayloadCRC: segment.PayloadCRC(e.Entry), Kind: segment.KindRecords, Records: 1,
		MaxTime: now.Wall, Producer: core.NoProducer,
	}
	t, err := u.log.Append(now, &x)
	u.ask = true
	if err != nil {
		e.Dead = u.log.Phase() != core.Ready
		b.finish(i, err)
		return
	}
	e.Offset = t.First
	u.entry = t.Cohort
	b.await(i, u)
}

// entryOutcome ends the entry under way.
func (b *broker) entryOutcome(u *unit, err error) {
	i := u.task
	if i < 0 {
		return
	}
	e, ok := b.tasks[i].effect.(*topics.Append)
	if !ok {
		return
	}
	u.task, u.entry = -1, 0
	e.Unknown = errors.Is(err, core.ErrUnknown)
	e.Dead = err != nil && u.log.Phase() != core.Ready
	b.finish(i, err)
}

func placeOfOpen(e *topics.Open) int32 {
	return placeOf(topicIndex(e.Topic), e.Incarnation, e.Partition)
}

// configOf sums up a configuration: a log that is open with another one is closed first.
func configOf(pairs []topics.Pair) uint64 {
	h := uint64(len(pairs))
	for _, p := range pairs {
		for i := range len(p.Name) {
			h = (h ^ uint64(p.Name[i])) * 0x100000001b3
		}
		for i := range len(p.Value) {
			h = (h ^ uint64(p.Value[i])) * 0x100000001b3
		}
	}
	return h
}

// openTask opens the log of a partition.
func (b *broker) openTask(i int, e *topics.Open) {
	t, w := &b.tasks[i], b.w
	u := b.unitAt(placeOfOpen(e))
	switch t.stage {
	case 0:
		if u != nil {
			switch u.state {
			case unitOpen:
				if u.config == configOf(e.Config) {
					b.finish(i, nil)
					return
				}
				u.state, u.ask = unitClosing, true
				u.log.Close(w.clock.now())
				b.await(i, u)
				return
			case unitClosing, unitOpening:
				b.await(i, u)
				return
			case unitOffline:
				u.state = unitFree
			}
		}
		t.stage = 1
		b.later(i, false)
	case 1:
		t.stage = 2
		u = b.take(placeOfOpen(e))
		u.config = configOf(e.Config)
		if err := b.mayOpen(u, e.Create); err != nil {
			u.state, u.err = unitOffline, err
			b.finish(i, err)
			return
		}
		if err := b.open(u); err != nil {
			b.judgeUnit(err)
			b.release(u)
			u.state, u.err = unitOffline, err
			b.finish(i, err)
			return
		}
		b.await(i, u)
	case 2:
		switch {
		case u != nil && u.state == unitOpen:
			b.finish(i, nil)
		case u == nil:
			b.finish(i, core.ErrClosed)
		default:
			b.finish(i, u.err)
		}
	}
}

// mayOpen looks whether a directory is there, which a new partition's must not be, and an old one's must.
func (b *broker) mayOpen(u *unit, create bool) error {
	entries, err := u.fs.List(b.w.entries[:0])
	b.w.entries = entries
	switch {
	case errors.Is(err, disk.ErrNotExist) && create:
		return nil
	case errors.Is(err, disk.ErrNotExist):
		if !b.damaged() {
			b.w.fail("N1", "the directory of a partition that the catalogue names is missing: "+b.paths.name(u.place))
		}
		return errNoPartition
	case err == nil && create:
		return errOldPartition
	}
	return err
}

// removeTask removes partitions of an incarnation, one after the other: log, files, directory, and the
// entry in its parent.
func (b *broker) removeTask(i int, e *topics.Remove) {
	t := &b.tasks[i]
	for e.From+int32(t.stage/3) < e.To {
		place := placeOf(topicIndex(e.Topic), e.Incarnation, e.From+int32(t.stage/3))
		switch t.stage % 3 {
		case 0:
			if u := b.unitAt(place); u != nil {
				switch u.state {
				case unitOffline:
					u.state = unitFree
				case unitOpen, unitOpening:
					u.state, u.ask = unitClosing, true
					u.log.Close(b.w.clock.now())
					b.await(i, u)
					return
				default:
					b.await(i, u)
					return
				}
			}
			t.stage++
			b.later(i, false)
			return
		case 1:
			b.w.fs.Beside(&b.rest, b.paths.name(place))
			if err := b.rest.RemoveDir(); err != nil && !errors.Is(err, disk.ErrNotExist) {
				b.finish(i, err)
				return
			}
			t.stage++
			b.later(i, true)
			return
		case 2:
			b.w.fs.Beside(&b.rest, b.paths.name(place))
			if err := b.rest.SyncDir(disk.DirParent); err != nil {
				b.finish(i, err)
				return
			}
			t.stage++
		}
	}
	b.finish(i, nil)
}

// unitOpened goes on with what waited for a log.
func (b *broker) unitOpened(u *unit) {
	b.checkOpened(u)
	if i := u.task; i >= 0 {
		u.task = -1
		b.advance(i)
	}
}

// unitEnded does so when it is closed, or could not be opened.
func (b *broker) unitEnded(u *unit) {
	i := u.task
	u.task = -1
	if u.slot == catalogueUnit {
		if i >= 0 {
			if _, ok := b.tasks[i].effect.(*topics.Append); ok {
				u.task = i
				b.entryOutcome(u, core.ErrUnknown)
				return
			}
		}
	} else if i < 0 && u.state == unitOffline {
		b.retryLater()
	}
	if i >= 0 {
		b.advance(i)
	}
}
