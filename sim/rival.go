package sim

import (
	"encoding/binary"
	"io"
	"slices"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/model"
	"varve/tiers/cold"
	"varve/tiers/disk"
	"varve/tiers/warm"
)

// rival is the process of the host that had the log before another one took it over: it stood still,
// or was slow, or nobody told it. It goes on beside the new owner, on a disk of its own, with clients of
// its own, and shares the bucket and the Valkey server. Without a warm tier what it acks is lost to the
// log: only the manifest can tell an owner that it is none any more, and nothing but a swap asks the
// manifest. So it is judged by what it does to others: no swap of its is won once the other one has
// opened the log, the first that it tries fences it, and it deletes and trims nothing that the other one
// has. With a warm tier that every ack waits for it acks nothing from then on.
type rival struct {
	alive   bool
	opening bool // it had not opened the log yet: two claims may meet
	tried   bool // to claim it, then
	claimed bool // the other one has opened the log
	exam    bool // faults are over: it has to find out
	asked   bool // to export something, for that
	born    int32
	log     *core.Log
	fs      *faultfs.FS
	lock    io.Closer
	store   *disk.Store
	cold    *cold.Store
	warm    *warm.Store
	marked  bool   // it left a marker of a later epoch, and may have given way after that
	fences  int    // markers that the server answered since the other one opened the log
	first   uint64 // cohort of what it appended first beside the owner
	flights [core.LaneCount]flight
	rng     Rand
	nonce   uint64
	config  int64
	gap     int64 // typical time between what it does
	lag     int64 // how far its clocks are behind, because they stood still with it
	since   int64 // when it began to stand still
	stopped bool  // its clocks do
	left    int   // what it may still do
	swaps   int   // tried since the other one opened the log
	acked   int64
	payload []byte // of all its appends
	owed    []debt // to clients of the log
}

// What a rival may do while the schedule goes on, and to find out that it is none when that is over.
const (
	rivalSteps = 120
	rivalExam  = 150
	rivalIdle  = 100 * millisecond // between its timers, in the end
)

func (r *rival) init(w *World) {
	*r = rival{log: new(core.Log), store: disk.NewStore(nil), born: r.born}
	r.cold = cold.NewStore(nil, coldPrefix, r.store, cold.DefaultOptions())
	r.store.SetObjects(r.cold)
	r.warm = w.warm.open(w)
	r.store.SetStreams(r.warm)
}

func (r *rival) reset() {
	r.alive, r.lock, r.marked = false, nil, false
	r.flights = [core.LaneCount]flight{}
}

// mayLiveOn reports whether the process is at a place where it can be left alone: it runs, or it opens
// the log and has read the manifest that it will claim.
func (w *World) mayLiveOn() bool {
	p := &w.process
	if !p.up || p.leaving || p.exiting || w.fs.Dead() || w.stage != stageSafety {
		return false
	}
	if p.opened || !w.h.Cold() {
		return p.opened && w.log.Phase() == core.Ready
	}
	if _, again := w.flights[core.Hot].effect.(*core.List); again {
		return false
	}
	_, loads := w.flights[core.Catalogue].effect.(*core.LoadManifest)
	return w.log.Phase() == core.Opening && p.loaded && !loads
}

