package manifest

import (
	"fmt"

	"varve/core/segment"
)

// Lines of the text.
const (
	lineHead    = 2 // log, epoch, nonce, sequence; or the number of a page
	lineStart   = 3
	lineLineage = 5 // the first entry
	linePage    = 4 // the first segment of a page
)

// bad makes the error of a field that is not of a list.
func bad(what string, line int, field, expected string, found any) error {
	return &Error{What: what, Line: line, Field: field, Expected: expected, Found: fmt.Sprint(found)}
}

// Verify checks that m is a manifest that Append encodes and Parse reads. An error is an *Error with
// the line that the place has, or would have, in the text.
func (m *Manifest) Verify() error {
	const what = "manifest"
	switch {
	case m.Epoch == 0:
		return bad(what, lineHead, "epoch", "1 or more", m.Epoch)
	case m.Sequence == 0 || m.Sequence > NumberMax:
		return bad(what, lineHead, "sequence", "1 or more, below 2^62", m.Sequence)
	case m.Start < 0 || m.Start > NumberMax:
		return bad(what, lineStart, "start", "0 or more, below 2^62", m.Start)
	case m.DeletedTo < 0 || m.DeletedTo > m.Start:
		return bad(what, lineStart, "deleted_to", fmt.Sprintf("0 up to start, %d", m.Start), m.DeletedTo)
	}
	if err := m.verifyLineage(); err != nil {
		return err
	}
	segments := list{
		what: what, name: "segments", line: lineLineage + len(m.Lineage) + 2, next: m.DeletedTo, start: m.Start, open: true,
		lineage: m.Lineage, epochMax: m.Epoch,
	}
	pages := list{what: what, name: "pages", line: segments.line + len(m.Segments) + 2}
	if len(m.Pages) > PagesMax {
		return pages.bad(PagesMax, "", fmt.Sprintf("at most %d pages", PagesMax), len(m.Pages))
	}
	var number uint64
	for i := range m.Pages {
		p := &m.Pages[i]
		if err := pages.page(i, p, number); err != nil {
			return err
		}
		if err := segments.follow(&pages, i, p.Base, p.End); err != nil {
			return err
		}
		if err := segments.sum(&pages, i, "object_bytes", p.ObjectBytes); err != nil {
			return err
		}
		number = p.Number
	}
	return segments.segments(m.Segments, m.DeletedTo)
}

func (m *Manifest) verifyLineage() error {
	l := list{what: "manifest", name: "lineage", line: lineLineage}
	if len(m.Lineage) > LineageMax {
		return l.bad(LineageMax, "", fmt.Sprintf("at most %d epochs", LineageMax), len(m.Lineage))
	}
	if len(m.Lineage) > 0 && m.Lineage[0].First > m.Start {
		return l.bad(0, "first", fmt.Sprintf("at most start, %d", m.Start), m.Lineage[0].First)
	}
	var before segment.Lineage
	for i, e := range m.Lineage {
		switch {
		case e.Epoch <= before.Epoch || e.Epoch > m.Epoch:
			return l.bad(i, "epoch", fmt.Sprintf("above %d, up to %d", before.Epoch, m.Epoch), e.Epoch)
		case e.First < before.First || e.First > NumberMax:
			return l.bad(i, "first", fmt.Sprintf("%d or more, below 2^62", before.First), e.First)
		}
		before = e
	}
	return nil
}

// Verify checks that t is a page that AppendPage encodes and ParsePage reads.
func (t *PageText) Verify() error {
	const what = "page"
	switch {
	case t.Number == 0 || t.Number > NumberMax:
		return bad(what, lineHead, "number", "1 or more, below 2^62", t.Number)
	case len(t.Segments) == 0:
		return bad(what, linePage, "segments", "at least one", "none")
	}
	l := list{what: what, name: "segments", line: linePage, next: t.Segments[0].Base, epochMax: segment.EpochMax, paged: true}
	return l.segments(t.Segments, 0)
}

