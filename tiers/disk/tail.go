package disk

import "varve/core"

func (s *Store) create(r *core.Result, e *core.Create) (done bool, err error) {
	switch r.Stage {
	case 0:
		s.free(r)
		f, err := s.fs.Open(s.segmentName(e.Header.Base, e.Header.ID), Create)
		if err != nil {
			return false, failed(r, core.StepOpen, err)
		}
		if old := s.setActive(e.Header.ID, f); old != nil {
			_ = old.Close() // of a segment that was given up
		}
		if err := writeAll(f, &s.tail.bufs, e.Bytes, 0); err != nil {
			s.dropActive()
			return false, failed(r, core.StepWrite, err)
		}
		return false, nil
	case 1:
		f, err := s.activeOf(r, e.Header.ID)
		if err != nil {
			return false, err
		}
		if err := f.Sync(); err != nil {
			return false, failed(r, core.StepSync, err)
		}
		return false, nil
	}
	return true, s.syncDir(r, DirLog)
}

// dropActive closes the active file.
func (s *Store) dropActive() {
	if f := s.setActive(0, nil); f != nil {
		_ = f.Close() // everything that counts in it was synced, or is given up
	}
}

func (s *Store) commit(r *core.Result, e *core.Commit) (done bool, err error) {
	f, err := s.activeOf(r, e.Segment)
	if err != nil {
		return false, err
	}
	if r.Stage == 0 {
		n, err := f.WriteAt(e.Bufs, e.Pos)
		if err == nil && int64(n) != e.Bytes {
			err = errShortWrite
		}
		if err != nil {
			return false, failed(r, core.StepWrite, err)
		}
		return !e.Sync, nil
	}
	if err := f.Sync(); err != nil {
		return false, failed(r, core.StepSync, err)
	}
	return true, nil
}

func (s *Store) rollback(r *core.Result, e *core.Rollback) (done bool, err error) {
	f, err := s.activeOf(r, e.Segment)
	if err != nil {
		return false, err
	}
	if r.Stage == 0 {
		// A write that left nothing behind needs no cut; to cut a file longer would need space on a
		// disk that may be full.
		size, err := f.Size()
		if err == nil && size > e.Bytes {
			err = f.Truncate(e.Bytes)
		}
		if err != nil {
			return false, failed(r, core.StepWrite, err)
		}
		return false, nil
	}
	if err := f.Sync(); err != nil {
		return false, failed(r, core.StepSync, err)
	}
	return true, nil
}

func (s *Store) seal(r *core.Result, e *core.Seal) (done bool, err error) {
	f, err := s.activeOf(r, e.Segment)
	if err != nil {
		return false, err
	}
	if r.Stage == 0 {
		err := writeAll(f, &s.tail.bufs, e.Footer, e.Pos)
		if err == nil {
			err = f.Truncate(e.Bytes)
		}
		if err != nil {
			return false, failed(r, core.StepWrite, err)
		}
		return false, nil
	}
	if err := f.Sync(); err != nil {
		return false, failed(r, core.StepSync, err)
	}
	s.dropActive()
	return true, nil
}

func (s *Store) sync(r *core.Result, e *core.Sync) error {
	f, err := s.activeOf(r, e.Segment)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return failed(r, core.StepSync, err)
	}
	return nil
}

// prepare runs in the Hot lane, in a range ahead that the Tail lane does not enter.
func (s *Store) prepare(r *core.Result, e *core.Prepare) error {
	f, err := s.activeOf(r, e.Segment)
	if err != nil {
		return err
	}
	s.free(r)
	if err := f.WriteZeros(e.Pos, e.Bytes); err != nil {
		return failed(r, core.StepWrite, err)
	}
	return nil
}
