//go:build !mutant

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"varve/sim"
)

// exhaust goes through a small scope with several workers, and sums up what they found.
type exhaust struct {
	scope   sim.Scope
	workers int
	limit   time.Duration // 0: none

	counts  sim.ExhaustCounts
	done    int   // sequences
	lengths []int // of them, by length
	digest  uint64
	found   *sim.Found
	wall    time.Duration
	cpu     time.Duration
}

// run goes through the sequences in order, each worker taking the next one. What they have met
// before they share, so which of them goes into a state is a matter of chance; the states are not.
// If one of them finds a violation, all is done again in order by one worker, up to the first
// violation, so that this one does not depend on chance either.
func (e *exhaust) run(ctx context.Context, p *progress) {
	began, cpu := time.Now(), cpuTime()
	if e.pass(ctx, p, e.workers); e.found != nil && e.workers > 1 {
		e.pass(ctx, p, 1)
	}
	e.wall, e.cpu = time.Since(began), cpuTime()-cpu
}

func (e *exhaust) pass(ctx context.Context, p *progress, workers int) {
	*e = exhaust{scope: e.scope, workers: e.workers, limit: e.limit, lengths: make([]int, e.scope.Ops+1)}
	ctx, cancel := context.WithCancel(ctx)
	if e.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, e.limit)
	}
	defer cancel()
	seen := newStates(ctx)
	var next, done atomic.Int64
	var mu sync.Mutex
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			x := sim.NewExplorer(seen)
			for {
				i := int(next.Add(1)) - 1
				if i >= e.scope.Len() || seen.Stop() {
					break
				}
				c := e.scope.Case(i)
				found := x.Explore(c)
				mu.Lock()
				switch {
				case found != nil:
					e.found = found
					cancel()
				case !seen.Stop():
					e.done++
					e.lengths[c.Len]++
				}
				mu.Unlock()
				done.Add(1)
			}
			mu.Lock()
			e.counts.Add(&x.Counts)
			mu.Unlock()
		})
	}
	finished := make(chan struct{})
	go func() {
		running.Wait()
		close(finished)
	}()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	defer p.done()
	for {
		select {
		case <-finished:
			e.digest = seen.digest()
			return
		case <-ticker.C:
			p.at(uint64(done.Load()))
		}
	}
}

// states is what was met before, for all workers: a set of hashes for each kind of state.
type states struct {
	ctx    context.Context
	shards [64]shard
}

type shard struct {
	mu   sync.Mutex
	sets [sim.StateKinds]map[uint64]struct{}
	_    [64]byte // keeps the locks of two shards apart
}

func newStates(ctx context.Context) *states {
	s := &states{ctx: ctx}
	for i := range s.shards {
		for j := range s.shards[i].sets {
			s.shards[i].sets[j] = make(map[uint64]struct{})
		}
	}
	return s
}

// New implements sim.Seen.
func (s *states) New(kind sim.StateKind, state uint64) bool {
	h := &s.shards[state>>58]
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.sets[kind]
	before := len(set)
	set[state] = struct{}{}
	return len(set) > before
}

// Stop implements sim.Seen.
func (s *states) Stop() bool { return s.ctx.Err() != nil }

// digest sums up all states; their order does not matter.
func (s *states) digest() uint64 {
	var sum uint64
	for i := range s.shards {
		for kind, set := range s.shards[i].sets {
			for state := range set {
				x := (state ^ uint64(kind)*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
				sum += x ^ x>>32
			}
		}
	}
	return sum
}
