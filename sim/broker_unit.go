package sim

import (
	"errors"
	"io"
	"strconv"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/model/node"
	"varve/tiers/disk"
)

// unitLanes are the lanes of a log that has no other tier than its disk.
const unitLanes = core.Hot + 1

// unit is one log of a node: the catalogue's or a partition's, in a directory of its own.
type unit struct {
	slot  int32
	place int32 // which directory: paths
	log   *core.Log
	store *disk.Store
	dir   faultfs.FS
	fs    *faultfs.FS
	lock  io.Closer
	state unitState
	phase core.Phase
	err   error // why it is offline

	flights [unitLanes]flight
	ask     bool // it may have something to do
	due     int64
	slow    int64 // extra time of its next step
	task    int   // that waits for it; -1: none
	config  uint64

	waiting []node.OpID // produces that were accepted, in the order of their cohorts
	trims   []node.OpID // deletions of records under way
	entry   uint64      // of the catalogue: cohort of the entry under way
	view    core.View

	topic     node.OpID // 0: not known yet
	leads     bool      // the checker was told that it begins
	syncing   segment.SyncMode
	keepBytes int64 // of its configuration
	keepAge   int64
	unsynced  bool // a sync failed
	start     core.Offset
}

// unitState is where a log stands for its node.
type unitState uint8

const (
	unitFree unitState = iota // the slot may be used again
	unitOpening
	unitOpen
	unitClosing
	unitOffline // it could not be opened
)

// newUnit returns a unit with memory of an earlier run.
func (b *broker) newUnit() *unit {
	var u *unit
	if last := len(b.spare) - 1; last >= 0 {
		u = b.spare[last]
		b.spare = b.spare[:last]
	} else {
		u = &unit{log: new(core.Log)}
		u.store = disk.NewStore(b.w.fs)
	}
	u.forget()
	u.slot, u.state = int32(len(b.units)), unitFree
	return u
}

// forget drops what a process knew of a log.
func (u *unit) forget() {
	u.flights = [unitLanes]flight{}
	u.ask, u.due, u.slow, u.task, u.entry, u.err, u.lock = false, 1<<62-1, 0, -1, 0, nil, nil
	u.trims = u.trims[:0]
	u.topic, u.leads, u.unsynced = 0, false, false
	u.waiting, u.phase, u.state, u.config, u.start = u.waiting[:0], core.Opening, unitFree, 0, 0
	u.view.Version = 1<<64 - 1
}

// unitAt returns the unit of a directory, nil if it is neither open nor offline.
func (b *broker) unitAt(place int32) *unit {
	for _, u := range b.units[1:] {
		if u.state != unitFree && u.place == place {
			return u
		}
	}
	return nil
}

// take returns a free unit for a directory.
func (b *broker) take(place int32) *unit {
	var u *unit
	for _, x := range b.units[1:] {
		if x.state == unitFree {
			u = x
			break
		}
	}
	if u == nil {
		u = b.newUnit()
		b.units = append(b.units, u)
	}
	u.forget()
	u.place = place
	b.w.fs.Beside(&u.dir, b.paths.name(place))
	u.fs = &u.dir
	return u
}

// open begins the recovery of a log, as the driver does: the directory is made if it is missing. An
// error ends it at once.
func (b *broker) open(u *unit) error {
	w := b.w
	u.state = unitOpening
	var err error
	u.lock, err = u.fs.Lock("lock")
	if errors.Is(err, disk.ErrNotExist) {
		if err = u.fs.Mkdir(disk.DirLog); err == nil {
			u.lock, err = u.fs.Lock("lock")
		}
	}
	if err != nil {
		return err
	}
	u.store.Reset(u.fs)
	u.phase, u.ask = core.Opening, true
	cfg := b.unitConfig(u)
	u.syncing, u.keepBytes, u.keepAge = cfg.Sync, cfg.RetentionBytes, cfg.RetentionAge
	b.retains = b.retains || cfg.RetentionBytes != core.Unlimited || cfg.RetentionAge != core.Unlimited
	if err := u.log.Reopen(cfg, w.clock.now()); err != nil {
		w.fail("config", err.Error())
	}
	return nil
}

