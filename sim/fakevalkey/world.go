package fakevalkey

// What the world does to a server, besides its calls.

// SetFrozen stops a replica, or lets it go on: a stopped one confirms nothing.
func (s *Server) SetFrozen(replica int, frozen bool) {
	check(replica < s.config.Replicas, "no such replica")
	s.replicas[replica].frozen = frozen
}

// Disconnect breaks every connection.
func (s *Server) Disconnect() {
	for _, c := range s.conns[:s.used] {
		c.dead = true
	}
}

// Failover kills the primary and promotes the replica that has most. What it lacks is lost. Without a
// replica it is a restart.
func (s *Server) Failover() {
	if s.config.Replicas == 0 {
		s.Restart()
		return
	}
	s.Disconnect()
	n := 0
	for i := range s.replicas[:s.config.Replicas] {
		n = max(n, s.replicas[i].has)
	}
	if s.faults.strikes(W4Suffix) { // another one was chosen
		n = min(n, s.replicas[s.faults.number(s.config.Replicas)].has)
	}
	if s.faults.strikes(W4Acked) && s.safe > 0 {
		n = min(n, s.faults.number(s.safe))
	}
	if n < len(s.history) {
		s.faults.mark(W4Suffix)
	}
	if n < s.safe {
		s.faults.mark(W4Acked)
	}
	s.cut(n)
}

// Restart kills the primary and starts it again from its disk, before a replica is promoted. Replicas
// then follow what it has. What is lost depends on how it persists; a fault that is armed or drawn
// loses more.
func (s *Server) Restart() {
	s.Disconnect()
	n := len(s.history)
	switch {
	case s.config.Persist == Nothing || s.faults.strikes(W5All):
		n = 0
	case s.config.Persist == EverySec || s.config.Persist == Snapshots || s.faults.strikes(W5Suffix):
		n = s.faults.number(n + 1)
	}
	regress := s.faults.strikes(W5Regress)
	if regress {
		n = s.faults.number(n + 1)
	}
	prefix := s.faults.strikes(W5Prefix)
	if n < len(s.history) {
		if s.faults.mark(W5Suffix); n == 0 {
			s.faults.mark(W5All)
		}
		s.cut(n)
	}
	for i := range s.streams {
		if x := &s.streams[i]; prefix && len(x.entries) > 0 {
			s.faults.mark(W5Prefix)
			s.write(write{kind: writeDrop, stream: i, count: 1 + s.faults.number(len(x.entries))})
		}
		if x := &s.streams[i]; regress && x.kind == kindStream {
			s.faults.mark(W5Regress)
			s.write(write{kind: writeRegress, stream: i})
		}
	}
	for i := range s.replicas[:s.config.Replicas] {
		s.replicas[i].has = len(s.history)
	}
}

// Evict removes a key, as a server that is short of memory does.
func (s *Server) Evict(key string) { s.evict(s.stream([]byte(key))) }

func (s *Server) evict(i int) {
	if s.streams[i].kind != kindNone {
		s.faults.mark(W6Evict)
		s.write(write{kind: writeDelete, stream: i})
	}
}

// SetType puts something that is no stream under a key.
func (s *Server) SetType(key string) {
	s.faults.mark(W10Type)
	s.write(write{kind: writeType, stream: s.stream([]byte(key))})
}

// Last returns the generation of the newest entry that a key has had, 0 if it has had none.
func (s *Server) Last(key string) uint64 { return s.streams[s.stream([]byte(key))].last.a }

// Another adds an entry of another log behind the last one of a key: it begins the next generation.
func (s *Server) Another(key, field string, value []byte) {
	i := s.stream([]byte(key))
	first := len(s.fields)
	s.fields = append(s.fields, s.keep([]byte(field)), s.keep(value))
	id := rawID{s.streams[i].last.a + 1, 0}
	s.write(write{kind: writeAdd, stream: i, id: id, name: s.keepID(id), first: first, end: first + 2})
}

// Foreign adds an entry that no log wrote behind the last one of a key.
func (s *Server) Foreign(key, field, value string) {
	s.faults.mark(W10Foreign)
	i := s.stream([]byte(key))
	if s.streams[i].kind == kindOther {
		s.write(write{kind: writeDelete, stream: i})
	}
	first := len(s.fields)
	s.fields = append(s.fields, s.keep([]byte(field)), s.keep([]byte(value)))
	id := rawID{s.streams[i].last.a + 1, 7}
	s.write(write{kind: writeAdd, stream: i, id: id, name: s.keepID(id), first: first, end: first + 2})
}
