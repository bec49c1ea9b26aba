package fakevalkey

import (
	"math"
	"strconv"

	"varve/tiers/valkey"
)

// Errors, as a server words them.
const (
	errSmaller   = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
	errExhausted = "ERR The stream has exhausted the last possible ID, unable to add more items"
	errZero      = "ERR The ID specified in XADD must be greater than 0-0"
	errID        = "ERR Invalid stream ID specified as stream command argument"
	errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errMemory    = "OOM command not allowed when used memory > 'maxmemory'."
	errSyntax    = "ERR syntax error"
	errNumber    = "ERR value is not an integer or out of range"
	errNoKey     = "ERR no such key"
	errUnknown   = "ERR unknown command"
)

// command runs command i of a pipeline. The error is about the room for the reply.
func (c *Conn) command(p *valkey.Pipeline, i int, r *valkey.Reply, full bool) error {
	args, _ := p.Args(i)
	switch string(args[0]) {
	case "XADD":
		return c.xadd(p, args[1:], r, full)
	case "XRANGE":
		return c.xrange(p, args[1:], r, false)
	case "XREVRANGE":
		return c.xrange(p, args[1:], r, true)
	case "XLEN":
		return c.xlen(p, args[1:], r)
	case "XTRIM":
		return c.xtrim(p, args[1:], r)
	case "WAIT":
		return c.waitCommand(p, args[1:], r)
	case "TYPE":
		return c.typeOf(p, args[1:], r)
	case "XINFO":
		return c.xinfo(p, args[1:], r)
	case "INFO":
		return c.info(p, r)
	case "CONFIG":
		return c.configGet(p, args[1:], r)
	}
	return text(p, r, valkey.Error, errUnknown)
}

// text answers with a text.
func text(p *valkey.Pipeline, r *valkey.Reply, kind valkey.Kind, s string) error {
	b, err := p.NewText(len(s))
	copy(b, s)
	*r = valkey.Reply{Kind: kind, Text: b}
	return err
}

func number(r *valkey.Reply, n int) error {
	*r = valkey.Reply{Kind: valkey.Int, Int: int64(n)}
	return nil
}

// existing finds a key; ok is false if it holds another type, and r says so.
func (c *Conn) existing(p *valkey.Pipeline, key []byte, r *valkey.Reply) (x *stream, i int, ok bool, err error) {
	i = c.server.stream(key)
	x = &c.server.streams[i]
	if x.kind == kindOther {
		return nil, 0, false, text(p, r, valkey.Error, errWrongType)
	}
	return x, i, true, nil
}

func (c *Conn) xadd(p *valkey.Pipeline, args [][]byte, r *valkey.Reply, full bool) error {
	s := c.server
	if len(args) < 4 || len(args)%2 != 0 {
		return text(p, r, valkey.Error, "ERR wrong number of arguments for 'xadd' command")
	}
	if some := !full && s.faults.strikes(W13Some); full || some {
		if some {
			s.faults.mark(W13Some)
		} else {
			s.faults.mark(W6OOM)
		}
		return text(p, r, valkey.Error, errMemory)
	}
	id, ok := parseID(args[1])
	if !ok {
		return text(p, r, valkey.Error, errID)
	}
	if id == (rawID{}) {
		return text(p, r, valkey.Error, errZero)
	}
	x, i, ok, err := c.existing(p, args[0], r)
	if !ok {
		return err
	}
	if x.last == idMax {
		return text(p, r, valkey.Error, errExhausted)
	}
	if x.kind == kindStream && !x.last.less(id) {
		return text(p, r, valkey.Error, errSmaller)
	}
	first, name := len(s.fields), s.keepID(id)
	for _, a := range args[2:] {
		s.fields = append(s.fields, s.keep(a))
	}
	c.write(write{kind: writeAdd, stream: i, id: id, name: name, first: first, end: len(s.fields)})
	if s.faults.strikes(W7Duplicate) {
		s.faults.mark(W7Duplicate)
		return text(p, r, valkey.Error, errSmaller)
	}
	return lent(p, r, s.bytes(name))
}

