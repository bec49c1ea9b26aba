package topics

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// client believes what outcomes say.
type client struct {
	w        *world
	topics   map[string]*belief
	ids      map[int64]bool
	requests int
}

// belief is what a client may know of a topic.
type belief struct {
	may []view // what may be so: one thing, until a request ends unknown
}

// view is one thing that a topic may be.
type view struct {
	exists bool
	count  int32
	config string
}

func newClient(w *world) *client {
	return &client{w: w, topics: map[string]*belief{}, ids: map[int64]bool{}}
}

func (c *client) of(name string) *belief {
	b := c.topics[name]
	if b == nil {
		b = &belief{may: []view{{}}}
		c.topics[name] = b
	}
	return b
}

// outcome changes a belief: every view becomes what then returns of it, as far as the request says it was
// carried out, or stays.
func (b *belief) outcome(err error, then func(v view) (view, error)) {
	var may []view
	add := func(v view) {
		if !slices.Contains(may, v) {
			may = append(may, v)
		}
	}
	unknown := errors.Is(err, ErrUnknown)
	for _, v := range b.may {
		next, bad := then(v)
		switch {
		case err == nil && bad == nil:
			add(next)
		case err == nil: // then it was not this
		case unknown:
			add(v)
			if bad == nil {
				add(next)
			}
		case bad == nil: // failed, and for a reason that v does not give
			if !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrPartitions) {
				add(v)
			}
		case errors.Is(err, bad):
			add(v)
		default: // not even tried
			if !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrPartitions) {
				add(v)
			}
		}
	}
	b.may = may
}

func (c *client) create(name string, count int32) {
	c.requests++
	id := ID{byte(c.requests), byte(c.requests >> 8)}
	t, err := c.w.m.Create(name, count, nil, id, int64(c.requests))
	c.w.request(t, err, func(o Outcome) {
		c.of(name).outcome(o.Err, func(v view) (view, error) {
			if v.exists {
				return v, ErrExists
			}
			return view{exists: true, count: count}, nil
		})
		if len(c.of(name).may) == 0 {
			c.w.wrong("create %s: %v cannot be", name, o.Err)
		}
	})
}

// remove deletes what has a name now: nothing that takes it later.
func (c *client) remove(name string) {
	meant := uint64(0)
	if t := c.w.m.State().Named(name); t != nil {
		meant = t.Incarnation
	}
	t, err := c.w.m.Delete(name, meant)
	c.w.request(t, err, func(o Outcome) {
		now := c.w.m.State().Named(name)
		switch {
		case meant == 0:
		case errors.Is(o.Err, ErrNotFound) && now != nil && now.Incarnation != meant:
			return // what was meant is gone
		case o.Err == nil && o.Incarnation != meant:
			c.w.wrong("delete %s: incarnation %d is deleted, %d was meant", name, o.Incarnation, meant)
		}
		c.of(name).outcome(o.Err, func(v view) (view, error) {
			if !v.exists {
				return v, ErrNotFound
			}
			return view{}, nil
		})
		if len(c.of(name).may) == 0 {
			c.w.wrong("delete %s: %v cannot be", name, o.Err)
		}
	})
}

func (c *client) grow(name string, count int32) {
	t, err := c.w.m.Grow(name, count)
	c.w.request(t, err, func(o Outcome) {
		c.of(name).outcome(o.Err, func(v view) (view, error) {
			if !v.exists {
				return v, ErrNotFound
			}
			if v.count >= count {
				return v, ErrPartitions
			}
			v.count = count
			return v, nil
		})
		if len(c.of(name).may) == 0 {
			c.w.wrong("grow %s to %d: %v cannot be", name, count, o.Err)
		}
	})
}

func (c *client) configure(name, ms string) {
	var before []Pair
	if t := c.w.m.State().Named(name); t != nil {
		before = t.Config
	}
	t, err := c.w.m.Configure(name, before, []Pair{{RetentionMs, ms}})
	c.w.request(t, err, func(o Outcome) {
		c.of(name).outcome(o.Err, func(v view) (view, error) {
			if !v.exists {
				return v, ErrNotFound
			}
			v.config = ms
			return v, nil
		})
		if len(c.of(name).may) == 0 {
			c.w.wrong("configure %s: %v cannot be", name, o.Err)
		}
	})
}

func (c *client) producer() {
	t, err := c.w.m.Producer()
	c.w.request(t, err, func(o Outcome) {
		if o.Err != nil {
			return
		}
		if c.ids[o.Producer] {
			c.w.wrong("producer id %d is given out twice", o.Producer)
		}
		c.ids[o.Producer] = true
	})
}

// check compares what is with what the client may believe.
func (c *client) check() {
	for name, b := range c.topics {
		var is view
		if t := c.w.m.State().Named(name); t != nil {
			is = view{exists: true, count: t.Partitions}
			if n, ok := Number(t.Config, RetentionMs); ok {
				is.config = fmt.Sprint(n)
			}
		}
		if !slices.Contains(b.may, is) {
			c.w.wrong("topic %s is %+v, it may be %+v", name, is, b.may)
		}
	}
}