// part leaves the process of this host alone: it goes on once it has stood still for a while.
func (w *World) part(e *Event) {
	r, p := &w.rival, &w.process
	for i := range w.readers {
		w.readers[i].lose(w)
	}
	r.owed = r.owed[:0]
	for _, id := range w.waiting[w.wait:] {
		if a := &w.appends[id]; !a.resolved {
			r.owed = append(r.owed, debt{id: id, cohort: a.cohort})
		}
	}
	w.unresolved()
	w.joinCore()
	r.alive, r.opening, r.claimed, r.exam, r.asked = true, !p.opened, false, false, false
	r.rng.Seed(sub(e.Sub, 9))
	r.gap = [...]int64{microsecond, 20 * microsecond, 400 * microsecond}[r.rng.Below(3)]
	r.lag, r.since, r.stopped = 0, w.clock.mono, r.rng.Below(2) == 0
	r.left, r.swaps, r.acked, r.payload = rivalSteps, 0, 0, r.payload[:0]
	r.nonce, r.config, r.tried, r.fs, r.lock = p.nonce, p.config, p.tried, w.fs, w.lock
	r.log, w.log = w.log, r.log
	r.store, w.store = w.store, r.store
	r.cold, w.cold.store = w.cold.store, r.cold
	r.warm, w.warm.store = w.warm.store, r.warm
	r.first, r.fences, r.marked = 0, 0, false
	w.planner.store.SetObjects(w.cold.store)
	r.flights, w.flights = w.flights, [core.LaneCount]flight{}
	w.late = [core.LaneCount]late{}
	w.lock, w.diedInOpen = nil, false
	w.fs.SetCallBudget(-1, false)
	w.disk.Heal()
	p.up, p.opened, p.failed, p.delay = false, false, 0, e.A
	w.check.Crash(w.clock.mono, model.ProcessKill)
	w.reopenLater()
	r.born++
	w.queue.push(entry{at: w.clock.mono + e.B, kind: wakeRival, arg: r.born, life: -1})
	w.res.Marks.add(MarkRival)
}

// endRival ends the process of the host before.
func (w *World) endRival() {
	r := &w.rival
	if !r.alive {
		return
	}
	r.alive = false
	m := r.log.Marks()
	for i := range m {
		w.res.Marks.Core[i] |= m[i]
	}
	if r.lock != nil {
		_ = r.lock.Close()
		r.lock = nil
	}
	r.fs.Kill()
	r.flights = [core.LaneCount]flight{}
	if w.Trace != nil {
		w.say(TrackWorld, Note, "the host before: its process ends; %d records acked beside the owner", r.acked)
	}
}

func (r *rival) now(w *World) core.Now {
	now := w.clock.now()
	return core.Now{Mono: now.Mono - r.lag, Wall: now.Wall - r.lag}
}

// rivalWakes lets the process of the host before do one thing.
func (w *World) rivalWakes(born int32) {
	r := &w.rival
	if !r.alive || born != r.born {
		return
	}
	if r.stopped {
		r.lag, r.stopped = w.clock.mono-r.since, false
	}
	if !r.claimed && w.stage != stageSafety { // nothing to find out yet
		w.wakeRivalIn(millisecond)
		return
	}
	if w.stage != stageSafety && r.opening && w.h.Warm() { // it never got as far, and nothing tells it soon
		w.endRival()
		return
	}
	if w.stage != stageSafety && !r.exam {
		r.exam, r.left = true, rivalExam
		w.other.Heal()
		w.other.SetCapacity(0)
	}
	r.left--
	if !w.rivalActs() || !w.rivalGoesOn() || w.res.Violation != "" {
		return
	}
	if r.left <= 0 || r.log.Phase() == core.Poisoned && !r.flies() {
		w.rivalEnds()
		return
	}
	w.wakeRivalIn(w.rivalPause())
}

// rivalPause is how long it does nothing. In the end it waits for its timers, to be done soon.
func (w *World) rivalPause() int64 {
	r := &w.rival
	if r.exam && !r.flies() {
		if due, ok := r.log.Deadline(); ok {
			return max(rivalIdle, due+r.lag-w.clock.mono)
		}
	}
	return r.rng.Between(1, 2*r.gap)
}

func (w *World) wakeRivalIn(delay int64) {
	w.queue.push(entry{at: w.clock.mono + delay, kind: wakeRival, arg: w.rival.born, life: -1})
}

// rivalEnds is the end of what it may do: while the schedule goes on it stands still then.
func (w *World) rivalEnds() {
	r := &w.rival
	switch {
	case r.log.Phase() == core.Poisoned:
		if r.swaps > 0 && r.log.Err() != core.ErrOwnerFenced && w.other.Counts().Injected == 0 {
			w.fail("K8", "the host before was to find another owner, and ended otherwise: "+r.log.Err().Error())
		}
	case !r.exam:
		return // until beginLiveness
	case r.fences > 1 && w.promised():
		w.fail("K8", "the host before was to find another owner in the warm tier, and goes on")
	case r.swaps > 0:
		w.fail("K8", "the host before has lost a swap to another owner and goes on")
	}
	w.endRival()
}

