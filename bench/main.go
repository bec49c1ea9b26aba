// Command bench compares Varve with other embedded logs: the same workloads, interleaved in one
// run, so that a slow minute of the machine hits all of them. It prints a table of medians, the
// goals of PERFORMANCE.md that are ratios to others, and with -json a file of the same.
//
// Each peer runs as shipped and once more behind one plain group commit (group.go). Every append
// run is read back and counted. A module of its own keeps the peers out of Varve's dependencies.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Names of workloads and of stores that the goals speak of.
const (
	durableAppends   = "durable append"
	pageCacheBatches = "batches of 100, not synced"
	asyncAppends     = "single, async, not synced"
	read128          = "read 128 B"
	read1024         = "read 1 KiB"
	servedDurable    = "served, durable"
	servedRelaxed    = "served, not waiting for the disk"
	servedPipelined  = "served, durable, pipelined"
	servedRelay      = "served, producer to reader"

	rawName   = "raw"
	ourName   = "varve"
	nodeName  = "varve serve"
	bareName  = "bare relay"
	notSynced = ", not synced"

	servedWriters = 1000   // callers that wait for an answer: so many records are on their way
	servedWindow  = 10_000 // records on their way of a client that pipelines

	tmpfsMagic = 0x01021994
)

func isGrouped(store string) bool { return strings.HasSuffix(store, "+group") }

// plan is what to run and for how long.
type plan struct {
	dir     string
	length  time.Duration
	rounds  int
	writers []int
	records int // in the logs of the read workloads: this many of 128 B, a quarter of 1 KiB
	only    string
	smoke   bool // the figures mean nothing: no goals
}

// job is one cell and how to run it once.
type job struct {
	cell *cell
	run  func() (measurement, error)
}

func main() {
	var (
		seconds = flag.Float64("seconds", 2, "length of one cell")
		rounds  = flag.Int("rounds", 3, "interleaved rounds; the table shows their medians")
		dir     = flag.String("dir", "", "directory on the disk to measure (default: the temporary directory)")
		out     = flag.String("json", "", "write the results to this file")
		only    = flag.String("only", "", "run only cells whose \"workload/store\" contains this")
		smoke   = flag.Bool("smoke", false, "a moment of each cell, to see that it works; the figures mean nothing")
		gate    = flag.Bool("gate", false, "exit 1 if a goal is missed")
	)
	flag.Parse()
	p := plan{
		dir: *dir, length: time.Duration(*seconds * float64(time.Second)), rounds: *rounds,
		writers: []int{1, 8, 64, 256}, records: 1 << 20, only: *only,
	}
	if *smoke {
		p.length, p.rounds, p.writers, p.records, p.smoke = 10*time.Millisecond, 1, []int{8}, 1000, true
	}
	if flag.NArg() > 0 || p.length <= 0 || p.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(p, *out, *gate); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run carries out a plan and reports.
func run(p plan, out string, gate bool) error {
	warnMemory(p.dir)
	stderr, err := os.Stderr.Stat()
	terminal := err == nil && stderr.Mode()&os.ModeCharDevice != 0
	jobs := p.jobs()
	for round := range p.rounds {
		for i, j := range jobs {
			if terminal {
				fmt.Fprintf(os.Stderr, "\rround %d of %d, cell %d of %d: %-60s", round+1, p.rounds, i+1, len(jobs), j.cell.name())
			}
			m, err := j.run()
			if err != nil {
				return fmt.Errorf("%s: %w", j.cell.name(), err)
			}
			j.cell.rounds = append(j.cell.rounds, m)
		}
	}
	if terminal {
		fmt.Fprintln(os.Stderr)
	}
	r := report{CPUs: runtime.NumCPU(), Seconds: p.length.Seconds(), Rounds: p.rounds}
	for _, j := range jobs {
		j.cell.median()
		r.Cells = append(r.Cells, j.cell)
	}
	if !p.smoke {
		r.judge()
	}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	if out != "" {
		text, err := json.MarshalIndent(&r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(out, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	for _, g := range r.Goals {
		if gate && !g.Met {
			return errors.New("a goal is missed")
		}
	}
	return nil
}

// jobs lists the cells of a plan; those that are compared with each other stand together.
func (p *plan) jobs() []job {
	var out []job
	add := func(workload, store string, writers, bytes int, run func() (measurement, error)) {
		if strings.Contains(workload+"/"+store, p.only) {
			c := &cell{Workload: workload, Store: store, Writers: writers, Bytes: bytes}
			out = append(out, job{cell: c, run: run})
		}
	}
	for _, n := range p.writers {
		add(durableAppends, rawName, n, recordBytes, func() (measurement, error) { return ceiling(p.dir, n, p.length) })
		for _, c := range contenders(true) {
			add(durableAppends, c.name, n, recordBytes, func() (measurement, error) {
				return appends(c, p.dir, true, n, 1, p.length)
			})
		}
	}
	writers, window := servedWriters, servedWindow
	if p.smoke {
		writers, window = 8, 100
	}
	for _, c := range served {
		add(servedPipelined, c.name, window, recordBytes, func() (measurement, error) {
			return pipelined(c, p.dir, window, p.length)
		})
	}
	for _, workload := range []string{servedDurable, servedRelaxed} {
		for _, c := range served {
			add(workload, c.name, writers, recordBytes, func() (measurement, error) {
				return appends(c, p.dir, workload == servedDurable, writers, 1, p.length)
			})
		}
	}
	add(servedRelay, rawName, 1, recordBytes, func() (measurement, error) { return ceiling(p.dir, 1, p.length) })
	for _, sync := range []bool{true, false} {
		suffix := ""
		if !sync {
			suffix = notSynced
		}
		add(servedRelay, bareName+suffix, 1, recordBytes, func() (measurement, error) { return relayed(openBare, p.dir, sync, p.length) })
		add(servedRelay, nodeName+suffix, 1, recordBytes, func() (measurement, error) { return relayed(openRelayNode, p.dir, sync, p.length) })
	}
	for _, c := range contenders(false) {
		add(pageCacheBatches, c.name, 1, recordBytes, func() (measurement, error) {
			return appends(c, p.dir, false, 1, batchSize, p.length)
		})
	}
	for _, c := range ours {
		add(asyncAppends, c.name, 1, recordBytes, func() (measurement, error) { return async(p.dir, p.length) })
	}
	for _, c := range contenders(false) {
		add(read128, c.name, 1, recordBytes, func() (measurement, error) {
			return reads(c, p.dir, recordBytes, p.records, p.length)
		})
	}
	for _, c := range contenders(false) {
		add(read1024, c.name, 1, 1024, func() (measurement, error) {
			return reads(c, p.dir, 1024, p.records/4, p.length)
		})
	}
	return out
}

// warnMemory says so if the directory is in memory, where a sync costs nothing.
func warnMemory(dir string) {
	if dir == "" {
		dir = os.TempDir()
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err == nil && s.Type == tmpfsMagic {
		fmt.Fprintf(os.Stderr, "%s is in memory: durable figures mean nothing there; give -dir\n", dir)
	}
}
