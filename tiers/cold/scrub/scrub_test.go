package scrub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"varve"
	"varve/core/manifest"
	"varve/tiers"
	"varve/tiers/cold/scrub"
	"varve/tiers/dirbucket"
)

const prefix = "orders/0/"

// world is a log whose records are all in a bucket.
type world struct {
	t      *testing.T
	bucket *dirbucket.Bucket
	dir    string   // of the bucket
	names  []string // of the objects, in order
}

const records = 300

func filled(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	b, err := dirbucket.Open(dir, dirbucket.Options{Create: true})
	no(t, err)
	t.Cleanup(func() { _ = b.Close() })
	w := &world{t: t, bucket: b, dir: dir}
	l := w.open(t.TempDir(), true)
	for i := range records {
		_, err := l.Append(t.Context(), varve.Record{Value: fmt.Appendf(nil, "record %d %s", i, strings.Repeat("x", 100))})
		no(t, err)
	}
	no(t, l.Offload(t.Context(), records))
	no(t, l.Close(t.Context()))
	all, err := b.List(t.Context(), prefix+"segments/", "", 1000)
	no(t, err)
	for i := range all {
		w.names = append(w.names, strings.TrimPrefix(all[i].Key, prefix))
	}
	if len(w.names) < 4 {
		t.Fatal(w.names)
	}
	return w
}

func (w *world) open(dir string, create bool) *varve.Log {
	w.t.Helper()
	l, err := varve.Open(w.t.Context(), dir, varve.Options{
		Cold: w.bucket, ColdPrefix: prefix, Create: create, MinFreeBytes: -1, SegmentBytes: 16 << 10,
	})
	no(w.t, err)
	return l
}

func no(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) get(k string) []byte {
	w.t.Helper()
	buf := make([]byte, 1<<20)
	n, _, err := w.bucket.Get(w.t.Context(), prefix+k, 0, buf)
	no(w.t, err)
	return buf[:n]
}

func (w *world) put(k string, b []byte) {
	w.t.Helper()
	_, err := w.bucket.Put(w.t.Context(), prefix+k, b, tiers.Condition{})
	no(w.t, err)
}

func (w *world) remove(k string) {
	w.t.Helper()
	no(w.t, w.bucket.Delete(w.t.Context(), prefix+k))
}

func (w *world) manifest() *manifest.Manifest {
	w.t.Helper()
	m := new(manifest.Manifest)
	no(w.t, manifest.Parse(w.get(manifest.ManifestKey), m))
	return m
}

// edit changes the manifest.
func (w *world) edit(change func(m *manifest.Manifest)) {
	w.t.Helper()
	m := w.manifest()
	change(m)
	w.put(manifest.ManifestKey, manifest.Append(nil, m))
}

func (w *world) scrub() *scrub.Report {
	w.t.Helper()
	r, err := scrub.Run(w.t.Context(), w.bucket, prefix, func(int64, int64) {})
	no(w.t, err)
	return r
}

// readAll opens the log in an empty directory and reads it.
func (w *world) readAll() (n int) {
	w.t.Helper()
	l := w.open(w.t.TempDir(), false)
	defer func() { no(w.t, l.Close(context.Background())) }()
	for r, err := range l.Records(w.t.Context(), varve.Position{Offset: l.Start()}) {
		no(w.t, err)
		if !bytes.HasPrefix(r.Value, fmt.Appendf(nil, "record %d ", r.Offset)) {
			w.t.Fatalf("offset %d: %q", r.Offset, r.Value)
		}
		n++
	}
	return n
}

// another returns the name that an object would have of another attempt.
func another(name string, attempt int) string {
	return fmt.Sprintf("%s-%d.seg", name[:strings.LastIndexByte(name, '-')], attempt)
}

func TestScrubOfAGoodLog(t *testing.T) {
	w := filled(t)
	r := w.scrub()
	if len(r.Anomalies) != 0 || r.Damaged() || r.Objects != len(w.names) || r.Unverified != -1 {
		t.Errorf("%+v", r)
	}
	if all, err := scrub.Logs(t.Context(), w.bucket); err != nil || len(all) != 1 || all[0] != prefix {
		t.Errorf("%v, %v", all, err)
	}
}

