package varve

import (
	"path/filepath"
	"testing"
	"time"
)

// coldTimes makes a log of n records, a second apart, which are all in the bucket alone.
func coldTimes(t *testing.T, n int64) (*Log, *counting, func(second int64) time.Time) {
	t.Helper()
	c := countCalls(t)
	l := openOver(t, filepath.Join(t.TempDir(), "log"), c, Options{Create: true, Fsync: None})
	at := func(second int64) time.Time { return time.Unix(1_700_000_000+second, 0) }
	for i := range n {
		if _, err := l.Append(t.Context(), Record{Value: make([]byte, 1000), Time: at(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Offload(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	c.take()
	return l, c, at
}

// TestTS5TimesBelowStartInTheColdTier: Start lies inside an object, which holds what was let go as well. A look-up by
// a time from before Start gives the first record that can be read.
func TestTS5TimesBelowStartInTheColdTier(t *testing.T) {
	const n = 100
	l, _, at := coldTimes(t, n)
	defer closeLog(t, l)
	if err := l.Trim(t.Context(), 37); err != nil {
		t.Fatal(err)
	}
	for second, want := range map[int64]int64{-5: 37, 0: 37, 20: 37, 36: 37, 37: 37, 38: 38, n - 1: n - 1, n: n} {
		if p, err := l.OffsetAt(t.Context(), at(second)); err != nil || p.Offset != want {
			t.Errorf("second %d is at %v, %v; want %d", second, p, err, want)
		}
	}
}

// TestTS8LookUpsByTimeAskForLittle: a time behind the last record asks the bucket for nothing, any other one for a footer
// and a piece of one object.
func TestTS8LookUpsByTimeAskForLittle(t *testing.T) {
	const n = 150
	l, c, at := coldTimes(t, n)
	defer closeLog(t, l)
	if s := l.Stats(); s.HotStart != n {
		t.Fatalf("the disk begins at %d", s.HotStart)
	}
	for second, gets := range map[int64]int{n: 0, n + 3600: 0, 0: 2, 77: 2, 123: 2, n - 1: 2} {
		p, err := l.OffsetAt(t.Context(), at(second))
		if err != nil || p.Offset != min(second, n) {
			t.Fatalf("second %d is at %v, %v", second, p, err)
		}
		calls := c.take()
		if calls["get segments"] > gets || len(calls) > 1 || len(calls) == 1 && calls["get segments"] == 0 {
			t.Errorf("second %d: %v, want at most %d requests for objects", second, calls, gets)
		}
	}
}
