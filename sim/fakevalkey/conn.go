package fakevalkey

import (
	"varve/core/segment"
	"varve/tiers/valkey"
)

// Conn is a connection to the server. It implements valkey.Conn.
type Conn struct {
	server  *Server
	id      valkey.ConnID
	dead    bool
	wrote   int  // length of the history behind what it wrote last; 0: nothing
	writing bool // something was written by the pipeline that runs
}

// Latency of calls, and of slow ones.
const (
	callTime = 20_000 // 20 us
	slowTime = 400_000_000
)

// Dial opens a connection to the primary.
func (s *Server) Dial(string) (valkey.Conn, error) {
	if s.faults.strikes(W1Dial) {
		s.faults.mark(W1Dial)
		return nil, valkey.ErrConnectionLost
	}
	if s.used == len(s.conns) {
		s.conns = append(s.conns, &Conn{})
	}
	c := s.conns[s.used]
	s.used++
	*c = Conn{server: s, id: s.newID()}
	return c, nil
}

func (s *Server) newID() valkey.ConnID {
	s.lastConn++
	return s.lastConn
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.dead = true
	return nil
}

// Do runs a pipeline, as far as faults let it.
func (c *Conn) Do(p *valkey.Pipeline) error {
	s := c.server
	f := &s.faults
	s.delay += callTime
	if c.dead {
		return valkey.ErrConnectionLost
	}
	if f.strikes(W1Before) {
		return c.lost(W1Before)
	}
	if f.strikes(W12Before) {
		f.mark(W12Before)
		c.again()
	}
	if len(s.streams) > 0 && f.strikes(W6Evict) {
		s.evict(f.number(len(s.streams)))
	}
	if f.strikes(W9Slow) {
		f.mark(W9Slow)
		s.delay += segment.Time(f.number(slowTime))
	}
	n := p.Len()
	cut, change := n, n
	if f.strikes(W1Inside) {
		cut = f.number(n)
	}
	if f.strikes(W12Inside) && n > 1 {
		change = 1 + f.number(n-1)
	}
	full := f.strikes(W6OOM)
	c.writing = false
	replies := p.Answer()
	p.Began = c.id
	for i := range replies {
		if i == cut {
			s.shaken = true
			return c.lost(W1Inside)
		}
		if i == change {
			s.shaken = true
			f.mark(W12Inside)
			c.again()
		}
		if err := c.command(p, i, &replies[i], full); err != nil {
			c.dead = true
			return err
		}
	}
	p.Ended = c.id
	if f.strikes(W1After) {
		s.shaken = true
		return c.lost(W1After)
	}
	return nil
}

func (c *Conn) lost(f Fault) error {
	c.server.faults.mark(f)
	c.dead = true
	return valkey.ErrConnectionLost
}

// again makes it another connection, which nobody is told.
func (c *Conn) again() {
	c.id, c.wrote, c.writing = c.server.newID(), 0, false
}

// write does a write of this connection.
func (c *Conn) write(w write) {
	c.wrote = c.server.write(w)
	c.writing = true
}

// wait lets replicas catch up and counts those that have what this connection wrote last.
func (c *Conn) wait(asked int, timeout segment.Time) (n int) {
	s := c.server
	if !c.writing {
		s.faults.mark(W3Other)
	}
	short := s.config.Replicas // replicas from here on do not confirm in time
	fault := NoFault
	shaken := s.shaken && s.faults.set&(W2Short.Bit()|W2Late.Bit()) != 0 && s.faults.number(4) > 0
	s.shaken = false
	if s.config.Replicas > 0 && (shaken || s.faults.strikes(W2Short)) {
		fault, short = W2Short, s.faults.number(s.config.Replicas)
	} else if s.config.Replicas > 0 && s.faults.strikes(W2Late) {
		fault, short = W2Late, s.faults.number(s.config.Replicas)
	}
	for i := range s.replicas[:s.config.Replicas] {
		r := &s.replicas[i]
		if i < short && !r.frozen {
			r.has = len(s.history)
		}
		if r.has >= c.wrote {
			n++
		}
		if i >= short && fault == W2Late && !r.frozen {
			r.has = len(s.history)
		}
	}
	if fault != NoFault && n < s.config.Replicas {
		s.faults.mark(fault)
	}
	if n > 0 && n >= asked { // else nobody counts on it
		s.safe = max(s.safe, c.wrote)
	}
	if n < asked {
		s.delay += timeout
	}
	return n
}
