package sim

import (
	"fmt"
	"io"
	"runtime/debug"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/model"
	"varve/tiers/disk"
)

// Result is what a run of one schedule came to.
type Result struct {
	Hash       uint64 // over every event, effect and answer
	Events     int    // events of the schedule, steps, fetches and timers
	Ops        int
	Appends    int
	Lives      int
	Acked      int
	Refused    bool // ended with damage that recovery refuses, as it must
	Violation  string
	Check      string // the property by its id, "" if none is violated
	Marks      Marks
	OpenFaults int // opens that ended in an error
}

// World runs schedules, one after another: the production core, cursor and store over a simulated
// disk and virtual clocks. It keeps its memory from run to run; in steady state a run allocates
// nothing. A World belongs to one goroutine; the same schedule gives the same Result in any World.
type World struct {
	// Trace, if set, gets a timeline that a person can read. If it is a Tap, too, it gets the same as
	// data.
	Trace io.Writer
	// Record keeps what clients read and saw of the tail, too, for History.
	Record bool
	tap    Tap

	s *Schedule
	h *Header

	without *Without // nil: nothing is left out

	res   Result
	disk  *faultfs.Disk // of the host that runs the log
	other *faultfs.Disk // of the host that does not
	rival rival         // the process there, if it lives
	fs    *faultfs.FS
	lock  io.Closer

	node     *broker // in the place of one log; nil until there is one
	entries  []disk.Entry
	spoilt   []byte
	store    *disk.Store
	cold     coldWorld
	warm     warmWorld
	lanes    core.Lane // that the log has
	log      *core.Log
	dead     *core.Log // of the life before
	ghosts   bool      // a write-back failed: the page cache, which outlives processes, may lose what it shows
	late     [core.LaneCount]late
	calls    Schedule // of same
	spare    []uint64 // hashes of same
	view     core.View
	coldView core.View // of auditCold

	check    *model.Checker
	clock    clock
	rng      Rand
	dice     faultfs.Rand
	queue    queue
	event    int   // next event of the schedule
	shift    int64 // pauses so far: later events are that much later
	hashes   []uint64
	flights  [core.LaneCount]flight
	slow     [core.LaneCount]int64 // extra time of a lane's next step
	stage    stage
	process  process
	readers  [clientsMax * 2]reader
	auditor  reader
	appends  []attempt // by model.OpID
	waiting  []model.OpID
	wait     int // waiting[:wait] are resolved
	arena    []byte
	decoder  decoder
	planner  planner
	names    []faultfs.Image
	spans    []model.SegmentSpan
	onDisk   []model.SegmentSpan // as it was looked at last
	mayGo    []model.SegmentSpan // as its limits were applied last
	letGo    []model.SegmentSpan // as its limits have to be applied in the end
	sequence [producersMax]sequence

	walls      []core.Time // append time of each offset's record
	places     []place     // of the active segment's commits
	found      []bool
	evidence   int64
	hits       []hit // of rot
	room       int32 // for producers; see model.Append
	ask        uint8 // lanes
	due        int64 // time of the log's next timer
	agreed     marked
	planned    bool       // K10 was judged
	diedInOpen bool       // the life before did
	lastConfig int64      // configuration of the life before
	limited    bool       // trims or retention may move Start
	epoch      core.Epoch // highest that opened
	tainted    segment.ID // its last records are damaged
	struck     uint8      // superblock slots that may not be whole, by bit
	spoiled    uint8      // of them, struck by rot between the steps of their save
	backs      []back     // of the wall clock
	super      struct {   // that the present open found
		Frontier core.Offset
		Sequence uint64
	}
	slot       segment.Superblock // scratch
	retain     []model.SegmentSpan
	atOpen     []model.SegmentSpan // what an open found
	retainWall core.Time
}

// stage is how far a run is.
type stage uint8

const (
	stageSafety   stage = iota // the schedule's events
	stageLiveness              // healed: everything pending has to resolve
	stageRetain                // retention has to have done its work
	stageClosing               // the last close
	stageDone
)

// NewWorld returns a world.
func NewWorld() *World {
	w := &World{
		disk: faultfs.New(), other: faultfs.New(), log: new(core.Log), dead: new(core.Log), check: new(model.Checker),
	}
	w.fs = w.disk.FS(0)
	w.store = disk.NewStore(w.fs)
	w.cold.init(w)
	w.warm.init(w)
	w.rival.init(w)
	w.planner.init(w)
	return w
}

// livenessBound is how much virtual time everything has to resolve in once the faults are over.
const livenessBound = 20 * second

