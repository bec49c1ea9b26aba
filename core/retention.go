package core

import "varve/core/segment"

// file is a sealed or inherited segment file.
type file struct {
	entry   FileEntry
	end     Offset // after its last record
	ageFrom Time   // wall time from which its age counts: append time, at most the time of first sight
	void    bool   // serves nothing: its epoch does not own its offsets; kept until retention
}

// retention is what moves Start: Trim, and the limits on size and age.
type retention struct {
	want      Offset // Start shall reach it
	nextCheck Time   // Mono
}

// Trim lets everything below an offset go. Start moves, in both superblock slots, before anyone
// sees it and before any file is removed; it is done when View.Start has reached the offset.
func (l *Log) Trim(_ Now, before Offset) error {
	if err := l.refuse(); err != nil {
		return err
	}
	if before > l.committed {
		return ErrOutOfRange
	}
	if before > l.frontier {
		l.mark(MarkTrimSync)
	}
	if before > l.keep.want {
		l.keep.want = before
	}
	return nil
}

// startTarget is how far Start may move now: never past what is proven and acked.
func (l *Log) startTarget() Offset { return min(l.keep.want, l.frontier, l.committed) }

// hotStartAt returns the first offset kept on disk when Start is at an offset: files go whole.
func (l *Log) hotStartAt(start Offset) Offset {
	for i := range l.extents {
		if l.extents[i].End > start {
			return min(l.extents[i].First, start)
		}
	}
	return start
}

// moveStart makes a Start that both slots hold visible, and lets files go.
func (l *Log) moveStart() {
	s := &l.super
	to := min(s.start[0], s.start[1])
	if !s.renamed[0] || !s.renamed[1] || to <= l.start {
		return
	}
	l.mark(MarkTrim)
	l.start = to
	n := 0
	for n < len(l.extents) && l.extents[n].End <= to {
		n++
	}
	l.extents = append(l.extents[:0], l.extents[n:]...)
	if len(l.extents) > 0 && l.extents[0].First < to {
		l.mark(MarkTrimInside)
	}
	l.lineage = trimLineage(l.lineage, to)
	l.dropFiles()
	l.viewVersion++
}

// dropFiles hands every file to removal that serves nothing any more, void ones once they lie below
// Start.
func (l *Log) dropFiles() {
	keep := l.files[:0]
	for i := range l.files {
		f := l.files[i]
		if f.entry.Base < l.start && !l.serves(&f) && (!f.void || f.end <= l.start) {
			l.hot.removeLater(f.entry)
		} else {
			keep = append(keep, f)
		}
	}
	l.files = keep
}

// serves reports whether a file serves any offset still. Extents come in offset order.
func (l *Log) serves(f *file) bool {
	for i := range l.extents {
		x := &l.extents[i]
		if x.First >= f.end {
			break
		}
		if x.Segment == f.entry.ID {
			return true
		}
	}
	return false
}

// trimLineage drops entries that own nothing from Start-1 on.
func trimLineage(lineage []segment.Lineage, start Offset) []segment.Lineage {
	n := 0
	for n+1 < len(lineage) && lineage[n+1].First <= start-1 {
		n++
	}
	return append(lineage[:0], lineage[n:]...)
}

// tickRetention checks the limits on their own timer, never on an append.
func (l *Log) tickRetention(now Now) {
	if now.Mono < l.keep.nextCheck || !l.retains() {
		return
	}
	l.keep.nextCheck = now.Mono + l.cfg.RetentionCheckInterval
	bytesMax := tighter(l.cfg.RetentionBytes, l.cfg.LocalRetentionBytes)
	ageMax := tighter(l.cfg.RetentionAge, l.cfg.LocalRetentionAge)
	if to := l.retentionTarget(now, bytesMax, ageMax); to > l.keep.want && to > l.start {
		l.keep.want = to
	}
}

// retains reports whether any limit is set.
func (l *Log) retains() bool {
	return l.cfg.RetentionBytes != Unlimited || l.cfg.LocalRetentionBytes != Unlimited ||
		l.cfg.RetentionAge != Unlimited || l.cfg.LocalRetentionAge != Unlimited
}

// tighter returns the lesser limit.
func tighter(a, b int64) int64 {
	if a == Unlimited || b != Unlimited && b < a {
		return b
	}
	return a
}

// retentionTarget walks whole segments from the head: those that are too old, and those without which
// at least bytesMax are kept. The active segment and whatever is not proven stay.
func (l *Log) retentionTarget(now Now, bytesMax, ageMax int64) Offset {
	total := int64(0)
	for i := range l.files {
		if !l.files[i].void {
			total += l.files[i].entry.Bytes
		}
	}
	if l.tail.active.open {
		total += l.tail.active.pos
	}
	target := l.start
	for i := range l.extents {
		x := &l.extents[i]
		if x.End == EndNone || x.End > min(l.frontier, l.committed) {
			break
		}
		f := l.fileOf(x.Segment)
		if f == nil {
			continue // damaged: it goes with what follows it, never by itself
		}
		tooBig := bytesMax != Unlimited && total-f.entry.Bytes >= bytesMax
		tooOld := ageMax != Unlimited && older(now.Wall, f.ageFrom, ageMax)
		if !tooBig && !tooOld {
			break
		}
		if tooBig {
			l.mark(MarkRetentionSize)
		} else {
			l.mark(MarkRetentionAge)
		}
		target = x.End
		if l.extentEnd(f.entry) <= x.End {
			total -= f.entry.Bytes
		}
	}
	return target
}

// older reports whether from lies more than age before now. The difference of two readings of a clock
// need not fit into a Time.
func older(now, from, age Time) bool {
	return now > from && uint64(now)-uint64(from) > uint64(age)
}

func (l *Log) fileOf(id segment.ID) *file {
	for i := range l.files {
		if l.files[i].entry.ID == id {
			return &l.files[i]
		}
	}
	return nil
}
