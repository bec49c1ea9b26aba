package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"varve/sim"
)

// simulator runs schedules, one after another. It is *sim.World, except where a test plants one.
type simulator interface {
	Run(s *sim.Schedule) *sim.Result
	Hashes() []uint64
}

func newWorld() simulator { return sim.NewWorld() }

// job is a range of seeds to run.
type job struct {
	from, seeds uint64
	workers     int
	ops         int           // operations a seed; 0: drawn
	limit       time.Duration // 0: none
	all         bool          // go on after a violation
	world       func() simulator
}

// violation is a property that a seed violated.
type violation struct {
	Seed  uint64
	Check string // the property by its id
	Text  string
	Stack string // of a panic
}

// replay returns the line that runs the seed again.
func (v *violation) replay(ops int) string {
	return fmt.Sprintf("varve-sim replay %d --profile disk --ops %d", v.Seed, ops)
}

// totals are sums over seeds. They do not depend on how the seeds were spread over workers.
type totals struct {
	seeds, events, ops, appends, acked, lives, refused, violations uint64

	digest uint64            // of all hashes
	first  *violation        // of the lowest seed
	checks map[string]uint64 // violations by property
	marks  sim.MarkCounts
	wall   time.Duration
	cpu    time.Duration // of the process, over the run
}

func (t *totals) add(seed uint64, r *sim.Result) {
	t.seeds++
	t.events += uint64(r.Events)
	t.ops += uint64(r.Ops)
	t.appends += uint64(r.Appends)
	t.acked += uint64(r.Acked)
	t.lives += uint64(r.Lives)
	if r.Refused {
		t.refused++
	}
	t.marks.Add(&r.Marks)
	x := (r.Hash ^ seed*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	t.digest += x ^ x>>32 // a sum: the order of the seeds does not matter
}

func (t *totals) violated(v *violation) {
	t.violations++
	t.checks[v.Check]++
	if t.first == nil || v.Seed < t.first.Seed {
		t.first = v
	}
}

func (t *totals) join(o *totals) {
	t.seeds, t.events, t.ops, t.appends = t.seeds+o.seeds, t.events+o.events, t.ops+o.ops, t.appends+o.appends
	t.acked, t.lives, t.refused = t.acked+o.acked, t.lives+o.lives, t.refused+o.refused
	t.digest += o.digest
	t.marks.Join(&o.marks)
	t.violations += o.violations
	for check, n := range o.checks {
		t.checks[check] += n
	}
	if o.first != nil && (t.first == nil || o.first.Seed < t.first.Seed) {
		t.first = o.first
	}
}

// missing returns the marks that no seed reached.
func (t *totals) missing() []string {
	names := []string{}
	for _, m := range t.marks.List() {
		if m.Runs == 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// run runs the seeds. Worker i of n takes each n-th seed from the i-th on. After a violation the
// others go on only below its seed, so that the first violation is the lowest one whatever the
// number of workers. A context that ends ends the run early.
func (j *job) run(ctx context.Context, p *progress) *totals {
	if j.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.limit)
		defer cancel()
	}
	workers := make([]*worker, j.workers)
	var lowest atomic.Uint64
	lowest.Store(^uint64(0))
	began, cpu := time.Now(), cpuTime()
	var running sync.WaitGroup
	for i := range workers {
		w := &worker{job: j, lowest: &lowest, totals: totals{checks: map[string]uint64{}}}
		workers[i] = w
		running.Go(func() { w.run(ctx, uint64(i)) })
	}
	finished := make(chan struct{})
	go func() {
		running.Wait()
		close(finished)
	}()
	watch(workers, finished, p)
	sum := &totals{checks: map[string]uint64{}}
	for _, w := range workers {
		sum.join(&w.totals)
	}
	sum.wall, sum.cpu = time.Since(began), cpuTime()-cpu
	return sum
}

// watch keeps the progress line until the workers have finished.
func watch(workers []*worker, finished <-chan struct{}, p *progress) {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	defer p.done()
	for {
		select {
		case <-finished:
			return
		case <-ticker.C:
			n := uint64(0)
			for _, w := range workers {
				n += w.done.Load()
			}
			p.at(n)
		}
	}
}

// worker runs its share of the seeds, in a world of its own.
type worker struct {
	job    *job
	lowest *atomic.Uint64 // lowest seed with a violation
	done   atomic.Uint64
	totals totals
	world  simulator
	s      sim.Schedule
}

func (w *worker) run(ctx context.Context, first uint64) {
	j := w.job
	for i := first; i < j.seeds && ctx.Err() == nil; i += uint64(j.workers) {
		seed := j.from + i
		if !j.all && seed > w.lowest.Load() {
			return
		}
		if v := w.seed(seed); v != nil {
			w.totals.violated(v)
			for low := w.lowest.Load(); seed < low && !w.lowest.CompareAndSwap(low, seed); {
				low = w.lowest.Load()
			}
		}
		w.done.Add(1)
	}
}

// seed runs one seed and returns what it violated. A panic is a violation.
func (w *worker) seed(seed uint64) (v *violation) {
	defer func() {
		if p := recover(); p != nil {
			v = &violation{Seed: seed, Check: "panic", Text: fmt.Sprint(p), Stack: string(debug.Stack())}
			w.world = nil // it may be in any state
			w.totals.seeds++
		}
	}()
	if w.world == nil {
		w.world = w.job.world()
	}
	sim.Expand(&w.s, seed, w.job.ops)
	r := w.world.Run(&w.s)
	w.totals.add(seed, r)
	if r.Violation == "" {
		return nil
	}
	return &violation{Seed: seed, Check: r.Check, Text: r.Violation}
}

// traced runs a seed in a new world and returns its timeline and result; the timeline of a run that
// panicked ends with the stack.
func traced(seed uint64, ops int) (timeline string, r *sim.Result) {
	var s sim.Schedule
	sim.Expand(&s, seed, ops)
	var text strings.Builder
	r = runTraced(sim.NewWorld(), &s, &text)
	return text.String(), r
}

// stackOf returns the stack in a timeline, "" if there is none.
func stackOf(timeline string) string {
	if at := strings.LastIndex(timeline, "\ngoroutine "); at >= 0 {
		return timeline[at+1:]
	}
	return ""
}

// cpuTime is what the process has used so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
