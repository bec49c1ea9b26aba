package sim

import (
	"bytes"
	"strings"

	"varve/core"
	"varve/core/manifest"
	"varve/sim/fakebucket"
	"varve/tiers/cold"
)

// coldPrefix is where the log's objects are in the bucket.
const (
	coldPrefix   = "log/"
	coldManifest = coldPrefix + manifest.ManifestKey
)

// options are small, so that objects are written and read in several calls.
func (c *coldWorld) options(w *World) cold.Options {
	o := cold.Options{PartBytes: 1 << 20, ReadAheadBytes: 4096, ManifestBytes: 4096}
	if sub(w.h.Seed, 7)&1 == 0 {
		o.PartBytes = partBytesMin
	}
	return o
}

// partBytesMin is the least part of an upload that the simulated bucket takes.
const partBytesMin = 1024

// bucketLatency is how many times a sync a call of the bucket takes.
const bucketLatency = 4

// coldWorld is the cold tier of a world.
type coldWorld struct {
	bucket    *fakebucket.Bucket
	store     *cold.Store
	kept      core.Offset // what the objects held then
	exposed   bool        // the disk was lost since the last open
	elsewhere bool        // and what is opened has a disk of its own

	seen     uint64            // changes of the bucket up to which the rest was read
	there    bool              // a manifest that can be read
	m        manifest.Manifest // it
	listed   bool              // finished was read
	finished []manifest.Segment
	pages    []pageRead // whose segments are in paged
	paged    []manifest.Segment

	view  core.View         // of proven
	page  manifest.PageText // scratch
	key   []byte            // scratch
	keys  []byte            // scratch of objects: each with a line break
	swaps int               // manifests written
	told  []core.Offset     // damage on disk that the log was told of in this life

	expired []sighting // objects that a fault deleted
	looked  []sighting // looks at objects in this life
}

func (c *coldWorld) init(w *World) {
	c.bucket, c.seen = fakebucket.New(), 0
	c.store = cold.NewStore(c.bucket, coldPrefix, w.store, cold.DefaultOptions())
	w.store.SetObjects(c.store)
}

func (c *coldWorld) reset(w *World) {
	w.lanes = core.Uploads
	switch {
	case w.h.Warm():
		w.lanes = core.LaneCount
	case w.h.Cold():
		w.lanes = core.Warm
	}
	c.exposed = false
	w.rival.reset()
	if !w.h.Cold() {
		return
	}
	c.bucket.Reset(fakebucket.Params{Seed: sub(w.h.Seed, 6), PartBytesMin: partBytesMin})
	c.bucket.SetFaults(w.h.Bucket)
	c.swaps, c.told, c.expired = 0, c.told[:0], c.expired[:0]
}

// begin starts a life of the process.
func (c *coldWorld) begin(w *World) {
	c.looked = c.looked[:0]
	if w.h.Cold() {
		c.store.Reset(c.bucket, coldPrefix, w.store, c.options(w))
	}
}

// manifest reads what the bucket really holds, false if there is no manifest.
func (c *coldWorld) manifest() bool {
	if n := c.bucket.Changes(); n != c.seen {
		body, _, there := c.body(append(c.at(), manifest.ManifestKey...))
		c.there = there && manifest.Parse(body, &c.m) == nil
		c.seen, c.listed = n, false
	}
	return c.there
}

// misread reports whether readers may have met what is not in the bucket.
func (c *coldWorld) misread() bool {
	return c.bucket.Marks()&fakebucket.Set(fakebucket.O9Read, fakebucket.O10NotFound, fakebucket.O14Stale) != 0
}

// lose takes the disk away: what is left of the log is what the manifest lists.
func (w *World) lose(e *Event) {
	if !w.h.other() || !w.h.On(SwLose) {
		return
	}
	w.leave(e.A)
	w.cold.elsewhere = false
	w.disk.Lose()
	w.hits = w.hits[:0]
	w.res.Marks.add(MarkDiskLost)
	if w.Trace != nil {
		w.say(TrackWorld, Lost, "the disk is lost; other tiers hold the log up to %d", w.cold.kept)
	}
}

// move lets another host open the log, which takes it over from the bucket. Its own disk is empty, or
// holds what it wrote when it had the log before. What the host before has not exported is lost to it.
// The process there dies, or lives on beside it: see rival.
func (w *World) move(e *Event) {
	if !w.h.other() || !w.h.On(SwMove) {
		return
	}
	lives := e.B > 0 && w.mayLiveOn()
	w.endRival() // it runs where the log is opened now
	if lives {
		w.part(e)
	}
	w.leave(e.A)
	w.cold.elsewhere = true
	w.disk, w.other = w.other, w.disk
	w.disk.SetFaults(w.h.Faults)
	w.disk.Heal()
	w.disk.SetCapacity(w.h.Capacity)
	if w.process.faults {
		w.disk.SetRates(&w.h.Rates)
	}
	w.useDisk()
	w.res.Marks.add(MarkMoved)
	if w.Trace != nil {
		w.say(TrackWorld, Lost, "another host takes over; other tiers hold the log up to %d; the process before lives on: %v", w.cold.kept, lives)
	}
}

// useDisk points what reads a disk to the one of the host that runs the log.
func (w *World) useDisk() {
	w.fs = w.disk.FS(0)
	w.planner.fs = w.disk.FS(2)
	w.planner.store.Reset(w.planner.fs)
	w.attachTap()
}