func (c *Conn) xrange(p *valkey.Pipeline, args [][]byte, r *valkey.Reply, reverse bool) error {
	if len(args) != 5 || string(args[3]) != "COUNT" {
		return text(p, r, valkey.Error, errSyntax)
	}
	from, ok1 := bound(args[1])
	to, ok2 := bound(args[2])
	count, err := strconv.Atoi(string(args[4]))
	switch {
	case !ok1 || !ok2:
		return text(p, r, valkey.Error, errID)
	case err != nil:
		return text(p, r, valkey.Error, errNumber)
	case count <= 0:
		*r = valkey.Reply{Kind: valkey.Nil}
		return nil
	}
	if reverse {
		from, to = to, from
	}
	x, _, ok, err := c.existing(p, args[0], r)
	if !ok {
		return err
	}
	first, end := x.index(from), len(x.entries)
	if to != idMax {
		end = max(first, x.index(to.next()))
	}
	n := min(count, end-first)
	list, err := p.NewArray(n)
	if err != nil {
		return err
	}
	for k := range list {
		at := first + k
		if reverse {
			at = end - 1 - k
		}
		if err := c.entry(p, &x.entries[at], &list[k]); err != nil {
			return err
		}
	}
	*r = valkey.Reply{Kind: valkey.Array, Elems: list}
	return nil
}

// entry answers with an entry: its id, then its fields and values.
func (c *Conn) entry(p *valkey.Pipeline, e *entry, r *valkey.Reply) error {
	s := c.server
	elems, err := p.NewArray(2 + e.end - e.first)
	if err != nil {
		return err
	}
	pair, fields := elems[:2:2], elems[2:]
	if err := lent(p, &pair[0], s.bytes(e.name)); err != nil {
		return err
	}
	for i := range fields {
		if err := lent(p, &fields[i], s.bytes(s.fields[e.first+i])); err != nil {
			return err
		}
	}
	pair[1].Kind, pair[1].Elems = valkey.Array, fields
	r.Kind, r.Elems = valkey.Array, pair
	return nil
}

// lent answers with what the server keeps.
func lent(p *valkey.Pipeline, r *valkey.Reply, b []byte) (err error) {
	r.Kind = valkey.Bulk
	r.Text, err = p.Lend(b)
	return err
}

func (c *Conn) xlen(p *valkey.Pipeline, args [][]byte, r *valkey.Reply) error {
	x, _, ok, err := c.existing(p, args[0], r)
	if !ok {
		return err
	}
	return number(r, len(x.entries))
}

// xtrim knows the exact form alone: what a "~" leaves is anybody's guess.
func (c *Conn) xtrim(p *valkey.Pipeline, args [][]byte, r *valkey.Reply) error {
	if len(args) != 4 || string(args[1]) != "MINID" || string(args[2]) != "=" {
		return text(p, r, valkey.Error, errSyntax)
	}
	id, ok := parseID(args[3])
	if !ok {
		return text(p, r, valkey.Error, errID)
	}
	x, i, ok, err := c.existing(p, args[0], r)
	if !ok {
		return err
	}
	was := len(x.entries)
	if was > 0 && x.entries[0].id.less(id) {
		c.write(write{kind: writeTrim, stream: i, id: id})
	}
	return number(r, was-len(c.server.streams[i].entries))
}

func (c *Conn) waitCommand(p *valkey.Pipeline, args [][]byte, r *valkey.Reply) error {
	if len(args) != 2 {
		return text(p, r, valkey.Error, errSyntax)
	}
	n, err1 := strconv.Atoi(string(args[0]))
	ms, err2 := strconv.Atoi(string(args[1]))
	if err1 != nil || err2 != nil || ms <= 0 {
		return text(p, r, valkey.Error, errNumber)
	}
	return number(r, c.wait(n, int64(ms)*1_000_000))
}

func (c *Conn) typeOf(p *valkey.Pipeline, args [][]byte, r *valkey.Reply) error {
	name := "none"
	switch c.server.streams[c.server.stream(args[0])].kind {
	case kindStream:
		name = "stream"
	case kindOther:
		name = "string"
	}
	return text(p, r, valkey.Status, name)
}