// TestAnomalies: each has its name and its place.
func TestAnomalies(t *testing.T) {
	cut := func(b []byte) []byte { return b[:len(b)-512] }
	for _, c := range []struct {
		what   string
		spoil  func(w *world)
		name   string
		damage bool
		text   string
	}{
		{"an object gone", func(w *world) { w.remove(w.names[1]) }, scrub.Missing, true, "expected an object that the manifest lists, found none"},
		{"a changed payload", func(w *world) {
			b := w.get(w.names[1])
			b[700] ^= 1
			w.put(w.names[1], b)
		}, scrub.Checksum, true, "expected batches that verify over ["},
		{"a changed header", func(w *world) {
			b := w.get(w.names[1])
			b[20] ^= 1
			w.put(w.names[1], b)
		}, scrub.Checksum, true, "expected a header of this log and this object, found one that does not verify"},
		{"a changed index", func(w *world) {
			b := w.get(w.names[1])
			b[len(b)-int(w.manifest().Segments[1].FooterBytes)+3] ^= 1
			w.put(w.names[1], b)
		}, scrub.Checksum, true, "expected CRC32C "},
		{"a short object", func(w *world) { w.put(w.names[1], cut(w.get(w.names[1]))) }, scrub.Checksum, true, " bytes, found "},
		{"another object", func(w *world) { w.put(w.names[1], w.get(w.names[2])) }, scrub.Checksum, true, "expected"},
		{"a bucket that finds rot itself", func(w *world) {
			name := w.dir + "/" + prefix + w.names[1]
			b, err := os.ReadFile(name)
			no(w.t, err)
			b[len(b)-1] ^= 1
			no(w.t, os.WriteFile(name, b, 0o640))
		}, scrub.Checksum, true, "expected"},
		{"a wrong checksum in the manifest", func(w *world) { w.edit(func(m *manifest.Manifest) { m.Segments[1].CRC++ }) }, scrub.Checksum, true, "as the manifest says"},
		{"a wrong time in the manifest", func(w *world) { w.edit(func(m *manifest.Manifest) { m.Segments[1].MaxTime++ }) }, scrub.Checksum, true, "max_time"},
		{"a wrong append time", func(w *world) { w.edit(func(m *manifest.Manifest) { m.Segments[1].AppendTime++ }) }, scrub.Checksum, true, "append_time"},
		{"an object that nobody lists", func(w *world) { w.put(another(w.names[1], 77), w.get(w.names[1])) }, scrub.Orphan, false, "an entry of the manifest"},
		{"a page that nobody lists", func(w *world) { w.put("pages/00000000000000000000-3.json", []byte("x")) }, scrub.Orphan, false, "an entry of the manifest"},
		{"a stranger", func(w *world) { w.put("notes.txt", []byte("x")) }, scrub.Unknown, false, "a key of a log"},
		{"an upload that nobody goes on with", func(w *world) {
			_, err := w.bucket.Begin(w.t.Context(), prefix+another(w.names[1], 78))
			no(w.t, err)
		}, scrub.Upload, false, "a started entry"},
		{"no manifest", func(w *world) { w.remove(manifest.ManifestKey) }, scrub.Manifest, true, "found none"},
		{"a damaged manifest", func(w *world) {
			b := w.get(manifest.ManifestKey)
			b[len(b)/2] ^= 1
			w.put(manifest.ManifestKey, b)
		}, scrub.Manifest, true, "the checksum of the bytes before it"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := filled(t)
			c.spoil(w)
			r := w.scrub()
			if len(r.Anomalies) != 1 || r.Damaged() != c.damage {
				t.Fatalf("damaged %v: %+v", r.Damaged(), r.Anomalies)
			}
			if a := r.Anomalies[0]; a.Name != c.name || a.Damage != c.damage || !strings.Contains(a.String(), c.text) {
				t.Errorf("%s", a.String())
			}
			if (r.Unverified >= 0) != c.damage {
				t.Errorf("unverified from %d on", r.Unverified)
			}
		})
	}
}

