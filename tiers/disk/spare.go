package disk

import (
	"errors"
	"io"

	"varve/core"
)

// spareName is a file of zeros as long as a superblock. Its blocks are what the first save of a life
// takes on a disk without a free byte: an open that has nothing to rescue, trim and retention need
// no other space, and give some back.
const spareName = "spare"

// noSpare is the length of a spare that is not there.
const noSpare = -1

// errNotSpare says that the spare is something else.
var errNotSpare = errors.New("disk: the spare of a superblock is not all zeros")

// writeSpare makes the tmp file of a slot out of the spare, and reports whether that went well.
//
// A power loss may undo one half of a rename, so that the spare's name is another name of a slot.
// That must not be written over: it is no spare, which shows, because what a slot holds was written
// after the name had gone.
func (s *Store) writeSpare(name string, content []byte) bool {
	if s.hot.spare == noSpare {
		return false
	}
	f, err := s.fs.Open(spareName, Write)
	if err != nil {
		if errors.Is(err, ErrNotExist) {
			s.hot.spare = noSpare
		}
		return false
	}
	switch err = s.isSpare(f, len(content)); {
	case errors.Is(err, errNotSpare):
		s.removeSpare()
	case err == nil:
		if err = s.fs.Rename(spareName, s.tmpName(name)); err == nil {
			s.hot.spare = noSpare
			s.hot.tmp = f
			if writeAll(f, &s.hot.bufs, content, 0) == nil {
				return true
			}
			s.dropTmp(name)
			return false
		}
	}
	_ = f.Close()
	return false
}

// isSpare reads n bytes of what should be the spare.
func (s *Store) isSpare(f File, n int) error {
	b := grow(s.hot.buf[:0], n)
	s.hot.buf = b
	if _, err := f.ReadAt(b, 0); errors.Is(err, io.EOF) {
		return errNotSpare
	} else if err != nil {
		return err
	}
	for _, c := range b {
		if c != 0 {
			return errNotSpare
		}
	}
	return nil
}

// removeSpare removes the name alone: it may be another name of a slot.
func (s *Store) removeSpare() {
	if s.fs.Remove(spareName) == nil {
		s.hot.spare = noSpare
	}
}

// makeSpare makes a new spare where there is none as long as the slot that was just written: slots
// grow with the lineage. Without space there is none until a later save; its name becomes durable
// with that of the slot.
func (s *Store) makeSpare(r *core.Result, n int64) error {
	if s.hot.spare >= n {
		return nil
	}
	if s.hot.spare != noSpare {
		s.removeSpare()
	}
	f, err := s.fs.Open(spareName, Create)
	if err != nil {
		return nil
	}
	err = f.WriteZeros(0, n)
	if err == nil {
		if err = f.Sync(); err != nil {
			_ = f.Close()
			return failed(r, core.StepSync, err)
		}
		s.hot.spare = n
	}
	_ = f.Close()
	if err != nil {
		_ = s.fs.Remove(spareName)
	}
	return nil
}