// Run runs one schedule. The result is valid until the next Run.
func (w *World) Run(s *Schedule) *Result {
	w.reset(s)
	if s.Header.Node {
		w.runBroker()
	} else {
		w.run()
	}
	w.res.Hash = w.res.Hash ^ uint64(w.res.Events)
	w.collectMarks()
	if w.res.Violation == "" && !s.Header.Node && sub(s.Header.Seed, 9)%sameEvery == 0 {
		w.same(s)
	}
	return &w.res
}

func (w *World) reset(s *Schedule) {
	if w.without != nil {
		w.without.apply(s)
		w.disk.Spare(w.without.faults)
		w.other.Spare(w.without.faults)
	}
	w.s, w.h = s, &s.Header
	w.res = Result{}
	w.disk.Reset(faultfs.Params{Seed: s.Header.Seed, Capacity: s.Header.Capacity})
	w.attachTap()
	w.disk.SetFaults(s.Header.Faults)
	if w.h.On(SwMove) {
		w.other.Reset(faultfs.Params{Seed: sub(s.Header.Seed, 8), Capacity: s.Header.Capacity})
	}
	w.cold.reset(w)
	w.warm.reset(w)
	w.check.Record = w.Record
	w.check.Reset()
	w.clock.reset()
	w.rng.Seed(sub(s.Header.Seed, 4))
	w.queue.reset()
	w.event, w.shift, w.hashes = 0, 0, w.hashes[:0]
	w.slow, w.late = [core.LaneCount]int64{}, [core.LaneCount]late{}
	w.ghosts = false
	w.stage, w.process = stageSafety, process{}
	for i := range w.readers {
		w.readers[i].forget()
	}
	w.appends = append(w.appends[:0], attempt{})
	w.waiting, w.wait = w.waiting[:0], 0
	w.arena = w.arena[:0]
	w.sequence = [producersMax]sequence{}
	w.decoder.reset(s.Header.Config[0].LogID)
	w.room = w.producersRoom()
	w.hits = w.hits[:0]
	w.places, w.tainted, w.epoch, w.struck, w.backs = w.places[:0], 0, 0, bothSlots, w.backs[:0]
	w.agreed, w.ask, w.due = marked{}, 0, 1<<62-1
	w.super.Frontier = 0
	w.evidence, w.diedInOpen, w.lastConfig, w.planned = 0, false, 0, false
	w.limited = w.h.On(SwTrim)
	for i := range s.Header.Config {
		w.limited = w.limited || retentionOf(&s.Header.Config[i]) != noRetention
	}
	w.walls, w.spans = w.walls[:0], w.spans[:0]
}

func (w *World) run() {
	defer w.endTap()
	defer w.caught()
	w.start()
	w.settle()
	for w.stage != stageDone && w.res.Violation == "" {
		if !w.next() {
			break
		}
		w.settle()
	}
}

// caught turns a panic, which is how the core asserts its invariants, into a violation.
func (w *World) caught() {
	if p := recover(); p != nil {
		w.fail("assert", fmt.Sprint(p))
		if w.Trace != nil {
			fmt.Fprintf(w.Trace, "%s\n", debug.Stack())
		}
		w.log, w.dead = new(core.Log), new(core.Log)
		w.store = disk.NewStore(w.fs)
		w.cold.init(w)
		w.warm.init(w)
		w.rival.init(w)
		w.planner.init(w)
		w.node = nil
	}
}

// next processes the earliest of what is to come: an event of the schedule, a completion, a timer.
func (w *World) next() bool {
	const none = int64(1)<<62 - 1
	at, source := none, 0
	if w.event < len(w.s.Events) {
		at, source = w.s.Events[w.event].At+w.shift, 1
	}
	if len(w.queue.heap) > 0 && w.queue.heap[0].at < at {
		at, source = w.queue.heap[0].at, 2
	}
	if w.process.up && w.due < at {
		at, source = w.due, 3
	}
	if w.stage == stageSafety && w.event == len(w.s.Events) {
		w.beginLiveness()
		return true
	}
	if w.stage != stageSafety && (at == none || at > w.process.bound) {
		w.stuck()
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
		w.schedule(e)
	case 2:
		w.wake(w.queue.pop())
	case 3:
		w.tick()
	}
	if w.res.Events&63 == 0 {
		w.hashes = append(w.hashes, w.res.Hash)
	}
	return true
}

// spinsMax bounds the timers that fire without time passing: a log that asks for one again and
// again makes no progress.
const spinsMax = 1000

