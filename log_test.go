package varve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"varve"
	"varve/core/segment"
	"varve/tiers/disk"
	"varve/tiers/tiertest"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(childEnv); arg != "" {
		fmt.Fprintln(os.Stderr, "kill suite, child:", killChild(arg))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string, o varve.Options) *varve.Log {
	t.Helper()
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = -1
	}
	l, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func value(i int64) []byte { return fmt.Appendf(nil, "value %d", i) }

// readAll returns how many records there are from an offset on, and checks each.
func readAll(t *testing.T, l *varve.Log, from int64) (n int64) {
	t.Helper()
	for r, err := range l.Records(t.Context(), varve.Position{Offset: from}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Offset != from+n || string(r.Value) != string(value(r.Offset)) {
			t.Fatalf("offset %d: %q at %d", from+n, r.Value, r.Offset)
		}
		n++
	}
	return n
}

func TestAppendReadReopen(t *testing.T) {
	dir := t.TempDir() + "/a/log"
	const lives, each = 3, 50
	for life := range int64(lives) {
		l := open(t, dir, varve.Options{SegmentBytes: 4096})
		if got := readAll(t, l, 0); got != life*each {
			t.Fatalf("life %d found %d records", life, got)
		}
		for i := range int64(each) {
			s, err := l.Append(t.Context(), varve.Record{Value: value(life*each + i)})
			if err != nil || s.First != life*each+i || s.End != s.First+1 {
				t.Fatalf("append: %v %v", s, err)
			}
		}
		if got := readAll(t, l, 7); got != (life+1)*each-7 {
			t.Fatalf("life %d reads %d records", life, got)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatalf("second close: %v", err)
		}
	}
}

func wantAbsent(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is there: %v", name, err)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestOpenInUse(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{})
	before := names(t, dir)
	if _, err := varve.Open(t.Context(), dir, varve.Options{}); !errors.Is(err, varve.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second open: %v", err)
	}
	if after := names(t, dir); after != before {
		t.Fatalf("directory changed from %s to %s", before, after)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	open(t, dir, varve.Options{})
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := varve.Open(t.Context(), dir+"/new", varve.Options{SegmentBytes: 1}); err == nil ||
		!strings.Contains(err.Error(), "segment_bytes") {
		t.Fatalf("bad configuration: %v", err)
	}
	wantAbsent(t, dir+"/new")

	foreign := dir + "/foreign"
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign+"/notes.txt", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	var refused *varve.RefusedError
	if _, err := varve.Open(t.Context(), foreign, varve.Options{}); !errors.As(err, &refused) {
		t.Fatalf("foreign directory: %v", err)
	}
	if got := names(t, foreign); got != "notes.txt" {
		t.Fatalf("foreign directory holds %s", got)
	}

	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.Open(t.Context(), file, varve.Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("a file: %v", err)
	}
}

func TestAppendRefusals(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{MaxBatchBytes: 100})
	if _, err := l.Append(t.Context()); !errors.Is(err, varve.ErrEmpty) {
		t.Fatalf("no records: %v", err)
	}
	if _, err := l.Append(t.Context(), varve.Record{Value: make([]byte, 101)}); !errors.Is(err, varve.ErrTooLarge) {
		t.Fatalf("too large: %v", err)
	}
	mustAppend(t, l, 0)
}

func TestRecordsComeBackAsGiven(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{})
	at := time.Unix(1234567890, 987654321)
	in := []varve.Record{
		{},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("k"), Value: []byte("v"), Time: at},
		{Value: []byte("with headers"), Time: at.Add(-time.Hour), Headers: []varve.Header{
			{Key: []byte("a"), Value: nil}, {Key: []byte("b"), Value: []byte{}}, {Key: []byte("b"), Value: []byte("c")},
		}},
	}
	before := time.Now()
	if s, err := l.Append(t.Context(), in...); err != nil || s != (varve.Span{First: 0, End: 4}) {
		t.Fatal(s, err)
	}
	var out []varve.Record
	for r, err := range l.Records(t.Context(), varve.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Clone())
	}
	for i := range in {
		if in[i].Time.IsZero() {
			if d := out[i].Time.Sub(before); d < 0 || d > time.Minute {
				t.Fatalf("record %d without a time got %v", i, out[i].Time)
			}
			in[i].Time = out[i].Time
		}
		in[i].Offset, in[i].Epoch = int64(i), 1
		if !out[i].Time.Equal(in[i].Time) {
			t.Fatalf("record %d: time %v, want %v", i, out[i].Time, in[i].Time)
		}
		out[i].Time = in[i].Time
		if !reflect.DeepEqual(in[i], out[i]) {
			t.Fatalf("record %d: %#v, want %#v", i, out[i], in[i])
		}
	}
}

