package varve

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/tiers"
	"varve/tiers/dirbucket"
)

// racing is a bucket that somebody else uses just before a manifest is put there, and that is gone then.
type racing struct {
	moody
	before func()
}

func (b *racing) Put(ctx context.Context, key string, p []byte, c tiers.Condition) (tiers.Object, error) {
	f := b.before
	if f == nil || !strings.HasSuffix(key, "manifest.json") {
		return b.moody.Put(ctx, key, p, c)
	}
	b.before = nil
	f()
	o, err := b.moody.Put(ctx, key, p, c)
	b.down.Store(true)
	return o, err
}

// TestClaimLostBeforeAnOutage: a host whose claim was refused does not serve what its disk has beyond the bucket: it
// may be void, and is here.
func TestClaimLostBeforeAnOutage(t *testing.T) {
	db, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &racing{moody: moody{Bucket: db}}
	dir, other := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "log")
	o := Options{Cold: b, ColdPrefix: coldPrefix, Create: true, MinFreeBytes: -1, NoPreallocate: true}
	l, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 0, 100)
	if err := l.Export(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	appendValues(t, l, 100, 110)
	closeLog(t, l)
	b.before = func() {
		o := o
		o.Cold = db
		l, err := Open(t.Context(), other, o)
		if err != nil {
			t.Error(err)
			return
		}
		for range 5 {
			if _, err := l.Append(context.Background(), Record{Value: []byte("of the other host")}); err != nil {
				t.Error(err)
			}
		}
		if err := l.Export(t.Context(), 105); err != nil {
			t.Error(err)
		}
		closeLog(t, l)
	}
	opened := make(chan *Log)
	go func() {
		l, err := Open(t.Context(), dir, o)
		if err != nil {
			t.Error(err)
		}
		opened <- l
	}()
	select {
	case l = <-opened:
		for r, err := range l.Records(t.Context(), Position{Offset: 100}) {
			t.Fatalf("record %d of epoch %d is served, %v: %+v", r.Offset, r.Epoch, err, l.Stats())
		}
		t.Fatalf("%+v", l.Stats())
	case <-time.After(300 * time.Millisecond): // one that does serve it takes far less
	}
	b.down.Store(false)
	l = <-opened
	n := 0
	for r, err := range l.Records(t.Context(), Position{Offset: 100}) {
		if n++; err != nil || string(r.Value) != "of the other host" {
			t.Fatal(r.Offset, err)
		}
	}
	if n != 5 {
		t.Fatalf("%d records", n)
	}
	closeLog(t, l)
}
