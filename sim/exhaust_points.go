package sim

import (
	"fmt"

	"varve/faultfs"
)

// lens watches the calls of one world, and tries the crashes.
type lens struct {
	x       *Explorer
	w       *World
	level   int
	on      bool
	call    int
	name    string // of the call at hand
	op      faultfs.Op
	changed bool   // since the last point that was looked at
	promise uint64 // there
	doubt   faultfs.Doubt
}

func (l *lens) begin(on bool) {
	if l != nil {
		l.on, l.call, l.changed = on, 0, true
	}
}

// Before implements faultfs.Observer.
func (l *lens) Before(op faultfs.Op, name string) {
	if !l.on {
		return
	}
	l.point(l.call+1, 0)
	l.call++
	if l.w.Trace != nil {
		l.w.say(TrackWorld, Note, "    call %d: %s %s", l.call, op, name)
	}
	l.op, l.name = op, name
	switch op {
	case faultfs.OpRead, faultfs.OpOpen, faultfs.OpSize, faultfs.OpList, faultfs.OpFree:
	default:
		l.changed = true
	}
}

// Inside implements faultfs.Observer.
func (l *lens) Inside(sectors int64) {
	if l.on {
		l.changed = true
		l.point(l.call, sectors)
		l.changed = true
	}
}

// after is the point after the latest call, before the log hears of it.
func (l *lens) after() {
	if l != nil && l.on && l.call > 0 {
		l.point(l.call, partAfter)
	}
}

// rest is the point at which nothing is under way.
func (l *lens) rest() {
	if l != nil && l.on {
		l.point(0, 0)
	}
}

// point tries every crash at one point.
func (l *lens) point(call int, part int64) {
	x := l.x
	if x.found != nil || l.w.res.Violation != "" {
		return
	}
	p := CrashPoint{Call: call, Part: part}
	if t := x.target; t != nil {
		if l.level < t.Depth && t.Crashes[l.level].Call == call && t.Crashes[l.level].Part == part && x.at.Depth == l.level {
			l.w.disk.Doubts(&l.doubt)
			x.crash(l, t.Crashes[l.level])
		}
		return
	}
	x.Counts.Points[l.level]++
	if promise := promisesOf(l.w, false); promise != l.promise {
		l.promise, l.changed = promise, true
	}
	if !l.changed || x.seen.Stop() {
		return
	}
	l.changed = false
	l.w.disk.Doubts(&l.doubt)
	l.kill(p)
	l.images(p)
}

// promisesOf identifies what the next life must keep, and the configuration that it will have.
func promisesOf(w *World, lossy bool) uint64 {
	return mix(w.check.Promises(lossy) + uint64(w.h.Config[0].Sync))
}

func (l *lens) kill(p CrashPoint) {
	x := l.x
	x.Counts.Images[l.level]++
	p.Kill = true
	if x.new(StateKind(l.level), l.w.disk.KilledHash(&l.doubt), l.promise) {
		x.crash(l, p)
	}
}

// images tries a power loss with each image.
func (l *lens) images(p CrashPoint) {
	x, n := l.x, l.doubt.Len()
	promise := promisesOf(l.w, true)
	total := uint64(1) << min(n, 63)
	all := total <= ImagesMax
	if !all {
		x.Counts.Sampled[l.level]++
		total = ImagesMax
	}
	for i := uint64(0); i < total && x.found == nil && !x.seen.Stop(); i++ {
		p.Image = i
		if !all {
			p.Image = sampleImage(i, n)
		}
		x.Counts.Images[l.level]++
		if x.new(StateKind(l.level), l.doubt.Hash(p.Image), promise) {
			x.crash(l, p)
		}
	}
}

// sampleImage returns the i-th image of the sample of n bits: all lost, all kept, the first so many
// kept, all but one, one alone, then a fixed sequence of spread numbers.
func sampleImage(i uint64, n int) uint64 {
	mask := uint64(1)<<n - 1
	k := uint64(n)
	switch {
	case i <= k:
		return mask >> (k - i)
	case i <= 2*k:
		return mask &^ (1 << (i - k - 1))
	case i <= 3*k:
		return 1 << (i - 2*k - 1)
	}
	return mix(i) & mask
}

// new notes a state and reports whether it was not met before.
func (x *Explorer) new(kind StateKind, disk, promises uint64) bool {
	if !x.seen.New(kind, mix(disk^promises)) {
		return false
	}
	x.Counts.States[kind]++
	return true
}

// crash ends the life that a lens watches, in a copy, and looks at what comes after.
func (x *Explorer) crash(l *lens, p CrashPoint) {
	x.at.Crashes[l.level], x.at.Depth = p, l.level+1
	switch t := x.target; {
	case l.level == 1:
		x.recover(l, p, nil)
	case t != nil && t.More:
		x.recoverThen(l, p, t.Then)
	case x.recover(l, p, &x.lenses[1]):
		for o := range smallOpCount {
			if x.found == nil && !x.seen.Stop() {
				x.recoverThen(l, p, o)
			}
		}
	}
	if x.target == nil {
		x.at.Depth = l.level
	}
}

// sayCrash writes the crash into the timeline.
func (l *lens) sayCrash(p CrashPoint) {
	where := fmt.Sprintf("before call %d", p.Call)
	switch {
	case p.Call == 0:
		where = "at rest"
	case p.Part == partAfter:
		where = fmt.Sprintf("after call %d, %s %s", p.Call, l.op, l.name)
	case p.Part > 0:
		where = fmt.Sprintf("inside call %d, %s %s, behind %d sectors", p.Call, l.op, l.name, p.Part)
	}
	if p.Kill {
		l.w.say(TrackWorld, Died, "CRASH %s: kill", where)
	} else {
		l.w.say(TrackWorld, Lost, "CRASH %s: power loss; %s", where, l.doubt.Describe(p.Image))
	}
	l.w.Trace = nil // what it would have done without the crash is another story
}
