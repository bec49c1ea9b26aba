package core

import "varve/core/segment"

// Cursor reads a log in order: history and live tail are one loop. It is pure; the caller carries
// out the fetches:
//
//	c.Reset(from)
//	for {
//		f, err := c.Next(view, committed, bytes) // committed is read before the view is
//		if f == nil && err == nil { wait for Committed to move; continue }
//		err = c.Complete(f, store.Fetch(f, handle))
//		for b, ok := c.Batch(); ok; b, ok = c.Batch() { ... }
//	}
//
// Where f.Pos is 0 and the extent's Index is IndexCore, the caller may fill in f.Pos from
// Log.Locate before it fetches. One fetch is in flight at a time. In steady state a Cursor
// allocates nothing; its memory is one fetch's bytes and their batch headers.
//
// Every batch is verified before it is served: both header checksums under the seeds of its file
// and log, the payload checksum, the epoch of the extent, the chain where the batch before is
// known, and contiguity from the offset asked for. What does not verify where a hint or an index
// led is looked for again, without the hint, then without the index, then through a newer View;
// only what the current View still promises and no way leads to is damage.
type Cursor struct {
	pos    Position
	fetch  Fetch
	flying bool
	limit  Offset // no batch of the fetch ends beyond it

	batches []CursorBatch // verified; next is the first one not served yet
	next    int

	place  place // where the walk goes on
	level  level // how the position of the next fetch is found
	again  bool  // the fetch before did not verify
	broken bool  // every level failed in fetch.Extent: a newer View decides
	fault  fault // the failure to report then

	extent int // guess of the extent's index in the View
	window int // bytes of the next fetch: grows while we catch up, shrinks at the tail
	need   int // least bytes of the next fetch, so that a long batch fits

	seeds seeds
}

// seeds are those of the checksums of one file's batch headers.
type seeds struct {
	valid     bool // they are those of log and segment
	log       segment.LogID
	segment   segment.ID
	placement uint32
	identity  uint32
}

// use makes them those of a file.
func (s *seeds) use(log *segment.LogID, id segment.ID) {
	if !s.valid || s.log != *log {
		s.log, s.identity = *log, segment.IdentitySeed(*log)
	} else if s.segment == id {
		return
	}
	s.valid, s.segment = true, id
	s.placement = segment.PlacementSeedOf(s.identity, id)
}

// CursorBatch is one verified batch. Payload is valid until the next call of Next. The first batch
// after a Reset may begin below the offset asked for: the reader drops those records.
type CursorBatch struct {
	segment.Identity
	Payload []byte
	Segment segment.ID // file that served it
	Pos     int64      // byte position of its placement header there
}

// place is a batch boundary of one segment, proven by the batch that ends there.
type place struct {
	valid   bool
	segment segment.ID
	pos     int64
	base    Offset // of the batch expected at pos (or at the next sector boundary); -1: unknown
	chained bool   // chain and commit are those of the batch before
	chain   uint32
	commit  uint64
}

// level is how a fetch finds its position. A failure raises it; a served batch resets it.
type level uint8

const (
	byPlace level = iota // where the last batch ended, or at the first batch of the file
	byIndex              // through footer, sidecar or the core's own index
	byScan               // from the first batch of the file on
)

// windowMin is the smallest fetch of a reader at the tail, where little is new.
const windowMin = 4096

// Reset places the cursor. The memory of an earlier use is kept.
func (c *Cursor) Reset(from Position) {
	buf, batches := c.fetch.Buf, c.batches
	seeds := c.seeds // of whatever file they are
	*c = Cursor{pos: from, batches: batches[:0], window: windowMin, seeds: seeds}
	c.fetch.Buf = buf[:0]
}

// Position returns where the cursor stands: behind the last batch that Batch returned.
func (c *Cursor) Position() Position { return c.pos }

