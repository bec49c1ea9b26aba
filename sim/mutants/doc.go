// Package mutants plants bugs in the product, one at a time, so that the simulator can be measured by
// what it finds.
//
// A mutant is a text file in the folder list. It names a source file, the old text, which must stand
// there exactly once, and the new text. Build builds a program with the new text by means of an
// overlay of the go command: no file of the tree changes, and what ships has no hook for it.
//
// The format:
//
//	what: one sentence: what the bug does
//	breaks: K1 K11               the properties that it breaks
//	needs: D17.clean             optional: faults and checkers without which it is hardly found
//	needs: K6 beside K17         the same once others, which find it too, are left out as well
//	equivalent: the proof        only of one that no client can tell from the right code
//	 more of the proof
//	ops: 50                      optional: operations of each seed
//	profile: cold                optional: seeds with a bucket; without it the disk alone
//
//	== core/tail.go
//	-- old
//		w.Sync = l.cfg.Sync == segment.OnCommit
//	-- new
//		w.Sync = false
//	-- end
//
// A file may have several sections and a section several pairs. Old and new text are whole lines.
package mutants