func (r *rival) flies() bool {
	return slices.ContainsFunc(r.flights[:], func(f flight) bool { return f.effect != nil })
}

// rivalActs does what one wake is for: a call of a client, a timer, or the next step of an effect in
// flight. It is false if the process has ended.
func (w *World) rivalActs() bool {
	r := &w.rival
	now := r.now(w)
	if r.claimed && r.log.Phase() == core.Ready {
		if r.exam && !r.asked {
			r.asked = true
			w.rivalAppends(now)
			_ = r.log.Roll(now)
		}
		if due, ok := r.log.Deadline(); ok && due <= now.Mono {
			r.log.Tick(now)
		} else if !r.exam && r.rng.Below(3) == 0 {
			w.rivalCalls(now)
		}
	}
	lane := core.Lane(r.rng.Below(int64(core.LaneCount)))
	for range core.LaneCount {
		if lane = (lane + 1) % core.LaneCount; r.flights[lane].effect != nil {
			return w.rivalStep(lane)
		}
	}
	return true
}

func (w *World) rivalCalls(now core.Now) {
	r := &w.rival
	start, committed := r.log.Start(), r.log.Committed()
	where := start + r.rng.Below(committed-start+1)
	switch r.rng.Below(8) {
	case 0:
		_ = r.log.Trim(now, where)
	case 1:
		_ = r.log.Offload(now, where)
	case 2:
		_ = r.log.Roll(now)
	default:
		w.rivalAppends(now)
	}
}

// rivalAppends appends what no client of the log knows.
func (w *World) rivalAppends(now core.Now) {
	r := &w.rival
	at := len(r.payload)
	r.payload = binary.LittleEndian.AppendUint64(r.payload, ^uint64(at))
	r.payload = append(r.payload, make([]byte, 24)...)
	body := r.payload[at:]
	t, err := r.log.Append(now, &core.Batch{
		Payload: body, PayloadCRC: segment.PayloadCRC(body), Kind: segment.KindRecords, Records: 1,
		MaxTime: now.Wall, Producer: core.NoProducer,
	})
	if err == nil && r.first == 0 {
		r.first = t.Cohort
	}
}

// rivalStep carries an effect of it on, and completes it at its end.
func (w *World) rivalStep(lane core.Lane) bool {
	r := &w.rival
	f := &r.flights[lane]
	if !f.executed {
		w.rivalExecutes(lane)
	}
	if f.err == nil && !f.done {
		f.executed = false
		return true
	}
	e, err, before := f.effect, f.err, r.log.Phase()
	*f = flight{}
	r.log.Complete(r.now(w), e, err)
	for o, ok := r.log.NextOutcome(); ok; o, ok = r.log.NextOutcome() {
		if o.Err != nil {
			continue
		}
		if r.acked++; r.claimed {
			w.res.Marks.add(MarkRivalAcked)
		}
		for i := range r.owed {
			d := &r.owed[i]
			d.acked = d.acked || d.cohort == o.Cohort
		}
		if r.claimed {
			w.rivalOwes()
		}
		switch {
		case before == core.Poisoned:
			w.fail("K8", "the host before acks an append after it has found another owner")
		case w.h.Warm() && r.claimed && r.first > 0 && o.Cohort >= r.first && w.promised():
			w.fail("K8", "the host before acks what the warm tier must have refused")
		}
	}
	return true
}

// debt is an append of a client of the log that the process still owed an answer when it was left alone.
type debt struct {
	id     model.OpID
	cohort uint64
	acked  bool // by now, long after
}

// rivalOwes judges that what the host before has acked is in the log, where the warm tier promises it:
// whoever takes over finds it there.
func (w *World) rivalOwes() {
	r := &w.rival
	if !r.alive || !w.h.Warm() || !w.promised() {
		return
	}
	for i := range r.owed {
		if d := &r.owed[i]; d.acked && !w.check.Holds(d.id) {
			w.fail("K1", "an append that the host before has acked is not in the log")
			return
		}
	}
}

