package varve

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"varve/core"
)

// tierRow is a row of a table: who reads from an offset on, and which tier serves what.
type tierRow struct {
	name     string
	exported int64 // the bucket holds [0, exported)
	hot      int64 // the disk holds [hot, 1000)
	from     int64
	want     string
}

// tierTable is what a log of 1,000 records serves from where. A record that is on disk is read there,
// whatever else holds it.
var tierTable = []tierRow{
	{"hot only", -1, 0, 0, "hot [0, 1000)"},
	{"hot only", -1, 0, 950, "hot [950, 1000)"},
	{"all on disk", 800, 0, 0, "hot [0, 1000)"},
	{"all on disk", 800, 0, 200, "hot [200, 1000)"},
	{"hot and cold", 800, 500, 0, "cold [0, 500) hot [500, 1000)"},
	{"hot and cold", 800, 500, 200, "cold [200, 500) hot [500, 1000)"},
	{"hot and cold", 800, 500, 499, "cold [499, 500) hot [500, 1000)"},
	{"hot and cold", 800, 500, 500, "hot [500, 1000)"},
	{"hot and cold", 800, 500, 600, "hot [600, 1000)"},
	{"hot and cold", 800, 500, 950, "hot [950, 1000)"},
	{"hot and cold", 800, 500, 1000, ""},
	{"hot holds what is not exported", 800, 800, 799, "cold [799, 800) hot [800, 1000)"},
	{"all offloaded", 1000, 1000, 200, "cold [200, 1000)"},
	{"directory lost", 1000, -1, 200, "cold [200, 1000)"},
}

// TestTierTable: each row on a real directory and a real bucket, with the bytes that each tier gave.
func TestTierTable(t *testing.T) {
	var l *Log
	var c *counting
	last := ""
	for _, row := range tierTable {
		if row.name != last {
			if l != nil {
				closeLog(t, l)
			}
			last = row.name
			l, c = tierLog(t, &row)
		}
		t.Run(fmt.Sprintf("%s from %d", row.name, row.from), func(t *testing.T) { readRow(t, l, c, &row) })
	}
	closeLog(t, l)
}

// tierLog makes a log of 1,000 records in segments of 100, which are where a row says.
func tierLog(t *testing.T, row *tierRow) (*Log, *counting) {
	t.Helper()
	ctx := t.Context()
	dir, c := filepath.Join(t.TempDir(), "log"), countCalls(t)
	o := Options{Create: true, Fsync: None, SegmentBytes: 1 << 20}
	open := func() *Log { return openOver(t, dir, c, o) }
	if row.exported < 0 {
		open = func() *Log {
			l, err := Open(ctx, dir, Options{Fsync: None, MinFreeBytes: -1})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
	}
	l := open()
	for i := int64(0); i < 1000; i += 100 {
		if i == max(row.exported, 0) {
			waitExported(t, l, row.exported)
		}
		appendValues(t, l, i, i+100)
		if i+100 <= row.exported {
			if err := l.Roll(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitExported(t, l, row.exported)
	to := row.hot
	if to < 0 {
		to = 1000
	}
	if to > 0 {
		if err := l.Offload(ctx, to); err != nil {
			t.Fatal(err)
		}
	}
	if row.hot < 0 {
		closeLog(t, l)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		l = open()
	}
	return l, c
}

func waitExported(t *testing.T, l *Log, to int64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); l.Stats().Exported < to; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("exported %d, want %d", l.Stats().Exported, to)
		}
	}
}

// readRow reads as a row says. A tier that serves nothing is not asked; one that serves gives the bytes
// of its batches, and hardly more than the files or objects that hold them: a batch across the end of a
// fetch is fetched again, from what is kept of the object.
func readRow(t *testing.T, l *Log, c *counting, row *tierRow) {
	var got string
	var least, before [core.TierCount]int64
	before = l.Stats().ReadBytes
	c.take()
	tier, first, next := core.TierCount, row.from, row.from
	r := l.NewReader(Position{Offset: row.from}, ReadOptions{})
	defer func() { _ = r.Close() }()
	end := func() {
		if next > first {
			got += fmt.Sprintf(" %v [%d, %d)", tier, first, next)
		}
	}
	read := before
	for {
		b, ok, err := r.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		now := l.Stats().ReadBytes
		for i := range core.TierCount {
			if now[i] > read[i] && i != tier {
				end()
				tier, first = i, next
			}
		}
		read = now
		if b.Span.First != next {
			t.Fatalf("offset %d follows %d", b.Span.First, next)
		}
		rec, ok, err := r.Record()
		if err != nil || !ok || string(rec.Value) != string(value(next)) {
			t.Fatalf("offset %d: %v, %v", next, ok, err)
		}
		least[tier] += int64(len(b.Payload)) + 100
		next = b.Span.End
	}
	end()
	want := row.want
	if want != "" {
		want = " " + want
	}
	if got != want {
		t.Errorf("served by%s, want%s", got, want)
	}
	held := segmentBytes(t, l, row.from)
	for i := range core.TierCount {
		n := read[i] - before[i]
		if n < least[i] || n > held[i]+held[i]/50 || least[i] == 0 && n > 0 {
			t.Errorf("%v: %d bytes read, where the batches have %d, their files or objects %d", i, n, least[i], held[i])
		}
	}
	c.mu.Lock()
	asked := c.got["segments"]
	c.mu.Unlock()
	if calls := c.take(); asked < least[core.TierCold] || asked > held[core.TierCold] || asked == 0 && len(calls) > 0 {
		t.Errorf("the bucket gave %d bytes, where the batches have %d, their objects %d: %v", asked, least[core.TierCold], held[core.TierCold], calls)
	}
}

// segmentBytes returns the bytes of what a read from an offset on may touch, by tier.
func segmentBytes(t *testing.T, l *Log, from int64) (held [core.TierCount]int64) {
	t.Helper()
	v := l.view.Load()
	for i := range v.Extents {
		if x := &v.Extents[i]; x.End > from {
			held[x.Tier] += x.Bytes
			if x.End == core.EndNone {
				held[x.Tier] += l.Stats().SegmentBytes
			}
		}
	}
	return held
}
