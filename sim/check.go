package sim

import (
	"errors"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/model"
	"varve/tiers/disk"
)

// audit reads all that the log holds, at one instant, with a process of its own.
func (w *World) audit() {
	w.refreshView()
	committed := w.log.Committed()
	if w.h.Warm() { // what waits for the warm tier after an open is there all the same
		committed = w.log.End()
	}
	w.auditView(&w.view, committed, w.check.End())
}

// auditView reads all that a view promises.
func (w *World) auditView(v *core.View, committed, end core.Offset) {
	w.disk.Pause()
	defer w.disk.Resume()
	defer w.calmBucket()()
	defer w.calmServer()()
	now, c := w.clock.mono, &w.auditor.cursor
	w.check.AuditBegin(now)
	next := w.log.Start()
	c.Reset(core.Position{Offset: next})
	for {
		f, err := c.Next(v, committed, 1<<16)
		if err != nil {
			if next = w.auditDamage(err, next); next < 0 {
				break
			}
			c.Reset(core.Position{Offset: next})
			continue
		}
		if f == nil {
			break
		}
		if f.Pos == 0 && !f.NoIndex && f.Extent.Index == core.IndexCore {
			if pos, _, ok := w.log.Locate(f.Extent.Segment, f.From); ok {
				f.Pos = pos
			}
		}
		if err := c.Complete(f, w.planner.store.Fetch(f, &w.auditor.handle)); err != nil {
			if !w.disk.Marks().Has(faultfs.D14ReadBad) {
				w.fail("K3", "an audit could not read: "+err.Error())
			}
			_ = w.auditor.handle.Close()
			return // with a sector unreadable for good
		}
		for b, ok := c.Batch(); ok; b, ok = c.Batch() {
			next = w.auditBatch(&b, next)
		}
	}
	_ = w.auditor.handle.Close()
	w.check.AuditEnd(now, end)
}

func (w *World) auditBatch(b *core.CursorBatch, next core.Offset) core.Offset {
	id := w.identify(b.Payload, b.Records)
	for i := range int64(b.Records) {
		if b.Base+i < next {
			continue
		}
		value := model.Value(0)
		if id != 0 {
			value = model.MakeValue(id, int(i))
		}
		w.check.AuditRecord(w.clock.mono, b.Base+i, b.Epoch, value)
	}
	return b.End()
}

// auditDamage takes an error of the audit's cursor and returns where to go on, -1 for nowhere.
func (w *World) auditDamage(err error, next core.Offset) core.Offset {
	var corrupt *core.CorruptError
	if !errors.As(err, &corrupt) {
		w.fail("K3", "an audit met an error: "+err.Error())
		return -1
	}
	if w.Trace != nil {
		w.say(trackLog, Note, "audit: %v", err)
	}
	end := corrupt.End
	if end <= next || end > w.log.Committed() {
		end = next + 1 // how far it reaches is not known: look behind each record
	}
	w.wildDamage()
	if w.stage == stageClosing && w.unhealed(next, end) {
		w.fail("K11", "the log was told of damage, whole objects hold the records, and it is not healed: "+err.Error())
	}
	w.check.AuditDamage(w.clock.mono, next, end)
	return end
}

// planner plans a second recovery of the directory as it is, and changes nothing: K10.
type planner struct {
	w     *World
	log   *core.Log
	store *disk.Store
	fs    *faultfs.FS
	view  core.View
}

func (p *planner) init(w *World) {
	p.w, p.log, p.fs = w, new(core.Log), w.disk.FS(2)
	p.store = disk.NewStore(p.fs)
	p.store.SetObjects(w.cold.store)
	p.store.SetStreams(w.warm.look)
}

// plan makes the plan; nil if the log does not get that far.
func (p *planner) plan() *core.Plan {
	w := p.w
	w.disk.Pause()
	defer w.disk.Resume()
	defer w.calmBucket()()
	defer w.calmServer()()
	cfg := w.h.Config[w.process.config]
	cfg.ReadOnly = true
	now := w.clock.now()
	if err := p.log.Reopen(cfg, now); err != nil {
		w.fail("config", err.Error())
		return nil
	}
	p.store.Reset(p.fs)
	if w.h.Warm() {
		w.warm.look.Reset(p.store)
	}
	for {
		if e := p.log.Next(now, core.Hot); e != nil {
			p.log.Complete(now, e, p.store.Run(e))
			continue
		}
		if e := p.log.Next(now, core.Warm); e != nil {
			p.log.Complete(now, e, w.warm.look.Run(e))
			continue
		}
		e := p.log.Next(now, core.Catalogue)
		if e == nil {
			break
		}
		p.log.Complete(now, e, w.cold.store.Run(e))
	}
	if p.log.Phase() != core.Planned {
		if !w.damaged() && !w.anotherThere() {
			w.fail("K10", "a second recovery would end in "+p.log.Phase().String()+": "+p.log.Err().Error())
		}
		return nil
	}
	return p.log.Plan()
}

