package sim

import (
	"errors"
	"io"

	"varve/core"
	"varve/core/segment"
	"varve/core/warmentry"
	"varve/model"
	"varve/sim/fakevalkey"
	"varve/tiers/valkey"
	"varve/tiers/warm"
)

// warmName is the log's name in the Valkey server.
const warmName = "log"

// warmWorld is the warm tier of a world.
type warmWorld struct {
	server  *fakevalkey.Server
	store   *warm.Store
	look    *warm.Store // of the planner
	rng     Rand
	key     string
	held    core.Offset   // so far the replicas that an ack waits for had the log, at some time
	free    core.Offset   // entries up to here may go: one said so
	restAt  int64         // mono at which whatever the server lost is known to be lost
	rested  bool          // the server began again while the log was idle
	newest  core.WarmID   // of the entry that this process wrote last
	hole    core.Offset   // end of a mirror that the server has taken behind something else; 0: none
	entry   valkey.Stored // scratch
	other   []byte        // of another log
	otherIn int32         // life in which that wrote last
	spans   []warmSpan    // scratch of holds
}

// warmSpan is records of one epoch that the server has.
type warmSpan struct {
	first, end core.Offset
	epoch      core.Epoch
}

func (t *warmWorld) init(w *World) {
	t.server = fakevalkey.New(func(n uint64) uint64 { return t.rng.Next() % n })
	t.store = t.open(w)
	t.look = t.open(w)
	t.key, _ = valkey.Key(warmName)
	w.store.SetStreams(t.store)
}

// open returns a store with connections of its own.
func (t *warmWorld) open(w *World) *warm.Store {
	bounds := valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 16 << 10, Timeout: second}
	streams := [2]*valkey.Store{}
	for i := range streams {
		s, err := valkey.New(warmName, t.server, bounds)
		if err != nil {
			panic("sim: " + err.Error())
		}
		streams[i] = s
	}
	return warm.NewStore(streams[0], streams[1], w.store)
}

func (t *warmWorld) reset(w *World) {
	if !w.h.Warm() {
		return
	}
	t.rng.Seed(sub(w.h.Seed, 11))
	t.held, t.free, t.rested = 0, 0, false
	for _, s := range [...]*warm.Store{t.store, t.look, w.rival.warm} { // connections of the run before: the server gives their memory out again
		s.Reset(w.store)
	}
	t.server.Reset(fakevalkey.Config{Replicas: int(w.h.Replicas), Persist: fakevalkey.Persist(w.h.Persist)})
}

// begin starts a life of the process: connections of the one before are gone.
func (t *warmWorld) begin(w *World) {
	if w.h.Warm() {
		t.store.Reset(w.store)
	}
	t.newest, t.hole = core.WarmID{}, 0
}

// warmCalled takes what a call of the server did, and judges it.
func (w *World) warmCalled(e core.Effect, err error) {
	if m, ok := e.(*core.Mirror); ok && m.Entry.End > w.process.written {
		w.fail("K23", "records were mirrored whose commit is not complete")
	}
	if t, ok := e.(*core.TrimWarm); ok && t.Below.End-1 > w.warm.free {
		w.fail("K12", "entries were removed from the warm tier before one said that it begins behind them")
	}
	w.warmWritten(e, err)
	w.warm.wrote(e, err)
	w.keptStill() // what is gone now may be back before the open is through: a failover undoes an eviction
	if w.Trace != nil && err != nil {
		w.say(TrackWorld, Note, "the server: %v", err)
	}
}

// warmWritten takes what a host wrote: how far replicas have the log, and from where on it is meant to be
// there.
func (w *World) warmWritten(e core.Effect, err error) {
	t := &w.warm
	switch e := e.(type) {
	case *core.FenceWarm:
		t.held = max(t.held, core.Offset(t.server.Held(t.key, e.Replicas)))
		if err == nil && e.Refusal == core.WarmTaken && (e.Confirmed >= e.Replicas || !w.acksAll()) {
			t.free = max(t.free, e.Marker.WarmFrom)
		}
	case *core.Mirror:
		t.held = max(t.held, core.Offset(t.server.Held(t.key, e.Replicas)))
		if err == nil && e.Refusal == core.WarmTaken && e.Confirmed >= e.Replicas {
			t.free = max(t.free, e.Entry.WarmFrom)
		}
	}
}

