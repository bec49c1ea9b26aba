package manifest

import (
	"hash/crc32"
	"slices"

	"varve/core/segment"
)

// Split moves the oldest segments of a manifest that lists more than most finished ones to a page, so
// that half of most stay: it fills t and appends its text, and m names the page by this number. The
// page has to be durable before m is. Attempts and dead objects stay in m. Not ok means that there is
// nothing to do, and nothing was done.
func Split(m *Manifest, most int, number uint64, t *PageText, text []byte) (out []byte, ok bool) {
	check(most >= 1 && most <= SegmentsMax, "limit of a split")
	covers := 0
	for i := range m.Segments {
		if m.Segments[i].State.Covers() {
			covers++
		}
	}
	if covers <= most || len(m.Pages) >= PagesMax {
		return text, false
	}
	check(len(m.Pages) == 0 || number > m.Pages[len(m.Pages)-1].Number, "number of a page that was given before")
	*t = PageText{LogID: m.LogID, Number: number, Segments: t.Segments[:0]}
	left := covers - most/2
	kept := m.Segments[:0]
	for _, s := range m.Segments {
		if left > 0 && s.State.Covers() {
			t.Segments = append(t.Segments, s)
			left--
		} else {
			kept = append(kept, s)
		}
	}
	m.Segments = kept
	at := len(text)
	text = AppendPage(text, t)
	var p Page
	p.describe(text[at:], t)
	m.Pages = append(m.Pages, p)
	return text, true
}

// describe makes the entry of a page from its text and what that says.
func (p *Page) describe(text []byte, t *PageText) {
	*p = Page{Number: t.Number, Count: len(t.Segments), Bytes: int64(len(text)), CRC: crc32.Update(0, castagnoli, text)}
	for i := range t.Segments {
		s := &t.Segments[i]
		if i == 0 {
			p.Base, p.MinTime, p.MaxTime, p.AppendTime = s.Base, s.MinTime, s.MaxTime, s.AppendTime
		}
		p.End = s.End
		p.ObjectBytes += s.Bytes
		p.MinTime = min(p.MinTime, s.MinTime)
		p.MaxTime = max(p.MaxTime, s.MaxTime)
		p.AppendTime = max(p.AppendTime, s.AppendTime)
	}
}

// DropBelow raises DeletedTo to mark and removes the pages and entries wholly below it: their objects
// are gone. mark is at most Start.
func (m *Manifest) DropBelow(mark segment.Offset) {
	check(mark <= m.Start, "drops what is not below Start")
	if mark <= m.DeletedTo {
		return
	}
	m.DeletedTo = mark
	m.Segments = slices.DeleteFunc(m.Segments, func(s Segment) bool { return s.End <= mark })
	n := 0
	for n < len(m.Pages) && m.Pages[n].End <= mark {
		n++
	}
	m.Pages = m.Pages[:copy(m.Pages, m.Pages[n:])]
}
