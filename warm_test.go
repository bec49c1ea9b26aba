package varve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/tiers/dirbucket"
	"varve/tiers/tiertest"
	"varve/tiers/valkey/client"
)

// warmOptions are those of a log that a server mirrors.
func warmOptions(t *testing.T, server *tiertest.Process) Options {
	t.Helper()
	d, err := client.New(client.Options{Addresses: []string{server.Addr}, ConnectTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Warm:         WarmOptions{Dialer: d, Name: "orders-0", Wait: 10 * time.Second, Segments: 100},
		SegmentBytes: 16 << 10, MinFreeBytes: -1, Create: true,
	}
}

func warmLog(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := Open(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestWarmTier: what is acked is with a replica, and comes back from there when the disk is gone.
func TestWarmTier(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	dir, log := filepath.Join(t.TempDir(), "log"), &lines{}
	o := warmOptions(t, primary)
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	l := warmLog(t, dir, o)
	for i := range int64(20) {
		appendValues(t, l, i, i+1)
		if got := replica.Do("XREVRANGE", "varve:{orders-0}", "+", "-", "COUNT", "1"); !strings.Contains(got, string(value(i))) {
			t.Fatalf("record %d is acked, and the newest entry of the replica is %q", i, got)
		}
	}
	appendValues(t, l, 20, 500)
	readAll(t, l, 0, 500)
	if s := l.Stats(); s.WarmEnd != 500 || s.WarmError != nil || s.WarmUnsafe != 0 || s.WarmLagBytes != 0 || s.WarmStalled {
		t.Fatalf("%+v", s)
	}
	closeLog(t, l)
	if strings.Contains(log.String(), "level=WARN") {
		t.Fatal(log)
	}

	looked(t, dir, o, "x   Valkey  [0 ───────────────────────────────────── 500)\n"+
		"    WAL     [0 ───────────────────────────────────── 500)   committed 500\n", 0)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	looked(t, dir, o, "x   Valkey  [0 ───────────────────────────────────── 500)\n"+
		"    WAL     nothing                                         committed 500\n", 500)
	o.Create = false
	l = warmLog(t, dir, o)
	readAll(t, l, 0, 500)
	appendValues(t, l, 500, 600)
	if m := l.TierMap("x", "S3"); m.Tiers[0].Label != "Valkey" || m.Tiers[0].Start != 0 || m.Tiers[0].End != 600 || m.Tiers[0].Bytes < 60_000 {
		t.Errorf("%+v", m)
	}
	closeLog(t, l)
	l = warmLog(t, dir, o)
	readAll(t, l, 0, 600)
	closeLog(t, l)
}

// looked looks at a log without opening it. What the warm tier alone holds is shown, and not read.
func looked(t *testing.T, dir string, o Options, tiers string, alone int64) {
	t.Helper()
	x, err := Inspect(t.Context(), dir, InspectOptions{Warm: o.Warm})
	if err != nil {
		t.Fatal(err)
	}
	if m := x.TierMap("x", "S3"); m.String() != tiers {
		t.Fatalf("%s\nwant\n%s", m.String(), tiers)
	}
	n := int64(0)
	for i := range x.WarmAlone {
		n += x.WarmAlone[i].End - x.WarmAlone[i].First
	}
	if n != alone {
		t.Fatalf("%d records in the warm tier alone, want %d: %+v", n, alone, x.WarmAlone)
	}
	read := int64(0)
	for _, err = range x.Records(t.Context(), Position{}) {
		if err == nil {
			read++
		}
	}
	if tier := (*TierError)(nil); read != 500-alone || errors.As(err, &tier) != (alone > 0) || tier != nil && tier.Offset != 500-alone {
		t.Fatalf("read %d: %v", read, err)
	}
}

// TestWarmTierIsTrimmed: without a cold tier it holds the end of the log. What it was trimmed of and the
// disk has lost is not given up without being asked for.
func TestWarmTierIsTrimmed(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	o.Warm.Segments = 2
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 1000)
	eventually(t, "it is trimmed", func() bool { return l.Stats().WarmFrom > 500 })
	from := l.Stats().WarmFrom
	closeLog(t, l)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("records [0, %d) were committed and are neither", from)) {
		t.Fatal(err)
	}
	o.AcceptLoss = true
	l = warmLog(t, dir, o)
	if l.Start() != from {
		t.Fatalf("%+v", l.Stats())
	}
	readAll(t, l, from, 1000)
	appendValues(t, l, 1000, 1010)
	closeLog(t, l)
}

// TestWarmTierIsDown: an open without it serves what was committed, and takes appends once it answers.
func TestWarmTierIsDown(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 100)
	closeLog(t, l)
	primary.Kill()
	x, err := Inspect(t.Context(), dir, InspectOptions{Warm: o.Warm})
	if err != nil || x.WarmDown == nil || x.ColdDown != nil || x.End != 100 {
		t.Fatalf("%+v, %v", x, err)
	}
	if _, err := Inspect(t.Context(), dir+"-absent", InspectOptions{Warm: o.Warm}); err == nil || !strings.Contains(err.Error(), "connect to "+primary.Addr) {
		t.Fatal(err)
	}
	l = warmLog(t, dir, o)
	if s := l.Stats(); s.Phase != "recovering" || s.WarmError == nil || s.Committed != 100 {
		t.Fatalf("%+v", s)
	}
	if _, err := l.Append(t.Context(), Record{}); !errors.Is(err, ErrTierDown) {
		t.Fatal(err)
	}
	readAll(t, l, 0, 100)
	primary.Start()
	eventually(t, "the open ends", func() bool { return l.Stats().Phase == "ready" })
	appendValues(t, l, 100, 110)
	readAll(t, l, 0, 110)
	closeLog(t, l)
}

