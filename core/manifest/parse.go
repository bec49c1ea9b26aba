package manifest

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"

	"varve/core/segment"
)

// Parse decodes the text of a manifest into m and reuses m's memory. On an error, which is an *Error
// or matches ErrNewer, m is empty. Whether the log is the right one is the caller's to compare.
func Parse(b []byte, m *Manifest) error {
	m.reset()
	p := parser{what: "manifest", b: b}
	p.envelope(manifestHead)
	p.manifest(m)
	if p.err == nil {
		p.err = m.Verify()
	}
	if p.err != nil {
		m.reset()
	}
	return p.err
}

// ParsePage decodes the text of a page into t and reuses its memory. On an error, as of Parse, t is
// empty. Whether it is the page that a manifest names is for Page.Verify to say.
func ParsePage(b []byte, t *PageText) error {
	*t = PageText{Segments: t.Segments[:0]}
	p := parser{what: "page", b: b}
	p.envelope(pageHead)
	p.page(t)
	if p.err == nil {
		p.err = t.Verify()
	}
	if p.err != nil {
		*t = PageText{Segments: t.Segments[:0]}
	}
	return p.err
}

// parser reads the one form of a text. After an error nothing is read any more.
type parser struct {
	what  string
	b     []byte
	at    int
	list  string // the list that is read, "" outside of one
	item  int    // and its item
	field string // the field that is read
	err   error
}

func (p *parser) fail(expected, found string) {
	if p.err != nil {
		return
	}
	line := 1 + bytes.Count(p.b[:p.at], []byte("\n"))
	field := p.field
	if p.list != "" {
		field = itemField(p.list, p.item, field)
	}
	p.err = &Error{What: p.what, Line: line, Field: field, Expected: expected, Found: found}
	p.b = p.b[:p.at]
}

// itemField names a field of an item of a list.
func itemField(list string, item int, field string) string {
	name := list + "[" + strconv.Itoa(item) + "]"
	if field != "" {
		name += "." + field
	}
	return name
}

// found quotes what stands at the place reached.
func (p *parser) found() string {
	rest := p.b[p.at:]
	if len(rest) == 0 {
		return "the end"
	}
	return strconv.QuoteToASCII(string(rest[:min(len(rest), 32)]))
}

// envelope checks what every version keeps, and leaves the text between first and last line.
func (p *parser) envelope(head string) {
	if len(p.b) > BytesMax {
		p.fail("at most "+strconv.Itoa(BytesMax)+" bytes", strconv.Itoa(len(p.b)))
		return
	}
	p.literal(head)
	tail := len(p.b) - tailBytes
	if p.err != nil || tail < p.at {
		p.fail("a whole text, which ends with its checksum", "one of "+strconv.Itoa(len(p.b))+" bytes")
		return
	}
	text, body := p.b, p.at
	crc := crc32.Update(0, castagnoli, text[:tail])
	p.at, p.field = tail, "crc"
	p.literal(tailBegin)
	stated := p.hex(8)
	p.literal(tailEnd)
	if p.err == nil && stated != uint64(crc) {
		p.at = tail
		p.fail(fmt.Sprintf("%08x, the checksum of the bytes before it", crc), fmt.Sprintf("%08x", stated))
	}
	if p.err != nil {
		return
	}
	p.b, p.at, p.field = text[:tail], body, "version"
	version := p.uint(1, math.MaxUint64)
	if p.err == nil && version > Version {
		p.err = fmt.Errorf("%w: %s of version %d, this program reads up to %d", ErrNewer, p.what, version, Version)
		return
	}
	p.literal(",\n")
}

func (p *parser) manifest(m *Manifest) {
	p.log(&m.LogID)
	m.Epoch = p.epoch(`","epoch":`)
	p.field = "nonce"
	p.literal(`,"nonce":"`)
	m.Nonce = p.hex(16)
	m.Sequence = p.number("sequence", `","sequence":`, 1)
	p.literal(",\n")
	m.Start = p.offset("start", `"start":`)
	m.DeletedTo = p.offset("deleted_to", `,"deleted_to":`)
	p.literal(",\n")
	for p.begin("lineage", "\"lineage\":[\n"); p.next(LineageMax); {
		l := segment.Lineage{Epoch: p.epoch(`{"epoch":`), First: p.offset("first", `,"first":`)}
		m.Lineage = append(m.Lineage, l)
	}
	for p.begin("segments", "\"segments\":[\n"); p.next(EntriesMax); {
		m.Segments = append(m.Segments, p.segment())
	}
	for p.begin("pages", "\"pages\":[\n"); p.next(PagesMax); {
		m.Pages = append(m.Pages, p.pageEntry())
	}
	p.end()
}

func (p *parser) page(t *PageText) {
	p.log(&t.LogID)
	t.Number = p.number("number", `","number":`, 1)
	p.literal(",\n")
	for p.begin("segments", "\"segments\":[\n"); p.next(EntriesMax); {
		t.Segments = append(t.Segments, p.segment())
	}
	p.end()
}

func (p *parser) log(id *segment.LogID) {
	p.field = "log"
	p.literal(`"log":"`)
	for i := range id {
		id[i] = byte(p.hex(2))
	}
}

