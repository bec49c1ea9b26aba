package valkey

import "bytes"

// Probe looks at the stream and at the server, and changes nothing.
type Probe struct {
	Replicas int // that an ack will wait for

	Entries  int64
	First    Stored
	Top      Stored
	LastID   ID // the last id that the server gave, also of an entry that is gone; zero: not known
	Server   Facts
	Findings Findings
	On       ConnID
}

// Probe carries a Probe out.
func (s *Store) Probe(b *Probe) error {
	const op = "probe"
	b.Entries, b.LastID, b.Findings, b.On = 0, ID{}, 0, 0
	b.First.reset()
	b.Top.reset()
	p := s.begin(0, 4*s.bounds.EntryBytes)
	p.Command("TYPE").Key(s.key)
	p.Command("XLEN").Key(s.key)
	p.Command("XRANGE").Key(s.key).Text("-").Text("+").Text("COUNT").Number(1)
	p.Command("XREVRANGE").Key(s.key).Text("+").Text("-").Text("COUNT").Number(1)
	p.Command("XINFO").Text("STREAM").Key(s.key)
	p.Command("INFO")
	p.Command("CONFIG").Text("GET").Text("appendfsync")
	p.Command("CONFIG").Text("GET").Text("save")
	if err := s.run(op, 0); err != nil {
		return err
	}
	if kind := &p.Replies[0]; kind.Kind == Error {
		return s.fail(op, &ServerError{refusal(kind).Outcome, string(kind.Text)})
	} else if string(kind.Text) != "stream" && string(kind.Text) != "none" {
		return s.fail(op, &TypeError{s.key, string(kind.Text)})
	}
	length := &p.Replies[1]
	if length.Kind != Int {
		return s.protocol(op, "a number of entries", length)
	}
	b.Entries = length.Int
	if err := s.one(op, &p.Replies[2], &b.First); err != nil {
		return err
	}
	if err := s.one(op, &p.Replies[3], &b.Top); err != nil {
		return err
	}
	b.LastID = lastID(&p.Replies[4])
	if b.LastID.Less(b.Top.ID) { // a server that does not tell
		b.LastID = b.Top.ID
	}
	b.Server.read(p.Replies[5].Text, configured(&p.Replies[6]), configured(&p.Replies[7]))
	b.Findings = b.Server.judge(b.Replicas)
	b.On = s.id
	return nil
}

// ServerError says that the server does not answer questions.
type ServerError struct {
	Outcome Outcome
	Text    string
}

func (e *ServerError) Error() string {
	if e.Text == "" { // the outcome says all
		return e.Outcome.String()
	}
	return e.Outcome.String() + ": " + e.Text
}

// lastID finds the last id in a reply to XINFO STREAM, names and values in turn. An absent stream has
// none, and not every server tells.
func lastID(r *Reply) ID {
	if r.Kind != Array {
		return ID{}
	}
	for i := 0; i+1 < len(r.Elems); i += 2 {
		if string(r.Elems[i].Text) == "last-generated-id" {
			id, _ := ParseID(r.Elems[i+1].Text)
			return id
		}
	}
	return ID{}
}

// configured returns the value in a reply to CONFIG GET, nil if the server does not tell.
func configured(r *Reply) []byte {
	if r.Kind != Array || len(r.Elems) != 2 || r.Elems[1].Kind != Bulk {
		return nil
	}
	return bytes.TrimSpace(r.Elems[1].Text)
}