// TestScrubWithoutManifest: what the names of the objects alone tell.
func TestScrubWithoutManifest(t *testing.T) {
	w := filled(t)
	w.put(another(w.names[2], 90), w.get(w.names[2]))
	w.remove(w.names[1])
	w.remove(manifest.ManifestKey)
	names := map[string]int{}
	r := w.scrub()
	for _, a := range r.Anomalies {
		names[a.Name]++
	}
	if names[scrub.Manifest] != 1 || names[scrub.Gap] != 1 || names[scrub.Overlap] != 1 || len(r.Anomalies) != 3 {
		t.Errorf("%+v", r.Anomalies)
	}
	if _, err := r.Repair(t.Context(), w.bucket, 0); err == nil {
		t.Error("repaired without a manifest")
	}
}

// TestRepair takes away what nobody needs, of the right age, and nothing else.
func TestRepair(t *testing.T) {
	w := filled(t)
	orphan := another(w.names[1], 77)
	w.put(orphan, w.get(w.names[1]))
	w.put("notes.txt", []byte("x"))
	w.put("pages/00000000000000000000-3.json", []byte("x"))
	w.put("deeper/"+w.names[1], []byte("x")) // of another log
	broken := another(w.names[1], 79)
	w.put(broken, []byte("neither header nor age"))
	_, err := w.bucket.Begin(t.Context(), prefix+another(w.names[1], 78))
	no(t, err)
	r := w.scrub()
	done, err := r.Repair(t.Context(), w.bucket, time.Hour)
	if err != nil || len(done) != 1 || !strings.HasPrefix(done[0], scrub.Upload) {
		t.Fatalf("%v, %v", done, err)
	}
	done, err = w.scrub().Repair(t.Context(), w.bucket, 0)
	if err != nil || len(done) != 1 || done[0] != scrub.Orphan+" "+orphan {
		t.Fatalf("%v, %v", done, err)
	}
	if r := w.scrub(); len(r.Anomalies) != 3 || r.Damaged() {
		t.Errorf("%+v", r.Anomalies)
	}
	if n := w.readAll(); n != records {
		t.Errorf("%d records", n)
	}
}

// TestStartedIsNoOrphan: what may be under way is left alone.
func TestStartedIsNoOrphan(t *testing.T) {
	w := filled(t)
	started := manifest.Segment{Base: records, End: records + 5, Epoch: 1, State: manifest.Started, Attempt: 88, ID: 1<<32 | 99}
	w.edit(func(m *manifest.Manifest) { m.Segments = append(m.Segments, started) })
	k := string(started.AppendKey(nil))
	_, err := w.bucket.Begin(t.Context(), prefix+k)
	no(t, err)
	if r := w.scrub(); len(r.Anomalies) != 0 {
		t.Errorf("%+v", r.Anomalies)
	}
	w.put(k, []byte("half"))
	if r := w.scrub(); len(r.Anomalies) != 0 {
		t.Errorf("%+v", r.Anomalies)
	}
}

