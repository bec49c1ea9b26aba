package disk

import (
	"errors"

	"varve/core"
)

// A file that must appear whole or not at all is made under a *.tmp name, synced, renamed, and its
// directory synced. The steps below are shared by superblocks, replacements and sidecar indexes;
// between them the file is open in hot.tmp.

// openTmp makes the tmp file of a name; an old one is a left-over of a failure and goes.
func (s *Store) openTmp(r *core.Result, name string) error {
	tmp := s.tmpName(name)
	f, err := s.fs.Open(tmp, Create)
	if errors.Is(err, ErrExist) {
		if err = s.fs.Remove(tmp); err == nil {
			f, err = s.fs.Open(tmp, Create)
		}
	}
	if err != nil {
		return failed(r, core.StepOpen, err)
	}
	s.hot.tmp = f
	return nil
}

// writeTmp makes the tmp file of a name with this content.
func (s *Store) writeTmp(r *core.Result, name string, content []byte) error {
	if err := s.openTmp(r, name); err != nil {
		return err
	}
	if err := writeAll(s.hot.tmp, &s.hot.bufs, content, 0); err != nil {
		s.dropTmp(name)
		return failed(r, core.StepWrite, err)
	}
	return nil
}

func (s *Store) syncTmp(r *core.Result, name string) error {
	if err := s.hot.tmp.Sync(); err != nil {
		s.dropTmp(name)
		return failed(r, core.StepSync, err)
	}
	return nil
}

// renameTmp puts the tmp file in its place and hands over the open file.
func (s *Store) renameTmp(r *core.Result, name string) (File, error) {
	if err := s.fs.Rename(s.tmpName(name), name); err != nil {
		s.dropTmp(name)
		return nil, failed(r, core.StepWrite, err)
	}
	f := s.hot.tmp
	s.hot.tmp = nil
	return f, nil
}

// dropTmp closes and removes the tmp file. If that fails too, the next List reports it as a
// left-over.
func (s *Store) dropTmp(name string) {
	_ = s.hot.tmp.Close()
	s.hot.tmp = nil
	_ = s.fs.Remove(s.tmpName(name))
}

// finishTmp carries out the stages that follow a written tmp file: sync, rename, directory sync.
func (s *Store) finishTmp(r *core.Result, name string, stage int) (done bool, err error) {
	switch stage {
	case 1:
		return false, s.syncTmp(r, name)
	case 2:
		f, err := s.renameTmp(r, name)
		if err == nil {
			_ = f.Close() // synced already
		}
		return false, err
	}
	return true, s.syncDir(r, DirLog)
}