// release gives a log's directory back once nothing of it is in flight.
func (b *broker) release(u *unit) {
	w := b.w
	w.res.Marks.joinCore(u.log)
	_ = u.store.Close()
	if u.lock != nil {
		_ = u.lock.Close()
		u.lock = nil
	}
	b.readersLose(u)
	for _, id := range u.trims {
		b.reply(id, node.Answer{Result: node.Failed})
	}
	u.trims = u.trims[:0]
	u.due, u.ask = 1<<62-1, false
}

func (u *unit) idle() bool {
	for i := range u.flights {
		if u.flights[i].effect != nil {
			return false
		}
	}
	return true
}

// pump drains a log's outcomes and starts its effects until nothing changes.
func (b *broker) pump(u *unit) {
	w := b.w
	for u.state == unitOpening || u.state == unitOpen || u.state == unitClosing {
		b.outcomes(u)
		b.retained(u)
		b.trimmed(u)
		if b.phased(u); u.state == unitFree || u.state == unitOffline {
			return
		}
		now := w.clock.now()
		for lane := range unitLanes {
			f := &u.flights[lane]
			if f.effect != nil {
				continue
			}
			if e := u.log.Next(now, lane); e != nil {
				*f = flight{effect: e, traits: traitsOf(e)}
				b.launch(u, lane)
				if w.fs.Dead() {
					return
				}
			}
		}
		if u.log.Phase() == u.phase {
			break
		}
	}
	u.due = 1<<62 - 1
	if due, ok := u.log.Deadline(); ok {
		u.due = due
	}
}

// phased reacts to where a log stands.
func (b *broker) phased(u *unit) {
	w, now := b.w, u.log.Phase()
	if now != u.phase {
		u.phase = now
		w.note(hashPhase, uint64(now)|uint64(u.slot)<<8, uint64(w.clock.mono))
		if w.Trace != nil {
			w.say(trackLog, Phased, "%s is %s (start %d, committed %d, end %d, epoch %d) %v",
				b.paths.name(u.place), now, u.log.Start(), u.log.Committed(), u.log.End(), u.log.Epoch(), u.log.Err())
		}
	}
	switch {
	case now == core.Ready && u.state == unitOpening:
		u.state = unitOpen
		b.unitOpened(u)
	case now == core.Recovering && u.slot == catalogueUnit && u.task >= 0: // the machine decides whether that is enough
		b.unitOpened(u)
	case now == core.Poisoned && u.state == unitOpen:
		w.res.Marks.add(MarkPoisoned)
		b.leaderless(u, true)
		u.state = unitClosing
		u.log.Close(w.clock.now())
		b.outcomes(u)
		b.phased(u)
	case now == core.Failed && u.idle():
		u.err = u.log.Err()
		b.judgeUnit(u.err)
		b.release(u)
		u.state = unitOffline
		b.unitEnded(u)
	case now == core.Closed && u.idle():
		b.outcomes(u)
		u.err = u.log.Err()
		b.leaderless(u, u.err != nil)
		b.release(u)
		u.state = unitOffline
		if u.err == nil {
			u.state = unitFree
		}
		b.unitEnded(u)
	}
}

// judgeUnit tells I/O errors, which are injected, from refusals, which need damage.
func (b *broker) judgeUnit(err error) {
	w := b.w
	w.res.OpenFaults++
	w.res.Marks.add(MarkOpenFailed)
	switch err.(type) {
	case *core.CorruptError, *core.LostSuffixError, *core.RefusedError:
		w.res.Marks.add(MarkOpenRefused)
		if !b.damaged() {
			w.fail("K25", "a log of a node was refused although nothing was damaged: "+err.Error())
		}
	}
}

// launch starts the next step of a lane's effect.
func (b *broker) launch(u *unit, lane core.Lane) {
	w := b.w
	f := &u.flights[lane]
	f.executed, f.done, f.err, f.sync = false, false, nil, f.syncing()
	took := w.latency(f.sync) + u.slow
	if u.slow > 0 {
		u.slow = 0
		w.res.Marks.add(MarkSlow)
	}
	draw := w.rng.Next()
	if f.traits&isActive == 0 && f.effect.Result().Stage == 0 {
		f.whole = draw>>1&3 != 0
	}
	if draw&1 == 0 {
		b.carry(u, f)
	}
	w.queue.push(entry{at: w.clock.mono + took, kind: wakeStep, arg: u.slot*int32(unitLanes) + int32(lane), life: w.process.life})
}