// xinfo answers with what a log asks for, out of much more.
func (c *Conn) xinfo(p *valkey.Pipeline, args [][]byte, r *valkey.Reply) error {
	if len(args) != 2 || string(args[0]) != "STREAM" {
		return text(p, r, valkey.Error, errSyntax)
	}
	x, _, ok, err := c.existing(p, args[1], r)
	if !ok {
		return err
	}
	if x.kind == kindNone {
		return text(p, r, valkey.Error, errNoKey)
	}
	list, err := p.NewArray(4)
	if err != nil {
		return err
	}
	*r = valkey.Reply{Kind: valkey.Array, Elems: list}
	_ = number(&list[1], len(x.entries))
	if err := text(p, &list[0], valkey.Bulk, "length"); err != nil {
		return err
	}
	if err := text(p, &list[2], valkey.Bulk, "last-generated-id"); err != nil {
		return err
	}
	return lastText(p, &list[3], x.last)
}

// info answers as a small server would.
func (c *Conn) info(p *valkey.Pipeline, r *valkey.Reply) error {
	s := c.server
	var b [512]byte
	t := append(b[:0], "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n# Replication\r\nrole:master\r\n"...)
	for i := range s.config.Replicas {
		t = append(t, "slave"...)
		t = strconv.AppendInt(t, int64(i), 10)
		t = append(t, ":ip=127.0.0.1,port=1,state=online,offset=1,lag=0\r\n"...)
	}
	t = append(t, "# Memory\r\nmaxmemory_policy:"...)
	if s.config.Policy == "" {
		t = append(t, "noeviction"...)
	}
	t = append(t, s.config.Policy...)
	t = append(t, "\r\n# Persistence\r\naof_enabled:"...)
	if s.config.Persist == Always || s.config.Persist == EverySec {
		t = append(t, "1\r\n"...)
	} else {
		t = append(t, "0\r\n"...)
	}
	body, err := p.NewText(len(t))
	copy(body, t)
	*r = valkey.Reply{Kind: valkey.Bulk, Text: body}
	return err
}

func (c *Conn) configGet(p *valkey.Pipeline, args [][]byte, r *valkey.Reply) error {
	if len(args) != 2 || string(args[0]) != "GET" {
		return text(p, r, valkey.Error, errSyntax)
	}
	value := ""
	switch persist := c.server.config.Persist; string(args[1]) {
	case "appendfsync":
		if value = "everysec"; persist == Always {
			value = "always"
		}
	case "save":
		if persist == Snapshots {
			value = "3600 1 300 100 60 10000"
		}
	}
	list, err := p.NewArray(2)
	if err != nil {
		return err
	}
	*r = valkey.Reply{Kind: valkey.Array, Elems: list}
	name, err := p.NewText(len(args[1]))
	copy(name, args[1])
	list[0] = valkey.Reply{Kind: valkey.Bulk, Text: name}
	if err != nil {
		return err
	}
	return text(p, &list[1], valkey.Bulk, value)
}

var idMax = rawID{math.MaxUint64, math.MaxUint64}

// bound reads an end of a range.
func bound(b []byte) (rawID, bool) {
	switch string(b) {
	case "-":
		return rawID{}, true
	case "+":
		return idMax, true
	}
	return parseID(b)
}

// parseID reads an id of two numbers.
func parseID(b []byte) (id rawID, ok bool) {
	part := &id.a
	digits := 0
	for _, d := range b {
		if d == '-' && part == &id.a && digits > 0 {
			part, digits = &id.b, 0
			continue
		}
		if d < '0' || d > '9' || *part > (math.MaxUint64-uint64(d-'0'))/10 {
			return rawID{}, false
		}
		*part = *part*10 + uint64(d-'0')
		digits++
	}
	return id, part == &id.b && digits > 0
}

// lastText answers with an id that may be of no entry any more.
func lastText(p *valkey.Pipeline, r *valkey.Reply, id rawID) error {
	var b [valkey.IDBytesMax]byte
	t := id.append(b[:0])
	body, err := p.NewText(len(t))
	copy(body, t)
	*r = valkey.Reply{Kind: valkey.Bulk, Text: body}
	return err
}
