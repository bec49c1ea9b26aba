package ideal

import "varve/model"

func (l *Log) diverged(p model.Position) bool {
	if l.o.Bug == DivergeUnseen {
		return false
	}
	for _, w := range l.lineage {
		if p.Epoch != 0 && w.epoch > p.Epoch && w.first < p.Offset {
			return true
		}
	}
	return false
}

// read is the return of a read: it looks and plans only now, so that anything since its call shows.
func (l *Log) read(i int32, k *client) {
	k.phase = idle
	switch {
	case l.diverged(k.pos):
		l.c.ReadDiverged(l.tick(), i)
		l.restart(i, k, min(k.pos.Offset, l.committed))
		return
	case k.pos.Offset < l.start:
		l.c.ReadTrimmed(l.tick(), i, l.start)
		l.restart(i, k, l.start)
		return
	}
	limit := l.committed
	if l.o.Bug == ReadAhead {
		limit = l.end()
	}
	if k.pos.Offset >= limit {
		l.c.ReadEnd(l.tick(), i, k.begun, limit)
		return
	}
	if l.o.Bug == ReadSkips && k.pos.Offset+1 < limit && l.draw(4) == 0 {
		k.pos.Offset++
	}
	for n := 1 + l.draw(3); n > 0 && k.pos.Offset < limit; n-- {
		o := k.pos.Offset
		r := l.log[o]
		v := r.value
		if l.o.Bug == ReadSwapped && o > 0 && l.draw(4) == 0 {
			v = l.log[o-1].value
		}
		l.c.Read(l.now, i, k.begun, o, r.epoch, v)
		k.pos = model.Position{Offset: o + 1, Epoch: r.epoch}
	}
}

func (l *Log) restart(i int32, k *client, at model.Offset) {
	k.pos = model.Position{Offset: at}
	l.c.ReaderStart(l.tick(), i, k.pos, true)
}

// finish lets everything finish and reads to the end.
func (l *Log) finish() {
	if l.poisoned {
		l.crash()
	}
	for l.committed < l.end() && !l.poisoned {
		l.commit()
	}
	if l.poisoned {
		l.crash() // a sync failed in the last moment
	}
	l.c.Agree(l.tick(), l.start, l.end(), l.committed)
	for i := range l.clients {
		k := &l.clients[i]
		if k.phase == accepted {
			l.c.Acked(l.tick(), k.op)
		}
		if !k.reader {
			continue
		}
		for range 1 << 20 {
			before := k.pos
			k.begun = l.c.Stamp()
			l.read(int32(i), k)
			if k.pos == before || l.c.Violation() != nil {
				break
			}
		}
		l.c.ReaderDone(l.tick(), int32(i))
	}
	l.audit()
	l.c.Finish(l.tick())
}
