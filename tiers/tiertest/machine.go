package tiertest

import (
	"os"
	"syscall"
	"testing"
)

// Lacks ends a test that cannot run because of what the machine lacks. It skips the test, or fails it where
// VARVE_NO_SKIPS is set: .ci/run provides everything, and nothing that it counts as passed was skipped.
func Lacks(t testing.TB, what string, cause error) {
	t.Helper()
	if os.Getenv("VARVE_NO_SKIPS") != "" {
		t.Fatalf("needs %s, and VARVE_NO_SKIPS is set: %v", what, cause)
	}
	t.Skipf("needs %s: %v", what, cause)
}

// Tmpfs mounts a file system of its own for a test, with the options of mount(8), such as "size=64k":
// a disk that can be full, or read-only. It skips the test where mounting is not allowed. At the end
// nobody may have a file of it open.
func Tmpfs(t *testing.T, flags uintptr, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		Lacks(t, "the right to mount a tmpfs", err)
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
		Lacks(t, "/proc/self/fd", err)
	}
	return len(list)
}
