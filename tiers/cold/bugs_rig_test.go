package cold_test

import (
	"context"
	"errors"
	"hash/crc32"
	"strings"

	"varve/core"
	"varve/core/manifest"
	"varve/core/segment"
	"varve/sim/fakebucket"
	"varve/tiers"
	"varve/tiers/cold"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errRefused = errors.New("the process has ended")

// witness is the bucket as a log sees it. It judges each change by what is published: no segment is put
// under a key that was used before, no object goes that the manifest lists and Start has not passed, and at no
// instant does the manifest list one that is not there, whole.
type witness struct {
	*fakebucket.Bucket
	r      *rig
	dying  int                                      // changes until the process ends; 0: it does not
	put    map[string]bool                          // keys of segments that were ever put
	before func(op fakebucket.Op, key string) error // an error: the call does not reach the bucket
	after  func(op fakebucket.Op, key string)       // of a change
}

func (w *witness) call(op fakebucket.Op, key string) error {
	if w.r.dead {
		return errRefused
	}
	if w.before != nil {
		return w.before(op, key)
	}
	return nil
}

// changed judges what is there after a change.
func (w *witness) changed(op fakebucket.Op, key string) {
	w.r.t.Helper()
	w.published(func(key string, size int64, crc uint32) {
		body, _, there := w.Find([]byte(key))
		if !there || int64(len(body)) != size || crc32.Checksum(body, castagnoli) != crc {
			w.r.t.Fatalf("the manifest lists %s, which is there: %v, with %d bytes of %d", key, there, len(body), size)
		}
	})
	if w.after != nil {
		w.after(op, key)
	}
	if w.dying > 0 {
		w.dying--
		w.r.dead = w.dying == 0
	}
}

// once wants a key that no object had before.
func (w *witness) once(key string) {
	w.r.t.Helper()
	if !strings.HasSuffix(key, ".seg") { // a page that is there is found by its condition
		return
	}
	if w.put[key] {
		w.r.t.Fatalf("%s is put again", key)
	}
	w.put[key] = true
}

// published gives what the manifest in the bucket, and the pages that it names, list from Start on.
func (w *witness) published(each func(key string, size int64, crc uint32)) (m manifest.Manifest) {
	w.r.t.Helper()
	text, _, there := w.Find([]byte("log/" + manifest.ManifestKey))
	if !there {
		return m
	}
	if err := manifest.Parse(text, &m); err != nil {
		w.r.t.Fatal(err)
	}
	list := func(all []manifest.Segment) {
		for i := range all {
			if s := &all[i]; s.State == manifest.Finished && s.End > m.Start {
				each("log/"+string(s.AppendKey(nil)), s.Bytes, s.CRC)
			}
		}
	}
	for i := range m.Pages {
		p := &m.Pages[i]
		if p.End <= m.Start {
			continue
		}
		key := "log/" + string(p.AppendKey(nil))
		each(key, p.Bytes, p.CRC)
		text, _, _ := w.Find([]byte(key))
		var page manifest.PageText
		if err := manifest.ParsePage(text, &page); err != nil {
			w.r.t.Fatal(err)
		}
		list(page.Segments)
	}
	list(m.Segments)
	return m
}

func (w *witness) Put(ctx context.Context, key string, b []byte, c tiers.Condition) (tiers.Object, error) {
	if err := w.call(fakebucket.OpPut, key); err != nil {
		return tiers.Object{}, err
	}
	w.once(key)
	o, err := w.Bucket.Put(ctx, key, b, c)
	w.changed(fakebucket.OpPut, key)
	return o, err
}

func (w *witness) Begin(ctx context.Context, key string) (string, error) {
	if err := w.call(fakebucket.OpBegin, key); err != nil {
		return "", err
	}
	w.once(key)
	id, err := w.Bucket.Begin(ctx, key)
	w.changed(fakebucket.OpBegin, key)
	return id, err
}

func (w *witness) PutPart(ctx context.Context, key, id string, n int, b []byte) (tiers.Part, error) {
	if err := w.call(fakebucket.OpPart, key); err != nil {
		return tiers.Part{}, err
	}
	p, err := w.Bucket.PutPart(ctx, key, id, n, b)
	w.changed(fakebucket.OpPart, key)
	return p, err
}

func (w *witness) Finish(ctx context.Context, key, id string, parts []tiers.Part, c tiers.Condition) (tiers.Object, error) {
	if err := w.call(fakebucket.OpFinish, key); err != nil {
		return tiers.Object{}, err
	}
	o, err := w.Bucket.Finish(ctx, key, id, parts, c)
	w.changed(fakebucket.OpFinish, key)
	return o, err
}

func (w *witness) Abort(ctx context.Context, key, id string) error {
	if err := w.call(fakebucket.OpAbort, key); err != nil {
		return err
	}
	err := w.Bucket.Abort(ctx, key, id)
	w.changed(fakebucket.OpAbort, key)
	return err
}

func (w *witness) Delete(ctx context.Context, key string) error {
	w.r.t.Helper()
	if err := w.call(fakebucket.OpDelete, key); err != nil {
		return err
	}
	w.published(func(live string, _ int64, _ uint32) {
		if live == key {
			w.r.t.Fatalf("%s is deleted, which the manifest lists", key)
		}
	})
	err := w.Bucket.Delete(ctx, key)
	w.changed(fakebucket.OpDelete, key)
	return err
}

func (w *witness) Get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	if err := w.call(fakebucket.OpGet, key); err != nil {
		return 0, tiers.Object{}, err
	}
	return w.Bucket.Get(ctx, key, pos, p)
}

