// Package wire runs the log over the real client libraries: valkey-go against miniredis, and the SDK of
// AWS against gofakes3, both in process.
package wire_test

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"varve/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestWire(t *testing.T) {
	from, n := number(t, "VARVE_WIRE_FROM", 0), number(t, "VARVE_WIRE", 100)
	w := newWorld(t)
	if n == 1 {
		w.say = t.Logf
	}
	var s sim.Schedule
	bad := 0
	for seed := from; seed < from+n; seed++ {
		expand(&s, seed)
		if err := w.run(&s); err != nil {
			t.Errorf("seed %d: %v\nagain: VARVE_WIRE=1 VARVE_WIRE_FROM=%d go test -run TestWire -v ./tiers/wire", seed, err, seed)
			if bad++; bad >= 10 {
				break
			}
		}
	}
	t.Logf("%+v", w.counts)
	t.Logf("stream: %d cuts %d refused %d short; objects: %d calls %v", w.stream.cuts, w.stream.refused, w.stream.short, w.objects.calls, w.objects.hit)
}
