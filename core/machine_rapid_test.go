package core_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// drawn lets a rig fail the draw at hand instead of the test, so that rapid can shrink it.
type drawn struct {
	testing.TB
	r *rapid.T
}

func (d drawn) Fatal(args ...any)                 { d.r.Fatal(args...) }
func (d drawn) Fatalf(format string, args ...any) { d.r.Fatalf(format, args...) }
func (d drawn) Helper()                           {}

// machine is a log on a simulated disk, driven step by step, beside a list that says what it has to
// hold: requests, steps of lanes in any order, deaths at any of them.
type machine struct {
	*rig
	t       *rapid.T
	cfg     core.Config
	flights [core.LaneCount]flying

	recs    []uint64 // what was accepted, by offset
	next    uint64
	cohorts []promise
	opened  bool
	epoch   core.Epoch

	acked  core.Offset // was acked, or recovered
	proven core.Offset // the device holds it
	owed   core.Offset // has to be there after the next open
	start  core.Offset
	trim   core.Offset // greatest trim that was asked for

	sequence int32 // of the one producer, under its epoch
	under    int16
	last     core.Offset // of its newest batch, -1: none that it could send again
	dice     faultfs.Rand
}

type flying struct {
	effect core.Effect
	ran    bool
	err    error
}

type promise struct {
	cohort uint64
	end    core.Offset
}

func newMachine(t testing.TB, r *rapid.T) *machine {
	m := &machine{rig: newRig(drawn{t, r}), t: r, cfg: smokeConfig(), last: -1}
	m.log = new(core.Log)
	m.cfg.Sync = segment.SyncMode(rapid.IntRange(0, 2).Draw(r, "sync"))
	m.cfg.SegmentBytes = rapid.SampledFrom([]int64{1024, 2048, 8192}).Draw(r, "segment bytes")
	m.cfg.Preallocate, m.cfg.VerifyAllOnOpen = rapid.Bool().Draw(r, "preallocate"), rapid.Bool().Draw(r, "verify all")
	m.cfg.SyncInterval = 1_000_000
	m.disk.SetFaults(faultfs.Set(faultfs.D1Sectors, faultfs.D2Torn, faultfs.D3Size, faultfs.D5DirOps, faultfs.D5RenameHalf))
	m.dice.Seed(rapid.Uint64().Draw(r, "power losses"))
	m.begin()
	return m
}

// begin begins a life, which the steps that follow open.
func (m *machine) begin() {
	m.flights = [core.LaneCount]flying{}
	m.cohorts, m.opened = m.cohorts[:0], false
	m.now.Mono, m.now.Wall = m.now.Mono+1000, m.now.Wall+1000
	if err := m.log.Reopen(m.cfg, m.now); err != nil {
		m.t.Fatal(err)
	}
}

// step moves one lane on: takes an effect, carries it out, or completes it.
func (m *machine) step(lane core.Lane) (busy bool) {
	f := &m.flights[lane]
	switch {
	case f.effect == nil:
		if f.effect = m.log.Next(m.now, lane); f.effect == nil {
			return false
		}
	case !f.ran:
		f.err, f.ran = m.store.Run(f.effect), true
	default:
		e, err := f.effect, f.err
		*f = flying{}
		m.now.Mono, m.now.Wall = m.now.Mono+1000, m.now.Wall+1000
		m.log.Complete(m.now, e, err)
		m.settle()
	}
	return true
}

func (m *machine) rest() {
	for busy := true; busy; {
		busy = false
		for lane := range core.LaneCount {
			busy = m.step(lane) || busy
		}
	}
}

// settle takes outcomes, and judges an open that has just finished.
func (m *machine) settle() {
	for o, ok := m.log.NextOutcome(); ok; o, ok = m.log.NextOutcome() {
		if o.Err != nil {
			m.t.Fatalf("an append failed on a disk where nothing fails: %v", o.Err)
		}
		for len(m.cohorts) > 0 && m.cohorts[0].cohort <= o.Cohort {
			m.acked = max(m.acked, m.cohorts[0].end)
			m.cohorts = m.cohorts[1:]
		}
		if m.acked > m.log.Committed() || m.cfg.Sync == segment.OnCommit && m.acked > m.log.Frontier() {
			m.t.Fatalf("acked up to %d, committed %d, frontier %d", m.acked, m.log.Committed(), m.log.Frontier())
		}
	}
	switch p := m.log.Phase(); {
	case p == core.Failed || p == core.Poisoned:
		m.t.Fatalf("%v: %v", p, m.log.Err())
	case p == core.Ready && !m.opened:
		m.recovered()
	}
}

