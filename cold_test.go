package varve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve/core/manifest"
	"varve/tiers"
	"varve/tiers/dirbucket"
)

const coldPrefix = "orders/0/"

// openCold opens a log in dir with a bucket in another directory.
func openCold(t *testing.T, dir, bucket string, o Options) (*Log, error) {
	t.Helper()
	b, err := dirbucket.Open(bucket, dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Cold, o.ColdPrefix, o.MinFreeBytes = b, coldPrefix, -1
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 16 << 10
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return Open(ctx, dir, o)
}

func coldLog(t *testing.T, dir, bucket string, o Options) *Log {
	t.Helper()
	l, err := openCold(t, dir, bucket, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// filled makes a log of n records, all of them in the bucket and none on disk, and closes it.
func filled(t *testing.T, n int64) (dir, bucket string) {
	t.Helper()
	dir, bucket = filepath.Join(t.TempDir(), "log"), t.TempDir()
	l := coldLog(t, dir, bucket, Options{Create: true})
	appendValues(t, l, 0, n)
	if err := l.Offload(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	return dir, bucket
}

// TestExport: what a log has is in the bucket before it is closed, and stays on disk.
func TestExport(t *testing.T) {
	ctx, dir, bucket := context.Background(), filepath.Join(t.TempDir(), "log"), t.TempDir()
	for end := int64(3); end < 12; end += 3 { // each in a segment that is far from full
		l := coldLog(t, dir, bucket, Options{Create: true})
		appendValues(t, l, end-3, end)
		if err := l.Export(ctx, end+1); !errors.Is(err, ErrOutOfRange) {
			t.Errorf("beyond the end: %v", err)
		}
		if err := l.Export(ctx, end); err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); s.Exported != end || s.HotStart != 0 {
			t.Errorf("%d of %d are in the bucket, the disk begins at %d", s.Exported, end, s.HotStart)
		}
		closeLog(t, l)
		if err := l.Export(ctx, end); !errors.Is(err, ErrClosed) {
			t.Errorf("after a close: %v", err)
		}
	}
}

func appendValues(t *testing.T, l *Log, from, to int64) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := l.Append(context.Background(), Record{Value: value(i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// editManifest puts what edit makes of the text of the manifest in its place.
func editManifest(t *testing.T, bucket string, edit func(text []byte) []byte) {
	t.Helper()
	ctx := context.Background()
	b, err := dirbucket.Open(bucket, dirbucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 1<<20)
	n, _, err := b.Get(ctx, coldPrefix+manifest.ManifestKey, 0, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, coldPrefix+manifest.ManifestKey, edit(text[:n]), tiers.Condition{}); err != nil {
		t.Fatal(err)
	}
}

// editEntries is editManifest for what the manifest says.
func editEntries(t *testing.T, bucket string, edit func(m *manifest.Manifest)) {
	t.Helper()
	editManifest(t, bucket, func(text []byte) []byte {
		var m manifest.Manifest
		if err := manifest.Parse(text, &m); err != nil {
			t.Fatal(err)
		}
		edit(&m)
		return manifest.Append(nil, &m)
	})
}

// refusal opens a log and wants a refusal that says so.
func refusal(t *testing.T, dir, bucket string, o Options, want string) {
	t.Helper()
	l, err := openCold(t, dir, bucket, o)
	if err == nil {
		closeLog(t, l)
	}
	if refused := (*RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want a refusal that says %q", err, want)
	}
}

// TestOpenWithoutItsColdTier: the first records are elsewhere, and nobody says where.
func TestOpenWithoutItsColdTier(t *testing.T) {
	dir, _ := filled(t, 200)
	ctx := context.Background()
	_, err := Open(ctx, dir, Options{})
	if err == nil || !strings.Contains(err.Error(), "configure cold.url") {
		t.Fatal(err)
	}
	l, err := Open(ctx, dir, Options{AcceptLoss: true, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if l.Start() != 200 || l.Committed() != 200 {
		t.Fatalf("start %d, committed %d", l.Start(), l.Committed())
	}
	closeLog(t, l)
}

// TestNoLogAnywhere: a directory and a bucket that were mistyped do not become a new log.
func TestNoLogAnywhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	refusal(t, dir, t.TempDir(), Options{}, "neither the directory nor the bucket holds a log")
}

// TestManifestsThatDoNotCount: damaged, of a newer version, of another log.
func TestManifestsThatDoNotCount(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"damaged", "rebuild-manifest"}, {"newer", "use a newer varve"}, {"foreign", "belongs to another log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, bucket := filled(t, 100)
			switch c.name {
			case "damaged":
				editManifest(t, bucket, func(text []byte) []byte {
					text[len(text)/2] ^= 1
					return text
				})
			case "newer":
				editManifest(t, bucket, func(text []byte) []byte {
					text = bytes.Replace(text, []byte(`"version":1`), []byte(`"version":2`), 1)
					text = text[:bytes.LastIndex(text, []byte(`"crc":"`))]
					return fmt.Appendf(text, "\"crc\":\"%08x\"}\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
				})
			case "foreign":
				editEntries(t, bucket, func(m *manifest.Manifest) { m.LogID[0] ^= 1 })
			}
			refusal(t, dir, bucket, Options{}, c.want)
		})
	}
}

// TestGapBetweenTiers: what no tier holds is refused by name, and given up only if the operator says so.
func TestGapBetweenTiers(t *testing.T) {
	dir, bucket := filled(t, 200)
	var last int64
	editEntries(t, bucket, func(m *manifest.Manifest) {
		last = m.Segments[len(m.Segments)-1].Base
		m.Segments = m.Segments[:len(m.Segments)-1]
	})
	refusal(t, dir, bucket, Options{}, fmt.Sprintf("records [%d, 200) are neither on disk nor in the cold tier", last))
	l := coldLog(t, dir, bucket, Options{AcceptLoss: true})
	if l.Start() != 200 {
		t.Fatalf("start %d", l.Start())
	}
	appendValues(t, l, 200, 201)
	readAll(t, l, 200, 201)
	closeLog(t, l)
}

// TestBucketIsLost: the bucket is there and holds nothing any more. That may be a mistake, so an open waits;
// accept_loss gives up what was in the bucket alone, and exports what is on disk anew.
func TestBucketIsLost(t *testing.T) {
	ctx := context.Background()
	for _, offloaded := range []int64{0, 100, 200} {
		dir, bucket := filepath.Join(t.TempDir(), "log"), t.TempDir()
		l := coldLog(t, dir, bucket, Options{Create: true})
		appendValues(t, l, 0, 200)
		if err := errors.Join(l.Export(ctx, 200), l.Offload(ctx, offloaded)); err != nil {
			t.Fatal(err)
		}
		kept := l.Stats().HotStart
		if offloaded == 0 { // inside a file
			kept = 50
			if err := l.Trim(ctx, kept); err != nil {
				t.Fatal(err)
			}
		}
		closeLog(t, l)
		bucket = t.TempDir()
		l = coldLog(t, dir, bucket, Options{Create: true})
		if s := l.Stats(); s.Phase != "recovering" || s.ColdError == nil || !strings.Contains(s.ColdError.Error(), "accept_loss begins a new one") {
			t.Fatalf("%+v", s)
		}
		if _, err := l.Append(ctx, Record{}); !errors.Is(err, ErrTierDown) {
			t.Fatal(err)
		}
		closeLog(t, l)
		l = coldLog(t, dir, bucket, Options{AcceptLoss: true})
		if l.Start() != kept || l.Committed() != 200 {
			t.Fatalf("records [%d, %d), want [%d, 200)", l.Start(), l.Committed(), kept)
		}
		appendValues(t, l, 200, 210)
		if err := l.Export(ctx, 210); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		l = coldLog(t, filepath.Join(t.TempDir(), "other"), bucket, Options{})
		readAll(t, l, kept, 210)
		closeLog(t, l)
	}
}

// TestCC5TwoOwners: who opens the log from its cold tier owns it; the one before finds out at its next
// swap, and can do nothing more.
func TestCC5TwoOwners(t *testing.T) {
	dir, bucket := filepath.Join(t.TempDir(), "log"), t.TempDir()
	ctx := context.Background()
	first := coldLog(t, dir, bucket, Options{Create: true})
	appendValues(t, first, 0, 100)
	if err := first.Offload(ctx, 100); err != nil {
		t.Fatal(err)
	}
	second := coldLog(t, filepath.Join(t.TempDir(), "other"), bucket, Options{})
	readAll(t, second, 0, 100)
	appendValues(t, second, 100, 110)
	appendValues(t, first, 100, 105) // nobody has told it yet
	if err := first.Offload(ctx, 105); !errors.Is(err, ErrPoisoned) || !errors.Is(first.Err(), ErrOwnerFenced) {
		t.Fatalf("error %v, cause %v", err, first.Err())
	}
	_ = first.Close(ctx)
	if err := second.Offload(ctx, 110); err != nil {
		t.Fatal(err)
	}
	closeLog(t, second)
	third := coldLog(t, dir, bucket, Options{}) // the first owner's directory: its last records are void
	readAll(t, third, 0, 110)
	closeLog(t, third)
}

// TestColdRetention: total limits move Start in the cold tier, and objects go.
func TestColdRetention(t *testing.T) {
	dir, bucket := filled(t, 500)
	l := coldLog(t, dir, bucket, Options{RetentionBytes: 20 << 10, RetentionCheckInterval: time.Millisecond})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.await(ctx, func() (bool, error) { return l.core.Start() > 300, l.ended() }); err != nil {
		t.Fatal(err, l.Start())
	}
	readAll(t, l, l.Start(), 500)
	objects := func() int {
		all, err := filepath.Glob(filepath.Join(bucket, coldPrefix, "segments", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for objects() > 4 {
		if ctx.Err() != nil {
			t.Fatalf("%d objects are left", objects())
		}
		time.Sleep(time.Millisecond)
	}
	closeLog(t, l)
}

// TestLostSpanIsExported: what a repair declared lost is recorded as such, and does not hold the
// export up.
func TestLostSpanIsExported(t *testing.T) {
	dir, bucket := filepath.Join(t.TempDir(), "log"), t.TempDir()
	ctx := context.Background()
	l, err := Open(ctx, dir, Options{SegmentBytes: 16 << 10, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 200)
	closeLog(t, l)
	files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	slices.Sort(files)
	b, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	clear(b[600:1200])
	if err := os.WriteFile(files[1], b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(ctx, dir, Options{MinFreeBytes: -1}); err != nil {
		t.Fatal(err)
	}
	l = coldLog(t, dir, bucket, Options{})
	if err := l.Offload(ctx, 200); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l = coldLog(t, dir, bucket, Options{})
	next, lost := int64(0), 0
	r := l.NewReader(Position{}, ReadOptions{})
	for next < 200 {
		b, err := r.Next(ctx)
		var damage *CorruptError
		if errors.As(err, &damage) {
			lost++
			next = damage.End
			r.Seek(Position{Offset: next})
			continue
		}
		if err != nil || b.Span.First != next {
			t.Fatal(b.Span, next, err)
		}
		next = b.Span.End
	}
	if lost != 1 {
		t.Fatalf("%d spans are lost", lost)
	}
	_ = r.Close()
	closeLog(t, l)
}

func value(i int64) []byte {
	return append(fmt.Appendf(nil, "record %d ", i), bytes.Repeat([]byte{'x'}, 100)...)
}

// TestColdTier moves a log through its life: exported, off the local disk, read across both tiers,
// rebuilt after the directory is gone, trimmed.
func TestColdTier(t *testing.T) {
	dir, bucket := filepath.Join(t.TempDir(), "log"), t.TempDir()
	l := coldLog(t, dir, bucket, Options{Create: true})
	ctx := context.Background()
	const n = 500
	appendValues(t, l, 0, n)
	if err := l.Offload(ctx, 300); err != nil {
		t.Fatal(err)
	}
	v := l.view.Load()
	if v.HotStart == 0 || v.HotStart > 300 {
		t.Fatalf("HotStart is %d", v.HotStart)
	}
	readAll(t, l, 0, n)
	if err := l.Offload(ctx, n); err != nil {
		t.Fatal(err)
	}
	readAll(t, l, 0, n)
	closeLog(t, l)
	files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(files) > 0 {
		t.Fatalf("files %v, error %v", files, err)
	}

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l = coldLog(t, dir, bucket, Options{})
	readAll(t, l, 0, n)
	appendValues(t, l, n, n+1)
	readAll(t, l, 0, n+1)
	if err := l.Trim(ctx, 100); err != nil {
		t.Fatal(err)
	}
	readAll(t, l, 100, n+1)
	closeLog(t, l)
}

func readAll(t *testing.T, l *Log, first, end int64) {
	t.Helper()
	next := first
	for rec, err := range l.Records(context.Background(), Position{Offset: first}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Offset != next || !bytes.Equal(rec.Value, value(next)) {
			t.Fatalf("offset %d, wanted %d: %q", rec.Offset, next, rec.Value)
		}
		next++
	}
	if next != end {
		t.Fatalf("read up to %d of %d", next, end)
	}
}

// flakyBucket does not answer the first reads of objects.
type flakyBucket struct {
	tiers.Bucket
	failures atomic.Int32
}

func (b *flakyBucket) Get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	if strings.Contains(key, "/segments/") && b.failures.Add(-1) >= 0 {
		return 0, tiers.Object{}, tiers.ErrThrottled
	}
	return b.Bucket.Get(ctx, key, pos, p)
}

// TestProducersOutliveTheDisk: a batch that is sent again after its segment and the disk are gone gets
// its old span, also where the bucket does not answer at once.
func TestProducersOutliveTheDisk(t *testing.T) {
	dir, bucket := filepath.Join(t.TempDir(), "log"), t.TempDir()
	ctx := context.Background()
	batch := EncodeRecords(nil, Record{Value: value(0)})
	batch.Producer = &Producer{ID: 7, Epoch: 0, Sequence: 0}
	send := func(l *Log) Span {
		t.Helper()
		p, err := l.AppendBatch(batch)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	l := coldLog(t, dir, bucket, Options{Create: true})
	first := send(l)
	if err := l.Offload(ctx, 1); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	b, err := dirbucket.Open(bucket, dirbucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	flaky := &flakyBucket{Bucket: b}
	flaky.failures.Store(2)
	l, err = Open(ctx, dir, Options{Cold: flaky, ColdPrefix: coldPrefix, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if again := send(l); again != first || l.Committed() != 1 {
		t.Fatalf("span %v, was %v; committed %d", again, first, l.Committed())
	}
	closeLog(t, l)
}

// TestD26NewLogInheritsNothing: a log that was deleted is not made anew under its name while objects of it are left in
// the bucket. Where they come back later, under keys that the new one would use, it has none of the old one's records.
func TestD26NewLogInheritsNothing(t *testing.T) {
	dir, bucket := filled(t, 500)
	old, err := filepath.Glob(bucket + "/" + coldPrefix + "segments/*")
	if err != nil || len(old) == 0 {
		t.Fatal(old, err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Remove(bucket+"/"+coldPrefix+manifest.ManifestKey)); err != nil {
		t.Fatal(err)
	}
	refusal(t, dir, bucket, Options{Create: true}, "objects of the log are")
	objects, aside := bucket+"/"+coldPrefix+"segments", t.TempDir()+"/segments"
	if err := os.Rename(objects, aside); err != nil {
		t.Fatal(err)
	}
	l := coldLog(t, dir, bucket, Options{Create: true})
	if err := errors.Join(os.RemoveAll(objects), os.Rename(aside, objects)); err != nil {
		t.Fatal(err)
	}
	if l.Start() != 0 || l.Committed() != 0 {
		t.Fatalf("[%d, %d) of a new log", l.Start(), l.Committed())
	}
	for i := range int64(500) { // other records, of the sizes of the old ones
		if _, err := l.Append(t.Context(), Record{Value: []byte(fmt.Sprintf("new %08d", i))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Offload(t.Context(), 500); err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for r, err := range l.Records(t.Context(), Position{}) {
		if err != nil || r.Offset != n || string(r.Value) != fmt.Sprintf("new %08d", n) {
			t.Fatalf("%d: %q, %v", n, r.Value, err)
		}
		n++
	}
	if n != 500 {
		t.Fatalf("%d records", n)
	}
	closeLog(t, l)
	// The first object met one of the old log under its key, gave that key up, and cleared it away.
	_, err = os.Stat(old[0])
	if _, again := os.Stat(strings.TrimSuffix(old[0], "1.seg") + "2.seg"); !errors.Is(err, os.ErrNotExist) || again != nil {
		t.Errorf("%v, %v", err, again)
	}
}

// TestColdTierIsAdded: a log that had no cold tier claims a manifest when it gets one, and from then on outlives its disk.
func TestColdTierIsAdded(t *testing.T) {
	db, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	o, dir := Options{Create: true, MinFreeBytes: -1, SegmentBytes: 8 << 10, NoPreallocate: true}, filepath.Join(t.TempDir(), "log")
	for n := range 2 {
		l, err := Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		appendValues(t, l, int64(100*n), int64(100*n+100))
		if n == 1 {
			if err := l.Export(t.Context(), 200); err != nil {
				t.Fatal(err)
			}
		}
		closeLog(t, l)
		o.Cold, o.ColdPrefix = db, coldPrefix
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o.Create = false
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog(t, l)
	readAll(t, l, 0, 200)
}
