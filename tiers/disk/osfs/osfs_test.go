package osfs

import (
	"testing"

	"varve/tiers/disk"
	"varve/tiers/tiertest"
)

func TestContract(t *testing.T) {
	tiertest.TestFS(t, func(t *testing.T) disk.FS { return New(t.TempDir() + "/log") })
}
