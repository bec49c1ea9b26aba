package topics

import (
	"errors"
	"fmt"
)

// Errors of requests. All but ErrUnknown are definite: nothing of the request has happened.
var (
	ErrExists     = errors.New("topics: a topic of that name exists")
	ErrNotFound   = errors.New("topics: no such topic")
	ErrPartitions = errors.New("topics: number of partitions")
	ErrBudget     = errors.New("topics: more partitions than this node may have")
	ErrBusy       = errors.New("topics: another change of this topic is under way")
	ErrNotReady   = errors.New("topics: the catalogue is not open")
	ErrClosed     = errors.New("topics: closed")

	// ErrUnknown ends a request whose entry may or may not be in the catalogue. What it holds once it is
	// open again is the answer.
	ErrUnknown = errors.New("topics: outcome unknown; the catalogue is opened again, and its topics are the answer")
)

// CatalogueError says which entry of the catalogue makes no sense. Nothing is opened then.
type CatalogueError struct {
	Offset int64
	Why    string
}

func (e *CatalogueError) Error() string {
	return fmt.Sprintf("topics: catalogue, entry %d: %s; run: varve log read --dir DIR/catalogue", e.Offset, e.Why)
}
