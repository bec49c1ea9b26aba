package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// cell is one workload on one store: the median of its rounds.
type cell struct {
	Workload string `json:"workload"`
	Store    string `json:"store"`
	Writers  int    `json:"writers"`
	Bytes    int    `json:"record_bytes"`
	measurement
	rounds []measurement
}

func (c *cell) name() string {
	return fmt.Sprintf("%s, %s, %d writers", c.Workload, c.Store, c.Writers)
}

// median sets each figure of the cell to the median of its rounds.
func (c *cell) median() {
	of := func(f func(*measurement) *float64) {
		values := make([]float64, len(c.rounds))
		for i := range c.rounds {
			values[i] = *f(&c.rounds[i])
		}
		slices.Sort(values)
		*f(&c.measurement) = values[len(values)/2]
	}
	of(func(m *measurement) *float64 { return &m.RecordsPerSecond })
	of(func(m *measurement) *float64 { return &m.MBPerSecond })
	of(func(m *measurement) *float64 { return &m.P50 })
	of(func(m *measurement) *float64 { return &m.P99 })
	of(func(m *measurement) *float64 { return &m.CPUPerRecord })
	of(func(m *measurement) *float64 { return &m.RecordsPerCommit })
	of(func(m *measurement) *float64 { return &m.AllocsPerRecord })
}

// report is the result of a run.
type report struct {
	CPUs    int     `json:"cpus"`
	Seconds float64 `json:"seconds"`
	Rounds  int     `json:"rounds"`
	Cells   []*cell `json:"cells"`
	Goals   []goal  `json:"goals"`
}

// goal is one comparison with PERFORMANCE.md's figures.
type goal struct {
	ID      string  `json:"id"`
	What    string  `json:"what"`
	Value   float64 `json:"value"`
	Want    float64 `json:"want"`
	Stretch float64 `json:"stretch,omitempty"`
	Most    bool    `json:"at_most,omitempty"` // the value must not exceed Want
	Met     bool    `json:"met"`
}

// verdict says how the goal fared.
func (g *goal) verdict() string {
	switch {
	case !g.Met:
		return "MISSED"
	case g.Stretch > 0 && g.Value >= g.Stretch:
		return "met, stretch met"
	}
	return "met"
}

// find returns the cell of a workload and store, an empty one if it did not run.
func (r *report) find(workload, store string, writers int) *cell {
	for _, c := range r.Cells {
		if c.Workload == workload && c.Store == store && c.Writers == writers {
			return c
		}
	}
	return &cell{}
}

// best returns the highest rate of the stores for which keep holds.
func (r *report) best(workload string, writers int, keep func(store string) bool) float64 {
	var out float64
	for _, c := range r.Cells {
		if c.Workload == workload && c.Writers == writers && keep(c.Store) {
			out = max(out, c.RecordsPerSecond)
		}
	}
	return out
}

// ratio is 0 where the divisor did not run: then the goal is missed, not met by accident.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// judge fills in the goals from the cells.
func (r *report) judge() {
	durable := func(store string, writers int) float64 {
		return r.find(durableAppends, store, writers).RecordsPerSecond
	}
	peer := func(store string) bool { return store != ourName && store != rawName }
	least := func(id, what string, value, want, stretch float64) {
		r.Goals = append(r.Goals, goal{ID: id, What: what, Value: value, Want: want, Stretch: stretch, Met: value >= want})
	}
	v8, v64, v256 := durable(ourName, 8), durable(ourName, 64), durable(ourName, 256)
	least("G1", "64 writers: varve / tidwall", ratio(v64, durable("tidwall", 64)), 40, 70)
	least("G1", "64 writers: varve / pebble", ratio(v64, durable("pebble", 64)), 2, 2.8)
	least("G1", "64 writers: varve / best peer behind the wrapper", ratio(v64, r.best(durableAppends, 64, isGrouped)), 2, 3.5)
	least("G2", "64 writers: varve / raw ceiling", ratio(v64, durable(rawName, 64)), 0.6, 0.8)
	least("G4", "8 writers: varve / best peer", ratio(v8, r.best(durableAppends, 8, peer)), 2, 0)
	least("G4", "8 writers: records a commit / writers", r.find(durableAppends, ourName, 8).RecordsPerCommit/8, 0.9, 0)
	least("G4", "256 writers: varve / pebble", ratio(v256, durable("pebble", 256)), 1.5, 0)

	batches := r.find(pageCacheBatches, ourName, 1).RecordsPerSecond
	least("G7", "batches of 100, not synced: million records/s", batches/1e6, 5, 0)
	least("G7", "batches of 100, not synced: varve / pebble", ratio(batches, r.find(pageCacheBatches, "pebble", 1).RecordsPerSecond), 1.5, 0)
	least("G7", "AppendAsync, single records: million records/s", r.find(asyncAppends, ourName, 1).RecordsPerSecond/1e6, 1, 0)

	pipelined := func(store string) float64 { return r.find(servedPipelined, store, servedWindow).RecordsPerSecond }
	least("B1", "served, durable, pipelined: varve serve / redis streams, appendfsync always", ratio(pipelined(nodeName), pipelined("redis streams")), 5, 0)
	least("B1", "served, durable, pipelined: varve serve / jetstream, sync always", ratio(pipelined(nodeName), pipelined("jetstream")), 50, 0)
	relay, raw := r.find(servedRelay, nodeName, 1), r.find(servedRelay, rawName, 1)
	above := goal{ID: "B2", What: "served, producer to reader: p50 above a raw sync, us", Value: relay.P50 - raw.P50, Want: 100, Most: true}
	above.Met = relay.RecordsPerSecond > 0 && raw.RecordsPerSecond > 0 && above.Value <= above.Want
	r.Goals = append(r.Goals, above)

	small, large := r.find(read128, ourName, 1), r.find(read1024, ourName, 1)
	least("G8", "verified read, 128 B: million records/s", small.RecordsPerSecond/1e6, 15, 0)
	least("G8", "verified read, 1 KiB: GB/s", large.MBPerSecond/1e3, 4, 0)
	allocs := goal{ID: "G8", What: "verified read, 128 B: allocations a record", Value: small.AllocsPerRecord, Want: 0.001, Most: true}
	allocs.Met = small.RecordsPerSecond > 0 && allocs.Value <= allocs.Want
	r.Goals = append(r.Goals, allocs)
}

// print writes the tables.
func (r *report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "workload\tstore\twriters\trecords/s\tMB/s\tp50 us\tp99 us\tCPU us/record\trecords/commit\tallocs/record\t")
	for _, c := range r.Cells {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.1f\t%.1f\t%.1f\t%.3f\t%.1f\t%.3f\t\n", c.Workload, c.Store, c.Writers,
			c.RecordsPerSecond, c.MBPerSecond, c.P50, c.P99, c.CPUPerRecord, c.RecordsPerCommit, c.AllocsPerRecord)
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil || len(r.Goals) == 0 {
		return err
	}
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "goal\twhat\tvalue\twanted\tverdict")
	for i := range r.Goals {
		g := &r.Goals[i]
		sign := ">="
		if g.Most {
			sign = "<="
		}
		fmt.Fprintf(w, "%s\t%s\t%.3g\t%s %.3g\t%s\n", g.ID, g.What, g.Value, sign, g.Want, g.verdict())
	}
	return w.Flush()
}
