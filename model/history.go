package model

// CallKind is what a client did.
type CallKind uint8

// Calls of a history.
const (
	CallAppend CallKind = iota
	CallRead            // saw records [First, End)
	CallTail            // saw the log ending at First
	CallLose            // the log itself: a crash took the records from First on, as the policy allows
)

// Call is one call of a history. Its values lie in History.Values.
type Call struct {
	Kind       CallKind
	Client     int32
	Known      bool // of an append: acked at First. Otherwise the final log decides
	Begin      Stamp
	Return     Stamp // Never if it did not
	First, End Offset
	ValueAt    int // Values[ValueAt : ValueAt+Count]: appended, read, or lost
	Count      int
}

// History is what clients did and saw, and what the log held in the end: enough to judge
// linearizability again by other means.
type History struct {
	Calls  []Call
	Values []Value
	Final  []Value // from offset 0
}

// Reset forgets everything, keeping memory.
func (h *History) Reset() {
	h.Calls, h.Values, h.Final = h.Calls[:0], h.Values[:0], h.Final[:0]
}

// Of returns the values of a call.
func (h *History) Of(c *Call) []Value { return h.Values[c.ValueAt : c.ValueAt+c.Count] }

// History copies the calls of the run so far into h, and the log as it is now. Reads and looks at
// the tail are there if Record was set before Reset.
func (c *Checker) History(h *History) {
	h.Calls = append(h.Calls[:0], c.history.Calls...)
	h.Values = append(h.Values[:0], c.history.Values...)
	h.Final = h.Final[:0]
	for i := 1; i < len(c.ops); i++ {
		h.append(&c.ops[i])
	}
	for o := Offset(0); o < c.End(); o++ {
		h.Final = append(h.Final, c.value(o))
	}
}

func (h *History) append(p *op) {
	if p.state == opFailed || p.state == opCalled || p.end == p.first {
		return // had no effect
	}
	call := Call{
		Kind: CallAppend, Client: p.client, Begin: p.call, Return: p.returned,
		First: p.first, End: p.end, ValueAt: len(h.Values), Count: int(p.records),
		Known: p.returned != Never,
	}
	if p.duplicate {
		if !call.Known {
			return
		}
		call.Kind = CallRead // it appended nothing, but its answer proves the original
	}
	for i := range p.records {
		h.Values = append(h.Values, MakeValue(p.origin, int(i)))
	}
	h.Calls = append(h.Calls, call)
}

func (h *History) read(c *Checker, id int32, begin Stamp, o Offset, v Value) {
	if !c.Record {
		return
	}
	if n := len(h.Calls); n > 0 {
		l := &h.Calls[n-1]
		if l.Kind == CallRead && l.Client == id && l.Begin == begin && l.End == o {
			h.Values = append(h.Values, v)
			l.End, l.Count, l.Return = o+1, l.Count+1, c.stamp
			return
		}
	}
	h.Values = append(h.Values, v)
	h.Calls = append(h.Calls, Call{
		Kind: CallRead, Client: id, Begin: begin, Return: c.stamp, First: o, End: o + 1,
		ValueAt: len(h.Values) - 1, Count: 1,
	})
}

func (h *History) tail(c *Checker, id int32, begin Stamp, end Offset) {
	if c.Record {
		h.Calls = append(h.Calls, Call{
			Kind: CallTail, Client: id, Begin: begin, Return: c.stamp, First: end, End: end,
			ValueAt: len(h.Values),
		})
	}
}

// lost records that a reopen cut the log to end. It is asked before the cut.
func (h *History) lost(c *Checker, end Offset) {
	if !c.Record {
		return
	}
	at := len(h.Values)
	for o := end; o < c.End(); o++ {
		h.Values = append(h.Values, c.value(o))
	}
	h.Calls = append(h.Calls, Call{
		Kind: CallLose, Client: -1, Begin: c.crashAt, Return: c.stamp, First: end, End: c.End(),
		ValueAt: at, Count: len(h.Values) - at,
	})
}
