package wire_test

import (
	"encoding/binary"

	"varve/core"
	"varve/core/segment"
	"varve/model"
	"varve/sim"
	"varve/sim/fakevalkey"
)

// event carries out an event of the schedule.
func (w *world) event(e *sim.Event) {
	w.rng.Seed(e.Sub)
	w.note("> kind %d %d %d %d %d", e.Kind, e.A, e.B, e.C, e.D)
	w.rivalActs()
	switch e.Kind {
	case sim.Append:
		w.append(e.A, max(1, e.B))
	case sim.Read, sim.Poll:
		w.poll(&w.readers[e.Client], int(max(e.A, 64)))
	case sim.Query:
		if w.serving() {
			w.check.TailSeen(w.now.Mono, int32(e.Client), w.check.Stamp(), w.host.log.Committed())
		}
	case sim.Trim:
		w.trims(e.A)
	case sim.RollNow:
		if w.host.up {
			_ = w.host.log.Roll(w.now)
		}
	case sim.Offload:
		if w.serving() {
			w.counts[offloads]++
			_ = w.host.log.Offload(w.now, w.at(e.A))
		}
	case sim.Restart:
		w.restart(e)
	case sim.Crash:
		w.crash(e)
	case sim.Hurt, sim.Heal:
		w.hurt(e.Kind == sim.Hurt)
	case sim.Lose:
		w.lose(e.A)
	case sim.Move:
		w.move(e)
	case sim.Outage:
		w.objects.hurt(w.rate(), e.A != sim.OutageOver)
	case sim.Server:
		w.server(e.A)
	case sim.Slow:
		w.slow[core.Lane(e.Sub>>32)%core.LaneCount] += e.B
	default: // what is nothing to the tiers
	}
}

// hurt makes calls of the servers fail now and then.
func (w *world) hurt(on bool) {
	w.hurting = on
	w.objects.hurt(w.rate(), false)
}

func (w *world) rate() uint32 {
	if w.hurting {
		return 8000
	}
	return 0
}

// server is what happens to the Valkey server. A failover that loses nothing is a lost connection.
func (w *world) server(what sim.ServerKind) {
	switch what {
	case sim.ServerRestart:
		w.counts[serverRestarts]++
		w.stream.restart(w.t)
		if w.h.Persist != int64(fakevalkey.Always) && !w.h.On(sim.SwLose) && !w.h.On(sim.SwMove) {
			w.counts[serverEmptied]++
			w.stream.mini.FlushAll()
		}
	case sim.ServerFreeze, sim.ServerThaw:
		w.stream.freeze(what == sim.ServerFreeze)
	default:
		w.stream.strike(int(w.rng.Between(1, 12)), 0)
	}
}

// serving reports whether clients may read.
func (w *world) serving() bool { return w.host.opened && w.host.log.Phase() != core.Closed }

// at is an offset so many thousandths into the log.
func (w *world) at(permille int64) core.Offset {
	start, committed := w.host.log.Start(), w.host.log.Committed()
	return start + (committed-start)*permille/1000
}

func batch(payload []byte, records uint32, now core.Now) core.Batch {
	return core.Batch{
		Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindRecords,
		Records: records, MaxTime: now.Wall, Producer: core.NoProducer,
	}
}

// append appends a batch, whose payload says which.
func (w *world) append(bytes, records int64) {
	w.counts[appends]++
	id := w.check.Append(w.now.Mono, model.Append{Records: int32(records)})
	p := binary.LittleEndian.AppendUint64(make([]byte, 0, bytes+8), uint64(id))
	for int64(len(p)) < bytes {
		p = append(p, byte(id)+byte(len(p)))
	}
	w.payloads = append(w.payloads, p)
	h := w.host
	b := batch(p, uint32(records), w.now)
	if !h.up {
		w.check.Failed(w.now.Mono, id)
		return
	}
	t, err := h.log.Append(w.now, &b)
	if err != nil {
		w.counts[refused]++
		w.check.Failed(w.now.Mono, id)
		return
	}
	w.check.Accepted(w.now.Mono, id, model.Ticket{First: t.First, End: t.End, Epoch: t.Epoch, Cohort: t.Cohort})
	h.waiting = append(h.waiting, waiting{t.Cohort, int32(id)})
	w.note("append %d: [%d, %d)", id, t.First, t.End)
}

func (w *world) trims(permille int64) {
	if !w.serving() {
		return
	}
	before := w.at(permille)
	w.check.TrimCalled(w.now.Mono, before)
	if w.host.log.Trim(w.now, before) == nil {
		w.counts[trims]++
		w.trim = max(w.trim, before)
	}
}

// agree compares the log's watermarks with the checker's.
func (w *world) agree() {
	if !w.serving() || w.host.log.Phase() == core.Poisoned {
		return
	}
	l := w.host.log
	if l.Start() != w.start {
		w.check.StartMoved(w.now.Mono, l.Start(), nil)
		w.start = l.Start()
	}
	if w.trim > 0 && w.start >= w.trim {
		w.check.TrimReturned(w.now.Mono, w.trim)
		w.trim = 0
	}
	if l.Frontier() > w.check.ProvenEnd() {
		w.fail("K1: the log claims to be durable what no sync has covered")
	}
	w.check.Agree(w.now.Mono, l.Start(), l.End(), l.Committed())
}
