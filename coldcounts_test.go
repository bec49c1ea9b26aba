package varve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"varve/core"
	"varve/core/manifest"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/dirbucket"
)

// counting is a bucket that counts its calls, by what they do and to what: "put segments".
type counting struct {
	tiers.Bucket
	mu   sync.Mutex
	n    map[string]int
	got  map[string]int64 // bytes read
	fail map[int]error    // of these parts, once
	gate chan struct{}    // objects are put once it is closed; nil: at once
}

func (c *counting) count(op, key string, bytes int) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(key, coldPrefix), "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[op+" "+kind]++
	c.got[kind] += int64(bytes)
}

// take returns the counts since it was called last.
func (c *counting) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n, c.got = map[string]int{}, map[string]int64{}
	return n
}

func (c *counting) Put(ctx context.Context, key string, b []byte, cond tiers.Condition) (tiers.Object, error) {
	if c.gate != nil && strings.Contains(key, "segments/") {
		<-c.gate
	}
	c.count("put", key, 0)
	return c.Bucket.Put(ctx, key, b, cond)
}

func (c *counting) Begin(ctx context.Context, key string) (string, error) {
	c.count("begin", key, 0)
	return c.Bucket.Begin(ctx, key)
}

func (c *counting) PutPart(ctx context.Context, key, id string, n int, b []byte) (tiers.Part, error) {
	c.count("part", key, 0)
	c.mu.Lock()
	err := c.fail[n]
	delete(c.fail, n)
	c.mu.Unlock()
	if err != nil {
		return tiers.Part{}, err
	}
	return c.Bucket.PutPart(ctx, key, id, n, b)
}

func (c *counting) Finish(ctx context.Context, key, id string, parts []tiers.Part, cond tiers.Condition) (tiers.Object, error) {
	c.count("finish", key, 0)
	return c.Bucket.Finish(ctx, key, id, parts, cond)
}

func (c *counting) Abort(ctx context.Context, key, id string) error {
	c.count("abort", key, 0)
	return c.Bucket.Abort(ctx, key, id)
}

func (c *counting) Get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	n, o, err := c.Bucket.Get(ctx, key, pos, p)
	c.count("get", key, n)
	return n, o, err
}

func (c *counting) Head(ctx context.Context, key string) (tiers.Object, error) {
	c.count("head", key, 0)
	return c.Bucket.Head(ctx, key)
}

func (c *counting) Delete(ctx context.Context, key string) error {
	c.count("delete", key, 0)
	return c.Bucket.Delete(ctx, key)
}

func (c *counting) List(ctx context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	c.count("list", prefix, 0)
	return c.Bucket.List(ctx, prefix, after, limit)
}

func (c *counting) Uploads(ctx context.Context, prefix string) ([]tiers.Upload, error) {
	c.count("uploads", prefix, 0)
	return c.Bucket.Uploads(ctx, prefix)
}

func countCalls(t *testing.T) *counting {
	t.Helper()
	b, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return &counting{Bucket: b, n: map[string]int{}, got: map[string]int64{}}
}