// TestWarmTierIsDownBesideABucket: what the bucket holds is served all the same, to a look and to a log.
func TestWarmTierIsDownBesideABucket(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	b, err := dirbucket.Open(filepath.Join(t.TempDir(), "bucket"), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Cold = b
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 1000)
	if err := l.Offload(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	if err := l.Trim(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 1000, 1100)
	closeLog(t, l)
	primary.Kill()
	x, err := Inspect(t.Context(), dir, InspectOptions{Cold: b, Warm: o.Warm})
	if err != nil || x.WarmDown == nil || x.ColdDown != nil || x.Start != 10 || x.End != 1100 || x.Kept() != 1090 || x.Exported < 1000 {
		t.Fatalf("%+v, %v", x, err)
	}
	n := 0
	for r, err := range x.Records(t.Context(), Position{Offset: 10}) {
		if err != nil || r.Offset != int64(10+n) || !bytes.Equal(r.Value, value(r.Offset)) {
			t.Fatalf("%+v, %v", r, err)
		}
		n++
	}
	if m := x.TierMap("orders", "bucket"); n != 1090 || m.Tiers[0].Down != nil || m.Tiers[0].End != x.Exported {
		t.Fatalf("%d, %+v", n, m)
	}
	l = warmLog(t, dir, o)
	if s := l.Stats(); s.Phase != "recovering" || s.WarmError == nil || s.Committed != 1100 {
		t.Fatalf("%+v", s)
	}
	readAll(t, l, 10, 1100)
	primary.Start()
	eventually(t, "the open ends", func() bool { return l.Stats().Phase == "ready" })
	appendValues(t, l, 1100, 1110)
	readAll(t, l, 10, 1110)
	closeLog(t, l)
}

// TestWarmTierOfAnOldLog: a log that gets a warm tier, or whose warm tier was emptied, mirrors what that is
// to hold and no more.
func TestWarmTierOfAnOldLog(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	o.Warm.Segments = 2
	plain := o
	plain.Warm = WarmOptions{}
	l := warmLog(t, dir, plain)
	appendValues(t, l, 0, 1000)
	closeLog(t, l)
	for life := range int64(2) {
		l = warmLog(t, dir, o)
		if l.Committed() != 1000+life {
			t.Fatalf("what was acked is not committed: %+v", l.Stats())
		}
		eventually(t, "the warm tier catches up", func() bool { s := l.Stats(); return s.WarmEnd == s.Committed && !s.WarmStalled })
		if s := l.Stats(); s.WarmFrom < 600 {
			t.Fatalf("%+v", s)
		}
		appendValues(t, l, 1000+life, 1001+life)
		closeLog(t, l)
		primary.Do("FLUSHALL")
	}
}

// TestWarmTierWithoutItsRecords: a stream of which a marker alone is left says how far the log was
// committed. Together with the disk that is a loss, and no log that is empty.
func TestWarmTierWithoutItsRecords(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 100)
	closeLog(t, l)
	closeLog(t, warmLog(t, dir, o))
	primary.Do("XTRIM", "varve:{orders-0}", "MAXLEN", "1")
	l = warmLog(t, dir, o)
	eventually(t, "the disk, which has all of it, gives it to the stream again", func() bool { s := l.Stats(); return s.WarmEnd == s.Committed && !s.WarmStalled })
	closeLog(t, l)
	closeLog(t, warmLog(t, dir, o)) // its marker comes last
	primary.Do("XTRIM", "varve:{orders-0}", "MAXLEN", "1")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), "records [0, 100) were committed and are neither") {
		t.Fatal(err)
	}
}

