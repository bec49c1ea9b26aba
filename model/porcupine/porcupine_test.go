package porcupine

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"varve/model"
	"varve/model/ideal"
	"varve/sim"
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

// histories is how many histories TestHistoriesAgree judges: VARVE_HISTORIES, the same ones from the
// first on.
func histories(t *testing.T) int {
	text := os.Getenv("VARVE_HISTORIES")
	if text == "" {
		return 4000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("VARVE_HISTORIES = %q: want a number of histories", text)
	}
	return n
}

// callsMin and callsMax bound the histories that are judged: shorter ones show little, and porcupine
// searches.
const callsMin, callsMax = 50, 200

// tally counts verdicts.
type tally struct{ legal, illegal int }

// TestHistoriesAgree judges histories of the ideal log and of the simulator, as they were played and
// with one thing changed, by the direct check and by porcupine.
func TestHistoriesAgree(t *testing.T) {
	const asPlayed = 3 // of asPlayed + len(mutations)
	want := histories(t)
	var p player
	sources := [...]struct {
		name string
		play func(t *testing.T, seed uint64) bool
		of   []tally
		n    int
	}{{name: "ideal", play: p.ideal}, {name: "simulator", play: p.simulate}}
	for i := range sources {
		sources[i].of = make([]tally, len(mutations)+1)
	}
	calls, losses, timeouts := 0, 0, 0
	for seed, judged := uint64(0), 0; judged < want; seed++ {
		kinds := uint64(asPlayed + len(mutations))
		from := &sources[seed/kinds%2]
		if !from.play(t, seed) || len(p.h.Calls) < callsMin || len(p.h.Calls) > callsMax {
			continue
		}
		what, at := "as played", 0
		if k := int(seed % kinds); k >= asPlayed {
			at = 1 + k - asPlayed
			what = mutations[at-1].name
			if !mutations[at-1].do(&p.h, drawer(seed)) {
				continue
			}
		}
		judged++
		from.n++
		calls += len(p.h.Calls)
		losses += lossesOf(&p.h)
		direct := p.h.Judge()
		switch Check(&p.h, timeout) {
		case porcupine.Unknown:
			timeouts++
			t.Errorf("seed %d %s %s: porcupine timed out after %v: the set-up is wrong", seed, from.name, what, timeout)
		case porcupine.Ok:
			from.of[at].legal++
			if direct != nil {
				t.Fatalf("seed %d %s %s: porcupine finds an order, the direct check says: %v", seed, from.name, what, direct)
			}
		default:
			from.of[at].illegal++
			if direct == nil || at == 0 {
				t.Fatalf("seed %d %s %s: porcupine finds no order, the direct check: %v", seed, from.name, what, direct)
			}
		}
	}
	for at := range len(mutations) + 1 {
		name := "as played"
		if at > 0 {
			name = mutations[at-1].name
		}
		ideal, real := sources[0].of[at], sources[1].of[at]
		t.Logf("%-50s ideal %5d illegal, %5d legal; simulator %5d illegal, %5d legal", name, ideal.illegal, ideal.legal, real.illegal, real.legal)
		if want >= 4000 && at > 0 && ideal.illegal+real.illegal == 0 && name != "drop an ack" {
			t.Errorf("%s: never illegal, so it shows nothing", name)
		}
	}
	t.Logf("%d histories (%d of the ideal log, %d of the simulator), %d calls, %d crashes that lost records, %d time-outs: no disagreement",
		want, sources[0].n, sources[1].n, calls, losses, timeouts)
	if want >= 4000 && losses == 0 {
		t.Error("no crash lost a record: the sample is off")
	}
}

// player plays a run into h.
type player struct {
	log     ideal.Log
	check   model.Checker
	h       model.History
	world   *sim.World
	planned sim.Schedule
}

func (p *player) ideal(t *testing.T, seed uint64) bool {
	record(&p.log, &p.check, &p.h, seed)
	if v := p.check.Violation(); v != nil {
		t.Fatalf("seed %d: %v", seed, v)
	}
	return true
}

// simulate runs a seed of the simulator: the real log, over a disk that fails. A disk that damages
// what was proven is left out, because then records may go without a client doing anything.
func (p *player) simulate(t *testing.T, seed uint64) bool {
	if p.world == nil {
		p.world = sim.NewWorld()
		p.world.Record = true
	}
	sim.Expand(&p.planned, seed, 50+int(seed%60))
	if p.planned.Header.Damaging() {
		return false
	}
	if r := p.world.Run(&p.planned); r.Violation != "" {
		t.Fatalf("seed %d: %s", seed, r.Violation)
	}
	p.world.History(&p.h)
	return unique(&p.h)
}

// unique reports whether no batch was appended twice, as one of a producer that the log has forgotten
// is: both checks tell appends apart by their values.
func unique(h *model.History) bool {
	seen := map[model.Value]bool{}
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Kind != model.CallAppend {
			continue
		}
		if v := h.Of(c)[0]; seen[v] {
			return false
		} else {
			seen[v] = true
		}
	}
	return true
}

// drawer draws numbers from a seed.
func drawer(seed uint64) draw {
	return func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed >> 33 % uint64(n))
	}
}

func lossesOf(h *model.History) (n int) {
	for i := range h.Calls {
		if h.Calls[i].Kind == model.CallLose && h.Calls[i].Count > 0 {
			n++
		}
	}
	return n
}

// The picture is one page that loads nothing, whether there is an order or not.
func TestVisualize(t *testing.T) {
	var p player
	p.ideal(t, 5)
	for _, want := range []porcupine.CheckResult{porcupine.Ok, porcupine.Illegal} {
		var page bytes.Buffer
		if got, err := Visualize(&page, &p.h, timeout); err != nil || got != want {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
		for _, part := range []string{"<html", "append -\\u003e [0, ", "</html>"} {
			if !strings.Contains(page.String(), part) {
				t.Errorf("no %q in a page of %d bytes", part, page.Len())
			}
		}
		for _, part := range []string{"src=", "@import", "url(", "fetch("} {
			if strings.Contains(page.String(), part) {
				t.Errorf("the page loads something: %q", part)
			}
		}
		p.h.Final = append(p.h.Final, model.MakeValue(1<<20, 0))
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