func (m *machine) recovered() {
	end := m.log.End()
	if end < m.owed || end > core.Offset(len(m.recs)) || m.log.Committed() != end || m.log.Frontier() != end {
		m.t.Fatalf("recovered [%d, %d), committed %d, frontier %d; owed %d of %d", m.log.Start(), end, m.log.Committed(), m.log.Frontier(), m.owed, len(m.recs))
	}
	if m.log.Epoch() <= m.epoch {
		m.t.Fatalf("epoch %d after %d", m.log.Epoch(), m.epoch)
	}
	if end < core.Offset(len(m.recs)) { // what the producer sent may be gone
		m.under, m.sequence, m.last = m.under+1, 0, -1
	}
	m.opened, m.epoch, m.recs = true, m.log.Epoch(), m.recs[:end]
	m.acked, m.proven, m.owed = end, end, end
	m.compare(m.log.Start())
}

// compare wants from an offset on what the list says.
func (m *machine) compare(from core.Offset) {
	got, want := m.read(from), m.recs[from:m.log.Committed()]
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			m.t.Fatalf("from offset %d on the log holds %v, want %v", from, got, want)
		}
	}
}

// check holds at any time.
func (m *machine) check() {
	if !m.opened {
		return
	}
	l := m.log
	if l.Start() < m.start || l.Start() > max(m.start, m.trim) || l.End() != core.Offset(len(m.recs)) ||
		l.Committed() < m.acked || l.Committed() > l.End() || l.Frontier() > l.End() || l.Frontier() < m.proven {
		m.t.Fatalf("start %d (was %d, trimmed to %d), committed %d, frontier %d (was %d), end %d of %d, acked %d",
			l.Start(), m.start, m.trim, l.Committed(), l.Frontier(), m.proven, l.End(), len(m.recs), m.acked)
	}
	m.start, m.proven = l.Start(), l.Frontier()
}

func (m *machine) send(b *core.Batch) (core.Ticket, bool) {
	t, err := m.log.Append(m.now, b)
	switch {
	case errors.Is(err, core.ErrOverloaded):
		return t, false
	case !m.opened || m.log.Phase() != core.Ready:
		if err == nil {
			m.t.Fatalf("an append in phase %v", m.log.Phase())
		}
		return t, false
	case err != nil:
		m.t.Fatal(err)
	}
	if t.Cohort != 0 {
		m.cohorts = append(m.cohorts, promise{t.Cohort, t.End})
	}
	return t, true
}

// append sends a batch that holds the next numbers. A producer's holds one.
func (m *machine) append(records, bytes int, idempotent bool) {
	b := core.Batch{Kind: segment.KindRecords, Records: uint32(records), Producer: core.NoProducer, MaxTime: m.now.Wall}
	b.Payload = append(binary.LittleEndian.AppendUint64(nil, m.next), make([]byte, bytes)...)
	for i := 8; i < len(b.Payload); i++ {
		b.Payload[i] = byte(i) | 1
	}
	b.PayloadCRC = segment.PayloadCRC(b.Payload)
	if idempotent {
		b.Producer = core.Producer{ID: 5, Epoch: m.under, Sequence: m.sequence}
	}
	t, ok := m.send(&b)
	if !ok {
		return
	}
	if t.First != core.Offset(len(m.recs)) || t.End != t.First+int64(records) || t.Duplicate || t.Epoch != m.epoch {
		m.t.Fatalf("ticket %+v of %d records behind %d", t, records, len(m.recs))
	}
	for range records {
		m.recs = append(m.recs, m.next)
		m.next++
	}
	if idempotent {
		m.last = t.First
		m.sequence += int32(records)
	}
}

// again sends the producer's newest batch once more.
func (m *machine) again() {
	if !m.opened || m.last < m.log.Start() || m.log.Phase() != core.Ready {
		return
	}
	b := core.Batch{Kind: segment.KindRecords, Records: 1, MaxTime: m.now.Wall}
	b.Payload = binary.LittleEndian.AppendUint64(nil, m.recs[m.last])
	b.PayloadCRC = segment.PayloadCRC(b.Payload)
	b.Producer = core.Producer{ID: 5, Epoch: m.under, Sequence: m.sequence - 1}
	t, ok := m.send(&b)
	if ok && (!t.Duplicate || t.First != m.last || t.End != m.last+1) {
		m.t.Fatalf("a duplicate of offset %d got %+v", m.last, t)
	}
}