func TestTrimRollOffsetAt(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{SegmentBytes: 4096})
	base := time.Unix(1000, 0)
	for i := range int64(200) {
		if _, err := l.Append(t.Context(), varve.Record{Value: value(i), Time: base.Add(time.Duration(i) * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int64{0, 1, 57, 120, 199} {
		for _, d := range []time.Duration{0, -time.Second / 2} {
			if p, err := l.OffsetAt(t.Context(), base.Add(time.Duration(i)*time.Second+d)); err != nil || p.Offset != i {
				t.Fatalf("offset at %d s %v: %v %v", i, d, p, err)
			}
		}
	}
	if p, err := l.OffsetAt(t.Context(), base.Add(time.Hour)); err != nil || p != (varve.Position{Offset: 200, Epoch: 1}) {
		t.Fatalf("offset at the end: %v %v", p, err)
	}
	files := len(strings.Fields(names(t, dir)))
	if err := l.Trim(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if l.Start() != 100 {
		t.Fatalf("start %d", l.Start())
	}
	if err := l.Trim(t.Context(), 1000); !errors.Is(err, varve.ErrOutOfRange) {
		t.Fatalf("trim beyond the end: %v", err)
	}
	var trimmed *varve.TrimmedError
	for _, err := range l.Records(t.Context(), varve.Position{Offset: 99}) {
		if !errors.As(err, &trimmed) || trimmed.Start != 100 || trimmed.Requested != 99 {
			t.Fatalf("read below start: %v", err)
		}
	}
	if n := readAll(t, l, 100); n != 100 {
		t.Fatalf("%d records", n)
	}
	if err := l.Roll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Roll(t.Context()); err != nil {
		t.Fatalf("roll of nothing: %v", err)
	}
	mustAppend(t, l, 200)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := len(strings.Fields(names(t, dir))); after >= files {
		t.Fatalf("%d files before trim, %d after", files, after)
	}
	l = open(t, dir, varve.Options{})
	if n := readAll(t, l, 100); n != 101 || l.Start() != 100 {
		t.Fatalf("%d records from start %d", n, l.Start())
	}
}

func TestProducerDuplicates(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{})
	b := varve.EncodeRecords(nil, rec(0), rec(1))
	b.Producer = &varve.Producer{ID: 7, Epoch: 0, Sequence: 0}
	for range 2 {
		p, err := l.AppendBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := p.Wait(t.Context()); err != nil || s != (varve.Span{First: 0, End: 2}) {
			t.Fatalf("%v %v", s, err)
		}
	}
	b.Producer.Sequence = 9
	if _, err := l.AppendBatch(b); !errors.Is(err, varve.ErrSequence) {
		t.Fatalf("gap: %v", err)
	}
	if n := readAll(t, l, 0); n != 2 {
		t.Fatalf("%d records", n)
	}
}

func TestPositionOfAnotherHistoryDiverges(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{})
	mustAppend(t, l, 0)
	for _, p := range []varve.Position{{Offset: 1, Epoch: 9}, {Offset: 5, Epoch: 1 << 40}} {
		var diverged *varve.DivergedError
		for _, err := range l.Records(t.Context(), p) {
			if !errors.As(err, &diverged) {
				t.Fatalf("%v: %v", p, err)
			}
		}
		if diverged == nil {
			t.Fatalf("%v: no error", p)
		}
	}
}

func TestInspectBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{})
	for i := range int64(10) {
		mustAppend(t, l, i)
	}
	before := names(t, dir)
	x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !x.Running || x.End < 9 || x.End > 10 {
		t.Fatalf("running %t, end %d", x.Running, x.End)
	}
	n := int64(0)
	for r, err := range x.Records(t.Context(), varve.Position{}) {
		if err != nil || string(r.Value) != string(value(n)) {
			t.Fatalf("record %d: %q %v", n, r.Value, err)
		}
		n++
	}
	if n != x.End || names(t, dir) != before {
		t.Fatalf("%d records of %d; files %s", n, x.End, names(t, dir))
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x, err = varve.Inspect(t.Context(), dir, varve.InspectOptions{}); err != nil || x.Running || x.End != 10 || x.Proven != 10 {
		t.Fatalf("%+v %v", x, err)
	}
	if _, err := varve.Inspect(t.Context(), t.TempDir(), varve.InspectOptions{}); err == nil {
		t.Fatal("an empty directory was inspected")
	}
}

func TestFullDisk(t *testing.T) {
	fs := hooked(t.TempDir())
	l := openHooked(t, fs, varve.Options{NoPreallocate: true})
	mustAppend(t, l, 0)
	on(&fs.write, func() error { return disk.ErrNoSpace })
	for range 3 {
		if _, err := l.Append(t.Context(), rec(1)); !errors.Is(err, varve.ErrNoSpace) || errors.Is(err, varve.ErrUnknown) {
			t.Fatalf("append to a full disk: %v", err)
		}
	}
	if n := readAll(t, l, 0); n != 1 {
		t.Fatalf("%d records", n)
	}
	on(&fs.write, nil)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, err := l.Append(t.Context(), rec(1))
		if err == nil {
			break
		}
		if !errors.Is(err, varve.ErrNoSpace) || time.Since(began) > 10*time.Second {
			t.Fatalf("append after space came back: %v", err)
		}
	}
	if n := readAll(t, l, 0); n != 2 {
		t.Fatalf("%d records", n)
	}
}

