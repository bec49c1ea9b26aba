package dirbucket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"varve/tiers"
)

// within reports whether a key is a folder's name or lies below it.
func within(key, dir string) bool { return key == dir || strings.HasPrefix(key, dir+"/") }

// lstatRegular describes the file of a name. A name that is none, or leads through what is no folder,
// is ErrNotFound; a link is an error.
func lstatRegular(root *os.Root, name string) (fs.FileInfo, error) {
	for at := 0; ; {
		end := len(name)
		if i := strings.IndexByte(name[at:], '/'); i >= 0 {
			end = at + i
		}
		info, err := root.Lstat(name[:end])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, tiers.ErrNotFound
		case err != nil:
			return nil, err
		case info.Mode().Type() == fs.ModeSymlink:
			return nil, fmt.Errorf("%w: %s is a symbolic link, which is not followed: put a file or folder there", tiers.ErrInvalid, name[:end])
		case end == len(name) && info.Mode().IsRegular():
			return info, nil
		case end == len(name) || !info.IsDir():
			return nil, tiers.ErrNotFound
		}
		at = end + 1
	}
}

// openRegular opens the file of a name for reading. That it is no link is looked at before; that
// nothing outside is reached, os.Root sees to in any case.
func openRegular(root *os.Root, name string) (*os.File, int64, error) {
	if _, err := lstatRegular(root, name); err != nil {
		return nil, 0, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, tiers.ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = tiers.ErrNotFound
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// makeDirs makes the folders of a path that are missing, and returns the deepest that was there.
func makeDirs(root *os.Root, dir string) (top string, err error) {
	if dir == "." {
		return dir, nil
	}
	parent := path.Dir(dir)
	if top, err = makeDirs(root, parent); err != nil {
		return top, err
	}
	info, err := root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return top, root.Mkdir(dir, dirMode)
	case err != nil:
		return top, err
	case !info.IsDir():
		return top, fmt.Errorf("%w: %s is an object or a link, and the key needs a folder there: name the key otherwise", tiers.ErrInvalid, dir)
	}
	return dir, nil
}

// removeEmpty removes a folder and those above it as long as they are empty. It returns the first that
// stays.
func removeEmpty(root *os.Root, dir string) string {
	for dir != "." && root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
	return dir
}

// syncDir syncs a folder; what is no folder has nothing to sync.
func syncDir(root *os.Root, dir string) error {
	info, err := root.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