// die ends the process; a power loss also takes what the device does not hold.
func (m *machine) die(power bool) {
	if m.opened {
		m.owed = m.acked
	}
	m.rig.kill()
	if power {
		m.disk.PowerLoss(&m.dice, true)
		if m.cfg.Sync != segment.OnCommit {
			m.owed = min(m.owed, m.proven)
		}
	}
	m.begin()
}

// shut ends a life in order: nothing that was accepted is lost.
func (m *machine) shut() {
	if !m.opened {
		return
	}
	m.log.Close(m.now)
	m.rest()
	if m.log.Phase() != core.Closed || m.log.Err() != nil || len(m.cohorts) > 0 || m.acked != core.Offset(len(m.recs)) {
		m.t.Fatalf("closed in phase %v, %v, %d appends without an outcome", m.log.Phase(), m.log.Err(), len(m.cohorts))
	}
	m.check()
	m.proven = m.acked
	m.die(rapid.Bool().Draw(m.t, "power"))
	if m.owed != core.Offset(len(m.recs)) {
		m.t.Fatal("a clean close owes all")
	}
}

// TestCoreAgainstAList runs random requests, steps and deaths.
func TestCoreAgainstAList(t *testing.T) {
	lives, records := 0, 0
	for range 10 {
		rapid.Check(t, func(r *rapid.T) {
			m := newMachine(t, r)
			r.Repeat(map[string]func(*rapid.T){
				"": func(*rapid.T) { m.check() },
				"append": func(r *rapid.T) {
					for range rapid.IntRange(1, 4).Draw(r, "batches") {
						m.append(rapid.IntRange(1, 3).Draw(r, "records"), rapid.IntRange(0, 700).Draw(r, "bytes"), false)
					}
				},
				"append idempotently": func(r *rapid.T) { m.append(1, rapid.IntRange(0, 60).Draw(r, "bytes"), true) },
				"send again":          func(*rapid.T) { m.again() },
				"steps": func(r *rapid.T) {
					for _, lane := range rapid.SliceOfN(rapid.IntRange(0, int(core.LaneCount)-1), 1, 12).Draw(r, "lanes") {
						m.step(core.Lane(lane))
					}
				},
				"steps of an open": func(r *rapid.T) {
					for range rapid.IntRange(1, 40).Draw(r, "steps") {
						m.step(core.Hot)
					}
				},
				"rest": func(*rapid.T) { m.rest() },
				"time": func(r *rapid.T) {
					d := rapid.Int64Range(1, 30_000_000).Draw(r, "ns")
					m.now.Mono, m.now.Wall = m.now.Mono+d, m.now.Wall+d
					m.log.Tick(m.now)
				},
				"roll": func(*rapid.T) { _ = m.log.Roll(m.now) },
				"trim": func(r *rapid.T) {
					to := rapid.Int64Range(0, int64(len(m.recs))+1).Draw(r, "to")
					if err := m.log.Trim(m.now, to); err == nil {
						m.trim = max(m.trim, to)
					} else if m.opened && to <= m.log.Committed() {
						m.t.Fatalf("trim to %d of %d: %v", to, m.log.Committed(), err)
					}
				},
				"read": func(r *rapid.T) {
					if m.opened {
						m.compare(rapid.Int64Range(m.log.Start(), m.log.Committed()).Draw(r, "from"))
					}
				},
				"close": func(*rapid.T) { m.shut() },
				"die": func(r *rapid.T) {
					if m.opened || rapid.IntRange(0, 4).Draw(r, "in an open") == 0 {
						m.die(rapid.Bool().Draw(r, "power"))
					}
				},
			})
			m.rest()
			m.check()
			m.die(true)
			m.rest()
			if !m.opened {
				m.t.Fatalf("the last open ends in %v: %v", m.log.Phase(), m.log.Err())
			}
			lives, records = lives+int(m.epoch), records+len(m.recs)
		})
	}
	t.Logf("%d lives, %d records", lives, records)
	if lives < 3000 || records < 3000 {
		t.Error("too little happens")
	}
}
