package porcupine

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"varve/model"
	"varve/model/ideal"
)

const timeout = 5 * time.Second

// record plays a legal run of an ideal log and returns its history, 50-200 calls of clients.
func record(l *ideal.Log, c *model.Checker, h *model.History, seed uint64) {
	c.Record = true
	l.Run(c, seed, ideal.Options{
		Steps: 130 + int(seed%240), Clients: 2 + int(seed%5), Policy: model.Policy(seed % 3),
		Lives: 1 + int(seed/3%4), Trims: seed%2 == 0,
	})
	c.History(h)
}

// both judges a history twice and fails if the two disagree; the answer is whether it is legal.
func both(t interface {
	Fatalf(string, ...any)
}, h *model.History, what string, seed uint64,
) bool {
	direct := h.Judge()
	switch Check(h, timeout) {
	case porcupine.Unknown:
		t.Fatalf("seed %d %s: porcupine timed out after %v: the set-up is wrong", seed, what, timeout)
	case porcupine.Ok:
		if direct != nil {
			t.Fatalf("seed %d %s: porcupine finds an order, the direct check says: %v", seed, what, direct)
		}
		return true
	default:
		if direct == nil {
			t.Fatalf("seed %d %s: porcupine finds no order, the direct check none wrong", seed, what)
		}
	}
	return false
}

type draw func(n int) int

// mutations change one thing in a history; most make it illegal, some do not: both checks must agree
// either way. They report whether there was anything to change.
var mutations = []struct {
	name string
	do   func(h *model.History, draw draw) bool
}{
	{"forget an acked append", func(h *model.History, draw draw) bool {
		c := call(h, draw, isAcked)
		if c == nil || c.End > int64(len(h.Final)) {
			return false
		}
		h.Final = append(h.Final[:c.First], h.Final[c.End:]...)
		return true
	}},
	{"drop an ack", func(h *model.History, draw draw) bool {
		c := call(h, draw, isAcked)
		if c == nil {
			return false
		}
		c.Known, c.Return, c.First, c.End = false, model.Never, 0, 0
		return true
	}},
	{"swap the offsets of two appends", func(h *model.History, draw draw) bool {
		a, b := call(h, draw, isAcked), call(h, draw, isAcked)
		if a == nil || a == b {
			return false
		}
		a.First, b.First = b.First, a.First
		a.End, b.End = a.First+int64(a.Count), b.First+int64(b.Count)
		return true
	}},
	{"swap two appends, in the log and in what was seen", func(h *model.History, draw draw) bool {
		a, b := call(h, draw, isAcked), call(h, draw, isAcked)
		if a == nil || a == b || a.Count != b.Count {
			return false
		}
		va, vb := h.Of(a)[0], h.Of(b)[0]
		exchange := func(vs []model.Value) {
			for i, v := range vs {
				switch v.Op() {
				case va.Op():
					vs[i] = model.MakeValue(vb.Op(), v.Index())
				case vb.Op():
					vs[i] = model.MakeValue(va.Op(), v.Index())
				}
			}
		}
		exchange(h.Final)
		for i := range h.Calls {
			if h.Calls[i].Kind != model.CallAppend {
				exchange(h.Of(&h.Calls[i]))
			}
		}
		a.First, b.First = b.First, a.First
		a.End, b.End = a.First+int64(a.Count), b.First+int64(b.Count)
		return true
	}},
	{"duplicate a record", func(h *model.History, draw draw) bool {
		if len(h.Final) < 2 {
			return false
		}
		h.Final[draw(len(h.Final))] = h.Final[draw(len(h.Final))]
		return true
	}},
	{"append a record twice", func(h *model.History, draw draw) bool {
		if len(h.Final) == 0 {
			return false
		}
		h.Final = append(h.Final, h.Final[draw(len(h.Final))])
		return true
	}},
	{"invent a record", func(h *model.History, _ draw) bool {
		h.Final = append(h.Final, model.MakeValue(1<<20, 0))
		return true
	}},
	{"move a call in time", func(h *model.History, draw draw) bool {
		c := call(h, draw, func(c *model.Call) bool { return c.Kind != model.CallLose && c.Return != model.Never })
		if c == nil {
			return false
		}
		from, to := era(h, c.Begin)
		by := model.Stamp(draw(160) - 80)
		c.Begin, c.Return = max(c.Begin+by, from+1), max(c.Return+by, from+2)
		if c.Begin >= to || c.Return >= to {
			c.Begin, c.Return = to-2, to-1
		}
		return true
	}},
	{"return sooner", func(h *model.History, draw draw) bool {
		c := call(h, draw, func(c *model.Call) bool { return c.Kind != model.CallLose && c.Return != model.Never })
		if c == nil {
			return false
		}
		c.Return = c.Begin + model.Stamp(draw(int(c.Return-c.Begin)+1))
		return true
	}},
	{"call later", func(h *model.History, draw draw) bool {
		c := call(h, draw, func(c *model.Call) bool { return c.Kind != model.CallLose && c.Return != model.Never })
		if c == nil {
			return false
		}
		c.Begin += model.Stamp(draw(int(c.Return-c.Begin) + 1))
		return true
	}},
	{"see another tail", func(h *model.History, draw draw) bool {
		c := call(h, draw, func(c *model.Call) bool { return c.Kind == model.CallTail })
		if c == nil {
			return false
		}
		c.First = max(0, c.First+int64(draw(5)-2))
		c.End = c.First
		return true
	}},
	{"read another record", func(h *model.History, draw draw) bool {
		c := call(h, draw, func(c *model.Call) bool { return c.Kind == model.CallRead })
		if c == nil {
			return false
		}
		h.Of(c)[draw(c.Count)]++
		return true
	}},
	{"lose one more", func(h *model.History, draw draw) bool {
		c := call(h, draw, func(c *model.Call) bool { return c.Kind == model.CallLose && c.Count > 0 })
		if c == nil {
			return false
		}
		c.Count--
		c.ValueAt++
		return true
	}},
}