// carry executes the step at hand, and the ones behind it if they belong together.
func (b *broker) carry(u *unit, f *flight) {
	b.execute(u, f)
	for f.whole && !f.done && f.err == nil && !b.w.fs.Dead() {
		b.execute(u, f)
	}
}

func (b *broker) execute(u *unit, f *flight) {
	w, e := b.w, f.effect
	stage := e.Result().Stage
	failed := w.disk.Counts().Failed
	f.done, f.err = u.store.Step(e)
	f.executed = true
	u.unsynced = u.unsynced || f.err != nil && f.sync
	w.note(hashStep, uint64(u.slot)<<16|uint64(stage)<<8|uint64(e.Lane()), boolHash(f.done)|boolHash(f.err != nil)<<1)
	if w.Trace != nil {
		w.describe(e, stage, f)
	}
	if !w.fs.Dead() && f.err == nil && f.traits&(isCommit|isSync) != 0 && w.disk.Counts().Failed != failed {
		w.fail("K9", "a call failed and its effect succeeded")
	}
}

// step completes the step at hand of a lane.
func (b *broker) step(arg int32) {
	w := b.w
	u, lane := b.units[arg/int32(unitLanes)], core.Lane(arg%int32(unitLanes))
	f := &u.flights[lane]
	if f.effect == nil {
		return
	}
	if !f.executed {
		b.carry(u, f)
	}
	if w.fs.Dead() {
		return
	}
	if f.err == nil && !f.done {
		b.launch(u, lane)
		return
	}
	e, err := f.effect, f.err
	f.effect = nil
	u.ask = true
	u.log.Complete(w.clock.now(), e, err)
}

// serving reports whether a partition's log can be read.
func (u *unit) serving() bool {
	return u.state == unitOpen && (u.phase == core.Ready || u.phase == core.Poisoned)
}

// Bounds of what a schedule can name.
const (
	topicsMax       = 4
	incarnationsMax = 512
	partitionsMax   = 4
)

// topicNames are the names of topics: they differ in what files and keys are apt to mix up.
var topicNames = [topicsMax]string{"a", "a.b", "a_b", "A"}

// paths keeps the names of directories: those of partitions by topic, incarnation and number.
type paths struct{ names []string }

func (p *paths) init() { p.names = make([]string, 1+topicsMax*incarnationsMax*partitionsMax) }

// placeOf returns the directory of a partition; the catalogue's is 0.
func placeOf(name int, incarnation uint64, partition int32) int32 {
	return int32((name*incarnationsMax+int(incarnation)%incarnationsMax)*partitionsMax+int(partition)) + 1
}

// parts returns what placeOf was given.
func (p *paths) parts(place int32) (name int, incarnation uint64, partition int32) {
	n := int(place - 1)
	return n / partitionsMax / incarnationsMax, uint64(n / partitionsMax % incarnationsMax), int32(n % partitionsMax)
}

func (p *paths) name(place int32) string {
	if place == 0 {
		return "catalogue"
	}
	s := &p.names[place]
	if *s == "" {
		name, incarnation, partition := p.parts(place)
		*s = "topics/" + topicNames[name] + "/" + strconv.FormatUint(incarnation, 10) + "/" + strconv.Itoa(int(partition))
	}
	return *s
}

// find returns the directory of a name, false if it is none of a partition.
func (p *paths) find(name string) (int32, bool) {
	for topic := range topicNames {
		prefix := len("topics/") + len(topicNames[topic]) + 1
		if len(name) <= prefix || name[len("topics/"):prefix-1] != topicNames[topic] || name[prefix-1] != '/' {
			continue
		}
		n, partition := uint64(0), int32(0)
		i := prefix
		for ; i < len(name) && name[i] != '/'; i++ {
			n = 10*n + uint64(name[i]-'0')
		}
		for i++; i < len(name); i++ {
			partition = 10*partition + int32(name[i]-'0')
		}
		return placeOf(topic, n, partition), true
	}
	return 0, false
}

func topicIndex(name string) int {
	for i := range topicNames {
		if topicNames[i] == name {
			return i
		}
	}
	return -1
}