// Verify checks that t, with the text that it was read from, is the page that p names in the manifest
// of a log.
func (p *Page) Verify(log segment.LogID, text []byte, t *PageText) error {
	var is Page
	is.describe(text, t)
	const what = "page"
	switch {
	case t.LogID != log:
		return bad(what, lineHead, "log", fmt.Sprintf("%x", log), fmt.Sprintf("%x", t.LogID))
	case is.Number != p.Number:
		return bad(what, lineHead, "number", fmt.Sprint(p.Number), is.Number)
	case is.CRC != p.CRC || is.Bytes != p.Bytes:
		return bad(what, 1, "", fmt.Sprintf("%d bytes of checksum %08x, as the manifest says", p.Bytes, p.CRC),
			fmt.Sprintf("%d bytes of checksum %08x", is.Bytes, is.CRC))
	case is != *p:
		return bad(what, linePage, "segments", fmt.Sprintf("what the manifest says, %+v", *p), fmt.Sprintf("%+v", is))
	}
	return nil
}

// list checks the items of a list, one after the other.
type list struct {
	what, name string
	line       int            // of the first item
	next       segment.Offset // where the next span without a gap begins
	start      segment.Offset // what is missing below it was trimmed before it was exported
	open       bool           // the first one may begin before next, if it ends behind it
	lineage    []segment.Lineage
	epochMax   segment.Epoch
	paged      bool // only what covers
	bytes      int64
}

func (l *list) bad(item int, field, expected string, found any) error {
	return bad(l.what, l.line+item, itemField(l.name, item, field), expected, found)
}

// segments checks entries. No entry may end at or below deleted.
func (l *list) segments(all []Segment, deleted segment.Offset) error {
	if len(all) > EntriesMax {
		return l.bad(EntriesMax, "", fmt.Sprintf("at most %d entries", EntriesMax), len(all))
	}
	var newest uint64 // greatest attempt so far
	for i := range all {
		s := &all[i]
		if err := l.fields(i, s); err != nil {
			return err
		}
		if s.End <= deleted {
			return l.bad(i, "end", fmt.Sprintf("above deleted_to, %d", deleted), s.End)
		}
		if i > 0 {
			b := &all[i-1]
			if s.Base < b.Base {
				return l.bad(i, "base", fmt.Sprintf("%d or more, the base of the one before", b.Base), s.Base)
			}
			if s.Base == b.Base && s.Attempt <= b.Attempt {
				return l.bad(i, "attempt", fmt.Sprintf("above %d, the one before of the same base", b.Attempt), s.Attempt)
			}
		}
		if s.Attempt <= newest && s.Attempt != 0 {
			for j := range all[:i] {
				if all[j].Attempt == s.Attempt {
					return l.bad(i, "attempt", fmt.Sprintf("another than that of segments[%d]", j), s.Attempt)
				}
			}
		}
		newest = max(newest, s.Attempt)
		if !s.State.Covers() {
			continue
		}
		if err := l.follow(l, i, s.Base, s.End); err != nil {
			return err
		}
		if err := l.owned(i, s); err != nil {
			return err
		}
	}
	return nil
}

// fields checks what an entry says by itself.
func (l *list) fields(i int, s *Segment) error {
	object := s.State != Lost
	switch {
	case s.State < Started || s.State > Lost || l.paged && !s.State.Covers():
		return l.bad(i, "state", "one that may stand here", s.State)
	case s.Base < 0 || s.End <= s.Base || s.End > NumberMax:
		return l.bad(i, "end", fmt.Sprintf("above the base, %d, and below 2^62", s.Base), s.End)
	case s.Epoch == 0 || s.Epoch > l.epochMax:
		return l.bad(i, "epoch", fmt.Sprintf("1 up to %d", l.epochMax), s.Epoch)
	case object != (s.Attempt != 0) || s.Attempt > NumberMax:
		return l.bad(i, "attempt", "1 or more, below 2^62; 0 in a lost span", s.Attempt)
	case object && s.ID == 0:
		return l.bad(i, "id", "the id of a segment", "0")
	case s.Bytes < 0 || s.Bytes > ObjectMax || s.State == Finished && s.Bytes < ObjectMin || !object && s.Bytes != 0:
		return l.bad(i, "bytes", fmt.Sprintf("the size of an object, %d..%d; 0 in a lost span", ObjectMin, int64(ObjectMax)), s.Bytes)
	case s.FooterBytes < 0 || s.FooterBytes > s.Bytes ||
		s.State == Finished && (s.FooterBytes < FooterMin || s.FooterBytes > s.Bytes-ObjectMin+FooterMin):
		return l.bad(i, "footer_bytes", fmt.Sprintf("%d or more, and less than the object", FooterMin), s.FooterBytes)
	case s.MinTime > s.MaxTime:
		return l.bad(i, "max_time", fmt.Sprintf("at least min_time, %d", s.MinTime), s.MaxTime)
	}
	return l.sum(l, i, "bytes", s.Bytes)
}