func (w *World) tick() {
	w.process.spins++
	if w.process.spins > spinsMax {
		w.fail("K19", "a timer is due again and again and nothing happens")
		return
	}
	w.ask = askAll
	w.note(hashTick, uint64(w.clock.mono), 0)
	if w.Trace != nil {
		w.say(trackLog, Note, "timer")
	}
	w.retention()
	w.log.Tick(w.clock.now())
}

func (w *World) wake(e entry) {
	if e.life >= 0 && e.life != w.process.life {
		return
	}
	switch e.kind {
	case wakeStep:
		if w.process.up {
			w.step(core.Lane(e.arg))
		}
	case wakeFetch:
		if w.process.up {
			w.fetched(&w.readers[e.arg])
		}
	case wakeOpen:
		w.start()
	case wakePower:
		w.powerWhileDown()
	case wakeLate:
		w.ask = 0
		if w.process.up {
			w.completeLate()
		}
	case wakeExit:
		w.exit()
		w.ask = askAll
	case wakeBrief:
		w.brief()
		w.ask = askAll
	case wakeRival:
		w.rivalWakes(e.arg)
	}
}

// settle lets the log act on what happened until it has nothing more to do now.
func (w *World) settle() {
	if w.process.up && w.fs.Dead() {
		w.die(w.process.doom)
	}
	if w.process.up && w.ask != 0 {
		w.pump()
		w.deadline()
	}
	w.judge()
	w.progress()
}

// judge takes what the checker and the disk have found.
func (w *World) judge() {
	if v := w.check.Violation(); v != nil && w.res.Violation == "" {
		w.fail(v.Check.String(), v.Error())
	}
	if what := w.disk.Broken(); what != "" && what != synced && !w.damaged() {
		w.fail("disk", w.disk.Violation())
	}
}

// Lanes that may have something new to do: what happened to the log decides. Asking one that has not
// is harmless and slow.
const (
	askTail = 1 << core.Tail
	askAll  = 1<<core.LaneCount - 1
)

// deadline looks when the log's next timer is due.
func (w *World) deadline() {
	w.due = 1<<62 - 1
	if w.process.up {
		if due, ok := w.log.Deadline(); ok {
			w.due = due
		}
	}
}

// synced is what the disk says of a write into a sector that a sync covered. A sync beside a
// commit covers more than it claims; what counts is the claim, which claimed judges.
const synced = "write into a sector that holds synced bytes"

// pump drains outcomes, starts effects and takes new views, until nothing changes.
func (w *World) pump() {
	for w.process.up {
		w.outcomes()
		w.phase()
		w.startMoved()
		now := w.clock.now()
		for lane := core.Lane(0); lane < w.lanes && w.process.up; lane++ {
			f := &w.flights[lane]
			if f.effect != nil || w.ask>>lane&1 == 0 {
				continue
			}
			if e := w.log.Next(now, lane); e != nil {
				*f = flight{effect: e, traits: traitsOf(e)}
				w.launch(lane)
				if w.fs.Dead() {
					w.die(w.process.doom)
					return
				}
			}
		}
		// Issuing an effect only ever closes doors for the other lanes; but an outcome or a new
		// phase may have come of deciding.
		if w.log.Phase() == w.process.phase {
			w.ask = 0
			break
		}
		w.ask = askAll
	}
	if w.process.up {
		w.agree()
	}
}

// fail records the first violation.
func (w *World) fail(check, text string) {
	if w.res.Violation == "" && !w.silenced(check) {
		w.res.Check, w.res.Violation = check, text
		if w.Trace != nil {
			w.say(TrackWorld, Violated, "VIOLATION of %s: %s", check, text)
			w.sayImages()
		}
	}
}

// What a hashed note is about.
const (
	hashEvent = iota + 1
	hashStep
	hashTick
	hashOutcome
	hashRead
	hashPhase
	hashCrash
	hashRival
	hashTask
)

// note takes something that happened into the hash of the run.
func (w *World) note(what, a, b uint64) {
	h := (w.res.Hash ^ what*golden ^ a) * 0xff51afd7ed558ccd
	w.res.Hash = (h ^ h>>32 ^ b) * 0xc4ceb9fe1a85ec53
}

// Hashes returns the hash of the latest run as it stood after each 64 events, so that the first
// difference between two runs can be found. It is valid until the next Run.
func (w *World) Hashes() []uint64 { return w.hashes }

// History copies what clients did and saw in the latest run, and what the log held in the end, if
// Record was set before it. Where K17 ran the same calls again, it is that of the last of those runs.
func (w *World) History(h *model.History) { w.check.History(h) }