// Next plans the next fetch of at least one batch and about that many bytes. It returns nil and no
// error where nothing is committed yet at the cursor's position. Errors: *DivergedError,
// *TrimmedError, *CorruptError; after an error Next may be asked again with a newer View.
func (c *Cursor) Next(v *View, committed Offset, bytes int) (*Fetch, error) {
	if c.flying {
		panic("core: cursor: Next while a fetch is in flight")
	}
	c.batches, c.next = c.batches[:0], 0
	if v.Diverged(c.pos) {
		return nil, divergedAt(v, c.pos)
	}
	if c.pos.Offset < v.Start {
		return nil, &TrimmedError{Requested: c.pos.Offset, Start: v.Start}
	}
	if c.pos.Offset >= committed {
		return nil, nil
	}
	x, err := c.find(v)
	if err != nil {
		return nil, err
	}
	if x.Damage != segment.BreakNone {
		return nil, damagedExtent(x, c.pos.Offset)
	}
	if x.Tier == TierWarm {
		return nil, &TierError{Tier: TierWarm, Offset: c.pos.Offset}
	}
	if c.broken {
		c.broken, c.level = false, byPlace
		if x.same(&c.fetch.Extent) {
			return nil, c.fault.err(x)
		}
	}
	c.limit = min(committed, x.End)
	c.plan(v, x, bytes)
	c.flying = true
	return &c.fetch, nil
}

// find returns the extent that holds the cursor's position.
func (c *Cursor) find(v *View) (*Extent, error) {
	o, xs := c.pos.Offset, v.Extents
	for i := c.extent; i <= c.extent+1 && i < len(xs); i++ {
		if xs[i].First <= o && o < xs[i].End {
			c.extent = i
			return &xs[i], nil
		}
	}
	lo, hi := 0, len(xs)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if xs[mid].End <= o {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(xs) || xs[lo].First > o {
		return nil, uncovered(v, lo, o)
	}
	c.extent = lo
	return &xs[lo], nil
}

// plan fills in the fetch: from which position, how many bytes.
func (c *Cursor) plan(v *View, x *Extent, bytes int) {
	f := &c.fetch
	if c.place.valid && (!x.same(&c.fetch.Extent) || c.place.segment != x.Segment || c.place.base > c.pos.Offset) {
		c.place.valid = false
	}
	if !c.place.valid {
		if c.level == byPlace && (x.First != x.Base || c.pos.Offset != x.Base) {
			c.level = byIndex // only the first record of a file needs no look-up
		}
		if c.level == byIndex && x.Index == IndexNone {
			c.level = byScan
		}
	}
	f.Extent, f.From, f.LogID = *x, c.pos.Offset, v.LogID
	f.Pos, f.NoIndex, f.Again = 0, false, c.again
	switch {
	case c.place.valid:
		f.Pos = c.place.pos
	case c.level == byPlace:
		f.Pos = x.DataPos
	case c.level == byScan:
		f.NoIndex = true
	}
	f.Bytes = max(min(bytes, c.window), c.need, segment.BatchHeaderBytes)
	f.At, f.EOF, f.Missing = 0, false, false
	f.Buf = f.Buf[:0]
	c.window = min(2*c.window, max(bytes, windowMin))
	c.need = 0
	c.seeds.use(&v.LogID, x.Segment)
}

// Complete takes the answer of a fetch and verifies it. The only error is *IOError: what does not
// verify is looked for again by Next, which reports it if the current View still promises it.
func (c *Cursor) Complete(f *Fetch, err error) error {
	if f != &c.fetch || !c.flying {
		panic("core: cursor: Complete of a fetch that is not in flight")
	}
	c.flying = false
	if err == nil {
		c.walk()
		return nil
	}
	c.place.valid = false
	if f.Missing {
		c.broken = true
		c.fault = fault{kind: faultMissing, pos: -1, offset: f.From}
		return nil
	}
	return &IOError{Effect: "read of " + segment.Name(f.Extent.Base, f.Extent.Segment), Err: err}
}

// Batch returns the next verified batch of the last fetch and moves the position behind it.
func (c *Cursor) Batch() (b CursorBatch, ok bool) {
	if c.next == len(c.batches) {
		return CursorBatch{}, false
	}
	b = c.batches[c.next]
	c.next++
	c.pos = Position{Offset: b.End(), Epoch: b.Epoch}
	return b, true
}
