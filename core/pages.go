package core

import "varve/core/manifest"

// catalogue is what the manifest and its pages list, as one. The manifest is written anew at every
// swap, so its older part moves to pages, which never change. A page is written before the swap that
// names it, and deleted, after the objects that it lists, before the swap that drops it: it is needed
// by nobody by then, and found by whoever opens the log.
type catalogue struct {
	whole  manifest.Manifest // Segments: all that stand for a span, from DeletedTo on, by base
	texts  []manifest.PageText
	ages   []Time   // of whole.Segments: wall time from which an entry's age counts
	sights []sight  // of the entries that were known before
	gone   []uint64 // attempts whose objects are deleted
	left   []uint64 // numbers of pages that are deleted
	fresh  bool     // gone or left grew since the last swap

	page    manifest.Page // that was written, or is to be; Number 0: none
	written bool
	number  uint64 // highest number of a page seen or tried
	text    manifest.PageText
	split   manifest.Manifest
	load    LoadPage
	save    SavePage
	buf     []byte
}

func (c *catalogue) reset() {
	c.whole.CopyFrom(&manifest.Manifest{})
	c.texts, c.ages, c.sights, c.gone, c.left, c.fresh = c.texts[:0], c.ages[:0], c.sights[:0], c.gone[:0], c.left[:0], false
	c.page, c.written, c.number = manifest.Page{}, false, 0
}

// sight is when an entry was seen first.
type sight struct {
	base Offset
	age  Time
}

// flatten makes whole of a manifest that was read or won.
func (c *catalogue) flatten(m *manifest.Manifest, wall Time) {
	c.sights = c.sights[:0]
	for i := range c.whole.Segments {
		c.sights = append(c.sights, sight{c.whole.Segments[i].Base, c.ages[i]})
	}
	all := c.whole.Segments[:0]
	c.whole.CopyFrom(&manifest.Manifest{LogID: m.LogID, Epoch: m.Epoch, Start: m.Start, DeletedTo: m.DeletedTo})
	keep := c.texts[:0]
	for i := range m.Pages {
		c.number = max(c.number, m.Pages[i].Number)
		t := c.textOf(m.Pages[i].Number)
		if t == nil {
			continue // wholly below Start, and deleted
		}
		keep = append(keep, *t)
		all = append(all, t.Segments...)
	}
	c.texts = keep
	for i := range m.Segments {
		if m.Segments[i].State.Covers() {
			all = append(all, m.Segments[i])
		}
	}
	n := 0
	for n < len(all) && all[n].End <= m.DeletedTo {
		n++
	}
	c.whole.Segments = append(all[:0], all[n:]...)
	for len(c.ages) < len(c.whole.Segments) {
		c.ages = append(c.ages, 0)
	}
	c.ages = c.ages[:len(c.whole.Segments)]
	n = 0
	for i := range c.whole.Segments {
		s := &c.whole.Segments[i]
		c.ages[i] = min(s.AppendTime, wall) // a time in the future counts from first sight
		for n < len(c.sights) && c.sights[n].base < s.Base {
			n++
		}
		if n < len(c.sights) && c.sights[n].base == s.Base {
			c.ages[i] = min(c.ages[i], c.sights[n].age)
		}
	}
}

func (c *catalogue) textOf(number uint64) *manifest.PageText {
	for i := range c.texts {
		if c.texts[i].Number == number {
			return &c.texts[i]
		}
	}
	if c.page.Number == number && number != 0 {
		return &manifest.PageText{LogID: c.text.LogID, Number: number, Segments: append([]manifest.Segment(nil), c.text.Segments...)}
	}
	return nil
}

// forget drops what is gone once a swap was won, but for what the manifest still lists.
func (c *catalogue) forget(m *manifest.Manifest) {
	c.fresh = false
	n := 0
	for _, a := range c.gone {
		listed := false
		for i := range c.whole.Segments {
			listed = listed || c.whole.Segments[i].Attempt == a && c.whole.Segments[i].State != manifest.Lost
		}
		for i := range m.Segments {
			listed = listed || m.Segments[i].Attempt == a
		}
		if listed {
			c.gone[n] = a
			n++
		}
	}
	c.gone = c.gone[:n]
	n = 0
	for _, number := range c.left {
		for i := range m.Pages {
			if m.Pages[i].Number == number {
				c.left[n] = number
				n++
				break
			}
		}
	}
	c.left = c.left[:n]
	if c.page.Number != 0 && c.written {
		for i := range m.Pages {
			if m.Pages[i].Number == c.page.Number {
				c.page, c.written = manifest.Page{}, false
			}
		}
	}
}

func (c *catalogue) isGone(attempt uint64) bool {
	for _, a := range c.gone {
		if a == attempt {
			return true
		}
	}
	return false
}

func (c *catalogue) hasLeft(number uint64) bool {
	for _, n := range c.left {
		if n == number {
			return true
		}
	}
	return false
}

// goneTo returns the end of the span from DeletedTo on in which nothing is left to delete.
func (c *catalogue) goneTo() Offset {
	end := Offset(0)
	for i := range c.whole.Segments {
		s := &c.whole.Segments[i]
		if s.State != manifest.Lost && !c.isGone(s.Attempt) {
			break
		}
		if s.State != manifest.Lost {
			end = s.End
		}
	}
	return end
}

