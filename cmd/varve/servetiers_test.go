package main

import (
	"path/filepath"
	"testing"

	"varve"
)

// TestNodeIDIsReadAgain: a node whose catalogue could not be read once, because a descriptor was missing or the disk
// failed for a moment, finds its partitions' tiers later.
func TestNodeIDIsReadAgain(t *testing.T) {
	n := &nodeTiers{dir: t.TempDir()}
	if id, err := n.id(); err == nil {
		t.Fatalf("%q without a catalogue", id)
	}
	l, err := varve.Open(t.Context(), filepath.Join(n.dir, catalogueDir), varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context()) //nolint:errcheck // nothing was written
	first, err := n.id()
	if err != nil || len(first) != 16 {
		t.Fatalf("%q: %v", first, err)
	}
	n.dir = t.TempDir()
	if again, err := n.id(); err != nil || again != first {
		t.Fatalf("%q: %v", again, err)
	}
}
