package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"varve/core/segment"
	"varve/tiers/tiertest"
	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
)

// watched is a pair that a sentinel watches.
type watched struct {
	*pair
	sentinel *tiertest.Process
	watch    *admin
	store    *valkey.Store
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{pair: newPair(t)}
	w.sentinel = tiertest.StartSentinel(t, "varve", w.primary)
	w.watch = newAdmin(t, w.sentinel.Addr)
	tiertest.Eventually(t, "a sentinel that knows the replica", func() bool {
		return strings.Contains(w.watch.do("INFO", "sentinel"), "status=ok,address=127.0.0.1:"+w.primary.Port+",slaves=1")
	})
	w.store = newStore(t, dialer(t, client.Options{Addresses: []string{w.sentinel.Addr}, MasterSet: "varve"}))
	return w
}

// promoted waits until the store reaches another primary.
func (w *watched) promoted(t *testing.T) *valkey.Probe {
	t.Helper()
	b := &valkey.Probe{Replicas: 1}
	var last error
	tiertest.Eventually(t, "a new primary", func() bool {
		last = w.store.Probe(b)
		return last == nil && w.watchedPort() == w.replica.Port
	})
	return b
}

func (w *watched) watchedPort() string {
	_, rest, _ := strings.Cut(w.watch.do("INFO", "sentinel"), "address=127.0.0.1:")
	port, _, _ := strings.Cut(rest, ",")
	return port
}

