package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"varve/sim"
)

// TestMain lets this binary stand for the program where a command starts itself.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, newWorld)
		stop()
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// program runs the program with arguments as on a command line.
func program(t *testing.T, world func() simulator, args string) (code int, out, errOut string) {
	t.Helper()
	var a, b bytes.Buffer
	code = run(t.Context(), strings.Fields(args), &a, &b, world)
	return code, a.String(), b.String()
}

// planted is a world in which some seeds violate a property, or panic.
type planted struct {
	violates map[uint64]string
	panics   map[uint64]string
	hangs    map[uint64]chan struct{} // until it is closed
	skew     uint64                   // is added to the hashes
	hashes   []uint64
	res      sim.Result
}

func (p *planted) Run(s *sim.Schedule) *sim.Result {
	seed := s.Header.Seed
	if text, ok := p.panics[seed]; ok {
		panic(text)
	}
	if until, ok := p.hangs[seed]; ok {
		<-until
	}
	p.res = sim.Result{Hash: seed * 3, Events: 200, Ops: 10, Appends: 7, Lives: 2, Acked: 5}
	if text, ok := p.violates[seed]; ok {
		p.res.Check, p.res.Violation = "K1", text
	}
	p.hashes = append(p.hashes[:0], seed, seed+1, seed+2)
	p.hashes[1] += p.skew
	p.res.Hash += p.skew
	return &p.res
}

func (p *planted) Hashes() []uint64 { return p.hashes }

func TestUsage(t *testing.T) {
	for _, x := range []struct{ args, want string }{
		{"", "expected one of"},
		{"fly", "unexpected argument fly"},
		{"run", "--seeds"},
		{"run --seeds 0", "want at least 1"},
		{"run --seeds -1", "-1"},
		{"run --seeds 1 --ops=-1", "--ops -1"},
		{"run --seeds 1 --ops 40000", "--ops 40000"},
		{"run --seeds 1 --workers=-1", "--workers -1"},
		{"run --seeds 1 --time=-1s", "--time -1s"},
		{"run --seeds 1 --profile tape", "must be one of"},
		{"run --seeds 2 --from 18446744073709551614", "beyond the last one"},
		{"replay", "seed|file"},
		{"replay 1 --ops 99999", "--ops 99999"},
		{"run --seeds 1 --detections 2", "only with --all"},
		{"run --seeds 1 --hang 0s", "--hang 0s"},
		{"run --seeds 1 --without D99.none", "\"D99.none\": no fault, switch or checker"},
		{"replay 1 --without K99", "\"K99\": no fault, switch or checker"},
		{"mutants --seeds 0", "want at least 1"},
		{"mutants --detections 0", "want at least 1"},
		{"mutants --only [", "syntax error in pattern"},
		{"mutants --json --markdown", "can't be used together"},
		{"meta --seeds 0", "want at least 1"},
		{"demo --seeds 0", "want at least 1"},
		{"shrink", "seed|file"},
		{"run --seeds 5 --shard 4/4", "want i/n"},
		{"run --seeds 5 --shard 1", "want i/n"},
		{"run --seeds 2 --shard 3/8", "none of 2 seeds"},
		{"shrink 1 --tries 0", "--tries 0"},
		{"shrink 1 --ops=-3", "--ops -3"},
	} {
		code, out, errOut := program(t, newWorld, x.args)
		last := strings.TrimSpace(errOut[strings.LastIndex(strings.TrimSpace(errOut), "\n")+1:])
		if code != exitUsage || !strings.Contains(last, x.want) || !strings.HasPrefix(last, "varve-sim: ") {
			t.Errorf("%q: exit %d, %q, want %d and %q\n%s", x.args, code, last, exitUsage, x.want, out)
		}
	}
	if code, out, _ := program(t, newWorld, "--help"); code != exitOK || !strings.Contains(out, "demo") || strings.Contains(out, "meta-child") {
		t.Errorf("--help: exit %d\n%s", code, out)
	}
}