func isAcked(c *model.Call) bool { return c.Kind == model.CallAppend && c.Known }

func call(h *model.History, draw draw, want func(*model.Call) bool) *model.Call {
	if len(h.Calls) == 0 {
		return nil
	}
	for i, at := 0, draw(len(h.Calls)); i < len(h.Calls); i++ {
		if c := &h.Calls[(at+i)%len(h.Calls)]; want(c) {
			return c
		}
	}
	return nil
}

// era returns the bounds of the life that a stamp lies in: calls do not cross a crash.
func era(h *model.History, s model.Stamp) (from, to model.Stamp) {
	to = 1 << 40
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Kind != model.CallLose {
			continue
		}
		if c.Return <= s {
			from = max(from, c.Return)
		}
		if c.Begin > s {
			to = min(to, c.Begin)
		}
	}
	return from, to
}

func TestLegalHistoriesAgree(t *testing.T) {
	var l ideal.Log
	var c model.Checker
	var h model.History
	calls, losses := 0, 0
	const seeds = 1500
	for seed := range uint64(seeds) {
		record(&l, &c, &h, seed)
		if v := c.Violation(); v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
		if !both(t, &h, "as played", seed) {
			t.Fatalf("seed %d: a legal history is refused: %v", seed, h.Judge())
		}
		calls += len(h.Calls)
		for i := range h.Calls {
			if h.Calls[i].Kind == model.CallLose && h.Calls[i].Count > 0 {
				losses++
			}
		}
	}
	t.Logf("%d histories, %d calls, %d crashes that lost records: no disagreement", seeds, calls, losses)
	if losses == 0 || calls < 50*seeds || calls > 250*seeds {
		t.Errorf("the sample is off: %d calls, %d losses in %d histories", calls, losses, seeds)
	}
}

