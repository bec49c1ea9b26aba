package osfs

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lockOwner says which process holds the lock of an open file, for people; "" if the system does not
// say. The kernel is asked, not the file: what a file says may be left from a process that is gone.
func lockOwner(fd int) string {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return ""
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF
		w := strings.Fields(lines.Text())
		if len(w) < 6 || w[1] != "FLOCK" || w[3] != "WRITE" || w[5] != file {
			continue
		}
		comm, err := os.ReadFile("/proc/" + w[4] + "/comm")
		if err != nil {
			return "process " + w[4]
		}
		return "process " + w[4] + ", " + strings.TrimSpace(string(comm))
	}
	return ""
}
