package valkey

import (
	"errors"
	"fmt"
	"strconv"

	"varve/core/segment"
)

// Dialer opens connections to the primary that holds a key.
type Dialer interface {
	// Dial opens a connection of its own, which nobody shares and which is never opened again in
	// silence. The key says which shard of a cluster; a server alone ignores it.
	Dial(key string) (Conn, error)
}

// Conn is one connection. It belongs to one caller; only Close may be called beside Do.
type Conn interface {
	// Do sends all commands of p at once, in order, and waits for all replies. A command that the
	// server refuses is a reply of kind Error. An error of Do leaves it unknown which commands took
	// effect, and the connection is of no use any more.
	Do(p *Pipeline) error
	// Close ends the connection, and with it a Do that waits.
	Close() error
}

// ConnID identifies a connection. It is never 0, and no two connections of a process have the same.
type ConnID uint64

// Errors of a connection.
var (
	// ErrConnectionLost: the connection broke, or did not answer in time.
	ErrConnectionLost = errors.New("valkey: connection lost")
	// ErrReconnected: a pipeline did not run on the one connection that it was given to.
	ErrReconnected = errors.New("valkey: the connection was replaced or redirected without notice")
	// ErrReplyTooLarge: a reply passes the bounds of the pipeline.
	ErrReplyTooLarge = errors.New("valkey: reply too large")
	// ErrProtocol: a reply that is none, or not of the kind that the command has.
	ErrProtocol = errors.New("valkey: unexpected reply")
)

// Pipeline is a list of commands with room for their replies. The memory is kept by Reset, so that a
// pipeline that is used again allocates nothing. Replies are valid until then.
type Pipeline struct {
	Timeout    segment.Time // for all of it; it includes what a WAIT may take
	ReplyBytes int64        // bound on the bytes of all replies

	Replies     []Reply // one a command
	Began       ConnID  // connection that ran the first command
	Ended       ConnID  // and the last
	commands    []command
	args        [][]byte
	text        chunks[byte]
	nodes       chunks[Reply]
	replyBudget int64
}

// command is a run of arguments, the first of which is its name.
type command struct {
	first, end int
	key        int // argument that is the key; below 0: none
	blocking   bool
}

// Reset empties the pipeline for another use.
func (p *Pipeline) Reset(timeout segment.Time, replyBytes int64) {
	p.Timeout, p.ReplyBytes, p.replyBudget = timeout, replyBytes, replyBytes
	p.Began, p.Ended = 0, 0
	clear(p.args) // payloads of others
	p.commands, p.args, p.Replies = p.commands[:0], p.args[:0], p.Replies[:0]
	p.text.reset()
	p.nodes.reset()
}

// Command begins a command of this name.
func (p *Pipeline) Command(name string) *Pipeline {
	p.commands = append(p.commands, command{first: len(p.args), end: len(p.args), key: -1, blocking: name == "WAIT"})
	return p.Text(name)
}

// Key adds the key, by which a cluster finds the shard.
func (p *Pipeline) Key(key string) *Pipeline {
	p.last().key = len(p.args)
	return p.Text(key)
}

// Text adds an argument.
func (p *Pipeline) Text(s string) *Pipeline {
	b := p.text.take(len(s))
	copy(b, s)
	return p.Bytes(b)
}

// Number adds an argument in decimal.
func (p *Pipeline) Number(n int64) *Pipeline {
	var b [20]byte
	return p.copied(strconv.AppendInt(b[:0], n, 10))
}

// ID adds an entry id.
func (p *Pipeline) ID(id ID) *Pipeline {
	var b [IDBytesMax]byte
	return p.copied(id.Append(b[:0]))
}

func (p *Pipeline) copied(b []byte) *Pipeline {
	c := p.text.take(len(b))
	copy(c, b)
	return p.Bytes(c)
}

// Bytes adds an argument without a copy: it must not change until the replies are there.
func (p *Pipeline) Bytes(b []byte) *Pipeline {
	p.args = append(p.args, b)
	p.last().end = len(p.args)
	return p
}

func (p *Pipeline) last() *command { return &p.commands[len(p.commands)-1] }

// Len returns how many commands there are.
func (p *Pipeline) Len() int { return len(p.commands) }

// Args returns a command, its name first, and which argument is its key, -1 for none. Who reads them
// must not change them.
func (p *Pipeline) Args(i int) (args [][]byte, key int) {
	c := &p.commands[i]
	if c.key < 0 {
		return p.args[c.first:c.end], -1
	}
	return p.args[c.first:c.end], c.key - c.first
}

// Blocking reports whether a command may take as long as it pleases.
func (p *Pipeline) Blocking(i int) bool { return p.commands[i].blocking }

// Kind says what a reply is.
type Kind uint8

// Kinds of replies. A client library may show a Status as Bulk; nothing depends on the difference.
const (
	Nil Kind = iota
	Int
	Bulk
	Status
	Array
	Error
)

var kindNames = [...]string{"nil", "integer", "text", "status", "array", "error"}

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Reply is what a server answered to one command.
type Reply struct {
	Kind  Kind
	Int   int64
	Text  []byte // Bulk, Status, Error
	Elems []Reply
}

// Answer makes room for one reply a command. It is for implementations of Conn, as are the next two.
func (p *Pipeline) Answer() []Reply {
	for range p.commands {
		p.Replies = append(p.Replies, Reply{})
	}
	return p.Replies
}

// NewText makes room for the text of a reply, in the pipeline's memory.
func (p *Pipeline) NewText(n int) ([]byte, error) {
	if err := p.spend(int64(n)); err != nil {
		return nil, err
	}
	return p.text.take(n), nil
}

// Lend counts the text of a reply that lies elsewhere, and does not change until the next Reset.
func (p *Pipeline) Lend(b []byte) ([]byte, error) {
	return b[:len(b):len(b)], p.spend(int64(len(b)))
}

// NewArray makes room for the elements of a reply, in the pipeline's memory.
func (p *Pipeline) NewArray(n int) ([]Reply, error) {
	if err := p.spend(int64(n) * replyCost); err != nil {
		return nil, err
	}
	e := p.nodes.take(n)
	clear(e)
	return e, nil
}

// replyCost is what an element counts besides its text.
const replyCost = 16

func (p *Pipeline) spend(n int64) error {
	if p.replyBudget -= n; p.replyBudget < 0 {
		return fmt.Errorf("%w: more than %d bytes in answer to %s; ask for fewer entries at once",
			ErrReplyTooLarge, p.ReplyBytes, p.args[0])
	}
	return nil
}

// chunks gives slices out of memory that never moves and is used again after reset.
type chunks[T any] struct {
	all  [][]T
	used int // chunks that rest is of, or that are full
	rest []T
}

const chunkLen = 4096

func (c *chunks[T]) reset() { c.used, c.rest = 0, nil }

func (c *chunks[T]) take(n int) []T {
	if n > len(c.rest) {
		c.more(n)
	}
	s := c.rest[:n:n]
	c.rest = c.rest[n:]
	return s
}

// more goes on to a chunk with room for n.
func (c *chunks[T]) more(n int) {
	for c.rest = nil; len(c.rest) < n; c.used++ {
		if c.used == len(c.all) {
			c.all = append(c.all, make([]T, max(n, chunkLen)))
		}
		c.rest = c.all[c.used]
	}
}
