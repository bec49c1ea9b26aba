package topics

import (
	"errors"
	"testing"
)

// opened replays a catalogue with one topic, incarnation 1 with two partitions, beside these directories.
func opened(t *testing.T, dirs ...Dir) *Machine {
	t.Helper()
	m := &Machine{}
	m.Begin(DefaultConfig())
	load := m.Next()
	for i, e := range []Entry{
		{Kind: Begin, Topic: "a", Incarnation: 1, Count: 2},
		{Kind: Create, Topic: "a", Incarnation: 1, Count: 2},
	} {
		if err := m.Replay(int64(i), AppendEntry(nil, &e)); err != nil {
			t.Fatal(err)
		}
	}
	m.Complete(load, nil)
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
