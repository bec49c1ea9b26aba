package disk

import (
	"errors"
	"fmt"
	"strconv"

	"varve/core"
)

func (s *Store) remove(r *core.Result, e *core.Remove) (done bool, err error) {
	if r.Stage > 0 {
		s.free(r)
		return true, s.syncDir(r, DirLog)
	}
	for i := range e.Files {
		x := &e.Files[i]
		s.mu.Lock()
		active := s.active.file != nil && s.active.id == x.ID
		s.mu.Unlock()
		if active {
			s.dropActive() // a segment that never took a batch
		}
		if err := s.unlink(r, s.segmentName(x.Base, x.ID)); err != nil {
			return false, err
		}
		if x.Index {
			if err := s.unlink(r, s.indexName(x.Base, x.ID)); err != nil {
				return false, err
			}
		}
	}
	for _, name := range e.Names {
		if err := s.unlink(r, name); err != nil {
			return false, err
		}
	}
	return false, nil
}

// unlink removes a name; one that is gone already is fine, because a removal is tried again.
func (s *Store) unlink(r *core.Result, name string) error {
	if err := s.fs.Remove(name); err != nil && !errors.Is(err, ErrNotExist) {
		return failed(r, core.StepWrite, err)
	}
	return nil
}

func (s *Store) quarantine(r *core.Result, e *core.Quarantine) (done bool, err error) {
	switch r.Stage {
	case 0:
		if err := s.fs.Mkdir(DirQuarantine); err != nil {
			return false, failed(r, core.StepWrite, err)
		}
		for i := range e.Files {
			x := &e.Files[i]
			if err := s.moveAway(r, s.segmentName(x.Base, x.ID)); err != nil {
				return false, err
			}
			if x.Index {
				if err := s.moveAway(r, s.indexName(x.Base, x.ID)); err != nil {
					return false, err
				}
			}
		}
		for _, name := range e.Names {
			if err := s.moveAway(r, name); err != nil {
				return false, err
			}
		}
		return false, nil
	case 1: // the new names first: a crash must not leave a file without any
		return false, s.syncDir(r, DirQuarantine)
	}
	return true, s.syncDir(r, DirLog)
}

// quarantineMax bounds the files of one name in quarantine.
const quarantineMax = 1000

// moveAway renames a file into quarantine, under the first free name. A file that is gone already
// was moved by an earlier attempt.
func (s *Store) moveAway(r *core.Result, name string) error {
	var b nameBuf
	for n := 0; n < quarantineMax; n++ {
		to := append(append(append(b[:0], DirQuarantine...), '/'), name...)
		if n > 0 {
			to = strconv.AppendInt(append(to, '.'), int64(n), 10)
		}
		target := s.name(to)
		f, err := s.fs.Open(target, Read)
		if err == nil {
			_ = f.Close()
			continue
		}
		if !errors.Is(err, ErrNotExist) {
			return failed(r, core.StepOpen, err)
		}
		if err := s.fs.Rename(name, target); err != nil && !errors.Is(err, ErrNotExist) {
			return failed(r, core.StepWrite, err)
		}
		return nil
	}
	return failed(r, core.StepWrite, fmt.Errorf("disk: quarantine holds %d files named %s", quarantineMax, name))
}

func (s *Store) space(r *core.Result, e *core.Space) error {
	n, err := s.fs.Free()
	if err != nil {
		return failed(r, core.StepRead, err)
	}
	r.FreeBytes = n
	return nil
}
