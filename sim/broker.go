package sim

import (
	"varve/core"
	"varve/core/segment"
	"varve/core/topics"
	"varve/faultfs"
	"varve/model/node"
)

// broker is a node with many logs in one world: the catalogue, whose entries the machine of core/topics
// decides about, and a log for each partition, each in a directory of its own on one disk. Clients ask
// through connections that lose answers; package model/node judges what they are told.
//
// A World with a schedule of MixBroker runs its broker in the place of its one log: clock, disk, queue,
// draws, hash and timeline are the World's.
type broker struct {
	w     *World
	check node.Checker
	units []*unit // the catalogue's is first; the others are those of partitions, open or being opened
	spare []*unit
	paths paths

	machine topics.Machine
	tasks   []task      // effects of the machine under way, by slot
	tickets []node.OpID // requests of the machine
	known   [topicsMax]found
	rest    faultfs.FS // of a directory that is removed

	requests  []request // by node.OpID
	clients   [clientsMax]client
	producers [producersMax]producer
	stands    [topicsMax][partitionsMax]stand
	readers   []*nodeReader
	retrying  bool
	doubts    []node.OpID // told that nobody knows, until the catalogue is open again
	version   uint64      // of known
	final     finalStage
	dirs      []string
	leaders   []leaderless // of partitions that may lose their ends with the power
	retains   bool         // a log has had limits
	clocks    bool         // something happened to the wall clock
	told      bool         // the fault that took back a promise has been told to the checker
}

// catalogueUnit is the index of the catalogue's log.
const catalogueUnit = 0

func (w *World) newBroker() *broker {
	b := &broker{w: w}
	b.paths.init()
	return b
}

func (b *broker) reset() {
	b.check.Reset()
	b.check.Disable(b.w.without.checkers())
	b.spare = append(b.spare, b.units...)
	b.units = b.units[:0]
	b.units = append(b.units, b.newUnit())
	b.requests = append(b.requests[:0], request{})
	b.clients, b.producers = [clientsMax]client{}, [producersMax]producer{}
	b.stands = [topicsMax][partitionsMax]stand{}
	for i := range b.producers {
		b.producers[i].id = -1
	}
	for i := range b.tasks {
		b.tasks[i] = task{}
	}
	b.doubts, b.told, b.final = b.doubts[:0], false, 0
	b.retrying, b.tickets = false, b.tickets[:0]
	b.leaders, b.retains, b.clocks = b.leaders[:0], false, false
}

// runBroker is run for a broker.
func (w *World) runBroker() {
	defer w.endTap()
	defer w.caught()
	if w.node == nil {
		w.node = w.newBroker()
	}
	b := w.node
	b.reset()
	b.start()
	b.settle()
	for w.stage != stageDone && w.res.Violation == "" {
		if !b.next() {
			break
		}
		b.settle()
	}
}

// next processes the earliest of what is to come.
func (b *broker) next() bool {
	w := b.w
	const none = int64(1)<<62 - 1
	at, source := none, 0
	if w.event < len(w.s.Events) {
		at, source = w.s.Events[w.event].At+w.shift, 1
	}
	if len(w.queue.heap) > 0 && w.queue.heap[0].at < at {
		at, source = w.queue.heap[0].at, 2
	}
	timer := 0
	if w.process.up {
		for i, u := range b.units {
			if u.due < at {
				at, source, timer = u.due, 3, i
			}
		}
	}
	if w.stage == stageSafety && w.event == len(w.s.Events) {
		b.beginLiveness()
		return true
	}
	if w.stage != stageSafety && (at == none || at > w.process.bound) {
		b.stuck()
		return false
	}
	if at > w.clock.mono {
		w.clock.mono = at
		w.process.spins = 0
	}
	w.res.Events++
	switch source {
	case 1:
		e := &w.s.Events[w.event]
		w.event++
		b.schedule(e)
	case 2:
		b.wake(w.queue.pop())
	case 3:
		b.tick(b.units[timer])
	}
	if w.res.Events&63 == 0 {
		w.hashes = append(w.hashes, w.res.Hash)
	}
	return true
}

func (b *broker) tick(u *unit) {
	w := b.w
	w.process.spins++
	if w.process.spins > spinsMax {
		w.fail("K19", "a timer is due again and again and nothing happens")
		return
	}
	w.note(hashTick, uint64(w.clock.mono), uint64(u.slot))
	u.log.Tick(w.clock.now())
	u.ask = true
}

