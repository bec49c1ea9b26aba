package varve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/tiers/tiertest"
)

// TestStalledReplica: with on_wait_timeout=fail an append that no replica confirms ends with an unknown
// outcome, and others are refused before they get an offset. When the replica goes on, so does the log, by
// itself.
func TestStalledReplica(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	log := &lines{}
	o := warmOptions(t, primary)
	o.Warm.Wait, o.Logger = 100*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
	dir := filepath.Join(t.TempDir(), "log")
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 10)

	replica.Pause()
	if _, err := l.Append(t.Context(), Record{Value: value(10)}); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), Record{Value: value(11)}); !errors.Is(err, ErrTierDown) {
		t.Fatal(err)
	}
	if s := l.Stats(); !s.WarmStalled || s.Committed != 10 || s.End != 11 || s.WarmLagBytes == 0 {
		t.Fatalf("%+v", s)
	}
	eventually(t, "it says why", func() bool {
		s := l.Stats()
		return s.WarmError != nil && strings.Contains(s.WarmError.Error(), "0 replicas of the warm tier confirmed in time, and warm.wait_replicas is 1")
	})
	readAll(t, l, 0, 10)

	replica.Resume()
	eventually(t, "it goes on", func() bool { s := l.Stats(); return !s.WarmStalled && s.Committed == 11 && s.WarmError == nil })
	appendValues(t, l, 11, 20)
	readAll(t, l, 0, 20)
	closeLog(t, l)
	for _, want := range []string{"appends are refused until the warm tier has caught up", "has caught up\" dir="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("nothing says %q in\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "<nil>") {
		t.Errorf("a line gives no cause:\n%s", log)
	}
}

// TestStalledReplicaWaived: with on_wait_timeout=ack it is acked when the time is over, and everybody can
// see that.
func TestStalledReplicaWaived(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	log := &lines{}
	o := warmOptions(t, primary)
	o.Warm.Wait, o.Warm.AckOnTimeout, o.Logger = 100*time.Millisecond, true, slog.New(slog.NewTextHandler(log, nil))
	l := warmLog(t, filepath.Join(t.TempDir(), "log"), o)
	appendValues(t, l, 0, 10)
	replica.Pause()
	appendValues(t, l, 10, 20)
	if s := l.Stats(); s.Committed != 20 || s.WarmEnd > 10 || s.WarmWaived != 20 || !s.WarmStalled {
		t.Fatalf("%+v", s)
	}
	replica.Resume()
	eventually(t, "the replica has all of it", func() bool {
		appendValues(t, l, l.Committed(), l.Committed()+1)
		s := l.Stats()
		return s.WarmEnd == s.Committed && !s.WarmStalled && s.WarmError == nil
	})
	closeLog(t, l)
	if !strings.Contains(log.String(), "acked without the warm tier") {
		t.Error(log)
	}
}

