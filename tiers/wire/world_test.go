package wire_test

import (
	"errors"
	"fmt"
	"testing"

	"varve/core"
	"varve/faultfs"
	"varve/model"
	"varve/sim"
	"varve/tiers/valkey/client"
)

// world runs schedules, one after the other. Time is virtual, as in the simulator: what a call of a
// server takes is drawn; the call itself is made at one instant of the schedule, and waited for.
type world struct {
	t       *testing.T
	stream  *stream
	objects *objects
	hosts   [2]*host
	check   model.Checker
	say     func(format string, args ...any) // nil: nobody listens

	s   *sim.Schedule
	h   *sim.Header
	rng sim.Rand
	now core.Now

	host    *host // that runs the log
	rival   *host // that ran it and lives on, nil if there is none
	config  int64
	nonce   uint64
	leaving bool
	exposed bool      // the disk was lost since the last open
	hurting bool      // calls of servers fail
	healed  bool      // all faults are over
	reopen  core.Time // when the next life begins; never: one is on
	delay   core.Time
	doom    [2]int64 // calls of the file system after which the lives to come die in recovery
	failed  int      // opens in a row that failed
	start   core.Offset
	trim    core.Offset
	slow    [core.LaneCount]core.Time

	payloads [][]byte // by model.OpID
	readers  [8]reader
	auditor  reader
	view     core.View
	verdict  error

	counts [counted]int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, stream: newStream(t), objects: newObjects(t)}
	d, err := client.New(client.Options{Addresses: []string{w.stream.mini.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.hosts {
		w.hosts[i] = newHost(t, d)
	}
	t.Cleanup(func() {
		for _, h := range w.hosts {
			_ = h.warm.Close()
		}
	})
	return w
}

// mixes are the tiers of schedules, in turn.
var mixes = [...]sim.Mix{sim.MixTiers, sim.MixWarm, sim.MixTiers, sim.MixCold}

// socketsEvery is of how many schedules one has sockets between the SDK and the bucket, too.
const socketsEvery = 8

// expand draws the schedule of a seed. Left out is what is nothing to the tiers, and what no server here
// can do: see the package comment.
func expand(s *sim.Schedule, seed uint64) {
	mix := mixes[seed%uint64(len(mixes))]
	sim.ExpandMix(s, mix, seed, int(20+seed*7%41))
	h := &s.Header
	h.Faults &= crashFaults
	h.Replicas = min(h.Replicas, 2)
	for i := range h.Config {
		c := &h.Config[i]
		c.RetentionBytes, c.RetentionAge, c.MinFreeBytes = core.Unlimited, core.Unlimited, 0
		if !c.Cold {
			c.LocalRetentionBytes, c.LocalRetentionAge = core.Unlimited, core.Unlimited
		}
		c.WarmReplicas = min(c.WarmReplicas, int(h.Replicas))
		if h.On(sim.SwLose) || h.On(sim.SwMove) {
			c.WarmAckOnTimeout = false
		}
		if seed%largeEvery == 2 {
			c.SegmentBytes, c.SegmentAge, c.ColdMaxUploadAge = 16<<20, core.Unlimited, core.Unlimited
			c.MaxBatchBytes, c.PendingBytes = 1<<20, 16<<20
		}
	}
	for i := range s.Events {
		if e := &s.Events[i]; e.Kind == sim.Append && seed%largeEvery == 2 {
			e.A = 600<<10 + e.A
		}
	}
}

// largeEvery is of how many schedules one has segments so large that they are uploaded in parts.
const largeEvery = 128

// crashFaults are what a power loss may do.
var crashFaults = faultfs.Set(faultfs.D1Sectors, faultfs.D2Torn, faultfs.D3Size, faultfs.D5DirOps, faultfs.D5RenameHalf,
	faultfs.D5Parent)

// run runs a schedule. The error says what was violated.
func (w *world) run(s *sim.Schedule) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("assert: %v", p)
		}
	}()
	w.reset(s)
	w.begin()
	w.settle()
	shift := core.Time(0)
	for i := range s.Events {
		e := &s.Events[i]
		w.until(e.At + shift)
		if e.Kind.IsOp() && e.Sub>>40&3 != 0 {
			shift += w.patience()
		}
		if w.verdict != nil {
			break
		}
		w.event(e)
		w.settle()
	}
	if w.verdict == nil {
		w.finish()
	}
	for _, h := range w.hosts {
		h.end()
	}
	w.counts[schedules]++
	return w.verdict
}