// TestRebuild: the manifest is made of the objects, and the log opens with it in an empty directory.
func TestRebuild(t *testing.T) {
	rebuild := func(w *world, loss bool) (*scrub.Rebuilt, error) {
		return scrub.Rebuild(w.t.Context(), w.bucket, prefix, loss, func(int64, int64) {})
	}
	for name, spoil := range map[string]func(w *world){
		"gone":    func(w *world) { w.remove(manifest.ManifestKey) },
		"damaged": func(w *world) { w.put(manifest.ManifestKey, []byte("{}")) },
		"found damaged by the bucket": func(w *world) {
			no(w.t, os.WriteFile(w.dir+"/"+prefix+manifest.ManifestKey, []byte("rot"), 0o640))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := filled(t)
			before := w.manifest()
			spoil(w)
			w.put(another(w.names[1], 77), w.get(w.names[1])) // twice
			w.put(another(w.names[2], 78), []byte("half"))
			r, err := rebuild(w, false)
			no(t, err)
			if r.Objects != len(w.names) || len(r.Unused) != 2 || len(r.Gaps) != 0 {
				t.Fatalf("%+v", r)
			}
			no(t, r.Write(t.Context(), w.bucket, prefix))
			after := w.manifest()
			for i := range after.Segments {
				if after.Segments[i] != before.Segments[i] {
					t.Errorf("%+v, was %+v", after.Segments[i], before.Segments[i])
				}
			}
			if r := w.scrub(); r.Damaged() {
				t.Errorf("%+v", r.Anomalies)
			}
			if n := w.readAll(); n != records {
				t.Errorf("%d records", n)
			}
			if _, err := rebuild(w, false); !errors.Is(err, scrub.ErrManifestThere) {
				t.Error(err)
			}
		})
	}
	w := filled(t)
	w.remove(manifest.ManifestKey)
	w.remove(w.names[1])
	if r, err := rebuild(w, false); err == nil || !strings.Contains(err.Error(), "are in no object") || len(r.Gaps) != 1 {
		t.Fatal(r, err)
	}
	r, err := rebuild(w, true)
	no(t, err)
	w.put(manifest.ManifestKey, []byte("somebody was faster"))
	if err := r.Write(t.Context(), w.bucket, prefix); !errors.Is(err, tiers.ErrPrecondition) {
		t.Fatal(err)
	}
	w.remove(manifest.ManifestKey)
	no(t, r.Write(t.Context(), w.bucket, prefix))
	if r := w.scrub(); r.Damaged() {
		t.Errorf("%+v", r.Anomalies)
	}
	for _, k := range w.names {
		w.remove(k)
	}
	w.remove(manifest.ManifestKey)
	w.put(w.names[0], []byte("none of ours"))
	if _, err := rebuild(w, true); err == nil || !strings.Contains(err.Error(), "no object below the prefix verifies") {
		t.Error(err)
	}
}

// TestNothingThere: where nothing of a log is, also not in front of the name of another one, nothing is
// damaged. What is left of one is damage.
func TestNothingThere(t *testing.T) {
	w := filled(t)
	look := func(prefix string) (*scrub.Report, error) {
		if _, err := scrub.Rebuild(t.Context(), w.bucket, prefix, false, func(_, _ int64) {}); !errors.Is(err, scrub.ErrNothing) && prefix != "orders/0/" {
			t.Errorf("rebuild %s: %v", prefix, err)
		}
		return scrub.Run(t.Context(), w.bucket, prefix, func(_, _ int64) {})
	}
	for _, p := range []string{"orders/", "orders/1/", "nothing/"} {
		if r, err := look(p); !errors.Is(err, scrub.ErrNothing) || r.Damaged() {
			t.Errorf("%s: %+v, %v", p, r, err)
		}
	}
	w.remove(manifest.ManifestKey)
	for _, k := range w.names[1:] {
		w.remove(k)
	}
	if r, err := look(prefix); err != nil || !r.Damaged() {
		t.Errorf("an object is left: %+v, %v", r, err)
	}
	w.remove(w.names[0])
	if _, err := w.bucket.Begin(t.Context(), prefix+w.names[0]); err != nil {
		t.Fatal(err)
	}
	if r, err := look(prefix); err != nil || !r.Damaged() {
		t.Errorf("an upload is left: %+v, %v", r, err)
	}
}

// TestNewerManifest: nothing is said of what a newer program wrote, and nothing is written over it.
func TestNewerManifest(t *testing.T) {
	w := filled(t)
	text := bytes.Replace(w.get(manifest.ManifestKey), []byte(`"version":1`), []byte(`"version":2`), 1)
	text = text[:bytes.LastIndex(text, []byte(`"crc":"`))]
	w.put(manifest.ManifestKey, fmt.Appendf(text, "\"crc\":\"%08x\"}\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))))
	if _, err := scrub.Run(t.Context(), w.bucket, prefix, func(int64, int64) {}); !errors.Is(err, manifest.ErrNewer) {
		t.Error(err)
	}
	if _, err := scrub.Rebuild(t.Context(), w.bucket, prefix, true, func(int64, int64) {}); !errors.Is(err, manifest.ErrNewer) {
		t.Error(err)
	}
}
