package main

import "sync"

// group is a plain group commit in front of any store: callers gather while a commit is under way,
// and the next commit takes all of them. It is what a careful user of a store without one would
// write, so that a peer is not beaten for the lack of twenty lines.
type group struct {
	store
	counter
	mu      sync.Mutex
	wake    sync.Cond
	next    *cohort
	closing bool
	done    chan struct{}
}

// cohort is the callers that share one commit.
type cohort struct {
	recs [][]byte
	done chan struct{}
	err  error
}

func newGroup(s store) *group {
	g := &group{store: s, next: newCohort(), done: make(chan struct{})}
	g.wake.L = &g.mu
	go g.loop()
	return g
}

func newCohort() *cohort { return &cohort{done: make(chan struct{})} }

func (g *group) append(recs [][]byte) error {
	g.mu.Lock()
	c := g.next
	c.recs = append(c.recs, recs...)
	g.mu.Unlock()
	g.wake.Signal()
	<-c.done
	return c.err
}

// loop commits one cohort after the other until close.
func (g *group) loop() {
	defer close(g.done)
	for {
		g.mu.Lock()
		for len(g.next.recs) == 0 && !g.closing {
			g.wake.Wait()
		}
		c := g.next
		if len(c.recs) == 0 {
			g.mu.Unlock()
			return
		}
		g.next = newCohort()
		g.mu.Unlock()
		c.err = g.store.append(c.recs)
		g.n.Add(1)
		close(c.done)
	}
}

func (g *group) commits() uint64 { return g.counter.commits() }

func (g *group) close() error {
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	g.wake.Signal()
	<-g.done
	return g.store.close()
}
