package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestGoals gives one of the stores' figures at a time and looks at the verdicts.
func TestGoals(t *testing.T) {
	r := report{Cells: []*cell{
		{Workload: durableAppends, Store: ourName, Writers: 64, measurement: measurement{RecordsPerSecond: 450e3}},
		{Workload: durableAppends, Store: rawName, Writers: 64, measurement: measurement{RecordsPerSecond: 500e3}},
		{Workload: durableAppends, Store: "tidwall", Writers: 64, measurement: measurement{RecordsPerSecond: 10e3}},
		{Workload: durableAppends, Store: "tidwall+group", Writers: 64, measurement: measurement{RecordsPerSecond: 130e3}},
		{Workload: durableAppends, Store: "pebble", Writers: 64, measurement: measurement{RecordsPerSecond: 300e3}},
		{Workload: durableAppends, Store: ourName, Writers: 8, measurement: measurement{RecordsPerSecond: 60e3, RecordsPerCommit: 7.1}},
		{Workload: durableAppends, Store: "etcd", Writers: 8, measurement: measurement{RecordsPerSecond: 30e3}},
		{Workload: durableAppends, Store: "tidwall", Writers: 8, measurement: measurement{RecordsPerSecond: 20e3}},
		{Workload: read128, Store: ourName, Writers: 1, measurement: measurement{RecordsPerSecond: 20e6, AllocsPerRecord: 0.01}},
	}}
	r.judge()
	want := map[string]string{
		"64 writers: varve / tidwall":                      "met",
		"64 writers: varve / pebble":                       "MISSED",
		"64 writers: varve / best peer behind the wrapper": "met",
		"64 writers: varve / raw ceiling":                  "met, stretch met",
		"8 writers: varve / best peer":                     "met",
		"8 writers: records a commit / writers":            "MISSED",
		"256 writers: varve / pebble":                      "MISSED",
		"verified read, 128 B: million records/s":          "met",
		"verified read, 128 B: allocations a record":       "MISSED",
		"verified read, 1 KiB: GB/s":                       "MISSED",
	}
	for i := range r.Goals {
		g := &r.Goals[i]
		if verdict, ok := want[g.What]; ok && g.verdict() != verdict {
			t.Errorf("%s = %v: %s, want %s", g.What, g.Value, g.verdict(), verdict)
		}
		delete(want, g.What)
	}
	for what := range want {
		t.Errorf("no goal %q", what)
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil || !strings.Contains(out.String(), "MISSED") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}

func TestMedian(t *testing.T) {
	c := cell{rounds: []measurement{{P50: 9, P99: 1}, {P50: 1, P99: 5}, {P50: 3, P99: 7}}}
	c.median()
	if c.P50 != 3 || c.P99 != 5 {
		t.Errorf("medians %v, %v, want 3, 5", c.P50, c.P99)
	}
}
