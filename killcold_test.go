package varve_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"varve"
	"varve/tiers/s3"
	"varve/tiers/tiertest"
)

const killPrefix = "log/"

// TestKillCold is the kill suite with a real object store: for 50 kills of the writer the server is
// killed under load 20 times, and the directory is deleted 10 times, with all of the log in the bucket.
// There are no more than that.
func TestKillCold(t *testing.T) {
	kills := min(killCount(t), 50)
	serverKills, losses := max(kills*2/5, 2), max(kills/5, 2)
	server := tiertest.StartS3(t)
	where := &s3.Options{
		Bucket: server.Bucket, Endpoint: server.Endpoint, PathStyle: true, Region: "us-east-1",
		AccessKey: server.AccessKey, SecretKey: server.SecretKey,
	}
	ours := *where
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ours.HTTPClient = &http.Client{Transport: transport}
	bucket, err := s3.Open(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	inspect := varve.InspectOptions{Cold: bucket, ColdPrefix: killPrefix}

	dir := t.TempDir() + "/log"
	acked := map[int64]uint32{}
	rng := rand.New(rand.NewPCG(7, 7))
	inFlight, killedServers, lost, rebuilt, lives := 0, 0, 0, int64(0), 0
	for inFlight < kills || killedServers < serverKills || lost < losses {
		if lives++; lives > 5*kills+20 {
			t.Fatalf("only %d of %d kills met an append in flight", inFlight, lives)
		}
		o := life{Dir: dir, Seed: uint64(lives), Cold: where, SegmentBytes: []int64{4 << 10, 32 << 10}[rng.IntN(2)]}
		down := make(chan struct{})
		after := time.Duration(rng.IntN(250)) * time.Millisecond
		go func() {
			defer close(down)
			if killedServers*kills >= lives*serverKills || killedServers == serverKills {
				return
			}
			time.Sleep(after / 2)
			server.Kill()
			killedServers++
			time.Sleep(after)
			server.Start(t)
		}()
		k := kill(t, o, 0, after)
		<-down
		for offset, sum := range k.acks {
			if old, twice := acked[offset]; twice {
				t.Fatalf("life %d: offset %d acked again: %08x and %08x", lives, offset, old, sum)
			}
			acked[offset] = sum
		}
		if k.inFlight {
			inFlight++
		}
		if lives%5 == 0 || inFlight == kills {
			verifyWith(t, dir, inspect, acked)
		}
		if lost*kills < lives*losses && lost < losses {
			loseDirectory(t, dir, &o, bucket)
			lost++
			rebuilt = verifyWith(t, dir, inspect, acked)
		}
	}
	end := verifyWith(t, dir, inspect, acked)
	t.Logf("%d lives: %d kills with an append in flight, the server killed %d times, the directory deleted %d times (the last time with %d records); "+
		"%d records acked, %d in the log, none lost, none twice", lives, inFlight, killedServers, lost, rebuilt, len(acked), end)
}

// loseDirectory opens the log in this process, moves all of it to the bucket, and deletes the directory.
func loseDirectory(t *testing.T, dir string, o *life, bucket *s3.Bucket) {
	t.Helper()
	options := o.options()
	options.Cold, options.ColdPrefix, options.Create = bucket, killPrefix, true
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := varve.Open(ctx, dir, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Offload(ctx, l.Committed()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
