package topics

import (
	"errors"
	"fmt"

	"varve/core"
)

// Errors of requests. All but ErrUnknown are definite: nothing of the request has happened.
var (
	ErrExists     = errors.New("topics: a topic of that name exists")
	ErrNotFound   = errors.New("topics: no such topic")
	ErrPartitions = errors.New("topics: number of partitions")
	ErrBudget     = errors.New("topics: more partitions than this node may have")
	ErrBusy       = errors.New("topics: another change of this topic is under way")
	ErrChanged    = errors.New("topics: the topic's configuration is another one by now")
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

// UnreadyError says that the log of the catalogue is not ready: nothing is decided by less than all that it
// may hold.
type UnreadyError struct {
	Phase core.Phase
	Err   error // nil: it waits for free space
}

func (e *UnreadyError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("topics: the catalogue is %s: its recovery needs free space on the disk; free some and start again", e.Phase)
	}
	return fmt.Sprintf("topics: the catalogue is %s: %v", e.Phase, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadyError) Unwrap() error { return e.Err }

// UnknownDirError says that there is a directory of an incarnation that the catalogue has not given out:
// it is another node's catalogue, or an older copy of this one's. Nothing was changed.
type UnknownDirError struct {
	Dir  Dir
	Next uint64 // the first incarnation that it has not given out
}

func (e *UnknownDirError) Error() string {
	return fmt.Sprintf("topics: directory %s is unknown to the catalogue, which has given out incarnations below %d: "+
		"it is new, another node's, or an older copy; restore the catalogue that belongs to these directories, or move them away",
		e.Dir, e.Next)
}

// String returns the directory's name below that of the node.
func (d Dir) String() string {
	name := fmt.Sprintf("topics/%s/%d", d.Topic, d.Incarnation)
	if d.Partition < 0 {
		return name
	}
	return fmt.Sprintf("%s/%d", name, d.Partition)
}
