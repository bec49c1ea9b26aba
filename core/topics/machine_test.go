package topics

import (
	"errors"
	"strings"
	"testing"

	"varve/core"
)

var testConfig = Config{PartitionsMax: 100, InFlightMax: 4, RequestsMax: 100, ProducersBlock: 10, SnapshotEntries: 1000}

// TestRefusesUnknown: directories that the catalogue cannot know are refused and left alone, whether it is
// new, or an older copy; what only an old incarnation can have left is reported.
func TestRefusesUnknown(t *testing.T) {
	w := newWorld(testConfig)
	c := newClient(w)
	w.settle(first)
	c.create("a", 1)
	w.settle(first)
	older := len(w.entries)
	c.create("b", 2)
	w.settle(first)
	dirs := len(w.dirs)
	for _, n := range []int{0, older} {
		kept := w.entries
		w.entries = w.entries[:n]
		w.crash()
		w.settle(first)
		var unknown *UnknownDirError
		if !errors.As(w.m.Err(), &unknown) || w.m.Phase() != Failed || !w.m.Marks().Has(MarkRefused) {
			t.Fatalf("with %d entries the machine is %s: %v", n, w.m.Phase(), w.m.Err())
		}
		if len(w.dirs) != dirs || len(w.entries) != n {
			t.Fatalf("something was changed")
		}
		w.entries = kept
	}
	w.crash()
	w.settle(first)
	c.remove("b")
	w.settle(first)
	stray := Dir{"b", 2, 1}
	w.dirs[stray] = true
	w.crash()
	w.settle(first)
	if w.m.Phase() != Ready || !w.m.Marks().Has(MarkUnlisted) || len(w.m.Others()) != 1 || w.m.Others()[0] != "topics/b/2/1" || !w.dirs[stray] {
		t.Fatalf("%s, others %v", w.m.Phase(), w.m.Others())
	}
}

// TestOfflineLater: a partition that cannot be opened is offline, and Retry opens it once it can be.
func TestOfflineLater(t *testing.T) {
	w := newWorld(testConfig)
	c := newClient(w)
	w.settle(first)
	c.create("a", 3)
	w.settle(first)
	d := Dir{"a", 1, 1}
	delete(w.dirs, d)
	w.crash()
	w.settle(first)
	if w.m.Phase() != Ready || w.open[d] || !w.open[Dir{"a", 1, 2}] {
		t.Fatalf("%s, open %v", w.m.Phase(), w.open)
	}
	w.dirs[d] = true
	w.m.Retry()
	w.settle(first)
	if !w.open[d] || !w.m.Marks().Has(MarkOpenedLater) {
		t.Fatalf("open %v", w.open)
	}
}

// TestSenselessCatalogue: entries that cannot follow those before them are refused with their place.
func TestSenselessCatalogue(t *testing.T) {
	begin := `{"v":1,"type":"begin","topic":"a","incarnation":1,"partitions":2}`
	create := `{"v":1,"type":"create","topic":"a","id":"0f0102030405060708090a0b0c0d0eff","incarnation":1,"partitions":2,"time":0,"config":{}}`
	for _, x := range []struct {
		want    string
		entries []string
	}{
		{"entry 0: incarnation 2 begins, 1 is the next", []string{strings.Replace(begin, `:1,"p`, `:2,"p`, 1)}},
		{"entry 0: create of incarnation 1, which is not there", []string{create}},
		{"entry 2: create of incarnation 1, which is live", []string{begin, create, create}},
		{"entry 1: create of 3 partitions, 2 were begun", []string{begin, strings.Replace(create, `ns":2`, `ns":3`, 1)}},
		{"entry 1: create of incarnation 1 names topic b", []string{begin, strings.Replace(create, `"a"`, `"b"`, 1)}},
		{"entry 2: gone of incarnation 1, which is live", []string{begin, create, `{"v":1,"type":"gone","topic":"a","incarnation":1}`}},
		{"entry 2: growth to 2 partitions of 2", []string{begin, create, `{"v":1,"type":"grow","topic":"a","incarnation":1,"partitions":2}`}},
		{"entry 2: 3 partitions, 0 were begun", []string{begin, create, `{"v":1,"type":"partitions","topic":"a","incarnation":1,"partitions":3}`}},
		{"entry 1: producer ids go back", []string{`{"v":1,"type":"producers","next":20}`, `{"v":1,"type":"producers","next":10}`}},
		{"entry 2: the snapshot is not what the entries before it amount to", []string{begin, create, `{"v":1,"type":"snapshot","incarnation":2,"producers":0,"topics":[]}`}},
	} {
		w := newWorld(testConfig)
		w.entries = x.entries
		w.settle(first)
		if w.m.Phase() != Failed || !strings.Contains(w.m.Err().Error(), x.want) {
			t.Errorf("%s: %v, want %s", w.m.Phase(), w.m.Err(), x.want)
		}
	}
	w := newWorld(testConfig)
	w.entries, w.start = []string{begin, create}, 1
	w.settle(first)
	if w.m.Phase() != Failed || !strings.Contains(w.m.Err().Error(), "is not a snapshot") {
		t.Errorf("%s: %v", w.m.Phase(), w.m.Err())
	}
}

// TestNoAllocations: a life of topics on a machine that has lived before allocates nothing.
func TestNoAllocations(t *testing.T) {
	var m Machine
	var entries [64][]byte
	config := []Pair{{RetentionMs, "7"}}
	life := func() {
		n := 0
		m.Begin(Config{PartitionsMax: 100, InFlightMax: 4, RequestsMax: 10, ProducersBlock: 1, SnapshotEntries: 6})
		run := func() {
			for e := m.Next(); e != nil; e = m.Next() {
				switch e := e.(type) {
				case *Load:
					e.Phase, e.End = core.Ready, int64(n)
				case *Read:
					for i := range n {
						must(t, m.Replay(int64(i), entries[i]))
					}
				case *Append:
					entries[n] = append(entries[n][:0], e.Entry...)
					e.Offset = int64(n)
					n++
				}
				m.Complete(e, nil)
			}
			for o, ok := m.NextOutcome(); ok; o, ok = m.NextOutcome() {
				must(t, o.Err)
			}
		}
		run()
		for range 3 {
			_, err := m.Create("a", 2, config, ID{1}, 1)
			must(t, err)
			run()
			_, err = m.Grow("a", 3)
			must(t, err)
			run()
			_, err = m.Configure("a", config, config)
			must(t, err)
			_, err = m.Producer()
			must(t, err)
			run()
			_, err = m.Delete("a", 0)
			must(t, err)
			run()
		}
		m.Begin(Config{PartitionsMax: 100, InFlightMax: 4, RequestsMax: 10, ProducersBlock: 1, SnapshotEntries: 100})
		run()
		if m.Phase() != Ready || m.State().NextIncarnation != 4 {
			t.Fatal(m.Phase(), m.Err())
		}
	}
	if n := testing.AllocsPerRun(100, life); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