// wrote takes what this process wrote, and whether the server still had what it wrote before.
func (t *warmWorld) wrote(e core.Effect, err error) {
	if err != nil {
		return
	}
	switch e := e.(type) {
	case *core.FenceWarm:
		if e.Refusal == core.WarmTaken {
			t.newest = core.WarmID{Generation: e.Marker.Generation}
		}
	case *core.Mirror:
		if e.Refusal != core.WarmTaken {
			return
		}
		if before, ok := t.server.Before(t.key); !ok || core.WarmID(before) != t.newest {
			t.hole = e.Entry.End
		}
		t.newest = core.WarmID{Generation: e.Entry.Generation, End: e.Entry.End}
	}
}

// warmTold judges what the log makes of the warm tier's answers: it says of nothing that enough
// replicas have it, and acks nothing for that, unless they had it at some time; and what was written
// behind something that the server has lost counts for nothing.
func (w *World) warmTold() {
	hole := w.warm.hole
	w.warm.hole = 0
	if p := w.log.Phase(); p != core.Ready && p != core.Closing {
		return
	}
	from, end, _ := w.log.WarmSpan()
	held := max(from, w.warm.held)
	if hole > 0 && end >= hole {
		w.fail("K12", "records count as confirmed in the warm tier, which has lost the entry before")
	}
	if end > held {
		w.fail("K12", "the log says that the warm tier confirmed records which too few replicas have")
	}
	if w.acksAll() && !w.damaged() && w.log.Committed() > held {
		w.fail("K1", "records were acked which fewer replicas of the warm tier have than were asked for")
	}
}

// acksAll reports whether no ack ever does without the warm tier.
func (w *World) acksAll() bool {
	for i := range w.h.Config {
		if w.h.Config[i].WarmAckOnTimeout {
			return false
		}
	}
	return true
}

// hurtServer switches the random faults of the server.
func (w *World) hurtServer(on bool) {
	if !w.h.Warm() {
		return
	}
	var rates fakevalkey.Rates
	if on {
		rates = w.h.Strikes
	}
	w.warm.server.SetFaults(w.h.Server, &rates)
}

// looksSoon notes by when an idle log has looked whether the server has it all: it does once an interval.
func (w *World) looksSoon() {
	w.warm.restAt = w.clock.mono + 2*w.h.Config[w.process.config].RetentionCheckInterval
	w.queue.push(entry{at: w.warm.restAt, kind: wakeTimer, life: -1})
}

// rests makes the server begin again once all is quiet, before the last append, and reports whether the
// log has some time left to find by itself what the server has lost by that.
func (w *World) rests() bool {
	t := &w.warm
	if !w.h.Warm() || !w.h.On(SwServer) || w.h.Seed&1 != 0 {
		return false
	}
	if !t.rested {
		t.rested = true
		t.rng.Seed(sub(w.h.Seed, 13))
		t.server.Restart()
		w.res.Marks.add(MarkServer)
		w.looksSoon()
	}
	return w.clock.mono < t.restAt
}

// healServer ends all faults of the server.
func (w *World) healServer() {
	if !w.h.Warm() {
		return
	}
	w.warm.server.SetFaults(0, &fakevalkey.Rates{})
	for i := range w.h.Replicas {
		w.warm.server.SetFrozen(int(i), false)
	}
}

// calmServer lets who looks from outside the run read the server. The function that it returns gives
// the server its faults back.
func (w *World) calmServer() (back func()) {
	if !w.h.Warm() {
		return func() {}
	}
	w.warm.server.SetFaults(0, &fakevalkey.Rates{})
	return func() { w.hurtServer(w.process.faults) }
}

// serverEvent is something that happens to the server.
func (w *World) serverEvent(e *Event) {
	if e.A == ServerAnother {
		w.anotherWrites()
		return
	}
	if !w.h.Warm() || !w.h.On(SwServer) {
		return
	}
	s := w.warm.server
	replica := -1
	if w.h.Replicas > 0 {
		replica = int(e.B % w.h.Replicas)
	}
	switch {
	case e.A == ServerFailover:
		s.Failover()
	case e.A == ServerRestart:
		s.Restart()
	case e.A == ServerDisconnect:
		s.Disconnect()
	case replica >= 0:
		s.SetFrozen(replica, e.A == ServerFreeze)
	}
	w.keptStill()
	w.res.Marks.add(MarkServer)
}

// anotherID is that of another log of the same name.
var anotherID = segment.LogID{'a', 'n', 'o', 't', 'h', 'e', 'r'}

