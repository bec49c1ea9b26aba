package sim

import (
	"slices"

	"varve/core/segment"
)

// Some failures need something that is full: a sector, a segment, the disk. Fewer appends fill as much
// if one of them is larger, or if what they fill is smaller.

// batchBytes is what a batch takes besides its payload.
const batchBytes = segment.BatchHeaderBytes

// enlarge lets the append before, or else behind a group make up for the bytes of the appends in it,
// which take some extra bytes each.
func enlarge(events []Event, at, size int, extra int64) {
	for _, i := range [...]int{at - 1, at + size} {
		if i < 0 || i >= len(events) || events[i].Kind != Append {
			continue
		}
		for _, e := range events[at : at+size] {
			if e.Kind == Append {
				events[i].A = min(events[i].A+e.A+extra, argMax(Append, 0))
			}
		}
		return
	}
}

// Steps in which what is to be filled is made smaller.
const (
	diskStep    = 256
	segmentStep = 512
)

// room takes out a group with appends in it, on a smaller disk or with smaller segments.
func (x *shrinker) room(at, size int) bool {
	if at+size > len(x.best.Events) || !slices.ContainsFunc(x.best.Events[at:at+size], func(e Event) bool { return e.Kind == Append }) {
		return false
	}
	h := &x.best.Header
	for v := int64(diskStep); v < h.Capacity; v += diskStep {
		if x.try(func(s *Schedule) {
			s.Header.Capacity = v
			s.Events = slices.Delete(s.Events, at, at+size)
		}) {
			return true
		}
	}
	for v := int64(segmentStep); v < h.Config[0].SegmentBytes; v += segmentStep {
		if x.try(func(s *Schedule) {
			s.Header.Config[0].SegmentBytes = v
			s.Events = slices.Delete(s.Events, at, at+size)
		}) {
			return true
		}
	}
	return false
}