func TestMutatedHistoriesAgree(t *testing.T) {
	var l ideal.Log
	var c model.Checker
	var h model.History
	for _, m := range mutations {
		legal, illegal := 0, 0
		for seed := range uint64(400) {
			record(&l, &c, &h, seed)
			rand := seed
			if !m.do(&h, func(n int) int {
				rand = rand*6364136223846793005 + 1442695040888963407
				return int(rand >> 33 % uint64(n))
			}) {
				continue
			}
			if both(t, &h, m.name, seed) {
				legal++
			} else {
				illegal++
			}
		}
		t.Logf("%-52s %3d illegal, %3d still legal", m.name, illegal, legal)
		if illegal == 0 && m.name != "drop an ack" {
			t.Errorf("%s: never illegal, so it shows nothing", m.name)
		}
	}
}

// The Checker's own verdict, which it reaches event by event and life by life, is porcupine's, too:
// a log that shows old tails, judged by linearizability alone.
func TestCheckerAgreesOnline(t *testing.T) {
	var l ideal.Log
	var c model.Checker
	var h model.History
	legal, illegal := 0, 0
	for seed := range uint64(400) {
		o := ideal.Options{
			Steps: 15 + int(seed%90), Clients: 3 + int(seed%3), Policy: model.Policy(seed % 3),
			Lives: 1 + int(seed/3%4), Bug: ideal.StaleTail,
		}
		c.Record = true
		for _, k := range model.Checks {
			c.Disable(k)
		}
		l.Run(&c, seed, o)
		c.History(&h)
		played := both(t, &h, "with old tails", seed)
		c.Enable(model.K6)
		l.Run(&c, seed, o)
		if v := c.Violation(); (v == nil) != played {
			t.Fatalf("seed %d: porcupine says legal %v, the checker says %v", seed, played, v)
		}
		if played {
			legal++
		} else {
			illegal++
		}
	}
	t.Logf("%d legal, %d illegal", legal, illegal)
	if legal == 0 || illegal == 0 {
		t.Errorf("the sample is off: %d legal, %d illegal", legal, illegal)
	}
}

// Small histories, drawn freely rather than played, meet orders that no log would produce.
func TestDrawnHistoriesAgree(t *testing.T) {
	legal, illegal := 0, 0
	for range 30 {
		rapid.Check(t, func(t *rapid.T) {
			h := drawHistory(t)
			if both(t, h, "drawn", 0) {
				legal++
			} else {
				illegal++
			}
		})
	}
	t.Logf("%d legal, %d illegal", legal, illegal)
	if legal == 0 || illegal == 0 {
		t.Errorf("the sample is off: %d legal, %d illegal", legal, illegal)
	}
}

func drawHistory(t *rapid.T) *model.History {
	h := &model.History{}
	n := rapid.IntRange(1, 6).Draw(t, "appends")
	interval := func() (begin, end model.Stamp) {
		begin = model.Stamp(rapid.IntRange(1, 30).Draw(t, "begin"))
		return begin, begin + model.Stamp(rapid.IntRange(0, 15).Draw(t, "long"))
	}
	for i := range n {
		begin, end := interval()
		count := rapid.IntRange(1, 2).Draw(t, "records")
		first := len(h.Final)
		for k := range count {
			v := model.MakeValue(model.OpID(i+1), k)
			h.Values, h.Final = append(h.Values, v), append(h.Final, v)
		}
		known := rapid.IntRange(0, 3).Draw(t, "known") > 0
		c := model.Call{
			Kind: model.CallAppend, Client: int32(i), Known: known, Begin: begin, Return: end,
			First: int64(first), End: int64(first + count), ValueAt: first, Count: count,
		}
		if !known {
			c.Return = model.Never
		}
		h.Calls = append(h.Calls, c)
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "looks") {
		begin, end := interval()
		c := model.Call{Kind: model.CallTail, Client: int32(n + i), Begin: begin, Return: end}
		c.First = int64(rapid.IntRange(0, len(h.Final)).Draw(t, "at"))
		c.End = c.First
		if rapid.Bool().Draw(t, "read") && int(c.First) < len(h.Final) {
			c.Kind, c.ValueAt, c.Count = model.CallRead, int(c.First), 1
			c.End++
		}
		h.Calls = append(h.Calls, c)
	}
	return h
}
