package sim

import (
	"fmt"

	"varve/core"
)

// describe writes a step of an effect into the timeline.
func (w *World) describe(e core.Effect, stage int, f *flight) {
	what := ""
	switch e := e.(type) {
	case *core.Create:
		what = fmt.Sprintf("create %016x base %d", uint64(e.Header.ID), e.Header.Base)
	case *core.Commit:
		what = fmt.Sprintf("commit [%d, %d) at %d, %d bytes, of %016x", e.First, e.End, e.Pos, e.Bytes, uint64(e.Segment))
	case *core.Rollback:
		what = fmt.Sprintf("rollback to %d of %016x", e.Bytes, uint64(e.Segment))
	case *core.Seal:
		what = fmt.Sprintf("seal %016x at %d", uint64(e.Segment), e.Pos)
	case *core.Sync:
		what = fmt.Sprintf("sync %016x for %d", uint64(e.Segment), e.End)
	case *core.SaveSuper:
		what = fmt.Sprintf("save super.%d fresh=%v", e.Slot, e.Fresh)
	case *core.Scan:
		what = fmt.Sprintf("scan %d-%016x whole=%v", e.File.Base, uint64(e.File.ID), e.Whole)
	case *core.Replace:
		what = fmt.Sprintf("replace [%d, %d) by %016x", e.Header.Base, e.Header.End, uint64(e.Header.ID))
	case *core.Prepare:
		what = fmt.Sprintf("prepare %d bytes at %d", e.Bytes, e.Pos)
	case *core.Remove:
		what = fmt.Sprintf("remove %d files, %d names", len(e.Files), len(e.Names))
	default:
		what = fmt.Sprintf("%T", e)[len("*core."):]
	}
	state := "step"
	switch {
	case w.fs.Dead():
		state = "cut short"
	case f.err != nil:
		state = "failed: " + f.err.Error()
	case f.done:
		state = "done"
	}
	w.say("  [lane %d] %s, step %d: %s", e.Lane(), what, stage, state)
}

// sayImages lists what the decoder finds in each file.
func (w *World) sayImages() {
	w.names = w.disk.Images(w.names[:0])
	for i := range w.names {
		m := &w.names[i]
		f, wrong := w.decoder.header(m.Kernel)
		if wrong != "" {
			w.say("  %s: %d bytes, %s", m.Name, len(m.Kernel), wrong)
			continue
		}
		it := walk{d: &w.decoder, f: f, b: m.Kernel, pos: f.sector, base: f.base, chain: f.crc}
		epoch, batches := uint32(0), 0
		for it.next() {
			epoch = it.x.epoch
			batches++
		}
		w.say("  %s: %d bytes, [%d, %d) of epoch %d in %d batches up to byte %d", m.Name, len(m.Kernel), f.base, it.base,
			epoch, batches, it.pos)
	}
}

// sayPlan lists what a plan does with each file.
func (w *World) sayPlan(p *core.Plan) {
	for i := range p.Files {
		f := &p.Files[i]
		w.say("  plan: %d-%016x: %s %s", f.Entry.Base, uint64(f.Entry.ID), f.Fate, f.Why)
	}
}
