package valkey_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"varve/core/segment"
	"varve/faultfs"
	"varve/sim/fakevalkey"
	"varve/tiers/tiertest"
	"varve/tiers/valkey"
)

// rig is a store over a fake server with one log's stream at generation 1.
type rig struct {
	t      *testing.T
	server *fakevalkey.Server
	store  *valkey.Store
	on     valkey.ConnID
}

func newRig(t *testing.T, c fakevalkey.Config) *rig {
	t.Helper()
	var rand faultfs.Rand
	s := fakevalkey.New(rand.Below)
	s.Reset(c)
	r := &rig{t: t, server: s, store: newStore(t, s)}
	r.on = r.fence(1).On
	return r
}

func newStore(t *testing.T, d valkey.Dialer) *valkey.Store {
	t.Helper()
	s, err := valkey.New("a", d, valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 1 << 20, Timeout: 1_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const wait = 100_000_000

func (r *rig) fence(generation uint64) *valkey.Fence {
	r.t.Helper()
	f := &valkey.Fence{Generation: generation, Marker: tiertest.WarmMarker(generation), Ack: valkey.Ack{Replicas: 1, Wait: wait}}
	if err := r.store.Fence(f); err != nil {
		r.t.Fatal(err)
	}
	return f
}

// outgoing are the entries of one record each at [base, base+n).
func outgoing(generation uint64, base segment.Offset, n int) (all []valkey.Outgoing) {
	for i := range segment.Offset(n) {
		all = append(all, valkey.Outgoing{
			ID: valkey.ID{Generation: generation, End: base + i + 1}, Value: tiertest.WarmData(generation, base+i, []byte{byte(base + i)}),
		})
	}
	return all
}

func (r *rig) try(base segment.Offset, n int) (*valkey.Mirror, error) {
	m := &valkey.Mirror{On: r.on, Ack: valkey.Ack{Replicas: 1, Wait: wait}, Entries: outgoing(1, base, n)}
	return m, r.store.Mirror(m)
}

func (r *rig) mirror(base segment.Offset, n int) *valkey.Mirror {
	r.t.Helper()
	m, err := r.try(base, n)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) probe() *valkey.Probe {
	r.t.Helper()
	b := &valkey.Probe{}
	if err := r.store.Probe(b); err != nil {
		r.t.Fatal(err)
	}
	return b
}

// counts reports whether a mirror may be believed.
func counts(m *valkey.Mirror, err error, predecessor segment.Offset) bool {
	return err == nil && m.AllDone() && m.Confirmed >= 1 && m.Predecessor.Found && m.Predecessor.ID.End == predecessor
}

// WAIT on another connection, or without a write, confirms nothing: here a write that was refused.
func TestVK1WaitOfAnotherWrite(t *testing.T) {
	r := newRig(t, fakevalkey.Config{Replicas: 1})
	if m := r.mirror(0, 2); !counts(m, nil, 0) {
		t.Fatalf("%+v", m)
	}
	r.server.SetFrozen(0, true)
	m := r.mirror(1, 1) // refused: it is there already, and WAIT answers for the write before
	if m.Confirmed != 0 || m.Entries[0].XADD.Outcome != valkey.Smaller || r.server.Count(fakevalkey.W3Other) == 0 {
		t.Fatalf("%+v", m)
	}
	if m := r.mirror(2, 1); !m.AllDone() || m.Confirmed != 0 {
		t.Fatalf("a replica that is stopped confirmed: %+v", m)
	}
}

// A failover loses what WAIT had confirmed: the entry before is not the one that was written.
func TestVK2FailoverLosesWhatWaitConfirmed(t *testing.T) {
	r := newRig(t, fakevalkey.Config{Replicas: 2})
	if m := r.mirror(0, 3); !counts(m, nil, 0) {
		t.Fatalf("%+v", m)
	}
	r.server.Arm(fakevalkey.W4Acked, 1)
	r.server.Failover()
	if _, err := r.try(3, 1); !errors.Is(err, valkey.ErrConnectionLost) {
		t.Fatalf("%v", err)
	}
	if _, err := r.try(3, 1); !errors.Is(err, valkey.ErrConnection) {
		t.Fatalf("%v", err)
	}
	if b := r.probe(); b.Top.ID.End == 3 || r.server.Count(fakevalkey.W4Acked) != 1 {
		t.Fatalf("nothing was lost: %+v", b)
	}
	for i := range 2 {
		r.server.SetFrozen(i, true)
	}
	if f := r.fence(2); f.XADD.Outcome != valkey.Done || f.Confirmed != 0 { // what they had is void
		t.Fatalf("replicas that are stopped confirmed: %+v", f)
	}
}

// WAIT answers with fewer replicas, and with no error: it does not count.
func TestVK3ShortWait(t *testing.T) {
	for _, fault := range []fakevalkey.Fault{fakevalkey.W2Short, fakevalkey.W2Late} {
		r := newRig(t, fakevalkey.Config{Replicas: 1})
		r.server.Arm(fault, 1)
		m := r.mirror(0, 1)
		if !m.AllDone() || m.Confirmed != 0 || r.server.Count(fault) != 1 {
			t.Fatalf("%v: %+v", fault, m)
		}
		if d := r.server.TakeDelay(); d < wait {
			t.Fatalf("%v: after %d ns", fault, d)
		}
	}
}

// Where the stream begins is read from its first entry, and a trim is exact.
func TestVK6TrimIsExact(t *testing.T) {
	r := newRig(t, fakevalkey.Config{Replicas: 1})
	r.mirror(0, 200)
	trim := valkey.TrimWarm{Below: valkey.ID{Generation: 1, End: 150}}
	if err := r.store.TrimWarm(&trim); err != nil || trim.Removed != 150 {
		t.Fatalf("%v, %+v", err, trim)
	}
	if b := r.probe(); b.First.ID != trim.Below || b.Entries != 51 {
		t.Fatalf("%+v", b)
	}
}

// The stream is evicted between two mirrors: seen by the entry before. Out of memory: refused, and a
// later write that is taken makes no success of it.
func TestVK8EvictionAndMemory(t *testing.T) {
	r := newRig(t, fakevalkey.Config{Replicas: 1})
	r.mirror(0, 2)
	r.server.Evict(r.store.Key())
	if m := r.mirror(2, 1); !m.AllDone() || m.Predecessor.Found || m.Confirmed != 1 {
		t.Fatalf("%+v", m)
	}
	r.server.Arm(fakevalkey.W6OOM, 1)
	if m := r.mirror(3, 2); m.Entries[0].XADD.Outcome != valkey.Full || m.Entries[1].XADD.Outcome != valkey.Full || m.Confirmed != 0 {
		t.Fatalf("%+v", m)
	}
	r.server.Arm(fakevalkey.W13Some, 2)
	m := r.mirror(3, 3)
	if m.Entries[0].XADD.Outcome != valkey.Done || m.Entries[1].XADD.Outcome != valkey.Full || m.Entries[2].XADD.Outcome != valkey.Done || m.Confirmed != 0 {
		t.Fatalf("%+v", m)
	}
}

// An answer is lost, and the entry sent again: refused, with what is there to compare.
func TestVK10SentAgain(t *testing.T) {
	r := newRig(t, fakevalkey.Config{Replicas: 1})
	r.server.Arm(fakevalkey.W1After, 1)
	if m, err := r.try(0, 1); !errors.Is(err, valkey.ErrConnectionLost) || m.Entries[0].XADD.Outcome != valkey.Unsent {
		t.Fatalf("%v, %+v", err, m)
	}
	b := r.probe()
	if b.Top.ID != (valkey.ID{Generation: 1, End: 1}) || string(b.Top.Value) != string(outgoing(1, 0, 1)[0].Value) {
		t.Fatalf("%+v", b.Top)
	}
	f := r.fence(1)
	if f.XADD.Outcome != valkey.Smaller || f.Top.ID.End != 1 || f.Confirmed != 0 {
		t.Fatalf("%+v", f)
	}
	r.on = r.fence(2).On
	if m := r.mirror(1, 1); m.AllDone() { // out of order
		t.Fatalf("%+v", m)
	}
	r.server.Arm(fakevalkey.W7Duplicate, 1)
	m := valkey.Mirror{On: r.on, Ack: valkey.Ack{Replicas: 1, Wait: wait}, Entries: outgoing(2, 1, 1)}
	if err := r.store.Mirror(&m); err != nil || m.AllDone() || m.Confirmed != 0 || !r.server.Has(r.store.Key(), m.Entries[0].ID) {
		t.Fatalf("%v, %+v", err, m)
	}
}

// An answer that never comes ends at the timeout of the pipeline, which includes what WAIT may take.
func TestVK12TimeoutsAreOurs(t *testing.T) {
	var seen []segment.Time
	d := dialer(func(p *valkey.Pipeline) error {
		seen = append(seen, p.Timeout)
		return valkey.ErrConnectionLost
	})
	s := newStore(t, d)
	f := valkey.Fence{Generation: 1, Ack: valkey.Ack{Replicas: 1, Wait: wait}}
	if err := s.Fence(&f); !errors.Is(err, valkey.ErrConnectionLost) || f.Confirmed != 0 {
		t.Fatalf("%v", err)
	}
	if err := s.Probe(&valkey.Probe{}); !errors.Is(err, valkey.ErrConnectionLost) {
		t.Fatalf("%v", err)
	}
	if len(seen) != 2 || seen[0] != 1_000_000_000+wait || seen[1] != 1_000_000_000 {
		t.Fatalf("%v", seen)
	}
}

// WAIT never waits for ever, which a timeout of 0 would, and not for less than was asked for.
func TestWaitIsBounded(t *testing.T) {
	for wait, want := range map[segment.Time]string{-5: "1", 0: "1", 1: "1", 1_000_000: "1", 1_000_001: "2", 3_000_000_000: "3000"} {
		got := ""
		s := newStore(t, dialer(func(p *valkey.Pipeline) error {
			args, _ := p.Args(p.Len() - 1)
			got = string(bytes.Join(args, []byte(" ")))
			return valkey.ErrConnectionLost
		}))
		if err := s.Fence(&valkey.Fence{Ack: valkey.Ack{Replicas: 2, Wait: wait}}); err == nil || got != "WAIT 2 "+want {
			t.Errorf("%d ns: %q, %v", wait, got, err)
		}
	}
}

// The last ids there are: used, refused, never wrapped.
func TestVK13EndOfIDs(t *testing.T) {
	r := newRig(t, fakevalkey.Config{Replicas: 1})
	f := r.fence(math.MaxUint64)
	m := valkey.Mirror{On: f.On, Ack: f.Ack, Entries: []valkey.Outgoing{
		{ID: valkey.IDMax, Value: tiertest.WarmData(math.MaxUint64, math.MaxInt64-1, nil)},
	}}
	if err := r.store.Mirror(&m); err != nil || !m.AllDone() {
		t.Fatalf("%v, %+v", err, m)
	}
	if f := r.fence(math.MaxUint64); f.XADD.Outcome != valkey.Smaller || f.Top.ID != valkey.IDMax {
		t.Fatalf("%+v", f)
	}
	r.server.Foreign(r.store.Key(), "e", "v") // the generation wraps to 0: the id of nobody
	if b := r.probe(); b.Top.Err == nil {
		t.Fatalf("%+v", b.Top)
	}
}

// dialer makes connections that do as it says.
type dialer func(p *valkey.Pipeline) error

func (d dialer) Dial(string) (valkey.Conn, error) { return d, nil }
func (d dialer) Do(p *valkey.Pipeline) error      { return d(p) }
func (d dialer) Close() error                     { return nil }
