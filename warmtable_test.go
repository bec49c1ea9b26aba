package varve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"varve/tiers/tiertest"
	"varve/tiers/valkey"
)

// warmSetup is a log with a warm tier: [0, sealed) in segments of step records, and the rest in the active
// one. keep is how many closed segments the warm tier holds.
type warmSetup struct {
	name              string
	step, sealed, end int64
	keep              int
	cold              bool
	offload           bool // the files of [0, sealed) are gone
	lost              bool // the host is lost with its disk, and another takes over
	acceptLoss        bool // what was only there is given up
	picture           string
	reads             []warmRead
}

// warmRead is who serves what from an offset on.
type warmRead struct {
	from int64
	want string
}

// warmTable: the disk comes first, then the bucket. Nothing is read from the warm tier while a log runs: what
// it alone holds is copied to disk by the open.
var warmTable = []warmSetup{
	{
		name: "hot and warm", step: 100, sealed: 900, end: 1000, keep: 2,
		picture: "x   Valkey                                 [700 ─── 1000)\n" +
			"    WAL     [0 ──────────────────────────────────── 1000)   committed 1000\n",
		reads: []warmRead{{0, "hot [0, 1000)"}, {700, "hot [700, 1000)"}, {950, "hot [950, 1000)"}, {1000, ""}},
	},
	{
		name: "hot and warm, host lost", step: 100, sealed: 900, end: 1000, keep: 9, lost: true,
		picture: "x   Valkey  [0 ──────────────────────────────────── 1000)\n" +
			"    WAL     [0 ──────────────────────────────────── 1000)   committed 1000\n",
		reads: []warmRead{{0, "hot [0, 1000)"}, {950, "hot [950, 1000)"}},
	},
	{
		name: "hot and warm, host lost, loss accepted", step: 100, sealed: 900, end: 1000, keep: 2, lost: true, acceptLoss: true,
		picture: "x   Valkey  [700 ────────────────────────────────── 1000)\n" +
			"    WAL     [700 ────────────────────────────────── 1000)   committed 1000\n",
		reads: []warmRead{{0, "trimmed to 700"}, {700, "hot [700, 1000)"}},
	},
	{
		name: "all tiers", step: 500, sealed: 4000, end: 5000, keep: 2, cold: true,
		picture: "x   S3      [0 ─────────────────────────── 4000)\n" +
			"    Valkey                             [3000 ────── 5000)\n" +
			"    WAL     [0 ──────────────────────────────────── 5000)   committed 5000\n",
		reads: []warmRead{{1000, "hot [1000, 5000)"}, {2000, "hot [2000, 5000)"}, {4500, "hot [4500, 5000)"}, {5000, ""}},
	},
	{
		name: "all tiers, disk pruned", step: 500, sealed: 4000, end: 5000, keep: 2, cold: true, offload: true,
		picture: "x   S3      [0 ─────────────────────────── 4000)\n" +
			"    Valkey                             [3000 ────── 5000)\n" +
			"    WAL                                     [4000 ─ 5000)   committed 5000\n",
		reads: []warmRead{
			{2000, "cold [2000, 4000) hot [4000, 5000)"},
			{3500, "cold [3500, 4000) hot [4000, 5000)"},
			{3999, "cold [3999, 4000) hot [4000, 5000)"},
			{4200, "hot [4200, 5000)"},
		},
	},
	{
		name: "all tiers, all of it in Valkey, host lost", step: 500, sealed: 4000, end: 5000, keep: 9, cold: true, lost: true,
		picture: "x   S3      [0 ──────────────────────────────────── 5000)\n" +
			"    Valkey  [0 ──────────────────────────────────── 5000)\n" +
			"    WAL                                     [4000 ─ 5000)   committed 5000\n",
		reads: []warmRead{{0, "cold [0, 4000) hot [4000, 5000)"}},
	},
	{
		name: "all tiers, host lost", step: 500, sealed: 4000, end: 5000, keep: 2, cold: true, lost: true,
		picture: "x   S3      [0 ──────────────────────────────────── 5000)\n" +
			"    Valkey                             [3000 ────── 5000)\n" +
			"    WAL                                     [4000 ─ 5000)   committed 5000\n",
		reads: []warmRead{{0, "cold [0, 4000) hot [4000, 5000)"}, {3500, "cold [3500, 4000) hot [4000, 5000)"}, {4200, "hot [4200, 5000)"}},
	},
}

// weighed counts what a warm tier is asked for, and the bytes that it gives.
type weighed struct {
	valkey.Dialer
	calls, bytes atomic.Int64
}

type weighedConn struct {
	valkey.Conn
	of *weighed
}

func (w *weighed) Dial(key string) (valkey.Conn, error) {
	c, err := w.Dialer.Dial(key)
	if err != nil {
		return nil, err
	}
	return weighedConn{c, w}, nil
}

func (c weighedConn) Do(p *valkey.Pipeline) error {
	err := c.Conn.Do(p)
	c.of.calls.Add(1)
	c.of.bytes.Add(replyBytes(p.Replies))
	return err
}

func replyBytes(replies []valkey.Reply) (n int64) {
	for i := range replies {
		n += int64(len(replies[i].Text)) + replyBytes(replies[i].Elems)
	}
	return n
}

