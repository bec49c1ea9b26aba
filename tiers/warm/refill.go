package warm

import (
	"fmt"

	"varve/core"
	"varve/core/segment"
	"varve/core/warmentry"
	"varve/tiers/disk"
	"varve/tiers/valkey"
)

// refill walks through the batches of a span that the stream holds.
type refill struct {
	s    *Store
	x    core.Extent
	next segment.Offset

	read valkey.ReadWarm
	at   int // in read.Entries: the entry that walk is in
	in   bool
	walk warmentry.Walk
	raw  []byte
}

// Batches implements disk.Streams. The batches are those of the extent's epoch and generation, in order
// and without a gap; what is not there is an error of Next.
func (s *Store) Batches(x *core.Extent) disk.Batches {
	f := &s.refill
	f.s, f.x, f.next, f.at = s, *x, x.First, 0
	f.read.Entries = f.read.Entries[:0]
	f.in = false
	return f
}

// Next implements disk.Batches.
func (f *refill) Next(b *segment.Batch) (more bool, err error) {
	for f.next < f.x.End {
		if !f.in {
			if err := f.enter(); err != nil {
				return false, err
			}
		}
		batch, err := f.walk.Next(&b.Identity)
		switch {
		case err != nil && !ended(err):
			return false, fmt.Errorf("%w: %w", disk.ErrSource, err)
		case err != nil:
			f.in = false
			f.at++
			continue
		case b.Identity.End() <= f.next:
			continue
		case b.Identity.Epoch != f.x.Epoch:
			return false, fmt.Errorf("%w: epoch %d at offset %d of the warm tier, expected %d", disk.ErrSource, b.Identity.Epoch, b.Identity.Base, f.x.Epoch)
		}
		f.raw = append(append(f.raw[:0], make([]byte, segment.PlacementBytes)...), batch...)
		b.Raw, b.First = f.raw, f.next == f.x.First
		f.next = b.Identity.End()
		return true, nil
	}
	return false, nil
}

// enter goes to the entry that holds the next offset.
func (f *refill) enter() error {
	for {
		for ; f.at < len(f.read.Entries); f.at++ {
			e := &f.read.Entries[f.at]
			switch {
			case e.ID.Generation != f.x.Generation:
				return fmt.Errorf("%w: the warm tier has no offset %d in generation %d any more", disk.ErrSource, f.next, f.x.Generation)
			case e.Err != nil || e.Header.End <= f.next || e.Header.Batches == 0:
				continue
			}
			f.walk, f.in = e.Header.Walk(e.Body), true
			return nil
		}
		if len(f.read.Entries) > 0 && !f.read.More {
			return fmt.Errorf("%w: the warm tier ends before offset %d", disk.ErrSource, f.next)
		}
		from := valkey.ID{Generation: f.x.Generation, End: f.next + 1}
		if err := page(f.s.side, &f.read, from); err != nil {
			return err
		}
		if f.at = 0; len(f.read.Entries) == 0 {
			return fmt.Errorf("%w: the warm tier has no offset %d in generation %d any more", disk.ErrSource, f.next, f.x.Generation)
		}
	}
}
