package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"varve/sim"
)

// worker runs its share of the seeds, in a world of its own.
type worker struct {
	job    *job
	found  *findings
	done   atomic.Uint64
	at     atomic.Uint64 // the seed at hand
	since  atomic.Int64  // when it began, Unix nanoseconds; 0: none is at hand
	hangs  bool          // watch has given it up
	totals totals
	runner runner
	s      sim.Schedule

	compared []compared
}

func (w *worker) run(ctx context.Context, first uint64) {
	j := w.job
	for i := first; i < j.seeds && ctx.Err() == nil; i += uint64(j.workers) {
		seed := j.from + i*j.stride
		if seed > w.found.bound.Load() {
			break
		}
		w.at.Store(seed)
		w.since.Store(time.Now().UnixNano())
		if v := w.seed(seed); v != nil {
			w.found.add(v)
		}
		w.done.Add(1)
	}
	w.since.Store(0)
}

// checkHang is what a seed violates that does not end.
const checkHang = "hang"

// hung reports whether the seed at hand just turned out to hang. That is a violation, and the worker
// is given up.
func (w *worker) hung(now time.Time) bool {
	since := w.since.Load()
	if w.hangs || w.job.hang == 0 || since == 0 || now.UnixNano()-since < int64(w.job.hang) {
		return false
	}
	w.hangs = true
	w.found.hang(&violation{Seed: w.at.Load(), Check: checkHang, Text: fmt.Sprintf("no end after %v", w.job.hang)})
	return true
}

// seed runs one seed and returns what it violated. A panic is a violation.
func (w *worker) seed(seed uint64) *violation {
	sim.ExpandMix(&w.s, w.job.mix, seed, w.job.ops)
	o := w.runner.run(&w.s)
	if o.result == nil {
		w.totals.seeds++
	} else {
		w.totals.add(seed, o.result)
	}
	for i := range w.compared {
		w.compared[i].seed(w, seed, &o)
	}
	if o.check == "" {
		return nil
	}
	v := &violation{Seed: seed, Check: o.check, Text: o.text, Stack: o.stack}
	if o.result != nil {
		v.marks = o.result.Marks
	}
	return v
}
