package valkey

import (
	"errors"
	"fmt"
	"slices"

	"varve/core/segment"
)

// Bounds limit what one operation may take.
type Bounds struct {
	EntryBytes int64        // of one entry; a commit with its headers
	PageBytes  int64        // of a page of ReadWarm, beyond which no further entry is meant to be asked for
	Timeout    segment.Time // of a pipeline, besides what its WAIT may take
}

// overhead is what replies may hold besides the values of entries: ids, INFO, errors.
const overhead = 64 << 10

// Store carries out the operations on the stream of one log. It belongs to one caller, and keeps
// nothing but its connection: it is opened by the operation that finds none, and given up at any
// error. Who reads beside a mirror has a Store for it, because a WAIT blocks its connection.
type Store struct {
	dialer Dialer
	key    string
	bounds Bounds
	conn   Conn
	id     ConnID // 0: nothing ran on conn yet
	p      Pipeline
	errs   []*OpError // made before: an error costs no allocation the second time
}

// ErrConnection says that the connection that an operation must run on is gone. Nothing was sent.
var ErrConnection = errors.New("valkey: the connection that this must run on is gone; fence again")

// OpError is an error with its place.
type OpError struct {
	Op    string
	Key   string
	Err   error
	cause int // in ownErrors
}

// ownErrors are causes without details of their own.
var ownErrors = []error{ErrConnectionLost, ErrReconnected, ErrConnection, ErrProtocol}

func (e *OpError) Error() string { return fmt.Sprintf("valkey: %s of %s: %v", e.Op, e.Key, e.Err) }

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// New returns the store of a log's stream. It opens no connection.
func New(name string, d Dialer, b Bounds) (*Store, error) {
	key, err := Key(name)
	if err != nil {
		return nil, err
	}
	if b.EntryBytes <= 0 || b.PageBytes <= 0 || b.Timeout <= 0 {
		return nil, fmt.Errorf("valkey: bounds of 1 or more expected, found %+v", b)
	}
	return &Store{dialer: d, key: key, bounds: b}, nil
}

// Key returns the key of the stream.
func (s *Store) Key() string { return s.key }

// Close gives the connection up. The next operation opens another one.
func (s *Store) Close() error {
	conn := s.conn
	s.conn, s.id = nil, 0
	if conn == nil {
		return nil
	}
	return conn.Close()
}

// begin empties the pipeline for an operation with a WAIT of this length whose replies hold up to this
// many bytes of entries.
func (s *Store) begin(wait segment.Time, replyBytes int64) *Pipeline {
	s.p.Reset(s.bounds.Timeout+wait, replyBytes+overhead)
	return &s.p
}

// run sends the pipeline, on the connection on if that is not 0. It ran on one connection from its
// first command to its last, or there is an error and the connection is given up.
func (s *Store) run(op string, on ConnID) error {
	if on != 0 && (s.conn == nil || s.id != on) {
		return s.fail(op, ErrConnection)
	}
	if s.conn == nil {
		conn, err := s.dialer.Dial(s.key)
		if err != nil {
			return s.fail(op, err)
		}
		s.conn = conn // Close has forgotten the id of the one before
	}
	if err := s.conn.Do(&s.p); err != nil {
		return s.fail(op, s.lose(err))
	}
	if s.id == 0 {
		s.id = s.p.Began
	}
	if s.id == 0 || s.p.Began != s.id || s.p.Ended != s.id || redirected(s.p.Replies) {
		return s.fail(op, s.lose(ErrReconnected))
	}
	if len(s.p.Replies) != s.p.Len() {
		return s.fail(op, s.lose(ErrProtocol))
	}
	return nil
}

// lose gives the connection up after an error, which is what counts.
func (s *Store) lose(err error) error {
	_ = s.Close()
	return err
}

// fail gives an error its place.
func (s *Store) fail(op string, err error) error {
	cause := slices.Index(ownErrors, err)
	for _, e := range s.errs {
		if e.Op == op && e.cause == cause {
			return e
		}
	}
	e := &OpError{op, s.key, err, cause}
	if cause >= 0 {
		s.errs = append(s.errs, e)
	}
	return e
}

// protocol reports a reply that no server gives, or an error that a server gave in place of a reply.
func (s *Store) protocol(op, expected string, r *Reply) error {
	if r.Kind == Error {
		return s.fail(op, s.lose(&ServerError{refusal(r).Outcome, string(r.Text)}))
	}
	return s.fail(op, s.lose(fmt.Errorf("%w: expected %s, found %v %.80q", ErrProtocol, expected, r.Kind, r.Text)))
}
