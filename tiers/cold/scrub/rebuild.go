package scrub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"varve/core/manifest"
	"varve/core/segment"
	"varve/tiers"
)

// span is records that no object holds.
type span struct{ first, end segment.Offset }

// chain is objects that follow each other.
type chain struct {
	chosen []manifest.Segment
	gaps   []span
	others []manifest.Segment // that hold records of chosen ones, or void ones
}

// choose takes from all objects those that make a log: at each offset the newest epoch counts that
// begins at or below it; of one epoch's, the object that reaches farthest.
func choose(all []manifest.Segment) (c chain) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b manifest.Segment) int {
		return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(b.Epoch, a.Epoch), cmp.Compare(b.End, a.End), cmp.Compare(a.Attempt, b.Attempt))
	})
	// From the back: the least base of a newer epoch voids what reaches beyond it, or begins behind it.
	valid := make([]bool, len(all))
	firsts := map[segment.Epoch]segment.Offset{}
	for i := range all {
		if first, ok := firsts[all[i].Epoch]; !ok || all[i].Base < first {
			firsts[all[i].Epoch] = all[i].Base
		}
	}
	for i := range all {
		valid[i] = true
		for epoch, first := range firsts {
			if epoch > all[i].Epoch && first < all[i].End {
				valid[i] = false
			}
		}
	}
	for i := range all {
		e := all[i]
		n := len(c.chosen)
		switch {
		case !valid[i] || n > 0 && e.Base < c.chosen[n-1].End:
			c.others = append(c.others, e)
			continue
		case n > 0 && e.Base > c.chosen[n-1].End:
			c.gaps = append(c.gaps, span{c.chosen[n-1].End, e.Base})
		}
		c.chosen = append(c.chosen, e)
	}
	return c
}

// Rebuilt is a manifest made of the objects alone.
type Rebuilt struct {
	Manifest *manifest.Manifest
	Pages    []PageFile
	Why      string          // why it is needed: what is wrong with the one that is there
	Gaps     []string        // what no object holds; with loss accepted, lost spans of the manifest
	Unused   []string        // keys of objects that it does not list, and why
	Objects  int             // that it lists
	tag      tiers.Condition // of the manifest that it replaces
}

// PageFile is a page that is written before the manifest that names it.
type PageFile struct {
	Key  string
	Text []byte
}

// ErrManifestThere says that there is a manifest that verifies: nothing to rebuild.
var ErrManifestThere = errors.New("scrub: the manifest verifies: there is nothing to rebuild")

// epochMargin is how far the epoch of a rebuilt manifest lies above all that objects name: a former
// owner, whose epoch no object tells, is fenced.
const epochMargin = 1000

// Rebuild makes a manifest of the objects below a prefix, reading each whole, and writes nothing.
// acceptLoss lets it declare lost what no object holds between others.
func Rebuild(ctx context.Context, b tiers.Bucket, prefix string, acceptLoss bool, progress Progress) (*Rebuilt, error) {
	s := &scrubber{ctx: ctx, bucket: b, v: newVerifier(b, prefix), r: &Report{Prefix: prefix}, listed: map[string]int64{}}
	defer s.v.store.Close()
	m, state, err := loadManifest(ctx, b, prefix)
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		return nil, ErrManifestThere
	}
	r := &Rebuilt{Why: "expected " + state.expected + ", found " + state.found}
	if r.tag, err = condition(ctx, b, prefix+manifest.ManifestKey); err != nil {
		return nil, err
	}
	uploads, err := s.list()
	switch {
	case err != nil:
		return nil, err
	case state.found == noManifest && s.nothing(uploads):
		return nil, ErrNothing
	}
	log, all, err := s.verified(r, progress)
	if err != nil {
		return nil, err
	}
	c := choose(all)
	for i := range c.others {
		r.Unused = append(r.Unused, key(&c.others[i])+": others hold its records, or a newer epoch does")
	}
	for _, g := range c.gaps {
		r.Gaps = append(r.Gaps, fmt.Sprintf("offsets [%d, %d) are in no object", g.first, g.end))
	}
	switch {
	case len(c.chosen) == 0:
		return r, errors.New("scrub: no object below the prefix verifies: there is nothing to make a manifest of")
	case len(c.gaps) > 0 && !acceptLoss:
		return r, fmt.Errorf("scrub: %s: give the bucket its objects back, or accept the loss", r.Gaps[0])
	}
	r.Objects = len(c.chosen)
	r.build(log, &c, s.pageNumber())
	return r, nil
}

