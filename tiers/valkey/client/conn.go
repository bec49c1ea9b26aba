package client

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	library "github.com/valkey-io/valkey-go"

	"varve/tiers/valkey"
)

// lastID numbers the connections of the process.
var lastID atomic.Uint64

func newID() valkey.ConnID { return valkey.ConnID(lastID.Add(1)) }

// conn is one connection. It implements valkey.Conn.
type conn struct {
	guard    *guard
	client   library.Client
	only     library.DedicatedClient
	server   int64 // the server's id of the connection
	id       valkey.ConnID
	commands []library.Completed
}

// hello asks for the server's id of the connection, and whether it is a primary. The key makes the
// library choose its shard.
func (c *conn) hello(key string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	b := c.only.B()
	replies := c.only.DoMulti(ctx, b.Arbitrary("CLIENT", "ID").Build(), b.Arbitrary("TYPE").Keys(key).Build(), b.Arbitrary("ROLE").Build())
	if err := replies[1].Error(); err != nil {
		return err
	}
	if role, err := replies[2].ToArray(); err == nil && len(role) > 0 { // not every server tells
		if name, _ := role[0].ToString(); name != "master" {
			return fmt.Errorf("%w: expected a primary, found a %.20s", ErrNoPrimary, name)
		}
	}
	id, err := replies[0].ToInt64()
	c.server = id
	return err
}

// primaryOf asks a sentinel.
func (c *conn) primaryOf(name string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	reply, err := c.only.Do(ctx, c.only.B().Arbitrary("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name).Build()).AsStrSlice()
	if err != nil {
		return "", err
	}
	if len(reply) != 2 {
		return "", fmt.Errorf("%w: expected host and port, found %d words", valkey.ErrProtocol, len(reply))
	}
	return net.JoinHostPort(reply[0], reply[1]), nil
}

// Close ends the connection. The dedicated one is not given back: the library would read what is left
// on it, and with its socket closed nothing else of it is left.
func (c *conn) Close() error {
	c.guard.close()
	c.client.Close()
	return nil
}

// Do sends a pipeline.
func (c *conn) Do(p *valkey.Pipeline) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(p.Timeout))
	defer cancel()
	c.guard.allow(p.ReplyBytes)
	b := c.only.B()
	c.commands = append(c.commands[:0], b.Arbitrary("CLIENT", "ID").Build())
	for i := range p.Len() {
		args, key := p.Args(i)
		a := b.Arbitrary(library.BinaryString(args[0]))
		for n, arg := range args[1:] {
			if text := library.BinaryString(arg); n+1 == key {
				a = a.Keys(text)
			} else {
				a = a.Args(text)
			}
		}
		if p.Blocking(i) {
			c.commands = append(c.commands, a.Blocking())
		} else {
			c.commands = append(c.commands, a.Build())
		}
	}
	c.commands = append(c.commands, b.Arbitrary("CLIENT", "ID").Build())
	replies := c.only.DoMulti(ctx, c.commands...)
	if err := c.lost(replies); err != nil {
		return err
	}
	var err error
	if p.Began, err = c.identity(&replies[0]); err != nil {
		return err
	}
	if p.Ended, err = c.identity(&replies[len(replies)-1]); err != nil {
		return err
	}
	out := p.Answer()
	for i := range out {
		m, err := replies[i+1].ToMessage()
		if err := convert(p, &m, err, &out[i]); err != nil {
			return err
		}
	}
	return nil
}

// lost reports a pipeline that the connection did not survive.
func (c *conn) lost(replies []library.ValkeyResult) error {
	for i := range replies {
		err := replies[i].NonValkeyError()
		if err == nil {
			continue
		}
		if cut := c.guard.reason(); cut != nil {
			return cut
		}
		return fmt.Errorf("%w: %w", valkey.ErrConnectionLost, err)
	}
	return nil
}

// identity returns the identity of the connection whose server calls it that. Another one than at the
// begin is one that the library opened without being asked.
func (c *conn) identity(r *library.ValkeyResult) (valkey.ConnID, error) {
	id, err := r.ToInt64()
	if err != nil {
		return 0, fmt.Errorf("%w: CLIENT ID: %w", valkey.ErrProtocol, err)
	}
	if id != c.server {
		c.server, c.id = id, newID()
	}
	return c.id, nil
}

// convert makes a reply of what the library has. err is what the server refused with.
func convert(p *valkey.Pipeline, m *library.ValkeyMessage, err error, r *valkey.Reply) error {
	refused, isError := library.IsValkeyErr(err)
	switch {
	case library.IsValkeyNil(err):
		r.Kind = valkey.Nil
	case isError:
		r.Kind, r.Text = valkey.Error, []byte(refused.Error())
	case m.IsInt64():
		r.Kind = valkey.Int
		r.Int, err = m.ToInt64()
		return err
	case m.IsString():
		r.Kind = valkey.Bulk
		r.Text, err = m.AsBytes()
		return err
	case m.IsArray():
		return convertArray(p, m, r)
	default:
		return fmt.Errorf("%w: %w", valkey.ErrProtocol, err)
	}
	return nil
}

func convertArray(p *valkey.Pipeline, m *library.ValkeyMessage, r *valkey.Reply) error {
	list, err := m.ToArray()
	if err != nil {
		return fmt.Errorf("%w: %w", valkey.ErrProtocol, err)
	}
	r.Kind = valkey.Array
	if r.Elems, err = p.NewArray(len(list)); err != nil {
		return err
	}
	for i := range list {
		if err := convert(p, &list[i], list[i].Error(), &r.Elems[i]); err != nil {
			return err
		}
	}
	return nil
}