// patience is how long a client waits for a log that opens: servers take longer than the simulator's.
func (w *world) patience() core.Time {
	from := w.now.Mono
	for w.verdict == nil && !w.host.opened && w.now.Mono < from+100*millisecond {
		w.until(w.now.Mono + millisecond)
	}
	return w.now.Mono - from
}

func (w *world) reset(s *sim.Schedule) {
	w.s, w.h = s, &s.Header
	seed := s.Header.Seed
	w.stream.begin(int(w.h.Replicas))
	w.objects.begin(w.t, seed)
	bucket := w.objects.direct
	if seed%socketsEvery == 0 {
		bucket = w.objects.sockets
		w.counts[overSockets]++
	}
	for _, h := range w.hosts {
		h.reset(seed, bucket, w.h.Faults)
	}
	w.check.Reset()
	w.rng.Seed(seed)
	w.now = core.Now{Mono: 1, Wall: 1_700_000_000 * second}
	w.host, w.rival = w.hosts[0], nil
	w.config, w.nonce, w.failed, w.doom, w.trim = 0, 0, 0, [2]int64{}, 0
	w.leaving, w.exposed, w.hurting, w.healed = false, false, false, false
	w.reopen, w.delay, w.slow = never, millisecond, [core.LaneCount]core.Time{}
	w.payloads = append(w.payloads[:0], nil)
	for i := range w.readers {
		w.readers[i].begun = false
	}
	w.verdict = nil
	w.hurt(seed%3 == 0)
}

func (w *world) fail(format string, args ...any) {
	if w.verdict == nil {
		w.verdict = fmt.Errorf(format, args...)
	}
}

func (w *world) note(format string, args ...any) {
	if w.say != nil {
		w.say("%12d "+format, append([]any{w.now.Mono}, args...)...)
	}
}

// until lets time go by, and does what is due meanwhile.
func (w *world) until(end core.Time) {
	for w.verdict == nil {
		at, lane := w.host.due()
		h := w.host
		if w.rival != nil {
			if rt, rl := w.rival.due(); rt < at {
				at, lane, h = rt, rl, w.rival
			}
		}
		opens := w.reopen < at
		at = min(at, w.reopen)
		if at > end {
			break
		}
		w.pass(at)
		switch {
		case opens:
			w.begin()
		case lane == core.LaneCount:
			h.ticked = w.now.Mono
			h.log.Tick(w.now)
		default:
			w.complete(h, lane)
		}
		w.settle()
	}
	w.pass(end)
}

func (w *world) pass(to core.Time) {
	if d := to - w.now.Mono; d > 0 {
		w.now.Mono += d
		w.now.Wall += d
	}
}

// settle lets processes act on what happened until they have nothing more to do now.
func (w *world) settle() {
	if w.host.up && w.host.fs.Dead() {
		w.die(sim.DeathKill)
	}
	w.pump(w.host)
	if w.host.up && w.host.fs.Dead() {
		w.die(sim.DeathKill)
	}
	w.phase()
	w.agree()
	if w.rival != nil {
		w.pump(w.rival)
		w.rivalEnds()
	}
	if v := w.check.Violation(); v != nil {
		w.fail("%v", v)
	}
}

// pump takes outcomes and starts effects.
func (w *world) pump(h *host) {
	for before := core.Phase(255); h.up && before != h.log.Phase(); {
		before = h.log.Phase()
		w.outcomes(h)
		for lane := range core.LaneCount {
			f := &h.flights[lane]
			if f.e != nil {
				continue
			}
			e := h.log.Next(w.now, lane)
			if e == nil {
				continue
			}
			*f = flight{e: e, at: w.now.Mono + w.takes(lane)}
			if w.rng.Chance(1 << 15) {
				w.carry(h, f)
			}
			if h.fs.Dead() {
				return
			}
		}
		w.outcomes(h)
	}
}

