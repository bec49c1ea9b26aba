package model

// TrimCalled says that a client asks for everything below an offset to go.
func (c *Checker) TrimCalled(now Time, before Offset) {
	if c.event(now) {
		c.trimTo = max(c.trimTo, before)
	}
}

// TrimReturned says that such a call succeeded: Start has moved.
func (c *Checker) TrimReturned(now Time, before Offset) {
	if c.event(now) && c.start < before {
		c.fail(K14, "a trim returned before Start had moved", 0, c.start, before, c.start)
	}
}

// RetentionRuns says that the log may apply its policy now. Call it at least whenever it does, and
// before StartMoved. What the policy allows once stays allowed.
func (c *Checker) RetentionRuns(now Time, wall Time, r Retention, segments []SegmentSpan) {
	if c.event(now) {
		c.retainTo = max(c.retainTo, retained(wall, r, segments, false))
	}
}

// RetentionDone says that the log has had the time to delete what its policy says.
func (c *Checker) RetentionDone(now Time, wall Time, r Retention, segments []SegmentSpan) {
	if !c.event(now) {
		return
	}
	if want := retained(wall, r, segments, true); c.start < want {
		c.fail(K14, "retention kept what its policy deletes", 0, c.start, want, c.start)
	}
}

// Opened and moved within a life, what is kept on disk begins at HotStart; other tiers hold the rest.

// HotStartFound says where what is on disk begins when a life does.
func (c *Checker) HotStartFound(now Time, hot Offset) {
	if c.event(now) {
		c.evictTo = hot
	}
}

// OffloadCalled says that a client asks for everything below an offset to leave the disk.
func (c *Checker) OffloadCalled(now Time, before Offset) {
	if c.event(now) {
		c.evictTo = max(c.evictTo, before)
	}
}

// EvictionRuns says that the log may apply the limits of the disk now, to the segments on it. What the
// policy allows once stays allowed for this life.
func (c *Checker) EvictionRuns(now Time, wall Time, r Retention, segments []SegmentSpan) {
	if c.event(now) {
		c.evictTo = max(c.evictTo, retained(wall, r, segments, false))
	}
}

// EvictionDone says that the log has had the time to let go what the limits of the disk say.
func (c *Checker) EvictionDone(now Time, wall Time, r Retention, segments []SegmentSpan, hot Offset) {
	if !c.event(now) {
		return
	}
	if want := retained(wall, r, segments, true); hot < want {
		c.fail(K14, "the disk keeps what its limits let go", 0, hot, want, hot)
	}
}

// HotStartMoved says where what is on disk begins now. Segments are those that were on it before.
func (c *Checker) HotStartMoved(now Time, hot Offset, segments []SegmentSpan) {
	if !c.event(now) {
		return
	}
	allowed := max(c.evictTo, c.start)
	for i := range segments {
		if s := &segments[i]; s.End > allowed && s.First < hot {
			c.fail(K14, "records left the disk beyond what offloads and its limits ask for", 0, s.First, allowed, hot)
		}
	}
}

// StartMoved says that Start has moved, as clients see it. Segments, if not nil, are those before
// the move: beyond what was trimmed, only whole ones go.
func (c *Checker) StartMoved(now Time, start Offset, segments []SegmentSpan) {
	if !c.event(now) {
		return
	}
	allowed := max(c.trimTo, c.retainTo)
	switch {
	case start < c.start:
		c.fail(K14, "Start went back", 0, start, c.start, start)
	case start > allowed:
		c.fail(K14, "Start moved beyond what trims and retention ask for", 0, start, allowed, start)
	case start > c.committed:
		c.fail(K14, "Start moved above Committed", 0, start, c.committed, start)
	case start > c.proven:
		c.fail(K14, "Start moved above what the device holds", 0, start, c.proven, start)
	case start > c.trimTo && segments != nil && !boundary(start, segments):
		c.fail(K14, "retention deleted a part of a segment", 0, start, -1, start)
	}
	c.moveStart(max(c.start, min(start, c.End())))
}

func (c *Checker) moveStart(start Offset) {
	if start == c.start {
		return
	}
	c.start, c.startStamp = start, c.stamp
	n := 0
	for _, d := range c.damages {
		if d.end > start {
			c.damages[n] = d
			n++
		}
	}
	c.damages = c.damages[:n]
}

func boundary(o Offset, segments []SegmentSpan) bool {
	for i := range segments {
		if segments[i].First == o || segments[i].End == o {
			return true
		}
	}
	return false
}

// retained returns the Start that the policy leaves: whole segments go, from the head, never the
// active one, while without the head as many bytes stay as the policy keeps, or the head's newest
// batch is as old as allowed. A time in the future counts from when it was first seen. Where a
// reading of the policy is free (is the very age old?), what must go is less than what may go.
func retained(wall Time, r Retention, segments []SegmentSpan, must bool) Offset {
	if len(segments) == 0 {
		return 0
	}
	var bytes int64
	for i := range segments {
		bytes += segments[i].Bytes
	}
	start := segments[0].First
	for i := range segments {
		s := &segments[i]
		age := wall - min(s.Newest, s.Seen)
		big, old := bytes-max(s.Bytes, s.File) >= r.Bytes, age >= r.Age
		if must {
			old = age > r.Age
		}
		big = big && r.Bytes != Unlimited
		old = old && r.Age != Unlimited
		if s.Active || (!big && !old) {
			break
		}
		start = s.End
		bytes -= s.Bytes
	}
	return start
}
