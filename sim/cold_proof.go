package sim

import (
	"varve/core"
	"varve/core/manifest"
	"varve/core/segment"
	"varve/sim/fakebucket"
)

// swapsMax, and two for each append, which may fill a segment, is far above the manifests that any run
// writes: each costs money.
const swapsMax = 1000

// bucketCalled judges what a step of the cold tier did to the bucket.
func (w *World) bucketCalled(e core.Effect) {
	switch e.(type) {
	case *core.SwapManifest:
		if w.cold.swaps++; w.cold.swaps > swapsMax+2*len(w.appends) {
			w.fail("K24", "the log writes its manifest again and again")
		}
	case *core.Delete:
		w.proven()
	}
}

// unclaimed judges K19 where the bucket takes no manifest: whoever opens a log that there is gets an answer, and
// what is proven is served meanwhile. It may stay so for ever.
func (w *World) unclaimed(e core.Effect) {
	s, ok := e.(*core.SwapManifest)
	if ok && !s.Lost && w.log.Phase() == core.Opening && !w.log.Plan().New {
		w.fail("K19", "an open waits without an answer for a bucket that takes no manifest")
	}
}

// manifestHidden reports whether an open was refused for a manifest that is there, and that the bucket does not give.
func (w *World) manifestHidden() bool {
	hidden := w.cold.bucket.Marks()&fakebucket.Set(fakebucket.O10Away, fakebucket.O10NotFound) != 0
	return w.h.Cold() && hidden && w.log.Marks().Has(core.MarkManifestGone) && w.cold.manifest()
}

// proven judges K13 where files or objects were just deleted: the tiers together have no gap, and
// whatever the log would serve from the cold tier is in an object of the size and checksum that the
// manifest in the bucket states.
func (w *World) proven() {
	c := &w.cold
	if now := w.log.Phase(); !w.h.Cold() || !w.process.opened || now != core.Ready && now != core.Closing {
		return
	}
	v := &c.view
	if v.Version != w.log.ViewVersion() {
		w.log.FillView(v)
	}
	next, read := v.Start, false
	for i := range v.Extents {
		x := &v.Extents[i]
		if x.First > next {
			break
		}
		next = max(next, x.End) // extents wholly below Start may lead
		if x.Tier != core.TierCold || x.Damage != segment.BreakNone {
			continue
		}
		if !read && !c.list() {
			break // damaged, or gone: nobody can tell
		}
		read = true
		if !c.holds(x) {
			w.fail("K13", "what only the cold tier is left to serve is in no object that the manifest lists")
			return
		}
	}
	if next < w.log.Committed() && !w.damaged() {
		w.fail("K13", "the tiers together have a gap")
	}
}

// list reads what the bucket's manifest and its pages list as finished.
func (c *coldWorld) list() bool {
	if !c.manifest() || c.listed {
		return c.there
	}
	if !c.samePages() {
		c.pages, c.paged = c.pages[:0], c.paged[:0]
		for i := range c.m.Pages {
			p := &c.m.Pages[i]
			if body, crc, there := c.body(p.AppendKey(c.at())); there && manifest.ParsePage(body, &c.page) == nil {
				c.paged = appendFinished(c.paged, c.page.Segments)
				c.pages = append(c.pages, pageRead{p.Number, crc})
			}
		}
	}
	c.listed, c.finished = true, append(appendFinished(c.finished[:0], c.m.Segments), c.paged...)
	return true
}

// pageRead is a page that was read.
type pageRead struct {
	number uint64
	crc    uint32 // as it was read
}

// samePages reports whether the pages that the manifest names are those that were read last.
func (c *coldWorld) samePages() bool {
	if len(c.pages) != len(c.m.Pages) {
		return false
	}
	for i := range c.m.Pages {
		p := &c.m.Pages[i]
		if _, crc, there := c.body(p.AppendKey(c.at())); !there || c.pages[i] != (pageRead{p.Number, crc}) {
			return false
		}
	}
	return true
}

func appendFinished(dst, all []manifest.Segment) []manifest.Segment {
	for i := range all {
		if all[i].State == manifest.Finished {
			dst = append(dst, all[i])
		}
	}
	return dst
}

// at returns scratch for a key, with the log's prefix in it.
func (c *coldWorld) at() []byte { return append(c.key[:0], coldPrefix...) }

// body returns what the bucket really holds under a key, and its CRC32C.
func (c *coldWorld) body(key []byte) (body []byte, crc uint32, there bool) {
	c.key = key
	return c.bucket.Find(key)
}

