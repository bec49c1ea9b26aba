package faultfs_test

import (
	"testing"

	"varve/faultfs"
	"varve/tiers/disk"
	"varve/tiers/tiertest"
)

// TestContract runs the suite that the operating system's file system runs too.
func TestContract(t *testing.T) {
	tiertest.TestFS(t, func(t *testing.T) disk.FS {
		d := faultfs.New()
		t.Cleanup(func() {
			if v := d.Violation(); v != "" {
				t.Error(v)
			}
		})
		return d.FS(0)
	})
}