// rivalExecutes carries out the step at hand, and judges what it did to the owner.
func (w *World) rivalExecutes(lane core.Lane) {
	r := &w.rival
	f := &r.flights[lane]
	e := f.effect
	stage := e.Result().Stage
	switch {
	case lane == core.Warm:
		f.done, f.err = r.warm.Step(e)
		w.warmWritten(e, f.err)
		w.warm.server.TakeDelay()
	case lane >= core.Uploads:
		f.done, f.err = r.cold.Step(e)
	default:
		f.done, f.err = r.store.Step(e)
	}
	f.executed = true
	w.note(hashRival, uint64(stage)<<8|uint64(lane), boolHash(f.done)|boolHash(f.err != nil)<<1)
	if w.Trace != nil {
		w.say(TrackWorld, Note, "the host before: [lane %d] %s, step %d: %v", lane, effectText(e), stage, f.err)
	}
	switch e.(type) {
	case *core.SwapManifest:
		r.tried = true
		if r.claimed {
			if r.swaps++; f.err == nil {
				w.fail("K8", "the host before won a swap of the manifest after another had opened the log")
			}
		}
	case *core.FenceWarm:
		r.marked = r.marked || r.opening
		if r.claimed && f.err == nil {
			r.fences++
		}
	case *core.Delete:
		if w.process.up {
			w.proven()
		}
	}
}

// rivalGoesOn takes what the log of the host before wants to do next. It is false if its process has
// ended: one that lost its claim would open the log again, and take it back.
func (w *World) rivalGoesOn() bool {
	r := &w.rival
	for lane := range core.LaneCount {
		f := &r.flights[lane]
		if f.effect != nil {
			continue
		}
		e := r.log.Next(r.now(w), lane)
		if e == nil {
			continue
		}
		*f = flight{effect: e}
		_, lists := e.(*core.List)
		_, loads := e.(*core.LoadManifest)
		if lists || loads && r.opening && !r.tried || r.opening && r.claimed && lane == core.Warm {
			w.res.Marks.add(MarkClaimRace)
			w.endRival()
			return false
		}
		if r.rng.Below(2) == 0 {
			w.rivalExecutes(lane)
		}
	}
	switch now := r.log.Phase(); {
	case now == core.Failed, now == core.Recovering:
		w.endRival()
		return false
	case now == core.Ready && r.opening:
		r.opening = false
		w.judgeClaim(r.log.Epoch(), r.nonce)
		if !r.claimed {
			w.rivalRetains()
		}
	}
	if r.claimed && r.log.Start() > w.check.Start() {
		w.fail("K14", "the host before trims a log that is another's")
	}
	return true
}

// rivalRetains tells the checker what the policy allows the host before: it owns the log until the other
// one claims it.
func (w *World) rivalRetains() {
	r, mine := &w.rival, w.log
	if policy := w.policy(r.config); policy != noRetention {
		w.log = r.log
		w.log.FillView(&w.view)
		w.check.RetentionRuns(w.clock.mono, r.now(w).Wall, policy, w.segments())
		w.log = mine
		w.log.FillView(&w.view)
	}
}

// found notes how far an open is with the manifest.
func (p *process) found(e core.Effect, err error) {
	switch e := e.(type) {
	case *core.List:
		p.loaded, p.tried = false, false
	case *core.LoadManifest:
		p.loaded = err == nil
		p.refused = p.refused && (err != nil || e.Missing)
	case *core.SwapManifest:
		p.tried, p.refused = true, err != nil && e.Lost
	}
}

// servesVoid judges that an open whose claim was refused, and that could not read who the owner is, serves nothing that
// the owner's lineage voids.
func (w *World) servesVoid() {
	m := &w.cold.m
	if !w.cold.manifest() || m.Nonce == w.process.nonce || m.Epoch < w.log.Epoch() {
		return
	}
	if last := m.Lineage[len(m.Lineage)-1]; w.log.Committed() > last.First && w.log.Start() < w.log.Committed() {
		w.fail("K8", "an open whose claim was refused serves records that the owner's lineage voids")
	}
}

// judgeClaim judges that a log which has opened is the owner by the manifest, or was until a later one.
func (w *World) judgeClaim(epoch core.Epoch, nonce uint64) {
	m := &w.cold.m
	if w.cold.manifest() && (m.Epoch < epoch || m.Epoch == epoch && m.Nonce != nonce) {
		w.fail("K8", "a log has opened, and the manifest does not name it as the owner of its epoch")
	}
}
