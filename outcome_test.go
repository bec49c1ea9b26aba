package varve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"varve"
)

// TestOutcomesUnderFaults lets writers append on a disk whose writes and syncs fail now and then,
// over many lives, and compares what each was told with what the log holds: acked is there, a
// definite failure is not and never comes back, unknown is one or the other for good.
func TestOutcomesUnderFaults(t *testing.T) {
	for _, mode := range []varve.FsyncMode{varve.OnCommit, varve.Periodic, varve.None} {
		t.Run(mode.String(), func(t *testing.T) { outcomes(t, mode) })
	}
}

// told is what a writer was told of its record.
type told uint8

const (
	acked told = iota + 1
	refused
	unknown
	unknownIn  // unknown, found in the log after reopening
	unknownOut // unknown, not found
)

func outcomes(t *testing.T, mode varve.FsyncMode) {
	const lives, writers, each = 12, 8, 60
	dir := t.TempDir()
	all := map[string]told{}
	spans := map[string]int64{}
	poisoned, failed := 0, 0
	for life := 0; life < lives || poisoned == 0 && life < 10*lives; life++ {
		fs := hooked(dir)
		l := openHooked(t, fs, varve.Options{Fsync: mode, SegmentBytes: 8 << 10})
		compareWithLog(t, l, all, spans)
		rng := rand.New(rand.NewPCG(uint64(life), uint64(mode)))
		var mu sync.Mutex
		chance := func(oneIn int) func() error {
			return func() error {
				mu.Lock()
				defer mu.Unlock()
				if rng.IntN(oneIn) == 0 {
					return errDisk
				}
				return nil
			}
		}
		on(&fs.write, chance(25))
		on(&fs.sync, chance(60))
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					v := fmt.Sprintf("life %d writer %d record %d", life, w, i)
					s, err := l.Append(context.Background(), varve.Record{Value: []byte(v)})
					mu.Lock()
					switch {
					case err == nil:
						all[v], spans[v] = acked, s.First
					case errors.Is(err, varve.ErrUnknown):
						all[v] = unknown
					default:
						all[v] = refused
						failed++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if l.Err() != nil {
			poisoned++
		}
		on(&fs.write, nil)
		on(&fs.sync, nil)
		_ = l.Close(context.Background()) // a poisoned log says so
	}
	l := open(t, dir, varve.Options{})
	compareWithLog(t, l, all, spans)
	if poisoned == 0 || failed == 0 {
		t.Fatalf("%d lives were poisoned, %d appends refused: the faults did not happen", poisoned, failed)
	}
}

// compareWithLog settles unknown outcomes the first time they can be looked up.
func compareWithLog(t *testing.T, l *varve.Log, all map[string]told, spans map[string]int64) {
	t.Helper()
	found := map[string]bool{}
	next := int64(0)
	for r, err := range l.Records(t.Context(), varve.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		v := string(r.Value)
		if r.Offset != next || found[v] {
			t.Fatalf("offset %d: %q, found before: %t", r.Offset, v, found[v])
		}
		next++
		found[v] = true
		if all[v] == acked && spans[v] != r.Offset {
			t.Fatalf("%q was acked at %d and is at %d", v, spans[v], r.Offset)
		}
	}
	for v, told := range all {
		switch {
		case told == unknown && found[v]:
			all[v] = unknownIn
		case told == unknown:
			all[v] = unknownOut
		case (told == acked || told == unknownIn) && !found[v]:
			t.Fatalf("%q is gone (told %d)", v, told)
		case (told == refused || told == unknownOut) && found[v]:
			t.Fatalf("%q is in the log (told %d)", v, told)
		}
	}
}
