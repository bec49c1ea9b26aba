package core

import (
	"errors"
	"fmt"

	"varve/core/manifest"
	"varve/core/segment"
)

// Errors of an append. All but ErrUnknown are definite: the batch is not in the log and never will
// be.
var (
	ErrOverloaded  = errors.New("core: too many bytes pending; wait for acks")
	ErrNoSpace     = errors.New("core: no space left on device for appends")
	ErrTooLarge    = errors.New("core: batch larger than max_batch_bytes")
	ErrEmpty       = errors.New("core: batch without records")
	ErrPoisoned    = errors.New("core: poisoned by a failed sync; reopen the log")
	ErrClosed      = errors.New("core: log is closed")
	ErrNotOpen     = errors.New("core: log is still opening")
	ErrWriteFailed = errors.New("core: write failed and was rolled back")
	ErrSequence    = errors.New("core: producer sequence out of order")
	ErrFenced      = errors.New("core: producer epoch is old")
	ErrOutOfRange  = errors.New("core: offset beyond the committed end")
	ErrBadKind     = errors.New("core: unknown payload kind")
	ErrNoColdTier  = errors.New("core: no cold tier is configured")
	ErrTierDown    = errors.New("core: a tier that may hold committed records does not answer; appends wait for it")

	// ErrUnknown ends an append that may or may not be in the log: a sync failed or the log went
	// away under it. Look at the log after reopening, or send it again with a producer sequence.
	ErrUnknown = errors.New("core: outcome unknown")
)

// CorruptError is damage to bytes that were committed, or that the log cannot tell from committed
// ones. Nothing is served or cut in its place.
type CorruptError struct {
	Segment  segment.ID
	Base     Offset // base offset of the segment file
	Pos      int64  // byte position in the file; -1: the file as a whole
	Offset   Offset // first record affected
	End      Offset // first record after the damage, 0 if unknown
	Expected string
	Found    string
	Tier     Tier   // where the file or object is
	Object   Object // cold: the object
	Lost     bool   // a repair declared [Offset, End) lost: no damage any more, and nothing to wait for
}

// Name returns the name of the damaged file or the key of the object, "" where none is left that
// should hold the offset.
func (e *CorruptError) Name() string {
	switch {
	case e.Tier == TierCold:
		s := manifest.Segment{Base: e.Object.Base, End: e.Object.End, Epoch: e.Object.Epoch, Attempt: e.Object.Attempt}
		return string(s.AppendKey(nil))
	case e.Segment == 0:
		return ""
	}
	return segment.Name(e.Base, e.Segment)
}

// Place returns file and byte as a person reads them.
func (e *CorruptError) Place() string {
	switch {
	case e.Segment == 0:
		return "the directory"
	case e.Pos < 0:
		return e.Name()
	}
	return fmt.Sprintf("%s at byte %d", e.Name(), e.Pos)
}

func (e *CorruptError) Error() string {
	next := "varve log check"
	if e.Tier == TierCold {
		next = "varve cold scrub"
	}
	return fmt.Sprintf("core: damage in %s, offset %d: expected %s, found %s; run: %s", e.Place(), e.Offset, e.Expected, e.Found, next)
}

// LostSuffixError says that evidence proves records which no file holds.
type LostSuffixError struct {
	End      Offset // what was found ends here
	Evidence Offset // what was proven durable ends here

	Segment segment.ID // the file that should hold the first of them; 0: there is none
	Base    Offset     // base offset of that file
	Pos     int64      // byte position in it
}

func (e *LostSuffixError) Error() string {
	ends := fmt.Sprintf("files end at %d", e.End)
	if e.Segment != 0 {
		ends = fmt.Sprintf("%s ends at byte %d with offset %d", segment.Name(e.Base, e.Segment), max(e.Pos, 0), e.End)
	}
	return fmt.Sprintf("core: committed records [%d, %d) are missing: %s, evidence reaches %d; run: varve log check",
		e.End, e.Evidence, ends, e.Evidence)
}

// TrimmedError says that the offset asked for existed and is gone.
type TrimmedError struct{ Requested, Start Offset }

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("core: offset %d was trimmed; the log starts at %d", e.Requested, e.Start)
}

// TierError says that an offset is in a tier that does not answer. Nothing is lost: try again. In the
// warm tier alone records are not read; an open copies them to the disk first.
type TierError struct {
	Tier   Tier
	Offset Offset
}

func (e *TierError) Error() string {
	if e.Tier == TierWarm {
		return fmt.Sprintf("core: offset %d is in the warm tier alone; the next open for appends copies it to the disk", e.Offset)
	}
	return fmt.Sprintf("core: offset %d is in the %s tier, which does not answer", e.Offset, e.Tier)
}

// DivergedError says that the reader's last record is not in this log: a power loss gave its
// offset to another record, under a newer epoch.
type DivergedError struct {
	Position Position
	Epoch    Epoch  // that owns the offset before Position now
	First    Offset // where that epoch begins
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("core: position %d of epoch %d diverged: epoch %d begins at offset %d",
		e.Position.Offset, e.Position.Epoch, e.Epoch, e.First)
}

// RefusedError says that a directory cannot be opened as it is, and why.
type RefusedError struct {
	Name string // file, or "" for the directory
	Why  string
	Next string // what to do
}

func (e *RefusedError) Error() string {
	name := e.Name
	if name == "" {
		name = "directory"
	}
	return fmt.Sprintf("core: %s refused: %s; %s", name, e.Why, e.Next)
}

// IOError is an I/O error met while opening. It is never taken for damage or for an end.
type IOError struct {
	Effect string
	Err    error
}

func (e *IOError) Error() string { return fmt.Sprintf("core: %s: %v", e.Effect, e.Err) }

// Unwrap returns the cause.
func (e *IOError) Unwrap() error { return e.Err }
