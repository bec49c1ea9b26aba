package sim

import (
	"slices"

	"varve/faultfs"
)

// Shrink makes a schedule that fails smaller, in place, and returns how many schedules it tried,
// which is at most tries. fails reports whether a schedule still fails in the same way; it may keep
// nothing of what it is given.
//
// Events go first, in ever smaller groups (delta debugging), then values, then faults and switches;
// all of it again until nothing more can be taken away. Each event draws from a seed of its own, so
// the others do as before. What an event draws matters also for what happens after it, up to the
// next one, and what a power loss leaves depends on what is there; so where events cannot go, they are
// tried with another one drawing otherwise, with one append as large as several, and on a smaller disk
// or with smaller segments. Random faults give way to one that is armed, which explains itself.
//
// Whatever is tried is a schedule that Expand could have drawn, or Parse accepts, and that the world
// judges rightly: see legal. The same schedule and the same answers give the same result.
func Shrink(s *Schedule, tries int, fails func(*Schedule) bool) int {
	x := &shrinker{fails: fails, left: tries}
	copyTo(&x.best, s)
	for x.progress = true; x.progress && x.left > 0; {
		x.progress = false
		x.tail()
		x.fewer()
		x.explain() // what throws no dice from then on needs no other seeds
		x.groups()
		x.explain()
		x.values()
		x.header()
	}
	copyTo(s, &x.best)
	return tries - x.left
}

// shrinker holds the smallest schedule that failed so far.
type shrinker struct {
	fails    func(*Schedule) bool
	left     int // tries
	best     Schedule
	trial    Schedule
	progress bool
}

func copyTo(dst, src *Schedule) {
	dst.Header = src.Header
	dst.Events = append(dst.Events[:0], src.Events...)
}

// try makes a copy of the best schedule, lets edit change it, and keeps it if it fails.
func (x *shrinker) try(edit func(s *Schedule)) bool {
	if x.left <= 0 {
		return false
	}
	t := &x.trial
	copyTo(t, &x.best)
	edit(t)
	if t.Header == x.best.Header && slices.Equal(t.Events, x.best.Events) || !legal(t) {
		return false
	}
	x.left--
	if !x.fails(t) {
		return false
	}
	x.best, x.trial = x.trial, x.best
	x.progress = true
	return true
}

// legal reports whether a schedule keeps what the world relies on when it judges: what may damage
// what was proven, and what may move Start, is announced in the header.
func legal(s *Schedule) bool {
	h := &s.Header
	for i := range h.Config {
		if h.Config[i].Validate() != nil {
			return false
		}
	}
	for i := range s.Events {
		switch e := &s.Events[i]; e.Kind {
		case Trim:
			if !h.On(SwTrim) {
				return false
			}
		case Rot:
			if !h.Faults.Has(faultfs.D7Rot) {
				return false
			}
		case Arm:
			if f := faultfs.Fault(e.A); damage.Has(f) && !h.Faults.Has(f) {
				return false
			}
		}
	}
	return true
}

// tail cuts events off the end: what comes after the failure does not matter.
func (x *shrinker) tail() {
	for step := len(x.best.Events); step > 0; step /= 2 {
		for step <= len(x.best.Events) && x.try(func(s *Schedule) { s.Events = s.Events[:len(s.Events)-step] }) {
		}
	}
}

// groups takes out groups of events, large ones first, then single ones until none can go; then groups
// with another event drawing otherwise; then any two.
func (x *shrinker) groups() {
	for again := true; again; {
		x.fewer()
		again = x.pairs() || x.redrawn()
	}
}

// fewer takes out groups of events, large ones first, then single ones until none can go.
func (x *shrinker) fewer() {
	for size := len(x.best.Events) / 2; size > 1; size /= 2 {
		x.without(size)
	}
	for x.without(1) {
	}
}

// without tries to take out each group of size neighbours, and reports whether one could go.
func (x *shrinker) without(size int) (any bool) {
	for at := len(x.best.Events) - size; at >= 0; at -= size {
		for at+size <= len(x.best.Events) && x.try(func(s *Schedule) { s.Events = slices.Delete(s.Events, at, at+size) }) {
			any = true
		}
	}
	return any
}

// Bounds of what is tried only once a schedule is short.
const (
	shortMax = 60  // events of it
	redraws  = 12  // other seeds for an event
	throws   = 128 // other seeds for an event that throws dice
)

// seeds returns how many other seeds are tried for an event. If it throws dice, one draw of it decides
// whether what happens matters: where rot strikes, what a power loss leaves. Whatever happens until the
// end draws from the last event, and the death that a doom announces from one behind it, any of them.
func (x *shrinker) seeds(i int, neighbour bool) uint64 {
	events := x.best.Events
	doom := slices.IndexFunc(events, func(e Event) bool { return e.Kind == Doom })
	switch k := events[i].Kind; {
	case k == Crash || k == Doom || k == Rot || k == WriteBack || i == len(events)-1:
		return throws
	case doom >= 0 && i > doom:
		return max(redraws, throws/uint64(len(events)-doom))
	case neighbour:
		return redraws
	}
	return 0
}

