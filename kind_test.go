package varve_test

import (
	"context"
	"errors"
	"testing"

	"varve"
	"varve/tiers/disk/osfs"
)

// A log of RecordBatches takes no records, in the life that wrote them and in a later one, also where that has
// only empty files of its own; RecordBatches it goes on to take.
func TestAnotherKindIsRefused(t *testing.T) {
	dir := t.TempDir()
	batch := varve.Batch{Payload: []byte("one of Kafka's, as far as the log knows"), Kind: varve.KindKafka, Records: 1}
	l := open(t, dir, varve.Options{})
	if k := varve.NewestKind(osfs.New(dir)); k != 0 {
		t.Errorf("an empty log holds kind %d", k)
	}
	for life := range 3 {
		p, err := l.AppendBatch(batch)
		if err == nil {
			_, err = p.Wait(t.Context())
		}
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		if k := varve.NewestKind(osfs.New(dir)); k != varve.KindKafka {
			t.Errorf("the log holds kind %d", k)
		}
		for again := range 2 {
			var kind *varve.KindError
			if _, err := l.Append(t.Context(), varve.Record{Value: []byte("v")}); !errors.As(err, &kind) || kind.Holds != varve.KindKafka || kind.Got != varve.KindRecords {
				t.Fatalf("life %d, %d: %v, want a *KindError", life, again, err)
			}
			if err := l.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			l = open(t, dir, varve.Options{})
		}
	}
	if got := l.Committed(); got != 3 {
		t.Errorf("committed %d, want 3", got)
	}
}
