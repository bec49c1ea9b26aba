package sim

import (
	"varve/core"
	"varve/tiers/disk"
)

// spareName is the file whose space a save of the superblock takes where there is no other.
const spareName = "spare"

// stagesOf returns the stages of a fresh save in which the tmp file is written and renamed.
func stagesOf(e *core.SaveSuper) (writes, renames int) {
	if e.NewLog {
		writes = 2
	}
	return writes, writes + 2
}

// spareLeft judges a save of the superblock that found no space: it took the spare, if there is one
// and no call to it failed. So an open with nothing to rescue, trim and retention need no free byte.
func (w *World) spareLeft(e *core.SaveSuper) {
	if !e.Fresh || w.process.hurt(w) {
		return
	}
	w.names = w.disk.Images(w.names[:0])
	for i := range w.names {
		m := &w.names[i]
		if m.Dir != disk.DirLog || m.Name != spareName || len(m.Kernel) < len(e.Bytes) {
			continue // a short one: slots have grown, or a crash came before its zeros
		}
		for _, b := range m.Kernel[:len(e.Bytes)] {
			if b != 0 {
				return
			}
		}
		w.fail("K19", "a save of the superblock finds no space, and the spare is left")
	}
}
