package tiertest

import (
	"os"
	"syscall"
	"testing"
)

// Tmpfs mounts a file system of its own for a test, with the options of mount(8), such as "size=64k":
// a disk that can be full, or read-only. It skips the test where mounting is not allowed. At the end
// nobody may have a file of it open.
func Tmpfs(t *testing.T, flags uintptr, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// Descriptors returns how many files this process has open. It skips the test where nobody can tell.
func Descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("needs /proc/self/fd: %v", err)
	}
	return len(list)
}
