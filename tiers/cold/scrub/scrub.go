package scrub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"varve/core/manifest"
	"varve/core/segment"
	"varve/tiers"
)

// Names of anomalies.
const (
	Missing  = "missing"  // the manifest lists an object or a page that is not there
	Checksum = "checksum" // an object or page is there, and is not what the manifest says
	Gap      = "gap"      // no object holds these records
	Overlap  = "overlap"  // two objects hold the same records under one epoch
	Orphan   = "orphan"   // an object or page that no manifest lists
	Upload   = "upload"   // an upload in parts that nobody goes on with
	Manifest = "manifest" // it is missing, or does not verify
	Unknown  = "unknown"  // a key that is none of a log's; never touched
)

// Anomaly is one thing that is wrong.
type Anomaly struct {
	Name       string
	Key        string         // below the prefix of the log
	First, End segment.Offset // records that it concerns; 0, 0: none
	Expected   string
	Found      string
	Damage     bool      // a reader meets it
	Created    time.Time // of an orphan, as far as it says; zero: unknown

	upload string // to abort
	delete bool   // to delete
}

// String describes the anomaly on a line.
func (a *Anomaly) String() string {
	where := a.Key
	if a.First < a.End {
		where = fmt.Sprintf("%s offsets [%d, %d)", where, a.First, a.End)
	}
	return fmt.Sprintf("%s: %s: expected %s, found %s", a.Name, strings.TrimSpace(where), a.Expected, a.Found)
}

// Report is what a scrub found.
type Report struct {
	Prefix    string
	Manifest  *manifest.Manifest // nil: there is none that verifies
	Anomalies []Anomaly
	Objects   int // that were read and are as they should be
	Bytes     int64

	// Unverified is the oldest record that the cold tier should hold and that was not proven to be there,
	// -1 if all were; Since is when it, or a later one of its object, was appended.
	Unverified segment.Offset
	Since      time.Time
}

// Damaged reports whether a reader would miss something.
func (r *Report) Damaged() bool {
	return slices.ContainsFunc(r.Anomalies, func(a Anomaly) bool { return a.Damage })
}

// Progress is told how many bytes of objects were read, and how many there are.
type Progress func(read, total int64)

// scrubber is one scrub.
type scrubber struct {
	ctx    context.Context
	bucket tiers.Bucket
	v      *verifier
	r      *Report
	listed map[string]int64 // bytes by key below the prefix
	all    []manifest.Segment
	known  map[string]bool // keys that the manifest lists
	done   int64
}

// ErrNothing says that nothing at all is under a prefix: no manifest, object or upload.
var ErrNothing = errors.New("scrub: there is no log")

// Run looks at the log under a prefix, "" or a key that ends in a slash. An error is one of the bucket:
// then nothing is known of what was not looked at. With an error the report holds what was found so far.
func Run(ctx context.Context, b tiers.Bucket, prefix string, progress Progress) (*Report, error) {
	s := &scrubber{
		ctx: ctx, bucket: b, v: newVerifier(b, prefix), r: &Report{Prefix: prefix, Unverified: -1},
		listed: map[string]int64{}, known: map[string]bool{},
	}
	defer s.v.store.Close()
	uploads, err := s.list() // before the manifest: what was begun after that is in it
	if err != nil {
		return s.r, err
	}
	m, state, err := loadManifest(ctx, b, prefix)
	switch {
	case err != nil:
		return s.r, err
	case state.found == noManifest && s.nothing(uploads):
		return s.r, ErrNothing
	case m == nil:
		s.withoutManifest(state)
	default:
		s.r.Manifest = m
		if err := s.pages(); err != nil {
			return s.r, err
		}
		if err := s.objects(progress); err != nil {
			return s.r, err
		}
	}
	s.uploads(uploads)
	if err := s.orphans(); err != nil {
		return s.r, err
	}
	return s.r, s.confirm()
}

// list reads the names of all objects and uploads of the log.
func (s *scrubber) list() ([]tiers.Upload, error) {
	prefix := s.r.Prefix
	for after := ""; ; {
		page, err := s.bucket.List(s.ctx, prefix, after, tiers.PageMax)
		if err != nil {
			return nil, err
		}
		for i := range page {
			s.listed[strings.TrimPrefix(page[i].Key, prefix)] = page[i].Bytes
			after = page[i].Key
		}
		if len(page) < tiers.PageMax {
			return s.bucket.Uploads(s.ctx, prefix)
		}
	}
}

// nothing reports whether none of the names are those of a log, though they may be of one further down.
func (s *scrubber) nothing(uploads []tiers.Upload) bool {
	for k := range s.listed {
		if _, ok := manifest.ParseKey(k); ok {
			return false
		}
	}
	return !slices.ContainsFunc(uploads, func(u tiers.Upload) bool {
		_, ok := manifest.ParseKey(strings.TrimPrefix(u.Key, s.r.Prefix))
		return ok
	})
}