// TestOptionsOfTheWarmTier: what cannot work is refused by name, before anything is done.
func TestOptionsOfTheWarmTier(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	nobody := &links{}
	for want, o := range map[string]Options{
		"warm.name":                          {Warm: WarmOptions{Dialer: nobody}},
		"byte 2 is '/'":                      {Warm: WarmOptions{Dialer: nobody, Name: "../x"}},
		"byte 1 is '}'":                      {Warm: WarmOptions{Dialer: nobody, Name: "a}{b"}},
		"byte 1 is '\\x00'":                  {Warm: WarmOptions{Dialer: nobody, Name: "a\x00"}},
		"it names a folder":                  {Warm: WarmOptions{Dialer: nobody, Name: ".."}},
		"it has 300 bytes":                   {Warm: WarmOptions{Dialer: nobody, Name: strings.Repeat("a", 300)}},
		"warm.wait_replicas = 101":           {Warm: WarmOptions{Dialer: nobody, Name: "a", Replicas: 101}},
		"warm.wait_timeout_ms":               {Warm: WarmOptions{Dialer: nobody, Name: "a", Wait: -1}},
		"warm.max_bytes = -5":                {Warm: WarmOptions{Dialer: nobody, Name: "a", MaxBytes: -5}},
		"max_batch_bytes = 1073741824":       {Warm: WarmOptions{Dialer: nobody, Name: "a"}, MaxBatchBytes: 1 << 30},
		"warm.max_cached_closed_segments = ": {Warm: WarmOptions{Dialer: nobody, Name: "a", Segments: 1 << 30}},
	} {
		if _, err := Open(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if absent := absentDirs(dir); len(absent) != 1 {
		t.Error("something was made")
	}
}

// TestTrimWithAWarmTier: a Start that moved is known to Valkey before anybody sees it: a directory that is
// rebuilt does not bring back what was given up.
func TestTrimWithAWarmTier(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	o.Warm.Wait = 200 * time.Millisecond
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 100)
	if err := l.Trim(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	replica.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := l.Trim(ctx, 60); !errors.Is(err, context.DeadlineExceeded) || l.Start() != 50 {
		t.Fatalf("%v, start %d", err, l.Start())
	}
	replica.Resume()
	eventually(t, "Start moves", func() bool { return l.Start() == 60 })
	closeLog(t, l)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l = warmLog(t, dir, o)
	if l.Start() != 60 {
		t.Fatalf("%+v", l.Stats())
	}
	readAll(t, l, 60, 100)
	closeLog(t, l)
}

// TestWarmTierHeals: what is damaged on disk comes back from Valkey.
func TestWarmTierHeals(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 500)
	closeLog(t, l)
	damageSegment(t, dir)
	plain := o
	plain.Warm, plain.VerifyAllOnOpen = WarmOptions{}, true
	var damage *CorruptError
	if _, err := Open(t.Context(), dir, plain); !errors.As(err, &damage) {
		t.Fatal(err)
	}
	o.VerifyAllOnOpen = true
	l = warmLog(t, dir, o)
	readAll(t, l, 0, 500)
	closeLog(t, l)
	l = warmLog(t, dir, plain)
	readAll(t, l, 0, 500)
	closeLog(t, l)
}

// damageSegment flips a bit in a record of the second segment.
func damageSegment(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(names) < 3 {
		t.Fatal(names, err)
	}
	b, err := os.ReadFile(names[1])
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("xxxxx"))] ^= 1
	if err := os.WriteFile(names[1], b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamageDoesNotStopTheMirror: what neither disk nor Valkey has whole is passed over. What lies behind it
// is mirrored, and appends are acked.
func TestDamageDoesNotStopTheMirror(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	o.Warm.Segments = 1000
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 500)
	closeLog(t, l)
	damageSegment(t, dir)
	primary.Do("FLUSHALL")
	o.VerifyAllOnOpen, o.AllowDamaged = true, true
	l = warmLog(t, dir, o)
	eventually(t, "the rest is mirrored", func() bool { return l.Stats().WarmEnd == 500 })
	if s := l.Stats(); s.WarmFrom < 2 || s.WarmFrom > 499 || s.Committed != 500 || s.WarmStalled {
		t.Fatalf("%+v", s)
	}
	appendValues(t, l, 500, 510)
	closeLog(t, l)
}

// TestWarmPressureRolls: a segment that alone is as much as the warm tier is to hold is sealed, so that its records
// can leave that tier: it keeps to its bound, though segments are far larger.
func TestWarmPressureRolls(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	o := warmOptions(t, primary)
	o.SegmentBytes, o.Warm.MaxBytes = 1<<20, 128<<10
	l := warmLog(t, filepath.Join(t.TempDir(), "log"), o)
	for i := range int64(30) {
		appendValues(t, l, 100*i, 100*i+100)
	}
	eventually(t, "what is beyond the bound has left the warm tier", func() bool {
		s := l.Stats()
		return s.WarmFrom > 0 && s.WarmEnd == 3000 && s.WarmBytes < 3*o.Warm.MaxBytes
	})
	if s := l.Stats(); s.Rolls < 2 {
		t.Errorf("%d rolls", s.Rolls)
	}
	readAll(t, l, 0, 3000)
	closeLog(t, l)
}
