package topics

import (
	"fmt"
	"strconv"
)

// Version is the version of entries that this program writes, and the newest that it reads.
const Version = 1

// AppendEntry appends the text of an entry, one line of JSON without its end. Each entry has one form.
func AppendEntry(dst []byte, e *Entry) []byte {
	dst = append(dst, `{"v":1,"type":"`...)
	dst = append(dst, kindNames[e.Kind]...)
	dst = append(dst, '"')
	switch e.Kind {
	case Producers:
		return append(appendInt(dst, "next", e.Count), '}')
	case Snapshot:
		return appendSnapshot(dst, e)
	case Create:
		dst = appendText(dst, "topic", e.Topic)
		dst = appendID(dst, e.ID)
		dst = appendInt(dst, "incarnation", int64(e.Incarnation))
		dst = appendInt(dst, "partitions", e.Count)
		dst = appendInt(dst, "time", e.Time)
		return append(appendConfig(dst, e.Config), '}')
	}
	dst = appendText(dst, "topic", e.Topic)
	dst = appendInt(dst, "incarnation", int64(e.Incarnation))
	switch e.Kind {
	case Begin, Grow, Partitions:
		dst = appendInt(dst, "partitions", e.Count)
	case Configure:
		dst = appendConfig(dst, e.Config)
	}
	return append(dst, '}')
}

func appendSnapshot(dst []byte, e *Entry) []byte {
	dst = appendInt(dst, "incarnation", int64(e.Incarnation))
	dst = appendInt(dst, "producers", e.Count)
	dst = append(dst, `,"topics":[`...)
	for i := range e.Topics {
		if i > 0 {
			dst = append(dst, ',')
		}
		t := &e.Topics[i]
		dst = append(dst, `{"state":"`...)
		dst = append(dst, statusNames[t.Status]...)
		dst = append(dst, '"')
		dst = appendText(dst, "topic", t.Name)
		dst = appendID(dst, t.ID)
		dst = appendInt(dst, "incarnation", int64(t.Incarnation))
		dst = appendInt(dst, "partitions", int64(t.Partitions))
		dst = appendInt(dst, "growing", int64(t.Growing))
		dst = appendInt(dst, "time", t.Time)
		dst = append(appendConfig(dst, t.Config), '}')
	}
	return append(dst, "]}"...)
}

func appendKey(dst []byte, key string) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, key...)
	return append(dst, `":`...)
}

func appendText(dst []byte, key, s string) []byte {
	dst = append(appendKey(dst, key), '"')
	return append(append(dst, s...), '"')
}

func appendInt(dst []byte, key string, v int64) []byte {
	return strconv.AppendInt(appendKey(dst, key), v, 10)
}

func appendID(dst []byte, id ID) []byte {
	dst = append(appendKey(dst, "id"), '"')
	for _, c := range id {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

func appendConfig(dst []byte, config []Pair) []byte {
	dst = append(appendKey(dst, "config"), '{')
	for i, p := range config {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), p.Name...), `":"`...)
		dst = append(append(dst, p.Value...), '"')
	}
	return append(dst, '}')
}

// Reader decodes entries in memory of its own, which it reuses: texts are kept once each.
type Reader struct {
	b    []byte
	at   int
	err  error
	kept map[string]string
}

// keptMax bounds the texts that are kept from one entry to the next.
const keptMax = 1 << 14

// Read decodes an entry into e and reuses its memory. An error says what stands where.
func (r *Reader) Read(b []byte, e *Entry) error {
	*e = Entry{Config: e.Config[:0], Topics: e.Topics[:0]}
	r.b, r.at, r.err = b, 0, nil
	r.literal(`{"v":`)
	if v := r.int(1, 1<<30); r.err == nil && v > Version {
		return fmt.Errorf("it is of version %d, this program reads up to %d: run a newer one", v, Version)
	}
	r.literal(`,"type":"`)
	e.Kind = Kind(r.word(kindNames[:]))
	switch e.Kind {
	case Producers:
		e.Count = r.number("next", 0, 1<<62)
	case Snapshot:
		r.snapshot(e)
	case Create:
		e.Topic = r.topic()
		e.ID = r.id()
		e.Incarnation = r.incarnation()
		e.Count = r.number("partitions", 1, PartitionsMax)
		e.Time = r.number("time", 0, 1<<62)
		e.Config = r.config(e.Config)
	default:
		e.Topic = r.topic()
		e.Incarnation = r.incarnation()
		switch e.Kind {
		case Begin, Grow, Partitions:
			e.Count = r.number("partitions", 1, PartitionsMax)
		case Configure:
			e.Config = r.config(e.Config)
		}
	}
	r.literal("}")
	if r.err == nil && r.at != len(b) {
		r.fail("the end")
	}
	return r.err
}

