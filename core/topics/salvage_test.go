package topics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSalvage: each kind of loss, and what is made of what is left.
func TestSalvage(t *testing.T) {
	create := func(kind Kind, incarnation uint64, name string, n int64) *Entry {
		return &Entry{Kind: kind, Topic: name, Incarnation: incarnation, Count: n, ID: ID{byte(incarnation)}, Time: 5}
	}
	dir := func(name string, incarnation uint64, n int32) Dir {
		return Dir{Topic: name, Incarnation: incarnation, Partition: n}
	}
	for name, x := range map[string]struct {
		entries []*Entry
		dirs    []Dir
		want    string // topics
		notes   string // a part of each
		next    uint64
	}{
		"nothing lost":                    {[]*Entry{create(Begin, 1, "a", 2), create(Create, 1, "a", 2)}, []Dir{dir("a", 1, -1), dir("a", 1, 0), dir("a", 1, 1)}, "a 1 2 live 01", "", 2},
		"its entries":                     {nil, []Dir{dir("a", 7, -1), dir("a", 7, 1), dir("a", 7, 0), dir("a", 7, 3)}, "a 7 2 live ff", "partitions above 1 are left alone", 8},
		"all but the intent":              {[]*Entry{create(Begin, 1, "a", 2)}, []Dir{dir("a", 1, 0)}, "a 1 2 live ff", "another identity", 2},
		"an intent that came to nothing":  {[]*Entry{create(Begin, 1, "a", 2)}, nil, "", "it has no directory", 2},
		"growth":                          {[]*Entry{create(Create, 1, "a", 1)}, []Dir{dir("a", 1, 0), dir("a", 1, 1)}, "a 1 2 live 01", "", 2},
		"a deletion, and the name again":  {[]*Entry{create(Create, 1, "a", 1), create(Create, 2, "a", 1)}, []Dir{dir("a", 1, 0), dir("a", 2, 0)}, "a 2 1 live 02", "a later one has the name", 3},
		"a deletion that is not finished": {[]*Entry{create(Create, 1, "a", 1), create(Delete, 1, "a", 0)}, []Dir{dir("a", 1, 0)}, "a 1 1 dead 01", "", 2},
		"the directory":                   {[]*Entry{create(Create, 1, "a", 1)}, nil, "a 1 1 live 01", "no directory of it", 2},
		"nothing, of one that is gone":    {[]*Entry{create(Create, 1, "a", 1), create(Delete, 1, "a", 0), create(Gone, 1, "a", 0)}, nil, "", "", 2},
		"sense: gone and there":           {[]*Entry{create(Gone, 3, "a", 0)}, []Dir{dir("a", 3, 0)}, "", "its directory is there", 4},
		"what a snapshot leaves out":      {[]*Entry{create(Create, 1, "a", 1), {Kind: Snapshot, Incarnation: 9, Count: 3}}, nil, "", "", 9},
		"of one of another name":          {[]*Entry{create(Create, 1, "a", 1)}, []Dir{dir("b", 1, 5), dir("a", 1, 0)}, "a 1 1 live 01", "", 2},
	} {
		var s Salvage
		for _, e := range x.entries {
			if err := s.Entry(AppendEntry(nil, e)); err != nil {
				t.Fatal(name, err)
			}
		}
		if s.Entry([]byte("{}")) == nil {
			t.Fatal("an entry that makes no sense is taken")
		}
		for _, d := range x.dirs {
			s.Dir(d)
		}
		var e Entry
		notes := s.Snapshot(&e, 7, 1<<40, func() ID { return ID{0xff} })
		var got []string
		for _, f := range e.Topics {
			got = append(got, fmt.Sprintf("%s %d %d %s %02x", f.Name, f.Incarnation, f.Partitions, f.Status, f.ID[0]))
		}
		if strings.Join(got, ", ") != x.want || !strings.Contains(strings.Join(notes, "\n"), x.notes) {
			t.Errorf("%s: %q, %q", name, got, notes)
		}
		if e.Incarnation < x.next+salvageIncarnations+7 || e.Count < 1<<40 {
			t.Errorf("%s: %d, %d are given out next", name, e.Incarnation, e.Count)
		}
		var back Entry
		var state State
		if err := new(Reader).Read(AppendEntry(nil, &e), &back); err != nil || state.Apply(&back) != nil || len(state.Incarnations) != len(e.Topics) {
			t.Errorf("%s: the snapshot is refused: %v", name, err)
		}
	}
	var s Salvage
	for _, e := range []*Entry{create(Create, 1, "a", 1), {Kind: Configure, Topic: "a", Incarnation: 1, Config: []Pair{{"retention.ms", "1000"}, {"segment.bytes", "4096"}}}} {
		if err := s.Entry(AppendEntry(nil, e)); err != nil {
			t.Fatal(err)
		}
	}
	for lost, want := range map[int64]string{
		0: "[{retention.ms 1000} {segment.bytes 4096}]",
		1: "[{local.retention.bytes -2} {local.retention.ms -2} {retention.bytes -1} {retention.ms -1} {segment.bytes 4096}]",
	} {
		var e Entry
		notes := s.Snapshot(&e, lost, 0, nil)
		if got := fmt.Sprint(e.Topics[0].Config); got != want || strings.Contains(fmt.Sprint(notes), "retention is off") != (lost > 0) {
			t.Errorf("%d entries are lost: %s, %q", lost, got, notes)
		}
	}
	if !slices.IsSorted([]Status{Begun, Live, Dead}) { // Entry takes the greater one
		t.Error("statuses")
	}
}
