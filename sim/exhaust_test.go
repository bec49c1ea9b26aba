package sim

import (
	"strings"
	"testing"
)

// met is a Seen without limits.
type met [StateKinds]map[uint64]bool

func newMet() *met { return &met{{}, {}, {}, {}} }

func (m *met) New(kind StateKind, state uint64) bool {
	if m[kind][state] {
		return false
	}
	m[kind][state] = true
	return true
}

func (m *met) Stop() bool { return false }

// One operation, all crashes: nothing is found; and each of them is a state of its own.
func TestExhaustOne(t *testing.T) {
	seen := newMet()
	x := NewExplorer(seen)
	scope := Scope{1}
	for i := range scope.Len() {
		c := scope.Case(i)
		if f := x.Explore(c); f != nil {
			t.Fatalf("%s: %s: %s", f.Case.String(), f.Check, f.Text)
		}
	}
	n := &x.Counts
	for kind := range StateKinds {
		if n.States[kind] != int64(len(seen[kind])) {
			t.Errorf("%d states of kind %d, met %d", n.States[kind], kind, len(seen[kind]))
		}
	}
	if n.States[0] < 500 || n.States[1] < 20_000 || n.Points[0] < 400 || n.Images[0] < n.States[0] {
		t.Errorf("too little was gone through: %+v", *n)
	}
}

// In a scope every sequence comes once, shorter ones first.
func TestScope(t *testing.T) {
	s := Scope{3}
	met := map[string]bool{}
	length := 0
	for i := range s.Len() {
		c := s.Case(i)
		if c.Len < length || c.Len > 3 || met[c.String()] {
			t.Fatalf("case %d is %s", i, c.String())
		}
		length = c.Len
		met[c.String()] = true
	}
	if want := len(SmallConfigs) * (1 + SmallOps + SmallOps*SmallOps + SmallOps*SmallOps*SmallOps); len(met) != want {
		t.Errorf("%d cases, want %d", len(met), want)
	}
}

// cheat is a Seen that tells the checker of an ack which nobody gave, as if the log had acked before
// its sync.
type cheat struct {
	*met
	x *Explorer
}

func (c *cheat) New(kind StateKind, state uint64) bool {
	if k := c.x.worlds[0].check; kind == CrashedOnce && k.End() == 1 && k.ProvenEnd() == 0 {
		k.Synced(0, 1)
		k.Acked(0, 1)
	}
	return c.met.New(kind, state)
}

// A promise that the log does not keep is found, with the case that shows it.
func TestExhaustFinds(t *testing.T) {
	c := &cheat{met: newMet()}
	c.x = NewExplorer(c)
	f := c.x.Explore(Case{Len: 1})
	if f == nil || f.Check != "K1" || f.Depth == 0 {
		t.Fatalf("found %+v, want K1", f)
	}
	again, err := ParseCase(f.Case.String())
	if err != nil || again != f.Case {
		t.Errorf("%s comes back as %s, %v", f.Case.String(), again.String(), err)
	}
}

// A case runs again with the crashes that it names, and says what was lost; one that has no such
// point says so.
func TestExhaustReplay(t *testing.T) {
	for text, want := range map[string][]string{
		"on_commit:": {"process starts", "log is ready"},
		"none:large,batch@rest=0x0@5=kill": {
			"> large", "> batch", "CRASH at rest: power loss; lost: sector", "CRASH before call 5: kill", "append 4: acked",
		},
		"on_commit:large@6.2=kill@rest=0xffffffff":       {"call 6: write", "CRASH inside call 6", "behind 2 sectors: kill", "life 11", "nothing was in doubt", "life 21", "log is closed"},
		"on_commit:append@rest=kill,append@3.after=kill": {"append 1: acked", "> append", "call 3: write", "CRASH after call 3, write"},
		"on_commit:append@3.after=0xff":                  {"everything made it"},
		"on_commit:append@3.after=0x0":                   {"CRASH after call 3, write", "power loss"},
	} {
		c, err := ParseCase(text)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if f, ok := NewExplorer(nil).Replay(c, &out); f != nil || !ok {
			t.Errorf("%s: found %+v, ok %v\n%s", text, f, ok, out.String())
		}
		rest := out.String()
		for _, w := range want {
			var ok bool
			if _, rest, ok = strings.Cut(rest, w); !ok {
				t.Errorf("%s: no %q in its place in\n%s", text, w, out.String())
			}
		}
	}
	for _, text := range []string{"on_commit:append@99999=kill", "on_commit:append@1.7=kill", "none:roll@1.after=kill", "none:append@rest=kill@4000=kill"} {
		c, err := ParseCase(text)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := NewExplorer(nil).Replay(c, nil); ok || f != nil {
			t.Errorf("%s: found %v, ok %v, want no such point", text, f, ok)
		}
	}
}

func TestParseCaseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "configuration",
		"always:append":        "expected on_commit, periodic, none; found \"always\"",
		"none:append,appendix": "operation 2",
		"none:,":               "operation 1",
		"none:roll,roll,roll,roll,roll,roll,roll": "at most 6",
		"none:@1=kill@2=kill@3=kill":              "at most 2",
		"none:@0=kill":                            "crash 1",
		"none:@1=kill@1.0=kill":                   "crash 2",
		"none:@1":                                 "crash 1",
		"none:@1=0xfffffffffffffffff":             "crash 1",
		"none:@1.-1=kill":                         "crash 1",
		"none:@99999999999999999999=kill":         "crash 1",
	} {
		if c, err := ParseCase(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want an error with %q", text, c.String(), err, want)
		}
	}
}

// The same cases a second time, with what was met forgotten, allocate nothing.
func TestExploreAllocatesNothing(t *testing.T) {
	seen := newMet()
	x := NewExplorer(seen)
	work := func() {
		for _, set := range seen {
			clear(set)
		}
		if f := x.Explore(Case{Len: 2, Ops: [SmallOpsMax]SmallOp{SmallBatch, SmallReopen}}); f != nil {
			t.Fatal(f.Text)
		}
	}
	work()
	if n := testing.AllocsPerRun(2, work); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
