package core

import (
	"errors"
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

// A page that the manifest names and that is not there: an owner beside this one may have moved Start past it,
// deleted it and swapped the manifest since that was read. So the manifest is read again, not the page alone.
func TestMissedPageReadsTheManifestAgain(t *testing.T) {
	l := new(Log)
	l.cfg.Cold = true
	b := &l.boot
	b.step, b.absent = bootPages, true
	l.cold.next.Pages = []manifest.Page{{Base: 0, End: 10, Number: 1}, {Base: 10, End: 20, Number: 2}}
	l.cold.next.Start = 10
	now := Now{Mono: 5}
	l.onMerge(now, &LoadPage{Base: 0, Number: 1, Missing: true}, nil)
	if b.step != bootPages || b.at != 1 {
		t.Fatalf("a page below Start that was deleted holds the open up: step %d, page %d", b.step, b.at)
	}
	l.onMerge(now, &LoadPage{Base: 10, Number: 2, Missing: true}, nil)
	if b.step != bootManifest || b.retryAt <= now.Mono {
		t.Fatalf("step %d, again at %d", b.step, b.retryAt)
	}
	if e := l.nextMerge(now); e != nil {
		t.Fatalf("it is asked again at once: %T", e)
	}
	if _, ok := l.nextMerge(Now{Mono: b.retryAt}).(*LoadManifest); !ok {
		t.Fatal("the manifest is not read again")
	}
	var refused *RefusedError
	if !errors.As(l.err, &refused) || refused.Next != "run: varve cold scrub" {
		t.Fatal(l.err)
	}
}