func (s *scrubber) add(a Anomaly) { s.r.Anomalies = append(s.r.Anomalies, a) }

// unverified notes records that were not proven to be there.
func (s *scrubber) unverified(o segment.Offset, appended segment.Time) {
	if s.r.Unverified < 0 || o < s.r.Unverified {
		s.r.Unverified, s.r.Since = o, time.Unix(0, appended)
	}
}

// withoutManifest says what the objects alone tell.
func (s *scrubber) withoutManifest(found finding) {
	s.add(Anomaly{Name: Manifest, Key: manifest.ManifestKey, Expected: found.expected, Found: found.found, Damage: true})
	var all []manifest.Segment
	for k := range s.listed {
		if parsed, ok := manifest.ParseKey(k); ok && parsed.Kind == manifest.KeySegment {
			s.known[k] = true
			all = append(all, manifest.Segment{Base: parsed.Base, End: parsed.End, Epoch: parsed.Epoch, Attempt: parsed.Attempt})
		}
		if parsed, ok := manifest.ParseKey(k); ok && parsed.Kind == manifest.KeyPage {
			s.known[k] = true // of which nobody says whether it is needed
		}
	}
	chain := choose(all)
	for _, g := range chain.gaps {
		s.add(Anomaly{Name: Gap, First: g.first, End: g.end, Expected: "an object that holds them", Found: "none", Damage: true})
	}
	for i := range chain.others {
		o := &chain.others[i]
		s.add(Anomaly{Name: Overlap, Key: key(o), First: o.Base, End: o.End, Expected: "one object for each record", Found: "others hold some of these, too"})
	}
	if len(chain.chosen) > 0 {
		s.unverified(chain.chosen[0].Base, 0)
	}
}

// pages reads the pages of the manifest, and gathers what they and it list.
func (s *scrubber) pages() error {
	m := s.r.Manifest
	s.known[manifest.ManifestKey] = true
	for i := range m.Pages {
		p := &m.Pages[i]
		name := string(p.AppendKey(nil))
		s.known[name] = true
		text, err := readAll(s.ctx, s.bucket, s.r.Prefix+name, p.Bytes)
		a := Anomaly{Key: name, First: p.Base, End: p.End, Damage: p.End > m.Start}
		var t manifest.PageText
		switch {
		case errors.Is(err, tiers.ErrNotFound):
			a.Name, a.Expected, a.Found = Missing, "a page that the manifest lists", "none"
		case errors.Is(err, tiers.ErrCorrupt):
			a.Name, a.Expected, a.Found = Checksum, "bytes with the checksum that the bucket keeps", "others"
		case err != nil:
			return err
		default:
			if err = manifest.ParsePage(text, &t); err == nil {
				err = p.Verify(m.LogID, text, &t)
			}
			if err != nil {
				a.Name, a.Expected, a.Found = Checksum, "the page that the manifest names", err.Error()
			}
		}
		switch {
		case a.Name == "":
			s.all = append(s.all, t.Segments...)
		case a.Damage:
			s.add(a)
			s.unverified(max(p.Base, m.Start), p.AppendTime)
			for k := range s.listed { // of which nobody says now whether they are needed
				if parsed, ok := manifest.ParseKey(k); ok && parsed.Kind == manifest.KeySegment && parsed.Base < p.End && parsed.End > p.Base {
					s.known[k] = true
				}
			}
		}
	}
	s.all = append(s.all, m.Segments...)
	slices.SortStableFunc(s.all, func(a, b manifest.Segment) int { return cmp.Compare(a.Base, b.Base) })
	return nil
}

// objects reads what the manifest lists, and checks that nothing is between.
func (s *scrubber) objects(progress Progress) error {
	m, total := s.r.Manifest, int64(0)
	for i := range s.all {
		if s.all[i].State != manifest.Lost {
			s.known[key(&s.all[i])] = true
		}
		total += s.all[i].Bytes
	}
	next := max(m.Start, m.DeletedTo)
	for i := range s.all {
		e := &s.all[i]
		if !e.State.Covers() || e.End <= m.Start {
			continue
		}
		if e.Base > next {
			s.gap(next, e.Base, e.AppendTime)
		}
		if e.State == manifest.Finished && e.Base < next && next > m.Start {
			s.add(Anomaly{Name: Overlap, Key: key(e), First: e.Base, End: min(next, e.End), Expected: "one object for each record", Found: "two", Damage: true})
		}
		next = max(next, e.End)
		if e.State == manifest.Lost {
			continue
		}
		f, err := s.v.object(s.ctx, m.LogID, e)
		if err != nil {
			s.unverified(max(e.Base, m.Start), e.AppendTime)
			return fmt.Errorf("read %s: %w", key(e), err)
		}
		if f.name != "" {
			s.add(Anomaly{Name: f.name, Key: key(e), First: e.Base, End: e.End, Expected: f.expected, Found: f.found, Damage: true})
			s.unverified(max(e.Base, m.Start), e.AppendTime)
		} else {
			s.r.Objects++
			s.r.Bytes += e.Bytes
		}
		s.done += e.Bytes
		progress(s.done, total)
	}
	return nil
}

