package model

import (
	"reflect"
	"testing"
)

// story is a life in which three appends are acked and a reader sees two; the third is unknown at the
// end of it.
func story(c *Checker) {
	c.Reset()
	c.Opened(1, Life{Epoch: 1, Policy: NoSync})
	c.ReaderStart(2, 0, Position{}, true)
	for i := range OpID(3) {
		id := c.Append(3, Append{Records: 1})
		c.Accepted(4, id, Ticket{First: Offset(i), End: Offset(i) + 1, Epoch: 1, Cohort: uint64(i) + 1})
		if i < 2 {
			c.Acked(5, id)
		}
	}
	c.Synced(6, 1)
	c.Agree(6, 0, 3, 2)
	call := c.Stamp()
	c.Read(7, 0, call, 0, 1, MakeValue(1, 0))
}

// A copy judges what comes as the original does, and neither changes the other.
func TestCopy(t *testing.T) {
	var a, b Checker
	story(&a)
	story(&b)
	b.TrimCalled(8, 1) // it has something to forget
	b.Copy(&a)
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("copy is\n%+v\nnot\n%+v", b, a)
	}
	b.Read(8, 0, b.Stamp(), 1, 1, MakeValue(2, 0))
	if a.readers[0].pos.Offset != 1 {
		t.Error("a read by the copy moved the original's reader")
	}
	b.Crash(9, PowerLoss)
	b.Opened(10, Life{Epoch: 2, Policy: NoSync})
	if v := b.Violation(); v == nil || v.Check != K1 && v.Check != K2 {
		t.Errorf("the copy lost what was proven: %v, want a violation", v)
	}
	if a.Violation() != nil || a.End() != 3 {
		t.Errorf("the original has changed: %v, end %d", a.Violation(), a.End())
	}
	if n := testing.AllocsPerRun(20, func() { b.Copy(&a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Promises differ where a log owes something else, and only there.
func TestPromises(t *testing.T) {
	var base Checker
	story(&base)
	if base.Promises(true) == base.Promises(false) {
		t.Error("under none a power loss may take what a kill may not, and the promises are equal")
	}
	want := base.Promises(false)
	changes := []struct {
		name   string
		change func(c *Checker)
		equal  bool
	}{
		{"nothing", func(*Checker) {}, true},
		{"time", func(c *Checker) { c.Synced(1000, 1) }, true},
		{"another ack", func(c *Checker) { c.Acked(8, 3) }, false},
		{"a sync", func(c *Checker) { c.Synced(8, 2) }, false},
		{"a look at the tail", func(c *Checker) { c.TailSeen(8, 0, c.Stamp(), 2) }, false},
		{"a read", func(c *Checker) { c.Read(8, 0, c.Stamp(), 1, 1, MakeValue(2, 0)) }, false},
		{"a trim", func(c *Checker) { c.TrimCalled(8, 1) }, false},
		{"another append", func(c *Checker) {
			c.Accepted(8, c.Append(8, Append{Records: 1}), Ticket{First: 3, End: 4, Epoch: 1, Cohort: 4})
		}, false},
		{"a new life", func(c *Checker) {
			c.Crash(8, ProcessKill)
			c.Opened(8, Life{Epoch: 2, Policy: NoSync, End: 3, Committed: 3})
		}, false},
	}
	for _, x := range changes {
		var c Checker
		c.Copy(&base)
		x.change(&c)
		if v := c.Violation(); v != nil {
			t.Fatalf("%s: %v", x.name, v)
		}
		if got := c.Promises(false); (got == want) != x.equal {
			t.Errorf("%s: equal promises %v, want %v", x.name, got == want, x.equal)
		}
	}
}
