package sim

import (
	"hash/crc32"

	"varve/core"
	"varve/core/manifest"
	"varve/core/segment"
	"varve/sim/fakebucket"
)

// swapsMax is far above the manifests that any run writes: each costs money.
const swapsMax = 1000

// bucketCalled judges what a step of the cold tier did to the bucket.
func (w *World) bucketCalled(e core.Effect) {
	switch e.(type) {
	case *core.SwapManifest:
		if w.cold.swaps++; w.cold.swaps > swapsMax {
			w.fail("K24", "the log writes its manifest again and again")
		}
	case *core.Delete:
		w.proven()
	}
}

// proven judges K13 where files or objects were just deleted: the tiers together have no gap, and
// whatever the log would serve from the cold tier is in an object of the size and checksum that the
// manifest in the bucket states.
func (w *World) proven() {
	c := &w.cold
	if now := w.log.Phase(); !w.h.Cold() || !w.process.opened || now != core.Ready && now != core.Closing {
		return
	}
	v := &w.coldView
	w.log.FillView(v)
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
	if !c.manifest() {
		return false
	}
	c.finished = c.finished[:0]
	add := func(all []manifest.Segment) {
		for i := range all {
			if all[i].State == manifest.Finished {
				c.finished = append(c.finished, all[i])
			}
		}
	}
	add(c.m.Segments)
	for i := range c.m.Pages {
		if body, there := c.body(c.m.Pages[i].AppendKey(c.key[:0])); there && manifest.ParsePage(body, &c.page) == nil {
			add(c.page.Segments)
		}
	}
	return true
}

// body returns what the bucket really holds under a key of the log.
func (c *coldWorld) body(key []byte) (body []byte, there bool) {
	for i := range c.bucket.Len() {
		if name, body, there := c.bucket.At(i); len(name) == len(coldPrefix)+len(key) && name[len(coldPrefix):] == string(key) {
			return body, there
		}
	}
	return nil, false
}

// holds reports whether the object of a cold extent is whole, or a fault of the bucket has cost it.
func (c *coldWorld) holds(x *core.Extent) bool {
	for i := range c.finished {
		e := &c.finished[i]
		if e.Attempt != x.Attempt || e.Base != x.Base || e.End != x.Until {
			continue
		}
		c.key = e.AppendKey(c.key[:0])
		if c.spoiled(c.key) {
			return true
		}
		body, there := c.body(c.key)
		return there && int64(len(body)) == e.Bytes && crc32.Checksum(body, castagnoli) == e.CRC
	}
	return c.spoiled([]byte(manifest.ManifestKey))
}

// spoiled reports whether a fault has cost the bucket's copy of an object.
func (c *coldWorld) spoiled(key []byte) bool {
	if c.bucket.Marks()&fakebucket.Damaging == 0 {
		return false
	}
	for _, d := range c.bucket.Damages() {
		if len(d.Key) == len(coldPrefix)+len(key) && d.Key[len(coldPrefix):] == string(key) {
			return true
		}
	}
	return false
}
