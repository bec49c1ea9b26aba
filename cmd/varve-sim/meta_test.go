package main

import (
	"strings"
	"testing"
)

func TestMeta(t *testing.T) {
	code, out, errOut := program(t, newWorld, "meta --seeds 60 --ops 30")
	if code != exitOK || !strings.Contains(out, "all hashes equal") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// A world that carries something over from seed to seed is found out.
func TestMetaFindsAUsedWorld(t *testing.T) {
	used := true // the world that is kept is the first one
	p := func() simulator {
		w := &planted{}
		if used {
			w.skew, used = 1, false
		}
		return w
	}
	code, out, errOut := program(t, p, "meta --seeds 5 --from 40")
	for _, want := range []string{"in a fresh world", "in a used world", "after event 64, and not later than event 128", "meta --profile disk --seeds 1 --from 40"} {
		if code != exitFailed || !strings.Contains(errOut, want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, out, errOut)
		}
	}
}

// A process that runs a seed otherwise is found out: here the other process has the real world.
func TestMetaFindsAnotherProcess(t *testing.T) {
	p := func() simulator { return &planted{} }
	code, out, errOut := program(t, p, "meta --seeds 5 --ops 10")
	if code != exitFailed || !strings.Contains(errOut, "in another process, GOMAXPROCS=") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

func TestFirstLine(t *testing.T) {
	if n, _, _ := firstLine("a\nb\n", "a\nb\n"); n != 0 {
		t.Errorf("line %d of equal texts", n)
	}
	if n, a, b := firstLine("a\nb", "a\nc"); n != 2 || a != "b" || b != "c" {
		t.Errorf("line %d: %q, %q", n, a, b)
	}
	if n, a, b := firstLine("a", "a\nc"); n != 2 || a != "(the end)" || b != "c" {
		t.Errorf("line %d: %q, %q", n, a, b)
	}
}
