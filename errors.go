package varve

import (
	"errors"
	"fmt"

	"varve/core"
)

// Errors of an append. All but ErrUnknown are definite: the batch is not in the log and never will
// be.
var (
	ErrUnknown     = core.ErrUnknown     // it may or may not be in the log; look after reopening
	ErrOverloaded  = core.ErrOverloaded  // more than Options.PendingBytes are waiting for the disk
	ErrNoSpace     = core.ErrNoSpace     // the disk is full, or nearly (Options.MinFreeBytes)
	ErrTooLarge    = core.ErrTooLarge    // larger than Options.MaxBatchBytes
	ErrEmpty       = core.ErrEmpty       // no records
	ErrPoisoned    = core.ErrPoisoned    // a sync failed; close the log and open it again
	ErrClosed      = core.ErrClosed      // Close was called
	ErrNotOpen     = core.ErrNotOpen     // recovery waits for free space
	ErrWriteFailed = core.ErrWriteFailed // the write failed and was undone
	ErrSequence    = core.ErrSequence    // a producer left out a sequence number
	ErrFenced      = core.ErrFenced      // a newer epoch of the producer has appended
	ErrOutOfRange  = core.ErrOutOfRange  // an offset that the log has not reached
	ErrTierDown    = core.ErrTierDown    // a tier has to be asked first and does not answer, or the warm one is behind
	ErrNoColdTier  = core.ErrNoColdTier  // Offload without Options.Cold
	ErrOwnerFenced = core.ErrOwnerFenced // another process opened the log from a tier: it owns it now
)

// ErrInUse says that another process has the directory open.
var ErrInUse = errors.New("varve: directory is in use by another process")

// Typed errors of reading and opening.
type (
	// CorruptError is damage to committed bytes.
	CorruptError = core.CorruptError
	// LostSuffixError says that committed records are missing at the end.
	LostSuffixError = core.LostSuffixError
	// TrimmedError says that the offset asked for existed and is gone.
	TrimmedError = core.TrimmedError
	// DivergedError says that a reader's last record is not in this log.
	DivergedError = core.DivergedError
	// TierError says that an offset is in a tier that does not answer; try again.
	TierError = core.TierError
	// RefusedError says why a directory cannot be opened as it is.
	RefusedError = core.RefusedError
	// IOError is an I/O error, never taken for damage or for an end.
	IOError = core.IOError
)

// cancelled is the error of an append whose caller stopped waiting.
func cancelled(s Span, cause error) error {
	return fmt.Errorf("varve: append of [%d, %d) no longer waited for: %w: %w", s.First, s.End, ErrUnknown, cause)
}