// again judges K10 right after a recovery, before anything is appended: a second one has nothing to
// do and keeps the same content.
func (p *planner) again() {
	w := p.w
	plan := p.plan()
	if plan == nil {
		return
	}
	w.res.Marks.add(MarkSecondPlan)
	l := w.log
	switch {
	case w.damaged():
	case w.h.Warm() && p.log.Start() > l.Start(): // an entry announces a trim that the superblock does not have yet
	case w.h.Cold() && plan.HotStart > l.HotStart(): // files leave, and one slot has that already
	case !plan.Empty():
		w.fail("K10", "a second recovery would change something")
		if w.Trace != nil {
			w.sayPlan(plan)
		}
	case p.log.Start() != l.Start() || p.log.End() != l.End():
		w.fail("K10", "a second recovery would keep another span")
	case p.log.Frontier() != l.End():
		w.fail("K10", "the recovered end was not saved before it was served")
	default:
		p.sameContent()
	}
}

func (p *planner) sameContent() {
	w := p.w
	w.refreshView()
	p.log.FillView(&p.view)
	a, b := w.view.Extents, p.view.Extents
	if len(a) != len(b) {
		w.fail("K10", "a second recovery would serve other extents")
		return
	}
	for i := range a {
		if a[i].First != b[i].First || a[i].End != b[i].End || a[i].Segment != b[i].Segment || a[i].Epoch != b[i].Epoch {
			w.fail("K10", "a second recovery would serve an extent from another file")
			return
		}
	}
}

// clean judges the directory after a clean close: nothing to recover, nothing left over.
func (p *planner) clean() {
	w := p.w
	if w.process.hurt(w) || w.damaged() {
		return
	}
	plan := p.plan()
	if plan == nil {
		return
	}
	switch {
	case !plan.Empty():
		w.fail("K20", "a clean close left something to recover")
	case plan.End != w.check.End() || plan.Evidence != plan.End:
		w.fail("K20", "after a clean close the frontier is not the end")
	case plan.Torn:
		w.fail("K20", "a clean close left a torn tail")
	}
	if w.Trace != nil {
		w.sayPlan(plan)
	}
}

// leftovers judges K20: the names in the directory.
func (w *World) leftovers() {
	if w.process.hurt(w) {
		return
	}
	w.objects()
	w.names = w.disk.Images(w.names[:0])
	for i := range w.names {
		m := &w.names[i]
		if m.Dir != disk.DirLog || m.Name == "lock" || m.Name == "super.0" || m.Name == "super.1" || m.Name == spareName {
			continue
		}
		if _, _, _, ok := segment.ParseName(m.Name); !ok {
			w.fail("K20", "a close left "+m.Name)
		}
	}
}

// hurt reports whether a call failed in this life, so that work may have been put off.
func (p *process) hurt(w *World) bool { return w.disk.Counts().Injected != p.injected }

// decodeImages judges K22: whatever the device is known to hold must be found in the files by a
// decoder that shares no code with the log.
func (w *World) decodeImages() {
	if w.h.Damaging() || w.cold.exposed {
		return
	}
	start, end := w.check.Start(), w.check.ProvenEnd()
	if end <= start {
		return
	}
	n := int(end - start)
	if cap(w.found) < n {
		w.found = make([]bool, 2*n)
	}
	found := w.found[:n]
	clear(found)
	w.names = w.disk.Images(w.names[:0])
	for i := range w.names {
		m := &w.names[i]
		if m.Dir != disk.DirLog || len(m.Name) < 4 || m.Name[len(m.Name)-4:] != ".seg" {
			continue
		}
		f, wrong := w.decoder.header(m.Kernel)
		if wrong != "" {
			continue
		}
		it := walk{d: &w.decoder, f: f, b: m.Kernel, pos: f.sector, base: f.base, chain: f.crc}
		for it.next() {
			w.foundBatch(&it.x, start, end, found)
		}
	}
	held := core.Offset(0)
	if w.h.Cold() && w.cold.manifest() {
		held = w.cold.m.Exported()
	}
	for i := range found {
		if !found[i] && start+int64(i) >= held {
			w.fail("K22", "an independent decoder does not find a record that the device holds")
			if w.Trace != nil {
				w.say(trackLog, Note, "offset %d of [%d, %d) is in no file", start+int64(i), start, end)
				w.sayImages()
			}
			return
		}
	}
}

