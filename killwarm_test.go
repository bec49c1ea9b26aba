package varve_test

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"varve"
	"varve/tiers/s3"
	"varve/tiers/tiertest"
	"varve/tiers/valkey/client"
)

// warm adds the warm tier to options, if the life has one. It is that of a log that one replica confirms, or its appends end with an unknown outcome.
func (o *life) warm(to *varve.Options) error {
	if o.Warm == "" {
		return nil
	}
	d, err := client.New(client.Options{Addresses: []string{o.Warm}, ConnectTimeout: time.Second})
	to.Warm = varve.WarmOptions{Dialer: d, Name: "orders-0", Wait: 200 * time.Millisecond, Segments: 2}
	return err
}

// pair is a Valkey primary and its replica, behind an address that stays.
type pair struct {
	primary, replica *tiertest.Process
	door             *door
}

// failOver kills the primary; it comes back, or the replica takes its place and it comes back as a replica.
func (p *pair) failOver(t *testing.T, promote bool, pause time.Duration) {
	p.primary.Kill()
	time.Sleep(pause)
	if promote {
		p.primary, p.replica = p.replica, p.primary
		say(t, p.primary, "REPLICAOF", "NO", "ONE")
		p.door.point(p.primary.Addr)
		p.replica.Start()
		say(t, p.replica, "REPLICAOF", "127.0.0.1", p.primary.Port)
		return
	}
	p.primary.Start()
	say(t, p.primary, "REPLICAOF", "NO", "ONE") // it may have begun as a replica
}

// say repeats a command until the server has loaded what it holds.
func say(t *testing.T, p *tiertest.Process, command ...string) {
	tiertest.Eventually(t, "a server that takes "+command[0], func() bool { return strings.HasPrefix(p.Do(command...), "OK") })
}

// door hands connections on to the server of the moment.
type door struct {
	net.Listener
	mu    sync.Mutex
	to    string
	conns sync.WaitGroup
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{Listener: l, to: to}
	d.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.conns.Go(func() { d.handOn(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		d.conns.Wait() // the servers are gone, or those that asked
	})
	return d
}

func (d *door) point(to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = to
}

func (d *door) handOn(from net.Conn) {
	d.mu.Lock()
	addr := d.to
	d.mu.Unlock()
	to, err := net.Dial("tcp", addr)
	if err != nil {
		_ = from.Close()
		return
	}
	d.conns.Go(func() {
		_, _ = io.Copy(to, from)
		_, _ = to.Close(), from.Close()
	})
	_, _ = io.Copy(from, to)
	_, _ = to.Close(), from.Close()
}

// tierKills is what happens besides to the servers of a log, spread over the kills of its writer.
type tierKills struct {
	valkey pair
	server *tiertest.S3

	kills, each              int // of the writer, and of each server
	primaries, servers, lost int
	promoted                 int
}

// during sets a life up for what happens to the servers while it appends. It returns when its writer is to be
// killed, and what waits until the servers are back.
func (k *tierKills) during(t *testing.T, rng *rand.Rand, lives int, o *life) (after time.Duration, back func()) {
	after = time.Duration(rng.IntN(250)) * time.Millisecond
	primary := k.primaries < k.each && k.primaries*k.kills < lives*k.each
	server := k.servers < k.each && k.servers*k.kills < lives*k.each
	if lives%2 == 0 { // one of them, in turn
		primary = primary && k.primaries <= k.servers
		server = server && !primary
	}
	promote, at, pause := rng.IntN(2) == 0, after/2, time.Duration(rng.IntN(100))*time.Millisecond
	if primary && rng.IntN(2) == 0 {
		after += 1500 * time.Millisecond // so long that the log goes on with a replica that follows again
	}
	var down sync.WaitGroup
	o.loaded = func() {
		if primary {
			k.primaries++
			if promote {
				k.promoted++
			}
			down.Go(func() {
				time.Sleep(at)
				k.valkey.failOver(t, promote, pause)
			})
		}
		if server {
			k.servers++
			down.Go(func() {
				time.Sleep(at)
				k.server.Kill()
				time.Sleep(pause)
				k.server.Start(t)
			})
		}
	}
	return after, down.Wait
}

// TestKillWarm is the kill suite over all three tiers, with one replica that has to confirm: for 50 kills of
// the writer, the Valkey primary is killed under load 20 times and comes back or is replaced by its replica,
// the object store is killed 20 times, and the directory is deleted 10 times, right after a kill. There are
// no more than that.
func TestKillWarm(t *testing.T) {
	kills := min(killCount(t), 50)
	primary, replica := tiertest.StartPair(t)
	k := tierKills{valkey: pair{primary, replica, newDoor(t, primary.Addr)}, server: tiertest.StartS3(t), kills: kills, each: max(kills*2/5, 2)}
	losses := max(kills/5, 2)
	where := &s3.Options{
		Bucket: k.server.Bucket, Endpoint: k.server.Endpoint, PathStyle: true, Region: "us-east-1",
		AccessKey: k.server.AccessKey, SecretKey: k.server.SecretKey,
	}
	dir := t.TempDir() + "/log"
	acked := map[int64]uint32{}
	rng := rand.New(rand.NewPCG(8, 8))
	inFlight, lives, unknown, resumed := 0, 0, 0, 0
	for inFlight < kills || k.primaries < k.each || k.servers < k.each || k.lost < losses {
		if lives++; lives > 5*kills+20 {
			t.Fatalf("only %d of %d kills met an append in flight", inFlight, lives)
		}
		o := life{
			Dir: dir, Seed: uint64(lives), Cold: where, Warm: k.valkey.door.Addr().String(),
			SegmentBytes: []int64{4 << 10, 32 << 10}[rng.IntN(2)],
		}
		after, back := k.during(t, rng, lives, &o)
		killed := kill(t, o, 0, after)
		back()
		for offset, sum := range killed.acks {
			if old, twice := acked[offset]; twice {
				t.Fatalf("life %d: offset %d acked again: %08x and %08x", lives, offset, old, sum)
			}
			acked[offset] = sum
		}
		if killed.inFlight {
			inFlight++
		}
		unknown += killed.unknown
		if killed.resumed {
			resumed++
		}
		loses := k.lost*kills < lives*losses && k.lost < losses
		if loses {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			k.lost++
		}
		if loses && rng.IntN(2) == 0 || lives%10 == 0 {
			verifyOpen(t, &o, acked)
		}
	}
	o := life{Dir: dir, Cold: where, Warm: k.valkey.door.Addr().String(), SegmentBytes: 4 << 10}
	end := verifyOpen(t, &o, acked)
	t.Logf("%d lives: %d kills with an append in flight; the Valkey primary killed %d times (its replica promoted %d times), the object store %d times, "+
		"the directory deleted %d times; %d appends of unknown outcome, and after one %d lives acked again; %d records acked, %d in the log, none lost, none twice",
		lives, inFlight, k.primaries, k.promoted, k.servers, k.lost, unknown, resumed, len(acked), end)
}

// verifyOpen opens the log of a life in this process, which reads back what only Valkey holds, and compares
// it with everything ever acked.
func verifyOpen(t *testing.T, o *life, acked map[int64]uint32) int64 {
	t.Helper()
	ours := *o.Cold
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ours.HTTPClient = &http.Client{Transport: transport}
	verifying := *o
	verifying.Cold = &ours
	options, err := verifying.all()
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, o.Dir, options)
	tiertest.Eventually(t, "a log that is ready", func() bool { s := l.Stats(); return s.Phase == "ready" && s.Committed == s.End })
	end := compare(t, l.Records(t.Context(), varve.Position{}), acked)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return end
}
