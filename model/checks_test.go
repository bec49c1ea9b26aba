package model

import (
	"slices"
	"strings"
	"testing"
)

// run is a Checker with shorthand: a log of one life, batches of n records, one client each.
type run struct {
	*Checker
	t   Time
	e   Epoch
	end Offset
}

func start(p Policy) *run {
	r := &run{Checker: new(Checker), e: 1}
	r.Reset()
	r.Opened(0, Life{Epoch: 1, Policy: p, SyncInterval: 100})
	return r
}

func (r *run) now() Time { r.t++; return r.t }

func (r *run) call() OpID { return r.Append(r.now(), Append{Records: 1}) }

func (r *run) accept(id OpID) {
	r.Accepted(r.now(), id, Ticket{First: r.end, End: r.end + 1, Epoch: r.e, Cohort: uint64(id)})
	r.end++
}

func (r *run) put() OpID { id := r.call(); r.accept(id); return id }

func (r *run) ack(id OpID) { r.Acked(r.now(), id) }

// add appends, syncs and acks.
func (r *run) add() OpID {
	id := r.put()
	r.Synced(r.now(), r.end)
	r.ack(id)
	return id
}

func (r *run) fail(id OpID) { r.Failed(r.now(), id); r.end = r.End() }

func (r *run) read(o Offset, e Epoch, v Value) { r.Read(r.now(), 0, r.Stamp(), o, e, v) }

func (r *run) reopen(kind CrashKind, p Policy, end Offset) {
	r.Crash(r.now(), kind)
	r.opened(p, end)
}

func (r *run) opened(p Policy, end Offset) {
	r.e++
	r.end = end
	r.Opened(r.now(), Life{Epoch: r.e, Policy: p, SyncInterval: 100, Start: r.Start(), End: end, Committed: end})
}

func (r *run) audit(vs ...Value) {
	r.AuditBegin(r.now())
	for i, v := range vs {
		_, e := r.At(Offset(i))
		r.AuditRecord(r.now(), Offset(i), e, v)
	}
	r.AuditEnd(r.now(), r.End())
}

func (r *run) follow(from Position) { r.ReaderStart(r.now(), 0, from, true) }

// checkCase is a legal history and the same with one thing wrong.
type checkCase struct {
	name   string
	check  Check
	policy Policy
	do     func(r *run, wrong bool)
}

// pair puts a batch and a duplicate of it that joins its cohort.
func (r *run) pair() (a, b OpID) {
	a = r.Append(r.now(), Append{Records: 1, Producer: Producer{ID: 7}})
	r.Accepted(r.now(), a, Ticket{First: 0, End: 1, Epoch: 1, Cohort: 5})
	b = r.Append(r.now(), Append{Records: 1, Retry: a, Producer: Producer{ID: 7}})
	r.Accepted(r.now(), b, Ticket{First: 0, End: 1, Epoch: 1, Cohort: 5, Duplicate: true})
	r.end = 1
	return a, b
}

// segments adds three records and returns a segment of 10 bytes for each; the last is active.
func (r *run) segments() []SegmentSpan {
	r.add()
	r.add()
	r.add()
	return []SegmentSpan{
		{First: 0, End: 1, Bytes: 10, Newest: 10, Seen: 10},
		{First: 1, End: 2, Bytes: 10, Newest: 1000, Seen: 20}, // written by a clock in the future
		{First: 2, End: 3, Bytes: 10, Newest: 30, Seen: 30, Active: true},
	}
}

func pick[T any](wrong bool, yes, no T) T {
	if wrong {
		return yes
	}
	return no
}

func TestEveryCheckCanFail(t *testing.T) {
	tripped := map[Check]bool{}
	for _, c := range slices.Concat(recoveryCases, appendCases, readCases) {
		t.Run(c.check.String()+" "+c.name, func(t *testing.T) {
			good := start(c.policy)
			c.do(good, false)
			if v := good.Violation(); v != nil {
				t.Fatalf("legal history: %v", v)
			}
			bad := start(c.policy)
			c.do(bad, true)
			v := bad.Violation()
			if v == nil {
				t.Fatal("illegal history passes")
			}
			if v.Check != c.check {
				t.Fatalf("tripped another check: %v", v)
			}
			tripped[v.Check] = true
			text := v.Error()
			if !strings.Contains(text, v.Check.String()+" violated: ") || strings.Contains(text, "\n") {
				t.Fatalf("text: %q", text)
			}
			// With the check off the run goes on without a panic, whatever comes of it.
			off := start(c.policy)
			off.Disable(c.check)
			c.do(off, true)
			off.Finish(off.now())
			if v := off.Violation(); v != nil && v.Check == c.check {
				t.Fatalf("disabled, and yet: %v", v)
			}
		})
	}
	for _, k := range Checks {
		if !tripped[k] {
			t.Errorf("%v: no case shows that it can fail", k)
		}
	}
}

func TestContentDiffers(t *testing.T) {
	var a, b Content
	for _, c := range []*Content{&a, &b} {
		c.Reset(3)
		c.Add(1, MakeValue(1, 0))
		c.Add(2, MakeValue(2, 0))
	}
	if at, differs := a.Differs(&b); differs || a.Hash() != b.Hash() || a.End() != 5 {
		t.Fatal("equal contents differ at", at)
	}
	b.Add(2, MakeValue(3, 0))
	if at, differs := a.Differs(&b); !differs || at != 5 || a.Hash() == b.Hash() {
		t.Fatal("longer content: differs at", at, differs)
	}
	b.Reset(3)
	b.Add(1, MakeValue(1, 0))
	b.Add(1, MakeValue(2, 0))
	if at, differs := a.Differs(&b); !differs || at != 4 {
		t.Fatal("other epoch: differs at", at, differs)
	}
	b.Reset(2)
	if at, differs := a.Differs(&b); !differs || at != 2 {
		t.Fatal("other start: differs at", at, differs)
	}
}
