package varve_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"varve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
