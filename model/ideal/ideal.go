// Package ideal plays random clients against the simplest log that could be correct: a slice. It
// feeds a model.Checker with histories that are legal by construction, or, with a Bug, with ones
// that are not. It tests the checkers, not the product.
package ideal

import "varve/model"

// Bug makes the log wrong in one way.
type Bug uint8

// Bugs.
const (
	NoBug         Bug = iota
	AckEarly          // acks before the sync
	LoseAcked         // recovers less than it owes
	Invent            // recovers more than was accepted
	Renumber          // gives an offset away twice
	ReadAhead         // serves records above Committed
	ReadSwapped       // swaps two records
	ReadSkips         // leaves out a record
	StaleTail         // shows the end of a while ago
	Revive            // brings a failed append back
	AckPoisoned       // acks after a failed sync
	StartBack         // forgets a trim
	TrimTooFar        // trims one more
	LateOwner         // an append of the last life is acked in this one
	ForgetRetries     // takes a retry for a new batch
	DivergeUnseen     // goes on serving a diverged reader
	BugCount
)

// Options shape a run.
type Options struct {
	Steps   int // of clients and of the log
	Clients int // at most 16
	Policy  model.Policy
	Lives   int // crashes at most this often, less one
	Trims   bool
	Bug     Bug
}

type phase uint8

const (
	idle phase = iota
	called
	accepted
	reading // a read is under way
	looking // at the tail
)

type client struct {
	phase     phase
	op        model.OpID
	ticket    model.Ticket
	records   int32
	origin    model.OpID
	retry     model.OpID // unknown; to be sent again
	begun     model.Stamp
	looked    bool // at the tail; what it saw
	saw       model.Offset
	pos       model.Position
	reader    bool
	atRetried int32
}

type owner struct {
	epoch model.Epoch
	first model.Offset
}

type record struct {
	value model.Value
	epoch model.Epoch
}

// Log is the ideal log and its clients. It is reused from run to run.
type Log struct {
	o       Options
	c       *model.Checker
	rand    uint64
	now     model.Time
	clients []client

	log       []record
	committed model.Offset // readers may see it; acks may be delivered
	synced    model.Offset
	start     model.Offset
	oldTail   model.Offset
	epoch     model.Epoch
	lineage   []owner
	lives     int
	poisoned  bool
	unsynced  model.Time // when the oldest record above synced was committed
	dead      record     // of a failed append
	deadAt    model.Offset
	deadValid bool
	late      model.OpID
}

const interval = 100