func (w *weighed) take() (calls, bytes int64) { return w.calls.Swap(0), w.bytes.Swap(0) }

// TestWarmTable: each configuration on a real directory, a real Valkey server with a replica, and a bucket:
// what the tiers hold, who serves what, and the bytes that each of them gave.
func TestWarmTable(t *testing.T) {
	for i := range warmTable {
		s := &warmTable[i]
		t.Run(s.name, func(t *testing.T) {
			primary, _ := tiertest.StartPair(t)
			l, c, w := warmTableLog(t, primary, s)
			if m := l.TierMap("x", "S3"); m.String() != s.picture {
				t.Errorf("%s\nwant\n%s", m.String(), s.picture)
			}
			w.take()
			for j := range s.reads {
				readWarmRow(t, l, c, &s.reads[j])
			}
			if calls, bytes := w.take(); calls > 0 {
				t.Errorf("the warm tier was asked %d times and gave %d bytes", calls, bytes)
			}
			closeLog(t, l)
		})
	}
}

func readWarmRow(t *testing.T, l *Log, c *counting, r *warmRead) {
	t.Run(fmt.Sprint("from ", r.from), func(t *testing.T) {
		start := int64(0)
		if n, err := fmt.Sscanf(r.want, "trimmed to %d", &start); n == 1 && err == nil {
			trimmed := (*TrimmedError)(nil)
			if _, _, err := l.NewReader(Position{Offset: r.from}, ReadOptions{}).Poll(); !errors.As(err, &trimmed) || trimmed.Start != start {
				t.Fatal(err)
			}
			return
		}
		readRow(t, l, c, &tierRow{from: r.from, want: r.want})
	})
}

// warmTableLog makes a log as a row says.
func warmTableLog(t *testing.T, primary *tiertest.Process, s *warmSetup) (*Log, *counting, *weighed) {
	t.Helper()
	c, o := countCalls(t), warmOptions(t, primary)
	w := &weighed{Dialer: o.Warm.Dialer}
	o.Fsync, o.SegmentBytes, o.Warm.Dialer, o.Warm.Segments, o.AcceptLoss = None, 1<<20, w, s.keep, s.acceptLoss
	o.RetentionCheckInterval = time.Hour // a look at an idle tier
	open := func() *Log {
		dir := filepath.Join(t.TempDir(), "log")
		if s.cold {
			return openOver(t, dir, c, o)
		}
		return warmLog(t, dir, o)
	}
	l := open()
	for i := int64(0); i < s.sealed; i += s.step {
		appendMany(t, l, i, i+s.step)
		if err := l.Roll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	appendMany(t, l, s.sealed, s.end)
	if s.cold {
		waitExported(t, l, s.sealed)
	}
	from := max(s.sealed-int64(s.keep)*s.step, 0)
	eventually(t, "the warm tier is trimmed", func() bool {
		entries, bytes := streamBytes(primary)
		s := l.Stats()
		records := s.WarmEnd - s.WarmFrom
		least := records * int64(len(value(0)))
		return s.WarmFrom == from && s.WarmEnd == s.Committed && bytes >= least && bytes <= least+150*records+500*entries
	})
	if s.offload {
		if err := l.Offload(t.Context(), s.sealed); err != nil {
			t.Fatal(err)
		}
	}
	if s.lost {
		o.Warm.Segments = 9
		l = takeOver(t, l, w, open, primary)
	}
	return l, c, w
}

// takeOver opens the log on another host, beside the owner before, who lives on for a while.
func takeOver(t *testing.T, before *Log, w *weighed, open func() *Log, primary *tiertest.Process) *Log {
	t.Helper()
	w.take()
	_, held := streamBytes(primary)
	l := open()
	most := 3*held + held/10 // to know what is there, to copy it, and behind its marker
	if l.Start() > 0 {
		most *= 2 // and all of it again, with the loss accepted
	}
	if _, got := w.take(); got < held || got > most {
		t.Errorf("the warm tier gave %d bytes, and holds %d", got, held)
	}
	if _, err := before.Append(t.Context(), Record{}); err == nil {
		t.Error("the owner before appends still")
	}
	_ = before.Close(context.Background()) // it has been overtaken
	eventually(t, "the warm tier is read", func() bool { s := l.Stats(); return s.WarmEnd == s.Committed && s.WarmError == nil })
	if l.cold != nil {
		waitExported(t, l, l.Committed()) // what was copied to disk is sealed
	}
	return l
}

// appendMany appends records as batches of their own, which share commits.
func appendMany(t *testing.T, l *Log, from, to int64) {
	t.Helper()
	var last Pending
	for i := from; i < to; i++ {
		p, err := l.AppendAsync(Record{Value: value(i)})
		if err != nil {
			t.Fatal(err)
		}
		last = p
	}
	if s, err := last.Wait(t.Context()); err != nil || s.End != to {
		t.Fatal(s, err)
	}
}

// streamBytes returns the entries of the stream and about the bytes of them.
func streamBytes(primary *tiertest.Process) (entries, bytes int64) {
	entries, _ = strconv.ParseInt(primary.Do("XLEN", "varve:{orders-0}"), 10, 64)
	return entries, int64(len(primary.Do("XRANGE", "varve:{orders-0}", "-", "+")))
}