// gap notes records that no entry stands for, unless a page that could not be read does.
func (s *scrubber) gap(first, end segment.Offset, appended segment.Time) {
	for i := range s.r.Anomalies {
		if a := &s.r.Anomalies[i]; a.First <= first && end <= a.End {
			return
		}
	}
	s.add(Anomaly{Name: Gap, First: first, End: end, Expected: "an object that holds them", Found: "none", Damage: true})
	s.unverified(first, appended)
}

// uploads names uploads that nobody goes on with: that of a started entry may be under way.
func (s *scrubber) uploads(all []tiers.Upload) {
	going := map[string]bool{}
	for i := range s.all {
		if e := &s.all[i]; e.State == manifest.Started {
			going[key(e)] = true
		}
	}
	for _, u := range all {
		k := strings.TrimPrefix(u.Key, s.r.Prefix)
		if _, ok := manifest.ParseKey(k); !ok || going[k] || s.r.Manifest == nil {
			continue
		}
		s.add(Anomaly{Name: Upload, Key: k, Expected: "an upload that a started entry announces", Found: "none", upload: u.ID})
	}
}

// orphans names what the bucket holds and the manifest does not list.
func (s *scrubber) orphans() error {
	newest := uint64(0)
	if m := s.r.Manifest; m != nil && len(m.Pages) > 0 {
		newest = m.Pages[len(m.Pages)-1].Number
	}
	names := make([]string, 0, len(s.listed))
	for k := range s.listed {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		if s.known[k] || k == manifest.ManifestKey {
			continue
		}
		parsed, ok := manifest.ParseKey(k)
		a := Anomaly{Name: Orphan, Key: k, Expected: "an entry of the manifest", Found: "none"}
		switch {
		case !ok && nested(k): // of a log whose name begins with this one's
			continue
		case !ok:
			a.Name, a.Expected, a.Found = Unknown, "a key of a log", "another one"
		case parsed.Kind == manifest.KeyPage:
			// A page is written before the manifest names it: the newest may be about to be named.
			a.delete = parsed.Number < newest
		default:
			a.First, a.End = parsed.Base, parsed.End
			h, err := readHeader(s.ctx, s.bucket, s.r.Prefix+k)
			if err != nil {
				return err
			}
			if h != nil {
				a.Created, a.delete = time.Unix(0, h.Created), true
			}
		}
		s.add(a)
	}
	return nil
}

// nested reports whether a key below a log's prefix may be that of a log below it.
func nested(k string) bool {
	for i := strings.IndexByte(k, '/'); i >= 0; {
		if _, ok := manifest.ParseKey(k[i+1:]); ok {
			return true
		}
		n := strings.IndexByte(k[i+1:], '/')
		if n < 0 {
			return false
		}
		i += 1 + n
	}
	return false
}

// confirm looks at the manifest once more: retention may have deleted what was found missing.
func (s *scrubber) confirm() error {
	gone := func(a Anomaly) bool { return a.Name == Missing }
	if s.r.Manifest == nil || !slices.ContainsFunc(s.r.Anomalies, gone) {
		return nil
	}
	m, _, err := loadManifest(s.ctx, s.bucket, s.r.Prefix)
	if err != nil || m == nil || m.Sequence == s.r.Manifest.Sequence {
		return err
	}
	s.r.Anomalies = slices.DeleteFunc(s.r.Anomalies, func(a Anomaly) bool { return gone(a) && a.End <= m.Start })
	if s.r.Unverified >= 0 && s.r.Unverified < m.Start && !s.r.Damaged() {
		s.r.Unverified, s.r.Since = -1, time.Time{}
	}
	return nil
}

// Repair aborts the uploads and deletes the orphans that a report names, these only if they are older
// than an age. It returns what it did, by key, also with an error.
func (r *Report) Repair(ctx context.Context, b tiers.Bucket, age time.Duration) (done []string, err error) {
	if r.Manifest == nil {
		return nil, errors.New("without a manifest nobody knows what is needed: run: varve cold rebuild-manifest")
	}
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		switch {
		case a.upload != "":
			err = b.Abort(ctx, r.Prefix+a.Key, a.upload)
		case a.delete && (a.Created.IsZero() || time.Since(a.Created) >= age):
			err = b.Delete(ctx, r.Prefix+a.Key)
		default:
			continue
		}
		if err != nil {
			return done, err
		}
		done = append(done, a.Name+" "+a.Key)
	}
	return done, nil
}