// leave ends the process of a host whose disk nobody will read when the log is opened next.
func (w *World) leave(delay int64) {
	if w.process.up {
		w.process.delay = delay
		w.fs.SetCallBudget(0, false)
		w.spendBudget()
		w.die(DeathKill)
	}
	w.cold.kept = w.kept()
	w.places = w.places[:0]
	w.struck, w.super.Frontier = bothSlots, 0
	w.cold.exposed = true
	w.check.DiskLost(w.clock.mono, w.cold.kept)
}

// outage makes every call of the bucket fail, or ends that.
func (w *World) outage(e *Event) {
	if !w.h.Cold() || !w.h.On(SwOutage) {
		return
	}
	b, after, away := w.cold.bucket, fakebucket.NoFault, ""
	switch e.A {
	case OutageLost:
		after = fakebucket.O1Before
	case OutageManifest:
		if w.cold.holdsAny() { // else nobody could tell that there was a log
			away = coldManifest
		}
	}
	b.SetDown(outages[e.A])
	b.SetDownAfterLoss(after)
	b.SetAway(away)
	if e.A != OutageOver {
		w.res.Marks.add(MarkOutage)
	}
}

func (w *World) offload(e *Event) {
	if !w.serving() {
		return
	}
	start, committed := w.log.Start(), w.log.Committed()
	before := start + (committed-start)*e.A/1000
	w.check.OffloadCalled(w.clock.mono, before)
	_ = w.log.Offload(w.clock.now(), before)
}

// hurtBucket switches the random faults of the bucket.
func (w *World) hurtBucket(on bool) {
	if !w.h.Cold() {
		return
	}
	var rates fakebucket.Rates
	if on {
		rates = w.h.Refusals
	}
	w.cold.bucket.SetRates(&rates)
}

// healBucket ends all faults of the bucket; what was late lands.
func (w *World) healBucket() {
	if w.h.Cold() {
		w.cold.bucket.Heal()
		w.cold.bucket.Settle()
	}
}

// calmBucket lets who looks from outside the run read the bucket. The function that it returns gives
// the bucket its faults back.
func (w *World) calmBucket() (back func()) {
	if !w.h.Cold() {
		return func() {}
	}
	w.cold.bucket.Pause()
	return w.cold.bucket.Resume
}

// exports reports whether the exporter still has work: a sealed segment that is in no object.
func (w *World) exports() bool {
	if !w.h.Cold() || w.damaged() { // damage stops the export
		return false
	}
	w.refreshView()
	for i := range w.view.Extents {
		x := &w.view.Extents[i]
		if x.End != core.EndNone && x.Damage == 0 && x.End > w.log.Exported() {
			return true
		}
	}
	return false
}

// objects judges K20 in the bucket: every object, and every page, is listed, unless it came late, or its
// writer died or was fenced.
func (w *World) objects() {
	if !w.h.Cold() {
		return
	}
	c := &w.cold
	if !c.manifest() {
		w.fail("K20", "a close leaves no manifest that can be read")
		return
	}
	c.keys = c.keys[:0]
	list := func(all []manifest.Segment) {
		for i := range all {
			if all[i].State != manifest.Lost {
				c.keys = append(all[i].AppendKey(c.keys), '\n')
			}
		}
	}
	list(c.m.Segments)
	for i := range c.m.Pages {
		body, _, there := c.body(c.m.Pages[i].AppendKey(c.at()))
		c.keys = append(append(c.keys, c.key[len(coldPrefix):]...), '\n')
		if there && manifest.ParsePage(body, &c.page) == nil {
			list(c.page.Segments)
		}
	}
	pages := 0
	for i := range c.bucket.Len() {
		name, _, there := c.bucket.At(i)
		name, ours := strings.CutPrefix(name, coldPrefix)
		if !there || !ours || name == manifest.ManifestKey || c.lists(name) {
			continue
		}
		if strings.HasPrefix(name, "pages/") && (pages < w.res.Lives || w.log.Marks().Has(core.MarkPageFailed)) {
			pages++ // each life may end between a page and the swap that names it
			continue
		}
		if c.bucket.Struck(fakebucket.O3Late) == 0 && w.res.Marks.Sim>>MarkRival&1 == 0 {
			w.fail("K20", "an object is in no manifest: "+name)
			return
		}
	}
}

// lists reports whether keys has a key.
func (c *coldWorld) lists(key string) bool {
	for all := c.keys; len(all) > 0; {
		n := bytes.IndexByte(all, '\n')
		if string(all[:n]) == key {
			return true
		}
		all = all[n+1:]
	}
	return false
}

// auditCold judges K12: what the cold tier holds is what the log holds.
func (w *World) auditCold() {
	if !w.h.Cold() || w.damaged() {
		return
	}
	w.refreshView()
	w.coldView = core.View{
		Version: w.view.Version, LogID: w.view.LogID, Start: w.view.Start, HotStart: w.view.HotStart,
		Epoch: w.view.Epoch, Lineage: w.view.Lineage, Extents: w.log.ColdExtents(w.coldView.Extents[:0]),
	}
	end := min(w.log.Exported(), w.log.Committed())
	w.auditView(&w.coldView, end, max(end, w.log.Start()))
	if v := w.check.Violation(); v != nil {
		w.fail("K12", "in the cold tier: "+v.Error())
	}
}