func TestManySegments(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{Fsync: varve.None, SegmentBytes: 1024})
	for i := range int64(1000) {
		if _, err := l.Append(t.Context(), varve.Record{Value: make([]byte, 500)}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	began, before := time.Now(), tiertest.Descriptors(t)
	l = open(t, dir, varve.Options{})
	took := time.Since(began)
	s := l.Stats()
	if s.SealedSegments < 1000 || s.Committed != 1000 {
		t.Fatalf("%d segments, committed %d", s.SealedSegments, s.Committed)
	}
	r := l.NewReader(varve.Position{}, varve.ReadOptions{})
	defer r.Close()
	for range 1000 {
		if _, ok, err := r.Poll(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if n := tiertest.Descriptors(t) - before; n > 8 {
			t.Fatalf("%d more descriptors than before open", n)
		}
	}
	t.Logf("open of %d sealed segments: %v, %d descriptors", s.SealedSegments, took, tiertest.Descriptors(t)-before)
	if took > 3*time.Second { // about 20 ms on an idle machine
		t.Fatalf("open took %v", took)
	}
}

// A batch that nobody could read is refused before it has an offset, and one without a producer is
// never taken for a duplicate.
func TestAppendBatchRefusesWhatNobodyCouldRead(t *testing.T) {
	l := open(t, t.TempDir()+"/log", varve.Options{})
	good := varve.EncodeRecords(nil, varve.Record{Value: []byte("a")}, varve.Record{Value: []byte("b")})
	for _, bad := range []varve.Batch{
		{Payload: good.Payload, Kind: varve.KindRecords, Records: 1},
		{Payload: good.Payload, Kind: varve.KindRecords, Records: 3},
		{Payload: good.Payload[:9], Kind: varve.KindRecords, Records: 2},
		{Payload: nil, Kind: varve.KindRecords, Records: 1<<32 - 1},
	} {
		var malformed *segment.RecordsError
		if _, err := l.AppendBatch(bad); !errors.As(err, &malformed) {
			t.Fatalf("%d records in %d bytes: %v", bad.Records, len(bad.Payload), err)
		}
	}
	for i := range 3 {
		p, err := l.AppendBatch(varve.Batch{Payload: good.Payload, Kind: varve.KindRecords, Records: 2})
		if err != nil {
			t.Fatal(err)
		}
		if span, err := p.Wait(t.Context()); err != nil || span.First != int64(2*i) {
			t.Fatalf("batch %d: %+v, %v", i, span, err)
		}
	}
}