// takes draws how long an effect takes.
func (w *world) takes(lane core.Lane) core.Time {
	long := w.h.Write + w.h.Sync
	switch lane {
	case core.Warm:
		long = w.h.Sync
	case core.Uploads, core.Catalogue:
		long = 4 * w.h.Sync
	}
	took := 1 + w.rng.Below(2*long)
	if lane >= core.Uploads && w.rng.Chance(512) {
		took *= 1000
	}
	took += w.slow[lane]
	w.slow[lane] = 0
	return took
}

// carry carries an effect out, and tells the checker what the disk has now.
func (w *world) carry(h *host, f *flight) {
	if w.hurting && f.e.Lane() == core.Warm && w.rng.Chance(6000) {
		w.stream.strike(int(w.rng.Between(1, 12)), int(w.rng.Below(2)))
	}
	f.short = w.stream.frozen
	h.execute(f, whole)
	w.note("host %d: %T: %v", w.number(h), f.e, f.err)
	if c, ok := f.e.(*core.Commit); ok && f.err == nil {
		h.written = c.End
	}
	if f.err != nil || h != w.host && w.host.opened || h.fs.Dead() {
		return // what a host holds that is none any more is nothing to the log
	}
	switch e := f.e.(type) {
	case *core.Commit:
		if e.Sync {
			w.check.Synced(w.now.Mono, h.written)
		}
	case *core.Sync:
		w.check.Synced(w.now.Mono, min(h.written, e.End))
	case *core.Seal, *core.Rollback:
		w.check.Synced(w.now.Mono, h.written)
	}
}

// number is how the trace calls a host.
func (w *world) number(h *host) int {
	if h == w.hosts[0] {
		return 0
	}
	return 1
}

// complete gives an effect back to the log.
func (w *world) complete(h *host, lane core.Lane) {
	f := &h.flights[lane]
	if !f.executed {
		w.carry(h, f)
	}
	if h.fs.Dead() {
		return // settle buries it
	}
	e, err, short, committed := f.e, f.err, f.short, h.log.Committed()
	*f = flight{}
	m, mirrors := e.(*core.Mirror)
	if mirrors && m.Entry.End > h.written {
		w.fail("K23: records were mirrored whose commit is not complete")
	}
	h.log.Complete(w.now, e, err)
	if mirrors && short && m.Replicas > 0 && !w.h.Config[w.config].WarmAckOnTimeout && h.log.Committed() > committed {
		w.fail("K1: records that no replica confirmed are committed, from %d to %d", committed, h.log.Committed())
	}
}

// outcomes takes what a log tells of its cohorts.
func (w *world) outcomes(h *host) {
	for {
		o, ok := h.log.NextOutcome()
		if !ok {
			return
		}
		if h.own != 0 && o.Cohort >= h.own {
			if o.Err == nil && w.h.Warm() {
				w.fail("K8: a host acked an append after another one had taken the log over")
			}
			continue
		}
		for len(h.waiting) > 0 && h.waiting[0].cohort <= o.Cohort {
			w.resolve(h, model.OpID(h.waiting[0].id), o.Err)
			h.waiting = h.waiting[1:]
		}
	}
}

func (w *world) resolve(h *host, id model.OpID, err error) {
	if h == w.rival && !w.h.Warm() && err == nil && w.host.opened {
		return // nothing but a swap tells a host without a warm tier that it is none any more
	}
	w.note("append %d: %v", id, err)
	switch {
	case err == nil:
		w.counts[acked]++
		w.check.Acked(w.now.Mono, id)
	case errors.Is(err, core.ErrUnknown):
		w.counts[unknown]++
		w.check.Unknown(w.now.Mono, id)
	default:
		w.counts[refused]++
		w.check.Failed(w.now.Mono, id)
	}
}
