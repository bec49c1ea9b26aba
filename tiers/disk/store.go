package disk

import (
	"errors"
	"fmt"
	"sync"

	"varve/core"
	"varve/core/segment"
)

// Store carries out effects on one log directory. Effects of different lanes may be run by
// different goroutines at once, effects of one lane only one after the other, as the core issues
// them. Fetch and OffsetForTime may be called from any number of goroutines, each with its own
// Handle. No lock is held during I/O.
type Store struct {
	fs      FS
	objects Objects // of the cold tier; nil: there is none
	streams Streams

	mu       sync.Mutex // guards active and the names
	active   activeFile
	names    map[string]string
	segments []nameSlot
	slotBits uint8

	// Scratch of the Hot lane.
	hot struct {
		tmp     File // the unfinished file of the effect in flight
		super   [2]File
		spare   int64 // bytes of the directory's spare, noSpare if there is none
		entries []Entry
		indexes []core.FileEntry
		buf     []byte
		bufs    [1][]byte
		scanner segment.Scanner
		rewrite segment.Rewriter
		batch   segment.Batch // of the source
		footer  segment.FooterBuilder
	}
	tail struct { // scratch of the Tail lane
		bufs [1][]byte
	}
}

// activeFile is the segment that the Tail lane appends to. Its handle stays open from Create to
// Seal; all other files are opened for each use.
type activeFile struct {
	id   segment.ID
	file File
}

// namesMax bounds the names that are kept; beyond it they are forgotten and made again. It is no more
// than what caches hold: to find one name among many costs more than to make it.
const namesMax = 1 << 12

// Errors of the store itself.
var (
	errShortWrite = errors.New("disk: short write")
	errShortRead  = errors.New("disk: short read")
	errNotActive  = errors.New("disk: effect on a segment that is not open for appends")
)

// NewStore returns a store on a log directory, which need not exist yet.
func NewStore(fs FS) *Store {
	s := &Store{names: make(map[string]string), segments: make([]nameSlot, 1<<nameSlotBitsMin), slotBits: nameSlotBitsMin}
	s.Reset(fs)
	return s
}

// Reset points the store at another directory, or at another life of the same one. Files that are
// still open are forgotten, not closed: call Close first where that matters.
func (s *Store) Reset(fs FS) {
	s.fs = fs
	s.active = activeFile{}
	s.hot.tmp = nil
	s.hot.super = [2]File{}
	s.hot.spare = noSpare
}

// Close closes what the store keeps open. No effect may be in flight.
func (s *Store) Close() error {
	s.mu.Lock()
	files := [...]File{s.active.file, s.hot.tmp, s.hot.super[0], s.hot.super[1]}
	s.mu.Unlock()
	s.Reset(s.fs)
	var errs error
	for _, f := range files {
		if f != nil {
			errs = errors.Join(errs, f.Close())
		}
	}
	return errs
}

// Run carries out an effect.
func (s *Store) Run(e core.Effect) error {
	for {
		done, err := s.Step(e)
		if done || err != nil {
			return err
		}
	}
}

// Step carries out the next step of an effect: Result.Stage says which. Done means that the effect
// is complete. After an error it has ended too: Result says in which step and how.
func (s *Store) Step(e core.Effect) (done bool, err error) {
	r := e.Result()
	if r.Stage == 0 {
		r.Failed, r.NoSpace, r.FreeBytes = core.StepNone, false, -1
	}
	switch e := e.(type) {
	case *core.Create:
		done, err = s.create(r, e)
	case *core.Commit:
		done, err = s.commit(r, e)
	case *core.Rollback:
		done, err = s.rollback(r, e)
	case *core.Seal:
		done, err = s.seal(r, e)
	case *core.Sync:
		done, err = true, s.sync(r, e)
	case *core.List:
		done, err = true, s.list(r, e)
	case *core.LoadSuper:
		done, err = true, s.loadSuper(r, e)
	case *core.SaveSuper:
		done, err = s.saveSuper(r, e)
	case *core.Scan:
		done, err = true, s.scan(r, e)
	case *core.Prepare:
		done, err = true, s.prepare(r, e)
	case *core.Replace:
		done, err = s.replace(r, e)
	case *core.SaveIndex:
		done, err = s.saveIndex(r, e)
	case *core.Remove:
		done, err = s.remove(r, e)
	case *core.Quarantine:
		done, err = s.quarantine(r, e)
	case *core.Space:
		done, err = true, s.space(r, e)
	default:
		panic(fmt.Sprintf("disk: unknown effect %T", e))
	}
	r.Stage++
	return done, err
}

// failed records where an effect failed. The errors of an FS name file and call already.
func failed(r *core.Result, step core.Step, err error) error {
	r.Failed = step
	r.NoSpace = errors.Is(err, ErrNoSpace)
	return err
}

// free notes the free space; not knowing it fails nothing.
func (s *Store) free(r *core.Result) {
	if n, err := s.fs.Free(); err == nil {
		r.FreeBytes = n
	}
}

// syncDir is the step that makes a directory's names durable.
func (s *Store) syncDir(r *core.Result, dir string) error {
	if err := s.fs.SyncDir(dir); err != nil {
		return failed(r, core.StepSync, err)
	}
	return nil
}

// activeOf returns the open file of the active segment.
func (s *Store) activeOf(r *core.Result, id segment.ID) (File, error) {
	s.mu.Lock()
	a := s.active
	s.mu.Unlock()
	if a.file == nil || a.id != id {
		return nil, failed(r, core.StepOpen, errNotActive)
	}
	return a.file, nil
}

// setActive makes a file the active one, or none, and returns the one before it.
func (s *Store) setActive(id segment.ID, f File) File {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.active.file
	s.active = activeFile{id: id, file: f}
	return old
}

// writeAll writes one buffer whole.
func writeAll(f File, scratch *[1][]byte, b []byte, pos int64) error {
	scratch[0] = b
	n, err := f.WriteAt(scratch[:], pos)
	scratch[0] = nil
	if err == nil && n != len(b) {
		err = errShortWrite
	}
	return err
}
