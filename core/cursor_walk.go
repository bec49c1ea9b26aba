package core

import "varve/core/segment"

// walk verifies what a fetch returned, batch by batch, and remembers where to go on.
func (c *Cursor) walk() {
	f := &c.fetch
	at := place{segment: f.Extent.Segment, pos: f.At, base: -1}
	if c.place.valid && f.Pos == c.place.pos && f.At == f.Pos {
		at = c.place
	}
	c.place.valid = false
	at.valid = true
	var b header
	for at.base < c.limit {
		q := c.locate(&at, &b)
		if b.found != good {
			if b.found == short && !f.EOF {
				c.goOn(at, int(at.pos-f.At), 0)
				return
			}
			if c.level != byPlace && at.base < f.From && c.resync(&at) {
				continue
			}
			if c.place.valid {
				return // resync goes on with the next fetch
			}
			c.failed(c.headerFault(&at, b))
			return
		}
		end := q + segment.BatchHeaderBytes + int(b.id.PayloadBytes)
		if end > len(f.Buf) {
			if f.EOF {
				c.failed(fault{
					kind: faultCut, pos: f.At + int64(q), offset: b.id.Base, end: b.id.End(),
					want: int64(end - q), got: int64(len(f.Buf) - q),
				})
				return
			}
			at.pos = f.At + int64(q)
			c.goOn(at, q, end-q)
			return
		}
		if !c.take(q, end, &b) {
			return
		}
		at = place{
			valid: true, segment: at.segment, pos: f.At + int64(end), base: b.id.End(),
			chained: true, chain: b.crc, commit: b.placement.Commit,
		}
	}
	c.place = at
	if c.limit < f.Extent.End { // at the tail: what comes next is about as much as came now
		c.window = max(windowMin, min(c.window, 2*int(at.pos-f.At)))
	}
}

// take serves a batch that ends beyond the wanted offset; it reports false if that failed.
func (c *Cursor) take(q, end int, b *header) bool {
	f := &c.fetch
	if b.id.End() <= f.From {
		return true // on the way to what is wanted: its content does not matter
	}
	pos := f.At + int64(q)
	if b.id.End() > c.limit {
		c.failed(fault{kind: faultCrossing, pos: pos, offset: b.id.Base, want: c.limit, got: b.id.End()})
		return false
	}
	payload := f.Buf[q+segment.BatchHeaderBytes : end]
	if crc := segment.PayloadCRC(payload); crc != b.id.PayloadCRC {
		c.failed(fault{
			kind: faultPayload, pos: pos, offset: b.id.Base, end: b.id.End(),
			want: int64(b.id.PayloadCRC), got: int64(crc),
		})
		return false
	}
	n := len(c.batches)
	if n < cap(c.batches) {
		c.batches = c.batches[:n+1]
	} else {
		c.batches = append(c.batches, CursorBatch{})
	}
	x := &c.batches[n]
	x.Identity, x.Payload, x.Segment, x.Pos = b.id, payload, f.Extent.Segment, pos
	c.level, c.again = byPlace, false
	return true
}

// goOn remembers where the next fetch starts. At the start of the buffer nothing was gained, so
// the next fetch must be longer.
func (c *Cursor) goOn(at place, gained, need int) {
	c.place = at
	if gained == 0 {
		c.need = max(need, len(c.fetch.Buf)+int(c.fetch.Extent.Sector)+segment.BatchHeaderBytes)
	}
}

// found says what lies where a batch is looked for.
type found uint8

const (
	good  found = iota
	short       // the buffer ends before we can tell
	alien       // no batch that verifies here
	other       // a batch that verifies, but does not follow
)

// header is a batch header read from the buffer.
type header struct {
	found     found
	placement segment.Placement
	id        segment.Identity
	crc       uint32
}

// locate finds the batch that follows at: directly there, or behind padding at the next sector
// boundary. q is its index in the buffer.
func (c *Cursor) locate(at *place, b *header) (q int) {
	f := &c.fetch
	q = int(at.pos - f.At)
	c.read(q, at, b)
	if b.found == good {
		return q
	}
	boundary := nextBoundary(at.pos, f.Extent.Sector)
	if boundary == at.pos {
		return q
	}
	var behind header
	c.read(int(boundary-f.At), at, &behind)
	if behind.found == good {
		*b = behind
		return int(boundary - f.At)
	}
	if behind.found == short || b.found == alien && behind.found == other {
		*b = behind
	}
	return q
}

// read reads the header at index q and judges whether it follows at.
func (c *Cursor) read(q int, at *place, b *header) {
	f := &c.fetch
	if q > len(f.Buf)-segment.BatchHeaderBytes {
		*b = header{found: short}
		return
	}
	var ok bool
	b.crc, ok = segment.DecodeBatchHeader(&b.placement, &b.id, f.Buf[q:q+segment.BatchHeaderBytes],
		c.seeds.placement, c.seeds.identity)
	switch {
	case !ok:
		b.found = alien
	case b.placement.ID != f.Extent.Segment || b.id.Epoch != f.Extent.Epoch,
		at.base >= 0 && b.id.Base != at.base,
		at.base < 0 && b.id.Base > f.From,
		at.chained && (b.placement.Chain != at.chain || b.placement.Commit < at.commit):
		b.found = other
	default:
		b.found = good
	}
}

// resync looks behind damage that lies below the wanted offset: at each sector boundary, for a
// batch from which the wanted offset can be reached. It reports true with at moved there. At the
// end of the buffer it leaves the place to go on with.
func (c *Cursor) resync(at *place) bool {
	f := &c.fetch
	loose := place{valid: true, segment: at.segment, base: -1}
	var b header
	for pos := nextBoundary(at.pos+1, f.Extent.Sector); ; pos += f.Extent.Sector {
		c.read(int(pos-f.At), &loose, &b)
		switch {
		case b.found == good && b.id.Base >= at.base:
			loose.pos = pos
			*at = loose
			return true
		case b.found == other && b.id.Epoch == f.Extent.Epoch && b.id.Base > f.From:
			return false // beyond what is wanted
		case b.found == short && f.EOF:
			return false
		case b.found == short:
			loose.pos = pos
			c.goOn(loose, int(pos-f.At), 0)
			return false
		}
	}
}

// nextBoundary rounds a position up to a sector boundary.
func nextBoundary(pos, sector int64) int64 { return (pos + sector - 1) &^ (sector - 1) }

// failed records that the walk broke. What was served before stays served; the next fetch tries
// the next way to find the position, and after the last one a newer View decides.
func (c *Cursor) failed(x fault) {
	c.place.valid, c.again = false, true
	if c.level == byScan {
		c.broken, c.fault = true, x
		return
	}
	c.level++
}