func (r *Reader) snapshot(e *Entry) {
	e.Incarnation = uint64(r.number("incarnation", 1, 1<<62))
	e.Count = r.number("producers", 0, 1<<62)
	r.literal(`,"topics":[`)
	for r.err == nil && !r.is("]") {
		if len(e.Topics) > 0 {
			r.literal(",")
		}
		r.literal(`{"state":"`)
		var t Topic
		if n := len(e.Topics); n < cap(e.Topics) { // the configuration's memory is there
			t.Config = e.Topics[:n+1][n].Config[:0]
		}
		t.Status = Status(r.word(statusNames[:]))
		t.Name = r.topic()
		t.ID = r.id()
		t.Incarnation = r.incarnation()
		t.Partitions = int32(r.number("partitions", 1, PartitionsMax))
		t.Growing = int32(r.number("growing", 0, PartitionsMax))
		t.Time = r.number("time", 0, 1<<62)
		t.Config = r.config(t.Config)
		r.literal("}")
		if r.err == nil {
			e.Topics = append(e.Topics, t)
		}
	}
	r.literal("]")
}

func (r *Reader) fail(expected string) {
	if r.err == nil {
		found := "the end"
		if rest := r.b[r.at:]; len(rest) > 0 {
			found = strconv.QuoteToASCII(string(rest[:min(len(rest), 32)]))
		}
		r.err = fmt.Errorf("byte %d: expected %s, found %s", r.at, expected, found)
	}
}

// is reports whether a text stands at the place reached.
func (r *Reader) is(s string) bool {
	return r.err == nil && len(r.b)-r.at >= len(s) && string(r.b[r.at:r.at+len(s)]) == s
}

func (r *Reader) literal(s string) {
	if !r.is(s) {
		r.fail(s)
		return
	}
	r.at += len(s)
}

// key reads the name of the next field.
func (r *Reader) key(name string) {
	r.literal(`,"`)
	r.literal(name)
	r.literal(`":`)
}

// word reads one of a list, with the quote behind it.
func (r *Reader) word(list []string) int {
	for i, s := range list {
		if r.is(s) && len(r.b) > r.at+len(s) && r.b[r.at+len(s)] == '"' {
			r.at += len(s) + 1
			return i
		}
	}
	r.fail("a known word")
	return 0
}

func (r *Reader) number(name string, least, most int64) int64 {
	r.key(name)
	return r.int(least, most)
}

// int reads a number in its one form: digits without a leading zero.
func (r *Reader) int(least, most int64) int64 {
	var v int64
	from := r.at
	for r.err == nil && r.at < len(r.b) && '0' <= r.b[r.at] && r.b[r.at] <= '9' && r.at-from < 19 {
		v = 10*v + int64(r.b[r.at]-'0') // 19 digits may wrap: then it is below most, and not what stands there
		r.at++
	}
	if n := r.at - from; r.err == nil && (n == 0 || n > 1 && r.b[from] == '0' || n == 19 && r.b[from] > '4' || v < least || v > most) {
		r.at = from
		r.fail(fmt.Sprintf("a number from %d to %d", least, most))
	}
	return v
}

func (r *Reader) incarnation() uint64 { return uint64(r.number("incarnation", 1, 1<<62)) }

func (r *Reader) id() (id ID) {
	r.key("id")
	r.literal(`"`)
	if r.err != nil || len(r.b)-r.at < 2*len(id) {
		r.fail("32 hexadecimal digits")
		return id
	}
	for i, c := range r.b[r.at : r.at+2*len(id)] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			r.at += i
			r.fail("a hexadecimal digit")
			return ID{}
		}
		id[i/2] = id[i/2]<<4 | c
	}
	r.at += 2 * len(id)
	r.literal(`"`)
	return id
}

func (r *Reader) topic() string {
	r.key("topic")
	at := r.at
	name := r.text()
	if r.err != nil {
		return ""
	}
	if err := CheckName(name); err != nil {
		r.at = at
		r.fail("the name of a topic")
	}
	return name
}

func (r *Reader) config(dst []Pair) []Pair {
	r.key("config")
	r.literal("{")
	for r.err == nil && !r.is("}") {
		if len(dst) > 0 {
			r.literal(",")
		}
		at := r.at
		name := r.text()
		r.literal(":")
		p := Pair{name, r.text()}
		if n := len(dst); r.err == nil && n > 0 && dst[n-1].Name >= name {
			r.at = at
			r.fail("names in order")
		}
		if r.err == nil {
			dst = append(dst, p)
		}
	}
	r.literal("}")
	return dst
}

// text reads a text in quotes. Nothing in an entry needs an escape.
func (r *Reader) text() string {
	r.literal(`"`)
	from := r.at
	for r.err == nil && r.at < len(r.b) && plainByte(r.b[r.at]) {
		r.at++
	}
	s := r.b[from:r.at]
	r.literal(`"`)
	if r.err != nil {
		return ""
	}
	return r.keep(s)
}

// plainByte says what a text of an entry is made of.
func plainByte(c byte) bool { return ' ' <= c && c <= '~' && c != '"' && c != '\\' }

// keep returns a string of these bytes, the same one for the same bytes.
func (r *Reader) keep(b []byte) string {
	if s, ok := r.kept[string(b)]; ok {
		return s
	}
	if r.kept == nil || len(r.kept) >= keptMax {
		r.kept = make(map[string]string)
	}
	s := string(b)
	r.kept[s] = s
	return s
}
