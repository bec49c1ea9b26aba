package topics

import (
	"errors"
	"fmt"
	"slices"

	"varve/core"
)

// fate is what becomes of one effect.
type fate uint8

const (
	carriedOut  fate = iota
	crashBefore      // the process dies, nothing has happened
	crashAfter       // the process dies, it has happened
	refused          // an error, nothing has happened
	broken           // an error, part of it has happened
	poisoned         // of Append: an error, nothing has happened, and the catalogue is dead
	lost             // of Append: nobody knows; it has not happened
	doubtful         // of Append: nobody knows; it has happened
	fateCount
)

var errTest = errors.New("test: it failed")

// world is a disk, a catalogue, and the driver of a machine over them.
type world struct {
	m       Machine
	cfg     Config
	entries []string // of the catalogue, all of them
	start   int64
	dead    bool              // the catalogue takes no entries
	shown   int64             // entries that it shows
	dirs    map[Dir]bool      // of partitions
	whole   map[string]uint64 // name/incarnation of directories of incarnations
	open    map[Dir]bool      // logs that are open in this life
	begun   map[uint64]bool   // incarnations that were ever begun

	flight  []Effect
	waiting map[Ticket]func(Outcome)
	fate    func(e Effect) fate
	crashed bool
	err     error // a rule was broken
}

func newWorld(cfg Config) *world {
	w := &world{cfg: cfg, dirs: map[Dir]bool{}, whole: map[string]uint64{}, begun: map[uint64]bool{}}
	w.fate = func(Effect) fate { return carriedOut }
	w.life()
	return w
}

// life begins another life of the process.
func (w *world) life() {
	w.flight, w.crashed, w.dead = w.flight[:0], false, false
	w.open, w.waiting = map[Dir]bool{}, map[Ticket]func(Outcome){}
	w.m.Begin(w.cfg)
}

