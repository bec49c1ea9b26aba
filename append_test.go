package varve_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"varve"
)

// An outcome that is known is never told as unknown.
func TestWaitOfAKnownOutcome(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{})
	p, err := l.AppendAsync(rec(0))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if s, err := p.Wait(ended); err != nil || s != (varve.Span{First: 0, End: 1}) {
			t.Fatalf("%v %v", s, err)
		}
	}
}

// Times that do not fit become the nearest that do, so that their order is kept, and looking for
// them finds what lies on the right side.
func TestTimesOutOfRange(t *testing.T) {
	l := open(t, t.TempDir(), varve.Options{})
	least, greatest := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	want := []time.Time{least, least, year(1900), time.Unix(0, 0), year(2200), greatest, greatest}
	for i, at := range []time.Time{year(1500), least, year(1900), time.Unix(0, 0), year(2200), greatest, year(3000)} {
		if _, err := l.Append(t.Context(), varve.Record{Value: value(int64(i)), Time: at}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for r, err := range l.Records(t.Context(), varve.Position{}) {
		if err != nil || !r.Time.Equal(want[n]) {
			t.Fatalf("record %d: %v, want %v, %v", n, r.Time.UTC(), want[n].UTC(), err)
		}
		n++
	}
	for _, tt := range []struct {
		at     time.Time
		offset int64
	}{
		{time.Time{}, 0},
		{year(1500), 0},
		{year(1800), 2},
		{year(1900).Add(1), 3},
		{year(2200), 4},
		{year(2200).Add(1), 5},
		{year(3000), 5},
		{time.Unix(math.MaxInt64, 0), 5},
	} {
		if p, err := l.OffsetAt(t.Context(), tt.at); err != nil || p.Offset != tt.offset {
			t.Errorf("offset at %v: %d, want %d, %v", tt.at, p.Offset, tt.offset, err)
		}
	}
}

// A payload of another kind, read as records, names the file that it is in.
func TestMalformedPayloadIsNamed(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, varve.Options{})
	mustAppend(t, l, 0)
	p, err := l.AppendBatch(varve.Batch{Payload: []byte("of another kind"), Kind: varve.KindKafka, Records: 5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var damage *varve.CorruptError
	for _, err = range l.Records(t.Context(), varve.Position{Offset: 1}) {
	}
	if !errors.As(err, &damage) {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/" + damage.Name()); err != nil || damage.Offset != 1 || damage.End != 6 {
		t.Fatalf("%v: %v", damage, err)
	}
}