// anotherWrites lets another log write under the name of this one: the next epoch, with records of its
// own, as one does that was made anew where this one was, or that somebody gave this one's name.
func (w *World) anotherWrites() {
	if !w.h.Warm() || !w.h.On(SwAnother) || w.h.On(SwLose) || w.h.On(SwMove) || w.epoch == 0 {
		return // a host that has no log takes the one that it finds
	}
	t := &w.warm
	e := warmentry.Entry{
		Kind: warmentry.Marker, LogID: anotherID, Generation: t.server.Last(t.key) + 1, Epoch: 1,
		Nonce: sub(w.h.Seed, 16) | 1, Start: w.check.Start(), WarmFrom: w.check.Start(),
		Lineage: anotherLineage[:],
	}
	e.Epoch = core.Epoch(min(e.Generation, uint64(w.epoch)+1))
	var err error
	if t.other, err = warmentry.AppendHeader(t.other[:0], &e); err != nil {
		panic("sim: " + err.Error())
	}
	t.server.Another(t.key, valkey.Field, t.other)
	t.otherIn = w.process.life
	w.res.Marks.add(MarkAnother)
	if w.Trace != nil {
		w.say(TrackWorld, Note, "another log writes under this one's name, generation %d", e.Generation)
	}
}

var anotherLineage = [1]segment.Lineage{{Epoch: 1}}

// anotherThere reports whether the server holds an entry of another log.
func (w *World) anotherThere() bool {
	if !w.h.Warm() || w.res.Marks.Sim>>MarkAnother&1 == 0 {
		return false
	}
	t := &w.warm
	for i := range t.server.Len(t.key) {
		if !t.read(w, i) && t.entry.Header.LogID == anotherID {
			return true
		}
	}
	return false
}

// promised reports whether what is acked is on the server, whatever happens to the disk: every
// configuration waits for a replica, or for the server where that has none, and nothing happened to it
// that loses what was confirmed.
func (w *World) promised() bool {
	for i := range w.h.Config {
		c := &w.h.Config[i]
		if c.WarmAckOnTimeout || c.WarmReplicas == 0 && w.h.Replicas > 0 {
			return false
		}
	}
	return w.warm.server.Marks()&(lossy|fakevalkey.W4Suffix.Bit()) == 0 ||
		w.h.Replicas > 0 && w.warm.server.Marks()&lossy == 0
}

// kept returns how far the tiers that are no disk hold the log: as they promise, or as they do.
func (w *World) kept() core.Offset {
	at := core.Offset(0)
	if w.h.Cold() && w.cold.manifest() {
		at = max(w.cold.m.Exported(), w.cold.m.Start)
	}
	if !w.h.Warm() {
		return at
	}
	if w.promised() {
		return max(at, w.check.AckedEnd())
	}
	from := max(at, w.check.Start())
	if end := w.warm.holds(w, from); end > from {
		return end
	}
	return at // a Start that only the server knew of is gone, too
}

// keptStill lowers what a lost disk's log is owed to what the server has not lost meanwhile.
func (w *World) keptStill() {
	if w.cold.exposed && w.h.Warm() && !w.promised() {
		w.cold.kept = min(w.cold.kept, w.kept())
		w.check.DiskLost(w.clock.mono, w.cold.kept)
	}
}

// lostInTwoPlaces reports whether an open was refused for records that the disk and the server have both
// lost, as they may. Where the disk is gone the operator gives up what it alone held, and opens again;
// otherwise the run ends.
func (w *World) lostInTwoPlaces() bool {
	p := &w.process
	switch {
	case !w.h.Warm():
		return false
	case w.cold.exposed && !p.accept && !w.promised():
		p.accept = true
		return true
	case w.log.Marks().Has(core.MarkTierGap) && (w.damaged() || w.warm.server.Marks()&lossy != 0):
		w.refuse()
		return true
	}
	return false
}

// markersReturn reports whether the server may have forgotten the marker of an earlier life while the log opened,
// so that this one took an epoch no greater, and brought it back since.
func (w *World) markersReturn() bool { return w.h.Warm() && w.warm.server.Marks()&lossy != 0 }

// anotherLog reports whether what has opened cannot be compared with what was: what lay before a hole was
// given up, or the disk is another one and the server, which alone knew of the owner before, may have lost
// its markers.
func (w *World) anotherLog() bool {
	before := w.check.Start()
	if w.process.accept && w.log.Start() > before {
		return true
	}
	forgot := w.cold.exposed && w.h.Warm() && !w.h.Cold() && !w.promised()
	return forgot && (w.cold.elsewhere || w.log.Start() < before || w.log.Epoch() <= w.epoch)
}

