package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"varve"
	"varve/core/topics"
	"varve/faultfs"
)

// expectation is what is known about a topic after some requests of which the last may be in doubt.
type expectation struct {
	exists, mayExist bool
	partitions       int32 // at least
	incarnation      uint64
	records          map[int32]int64 // acked, of this incarnation
}

// actor makes requests of a node until one fails, and notes what must be so.
type actor struct {
	b      *Broker
	topics map[string]*expectation
	ids    []int64
	ends   map[uint64]bool // incarnations that are deleted
	failed bool
	err    error
}

func newActor() *actor {
	return &actor{topics: map[string]*expectation{}, ends: map[uint64]bool{}}
}

// act makes one request, unless one has failed.
func (a *actor) act(name string, request func(x *expectation) error, done, doubt func(x *expectation)) {
	if a.failed {
		return
	}
	x := a.topics[name]
	if x == nil {
		x = &expectation{records: map[int32]int64{}}
		a.topics[name] = x
	}
	if err := request(x); err != nil {
		a.failed, a.err = true, err
		doubt(x)
		return
	}
	done(x)
}

func (a *actor) create(name string, n int32) {
	var t *Topic
	a.act(name, func(*expectation) (err error) {
		t, err = a.b.Create(context.Background(), TopicSpec{Name: name, Partitions: n, Config: map[string]string{"segment.bytes": "4096"}})
		return err
	}, func(x *expectation) {
		if a.ends[t.Incarnation] {
			a.failed, a.err = true, fmt.Errorf("incarnation %d comes back", t.Incarnation)
		}
		*x = expectation{exists: true, mayExist: true, partitions: n, incarnation: t.Incarnation, records: map[int32]int64{}}
	}, func(x *expectation) { x.mayExist = true })
}

func (a *actor) remove(name string) {
	a.act(name, func(*expectation) error { return a.b.Delete(context.Background(), name, 0) },
		func(x *expectation) {
			a.ends[x.incarnation] = true
			*x = expectation{records: map[int32]int64{}}
		}, func(x *expectation) { x.exists = false })
}

func (a *actor) grow(name string, n int32) {
	a.act(name, func(*expectation) error { return a.b.AddPartitions(context.Background(), name, n, false) },
		func(x *expectation) { x.partitions = n }, func(*expectation) {})
}

func (a *actor) produce(name string, n int32) {
	a.act(name, func(*expectation) error {
		t, err := a.b.Topic(name)
		if err != nil {
			return err
		}
		p, err := t.Partition(n)
		if err != nil {
			return err
		}
		if p.Err() != nil {
			return p.Err()
		}
		_, err = p.Log().Append(context.Background(), varve.Record{Value: []byte(fmt.Sprint(t.Incarnation))})
		return err
	}, func(x *expectation) { x.records[n]++ }, func(*expectation) {})
}

func (a *actor) producer() {
	a.act("", func(*expectation) error {
		id, err := a.b.ProducerID(context.Background())
		if err == nil {
			a.ids = append(a.ids, id)
		}
		return err
	}, func(*expectation) {}, func(*expectation) {})
}

func (a *actor) script() {
	a.create("a", 2)
	a.produce("a", 0)
	a.producer()
	a.create("b", 1)
	a.produce("b", 0)
	a.grow("a", 3)
	a.produce("a", 2)
	a.remove("b")
	a.create("b", 2)
	a.produce("b", 1)
	a.remove("a")
	a.create("a", 1)
	a.produce("a", 0)
	a.producer()
}

// check compares a node that was opened again with what must be so.
func (a *actor) check(b *Broker) error {
	for name, x := range a.topics {
		if name == "" {
			continue
		}
		t, err := b.Topic(name)
		switch {
		case err != nil && x.exists:
			return fmt.Errorf("topic %s is gone", name)
		case err != nil:
			continue
		case !x.mayExist && !x.exists:
			return fmt.Errorf("topic %s is back", name)
		case a.ends[t.Incarnation]:
			return fmt.Errorf("incarnation %d of %s is back", t.Incarnation, name)
		case t.Incarnation == x.incarnation && t.Partitions() < x.partitions:
			return fmt.Errorf("topic %s has %d partitions, %d were made", name, t.Partitions(), x.partitions)
		}
		for i := range t.Partitions() {
			p, _ := t.Partition(i)
			if p.Err() != nil {
				return p.Err()
			}
			n := int64(0)
			for r, err := range p.Log().Records(context.Background(), varve.Position{}) {
				if err != nil {
					return err
				}
				if n++; string(r.Value) != fmt.Sprint(t.Incarnation) {
					return fmt.Errorf("%s/%d of incarnation %d holds a record of %s", name, i, t.Incarnation, r.Value)
				}
			}
			if t.Incarnation == x.incarnation && n < x.records[i] {
				return fmt.Errorf("%s/%d has %d records, %d were acked", name, i, n, x.records[i])
			}
		}
	}
	id, err := b.ProducerID(context.Background())
	for _, old := range a.ids {
		if id <= old {
			return fmt.Errorf("producer id %d after %d", id, old)
		}
	}
	return err
}