// script is a life of topics, with requests that come at once.
var script = [][]func(c *client){
	{func(c *client) { c.create("a", 2) }, func(c *client) { c.create("a", 1) }, func(c *client) { c.producer() }},
	{func(c *client) { c.create("b", 1) }, func(c *client) { c.grow("a", 3) }},
	{func(c *client) { c.configure("a", "7") }, func(c *client) { c.grow("a", 4) }},
	{func(c *client) { c.remove("a") }, func(c *client) { c.create("a", 1) }, func(c *client) { c.producer() }},
	{func(c *client) { c.remove("a") }, func(c *client) { c.remove("b") }, func(c *client) { c.create("b", 2) }, func(c *client) { c.grow("b", 3) }},
}

// play plays the script, with a fate for some of its effects.
func play(cfg Config, fates map[int]fate) (effects int, marks MarkSet, err error) {
	w := newWorld(cfg)
	c := newClient(w)
	w.fate = func(Effect) fate {
		effects++
		return fates[effects-1]
	}
	survive := func() {
		for {
			w.settle(first)
			if w.crashed {
				marks |= w.m.Marks()
				w.crash()
				continue
			}
			if p := w.m.Phase(); p == Failed { // of a load: a driver would give up
				marks |= w.m.Marks()
				w.crash()
				continue
			}
			return
		}
	}
	survive()
	for _, requests := range script {
		for _, r := range requests {
			r(c)
		}
		survive()
		w.m.Retry()
		survive()
		if w.m.Phase() == Ready {
			c.check()
		}
	}
	n := effects
	marks |= w.m.Marks()
	w.fate = func(Effect) fate { return carriedOut } // in this very life
	for range 2 {
		w.m.Retry()
		survive()
	}
	w.tidy()
	w.rest()
	c.check()
	if len(w.waiting) > 0 {
		w.wrong("%d requests have no outcome", len(w.waiting))
	}
	return n, marks | w.m.Marks(), w.err
}

// TestEveryBoundary plays the script with every fate of every effect, and with every two of them.
func TestEveryBoundary(t *testing.T) {
	cfg := Config{PartitionsMax: 100, InFlightMax: 2, RequestsMax: 100, ProducersBlock: 1, SnapshotEntries: 3}
	n, _, err := play(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	var marks MarkSet
	runs := 0
	for i := range n + 8 {
		for f := crashBefore; f < fateCount; f++ {
			m, set, err := play(cfg, map[int]fate{i: f})
			runs++
			marks |= set
			if err != nil {
				t.Fatalf("effect %d, fate %d: %v", i, f, err)
			}
			if testing.Short() {
				continue
			}
			for j := i + 1; j < m; j++ {
				for g := crashBefore; g < fateCount; g++ {
					_, set, err := play(cfg, map[int]fate{i: f, j: g})
					runs++
					marks |= set
					if err != nil {
						t.Fatalf("effect %d, fate %d, and effect %d, fate %d: %v", i, f, j, g, err)
					}
				}
			}
		}
	}
	t.Logf("%d effects, %d runs, marks %b", n, runs, marks)
}

// TestAnyOrder makes requests, completions and faults in any order.
func TestAnyOrder(t *testing.T) {
	var marks MarkSet
	for seed := range uint64(3000) {
		set, err := anyOrder(seed)
		marks |= set
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for x := range MarkCount {
		if !marks.Has(x) && x != MarkRefused && x != MarkUnlisted && x != MarkOpenedLater {
			t.Errorf("mark %d was not reached", x)
		}
	}
}

func anyOrder(seed uint64) (marks MarkSet, err error) {
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(Config{PartitionsMax: 8, InFlightMax: 1 + r.IntN(4), RequestsMax: 10, ProducersBlock: 1 + r.Int64N(3), SnapshotEntries: 2 + r.Int64N(20)})
	c := newClient(w)
	rate := r.IntN(30)
	w.fate = func(Effect) fate {
		if r.IntN(100) >= rate {
			return carriedOut
		}
		return crashBefore + fate(r.IntN(int(fateCount-crashBefore)))
	}
	for range 120 {
		name := string(rune('a' + r.IntN(3)))
		switch r.IntN(12) {
		case 0, 1:
			c.create(name, 1+r.Int32N(3))
		case 2:
			c.remove(name)
		case 3:
			c.grow(name, 1+r.Int32N(4))
		case 4:
			c.configure(name, fmt.Sprint(1+r.IntN(3)))
		case 5:
			c.producer()
		case 6:
			w.m.Retry()
		case 7:
			if r.IntN(8) == 0 {
				w.m.Close()
			}
		default:
			w.step(r.IntN)
		}
		if p := w.m.Phase(); w.crashed || p == Failed || p == Closed {
			if w.startAll(); p == Closed && len(w.waiting) > 0 {
				w.wrong("closed, and %d requests have no outcome", len(w.waiting))
			}
			marks |= w.m.Marks()
			w.crash()
		}
		if w.err != nil {
			return marks, w.err
		}
	}
	marks |= w.m.Marks()
	w.rest()
	c.check()
	return marks | w.m.Marks(), w.err
}
