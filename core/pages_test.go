package core

import (
	"testing"

	"varve/core/manifest"
)

// An entry whose time lies in the future ages from when it was seen first, not from the newest manifest
// that lists it.
func TestAgeCountsFromFirstSight(t *testing.T) {
	m := manifest.Manifest{Segments: []manifest.Segment{
		{Base: 0, End: 5, State: manifest.Finished, Attempt: 1, AppendTime: 10},
		{Base: 5, End: 9, State: manifest.Finished, Attempt: 2, AppendTime: 1000},
	}}
	var c catalogue
	c.flatten(&m, 100)
	m.Segments = append(m.Segments, manifest.Segment{Base: 9, End: 12, State: manifest.Finished, Attempt: 3, AppendTime: 1000})
	c.flatten(&m, 200)
	m.Segments, m.DeletedTo = m.Segments[1:], 5
	c.flatten(&m, 300)
	if len(c.ages) != 2 || c.ages[0] != 100 || c.ages[1] != 200 {
		t.Errorf("ages count from %d, want 100 and 200", c.ages)
	}
}

// Attempts that were given up and are not deleted hold new ones back: a manifest has room for so many.
func TestUploadsWaitForDeletion(t *testing.T) {
	l := new(Log)
	l.extents = append(l.extents, Extent{First: 0, End: 10, Segment: 1, Base: 0, Epoch: 1})
	l.frontier, l.committed = 10, 10
	c := &l.cold
	var m manifest.Manifest
	for i := range uint64(deadMax) {
		m.Segments = append(m.Segments, manifest.Segment{Base: 0, End: 10, Epoch: 1, State: manifest.Dead, Attempt: i + 1, ID: 1})
	}
	l.adopt(&m, "tag", 0)
	c.wantUpload(l)
	if c.pending.state != uploadNone {
		t.Error("an upload begins beside", deadMax, "dead attempts")
	}
	m.CopyFrom(&c.m)
	m.Segments = m.Segments[1:]
	l.adopt(&m, "tag", 0)
	c.wantUpload(l)
	if c.pending.state != uploadWanted || c.pending.entry.Attempt != deadMax+1 {
		t.Errorf("after a deletion: %+v", c.pending)
	}
}
