package topics

import (
	"errors"
	"strings"
	"testing"

	"varve/core"
)

// opened replays a catalogue with one topic, incarnation 1 with two partitions, beside these directories.
func opened(t *testing.T, dirs ...Dir) *Machine {
	t.Helper()
	m := &Machine{}
	m.Begin(DefaultConfig())
	load := m.Next().(*Load)
	load.Phase, load.End = core.Ready, 2
	m.Complete(load, nil)
	read := m.Next()
	for i, e := range []Entry{
		{Kind: Begin, Topic: "a", Incarnation: 1, Count: 2},
		{Kind: Create, Topic: "a", Incarnation: 1, Count: 2},
	} {
		if err := m.Replay(int64(i), AppendEntry(nil, &e)); err != nil {
			t.Fatal(err)
		}
	}
	m.Complete(read, nil)
	list := m.Next().(*List)
	list.Dirs = append(list.Dirs, Dir{"a", 1, 0}, Dir{"a", 1, 1})
	list.Dirs = append(list.Dirs, dirs...)
	m.Complete(list, nil)
	return m
}

// Directories that the catalogue has not given out are another catalogue's: nothing is changed.
func TestDirectoriesOfAnotherCatalogue(t *testing.T) {
	m := opened(t, Dir{"b", 2, 0})
	var unknown *UnknownDirError
	if m.Phase() != Failed || !errors.As(m.Err(), &unknown) || !m.Marks().Has(MarkRefused) {
		t.Errorf("phase %v, error %v: want an *UnknownDirError", m.Phase(), m.Err())
	}
	if e := m.Next(); e != nil {
		t.Errorf("it goes on with %T", e)
	}
}

// Directories in the place of partitions that no incarnation has are left alone, and told.
func TestDirectoriesThatNobodyHas(t *testing.T) {
	for _, d := range []Dir{{"b", 1, 0}, {"a", 1, 2}} {
		m := opened(t, d)
		if m.Phase() != Opening || len(m.Others()) != 1 || m.Others()[0] != d.String() || !m.Marks().Has(MarkUnlisted) {
			t.Errorf("%v: phase %v, others %q", d, m.Phase(), m.Others())
		}
		for e := m.Next(); e != nil; e = m.Next() {
			if x, ok := e.(*Open); !ok || x.Topic != "a" || x.Partition > 1 {
				t.Errorf("%v: it goes on with %+v", d, e)
			}
		}
	}
}

// TestCatalogueThatIsNotReady: a catalogue that may hold more than it shows decides nothing.
func TestCatalogueThatIsNotReady(t *testing.T) {
	begin := string(AppendEntry(nil, &Entry{Kind: Begin, Topic: "a", Incarnation: 1, Count: 1}))
	for _, x := range []struct {
		phase core.Phase
		end   int64
		want  string
	}{
		{core.Recovering, 1, "is recovering: its recovery needs free space"},
		{core.Recovering, 2, "is recovering"},
		{core.Poisoned, 1, "is poisoned"},
		{core.Ready, 2, "ends at entry 2 and shows those below 1 alone"},
	} {
		m := &Machine{}
		m.Begin(testConfig)
		load := m.Next().(*Load)
		load.Phase, load.End = x.phase, x.end
		m.Complete(load, nil)
		if e := m.Next(); e != nil {
			must(t, m.Replay(0, []byte(begin)))
			m.Complete(e, nil)
		}
		if m.Phase() != Failed || !strings.Contains(m.Err().Error(), x.want) || m.Next() != nil {
			t.Errorf("%+v: %s: %v", x, m.Phase(), m.Err())
		}
	}
}

// TestReloadThatIsNotReady: a node that is open goes on with what it knows and tries again.
func TestReloadThatIsNotReady(t *testing.T) {
	w := newWorld(testConfig)
	c := newClient(w)
	w.settle(first)
	c.create("a", 1)
	w.settle(first)
	w.fate = func(e Effect) fate {
		switch e.(type) {
		case *Append:
			return poisoned
		case *Load:
			return broken
		}
		return carriedOut
	}
	c.create("b", 1)
	w.settle(first)
	var unready *UnreadyError
	if w.m.Phase() != Down || !errors.As(w.m.Err(), &unready) || !w.m.Marks().Has(MarkUnready) {
		t.Errorf("%s: %v", w.m.Phase(), w.m.Err())
	}
	w.rest()
	must(t, w.err)
}
