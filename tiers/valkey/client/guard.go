package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"varve/tiers/valkey"
)

// guard stands between the library and the sockets of one client. It bounds what comes in, and can
// close everything at once.
type guard struct {
	longest int64        // text in a reply
	left    atomic.Int64 // bytes that may still come
	cut     atomic.Pointer[error]

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

const (
	helloBytes = 1 << 20  // of replies while a connection is opened
	slack      = 64 << 10 // lengths, ends of lines and CLIENT ID, which a pipeline does not count
)

// allow says how many bytes may come from now on.
func (g *guard) allow(n int64) { g.left.Store(n + slack) }

// reason returns why the guard cut a connection, nil if it did not.
func (g *guard) reason() error {
	if err := g.cut.Load(); err != nil {
		return *err
	}
	return nil
}

// dial opens a socket for the library.
func (g *guard) dial(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if config != nil {
		if c, err = secure(ctx, c, address, d.Timeout, config); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	g.conns = append(g.conns, c)
	return &guarded{Conn: c, guard: g, in: outline{longest: g.longest}, out: outline{longest: math.MaxInt64 / 4}}, nil
}

// secure shakes hands. A server that talks no TLS may not answer at all.
func secure(ctx context.Context, c net.Conn, address string, timeout time.Duration, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if config.ServerName == "" && !config.InsecureSkipVerify {
		host, _, _ := net.SplitHostPort(address) // checked by New, or said by a server
		config = config.Clone()
		config.ServerName = host
	}
	s := tls.Client(c, config)
	if err := s.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return s, nil
}

// close closes every socket, and those that would come.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.conns {
		_ = c.Close() // nothing is left to be said on it
	}
	g.conns = nil
}

// guarded is a socket whose replies are judged.
type guarded struct {
	net.Conn
	guard *guard
	in    outline
	out   outline
	asked atomic.Int64 // commands that were written
}

// Read reads, and fails where replies pass their bounds, or where nobody asked for one.
func (c *guarded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	left := c.guard.left.Add(-int64(n))
	if left < 0 {
		return 0, c.refuse(valkey.ErrReplyTooLarge, "more bytes than are allowed for all replies")
	}
	if err := c.in.follow(b[:n], left); err != nil {
		return 0, c.refuse(valkey.ErrReplyTooLarge, err.Error())
	}
	if asked := c.asked.Load(); c.in.whole > asked {
		return 0, c.refuse(valkey.ErrProtocol, fmt.Sprintf("%d replies to %d commands", c.in.whole, asked))
	}
	return n, err
}

// Write counts the commands that it sends.
func (c *guarded) Write(b []byte) (int, error) {
	if err := c.out.follow(b, math.MaxInt64/4); err != nil {
		return 0, err
	}
	c.asked.Store(c.out.whole)
	return c.Conn.Write(b)
}

// refuse cuts the connection: what follows would be taken for another reply.
func (c *guarded) refuse(kind error, what string) error {
	err := fmt.Errorf("%w: %s", kind, what)
	c.guard.cut.CompareAndSwap(nil, &err)
	_ = c.Close()
	return err
}