// leftovers waits until nothing is on disk but what exists.
func leftovers(b *Broker, t tree) error {
	for try := 0; ; try++ {
		want := map[topics.Dir]bool{}
		for _, x := range b.Topics() {
			for i := range x.Partitions() {
				want[topics.Dir{Topic: x.Name, Incarnation: x.Incarnation, Partition: i}] = true
			}
		}
		dirs, others, err := t.list(nil, nil)
		var left []string
		for _, d := range dirs {
			if d.Partition >= 0 && !want[d] {
				left = append(left, d.String())
			}
		}
		if len(left) == 0 || err != nil || try == 1000 {
			return errors.Join(err, wrongIf(len(left)+len(others) > 0, "left over: %v, %v", left, others))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func wrongIf(bad bool, format string, args ...any) error {
	if bad {
		return fmt.Errorf(format, args...)
	}
	return nil
}

var crashOptions = Options{Log: varve.Options{MinFreeBytes: -1, NoPreallocate: true}}

// TestEveryCall lets the process die in every call of the disk, with a loss of power, while topics are
// made, grown and deleted, and looks at what the next life finds.
func TestEveryCall(t *testing.T) {
	runs, seeds := 0, uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		for n := int64(0); ; n++ {
			done, err := everyCall(seed, n)
			if runs++; err != nil {
				t.Fatalf("seed %d, after %d calls: %v", seed, n, err)
			}
			if done {
				break
			}
		}
	}
	t.Logf("%d crashes", runs)
}

func everyCall(seed uint64, n int64) (done bool, err error) {
	d := faultfs.New()
	d.Reset(faultfs.Params{Seed: seed})
	var mu sync.Mutex
	tree := newFaultTree(&mu, d)
	tree.main.SetCallBudget(n, seed&1 != 0)
	a := newActor()
	if a.b, err = openTree(context.Background(), tree, crashOptions); err == nil {
		a.script()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := a.b.Close(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return false, fmt.Errorf("close does not end: %w", err)
		}
		if !a.failed && err == nil {
			done = true
		}
	}
	var r faultfs.Rand
	r.Seed(seed<<32 + uint64(n))
	tree.end(d, &r)
	tree = newFaultTree(&mu, d)
	b, err := openTree(context.Background(), tree, crashOptions)
	if err != nil {
		return done, fmt.Errorf("%w (the life before ended with: %w)", err, a.err)
	}
	if err = a.check(b); err == nil {
		err = leftovers(b, tree)
	}
	return done, errors.Join(err, b.Close(context.Background()))
}

// TestCatalogueWithoutRoom: a node whose catalogue cannot be recovered whole, because a power loss needs a rescue
// and the disk is full, does not begin: what the catalogue does not show yet would be taken for nobody's, and removed.
func TestCatalogueWithoutRoom(t *testing.T) {
	for _, more := range []int64{0, 4 << 10, 16 << 10} {
		ctx := t.Context()
		d := faultfs.New()
		d.Reset(faultfs.Params{Seed: 1})
		var mu sync.Mutex
		tree := newFaultTree(&mu, d)
		b, err := openTree(ctx, tree, crashOptions)
		must(t, err)
		x := create(t, b, "a", 1)
		for range 3 {
			appendTo(t, x, 0, "acked")
		}
		var r faultfs.Rand
		r.Seed(7)
		tree.end(d, &r)
		mu.Lock()
		d.SetCapacity(d.Used() + more)
		mu.Unlock()
		tree = newFaultTree(&mu, d)
		var whole *topics.UnreadyError
		if b, err = openTree(ctx, tree, crashOptions); err == nil {
			must(t, b.Close(ctx))
		} else if !errors.As(err, &whole) {
			t.Errorf("%d bytes free: %v", more, err)
		}
		mu.Lock()
		d.SetCapacity(0)
		mu.Unlock()
		tree = newFaultTree(&mu, d)
		b, err = openTree(ctx, tree, crashOptions)
		must(t, err)
		y, err := b.Topic("a")
		must(t, err)
		p, err := y.Partition(0)
		must(t, err)
		must(t, p.Err())
		if n := p.Log().Committed(); n != 3 {
			t.Errorf("%d bytes free: %d records", more, n)
		}
		must(t, b.Close(ctx))
	}
}
