package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker"
)

// conn is one connection. Its first goroutine reads requests and carries them out; see answers for
// the second.
type conn struct {
	s       *Server
	nc      net.Conn
	in      frameReader
	closing atomic.Bool
	client  string // as the last request gave it

	answers answers
	readers readers
	wake    chan struct{} // told by logs that are watched
	timer   timer
	asked   kmsg.FetchRequest // memory of the last one
	named   map[*broker.Partition]struct{}
	checker checker
}

// readBytes is the buffer in front of a connection; what is longer is read past it.
const readBytes = 4 << 10

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc, wake: make(chan struct{}, 1)}
	c.in = frameReader{
		conn: nc, in: bufio.NewReaderSize(nc, readBytes), budget: &s.requests, limit: s.o.RequestBytesMax,
		idle: s.o.IdleTimeout, patient: s.o.FrameTimeout, closing: &c.closing,
	}
	c.answers.conn = c
	c.named = make(map[*broker.Partition]struct{})
	c.readers.broker = s.broker
	c.readers.byPartition = make(map[*broker.Partition]*reader)
	return c
}

// interrupt ends the reading of requests; what was read is answered, if the peer takes it soon.
func (c *conn) interrupt() {
	c.closing.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	_ = c.nc.SetWriteDeadline(time.Now().Add(drainTimeout))
}

// drainTimeout is how long a peer has at a shutdown to take an answer.
const drainTimeout = 3 * time.Second

func (c *conn) serve() {
	err := c.read()
	c.answers.finish()
	c.leave()
	c.readers.close()
	var malformed *malformedError
	var frame *frameError
	switch {
	case errors.As(err, &malformed), errors.As(err, &frame):
		c.s.counts.malformed.Add(1)
		if skipped, tell := c.s.lines.malformed.tell(time.Now()); tell {
			c.s.o.Logger.Warn("kafka: a connection is closed", "remote", c.nc.RemoteAddr(), "client", c.client, "error", err, "not_told", skipped)
		}
	case !errors.Is(err, io.EOF) && !errors.Is(err, errInterrupted):
		c.s.o.Logger.Debug("kafka: a connection ended", "remote", c.nc.RemoteAddr(), "client", c.client, "error", err)
	}
}

// leave closes the connection. Where bytes came that nobody has read, the system would have the peer drop
// what is on its way to it: they are read for a while, and dropped.
func (c *conn) leave() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(leaveTimeout))
		_, _ = io.Copy(io.Discard, c.nc)
	}
	_ = c.nc.Close()
}

// leaveTimeout is how long a peer has to see that the connection ends, and to end it.
const leaveTimeout = time.Second

// read carries out requests until there are no more.
func (c *conn) read() error {
	for {
		f, err := c.in.next(c.s.ctx)
		if err != nil {
			return err
		}
		r := request{frame: f}
		if err := c.carryOut(&r); err != nil {
			r.frame.release()
			return err
		}
	}
}

// malformedError is a request that cannot be decoded.
type malformedError struct {
	what string
	size int
}

func (e *malformedError) Error() string {
	return fmt.Sprintf("kafka: malformed request of %d bytes: %s", e.size, e.what)
}

// request is a request with its header decoded.
type request struct {
	frame       frame
	body        []byte // behind the header
	api         *api
	version     int16
	correlation int32
	flexible    bool
}

// carryOut answers a request or hands it to who will. Who takes the frame releases it, also where sending
// the answer fails; what is left of it then is empty.
func (c *conn) carryOut(r *request) error {
	if err := c.header(r); err != nil {
		return err
	}
	c.s.counts.requests[r.api.key].Add(1)
	served := r.version >= r.api.from && r.version <= r.api.max
	switch {
	case !served && r.api.key == keyAPIVersions:
		return c.answer(r, apiVersionsRefused())
	case !served:
		return c.refuse(r)
	case r.api.key == keyProduce:
		return c.produce(r)
	case r.api.key == keyFetch:
		return c.fetch(r)
	}
	req, err := c.decode(r)
	if err != nil {
		return err
	}
	return c.answer(r, r.api.handle(c.s.ctx, c, req))
}

const (
	keyProduce     = 0
	keyFetch       = 1
	keyAPIVersions = 18

	apiVersionsMax = 4
)

// header reads key, version, correlation id, client and tags.
func (c *conn) header(r *request) error {
	b := r.frame.body
	key := int16(binary.BigEndian.Uint16(b))
	r.version = int16(binary.BigEndian.Uint16(b[2:]))
	r.correlation = int32(binary.BigEndian.Uint32(b[4:]))
	if key < 0 || int(key) >= len(c.s.apis) || c.s.apis[key] == nil {
		return &malformedError{what: fmt.Sprintf("key %d (version %d) is none that was advertised", key, r.version), size: len(b)}
	}
	r.api = c.s.apis[key]
	r.flexible = r.version >= r.api.flexible
	d := decoder{b: b[8:]}
	client := d.string() // not compact, whatever the version
	if d.flexible = r.flexible; key == keyAPIVersions && r.version > r.api.max {
		d.flexible = false // nobody knows what is behind it
	}
	d.tags()
	if d.bad || r.version < 0 {
		return &malformedError{what: fmt.Sprintf("header of %s version %d", r.api.name, r.version), size: len(b)}
	}
	if c.client != string(client) {
		c.client = string(client)
	}
	r.body = d.b
	return nil
}

// Requests other than Produce are decoded into structures that can be so many times longer; one that
// is not small is decoded while no other is.
const (
	smallBodyBytes = 16 << 10
	bodyBytesMax   = 1 << 20
)

// decode decodes the body of a request.
func (c *conn) decode(r *request) (kmsg.Request, error) {
	if len(r.body) > bodyBytesMax {
		return nil, &malformedError{
			what: fmt.Sprintf("%s: expected at most %d bytes", r.api.name, bodyBytesMax), size: len(r.frame.body),
		}
	}
	if len(r.body) > smallBodyBytes {
		c.s.large <- struct{}{}
		defer func() { <-c.s.large }()
	}
	req := kmsg.RequestForKey(r.api.key)
	if r.version > req.MaxVersion() {
		return nil, &malformedError{what: fmt.Sprintf("%s version %d is unknown", r.api.name, r.version), size: len(r.frame.body)}
	}
	req.SetVersion(r.version)
	if !r.api.measure(r.version, r.body) || req.ReadFrom(r.body) != nil {
		return nil, &malformedError{what: fmt.Sprintf("body of %s version %d", r.api.name, r.version), size: len(r.frame.body)}
	}
	return req, nil
}

// refuse answers a version that is not served, in that version's own format: clients that do not ask
// for versions then know why.
func (c *conn) refuse(r *request) error {
	req, err := c.decode(r)
	if err != nil {
		return err
	}
	resp, ok := refuse(req, unsupportedVersion)
	if !ok {
		return &malformedError{what: fmt.Sprintf("%s version %d is not served", r.api.name, r.version), size: len(r.frame.body)}
	}
	return c.answer(r, resp)
}

// answer sends a response that is complete.
func (c *conn) answer(r *request, resp kmsg.Response) error {
	a := answer{correlation: r.correlation, flexible: r.flexible && r.api.key != keyAPIVersions, resp: resp}
	r.frame.release()
	return c.answers.send(a)
}

// changeMillis is how long a change may take whose request does not say.
const changeMillis = 30_000

// context returns one that ends with a request's own timeout, and with the server.
func (c *conn) context(ctx context.Context, timeoutMillis int32) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(max(time.Duration(timeoutMillis)*time.Millisecond, time.Second), time.Minute))
}
