package warm

import (
	"errors"
	"io"

	"varve/core"
	"varve/core/segment"
	"varve/core/warmentry"
	"varve/tiers/valkey"
)

// readBytes is how much of a segment file is read at once.
const readBytes = 256 << 10

func ended(err error) bool { return errors.Is(err, io.EOF) }

func (s *Store) runMirror(r *core.Result, e *core.Mirror) error {
	if step, err := s.gather(e); err != nil {
		s.cursor.Reset(core.Position{})
		return failed(r, step, err)
	}
	m := &s.mirror
	m.Entries[0] = valkey.Outgoing{ID: valkey.ID{Generation: e.Entry.Generation, End: e.Entry.End}, Value: s.value}
	m.Ack, m.On = valkey.Ack{Replicas: e.Replicas, Wait: e.Wait}, valkey.ConnID(e.On)
	if err := s.stream.Mirror(m); err != nil {
		return failed(r, core.StepWrite, err)
	}
	found(&e.Predecessor, &m.Predecessor)
	e.Confirmed, e.Bytes = m.Confirmed, int64(len(s.value))
	var err error
	if e.Refusal, err = s.refusal("mirror", &m.Entries[0].XADD); err != nil {
		return failed(r, core.StepWrite, err)
	}
	return nil
}

// gather reads the batches of an entry from their file, and makes s.value of them: as many as fit.
func (s *Store) gather(e *core.Mirror) (core.Step, error) {
	h, x := &e.Entry, &e.Source
	c, v := &s.cursor, &s.view
	if c.Position().Offset != h.First {
		c.Reset(core.Position{Offset: h.First})
	}
	v.Version++
	v.LogID, v.Start, v.HotStart, v.Epoch = h.LogID, x.First, x.First, e.SourceEpoch
	v.Extents = append(v.Extents[:0], *x)
	head := warmentry.HeaderBytes(len(h.Lineage))
	if cap(s.value) < head {
		s.value = make([]byte, head)
	}
	s.value = s.value[:head]
	h.Batches, h.BodyBytes = 0, 0
	seed := segment.IdentitySeed(h.LogID)
	first, next := h.First, h.First
	for next < h.End && !s.full(e) {
		f, err := c.Next(v, h.End, readBytes)
		if err == nil {
			if f.Pos == 0 {
				f.Pos = e.Pos
			}
			err = c.Complete(f, s.files.Fetch(f, &s.handle))
		}
		switch {
		case err != nil && h.Batches > 0: // what lies before it is whole
			h.End = next
			continue
		case err != nil:
			return core.StepRead, err
		}
		for next < h.End && !s.full(e) {
			b, ok := c.Batch()
			if !ok {
				break
			}
			if next == h.First {
				first = b.Base // a trim may have cut inside of it
			}
			segment.PutIdentity(s.identity[:], &b.Identity, seed)
			s.value = warmentry.AppendBatch(s.value, s.identity[:], b.Payload)
			next = b.Identity.End()
			h.Batches++
		}
	}
	h.First, h.End, h.BodyBytes = first, next, int64(len(s.value)-head)
	_, err := warmentry.AppendHeader(s.value[:0], h)
	return core.StepWrite, err
}

// full reports whether an entry that has a batch has reached what it may have.
func (s *Store) full(e *core.Mirror) bool {
	return e.Entry.Batches > 0 && int64(len(s.value)) >= e.BytesMax
}
