// Package porcupine judges a model.History with the porcupine linearizability checker: the oracle
// of the direct check. Porcupine searches and its time-out is by the wall clock, so it runs outside
// the simulator, on samples.
package porcupine

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"varve/model"
)

// input is one step of the log. Outcomes are known by the time a history is judged, so that what was
// returned lies in the input, too.
type input struct {
	kind   model.CallKind
	first  model.Offset
	values []model.Value
}

// log is the state: what the log holds. It is never changed, only replaced.
type log struct {
	values []model.Value
	hash   uint64
}

const hashStart, hashPrime = 14695981039346656037, 1099511628211

func newLog(values []model.Value) *log {
	l := &log{values: values, hash: hashStart}
	for _, v := range values {
		l.hash = (l.hash ^ uint64(v)) * hashPrime
	}
	return l
}

// Model is a log of records with append, read, a look at the tail, and loss.
var Model = porcupine.Model{
	Init:  func() any { return newLog(nil) },
	Step:  func(state, in, _ any) (bool, any) { return step(state.(*log), in.(*input)) },
	Hash:  func(state any) uint64 { return state.(*log).hash },
	Equal: func(a, b any) bool { return slices.Equal(a.(*log).values, b.(*log).values) },
	DescribeOperation: func(in, _ any) string {
		i := in.(*input)
		switch i.kind {
		case model.CallAppend:
			return fmt.Sprintf("append -> [%d, %d)", i.first, i.first+int64(len(i.values)))
		case model.CallRead:
			return fmt.Sprintf("read [%d, %d)", i.first, i.first+int64(len(i.values)))
		case model.CallTail:
			return fmt.Sprintf("tail -> %d", i.first)
		}
		return fmt.Sprintf("crash keeps [0, %d)", i.first)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("[0, %d)", len(state.(*log).values)) },
}

// step is the sequential log.
func step(l *log, i *input) (bool, *log) {
	n := model.Offset(len(l.values))
	end := i.first + model.Offset(len(i.values))
	switch i.kind {
	case model.CallAppend:
		if i.first != n {
			return false, l
		}
		return true, newLog(append(l.values[:n:n], i.values...))
	case model.CallRead:
		return end <= n && i.first >= 0 && slices.Equal(l.values[i.first:end], i.values), l
	case model.CallTail:
		return i.first == n, l
	}
	// Loss: just these records go, and they were the last.
	if i.first > n || !slices.Equal(l.values[i.first:], i.values) {
		return false, l
	}
	return true, newLog(l.values[:i.first:i.first])
}

// Check judges a history. Unknown means that the time-out passed.
func Check(h *model.History, timeout time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(Model, Operations(h), timeout)
}

// Visualize judges a history and writes porcupine's picture of it: one HTML page, which needs nothing
// from elsewhere. In a history that is not linearizable it shows how far an order could be found.
func Visualize(w io.Writer, h *model.History, timeout time.Duration) (porcupine.CheckResult, error) {
	result, info := porcupine.CheckOperationsVerbose(Model, Operations(h), timeout)
	if err := porcupine.Visualize(Model, info, w); err != nil {
		return result, fmt.Errorf("porcupine: %w", err)
	}
	return result, nil
}

// Operations translates a history. An append without a known outcome is resolved by what the log
// held when its life ended: if it is there, it returned by then; if it is not, it never was. (An
// append that may return at infinity makes the search explode.) A last read sees the final log.
func Operations(h *model.History) []porcupine.Operation {
	last := model.Stamp(0)
	clients := 0
	for i := range h.Calls {
		c := &h.Calls[i]
		last = max(last, c.Begin)
		if c.Return != model.Never {
			last = max(last, c.Return)
		}
		clients = max(clients, int(c.Client)+1)
	}
	ops := make([]porcupine.Operation, 0, len(h.Calls)+2)
	add := func(client int, begin, end model.Stamp, i *input) {
		ops = append(ops, porcupine.Operation{ClientId: client, Input: i, Call: int64(begin), Return: int64(end)})
	}
	for i := range h.Calls {
		c := &h.Calls[i]
		in := &input{kind: c.Kind, first: c.First, values: h.Of(c)}
		client, end := int(c.Client), c.Return
		switch {
		case c.Kind == model.CallLose:
			client = clients
		case c.Kind == model.CallAppend && !c.Known:
			loss := lossAfter(h, c.Begin)
			held := h.Final
			end = last + 1
			if loss != nil {
				held, end = heldAt(h, loss), loss.Begin
			}
			if in.first = find(held, in.values); in.first < 0 {
				continue
			}
		}
		add(client, c.Begin, end, in)
	}
	add(clients, last+2, last+4, &input{kind: model.CallRead, values: h.Final})
	add(clients+1, last+2, last+4, &input{kind: model.CallTail, first: model.Offset(len(h.Final))})
	return ops
}

// lossAfter returns the first loss that begins after a stamp.
func lossAfter(h *model.History, s model.Stamp) *model.Call {
	var first *model.Call
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Kind == model.CallLose && c.Begin > s && (first == nil || c.Begin < first.Begin) {
			first = c
		}
	}
	return first
}

// heldAt returns what the log held when a loss took its end: the later log up to there, and what it
// took.
func heldAt(h *model.History, loss *model.Call) []model.Value {
	after := h.Final
	if next := lossAfter(h, loss.Begin); next != nil {
		after = heldAt(h, next)
	}
	keep := min(int(loss.First), len(after))
	return append(append([]model.Value(nil), after[:keep]...), h.Of(loss)...)
}

// find returns where the values lie in a log, -1 if nowhere.
func find(held, values []model.Value) model.Offset {
	for o := range held {
		if len(values) > 0 && o+len(values) <= len(held) && slices.Equal(held[o:o+len(values)], values) {
			return model.Offset(o)
		}
	}
	return -1
}