// foundBatch notes the records of a batch that are those which the log must hold.
func (w *World) foundBatch(x *decoded, start, end int64, found []bool) {
	value, epoch := w.check.At(max(x.base, start))
	if x.end <= start || x.base >= end || epoch != x.epoch {
		return
	}
	id := w.identify(x.payload, uint32(x.end-x.base))
	if id == 0 || value.Op() != id {
		return
	}
	for o := max(x.base, start); o < min(x.end, end); o++ {
		found[o-start] = true
	}
}

// rot flips bits at rest, and tells the checker which records that damages.
func (w *World) rot(e *Event) {
	if !w.strikes(faultfs.D7Rot) {
		return
	}
	w.names = w.disk.Images(w.names[:0])
	if len(w.names) == 0 {
		return
	}
	m := w.names[(e.A*int64(len(w.names)-1)+500)/1000]
	if m.Dir != disk.DirLog || len(m.Device) == 0 || m.Name == "lock" {
		return
	}
	slot := slotOf(m.Name)
	for range e.B {
		size := int64(len(m.Device))
		if slot >= 0 { // padding is no target: it proves nothing
			size = min(size, superUsed)
		}
		pos := w.rng.Below(size)
		first, end, last := w.recordsAt(&m, pos)
		if !w.disk.RotAt(m.Name, pos, uint8(w.rng.Below(8))) {
			continue
		}
		w.res.Marks.add(MarkRot)
		if slot >= 0 {
			w.struck |= 1 << slot
			if e, ok := w.flights[core.Hot].effect.(*core.SaveSuper); ok && e.Slot == slot {
				w.spoiled |= 1 << slot
			}
		}
		if w.Trace != nil {
			w.say(TrackWorld, Note, "rot in %s at byte %d: records [%d, %d), [%d, %d) may go with them", m.Name, pos, first, end, end, last)
		}
		if end > first {
			w.check.DamageInjected(w.clock.mono, first, end, end > w.evidence)
			w.hits = append(w.hits, hit{first, end})
			w.check.DamageInjected(w.clock.mono, end, last, true)
			if n := len(w.places); n > 0 && w.places[n-1].end == last {
				w.tainted = w.places[n-1].segment
			}
		}
	}
}

// strikes reports whether an event may make this fault strike: one that damages what was proven has to
// be switched on, because from the switch checkers know what to excuse.
func (w *World) strikes(f faultfs.Fault) bool { return !damage.Has(f) || w.h.Faults.Has(f) }

// superUsed is about how much of a superblock slot is no padding.
const superUsed = 160

// slotOf returns which superblock slot a name is, -1 if none.
func slotOf(name string) int {
	switch name {
	case "super.0":
		return 0
	case "super.1":
		return 1
	}
	return -1
}

const bothSlots = 3

// oneSlotIsWhole reports whether nothing but rot struck and one superblock slot is whole for sure: it
// says what counts. A save makes its slot whole; rot, beside the save too, a save that failed and one
// that a death cut short spoil it.
func (w *World) oneSlotIsWhole() bool { return !w.wild() && w.struck != bothSlots }

// supers notes what an effect says of the superblock: a load when it is complete, a save when its last
// step is carried out or when it fails or is cut short.
func (w *World) supers(e core.Effect, failed bool) {
	switch e := e.(type) {
	case *core.SaveSuper:
		bit := uint8(1) << e.Slot
		w.struck &^= bit
		if failed || w.spoiled&bit != 0 {
			w.struck |= bit
		}
		w.spoiled &^= bit
	case *core.LoadSuper:
		if w.wild() && !failed {
			w.readSuper(e)
		}
	}
}

// recordsAt returns the records at a position of a file, none if it is padding, a footer or no
// segment, and the end of the records behind them in the file: a reader may not find those any
// more, because batches follow each other. It also finds the greatest frontier on the device.
func (w *World) recordsAt(m *faultfs.Image, pos int64) (first, end, last int64) {
	w.findEvidence()
	it, ok := w.walkImage(m, m.Kernel)
	for ok && (it.next() || it.resync()) {
		if it.x.pos <= pos && pos < it.pos {
			first, end = it.x.base, it.x.end
		}
		last = it.x.end
	}
	return first, end, last
}