func (l *Log) draw(n int) int {
	l.rand += 0x9e3779b97f4a7c15
	z := l.rand
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

func (l *Log) end() model.Offset { return model.Offset(len(l.log)) }

func (l *Log) tick() model.Time {
	l.now += model.Time(l.draw(3))
	return l.now
}

// Run plays one run. The checker is reset first.
func (l *Log) Run(c *model.Checker, seed uint64, o Options) {
	*l = Log{o: o, c: c, rand: seed, log: l.log[:0], clients: l.clients[:0], lineage: l.lineage[:0]}
	for range o.Clients {
		l.clients = append(l.clients, client{})
	}
	c.Reset()
	l.open(0)
	for range o.Steps {
		if c.Violation() != nil {
			return
		}
		l.step()
	}
	l.finish()
}

func (l *Log) step() {
	switch l.draw(20) {
	case 0:
		l.sync()
	case 1, 2, 3:
		l.commit()
	case 4:
		if l.draw(8) == 0 {
			l.failPending()
		}
	case 5:
		if l.draw(3) == 0 && l.lives < l.o.Lives {
			l.crash()
		}
	case 6:
		if l.o.Trims && l.draw(4) == 0 {
			l.trim()
		}
	default:
		l.client(l.draw(len(l.clients)))
	}
	if !l.poisoned {
		l.c.Agree(l.tick(), l.start, l.end(), l.committed)
	}
}

func (l *Log) client(i int) {
	k := &l.clients[i]
	switch k.phase {
	case idle:
		l.begin(int32(i), k)
	case called:
		l.accept(k)
	case accepted:
		if k.ticket.End <= l.committed && (!l.poisoned || l.o.Bug == AckPoisoned) {
			l.c.Acked(l.tick(), k.op)
			k.phase = idle
			if l.o.Bug == LateOwner && l.late != 0 {
				l.c.Acked(l.tick(), l.late)
				l.late = 0
			}
		}
	case reading:
		l.read(int32(i), k)
	case looking:
		if !k.looked {
			k.looked, k.saw = true, l.committed
			if l.o.Bug == StaleTail {
				k.saw = l.oldTail
			}
			return
		}
		l.c.TailSeen(l.tick(), int32(i), k.begun, k.saw)
		l.oldTail, k.phase = l.committed, idle
	}
}

func (l *Log) begin(i int32, k *client) {
	switch l.draw(5) {
	case 0:
		k.begun, k.looked, k.phase = l.c.Stamp(), false, looking
	case 1:
		if !k.reader {
			k.pos, k.reader = model.Position{Offset: l.start}, true
			l.c.ReaderStart(l.tick(), i, k.pos, true)
		}
		k.begun, k.phase = l.c.Stamp(), reading
	default:
		k.records, k.origin = int32(1+l.draw(3)), 0
		a := model.Append{Client: i, Records: k.records, Producer: model.Producer{ID: int64(i) + 1}}
		if k.retry != 0 {
			k.origin, k.records = k.retry, k.atRetried
			a.Retry, a.Records, k.retry = k.origin, k.records, 0
		}
		k.op = l.c.Append(l.tick(), a)
		if k.origin == 0 {
			k.origin = k.op
		}
		k.phase = called
	}
}

func (l *Log) accept(k *client) {
	if l.poisoned {
		l.c.Failed(l.tick(), k.op)
		k.phase = idle
		return
	}
	t := model.Ticket{First: l.end(), Epoch: l.epoch, Cohort: uint64(k.op)}
	if k.origin != k.op && l.o.Bug != ForgetRetries {
		for o := range l.log {
			if l.log[o].value == model.MakeValue(k.origin, 0) {
				t.First, t.Duplicate = model.Offset(o), true
			}
		}
	}
	if l.o.Bug == Renumber && t.First > l.committed && l.draw(4) == 0 {
		t.First--
	}
	t.End = t.First + model.Offset(k.records)
	l.c.Accepted(l.tick(), k.op, t)
	k.ticket, k.phase = t, accepted
	if t.Duplicate {
		return
	}
	l.log = l.log[:t.First]
	for i := range k.records {
		l.log = append(l.log, record{model.MakeValue(k.origin, int(i)), l.epoch})
	}
}

// commit raises Committed to the end of some pending batch.
func (l *Log) commit() {
	if l.poisoned || l.committed == l.end() {
		return
	}
	end := l.boundary(l.committed + 1 + model.Offset(l.draw(int(l.end()-l.committed))))
	switch {
	case l.o.Policy == model.OnCommit && l.o.Bug != AckEarly:
		l.c.Synced(l.tick(), end)
		l.synced = end
	case l.o.Policy == model.Periodic && l.synced < l.committed && l.now-l.unsynced > interval:
		if l.sync(); l.poisoned {
			return
		}
	}
	if l.synced >= l.committed {
		l.unsynced = l.now
	}
	l.committed = end
}

// boundary returns the end of the batch that holds the record before o.
func (l *Log) boundary(o model.Offset) model.Offset {
	for o > 0 && o < l.end() && l.log[o].value.Index() != 0 {
		o++
	}
	return o
}

func (l *Log) sync() {
	if l.o.Policy == model.OnCommit || l.poisoned || l.synced >= l.committed {
		return
	}
	if l.draw(20) == 0 {
		l.poison()
		return
	}
	l.synced = l.committed
	l.c.Synced(l.tick(), l.synced)
}

func (l *Log) poison() {
	l.poisoned = true
	l.c.SyncFailed(l.tick())
}

// failPending rolls everything above Committed back, from some batch on.
func (l *Log) failPending() {
	if l.committed == l.end() || l.poisoned {
		return
	}
	cut := l.boundary(l.committed + model.Offset(l.draw(int(l.end()-l.committed))))
	if cut == l.end() {
		return
	}
	l.dead, l.deadAt, l.deadValid = l.log[cut], cut, true
	for i := range l.clients {
		if k := &l.clients[i]; k.phase == accepted && k.ticket.First >= cut {
			l.c.Failed(l.tick(), k.op)
			k.phase = idle
		}
	}
	l.log = l.log[:cut]
}