// condition returns what must hold for the manifest to be replaced.
func condition(ctx context.Context, b tiers.Bucket, k string) (tiers.Condition, error) {
	o, err := b.Head(ctx, k)
	switch {
	case errors.Is(err, tiers.ErrNotFound):
		return tiers.Condition{Absent: true}, nil
	case errors.Is(err, tiers.ErrCorrupt): // of no tag that anybody could name
		return tiers.Condition{}, nil
	}
	return tiers.Condition{Tag: o.Tag}, err
}

// verified reads every object. The log is the one that the first good one names.
func (s *scrubber) verified(r *Rebuilt, progress Progress) (log segment.LogID, all []manifest.Segment, err error) {
	total, read := int64(0), int64(0)
	names := make([]string, 0, len(s.listed))
	for k, n := range s.listed {
		if parsed, ok := manifest.ParseKey(k); ok && parsed.Kind == manifest.KeySegment {
			names = append(names, k)
			total += n
		}
	}
	slices.Sort(names)
	for _, k := range names {
		parsed, _ := manifest.ParseKey(k)
		h, err := readHeader(s.ctx, s.bucket, s.r.Prefix+k)
		if err != nil {
			return log, nil, err
		}
		if h == nil {
			r.Unused = append(r.Unused, k+": its header does not verify")
			continue
		}
		if len(all) == 0 {
			log = h.LogID
		}
		e := manifest.Segment{Base: parsed.Base, End: parsed.End, Epoch: parsed.Epoch, Attempt: parsed.Attempt, ID: h.ID}
		got, f, err := s.v.read(s.ctx, log, &e, s.listed[k], 0)
		if err != nil {
			return log, nil, fmt.Errorf("read %s: %w", k, err)
		}
		if f.name != "" {
			r.Unused = append(r.Unused, fmt.Sprintf("%s: expected %s, found %s", k, f.expected, f.found))
		} else {
			all = append(all, got)
		}
		read += s.listed[k]
		progress(read, total)
	}
	return log, all, nil
}

// pageNumber returns the highest number of a page in the bucket.
func (s *scrubber) pageNumber() (n uint64) {
	for k := range s.listed {
		if parsed, ok := manifest.ParseKey(k); ok && parsed.Kind == manifest.KeyPage {
			n = max(n, parsed.Number)
		}
	}
	return n
}

// build makes the manifest, and pages of its older part. Its sequence is a time: above every sequence
// that counted up from 1.
func (r *Rebuilt) build(log segment.LogID, c *chain, number uint64) {
	m := &manifest.Manifest{
		LogID: log, Nonce: uint64(time.Now().UnixNano()), Sequence: uint64(time.Now().UnixNano()),
		Start: c.chosen[0].Base, DeletedTo: c.chosen[0].Base,
	}
	for i := range c.chosen {
		e := c.chosen[i]
		if n := len(m.Lineage); n == 0 || m.Lineage[n-1].Epoch != e.Epoch {
			m.Lineage = append(m.Lineage, segment.Lineage{Epoch: e.Epoch, First: e.Base})
		}
		m.Epoch = min(e.Epoch+epochMargin, segment.EpochMax)
	}
	at := m.Start
	for i := range c.chosen {
		e := c.chosen[i]
		if e.Base > at {
			m.Segments = append(m.Segments, manifest.Segment{Base: at, End: e.Base, Epoch: e.Epoch, State: manifest.Lost})
		}
		m.Segments = append(m.Segments, e)
		at = e.End
		var t manifest.PageText
		if text, ok := manifest.Split(m, manifest.SegmentsMax, number+1, &t, nil); ok {
			number++
			p := m.Pages[len(m.Pages)-1]
			r.Pages = append(r.Pages, PageFile{Key: string(p.AppendKey(nil)), Text: text})
		}
	}
	r.Manifest = m
}

// Write puts pages and manifest into the bucket, unless somebody else has written one meanwhile.
func (r *Rebuilt) Write(ctx context.Context, b tiers.Bucket, prefix string) error {
	for i := range r.Pages {
		if _, err := b.Put(ctx, prefix+r.Pages[i].Key, r.Pages[i].Text, tiers.Condition{Absent: true}); err != nil {
			return err
		}
	}
	_, err := b.Put(ctx, prefix+manifest.ManifestKey, manifest.Append(nil, r.Manifest), r.tag)
	return err
}