// smallConfig is a log of two records a segment.
func smallConfig() core.Config {
	cfg := core.DefaultConfig()
	cfg.LogID, cfg.Nonce, cfg.Create, cfg.Cold = segment.LogID{1}, 7, true, true
	cfg.SegmentBytes, cfg.MinFreeBytes, cfg.Preallocate = 4096, 0, false
	cfg.RetentionCheckInterval = second
	return cfg
}

// partOptions make an upload of such a segment one in parts.
func partOptions() (cold.Options, fakebucket.Params) {
	o := cold.DefaultOptions()
	o.PartBytes, o.PartsAtOnce = 1000, 1
	return o, fakebucket.Params{PartBytesMin: 1}
}

// fill appends so many records.
func (r *rig) fill(n int) {
	r.t.Helper()
	for range n {
		if r.dead || !r.append() {
			return
		}
	}
}

func (r *rig) trim(to core.Offset) {
	r.t.Helper()
	if err := r.log.Trim(r.now, to); err != nil {
		r.t.Fatal(err)
	}
	r.pump()
}

// offload lets all that is sealed leave the disk.
func (r *rig) offload() {
	r.t.Helper()
	if err := r.log.Roll(r.now); err != nil {
		r.t.Fatal(err)
	}
	r.pass(second)
	if err := r.log.Offload(r.now, r.log.Committed()); err != nil {
		r.t.Fatal(err)
	}
	r.pass(second)
	if r.log.HotStart() != r.log.Committed() {
		r.t.Fatalf("the disk begins at %d of %d", r.log.HotStart(), r.log.Committed())
	}
}

// restart ends the process, if it has not ended, and opens the log again. What was acked is there.
func (r *rig) restart() {
	r.t.Helper()
	r.disk.FS(0).Kill()
	r.files.Reset(r.disk.FS(0))
	r.cold.Reset(&r.sees, "log/", r.files, r.options)
	r.dead, r.sees.dying = false, 0
	cfg := r.cfg
	cfg.Nonce++
	r.open(cfg)
	if n := uint64(r.log.Committed()); n < r.acked {
		r.t.Fatalf("%d records of %d are left", n, r.acked)
	}
	r.acked = uint64(r.log.Committed())
	r.next = r.acked
}

// wantTidy wants the bucket to hold what the manifest lists, all of it exported, and nothing else.
func (r *rig) wantTidy() {
	r.t.Helper()
	listed := map[string]bool{"log/" + manifest.ManifestKey: true}
	m := r.sees.published(func(key string, _ int64, _ uint32) { listed[key] = true })
	for i := range r.bucket.Len() {
		if key, _, there := r.bucket.At(i); there && !listed[key] && !strings.Contains(key, "/pages/") { // a page that nothing names is the scrub's
			r.t.Fatalf("%s is left and nothing lists it", key)
		}
	}
	for i := range m.Segments {
		if s := &m.Segments[i]; !s.State.Covers() {
			r.t.Fatalf("%+v is listed", s)
		}
	}
	if n := r.bucket.Open(); n > 0 {
		r.t.Fatalf("%d uploads are open", n)
	}
	if _, n := r.unexported(); n > 1 {
		r.t.Fatalf("%d segments are not exported", n)
	}
}

func (r *rig) unexported() (bytes int64, segments int) {
	s := r.log.Stats()
	return s.ColdLagBytes, s.ColdLagSegments
}

// segmentsPut counts the objects of segments that were put, over all lives.
func (w *witness) segmentsPut() int {
	return len(w.put)
}
