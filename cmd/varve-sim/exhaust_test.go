//go:build !mutant

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func exhaustReport(t *testing.T, args string) (code int, r exhaustJSON) {
	t.Helper()
	code, out, errOut := program(t, newWorld, "exhaust --json "+args)
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%s: %v\n%s%s", args, err, out, errOut)
	}
	return code, r
}

// The whole scope is gone through, and what is found there does not depend on the number of workers,
// who race for each state.
func TestExhaustDoesNotDependOnWorkers(t *testing.T) {
	var first exhaustJSON
	for workers := 1; workers <= 3; workers++ {
		code, r := exhaustReport(t, fmt.Sprintf("--ops 1 --workers %d", workers))
		if code != exitOK || !r.Whole || r.Done != r.Sequences || r.Violations != 0 || r.States[0] == 0 || r.States[1] == 0 {
			t.Fatalf("exit code %d, report %+v", code, r)
		}
		r.Workers, r.Seconds, r.CPUSeconds = 0, 0, 0
		if workers == 1 {
			first = r
		} else if !reflect.DeepEqual(r, first) {
			t.Errorf("%d workers:\n%+v\n1 worker:\n%+v", workers, r, first)
		}
	}
}

// The text says what was covered; a part is called a part.
func TestExhaustText(t *testing.T) {
	code, out, _ := program(t, newWorld, "exhaust --ops 0")
	if code != exitOK || !strings.Contains(out, "covered     the whole scope: all 3 sequences") || !strings.Contains(out, "violations  0") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	e := exhaust{done: 20, lengths: []int{3, 17}}
	e.scope.Ops = 1
	if got, want := e.covered(), "a part: 3 of 3 with 0 operations, 17 of 27 with 1 operations"; got != want {
		t.Errorf("covered: %q, want %q", got, want)
	}
}

func TestExhaustReplayAndUsage(t *testing.T) {
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"exhaust --replay on_commit:append@3.after=0x0@rest=kill": {exitOK, "outcome     good"},
		"exhaust --replay on_commit:append@900=kill":              {exitFailed, "no such crash point"},
		"exhaust --replay on_commit:upend":                        {exitFailed, "operation 1 of the case"},
		"exhaust --ops 7":                                         {exitUsage, "--ops 7: want 0 to 6"},
		"exhaust --minutes=-1":                                    {exitUsage, "--minutes -1"},
		"exhaust --workers=-1":                                    {exitUsage, "--workers -1"},
	} {
		code, out, errOut := program(t, newWorld, args)
		if code != want.code || !strings.Contains(out+errOut, want.text) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", args, code, want.code, want.text, out, errOut)
		}
	}
}