// gaveUp judges what accept_loss has given up: what lies before a gap, and nothing that the warm tier
// holds behind it.
func (w *World) gaveUp() {
	t := &w.warm
	from, end := core.Offset(0), core.Offset(0)
	for i := range t.server.Len(t.key) {
		if !t.read(w, i) {
			continue
		}
		h := &t.entry.Header
		from = max(from, h.WarmFrom)
		if h.Kind != warmentry.Data {
			continue
		}
		epoch, ok := t.batches(w, false)
		if _, owner := w.check.At(h.End - 1); ok && owner == epoch {
			end = max(end, h.End)
		}
	}
	if end = min(end, w.check.AckedEnd()); end > from && w.log.End() < end {
		w.fail("K1", "acked records were given up that the warm tier holds behind a gap")
	}
}

// holds returns how far the server holds the log from an offset on.
func (t *warmWorld) holds(w *World, at core.Offset) core.Offset {
	t.spans = t.spans[:0]
	for i := range t.server.Len(t.key) {
		if t.read(w, i) && t.entry.Header.Kind == warmentry.Data {
			if epoch, ok := t.batches(w, false); ok {
				t.spans = append(t.spans, warmSpan{t.entry.Header.First, t.entry.Header.End, epoch})
			}
		}
	}
	for more := true; more; {
		more = false
		for _, s := range t.spans {
			if _, epoch := w.check.At(at); s.first <= at && at < s.end && epoch == s.epoch {
				at, more = at+1, true
			}
		}
	}
	return at
}

// read decodes an entry of the server, and reports whether it is the log's.
func (t *warmWorld) read(w *World, i int) bool {
	value := t.server.At(t.key, i)
	body, err := warmentry.ReadHeader(value, &t.entry.Header)
	t.entry.Body = body
	return err == nil && t.entry.Header.LogID == w.h.Config[0].LogID
}

// batches goes through the batches of the entry that was read. It is false if they do not verify, or
// are of several epochs. judge says that the records are to be compared: where the reference log has
// that epoch it has these very records.
func (t *warmWorld) batches(w *World, judge bool) (epoch core.Epoch, ok bool) {
	walk := t.entry.Header.Walk(t.entry.Body)
	var i segment.Identity
	for {
		b, err := walk.Next(&i)
		if err != nil {
			return epoch, errors.Is(err, io.EOF)
		}
		if epoch != 0 && epoch != i.Epoch {
			return 0, false
		}
		epoch = i.Epoch
		if !judge {
			continue
		}
		id := w.identify(b[segment.IdentityBytes:], i.Records)
		for n := range int64(i.Records) {
			v, owner := w.check.At(i.Base + n)
			if owner == i.Epoch && i.Base+n >= w.check.Start() && v != model.MakeValue(id, int(n)) {
				w.fail("K12", "the warm tier holds another record than the log")
				return epoch, true
			}
		}
	}
}

// auditWarm judges K12 in the warm tier: what it holds is what the log holds, and nothing is committed
// that it lacks, unless the server lost it or the policy acks without it.
func (w *World) auditWarm() {
	if !w.h.Warm() || w.damaged() {
		return
	}
	t := &w.warm
	for i := range t.server.Len(t.key) {
		if !t.read(w, i) {
			if w.res.Marks.Sim>>MarkAnother&1 != 0 && t.entry.Header.LogID == anotherID {
				continue // a log that runs does not mind it
			}
			w.fail("K12", "an entry of the warm tier is not the log's")
			return
		}
		if _, ok := t.batches(w, true); !ok {
			w.fail("K12", "an entry of the warm tier does not verify, or is of several epochs")
			return
		}
	}
	from, _, _ := w.log.WarmSpan()
	w.judgeWarmFrom(from)
	if end := t.holds(w, from); end < w.log.Committed() {
		w.fail("K12", "records are committed, the log has come to rest, and the warm tier lacks them")
		if w.Trace != nil {
			w.say(trackLog, Note, "the warm tier holds [%d, %d), committed %d", from, end, w.log.Committed())
		}
	}
}

// judgeWarmFrom judges that the warm tier is meant to hold no more closed segments than it may, and no
// more bytes; but its newest record stays, and so does what is in no object yet.
func (w *World) judgeWarmFrom(from core.Offset) {
	c := &w.h.Config[w.process.config]
	if from >= w.log.End()-1 || w.h.Cold() && from >= w.log.Exported() {
		return
	}
	w.refreshView()
	bytes, closed := int64(0), 0
	for i := len(w.view.Extents) - 1; i >= 0; i-- {
		x := &w.view.Extents[i]
		if x.Tier != core.TierHot || x.End <= from {
			break
		}
		if x.End == core.EndNone {
			bytes += w.process.bytes
			continue
		}
		bytes += x.Bytes
		if closed++; closed > c.WarmSegments || bytes > c.WarmBytes {
			w.fail("K14", "the warm tier is meant to hold more than it may")
			return
		}
	}
}