// TestCloseWhileStalled: a close waits for a WAIT no longer than an append does, and for a server that
// does not answer not at all.
func TestCloseWhileStalled(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	o.Warm.Wait = 300 * time.Millisecond
	l := warmLog(t, dir, o)
	appendValues(t, l, 0, 10)
	replica.Pause()
	p, err := l.AppendAsync(Record{Value: value(10)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(ctx); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	replica.Resume()

	l = warmLog(t, dir, o)
	eventually(t, "what was unknown is committed", func() bool { return l.Committed() == 11 })
	primary.Pause()
	for i := int64(11); l.Stats().WarmError == nil && i < 12; i++ {
		if _, err := l.Append(t.Context(), Record{Value: value(i)}); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), warmTimeout/2) // what asks such a server gives up later by itself
	defer cancel()
	if err := l.Close(soon); err != nil {
		t.Fatal(err)
	}
	primary.Resume()
	l = warmLog(t, dir, o)
	eventually(t, "the rest, too", func() bool { return l.Committed() == 12 })
	readAll(t, l, 0, 12)
	closeLog(t, l)
}

// TestStallOfAnotherLog: logs of one process share nothing: while one waits for its replica, the other
// appends.
func TestStallOfAnotherLog(t *testing.T) {
	one, replica := tiertest.StartPair(t)
	other, _ := tiertest.StartPair(t)
	a, b := warmOptions(t, one), warmOptions(t, other)
	a.Warm.Wait = time.Hour
	la := warmLog(t, filepath.Join(t.TempDir(), "a"), a)
	lb := warmLog(t, filepath.Join(t.TempDir(), "b"), b)
	besideAStall(t, replica, la, lb)
}

// TestStallOnTheSameServer: two logs on one server, by one dialer. The WAIT of one blocks its connection, and
// no other.
func TestStallOnTheSameServer(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	a := warmOptions(t, primary)
	a.Warm.Wait = time.Hour
	b := a
	b.Warm.Name, b.Warm.Replicas = "orders-1", -1
	la := warmLog(t, filepath.Join(t.TempDir(), "a"), a)
	lb := warmLog(t, filepath.Join(t.TempDir(), "b"), b)
	besideAStall(t, replica, la, lb)
}

// besideAStall appends to a log whose replica stands still, and meanwhile to another one.
func besideAStall(t *testing.T, replica *tiertest.Process, la, lb *Log) {
	t.Helper()
	appendValues(t, la, 0, 1)
	replica.Pause()
	p, err := la.AppendAsync(Record{Value: value(1)})
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, lb, 0, 500)
	if s := lb.Stats(); s.WarmEnd != 500 || s.WarmError != nil {
		t.Fatalf("%+v", s)
	}
	select {
	case <-p.Done():
		t.Fatal("the stalled log has acked")
	default:
	}
	replica.Resume()
	if s, err := p.Wait(t.Context()); err != nil || s.First != 1 {
		t.Fatal(s, err)
	}
	closeLog(t, la)
	closeLog(t, lb)
}

// TestAllTiers: the disk is lost, and what the bucket holds and what Valkey holds make one log.
func TestAllTiers(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir, bucket := filepath.Join(t.TempDir(), "log"), t.TempDir()
	o := warmOptions(t, primary)
	o.Warm.Segments = 2
	l := coldLog(t, dir, bucket, o)
	acked := int64(0)
	o.Create = false
	for life := range 4 {
		appendValues(t, l, acked, acked+777)
		acked += 777
		readAll(t, l, 0, acked)
		if life == 0 {
			eventually(t, "the warm tier is trimmed", func() bool { return l.Stats().WarmFrom > 100 })
		}
		s := l.Stats()
		if s.WarmFrom > s.Exported {
			t.Fatalf("the warm tier is trimmed of what is nowhere else: %+v", s)
		}
		closeLog(t, l)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		l = coldLog(t, dir, bucket, o)
		if s = l.Stats(); s.Start != 0 || s.Committed != acked {
			t.Fatalf("life %d: %+v, acked %d", life, s, acked)
		}
		readAll(t, l, 0, acked)
	}
	closeLog(t, l)
}

// TestOpenGivenUp: an open that nobody answers ends with its context, and leaves nothing behind.
func TestOpenGivenUp(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	primary.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Open(ctx, dir, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if took := time.Since(began); took > warmTimeout/2 {
		t.Fatalf("it took %v", took)
	}
	if absent := absentDirs(dir); len(absent) != 1 {
		t.Fatal("something was made")
	}
	primary.Resume()
	closeLog(t, warmLog(t, dir, o))
}

// TestServerForgets: a server that loses the stream, or its connections, or is killed and started again,
// under a log that is open. The log finds out with the next append, and gives it what it is to hold again.
func TestServerForgets(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "log")
	o := warmOptions(t, primary)
	l := warmLog(t, dir, o)
	n := int64(0)
	for _, accident := range []func(){
		func() {},
		func() { primary.Do("FLUSHALL") },
		func() { primary.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") },
		func() { primary.Do("DEL", "varve:{orders-0}") },
		func() {
			primary.Kill()
			primary.Start()
			tiertest.Eventually(t, "a replica that follows", func() bool {
				return strings.Contains(primary.Do("INFO", "replication"), "state=online")
			})
		},
		func() { replica.Do("REPLICAOF", "127.0.0.1", primary.Port) },
	} {
		accident()
		appendValues(t, l, n, n+50)
		n += 50
		if s := l.Stats(); s.WarmEnd != n || s.WarmStalled {
			t.Fatalf("%+v", s)
		}
	}
	closeLog(t, l)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o.Create = false
	l = warmLog(t, dir, o)
	readAll(t, l, 0, n)
	closeLog(t, l)
}