func (b *broker) wake(e entry) {
	w := b.w
	if e.life >= 0 && e.life != w.process.life {
		return
	}
	switch e.kind {
	case wakeStep:
		if w.process.up {
			b.step(e.arg)
		}
	case wakeFetch:
		if w.process.up {
			b.fetched(node.OpID(e.arg))
		}
	case wakeOpen:
		b.start()
	case wakePower:
		b.powerWhileDown()
	case wakeExit:
		b.exit()
	case wakeTask:
		if w.process.up {
			b.taskStep(int(e.arg))
		}
	case wakeReply:
		b.delivered(node.OpID(e.arg))
	case wakeRetry:
		b.retry()
	}
}

// settle lets everything act on what happened until nothing has more to do now.
func (b *broker) settle() {
	w := b.w
	for again := true; again; {
		if w.process.up && w.fs.Dead() {
			b.die(w.process.doom)
		}
		again = w.process.up && b.act()
		if !again {
			b.judge()
			again = b.progress()
		}
	}
}

// judge takes what the checker and the disk have found.
func (b *broker) judge() {
	w := b.w
	damaged := b.damaged() // as soon as it is: a kill alone may show it, and so may a restart
	if what := w.disk.Broken(); what != "" && what != synced && !damaged {
		w.fail("disk", w.disk.Violation())
	}
	if text := b.check.Violation(); text != "" {
		w.fail(b.check.Check(), text)
	}
}

// act asks logs and machine once, and reports whether anything may have changed.
func (b *broker) act() (again bool) {
	w := b.w
	for i := 0; i < len(b.units); i++ {
		u := b.units[i]
		if !u.ask {
			continue
		}
		u.ask, again = false, true
		b.pump(u)
		if w.fs.Dead() || !w.process.up {
			return w.process.up
		}
	}
	return b.drive() || again
}

// schedule carries out one event of the schedule.
func (b *broker) schedule(e *Event) {
	w := b.w
	w.begin(e)
	if e.Kind.IsOp() {
		b.operation(e)
		return
	}
	switch e.Kind {
	case Crash:
		b.crash(e)
	case Doom:
		if w.process.up {
			w.process.doom = e.B
			w.fs.SetCallBudget(e.A, w.rng.Next()&1 == 0)
		}
	case Second:
		b.second()
	case Rot:
		if damage, ok := w.disk.Rot(&w.dice, ".seg"); ok && w.Trace != nil {
			w.say(TrackWorld, Note, "a bit of %s/%s rots at %d", damage.Log, damage.Name, damage.Pos)
		}
		w.res.Marks.add(MarkRot)
	case Slow:
		u := b.units[int(w.rng.Below(int64(len(b.units))))]
		u.slow = max(u.slow, e.B)
		if e.B >= second {
			w.res.Marks.add(MarkHang)
		}
	case Arm, Hurt, Heal, Clock, Pause, WriteBack:
		b.clocks = b.clocks || e.Kind == Clock
		w.happen(e)
	}
}

// second is another process that tries to open the node's directory.
func (b *broker) second() {
	w := b.w
	other := w.disk.FS(1)
	lock, err := other.Lock("lock")
	switch {
	case err == nil && w.process.up && b.units[catalogueUnit].lock != nil:
		w.fail("D21", "two processes hold the lock of one catalogue")
	case err == nil:
		_ = lock.Close()
	case w.process.up:
		w.res.Marks.add(MarkSecond)
	}
	other.Kill()
}

// damaged tells the checker once that the disk took back what it had promised.
func (b *broker) damaged() bool {
	if b.w.damaged() && !b.told {
		b.told = true
		b.check.Damaged()
	}
	return b.told
}

// unitConfig is the configuration of a log of a node.
func (b *broker) unitConfig(u *unit) core.Config {
	w := b.w
	c := w.h.Config[w.process.config]
	if u.slot == catalogueUnit { // is always synced, and goes by its own rules
		c.Sync, c.RetentionBytes, c.RetentionAge = segment.OnCommit, core.Unlimited, core.Unlimited
	} else {
		b.topicConfig(u, &c)
	}
	c.LogID, c.Nonce = identity(sub(w.h.Seed, uint64(u.place)<<20|0xb0))
	c.Nonce = sub(w.h.Seed, uint64(w.process.life)<<32|uint64(u.place)) | 1
	return c
}
