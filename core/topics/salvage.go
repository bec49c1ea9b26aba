package topics

import (
	"fmt"
	"slices"
	"strings"
)

// Salvage gathers what is left of a catalogue that cannot be replayed: entries with holes between them, and the
// directories of partitions. What it makes of them serves everything that a directory may hold and removes nothing
// but what an entry says is deleted: where entries are lost, a configuration may be an old one, so that retention is
// off until somebody sets it again. Its zero value is ready for use.
type Salvage struct {
	reader      Reader
	in          Entry
	incarnation uint64 // none was given out from here on, as far as is known
	producer    int64
	found       []found // in order of incarnations
}

// found is what is known of an incarnation.
type found struct {
	Topic
	dirs []int32 // partitions that have a directory, sorted
	gone bool
}

// salvageIncarnations are left out between those that are known to be given out and those that are given out
// next, beside one for each entry that is lost.
const salvageIncarnations = 1 << 10

// Entry takes an entry that is left, in the order of the catalogue. An error says why it cannot be read.
func (s *Salvage) Entry(b []byte) error {
	if err := s.reader.Read(b, &s.in); err != nil {
		return err
	}
	e := &s.in
	switch e.Kind {
	case Producers:
		s.producer = max(s.producer, e.Count)
		return nil
	case Snapshot:
		s.producer, s.incarnation = max(s.producer, e.Count), max(s.incarnation, e.Incarnation)
		for i := range s.found { // what it leaves out is gone
			s.found[i].gone = true
		}
		for i := range e.Topics {
			t := s.of(e.Topics[i].Incarnation)
			config := append(t.Config[:0], e.Topics[i].Config...)
			t.Topic, t.gone = e.Topics[i], false
			t.Config = config
		}
		return nil
	}
	t := s.of(e.Incarnation)
	t.Name = e.Topic
	switch e.Kind {
	case Begin, Partitions:
		t.Partitions = max(t.Partitions, int32(e.Count))
	case Create:
		t.Partitions = max(t.Partitions, int32(e.Count))
		t.ID, t.Time, t.Status = e.ID, e.Time, max(t.Status, Live)
		t.Config = append(t.Config[:0], e.Config...)
	case Configure:
		t.Config = append(t.Config[:0], e.Config...)
	case Delete:
		t.Status = Dead
	case Gone:
		t.gone = true
	}
	return nil
}

// Dir takes a directory of a partition. All entries are taken before.
func (s *Salvage) Dir(d Dir) {
	t := s.of(d.Incarnation)
	if t.Name == "" {
		t.Name = d.Topic
	}
	if i, ok := slices.BinarySearch(t.dirs, d.Partition); !ok && t.Name == d.Topic && d.Partition >= 0 {
		t.dirs = slices.Insert(t.dirs, i, d.Partition)
	}
}

// partitions returns how many partitions an incarnation has: as many as an entry says, and those that come next
// without a hole. Directories beyond are somebody's mistake, or what a growth left that came to nothing.
func (f *found) partitions() (n int32, beyond bool) {
	n = f.Partitions
	for _, d := range f.dirs {
		if d == n && n < PartitionsMax {
			n++
		}
	}
	return n, len(f.dirs) > 0 && f.dirs[len(f.dirs)-1] >= n
}

// of returns what is known of an incarnation.
func (s *Salvage) of(incarnation uint64) *found {
	s.incarnation = max(s.incarnation, incarnation+1)
	i, ok := slices.BinarySearchFunc(s.found, incarnation, func(f found, n uint64) int {
		switch {
		case f.Incarnation < n:
			return -1
		case f.Incarnation > n:
			return 1
		}
		return 0
	})
	if !ok {
		s.found = slices.Insert(s.found, i, found{Topic: Topic{Incarnation: incarnation}})
	}
	return &s.found[i]
}

// Snapshot makes e the entry that a catalogue of what is left begins with, and says what a person should know. lost
// is how many entries could not be read. Producer ids are given out from producer on, which no earlier call was
// given, if none are known above it. id makes identities for topics of which none is known.
func (s *Salvage) Snapshot(e *Entry, lost, producer int64, id func() ID) (notes []string) {
	*e = Entry{Kind: Snapshot, Incarnation: s.incarnation + salvageIncarnations + uint64(lost), Count: max(s.producer, producer)}
	for i := range s.found {
		f := &s.found[i]
		t := f.Topic
		var beyond bool
		t.Partitions, beyond = f.partitions()
		t.Growing = 0
		known := t.Status == Live
		if t.Status == Begun && len(f.dirs) > 0 { // the entry that made it may be lost
			t.Status = Live
		}
		place := fmt.Sprintf("topic %s, incarnation %d", t.Name, t.Incarnation)
		switch {
		case f.gone && len(f.dirs) == 0, t.Partitions == 0: // of the second kind there is a name, if anything
			continue
		case t.Status == Begun: // it was never there, or its directory is not now and may come back
			notes = append(notes, place+": it has no directory, and is left out")
			continue
		case f.gone:
			notes = append(notes, place+": it was removed, and its directory is there: it is left alone")
			continue
		case t.Status == Live && s.followed(i):
			notes = append(notes, place+": a later one has the name, so it was deleted: its directory is left alone")
			continue
		case t.Status == Live && !known:
			t.ID = id()
			notes = append(notes, place+": its identity and configuration are lost: it gets another identity")
		}
		if beyond {
			notes = append(notes, fmt.Sprintf("%s: directories of partitions above %d are left alone", place, t.Partitions-1))
		}
		if t.Status == Live && len(f.dirs) == 0 {
			notes = append(notes, place+": no directory of it is there; if it was deleted, delete it again")
		}
		if t.Status == Live && lost > 0 {
			t.Config, notes = keepAll(t.Config, place, notes)
		}
		e.Topics = append(e.Topics, t)
	}
	return notes
}

// keepAll switches retention off.
func keepAll(config []Pair, place string, notes []string) ([]Pair, []string) {
	all := []Pair{{LocalRetentionBytes, "-2"}, {LocalRetentionMs, "-2"}, {RetentionBytes, "-1"}, {RetentionMs, "-1"}}
	was := ""
	for _, c := range config {
		i, ok := slices.BinarySearchFunc(all, c, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
		switch {
		case !ok:
			all = slices.Insert(all, i, c)
		case c != all[i]:
			was += " " + c.Name + "=" + c.Value
		}
	}
	if was == "" {
		was = " nothing of its own"
	}
	return all, append(notes, place+": its configuration may be an old one: retention is off until it is set again; what is known of it:"+was)
}

// followed reports whether a later incarnation that exists has the name of one.
func (s *Salvage) followed(i int) bool {
	for _, f := range s.found[i+1:] {
		if f.Name == s.found[i].Name && !f.gone && (f.Status == Live || f.Status == Begun && len(f.dirs) > 0) {
			return true
		}
	}
	return false
}