// openOver opens a log over a bucket.
func openOver(t *testing.T, dir string, b tiers.Bucket, o Options) *Log {
	t.Helper()
	o.Cold, o.ColdPrefix, o.MinFreeBytes = b, coldPrefix, -1
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 16 << 10
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l, err := Open(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantCalls wants exactly these calls since the last look.
func wantCalls(t *testing.T, what string, c *counting, want map[string]int) {
	t.Helper()
	if got := c.take(); fmt.Sprint(got) != fmt.Sprint(want) { // maps are printed in order
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestCallsOfExport: what a log costs the bucket, call by call. A segment is one put; the manifest is
// swapped twice for a segment alone and once more than there are segments for many that wait. Nothing is
// listed but by a new log, and nothing that is exported is put again.
func TestCallsOfExport(t *testing.T) {
	dir, c := filepath.Join(t.TempDir(), "log"), countCalls(t)
	ctx := context.Background()
	c.gate = make(chan struct{})
	l := openOver(t, dir, c, Options{Create: true})
	wantCalls(t, "a new log", c, map[string]int{"get manifest.json": 1, "list segments": 1, "put manifest.json": 1})

	n := int64(0)
	for range 20 {
		appendValues(t, l, n, n+3)
		n += 3
		if err := l.Roll(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(c.gate)
	if err := l.Offload(ctx, n); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, "20 segments that wait", c, map[string]int{"put segments": 20, "put manifest.json": 21, "get segments": 20})

	for range 3 {
		appendValues(t, l, n, n+3)
		n += 3
		if err := l.Offload(ctx, n); err != nil {
			t.Fatal(err)
		}
		wantCalls(t, "a segment alone", c, map[string]int{"put segments": 1, "put manifest.json": 2, "get segments": 1})
	}
	closeLog(t, l)
	wantCalls(t, "a close", c, map[string]int{})

	l = openOver(t, dir, c, Options{})
	wantCalls(t, "an open with 23 objects off the disk", c, map[string]int{"get manifest.json": 1, "get segments": 23, "put manifest.json": 1})
	readAll(t, l, 0, n)
	wantCalls(t, "a read of 23 objects", c, map[string]int{"get segments": 23})
	appendValues(t, l, n, n+3)
	readAll(t, l, n, n+3)
	closeLog(t, l)
	wantCalls(t, "what is on disk", c, map[string]int{})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l = openOver(t, dir, c, Options{})
	wantCalls(t, "a rebuild", c, map[string]int{"get manifest.json": 1, "get segments": 23, "put manifest.json": 1})
	readAll(t, l, 0, n)
	closeLog(t, l)
}

// TestCallsOfParts: a segment that is longer than a part is sent in parts, several at once. One that
// fails ends the upload, which begins again under another key. A read in order asks for ever more at once.
func TestCallsOfParts(t *testing.T) {
	c := countCalls(t)
	ctx := context.Background()
	l := openOver(t, filepath.Join(t.TempDir(), "log"), c, Options{Create: true, SegmentBytes: 64 << 20, ColdPartBytes: 5 << 20, Fsync: None})
	const n, size = 88, 256 << 10
	for i := range byte(n) {
		if _, err := l.Append(ctx, Record{Value: bytes.Repeat([]byte{i}, size)}); err != nil {
			t.Fatal(err)
		}
	}
	c.take()
	c.fail = map[int]error{2: errors.New("the network is down")}
	if err := l.Offload(ctx, n); err != nil {
		t.Fatal(err)
	}
	got := c.take()
	if parts := got["part segments"]; parts < 7 || parts > 10 { // 2 to 5 before the failure shows, then 5
		t.Errorf("%d parts", parts)
	}
	delete(got, "part segments")
	want := map[string]int{"begin segments": 2, "abort segments": 1, "finish segments": 1, "delete segments": 1, "get segments": 2}
	for _, op := range []string{"put manifest.json"} {
		if got[op] < 4 || got[op] > 5 { // started, given up, started, finished; deleted, if there is time
			t.Errorf("%d times %s", got[op], op)
		}
		delete(got, op)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("22 MiB in parts of 5: %v, want %v", got, want)
	}
	r := l.NewReader(Position{}, ReadOptions{})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, peak := heap(), uint64(0)
	for i := range byte(n) {
		if i%8 == 0 {
			peak = max(peak, heap())
		}
		_, ok, err := r.Poll()
		if !ok || err != nil {
			t.Fatalf("record %d: %v, %v", i, ok, err)
		}
		rec, _, err := r.Record()
		if err != nil || !bytes.Equal(rec.Value, bytes.Repeat([]byte{i}, size)) {
			t.Fatalf("record %d is another: %v", i, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if peak > before+16<<20 {
		t.Errorf("a reader holds %d bytes, want at most 16 MiB", peak-before)
	}
	c.mu.Lock()
	read := c.got["segments"]
	c.mu.Unlock()
	if calls := c.take(); calls["get segments"] > 12 || read > n*size+1<<20 {
		t.Errorf("a read of 22 MiB takes %v and %d bytes", calls, read)
	}
	closeLog(t, l)
}

// grow adds segments to a manifest that are in no object, and moves the older ones to pages.
func grow(t *testing.T, b tiers.Bucket, m *manifest.Manifest, n int, at time.Time) {
	t.Helper()
	attempt, number := uint64(1_000_000), uint64(0)
	for i := range m.Segments {
		attempt = max(attempt, m.Segments[i].Attempt)
	}
	for i := range m.Pages {
		number = max(number, m.Pages[i].Number)
	}
	first := m.Exported()
	for i := range int64(n) {
		attempt++
		base := first + 1000*i
		when := at.Add(time.Duration(i) * time.Second).UnixNano()
		m.Segments = append(m.Segments, manifest.Segment{
			Base: base, End: base + 1000, Epoch: m.Epoch, State: manifest.Finished, Attempt: attempt,
			ID: segment.MakeID(m.Epoch, uint32(i)+1000), Bytes: 256 << 20, FooterBytes: 1 << 20, CRC: uint32(i) * 2654435761,
			MinTime: when, MaxTime: when + 1e9, AppendTime: when,
		})
		var page manifest.PageText
		if text, ok := manifest.Split(m, manifest.SegmentsMax, number+1, &page, nil); ok {
			number++
			if _, err := b.Put(t.Context(), coldPrefix+string(m.Pages[len(m.Pages)-1].AppendKey(nil)), text, tiers.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.Sequence++
	text := manifest.Append(nil, m)
	if _, err := b.Put(t.Context(), coldPrefix+manifest.ManifestKey, text, tiers.Condition{}); err != nil {
		t.Fatal(err)
	}
}

// theManifest reads the manifest and its pages.
func theManifest(t *testing.T, b tiers.Bucket) (m manifest.Manifest, size int) {
	t.Helper()
	text := make([]byte, 4<<20)
	n, _, err := b.Get(t.Context(), coldPrefix+manifest.ManifestKey, 0, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Parse(text[:n], &m); err != nil {
		t.Fatal(err)
	}
	return m, n
}

// TestCallsOfTenThousandSegments: a log of 10,000 segments in the bucket. An open reads the manifest,
// its pages and the footers of the newest objects once, a look-up by offset or by time reads one footer and one piece of one object.
func TestCallsOfTenThousandSegments(t *testing.T) {
	const before, after, real = 5000, 4990, 10
	c := countCalls(t)
	ctx := context.Background()
	work := t.TempDir()
	closeLog(t, openOver(t, filepath.Join(work, "0"), c, Options{Create: true}))
	m, _ := theManifest(t, c)
	began := time.Unix(1_600_000_000, 0)
	grow(t, c, &m, before, began)

	l := openOver(t, filepath.Join(work, "1"), c, Options{SegmentBytes: 1 << 20})
	first := l.Committed()
	if first != 1000*before {
		t.Fatalf("the log begins at %d", first)
	}
	var times []time.Time
	for i := range int64(real) {
		for j := range int64(200) {
			times = append(times, time.Unix(1_700_000_000+200*i+j, 0))
			if _, err := l.Append(ctx, Record{Value: make([]byte, 1000), Time: times[len(times)-1]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Offload(ctx, l.Committed()); err != nil {
			t.Fatal(err)
		}
	}
	end := l.Committed()
	closeLog(t, l)
	m, _ = theManifest(t, c)
	grow(t, c, &m, after, time.Unix(1_800_000_000, 0))
	m, size := theManifest(t, c)
	c.take()

	l = openOver(t, filepath.Join(work, "2"), c, Options{})
	wantCalls(t, "open", c, map[string]int{"get manifest.json": 1, "get pages": len(m.Pages), "get segments": core.DefaultConfig().ColdScanObjects, "put manifest.json": 1})
	if n := len(l.view.Load().Extents); n != before+real+after {
		t.Fatalf("%d extents", n)
	}
	for i := int64(37); first+i < end; i += 97 {
		r := l.NewReader(Position{Offset: first + i}, ReadOptions{})
		b, ok, err := r.Poll()
		if err != nil || !ok || b.Span.First != first+i || !b.MaxTime.Equal(times[i]) {
			t.Fatalf("offset %d: %+v, %v, %v", first+i, b, ok, err)
		}
		wantCalls(t, fmt.Sprintf("a read from offset %d", first+i), c, map[string]int{"get segments": 2})
		_ = r.Close()
		p, err := l.OffsetAt(ctx, times[i])
		if err != nil || p.Offset != first+i {
			t.Fatalf("time of offset %d: %+v, %v", first+i, p, err)
		}
		wantCalls(t, fmt.Sprintf("a look-up of the time of offset %d", first+i), c, map[string]int{"get segments": 2})
	}
	closeLog(t, l)
	largest := int64(0)
	for i := range m.Pages {
		largest = max(largest, m.Pages[i].Bytes)
	}
	t.Logf("%d segments: a manifest of %d bytes that lists %d, %d pages of at most %d bytes", before+real+after, size, len(m.Segments), len(m.Pages), largest)
	if size > 512<<10 || largest > 256<<10 || len(m.Segments) > manifest.SegmentsMax {
		t.Error("that is more than 512 KiB for a manifest and 256 KiB for a page")
	}
}
