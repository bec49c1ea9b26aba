// Package wire runs the log over the real client libraries: valkey-go against miniredis, and the SDK of
// AWS against gofakes3, both in process. It runs schedules of the simulator, which draws them; what
// carries them out is a loop of its own, because here a call of a server is made in earnest.
//
// Time is virtual. A call is made at one instant of the schedule, when it is issued or when it completes,
// and waited for; how long it took is drawn. So time-outs are the core's, and no test waits for one.
//
// A disk is the simulated one, with power losses and without failing calls. It is lost, and another host
// takes the log over, in most schedules; the host before may live on, with connections of its own.
// Connections to the Valkey server break at any command, at the greeting too; it refuses writes, its
// replica stands still, it is restarted, with all that it had or with nothing. A request of the bucket
// fails before it has an effect or after, by its status or by its connection, or the answer breaks off.
//
// Package model judges, as in the simulator: what was acked is there after each open, at its offset;
// offsets are dense, nothing is there twice, epochs rise. In the end all has to resolve, the whole log is
// read, and read again from the other tiers alone where the disk may be lost.
//
// What the servers cannot do stays out. miniredis has no replicas: the hook before it answers WAIT, and
// a failover, which would lose what a replica lacks, is a lost connection. Idempotent producers, the
// clock, failing calls of the disk and damage are nothing to a client library.
package wire_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"varve/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// number reads an environment variable.
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

// failuresMax is after how many schedules that failed nobody needs more.
const failuresMax = 10

// TestWire runs VARVE_WIRE schedules, 100 by default, from VARVE_WIRE_FROM on. One alone is told step by
// step.
func TestWire(t *testing.T) {
	from, n := number(t, "VARVE_WIRE_FROM", 0), number(t, "VARVE_WIRE", 100)
	w := newWorld(t)
	if n == 1 {
		w.say = t.Logf
	}
	var s sim.Schedule
	for seed, bad := from, 0; seed < from+n && bad < failuresMax; seed++ {
		expand(&s, seed)
		if err := w.run(&s); err != nil {
			bad++
			t.Errorf("seed %d: %v\nagain: VARVE_WIRE=1 VARVE_WIRE_FROM=%d go test -run TestWire -v ./tiers/wire", seed, err, seed)
		}
	}
	t.Log(w.report(n >= 100 && !t.Failed()))
}

// systemsWords is how the system says that a connection was lost: with ports, and as broken or as reset.
var systemsWords = regexp.MustCompile(`(connection lost): .*`)

// TestWireRepeats: a schedule does the same again, or nobody could replay one. Those over sockets may
// differ: net/http sends a GET again if it finds out in time that the connection had broken.
func TestWireRepeats(t *testing.T) {
	w := newWorld(t)
	var s sim.Schedule
	for seed := range uint64(20) {
		if seed%socketsEvery == 0 {
			continue
		}
		var told [2][]string
		for i := range told {
			expand(&s, seed)
			w.say = func(format string, args ...any) {
				told[i] = append(told[i], systemsWords.ReplaceAllString(line(format, args), "$1"))
			}
			if err := w.run(&s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for i := range min(len(told[0]), len(told[1])) {
			if told[0][i] != told[1][i] {
				t.Fatalf("seed %d: first\n%s\nand then\n%s", seed, told[0][i], told[1][i])
			}
		}
		if len(told[0]) != len(told[1]) || len(told[0]) == 0 {
			t.Fatalf("seed %d: %d lines, and then %d", seed, len(told[0]), len(told[1]))
		}
	}
}