func (w *world) wrong(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// start takes the effects that are there.
func (w *world) startAll() {
	for e := w.m.Next(); e != nil; e = w.m.Next() {
		w.flight = append(w.flight, e)
	}
	for o, ok := w.m.NextOutcome(); ok; o, ok = w.m.NextOutcome() {
		tell := w.waiting[o.Ticket]
		if tell == nil {
			w.wrong("a second outcome of ticket %d", o.Ticket)
			continue
		}
		delete(w.waiting, o.Ticket)
		tell(o)
	}
}

// step carries out one effect that is in flight: pick chooses which. It reports false if there is none.
func (w *world) step(pick func(n int) int) bool {
	w.startAll()
	if len(w.flight) == 0 || w.crashed || w.err != nil {
		return false
	}
	i := pick(len(w.flight))
	e := w.flight[i]
	w.flight = slices.Delete(w.flight, i, i+1)
	f := w.fate(e)
	if _, ok := e.(*Append); !ok && f >= poisoned {
		f = refused
	}
	switch f {
	case crashBefore:
		w.crashed = true
		return false
	case refused, broken, poisoned, lost:
		if l, ok := e.(*Load); ok && f == broken { // it is recovered by half
			w.shown = (w.start + int64(len(w.entries))) / 2
			l.Phase, l.Start, l.End = core.Recovering, w.start, w.shown
			w.m.Complete(e, nil)
			break
		}
		if f == broken {
			w.part(e)
		}
		if a, ok := e.(*Append); ok {
			a.Unknown, a.Dead = f == lost, f != refused && f != broken
			w.dead = w.dead || a.Dead
		}
		w.m.Complete(e, errTest)
	default:
		err := w.carryOut(e)
		if f == crashAfter {
			w.crashed = true
			return false
		}
		if a, ok := e.(*Append); ok && f == doubtful && err == nil {
			a.Unknown, a.Dead, w.dead = true, true, true
			err = errTest
		}
		w.m.Complete(e, err)
	}
	w.startAll()
	return true
}

// settle carries out effects until there are none.
func (w *world) settle(pick func(n int) int) {
	for w.step(pick) {
	}
}

func (w *world) carryOut(e Effect) error {
	switch e := e.(type) {
	case *Load:
		w.dead = false
		w.shown = int64(len(w.entries))
		e.Phase, e.Start, e.End = core.Ready, w.start, w.shown
	case *Read:
		for i := w.start; i < w.shown; i++ {
			if w.m.Replay(i, []byte(w.entries[i])) != nil {
				break
			}
		}
	case *List:
		for d := range w.dirs {
			e.Dirs = append(e.Dirs, d)
		}
		for key, inc := range w.whole {
			var name string
			_, _ = fmt.Sscanf(key, "%s %d", &name, &inc)
			e.Dirs = append(e.Dirs, Dir{name, inc, -1})
		}
	case *Append:
		if w.dead {
			e.Dead = true
			return errTest
		}
		e.Offset = int64(len(w.entries))
		w.entries = append(w.entries, string(e.Entry))
		w.seen(e.Entry)
	case *Trim:
		w.start = max(w.start, e.Before)
	case *Open:
		return w.openLog(e)
	case *Remove:
		w.remove(e, e.From)
	}
	return nil
}

// seen checks what an entry gives out.
func (w *world) seen(b []byte) {
	var r Reader
	var e Entry
	if err := r.Read(b, &e); err != nil {
		w.wrong("entry %s: %v", b, err)
	}
	if e.Kind == Begin {
		if w.begun[e.Incarnation] {
			w.wrong("incarnation %d is given out twice", e.Incarnation)
		}
		w.begun[e.Incarnation] = true
	}
}

func (w *world) openLog(e *Open) error {
	d := Dir{e.Topic, e.Incarnation, e.Partition}
	switch {
	case !w.begun[e.Incarnation]:
		w.wrong("%s is opened and was never begun", d)
	case e.Create && w.dirs[d]:
		w.wrong("%s is made and there already", d)
	case !e.Create && !w.dirs[d]:
		return errTest
	}
	w.dirs[d], w.open[d] = true, true
	w.whole[fmt.Sprintf("%s %d", e.Topic, e.Incarnation)] = e.Incarnation
	return nil
}

// remove removes partitions from one on.
func (w *world) remove(e *Remove, from int32) {
	t := w.m.State().Find(e.Incarnation)
	if t == nil || t.Status == Live && (e.Whole || e.From < t.Partitions) {
		w.wrong("%s/%d [%d, %d) is removed and exists", e.Topic, e.Incarnation, e.From, e.To)
	}
	for _, f := range w.flight {
		if o, ok := f.(*Open); ok && o.Incarnation == e.Incarnation && o.Partition >= e.From {
			w.wrong("%s/%d is removed and opened at once", e.Topic, e.Incarnation)
		}
	}
	for i := from; i < e.To; i++ {
		delete(w.dirs, Dir{e.Topic, e.Incarnation, i})
		delete(w.open, Dir{e.Topic, e.Incarnation, i})
	}
	if e.Whole && from == e.From {
		delete(w.whole, fmt.Sprintf("%s %d", e.Topic, e.Incarnation))
	}
}

// part carries out a part of an effect.
func (w *world) part(e Effect) {
	switch e := e.(type) {
	case *Open:
		if e.Create {
			_ = w.openLog(e)
		}
	case *Remove:
		w.remove(e, e.From+1)
	}
}

// request notes who waits for an outcome.
func (w *world) request(t Ticket, err error, tell func(Outcome)) {
	if err != nil {
		tell(Outcome{Err: err})
		return
	}
	w.waiting[t] = tell
}

// crash ends the life: whoever waits learns nothing.
func (w *world) crash() {
	for _, tell := range w.waiting {
		tell(Outcome{Err: ErrUnknown})
	}
	w.life()
}

func first(int) int { return 0 }

// rest brings the world to where nothing is left to do, after one more life without faults, and checks it.
func (w *world) rest() {
	w.fate = func(Effect) fate { return carriedOut }
	w.crash()
	for range 2 {
		w.settle(first)
		w.m.Retry()
	}
	w.settle(first)
	w.tidy()
}

// tidy checks that everything that exists is served, and nothing else is left.
func (w *world) tidy() {
	if w.m.Phase() != Ready {
		w.wrong("the machine is %s: %v", w.m.Phase(), w.m.Err())
		return
	}
	want := map[Dir]bool{}
	wholes := 0
	for _, t := range w.m.State().Incarnations {
		if t.Status != Live || t.Growing != 0 {
			w.wrong("incarnation %d of %s is %s, growing to %d", t.Incarnation, t.Name, t.Status, t.Growing)
		}
		wholes++
		for i := range t.Partitions {
			d := Dir{t.Name, t.Incarnation, i}
			want[d] = true
			if !w.dirs[d] || !w.open[d] {
				w.wrong("%s exists and is not served", d)
			}
		}
	}
	for d := range w.dirs {
		if !want[d] {
			w.wrong("%s is left over", d)
		}
	}
	if len(w.whole) != wholes {
		w.wrong("directories of incarnations: %v", w.whole)
	}
}
