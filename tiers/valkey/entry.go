package valkey

import (
	"errors"
	"fmt"

	"varve/core/warmentry"
)

// Field is the one field of an entry.
const Field = "e"

// Stored is an entry as the server gave it. Value, Body and the header's lineage are valid until the
// next operation of the store.
type Stored struct {
	Found  bool
	ID     ID
	Value  []byte
	Header warmentry.Entry // its checksum is right and it belongs to this id; of which log, the caller compares
	Body   []byte          // batches, which Header.Walk verifies
	Err    error           // why Header and Body do not count; it has the entry's place
}

// ErrForeign says that the stream holds what no log wrote.
var ErrForeign = errors.New("foreign data under the key of a log; give the log another name, or remove the key")

// reset forgets the entry and keeps its memory.
func (e *Stored) reset() { *e = Stored{Header: warmentry.Entry{Lineage: e.Header.Lineage[:0]}} }

// refuse says why an entry does not count.
func (s *Store) refuse(e *Stored, id []byte, err error) {
	e.Header = warmentry.Entry{Lineage: e.Header.Lineage[:0]}
	e.Err = fmt.Errorf("valkey: entry %.60q of %s: %w", id, s.key, err)
}

// stored reads an element of a reply to XRANGE: id, then fields and values.
func (s *Store) stored(r *Reply, e *Stored) (ok bool) {
	e.Found, e.ID, e.Value, e.Body, e.Err = true, ID{}, nil, nil, nil // ReadHeader, or refuse, does the rest
	if r.Kind != Array || len(r.Elems) != 2 || r.Elems[0].Kind != Bulk || r.Elems[1].Kind != Array {
		return false
	}
	text, fields := r.Elems[0].Text, r.Elems[1].Elems
	if e.ID, ok = ParseID(text); !ok || len(fields) != 2 || string(fields[0].Text) != Field {
		s.refuse(e, text, ErrForeign)
		return true
	}
	e.Value = fields[1].Text
	body, err := warmentry.ReadHeader(e.Value, &e.Header)
	switch {
	case errors.Is(err, warmentry.ErrForeign):
		s.refuse(e, text, ErrForeign)
	case err != nil:
		s.refuse(e, text, err)
	case e.Header.Generation != e.ID.Generation || e.Header.End != e.ID.End:
		s.refuse(e, text, &warmentry.Error{
			Pos: 32, Expected: "the header of this id", Found: ID{e.Header.Generation, e.Header.End}.String(),
		})
	default:
		e.Body = body
	}
	return true
}

// one reads a reply of at most one entry.
func (s *Store) one(op string, r *Reply, e *Stored) error {
	if r.Kind == Error && refusal(r).Outcome == WrongType {
		return s.fail(op, &TypeError{Key: s.key})
	}
	if r.Kind == Array && len(r.Elems) == 0 {
		e.reset()
		return nil
	}
	if r.Kind != Array || len(r.Elems) != 1 || !s.stored(&r.Elems[0], e) {
		return s.protocol(op, "an entry", r)
	}
	return nil
}

// TypeError says that the key of the log holds something that is no stream. Nothing was changed.
type TypeError struct {
	Key  string
	Type string // empty: not known
}

func (e *TypeError) Error() string {
	found := e.Type
	if found == "" {
		found = "another type"
	}
	return fmt.Sprintf("expected a stream under the key %s, found %s; give the log another name, or remove the key", e.Key, found)
}
