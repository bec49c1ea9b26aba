package valkey

// Remove removes the stream. Where there is none that is no error. Nobody writes to it any more.
func (s *Store) Remove() error {
	const op = "remove"
	p := s.begin(0, 0)
	p.Command("DEL").Key(s.key)
	if err := s.run(op, 0); err != nil {
		return err
	}
	if r := &p.Replies[0]; r.Kind != Int {
		return s.protocol(op, "how many keys went", r)
	}
	return nil
}