func (p *parser) segment() (s Segment) {
	s.Base, s.End = p.offset("base", `{"base":`), p.offset("end", `,"end":`)
	s.Epoch = p.epoch(`,"epoch":`)
	s.State = p.state()
	s.Attempt = p.number("attempt", `,"attempt":`, 0)
	p.field = "id"
	p.literal(`,"id":"`)
	s.ID = segment.ID(p.hex(16))
	s.Bytes = p.bytes("bytes", `","bytes":`, ObjectMax)
	s.FooterBytes = p.bytes("footer_bytes", `,"footer_bytes":`, ObjectMax)
	s.CRC = p.crc()
	s.MinTime, s.MaxTime, s.AppendTime = p.times(`","min_time":`)
	return s
}

func (p *parser) pageEntry() (e Page) {
	e.Base, e.End = p.offset("base", `{"base":`), p.offset("end", `,"end":`)
	e.Number = p.number("number", `,"number":`, 1)
	e.Count = int(p.bytes("count", `,"count":`, EntriesMax))
	e.Bytes = p.bytes("bytes", `,"bytes":`, BytesMax)
	e.CRC = p.crc()
	e.ObjectBytes = p.bytes("object_bytes", `","object_bytes":`, NumberMax)
	e.MinTime, e.MaxTime, e.AppendTime = p.times(`,"min_time":`)
	return e
}

func (p *parser) state() State {
	p.field = "state"
	p.literal(`,"state":"`)
	for s := Started; s <= Lost; s++ {
		if name := stateNames[s]; p.has(name) {
			p.at += len(name)
			p.literal(`"`)
			return s
		}
	}
	p.fail("started, finished, dead or lost", p.found())
	return 0
}

func (p *parser) times(first string) (least, greatest, appended segment.Time) {
	return p.time("min_time", first), p.time("max_time", `,"max_time":`), p.time("append_time", `,"append_time":`)
}

func (p *parser) crc() uint32 {
	p.field = "crc"
	p.literal(`,"crc":"`)
	return uint32(p.hex(8))
}

// begin goes to the first item of a list.
func (p *parser) begin(list, open string) {
	p.list, p.field = "", list
	p.literal(open)
	p.list, p.item, p.field = list, -1, ""
}

// next goes to the next item, and at the end behind the list.
func (p *parser) next(most int) bool {
	p.field = ""
	if p.item >= 0 {
		if p.has("},\n") {
			p.literal("},\n")
			p.item++
			if p.item >= most {
				p.fail("at most "+strconv.Itoa(most)+" items", "more")
			}
			return p.err == nil
		}
		p.literal("}\n")
	} else if p.item = 0; !p.has("]") {
		return p.err == nil
	}
	p.list, p.field = "", p.list
	p.literal("],\n")
	return false
}

// end checks that the text is used up.
func (p *parser) end() {
	p.list, p.field = "", "crc"
	if p.err == nil && p.at != len(p.b) {
		p.fail("the checksum behind the last list", p.found())
	}
}

func (p *parser) epoch(key string) segment.Epoch {
	p.field = "epoch"
	p.literal(key)
	return segment.Epoch(p.uint(1, segment.EpochMax))
}

func (p *parser) offset(field, key string) segment.Offset {
	return segment.Offset(p.number(field, key, 0))
}

func (p *parser) number(field, key string, least uint64) uint64 {
	p.field = field
	p.literal(key)
	return p.uint(least, NumberMax)
}

func (p *parser) bytes(field, key string, most uint64) int64 {
	p.field = field
	p.literal(key)
	return int64(p.uint(0, most))
}

func (p *parser) time(field, key string) segment.Time {
	p.field = field
	p.literal(key)
	if p.has("-") && !p.has("-0") {
		p.at++
		return segment.Time(-p.uint(1, 1<<63))
	}
	return segment.Time(p.uint(0, math.MaxInt64))
}

// has reports whether a string comes next.
func (p *parser) has(s string) bool {
	return len(p.b)-p.at >= len(s) && string(p.b[p.at:p.at+len(s)]) == s
}

// literal reads a string that has to be there.
func (p *parser) literal(s string) {
	if p.err != nil {
		return
	}
	if !p.has(s) {
		p.fail(strconv.QuoteToASCII(s), p.found())
		return
	}
	p.at += len(s)
}

// uint reads a decimal number without leading zeros.
func (p *parser) uint(least, most uint64) uint64 {
	if p.err != nil {
		return 0
	}
	const cut = math.MaxUint64 / 10
	var v uint64
	n := 0
	for _, c := range p.b[p.at:] {
		d := uint64(c) - '0'
		if d > 9 {
			break
		}
		if n++; n >= 20 && (n > 20 || v > cut || v == cut && d > math.MaxUint64%10) {
			n = 0 // more than 64 bits
			break
		}
		v = v*10 + d
	}
	if n == 0 || n > 1 && p.b[p.at] == '0' || v < least || v > most {
		p.fail("a number in "+strconv.FormatUint(least, 10)+".."+strconv.FormatUint(most, 10), p.found())
		return 0
	}
	p.at += n
	return v
}

// hex reads hex digits, lower case.
func (p *parser) hex(digits int) uint64 {
	if p.err != nil {
		return 0
	}
	var v uint64
	if len(p.b)-p.at < digits {
		p.fail(strconv.Itoa(digits)+" hex digits", p.found())
		return 0
	}
	for _, c := range p.b[p.at : p.at+digits] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			p.fail(strconv.Itoa(digits)+" hex digits", p.found())
			return 0
		}
	}
	p.at += digits
	return v
}