// page checks what a page's entry says by itself, and that its number is above another.
func (l *list) page(i int, p *Page, above uint64) error {
	switch {
	case p.Base < 0 || p.End <= p.Base || p.End > NumberMax:
		return l.bad(i, "end", fmt.Sprintf("above the base, %d, and below 2^62", p.Base), p.End)
	case p.Number <= above || p.Number > NumberMax:
		return l.bad(i, "number", fmt.Sprintf("above %d, and below 2^62", above), p.Number)
	case p.Count < 1 || p.Count > EntriesMax || int64(p.Count) > p.End-p.Base:
		return l.bad(i, "count", fmt.Sprintf("1 up to %d, at most one a record", EntriesMax), p.Count)
	case p.Bytes < 1 || p.Bytes > BytesMax:
		return l.bad(i, "bytes", fmt.Sprintf("1 up to %d", BytesMax), p.Bytes)
	case p.MinTime > p.MaxTime:
		return l.bad(i, "max_time", fmt.Sprintf("at least min_time, %d", p.MinTime), p.MaxTime)
	}
	return nil
}

// sum adds bytes that item i of a list states.
func (l *list) sum(of *list, i int, field string, n int64) error {
	if n < 0 || n > NumberMax-l.bytes {
		return of.bad(i, field, "objects of less than 2^62 bytes in all", n)
	}
	l.bytes += n
	return nil
}

// follow checks that the span of item i of a list begins where the one before ended.
func (l *list) follow(of *list, i int, base, end segment.Offset) error {
	switch {
	case l.open && base > max(l.next, l.start):
		return of.bad(i, "base", fmt.Sprintf("at most %d: from there on nothing is missing", max(l.next, l.start)), base)
	case l.open && end <= l.next:
		return of.bad(i, "end", fmt.Sprintf("above deleted_to, %d", l.next), end)
	case !l.open && base != l.next && (base < l.next || base > l.start):
		return of.bad(i, "base", fmt.Sprintf("%d, the end of what is before it", l.next), base)
	}
	l.next, l.open = end, false
	return nil
}

// owned checks that the lineage gives the span of an object to its epoch. A lineage may have been cut
// below its first entry; a lost span is nobody's.
func (l *list) owned(i int, s *Segment) error {
	if s.State == Lost || l.paged {
		return nil
	}
	for len(l.lineage) > 1 && l.lineage[1].First <= s.Base {
		l.lineage = l.lineage[1:]
	}
	switch {
	case len(l.lineage) == 0:
		return l.bad(i, "epoch", "one that the lineage names", s.Epoch)
	case s.Base < l.lineage[0].First:
		if s.Epoch >= l.lineage[0].Epoch {
			return l.bad(i, "epoch", fmt.Sprintf("below %d, which begins at %d", l.lineage[0].Epoch, l.lineage[0].First), s.Epoch)
		}
		if s.End > l.lineage[0].First {
			return l.bad(i, "end", fmt.Sprintf("at most %d, where the next epoch begins", l.lineage[0].First), s.End)
		}
	case s.Epoch != l.lineage[0].Epoch:
		return l.bad(i, "epoch", fmt.Sprintf("%d, which owns offset %d", l.lineage[0].Epoch, s.Base), s.Epoch)
	case len(l.lineage) > 1 && s.End > l.lineage[1].First:
		return l.bad(i, "end", fmt.Sprintf("at most %d, where the next epoch begins", l.lineage[1].First), s.End)
	}
	return nil
}
