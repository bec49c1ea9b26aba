//go:build unix

package varve

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writerRunning reports whether some process holds the lock of a directory. It makes no file and waits
// for nothing, not even for the other end of a pipe; the shared lock that it takes to find out is held
// for no longer than that, and Open tries again.
func writerRunning(dir string) bool {
	fd, err := unix.Open(filepath.Join(dir, lockName), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading only
	return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}