// holdsAny reports whether there is an object that the manifest lists and that stays as long as that is not swapped.
func (c *coldWorld) holdsAny() bool {
	if !c.list() {
		return false
	}
	for i := range c.finished {
		e := &c.finished[i]
		if e.End <= c.m.Start {
			continue
		}
		if _, _, there := c.body(e.AppendKey(c.at())); there {
			return true
		}
	}
	return false
}

// holds reports whether the object of a cold extent is whole, or a fault of the bucket has cost it.
func (c *coldWorld) holds(x *core.Extent) bool {
	for i := range c.finished {
		e := &c.finished[i]
		if e.Attempt != x.Attempt || e.Base != x.Base || e.End != x.Until {
			continue
		}
		body, crc, there := c.body(e.AppendKey(c.at()))
		return there && int64(len(body)) == e.Bytes && crc == e.CRC || c.spoiled(c.key)
	}
	return c.spoiled(append(c.at(), manifest.ManifestKey...))
}

// spoil lets the bucket damage an object. Its records may be on disk as well, and then nobody notices;
// where they are not, the damage is reported, and nothing else is served in their place.
func (w *World) spoil(e *Event) {
	c := &w.cold
	if !w.h.Cold() || !w.h.On(SwSpoil) || !c.list() || len(c.finished) == 0 {
		return
	}
	s := &c.finished[(e.A*int64(len(c.finished)-1)+500)/1000]
	c.key = s.AppendKey(c.at())
	key := string(c.key)
	struck := e.B == SpoilRot && c.bucket.Flip(key, uint64(w.rng.Below(8*s.Bytes))) || e.B == SpoilExpired && c.bucket.Expire(key)
	if !struck {
		return
	}
	w.res.Marks.add(MarkSpoiled)
	if e.B == SpoilExpired {
		c.expired = append(c.expired, sighting{objectOf(s), w.clock.mono})
	}
	w.check.DamageInjected(w.clock.mono, s.Base, s.End, false)
	if w.Trace != nil {
		w.say(TrackWorld, Note, "the bucket damages %s", key)
	}
}

// sighting is when something happened to an object.
type sighting struct {
	object core.Object
	at     int64
}

func objectOf(s *manifest.Segment) core.Object {
	return core.Object{Base: s.Base, End: s.End, Epoch: s.Epoch, Attempt: s.Attempt}
}

// left judges that a file leaves the disk only after a look at the objects of its records, and not if that
// came after they were deleted.
func (w *World) left(from, to core.Offset) {
	c := &w.cold
	if from >= to || len(c.expired) == 0 || c.misread() || !c.list() { // a look may have been answered from a cache
		return
	}
	for i := range c.finished {
		s := &c.finished[i]
		if s.End <= from || to <= s.Base {
			continue
		}
		look := int64(-1)
		for _, l := range c.looked {
			if l.object == objectOf(s) {
				look = l.at
			}
		}
		for _, x := range c.expired {
			if x.object == objectOf(s) && (look < 0 || x.at < look) {
				w.fail("K13", "a file left the disk for an object that is gone: the last copy of its records")
			}
		}
	}
}

// covers reports whether whole objects hold all records of a span.
func (c *coldWorld) covers(first, end core.Offset) bool {
	if !c.list() {
		return false
	}
	for i := range c.finished {
		s := &c.finished[i]
		x := core.Extent{Attempt: s.Attempt, Base: s.Base, Until: s.End}
		if s.Base <= first && first < s.End && c.holds(&x) {
			first = s.End
		}
	}
	return first >= end
}

// unhealed reports whether the log was told of damage within a span, in this life, and objects hold the
// records. By the end it had the time to heal it.
func (w *World) unhealed(first, end core.Offset) bool {
	for _, o := range w.cold.told {
		if first <= o && o < end && o < w.log.Exported() && w.cold.covers(o, o+1) {
			return true
		}
	}
	return false
}

// spoiledAt reports whether a fault has cost the object that holds an offset.
func (c *coldWorld) spoiledAt(o core.Offset) bool {
	if len(c.bucket.Damages()) == 0 || !c.list() {
		return false
	}
	for i := range c.finished {
		if s := &c.finished[i]; s.Base <= o && o < s.End {
			c.key = s.AppendKey(c.at())
			return c.spoiled(c.key)
		}
	}
	return false
}

// spoiled reports whether a fault has cost the bucket's copy of an object.
func (c *coldWorld) spoiled(key []byte) bool {
	for _, d := range c.bucket.Damages() {
		if d.Key == string(key) {
			return true
		}
	}
	return false
}
