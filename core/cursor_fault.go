package core

import (
	"fmt"

	"varve/core/segment"
)

// faultKind is what a cursor found wrong.
type faultKind uint8

const (
	faultNone     faultKind = iota
	faultMissing            // the file is gone
	faultCut                // the file ends inside a batch
	faultHeader             // no batch header verifies where a batch must be
	faultOther              // a batch verifies there, but not the one that must follow
	faultPayload            // the payload checksum is wrong
	faultCrossing           // a batch reaches beyond what it may
)

// fault is a failure in the making: its text is built only if it is reported.
type fault struct {
	kind        faultKind
	pos         int64
	offset, end Offset
	want, got   int64
}

// headerFault describes a place where no batch follows.
func (c *Cursor) headerFault(at *place, b header) fault {
	x := fault{kind: faultHeader, pos: at.pos, offset: at.base, got: int64(len(c.fetch.Buf)) + c.fetch.At}
	if at.base < c.fetch.From {
		x.offset = c.fetch.From
	}
	switch b.found {
	case short:
		x.kind = faultCut
		x.want, x.got = segment.BatchHeaderBytes, max(0, x.got-at.pos)
	case other:
		x.kind = faultOther
		x.want, x.got = x.offset, b.id.Base
	}
	return x
}

// err makes the error, in the extent that the current View still promises.
func (x *fault) err(e *Extent) error {
	d := &CorruptError{Segment: e.Segment, Base: e.Base, Pos: x.pos, Offset: x.offset, End: x.end}
	if e.Tier == TierCold {
		d.Tier, d.Object = e.Tier, e.Object()
	}
	switch x.kind {
	case faultMissing:
		d.Expected, d.Found = "a segment file", "none"
		if e.Tier == TierCold {
			d.Expected, d.Found = "the object that the manifest lists", "none, or one of another size"
		}
	case faultCut:
		d.Expected = fmt.Sprintf("a batch of %d bytes", x.want)
		d.Found = fmt.Sprintf("the end of the file after %d", x.got)
	case faultHeader:
		d.Expected, d.Found = fmt.Sprintf("the batch header of offset %d", x.offset), "bytes that do not verify"
	case faultOther:
		d.Expected, d.Found = fmt.Sprintf("the batch that holds offset %d", x.want),
			fmt.Sprintf("another one, with base offset %d", x.got)
	case faultPayload:
		d.Expected, d.Found = fmt.Sprintf("payload checksum %08x", x.want), fmt.Sprintf("%08x", x.got)
	case faultCrossing:
		d.Expected, d.Found = fmt.Sprintf("a batch that ends by offset %d", x.want),
			fmt.Sprintf("one that ends at %d", x.got)
	}
	return d
}

// damagedExtent is the error of a span that recovery could not heal.
func damagedExtent(x *Extent, o Offset) error {
	d := &CorruptError{
		Segment: x.Segment, Base: x.Base, Pos: x.DamagePos, Offset: o, End: x.End,
		Expected: "a batch that verifies", Found: "bytes that do not verify",
	}
	if x.Tier == TierCold && !x.Lost {
		d.Tier, d.Object = x.Tier, x.Object()
	}
	switch {
	case x.Lost:
		d.Lost, d.Expected, d.Found = true, "records", "a span that a repair declared lost"
	case x.Segment == 0:
		d.Expected, d.Found = "a segment that holds the offset", "none"
	case x.Damage == segment.BreakPayload:
		d.Expected, d.Found = "the payload that its checksum names", "another one"
	}
	if x.End == EndNone {
		d.End = 0
	}
	return d
}

// uncovered is the error of an offset that no extent holds; i is the extent behind it.
func uncovered(v *View, i int, o Offset) error {
	if o < v.HotStart {
		return &TierError{Tier: TierCold, Offset: o}
	}
	d := &CorruptError{Pos: -1, Offset: o, Expected: "a segment that holds the offset", Found: "none"}
	if i > 0 {
		d.Segment, d.Base = v.Extents[i-1].Segment, v.Extents[i-1].Base
	}
	if i < len(v.Extents) {
		d.End = v.Extents[i].First
	}
	return d
}

// divergedAt describes a divergence: who owns the record before the position now.
func divergedAt(v *View, p Position) error {
	d := &DivergedError{Position: p}
	for i := range v.Lineage {
		if v.Lineage[i].First >= p.Offset {
			break
		}
		d.Epoch, d.First = v.Lineage[i].Epoch, v.Lineage[i].First
	}
	return d
}
