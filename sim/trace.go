package sim

import (
	"fmt"

	"varve/core"
)

// say writes a line of the timeline.
func (w *World) say(on Track, kind MomentKind, format string, args ...any) {
	if w.Trace == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(w.Trace, "%12.3f us  life %d  %s\n", float64(w.clock.mono)/1000, w.process.life, text)
	if w.tap != nil {
		w.tap.Moment(&Moment{At: w.clock.mono, Life: int(w.process.life), Track: on, Kind: kind, Text: text}, w.disk)
	}
}

// effectText names an effect and what it is about.
func effectText(e core.Effect) string {
	switch e := e.(type) {
	case *core.Create:
		return fmt.Sprintf("create %016x base %d", uint64(e.Header.ID), e.Header.Base)
	case *core.Commit:
		return fmt.Sprintf("commit [%d, %d) at %d, %d bytes, of %016x", e.First, e.End, e.Pos, e.Bytes, uint64(e.Segment))
	case *core.Rollback:
		return fmt.Sprintf("rollback to %d of %016x", e.Bytes, uint64(e.Segment))
	case *core.Seal:
		return fmt.Sprintf("seal %016x at %d", uint64(e.Segment), e.Pos)
	case *core.Sync:
		return fmt.Sprintf("sync %016x for %d", uint64(e.Segment), e.End)
	case *core.SaveSuper:
		return fmt.Sprintf("save super.%d fresh=%v", e.Slot, e.Fresh)
	case *core.Scan:
		return fmt.Sprintf("scan %d-%016x whole=%v", e.File.Base, uint64(e.File.ID), e.Whole)
	case *core.Replace:
		return fmt.Sprintf("replace [%d, %d) by %016x", e.Header.Base, e.Header.End, uint64(e.Header.ID))
	case *core.Prepare:
		return fmt.Sprintf("prepare %d bytes at %d", e.Bytes, e.Pos)
	case *core.Remove:
		return fmt.Sprintf("remove %d files, %d names", len(e.Files), len(e.Names))
	}
	return fmt.Sprintf("%T", e)[len("*core."):]
}

// describe writes a step of an effect into the timeline.
func (w *World) describe(e core.Effect, stage int, f *flight) {
	state, kind := "step", Stepped
	switch {
	case w.fs.Dead():
		state, kind = "cut short", CutShort
	case f.err != nil:
		state, kind = "failed: "+f.err.Error(), Failed
	case f.done:
		state = "done"
	}
	w.say(trackLane(e.Lane()), kind, "  [lane %d] %s, step %d: %s", e.Lane(), effectText(e), stage, state)
}

// sayImages lists what the decoder finds in each file.
func (w *World) sayImages() {
	w.names = w.disk.Images(w.names[:0])
	for i := range w.names {
		m := &w.names[i]
		f, wrong := w.decoder.header(m.Kernel)
		if wrong != "" {
			w.say(trackLog, Note, "  %s: %d bytes, %s", m.Name, len(m.Kernel), wrong)
			continue
		}
		it := walk{d: &w.decoder, f: f, b: m.Kernel, pos: f.sector, base: f.base, chain: f.crc}
		epoch, batches := uint32(0), 0
		for it.next() {
			epoch = it.x.epoch
			batches++
		}
		w.say(trackLog, Note, "  %s: %d bytes, [%d, %d) of epoch %d in %d batches up to byte %d", m.Name, len(m.Kernel), f.base, it.base,
			epoch, batches, it.pos)
	}
}

// sayPlan lists what a plan does with each file.
func (w *World) sayPlan(p *core.Plan) {
	for i := range p.Files {
		f := &p.Files[i]
		w.say(trackLog, Note, "  plan: %d-%016x: %s %s", f.Entry.Base, uint64(f.Entry.ID), f.Fate, f.Why)
	}
}