// hit is a span of records that rot has struck.
type hit struct{ first, end core.Offset }

// findEvidence looks for the greatest frontier that survives. The superblock's is left out: it may
// be struck too, and a smaller evidence only excuses more.
func (w *World) findEvidence() {
	w.evidence = 0
	for i := range w.names {
		it, ok := w.walkImage(&w.names[i], w.names[i].Device)
		for ok && (it.next() || it.resync()) {
			w.evidence = max(w.evidence, it.x.frontier)
		}
	}
}

// excuse excuses rot above the evidence that is left when a process opens the log: what proved the
// struck records durable may have been struck since.
func (w *World) excuse() {
	if len(w.hits) == 0 {
		return
	}
	w.names = w.disk.Images(w.names[:0])
	w.findEvidence()
	for _, h := range w.hits {
		if h.end > w.evidence {
			w.check.DamageInjected(w.clock.mono, h.first, h.end, true)
		}
	}
}

// cutEvidence judges K11 where nobody knows what the disk lost: a log that opens does not end below
// a frontier that one of its files states. (Elsewhere the checker knows what is owed.)
func (w *World) cutEvidence() {
	if !w.wild() {
		return
	}
	if m := w.log.Marks(); m.Has(core.MarkTakenOver) || m.Has(core.MarkRebuild) {
		return // the manifest is newer than what is left of the superblock
	}
	if w.super.Frontier > w.log.End() {
		w.fail("K11", "a log was opened below the frontier that its superblock states")
	}
	w.names = w.disk.Images(w.names[:0])
	w.refreshView()
	for i := range w.names {
		m := &w.names[i]
		it, ok := w.walkImage(m, m.Kernel)
		if !ok || m.Dir != disk.DirLog || m.Name != w.store.SegmentName(it.f.base, segment.ID(it.f.id)) {
			continue
		}
		for it.next() || it.resync() {
			if it.x.epoch == it.f.epoch && min(it.x.frontier, w.owns(it.x.epoch)) > w.log.End() {
				w.fail("K11", "a log was opened below a frontier that one of its files states")
			}
		}
	}
}

// readSuper notes the superblock that an open found.
func (w *World) readSuper(e *core.LoadSuper) {
	w.super.Frontier, w.super.Sequence = 0, 0
	for _, slot := range e.Slots {
		s := &w.slot
		if segment.ReadSuper(slot, s) == nil && s.Sequence > w.super.Sequence {
			w.super.Frontier, w.super.Sequence = s.Frontier, s.Sequence
		}
	}
}

// owns returns where the offsets end that an epoch owns, or any before it.
func (w *World) owns(e core.Epoch) core.Offset {
	for _, l := range w.view.Lineage {
		if l.Epoch > e && l.Epoch < w.log.Epoch() {
			return l.First
		}
	}
	return core.EndNone
}

// walkImage begins a walk through a segment file; false if it is none.
func (w *World) walkImage(m *faultfs.Image, b []byte) (walk, bool) {
	f, wrong := w.decoder.header(b)
	if wrong != "" {
		var ok bool
		if f, ok = w.decoder.byName(m.Name, int64(w.h.Config[0].SectorBytes)); !ok {
			return walk{}, false
		}
	}
	return walk{d: &w.decoder, f: f, b: b, pos: f.sector, base: f.base, chain: f.crc}, true
}

// checkTime judges a look-up by time: every record before the place it names is older.
func (w *World) checkTime(where int64) {
	if len(w.view.Extents) == 0 || len(w.walls) == 0 {
		return
	}
	x := &w.view.Extents[(where*int64(len(w.view.Extents)-1)+500)/1000]
	t := w.walls[(where*int64(len(w.walls)-1))/1000]
	base, active := w.log.LocateTime(x.Segment, t)
	if !active {
		pos, at, err := w.store.OffsetForTime(x, w.view.LogID, t, &w.readers[clientsMax].handle)
		if err != nil || w.fs.Dead() {
			return
		}
		if base = at; base < x.Base || pos < x.DataPos {
			w.fail("K17", "a look-up by time left its segment")
		}
	}
	for o := max(x.First, w.log.Start()); o < min(base, int64(len(w.walls))); o++ {
		if w.walls[o] >= t && !w.h.Damaging() {
			w.fail("K17", "a look-up by time passed over a record that is not older")
			return
		}
	}
}