// redrawn takes out groups of neighbours, with another seed for the event before them, or for one
// that throws dice, or with something else that fills what they filled. A long schedule tries that
// with large groups only.
func (x *shrinker) redrawn() (any bool) {
	smallest := 1
	if n := len(x.best.Events); n > shortMax {
		smallest = n / 8
	}
	for size := len(x.best.Events) / 2; size >= smallest; size /= 2 {
		for at := len(x.best.Events) - size; at >= 0; at -= size {
			sector := int64(x.best.Header.Config[0].SectorBytes) // what a batch fills that is synced alone
			for _, extra := range [...]int64{0, batchBytes, sector} {
				any = x.redraw(at, size, extra) || any
			}
			any = x.room(at, size) || any
		}
	}
	return any
}

// redraw tries that for one group. If extra is not 0, an append beside it makes up for those in it,
// which take so many bytes besides their payloads.
func (x *shrinker) redraw(at, size int, extra int64) bool {
	for i := range x.best.Events {
		if at <= i && i < at+size || at+size > len(x.best.Events) {
			continue
		}
		kind := x.best.Events[i].Kind
		for seed := range x.seeds(i, i == at-1) {
			if x.try(func(s *Schedule) {
				e := &s.Events[i]
				e.Sub = seed
				if kind == Rot && seed&1 != 0 {
					e.A = 1000 // the newest file: with fewer of them, the place names another
				}
				if extra > 0 {
					enlarge(s.Events, at, size, extra)
				}
				s.Events = slices.Delete(s.Events, at, at+size)
			}) {
				return true
			}
		}
	}
	return false
}

// pairs takes out two events at once.
func (x *shrinker) pairs() bool {
	if len(x.best.Events) > shortMax {
		return false
	}
	for b := len(x.best.Events) - 1; b > 0; b-- {
		for a := b - 1; a >= 0; a-- {
			if x.try(func(s *Schedule) { s.Events = slices.Delete(slices.Delete(s.Events, b, b+1), a, a+1) }) {
				return true
			}
		}
	}
	return false
}

// armSkips is how many calls an armed fault lets pass at most.
const armSkips = 12

// explain replaces what happens some time after its event: random faults by one that is armed, in the
// place of the event that switched them on or right before a later one; a death after a number of
// calls by a crash a while after an event.
func (x *shrinker) explain() {
	if len(x.best.Events) > shortMax {
		return
	}
	for i := 0; i < len(x.best.Events); i++ {
		switch x.best.Events[i].Kind {
		case Hurt:
			x.arm(i)
		case Doom:
			x.crash(i)
		}
	}
}

func (x *shrinker) arm(hurt int) {
	h := &x.best.Header
	for before := hurt + 1; before <= len(x.best.Events); before++ {
		e := Event{Kind: Arm, Sub: x.best.Events[before-1].Sub, At: x.best.Events[before-1].At}
		for n := range int64(armSkips) * int64(faultfs.OpCount) * int64(faultfs.FaultCount) {
			e.A, e.B, e.C = n%int64(faultfs.FaultCount), n/int64(faultfs.FaultCount)%int64(faultfs.OpCount), n/int64(faultfs.FaultCount)/int64(faultfs.OpCount)
			op := faultfs.Op(e.B)
			if h.Rates[op] == 0 || !(h.Faults & faultfs.CallFaults(op)).Has(faultfs.Fault(e.A)) {
				continue
			}
			if x.try(func(s *Schedule) { s.Events = slices.Delete(slices.Insert(s.Events, before, e), hurt, hurt+1) }) {
				return
			}
		}
	}
}

// crashWaits are how long after an event a crash is tried.
var crashWaits = [...]int64{1, 10 * microsecond, 50 * microsecond, 150 * microsecond, millisecond}

func (x *shrinker) crash(doom int) {
	e := Event{Kind: Crash, A: x.best.Events[doom].B, C: millisecond}
	for after := doom; after < len(x.best.Events); after++ {
		for _, wait := range crashWaits {
			for n := range int64(4 * redraws) {
				e.B, e.Sub = n%4, uint64(n/4)
				if x.try(func(s *Schedule) {
					e.At = s.Events[after].At + wait
					s.Events = slices.Insert(s.Events, after+1, e)
					for i := after + 2; i < len(s.Events); i++ {
						s.Events[i].At += wait
					}
					s.Events = slices.Delete(s.Events, doom, doom+1)
				}) {
					return
				}
			}
		}
	}
}
