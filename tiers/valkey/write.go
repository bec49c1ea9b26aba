package valkey

import "varve/core/segment"

// Ack is how many replicas must confirm, and how long to wait for them.
type Ack struct {
	Replicas int
	Wait     segment.Time // rounded up to milliseconds, at least 1
}

const millisecond = 1_000_000

// add adds the WAIT of a pipeline that has written.
func (a Ack) add(p *Pipeline) {
	ms := max(1, (a.Wait+millisecond-1)/millisecond) // 0 would wait for ever
	p.Command("WAIT").Number(int64(a.Replicas)).Number(ms)
}

// confirmed reads the reply to a WAIT: how many replicas have what this pipeline wrote, if it wrote.
func (s *Store) confirmed(op string, r *Reply) (int, error) {
	switch {
	case r.Kind == Int && r.Int >= 0:
		return int(r.Int), nil
	case r.Kind == Error: // no primary any more, or not allowed: nobody confirmed
		return 0, nil
	}
	return 0, s.protocol(op, "a number of replicas", r)
}

// added adds the XADD of an entry.
func (s *Store) added(p *Pipeline, id ID, value []byte) {
	p.Command("XADD").Key(s.key).ID(id).Text(Field).Bytes(value)
}

// outcome reads the reply to an XADD.
func (s *Store) outcome(op string, r *Reply, id ID) (Refusal, error) {
	if r.Kind == Error {
		return refusal(r), nil
	}
	var b [IDBytesMax]byte
	if r.Kind != Bulk && r.Kind != Status || string(r.Text) != string(id.Append(b[:0])) {
		return Refusal{}, s.protocol(op, "the id "+id.String(), r)
	}
	return Refusal{Outcome: Done}, nil
}

// Fence is the marker of a new generation: from here on the server refuses older ones. Probe comes
// before it: it knows whether the key holds something that is not ours.
type Fence struct {
	Generation uint64
	Marker     []byte // the encoded entry; its id is <generation>-0
	Ack        Ack

	XADD      Refusal
	Top       Stored // the last entry afterwards: the marker, or who was ahead
	Confirmed int    // replicas that have the marker; 0 if it was refused
	On        ConnID
}

// Fence carries a Fence out.
func (s *Store) Fence(f *Fence) error {
	const op = "fence"
	f.XADD, f.Confirmed, f.On = Refusal{}, 0, 0
	f.Top.reset()
	p := s.begin(f.Ack.Wait, s.bounds.EntryBytes)
	id := ID{Generation: f.Generation}
	s.added(p, id, f.Marker)
	p.Command("XREVRANGE").Key(s.key).Text("+").Text("-").Text("COUNT").Number(1)
	f.Ack.add(p)
	if err := s.run(op, 0); err != nil {
		return err
	}
	xadd, err := s.outcome(op, &p.Replies[0], id)
	if err != nil {
		return err
	}
	if err := s.one(op, &p.Replies[1], &f.Top); err != nil {
		return err
	}
	n, err := s.confirmed(op, &p.Replies[2])
	if err != nil {
		return err
	}
	f.XADD, f.On = xadd, s.id
	if xadd.Outcome == Done {
		f.Confirmed = n
	}
	return nil
}

// Outgoing is an entry to write.
type Outgoing struct {
	ID    ID
	Value []byte
	XADD  Refusal // the answer
}

// Mirror writes commits, in order, and reads the entry before the first one: if that is not the one
// that was written before, the server lost something. It counts only if AllDone, the predecessor is
// ours, and enough replicas confirmed.
type Mirror struct {
	Entries []Outgoing
	Ack     Ack
	On      ConnID // the connection that the last Fence or Mirror ran on

	Predecessor Stored // the entry below the first id
	Confirmed   int    // replicas that have all that this pipeline wrote; 0 unless AllDone
}

// AllDone reports whether the server took every entry.
func (m *Mirror) AllDone() bool {
	for i := range m.Entries {
		if m.Entries[i].XADD.Outcome != Done {
			return false
		}
	}
	return true
}

// Mirror carries a Mirror out.
func (s *Store) Mirror(m *Mirror) error {
	const op = "mirror"
	m.Confirmed = 0
	m.Predecessor.reset()
	if m.On == 0 || len(m.Entries) == 0 || m.Entries[0].ID.End < 1 {
		return s.fail(op, ErrConnection)
	}
	for i := range m.Entries {
		m.Entries[i].XADD = Refusal{}
	}
	first := m.Entries[0].ID
	p := s.begin(m.Ack.Wait, s.bounds.EntryBytes+int64(len(m.Entries))*overhead)
	for i := range m.Entries {
		s.added(p, m.Entries[i].ID, m.Entries[i].Value)
	}
	p.Command("XREVRANGE").Key(s.key).ID(ID{first.Generation, first.End - 1}).Text("-").Text("COUNT").Number(1)
	m.Ack.add(p)
	if err := s.run(op, m.On); err != nil {
		return err
	}
	n := len(m.Entries)
	confirmed, err := s.confirmed(op, &p.Replies[n+1])
	if err != nil {
		return err
	}
	if err := s.one(op, &p.Replies[n], &m.Predecessor); err != nil {
		return err
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.XADD, err = s.outcome(op, &p.Replies[i], e.ID); err != nil {
			return err
		}
	}
	if m.AllDone() { // one refused, and WAIT speaks of another
		m.Confirmed = confirmed
	}
	return nil
}

// TrimWarm removes the entries below an id.
type TrimWarm struct {
	Below ID

	XTRIM   Refusal
	Removed int64
}

// TrimWarm carries a TrimWarm out.
func (s *Store) TrimWarm(t *TrimWarm) error {
	const op = "trim"
	t.XTRIM, t.Removed = Refusal{}, 0
	p := s.begin(0, 0)
	p.Command("XTRIM").Key(s.key).Text("MINID").Text("=").ID(t.Below)
	if err := s.run(op, 0); err != nil {
		return err
	}
	switch r := &p.Replies[0]; {
	case r.Kind == Error:
		t.XTRIM = refusal(r)
	case r.Kind == Int && r.Int >= 0:
		t.XTRIM, t.Removed = Refusal{Outcome: Done}, r.Int
	default:
		return s.protocol(op, "a number of entries", r)
	}
	return nil
}
