package valkey

// ReadWarm reads a page of entries from an id on.
type ReadWarm struct {
	From  ID
	Count int  // at most
	Front bool // the first entry of all is wanted, too

	First   Stored   // of the stream, with Front
	Entries []Stored // by id; a damaged one is there too, with its error
	More    bool     // there may be more
	On      ConnID
}

// ReadWarm carries a ReadWarm out. A page that passes the bounds is ErrReplyTooLarge: ask for fewer
// entries, down to one.
func (s *Store) ReadWarm(r *ReadWarm) error {
	const op = "read"
	entries := r.Entries[:cap(r.Entries)]
	r.Entries, r.More, r.On = r.Entries[:0], false, 0
	r.First.reset()
	room := max(s.bounds.PageBytes, s.bounds.EntryBytes) + int64(r.Count)*replyCost*8
	if r.Front {
		room += s.bounds.EntryBytes
	}
	p := s.begin(0, room)
	p.Command("XRANGE").Key(s.key).ID(r.From).Text("+").Text("COUNT").Number(int64(r.Count))
	if r.Front {
		p.Command("XRANGE").Key(s.key).Text("-").Text("+").Text("COUNT").Number(1)
	}
	if err := s.run(op, 0); err != nil {
		return err
	}
	reply := &p.Replies[0]
	if reply.Kind == Error && refusal(reply).Outcome == WrongType {
		return s.fail(op, &TypeError{Key: s.key})
	}
	if reply.Kind != Array || len(reply.Elems) > r.Count {
		return s.protocol(op, "a page of entries", reply)
	}
	for len(entries) < len(reply.Elems) {
		entries = append(entries, Stored{})
	}
	entries = entries[:len(reply.Elems)]
	for i := range entries {
		if !s.stored(&reply.Elems[i], &entries[i]) {
			return s.protocol(op, "an entry", &reply.Elems[i])
		}
	}
	if r.Front {
		if err := s.one(op, &p.Replies[1], &r.First); err != nil {
			return err
		}
	}
	r.Entries, r.More, r.On = entries, len(entries) == r.Count, s.id
	return nil
}
