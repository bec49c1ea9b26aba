package disk

import (
	"errors"

	"varve/core"
	"varve/core/segment"
)

func (s *Store) loadSuper(r *core.Result, e *core.LoadSuper) error {
	for slot, name := range superNames {
		b, err := s.readFile(r, name, segment.SuperBytesMax+1, e.Slots[slot][:0])
		e.Slots[slot] = b
		if err != nil && !errors.Is(err, ErrNotExist) {
			return err
		}
	}
	r.Failed = core.StepNone
	return nil
}

// readFile appends up to limit bytes of a file to dst.
func (s *Store) readFile(r *core.Result, name string, limit int64, dst []byte) ([]byte, error) {
	f, err := s.fs.Open(name, Read)
	if err != nil {
		return dst, failed(r, core.StepOpen, err)
	}
	size, err := f.Size()
	if err == nil {
		at := len(dst)
		dst = grow(dst, int(min(size, limit)))
		err = readFull(f, dst[at:], 0)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return dst[:0], failed(r, core.StepRead, err)
	}
	return dst, nil
}

func (s *Store) saveSuper(r *core.Result, e *core.SaveSuper) (done bool, err error) {
	if e.Fresh {
		return s.saveSuperFresh(r, e)
	}
	name, kept := superNames[e.Slot], &s.hot.super[e.Slot]
	if r.Stage == 0 {
		if *kept == nil {
			if *kept, err = s.fs.Open(name, Write); err != nil {
				*kept = nil
				return false, failed(r, core.StepOpen, err)
			}
		}
		if err := writeAll(*kept, &s.hot.bufs, e.Bytes, 0); err != nil {
			return false, failed(r, core.StepWrite, err)
		}
		return false, nil
	}
	if err := (*kept).Sync(); err != nil {
		return false, failed(r, core.StepSync, err)
	}
	return true, nil
}

func (s *Store) saveSuperFresh(r *core.Result, e *core.SaveSuper) (done bool, err error) {
	name, stage := superNames[e.Slot], r.Stage
	if e.NewLog {
		// The directory's own entry is durable before anything lies in it: a superblock that
		// is found proves that.
		switch stage {
		case 0:
			if err := s.fs.Mkdir(DirLog); err != nil {
				return false, failed(r, core.StepWrite, err)
			}
			return false, nil
		case 1:
			return false, s.syncDir(r, DirParent)
		}
		stage -= 2
	}
	switch stage {
	case 0:
		err := s.writeTmp(r, name, e.Bytes)
		if err != nil && r.NoSpace && s.writeSpare(name, e.Bytes) {
			r.Failed, r.NoSpace, err = core.StepNone, false, nil
		}
		return false, err
	case 1:
		return false, s.syncTmp(r, name)
	case 2:
		f, err := s.renameTmp(r, name)
		if err != nil {
			return false, err
		}
		if old := s.hot.super[e.Slot]; old != nil {
			_ = old.Close() // replaced by what was just synced
		}
		s.hot.super[e.Slot] = f // later saves of this life go in place
		err = s.makeSpare(r, int64(len(e.Bytes)))
		e.Spare = s.hot.spare >= int64(len(e.Bytes))
		return false, err
	}
	return true, s.syncDir(r, DirLog)
}