// wantPage plans a page of the oldest segments where a manifest lists too many.
func (c *catalogue) wantPage(m *manifest.Manifest, most int) bool {
	if c.page.Number != 0 {
		return !c.written
	}
	covers, end := 0, Offset(-1)
	for i := range m.Segments {
		s := &m.Segments[i]
		if !s.State.Covers() {
			continue
		}
		if covers > 0 && s.Base != end {
			return false // what lies before the gap is below Start, and goes
		}
		covers, end = covers+1, s.End
	}
	if covers <= most {
		return false
	}
	c.number++
	c.split.CopyFrom(m)
	var ok bool
	if c.buf, ok = manifest.Split(&c.split, most, c.number, &c.text, c.buf[:0]); !ok {
		return false
	}
	c.page, c.written = c.split.Pages[len(c.split.Pages)-1], false
	return true
}

// issuePage hands out the page that is to be written.
func (c *catalogue) issuePage() Effect {
	c.save = SavePage{Base: c.page.Base, Number: c.page.Number, Bytes: c.buf}
	return &c.save
}

// paged moves what the written page lists out of a manifest that is about to be swapped in.
func (c *catalogue) paged(n *manifest.Manifest) {
	if c.page.Number == 0 || !c.written {
		return
	}
	keep := n.Segments[:0]
	for _, s := range n.Segments {
		if !s.State.Covers() || s.Base >= c.page.End {
			keep = append(keep, s)
		}
	}
	n.Segments = keep
	n.Pages = append(n.Pages, c.page)
}

// deletedPages adds to a Delete what lies wholly below Start and lists no object any more.
func (c *catalogue) deletedPages(m *manifest.Manifest, start Offset, d *Delete) {
	to := c.goneTo()
	for i := range m.Pages {
		if p := &m.Pages[i]; p.End <= start && (p.End <= to || c.textOf(p.Number) == nil) && !c.hasLeft(p.Number) {
			d.Pages = append(d.Pages, PageName{Base: p.Base, Number: p.Number})
		}
	}
}

// dropped takes deleted entries and pages out of a manifest that is about to be swapped in, and raises
// its mark. What is still needed holds the mark back; a lost span has nothing to delete.
func (c *catalogue) dropped(n *manifest.Manifest) {
	mark := c.goneTo()
	keep := n.Segments[:0]
	for _, s := range n.Segments {
		if s.State == manifest.Dead && c.isGone(s.Attempt) {
			continue
		}
		if s.State != manifest.Lost && !c.isGone(s.Attempt) && s.End <= mark {
			mark = min(mark, s.Base)
		}
		keep = append(keep, s)
	}
	n.Segments = keep
	pages := n.Pages[:0]
	for _, p := range n.Pages {
		if c.hasLeft(p.Number) {
			continue
		}
		if p.End <= mark {
			mark = min(mark, p.Base)
		}
		pages = append(pages, p)
	}
	n.Pages = pages
	if mark <= n.DeletedTo {
		return
	}
	n.DeletedTo = mark
	keep = n.Segments[:0]
	for _, s := range n.Segments {
		if s.End > mark {
			keep = append(keep, s)
		}
	}
	n.Segments = keep
}

// nextPage asks for the pages that a manifest names, one after the other.
func (l *Log) nextPage() Effect {
	c := &l.cold
	p := &c.next.Pages[l.boot.at]
	c.list.load = LoadPage{Base: p.Base, Number: p.Number, Size: p.Bytes, Bytes: c.list.load.Bytes[:0]}
	return &c.list.load
}

// onPage takes a page. One that is not there was deleted, if all that it lists lies below Start.
func (l *Log) onPage(now Now, e *LoadPage) {
	b, c := &l.boot, &l.cold
	p := &c.next.Pages[b.at]
	if !e.Missing {
		t := manifest.PageText{}
		err := manifest.ParsePage(e.Bytes, &t)
		if err == nil {
			err = p.Verify(c.next.LogID, e.Bytes, &t)
		}
		if err != nil {
			l.badManifest(now, string(p.AppendKey(nil)), err)
			return
		}
		c.list.texts = append(c.list.texts, t)
	} else if p.End > c.next.Start {
		b.step = bootManifest // an owner beside us may have moved Start past it, and deleted it
		l.coldDown(now, &RefusedError{Name: string(p.AppendKey(nil)), Why: "it is not there, and the manifest names it", Next: "run: varve cold scrub"})
		return
	}
	b.loads = 0
	b.at++
	if b.at == len(c.next.Pages) {
		l.merge(now)
	}
}

// covering returns the entry that stands for an offset, nil if none does.
func covering(m *manifest.Manifest, o Offset) *manifest.Segment {
	low, high := 0, len(m.Segments)
	for low < high {
		if mid := int(uint(low+high) >> 1); m.Segments[mid].End > o {
			high = mid
		} else {
			low = mid + 1
		}
	}
	if low < len(m.Segments) && m.Segments[low].Base <= o {
		return &m.Segments[low]
	}
	return nil
}

// nextCovered returns the least offset above o that an entry stands for.
func nextCovered(m *manifest.Manifest, o Offset) Offset {
	for i := range m.Segments {
		if s := &m.Segments[i]; s.Base > o {
			return s.Base
		}
	}
	return EndNone
}

// end returns how far the entries go on without a gap from an offset.
func (c *catalogue) end(from Offset) Offset { return exportedEnd(&c.whole, from) }

// exportedEnd returns how far entries go on without a gap from an offset.
func exportedEnd(m *manifest.Manifest, end Offset) Offset {
	for i := range m.Segments {
		s := &m.Segments[i]
		if s.End <= end {
			continue
		}
		if s.Base > end {
			break
		}
		end = s.End
	}
	return end
}
