package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve"
	"varve/tiers"
	"varve/tiers/dirbucket"
)

// sluggish is a bucket that fails one part, or the end of every upload, and takes a while for each part.
type sluggish struct {
	tiers.Bucket
	pause   time.Duration
	endless bool
	failed  atomic.Bool
}

func (b *sluggish) PutPart(ctx context.Context, key, id string, n int, body []byte) (tiers.Part, error) {
	if !b.endless && b.failed.CompareAndSwap(false, true) {
		return tiers.Part{}, errors.New("the network is down")
	}
	time.Sleep(b.pause)
	return b.Bucket.PutPart(ctx, key, id, n, body)
}

func (b *sluggish) Finish(ctx context.Context, key, id string, parts []tiers.Part, c tiers.Condition) (tiers.Object, error) {
	if b.endless {
		return tiers.Object{}, errors.New("no object comes of it")
	}
	return b.Bucket.Finish(ctx, key, id, parts, c)
}

// TestOffloadToASlowBucket: after a failed upload it goes on for as long as parts are taken, and says so; it ends where
// nothing comes of them.
func TestOffloadToASlowBucket(t *testing.T) {
	defer func(d time.Duration) { tierWait = d }(tierWait)
	for _, endless := range []bool{false, true} {
		db, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		b := &sluggish{Bucket: db, pause: time.Second, endless: endless}
		tierWait = 2500 * time.Millisecond // less than half of what all parts take
		if endless {
			b.pause, tierWait = 0, time.Minute
		}
		l, err := varve.Open(t.Context(), filepath.Join(t.TempDir(), "log"), varve.Options{
			Fsync: varve.None, Cold: b, ColdPrefix: "x/", ColdPartBytes: 5 << 20, Create: true, MinFreeBytes: -1, SegmentBytes: 64 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 45 {
			if _, err := l.Append(t.Context(), varve.Record{Value: make([]byte, 1<<20)}); err != nil {
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		c := &offloadCommand{}
		c.SegmentBytes = 64 << 20
		began := time.Now()
		err = c.offload(t.Context(), &streams{err: &said}, l, l.Committed(), func(int64) {})
		switch {
		case !endless && (err != nil || time.Since(began) < 2*tierWait || !strings.Contains(said.String(), "it is sent again")):
			t.Errorf("after %v: %v; %s", time.Since(began), err, said.String())
		case endless && (err == nil || !strings.Contains(err.Error(), "no object came of it") || !strings.Contains(err.Error(), "no object comes of it")):
			t.Errorf("%v; %s", err, said.String())
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
