package warmentry

import (
	"fmt"
	"io"

	"varve/core/segment"
)

// Walk goes through the batches of an entry. Each one is verified when Next comes to it; that they are
// as many as the header states, dense, and fill its span is known once Next has said io.EOF.
type Walk struct {
	rest  []byte
	pos   int64 // in the entry
	next  segment.Offset
	end   segment.Offset
	left  uint32
	epoch segment.Epoch
	seed  uint32
}

// Walk returns a walk through the body that ReadHeader gave with e.
func (e *Entry) Walk(body []byte) Walk {
	return Walk{
		rest: body, pos: int64(HeaderBytes(len(e.Lineage))), next: e.First, end: e.End, left: e.Batches,
		epoch: e.Epoch, seed: segment.IdentitySeed(e.LogID),
	}
}

// Next decodes the identity of the next batch and returns the batch: identity header and payload, the
// bytes that every tier has. At the end the error is io.EOF; otherwise it is a *Error.
func (w *Walk) Next(i *segment.Identity) (batch []byte, err error) {
	if w.left == 0 {
		switch {
		case len(w.rest) != 0:
			return nil, w.bad("the end behind the last batch", fmt.Sprintf("%d bytes", len(w.rest)))
		case w.next != w.end:
			return nil, w.bad(fmt.Sprintf("batches up to offset %d", w.end), fmt.Sprintf("the end at %d", w.next))
		}
		return nil, io.EOF
	}
	switch {
	case !segment.DecodeIdentity(i, w.rest, w.seed):
		return nil, w.bad("an identity header that verifies", fmt.Sprintf("%d bytes without one", len(w.rest)))
	case i.Base != w.next || i.End() > w.end:
		return nil, w.bad(fmt.Sprintf("a batch at offset %d, within [%d, %d)", w.next, w.next, w.end), fmt.Sprintf("[%d, %d)", i.Base, i.End()))
	case i.Epoch == 0 || i.Epoch > w.epoch:
		return nil, w.bad(fmt.Sprintf("an epoch of 1 to %d, the writer's", w.epoch), fmt.Sprint(i.Epoch))
	case int64(i.PayloadBytes) > int64(len(w.rest)-segment.IdentityBytes):
		return nil, w.bad(fmt.Sprintf("a payload of %d bytes", i.PayloadBytes), fmt.Sprintf("%d", len(w.rest)-segment.IdentityBytes))
	}
	batch = w.rest[: segment.IdentityBytes+int(i.PayloadBytes) : segment.IdentityBytes+int(i.PayloadBytes)]
	if sum := segment.PayloadCRC(batch[segment.IdentityBytes:]); sum != i.PayloadCRC {
		w.pos += segment.IdentityBytes
		return nil, w.bad(fmt.Sprintf("a payload with the checksum %08x", i.PayloadCRC), fmt.Sprintf("%08x", sum))
	}
	w.rest = w.rest[len(batch):]
	w.pos += int64(len(batch))
	w.next = i.End()
	w.left--
	return batch, nil
}

func (w *Walk) bad(expected, found string) error { return &Error{w.pos, expected, found} }