func (w *watched) fence(t *testing.T, generation uint64, wait time.Duration) *valkey.Fence {
	t.Helper()
	f := &valkey.Fence{
		Generation: generation, Marker: tiertest.WarmMarker(generation), Ack: valkey.Ack{Replicas: 1, Wait: segment.Time(wait)},
	}
	if err := w.store.Fence(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// one is a mirror of one record.
func one(on valkey.ConnID, generation uint64, base segment.Offset, wait time.Duration) *valkey.Mirror {
	return &valkey.Mirror{
		On: on, Ack: valkey.Ack{Replicas: 1, Wait: segment.Time(wait)},
		Entries: []valkey.Outgoing{{
			ID: valkey.ID{Generation: generation, End: base + 1}, Value: tiertest.WarmData(generation, base, []byte(fmt.Sprint(base))),
		}},
	}
}

// The primary is killed under load: the mirror fails, another connection has another identity, what was
// confirmed is there, and without a replica nothing is confirmed any more.
func TestFailover(t *testing.T) {
	w := newWatched(t)
	f := w.fence(t, 1, 5*time.Second)
	if f.Confirmed != 1 {
		t.Fatalf("%+v", f)
	}
	killed := make(chan struct{})
	time.AfterFunc(100*time.Millisecond, func() {
		w.primary.Kill()
		close(killed)
	})
	acked := segment.Offset(0)
	for {
		m := one(f.On, 1, acked, 5*time.Second)
		if err := w.store.Mirror(m); err != nil {
			if !errors.Is(err, valkey.ErrConnectionLost) || m.Confirmed != 0 {
				t.Fatalf("the primary is gone: %v, %+v", err, m)
			}
			break
		}
		if m.Confirmed != 1 || m.Predecessor.ID.End != acked {
			t.Fatalf("%+v", m)
		}
		acked++
	}
	<-killed
	m := one(f.On, 1, acked, time.Second)
	if err := w.store.Mirror(m); !errors.Is(err, valkey.ErrConnection) {
		t.Fatalf("on the connection that is gone: %v", err)
	}
	b := w.promoted(t)
	if b.On == f.On || b.Top.ID.End < acked || b.Top.Err != nil || !b.Findings.Has(valkey.FewReplicas) {
		t.Fatalf("%d were acked; %+v: %v", acked, b, b.Findings)
	}
	next := w.fence(t, 2, 50*time.Millisecond)
	if next.XADD.Outcome != valkey.Done || next.Confirmed != 0 {
		t.Fatalf("there is no replica: %+v", next)
	}
	if m := one(next.On, 2, b.Top.ID.End, 50*time.Millisecond); w.store.Mirror(m) != nil || !m.AllDone() || m.Confirmed != 0 {
		t.Fatalf("there is no replica: %+v", m)
	}
	w.primary.Start() // the sentinel makes it a replica
	tiertest.Eventually(t, "a marker that a replica confirms", func() bool {
		next = w.fence(t, next.Generation+1, 100*time.Millisecond)
		return next.Confirmed == 1
	})
	t.Logf("%d entries confirmed before the kill, %d there", acked, b.Top.ID.End)
}

// A replica that lacks the end is promoted: what no WAIT had confirmed is lost, and is seen to be.
func TestFailoverLosesWhatNobodyConfirmed(t *testing.T) {
	w := newWatched(t)
	f := w.fence(t, 1, 5*time.Second)
	if m := one(f.On, 1, 0, 5*time.Second); w.store.Mirror(m) != nil || m.Confirmed != 1 {
		t.Fatalf("%+v", m)
	}
	w.replica.Kill()
	m := one(f.On, 1, 1, 50*time.Millisecond)
	if err := w.store.Mirror(m); err != nil || !m.AllDone() || m.Confirmed != 0 {
		t.Fatalf("the replica is gone: %v, %+v", err, m)
	}
	w.primary.Kill()
	w.replica.Start()
	b := w.promoted(t)
	if b.Top.ID != (valkey.ID{Generation: 1, End: 1}) || b.On == f.On {
		t.Fatalf("%+v", b)
	}
	next := w.fence(t, 2, 50*time.Millisecond)
	m = one(next.On, 2, 2, 50*time.Millisecond)
	if err := w.store.Mirror(m); err != nil || m.Confirmed != 0 || m.Predecessor.ID != (valkey.ID{Generation: 2}) {
		t.Fatalf("%v, %+v", err, m)
	}
}

// A slot of a cluster moves: the pipeline that was sent to the old node is an error, the next
// connection goes to the new one.
func TestClusterRedirect(t *testing.T) {
	nodes := [2]*tiertest.Process{newServer(t, "cluster-enabled yes"), newServer(t, "cluster-enabled yes")}
	var admins [2]*admin
	var ids [2]string
	for i, n := range nodes {
		admins[i] = newAdmin(t, n.Addr)
		ids[i] = admins[i].do("CLUSTER", "MYID")
	}
	admins[0].do("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	admins[0].do("CLUSTER", "MEET", "127.0.0.1", nodes[1].Port)
	for _, a := range admins {
		tiertest.Eventually(t, "a cluster that is up", func() bool {
			info := a.do("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:2")
		})
	}
	s := newStore(t, dialer(t, client.Options{Addresses: []string{nodes[0].Addr, nodes[1].Addr}, Cluster: true}))
	f := valkey.Fence{Generation: 1, Marker: tiertest.WarmMarker(1), Ack: valkey.Ack{Wait: 1}}
	if err := s.Fence(&f); err != nil || f.XADD.Outcome != valkey.Done {
		t.Fatalf("%v, %+v", err, f)
	}
	admins[0].do("DEL", s.Key()) // a slot without keys can be given away
	slot := admins[0].number("CLUSTER", "KEYSLOT", s.Key())
	for _, i := range []int{1, 0} {
		admins[i].do("CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", ids[1])
	}
	m := valkey.Mirror{On: f.On, Ack: f.Ack, Entries: []valkey.Outgoing{{ID: valkey.ID{Generation: 1, End: 1}, Value: tiertest.WarmData(1, 0, nil)}}}
	if err := s.Mirror(&m); !errors.Is(err, valkey.ErrReconnected) || m.Confirmed != 0 {
		t.Fatalf("the slot has moved: %v, %+v", err, m)
	}
	tiertest.Eventually(t, "the node that has the slot now", func() bool { return s.Fence(&f) == nil && f.XADD.Outcome == valkey.Done })
	if n := admins[1].number("EXISTS", s.Key()); n != 1 {
		t.Fatal("the marker is not where the slot is")
	}
}
