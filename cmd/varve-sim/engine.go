package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
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
	stride      uint64 // between two seeds
	shard       seedShard
	workers     int
	mix         sim.Mix
	ops         int           // operations a seed; 0: drawn
	limit       time.Duration // 0: none
	all         bool          // go on after a violation
	detections  uint64        // with all: end at that many violations; 0: go on
	hang        time.Duration // a seed that takes longer hangs; 0: none does
	without     []string      // is left out
	compare     []*comparison // seeds with one thing more left out
	world       func() simulator
}

// enough is the number of violations, those of the lowest seeds, at which the run ends; 0: never.
func (j *job) enough() int {
	if !j.all {
		return 1
	}
	return int(min(j.detections, math.MaxInt32))
}

// violation is a property that a seed violated.
type violation struct {
	Seed  uint64
	Check string // the property by its id
	Text  string
	Stack string // of a panic
	marks sim.Marks
}

// replay returns the line that runs the seed again.
func (v *violation) replay(j *job) string {
	line := fmt.Sprintf("varve-sim replay %d --profile %s --ops %d", v.Seed, j.mix, j.ops)
	if len(j.without) > 0 {
		line += " --without " + strings.Join(j.without, ",")
	}
	return line
}

// totals are sums over seeds. They do not depend on how the seeds were spread over workers, but for
// the seeds that others had gone on to when a run ended early.
type totals struct {
	seeds, events, ops, appends, acked, lives, refused, violations uint64

	digest uint64            // of all hashes
	first  *violation        // of the lowest seed
	checks map[string]uint64 // violations by property
	groups groups            // violations that look alike
	struck sim.MarkCounts    // in the seeds that violated a property
	marks  sim.MarkCounts
	spared map[string][]uint64 // by what more was left out: the seeds that violated a property all the same
	wall   time.Duration
	cpu    time.Duration // of the process, over the run
}

func newTotals() *totals { return &totals{checks: map[string]uint64{}, groups: groups{}} }

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
	t.groups.add(v, 1)
	t.struck.Add(&v.marks)
	if t.first == nil || v.Seed < t.first.Seed {
		t.first = v
	}
}

// join adds what another worker ran. Violations are counted by findings.
func (t *totals) join(o *totals) {
	t.seeds, t.events, t.ops, t.appends = t.seeds+o.seeds, t.events+o.events, t.ops+o.ops, t.appends+o.appends
	t.acked, t.lives, t.refused = t.acked+o.acked, t.lives+o.lives, t.refused+o.refused
	t.digest += o.digest
	t.marks.Join(&o.marks)
}

// gather adds what another run of the same job found.
func (t *totals) gather(o *totals) {
	t.join(o)
	t.wall, t.cpu = t.wall+o.wall, t.cpu+o.cpu
	t.violations += o.violations
	for check, n := range o.checks {
		t.checks[check] += n
	}
	for _, g := range o.groups {
		t.groups.add(g.Lowest, g.Count)
	}
	t.struck.Join(&o.struck)
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

// run runs the seeds. Worker i of n takes each n-th seed from the i-th on. Once there are violations
// enough, the others go on only below the last of them, so that those of the lowest seeds are found
// whatever the number of workers. A context that ends ends the run early, and so does a seed that hangs.
func (j *job) run(ctx context.Context, p *progress) *totals {
	if j.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.limit)
		defer cancel()
	}
	found := newFindings(j.enough())
	workers := make([]*worker, j.workers)
	began, cpu := time.Now(), cpuTime()
	finished := make(chan *worker, len(workers))
	for i := range workers {
		w := &worker{job: j, found: found, runner: runner{newWorld: j.world}}
		for _, c := range j.compare {
			w.compared = append(w.compared, compared{comparison: c, runner: runner{newWorld: c.world}})
		}
		workers[i] = w
		go func() {
			w.run(ctx, uint64(i))
			finished <- w
		}()
	}
	sum := watch(workers, finished, p)
	found.report(sum)
	if found.full() && j.all {
		sum.seeds = (found.last()-j.from)/j.stride + 1
		sum.cutCompared(found.last())
	}
	sum.wall, sum.cpu = time.Since(began), cpuTime()-cpu
	return sum
}

// watch keeps the progress line until the workers have finished or hang, and sums up what they did.
// What a worker that hangs did is lost, but for its violations: nobody can ask it.
func watch(workers []*worker, finished <-chan *worker, p *progress) *totals {
	sum := newTotals()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	defer p.done()
	for left := len(workers); left > 0; {
		select {
		case w := <-finished:
			if !w.hangs {
				left--
				sum.join(&w.totals)
				sum.joinCompared(w.compared)
			}
		case now := <-ticker.C:
			n := uint64(0)
			for _, w := range workers {
				n += w.done.Load()
				if w.hung(now) {
					left--
				}
			}
			p.at(n)
		}
	}
	return sum
}

// findings are the violations of the lowest seeds. All workers share them.
type findings struct {
	bound atomic.Uint64 // no seed above it is of interest

	lock   sync.Mutex
	enough int          // how many to keep; 0: all of them are counted
	kept   []*violation // by seed
	all    totals       // if all are counted
}

func newFindings(enough int) *findings {
	f := &findings{enough: enough, all: *newTotals()}
	f.bound.Store(math.MaxUint64)
	return f
}

func (f *findings) add(v *violation) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.enough == 0 {
		f.all.violated(v)
		return
	}
	at, _ := slices.BinarySearchFunc(f.kept, v.Seed, func(x *violation, seed uint64) int { return cmp.Compare(x.Seed, seed) })
	f.kept = slices.Insert(f.kept, at, v)
	f.cut()
}

// hang ends the run at a seed: what lies above it will not be known.
func (f *findings) hang(v *violation) {
	f.add(v)
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.enough > 0 {
		at := slices.Index(f.kept, v)
		if at < 0 {
			return
		}
		f.enough = at + 1
	}
	f.cut()
	f.bound.Store(min(f.bound.Load(), v.Seed))
}

// cut drops what is above the last one wanted.
func (f *findings) cut() {
	if f.enough > 0 && len(f.kept) >= f.enough {
		f.kept = f.kept[:f.enough]
		f.bound.Store(f.kept[f.enough-1].Seed)
	}
}

// full reports whether the run ended with its last violation.
func (f *findings) full() bool { return f.enough > 0 && len(f.kept) == f.enough }

// last is the seed of that one.
func (f *findings) last() uint64 { return f.kept[len(f.kept)-1].Seed }

// report takes the violations into the sum of a run that has ended.
func (f *findings) report(t *totals) {
	f.lock.Lock()
	defer f.lock.Unlock()
	t.violations, t.checks, t.groups, t.first, t.struck = f.all.violations, f.all.checks, f.all.groups, f.all.first, f.all.struck
	for _, v := range f.kept {
		t.violated(v)
	}
}

// traced runs a seed in a new world and returns its timeline and result; the timeline of a run that
// panicked ends with the stack.
func traced(mix sim.Mix, seed uint64, ops int) (timeline string, r *sim.Result) {
	var s sim.Schedule
	sim.ExpandMix(&s, mix, seed, ops)
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
