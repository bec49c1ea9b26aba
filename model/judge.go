package model

// Judge decides whether a history is linearizable and explains its final log: by offsets, in one
// pass over the calls and one over the log, with no search. It takes nothing from a Checker's own
// reference log, so that another decision procedure can be set beside it. Values must be unique to
// their append. It allocates.
func (h *History) Judge() error {
	eras, losses, ok := h.eras()
	if !ok {
		return &Violation{Check: K3, Why: "a crash took more than the log held", Reader: -1, Offset: -1}
	}
	var l Linear
	l.Reset()
	for i, log := range eras {
		from, to := Stamp(0), Never
		if i > 0 {
			from = losses[i-1].Return
		}
		if i < len(losses) {
			to = losses[i].Begin
		}
		if v := h.judgeEra(&l, log, from, to); v != nil {
			return v
		}
		if i < len(losses) {
			l.Lose(losses[i].First, losses[i].Return)
		}
	}
	return nil
}

// eras returns what the log held at the end of each era, and the losses that end all but the last.
func (h *History) eras() (logs [][]Value, losses []*Call, ok bool) {
	for i := range h.Calls {
		if h.Calls[i].Kind == CallLose {
			losses = append(losses, &h.Calls[i])
		}
	}
	logs = make([][]Value, len(losses)+1)
	logs[len(losses)] = h.Final
	for i := len(losses) - 1; i >= 0; i-- {
		kept, loss := logs[i+1], losses[i]
		if loss.First > Offset(len(kept)) {
			return nil, nil, false
		}
		logs[i] = append(append([]Value(nil), kept[:loss.First]...), h.Of(loss)...)
	}
	return logs, losses, true
}

// judgeEra judges the calls that began in [from, to); log is what the era ended with, and l holds
// what it began with.
func (h *History) judgeEra(l *Linear, log []Value, from, to Stamp) error {
	n := Offset(len(log))
	by := make([]int32, n) // which call appended the record, from 1 on
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Kind != CallAppend || c.Begin < from || c.Begin >= to {
			continue
		}
		first := c.First
		if !c.Known {
			if first = find(log, h.Of(c)); first < 0 {
				continue // out
			}
		}
		for k, v := range h.Of(c) {
			o := first + Offset(k)
			if o < l.End() || o >= n || log[o] != v {
				return &Violation{Check: K1, Why: "an acked record is not where it was acked", Reader: c.Client, Offset: o, Want: int64(v), Stamp: c.Begin}
			}
			if by[o] != 0 {
				return &Violation{Check: K4, Why: "two appends hold one offset", Reader: c.Client, Offset: o, Stamp: c.Begin}
			}
			by[o] = int32(i) + 1
		}
	}
	for l.End() < n {
		o := l.End()
		if by[o] == 0 {
			return &Violation{Check: K4, Why: "a record that nobody appended", Reader: -1, Offset: o, Found: int64(log[o])}
		}
		c := &h.Calls[by[o]-1]
		l.Append(int32(c.Count), c.Begin)
		if c.Known {
			l.Seen(o, c.Return)
		}
	}
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Begin < from || c.Begin >= to {
			continue
		}
		switch c.Kind {
		case CallRead:
			for k, v := range h.Of(c) {
				if o := c.First + Offset(k); o < 0 || o >= n || log[o] != v {
					return &Violation{Check: K2, Why: "a read saw what the log does not hold", Reader: c.Client, Offset: o, Found: int64(v), Stamp: c.Begin}
				}
			}
			l.Seen(c.End-1, c.Return)
		case CallTail:
			if c.First < 0 || c.First > n {
				return &Violation{Check: K6, Why: "the tail was seen above the end", Reader: c.Client, Offset: c.First, Want: n, Stamp: c.Begin}
			}
			l.Tail(c.First, c.Begin, c.Return)
		}
	}
	if k, earliest, latest, ok := l.Check(); !ok {
		return &Violation{Check: K6, Why: "no order of the calls explains the log: earliest instant after latest", Reader: -1, Offset: k, Want: int64(latest), Found: int64(earliest)}
	}
	return nil
}

// find returns where the values lie in a log, -1 if nowhere whole.
func find(log, values []Value) Offset {
	for o := 0; o+len(values) <= len(log) && len(values) > 0; o++ {
		k := 0
		for k < len(values) && log[o+k] == values[k] {
			k++
		}
		if k == len(values) {
			return Offset(o)
		}
	}
	return -1
}
