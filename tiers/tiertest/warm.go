package tiertest

import (
	"bytes"
	"errors"
	"testing"

	"varve/core/segment"
	"varve/core/warmentry"
	"varve/tiers/valkey"
)

// WarmServer is a Valkey server, or what stands for one.
type WarmServer struct {
	Dialer     valkey.Dialer
	Replicas   int
	Freeze     func(frozen bool)                  // stops every replica, or lets them go on; nil: there are none
	Disconnect func()                             // breaks every connection
	SetType    func(key string)                   // puts something that is no stream under a key
	Foreign    func(key, id, field, value string) // adds an entry that no log wrote

	ForgetsLastID bool // of a stream that was emptied: no real server does
}

// TestWarm checks the contract of the warm store over a server, faults apart. newServer returns an
// empty one.
func TestWarm(t *testing.T, newServer func(t *testing.T) *WarmServer) {
	tests := []struct {
		name string
		run  func(t *testing.T, w *warm)
	}{
		{"Empty", warmEmpty},
		{"Fence", warmFence},
		{"FenceRefused", warmFenceRefused},
		{"Mirror", warmMirror},
		{"MirrorFenced", warmMirrorFenced},
		{"MirrorTwice", warmMirrorTwice},
		{"MirrorHole", warmMirrorHole},
		{"Connection", warmConnection},
		{"Read", warmRead},
		{"ReadBounds", warmReadBounds},
		{"Trim", warmTrim},
		{"LastID", warmLastID},
		{"WrongType", warmWrongType},
		{"Foreign", warmForeign},
		{"Frozen", warmFrozen},
		{"WaitElsewhere", warmWaitElsewhere},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			w := &warm{WarmServer: s, t: t, store: newWarmStore(t, s.Dialer, "orders-0")}
			tt.run(t, w)
		})
	}
}

const second = 1_000_000_000

func newWarmStore(t *testing.T, d valkey.Dialer, name string) *valkey.Store {
	t.Helper()
	s, err := valkey.New(name, d, valkey.Bounds{EntryBytes: 4 << 20, PageBytes: 64 << 10, Timeout: 10 * second})
	no(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// warm is one test's view of a server.
type warm struct {
	*WarmServer
	t     *testing.T
	store *valkey.Store
}

var warmLog = segment.LogID{'w', 'a', 'r', 'm'}

func (w *warm) ack() valkey.Ack {
	return valkey.Ack{Replicas: w.Replicas, Wait: 10 * second * min(1, segment.Time(w.Replicas))}
}

// WarmMarker is the marker of a generation.
func WarmMarker(generation uint64) []byte {
	e := warmentry.Entry{Kind: warmentry.Marker, LogID: warmLog, Generation: generation, Epoch: 1, Nonce: 9}
	b, err := warmentry.AppendHeader(nil, &e)
	if err != nil {
		panic(err)
	}
	return b
}

// WarmData is an entry of one batch: a record with this payload at an offset.
func WarmData(generation uint64, base segment.Offset, payload []byte) []byte {
	var d [segment.IdentityBytes]byte
	segment.PutIdentity(d[:], &segment.Identity{
		PayloadBytes: uint32(len(payload)), Kind: segment.KindKafka, Records: 1, Base: base, Epoch: 1, Nonce: 9,
		ProducerID: -1, ProducerEpoch: -1, Sequence: -1, PayloadCRC: segment.PayloadCRC(payload),
	}, segment.IdentitySeed(warmLog))
	e := warmentry.Entry{
		Kind: warmentry.Data, LogID: warmLog, Generation: generation, Epoch: 1, Nonce: 9,
		First: base, End: base + 1, Batches: 1, BodyBytes: int64(len(d) + len(payload)),
	}
	b, err := warmentry.AppendHeader(nil, &e)
	if err != nil {
		panic(err)
	}
	return warmentry.AppendBatch(b, d[:], payload)
}

func (w *warm) fence(generation uint64) *valkey.Fence {
	w.t.Helper()
	f := &valkey.Fence{Generation: generation, Marker: WarmMarker(generation), Ack: w.ack()}
	no(w.t, w.store.Fence(f))
	return f
}

func (w *warm) fenced(generation uint64) valkey.ConnID {
	w.t.Helper()
	f := w.fence(generation)
	if f.XADD.Outcome != valkey.Done || f.Confirmed < w.Replicas || f.On == 0 {
		w.t.Fatalf("fence of generation %d: %+v", generation, f)
	}
	return f.On
}

// mirror writes entries at [base, base+n).
func (w *warm) mirror(on valkey.ConnID, generation uint64, base segment.Offset, n int, ack valkey.Ack) *valkey.Mirror {
	w.t.Helper()
	m := &valkey.Mirror{Ack: ack, On: on}
	for i := range segment.Offset(n) {
		m.Entries = append(m.Entries, valkey.Outgoing{
			ID: valkey.ID{Generation: generation, End: base + i + 1}, Value: WarmData(generation, base+i, []byte{byte(base + i)}),
		})
	}
	no(w.t, w.store.Mirror(m))
	return m
}

func (w *warm) mirrored(on valkey.ConnID, generation uint64, base segment.Offset, n int) *valkey.Mirror {
	w.t.Helper()
	m := w.mirror(on, generation, base, n, w.ack())
	if !m.AllDone() || m.Confirmed < w.Replicas {
		w.t.Fatalf("mirror of [%d, %d): %d confirmed, %+v", base, base+segment.Offset(n), m.Confirmed, m.Entries)
	}
	return m
}

// ids reads all that is there.
func (w *warm) ids() []valkey.ID {
	w.t.Helper()
	r := valkey.ReadWarm{Count: 1000}
	no(w.t, w.store.ReadWarm(&r))
	var all []valkey.ID
	for i := range r.Entries {
		all = append(all, r.Entries[i].ID)
	}
	return all
}

func (w *warm) holds(want ...valkey.ID) {
	w.t.Helper()
	got := w.ids()
	same := len(got) == len(want)
	for i := range want {
		same = same && got[i] == want[i]
	}
	if !same {
		w.t.Fatalf("the stream holds %v, want %v", got, want)
	}
}

func (w *warm) probe() *valkey.Probe {
	w.t.Helper()
	b := &valkey.Probe{Replicas: w.Replicas}
	no(w.t, w.store.Probe(b))
	return b
}

func warmEmpty(t *testing.T, w *warm) {
	b := w.probe()
	if b.Entries != 0 || b.First.Found || b.Top.Found || !b.LastID.IsZero() || b.On == 0 {
		t.Fatalf("an absent stream: %+v", b)
	}
	w.holds()
	trim := valkey.TrimWarm{Below: valkey.ID{Generation: 3}}
	no(t, w.store.TrimWarm(&trim))
	if trim.XTRIM.Outcome != valkey.Done || trim.Removed != 0 {
		t.Fatalf("trim of an absent stream: %+v", trim)
	}
	if b := w.probe(); b.Entries != 0 || b.Top.Found {
		t.Fatalf("looking at it made a stream: %+v", b)
	}
}

func warmFence(t *testing.T, w *warm) {
	f := w.fence(5)
	if f.XADD.Outcome != valkey.Done || f.Confirmed < w.Replicas || f.Top.ID != (valkey.ID{Generation: 5}) ||
		f.Top.Err != nil || f.Top.Header.Nonce != 9 || f.Top.Header.Kind != warmentry.Marker {
		t.Fatalf("%+v", f)
	}
	b := w.probe()
	if b.Entries != 1 || b.First.ID != f.Top.ID || b.Top.ID != f.Top.ID || b.LastID != f.Top.ID || b.On != f.On {
		t.Fatalf("%+v", b)
	}
	w.fenced(6)
	w.fenced(1 << 63)
}

func warmFenceRefused(t *testing.T, w *warm) {
	on := w.fenced(5)
	w.mirrored(on, 5, 0, 2)
	for _, generation := range []uint64{5, 4, 1} {
		f := w.fence(generation)
		if f.XADD.Outcome != valkey.Smaller || f.Confirmed != 0 || f.Top.ID != (valkey.ID{Generation: 5, End: 2}) || f.Top.Err != nil {
			t.Fatalf("generation %d: %+v", generation, f)
		}
	}
	w.holds(valkey.ID{Generation: 5}, valkey.ID{Generation: 5, End: 1}, valkey.ID{Generation: 5, End: 2})
}

func warmMirror(t *testing.T, w *warm) {
	on := w.fenced(2)
	if m := w.mirrored(on, 2, 0, 3); m.Predecessor.ID != (valkey.ID{Generation: 2}) || m.Predecessor.Err != nil || !m.Predecessor.Found {
		t.Fatalf("before the first: %+v", m.Predecessor)
	}
	m := w.mirrored(on, 2, 3, 1)
	if m.Predecessor.ID != (valkey.ID{Generation: 2, End: 3}) || m.Predecessor.Header.First != 2 || m.Predecessor.Header.Nonce != 9 {
		t.Fatalf("before the second: %+v", m.Predecessor)
	}
	large := WarmData(2, 4, bytes.Repeat([]byte("large"), 200_000))
	m = &valkey.Mirror{On: on, Ack: w.ack(), Entries: []valkey.Outgoing{{ID: valkey.ID{Generation: 2, End: 5}, Value: large}}}
	no(t, w.store.Mirror(m))
	w.mirrored(on, 2, 5, 1)
	r := valkey.ReadWarm{From: valkey.ID{Generation: 2, End: 5}, Count: 1}
	no(t, w.store.ReadWarm(&r))
	if len(r.Entries) != 1 || !bytes.Equal(r.Entries[0].Value, large) {
		t.Fatal("a large entry came back otherwise")
	}
}

func warmMirrorFenced(t *testing.T, w *warm) {
	on := w.fenced(2)
	w.mirrored(on, 2, 0, 1)
	other := *w
	other.store = newWarmStore(t, w.Dialer, "orders-0")
	if on2 := other.fenced(3); on2 == on {
		t.Fatal("two connections of one identity")
	}
	m := w.mirror(on, 2, 1, 2, w.ack())
	if m.AllDone() || m.Entries[0].XADD.Outcome != valkey.Smaller || m.Entries[1].XADD.Outcome != valkey.Smaller || m.Confirmed != 0 {
		t.Fatalf("a fenced writer: %+v", m)
	}
	w.holds(valkey.ID{Generation: 2}, valkey.ID{Generation: 2, End: 1}, valkey.ID{Generation: 3})
}

// An append whose answer was lost is sent again: refused, and what is there is the same.
func warmMirrorTwice(t *testing.T, w *warm) {
	on := w.fenced(2)
	w.mirrored(on, 2, 0, 2)
	m := w.mirror(on, 2, 1, 1, w.ack())
	if m.AllDone() || m.Entries[0].XADD.Outcome != valkey.Smaller || m.Confirmed != 0 {
		t.Fatalf("sent again: %+v", m)
	}
	r := valkey.ReadWarm{From: m.Entries[0].ID, Count: 5}
	no(t, w.store.ReadWarm(&r))
	if len(r.Entries) != 1 || !bytes.Equal(r.Entries[0].Value, m.Entries[0].Value) {
		t.Fatalf("what is there: %+v", r.Entries)
	}
}

// A hole is seen by the entry before.
func warmMirrorHole(t *testing.T, w *warm) {
	on := w.fenced(2)
	w.mirrored(on, 2, 0, 1)
	if m := w.mirror(on, 2, 4, 1, w.ack()); m.Predecessor.ID != (valkey.ID{Generation: 2, End: 1}) {
		t.Fatalf("%+v", m.Predecessor)
	}
	trim := valkey.TrimWarm{Below: valkey.ID{Generation: 2, End: 5}}
	no(t, w.store.TrimWarm(&trim))
	trim.Below.End = 6
	no(t, w.store.TrimWarm(&trim))
	if m := w.mirror(on, 2, 5, 1, w.ack()); m.Predecessor.Found || !m.AllDone() {
		t.Fatalf("nothing before: %+v", m)
	}
}

func warmConnection(t *testing.T, w *warm) {
	on := w.fenced(2)
	w.Disconnect()
	m := valkey.Mirror{On: on, Ack: w.ack(), Entries: []valkey.Outgoing{{ID: valkey.ID{Generation: 2, End: 1}, Value: WarmData(2, 0, nil)}}}
	if err := w.store.Mirror(&m); !errors.Is(err, valkey.ErrConnectionLost) || m.Confirmed != 0 || m.Entries[0].XADD.Outcome != valkey.Unsent {
		t.Fatalf("on a broken connection: %v, %+v", err, m)
	}
	if err := w.store.Mirror(&m); !errors.Is(err, valkey.ErrConnection) {
		t.Fatalf("on none: %v", err)
	}
	w.holds(valkey.ID{Generation: 2}) // opens another one
	if err := w.store.Mirror(&m); !errors.Is(err, valkey.ErrConnection) {
		t.Fatalf("on another one: %v", err)
	}
	w.holds(valkey.ID{Generation: 2})
	if again := w.fenced(3); again == on {
		t.Fatal("another connection of the same identity")
	}
	no(t, w.store.Close())
	no(t, w.store.Close())
	w.holds(valkey.ID{Generation: 2}, valkey.ID{Generation: 3})
}

func warmRead(t *testing.T, w *warm) {
	on := w.fenced(2)
	w.mirrored(on, 2, 0, 10)
	on = w.fenced(3)
	w.mirrored(on, 3, 10, 3)
	from, got := valkey.ID{}, 0
	r := valkey.ReadWarm{Count: 4}
	for more := true; more; more = r.More {
		r.From = from
		no(t, w.store.ReadWarm(&r))
		for i := range r.Entries {
			e := &r.Entries[i]
			if e.Err != nil || e.Header.LogID != warmLog {
				t.Fatalf("%+v", e)
			}
			var batch segment.Identity
			walk := e.Header.Walk(e.Body)
			if _, err := walk.Next(&batch); e.Header.Kind == warmentry.Data && (err != nil || batch.Base != segment.Offset(got)) {
				t.Fatalf("offset %d: %+v, %v", got, batch, err)
			}
			if e.Header.Kind == warmentry.Data {
				got++
			}
			from = valkey.ID{Generation: e.ID.Generation, End: e.ID.End + 1}
		}
	}
	if got != 13 {
		t.Fatalf("%d entries", got)
	}
	r.From = valkey.ID{Generation: 2, End: 11}
	no(t, w.store.ReadWarm(&r))
	if len(r.Entries) != 4 || r.Entries[0].ID != (valkey.ID{Generation: 3}) || !r.More {
		t.Fatalf("from an id that is not there: %d entries from %v", len(r.Entries), r.Entries[0].ID)
	}
}

func warmReadBounds(t *testing.T, w *warm) {
	on := w.fenced(2)
	for i := range segment.Offset(3) {
		m := valkey.Mirror{On: on, Ack: w.ack(), Entries: []valkey.Outgoing{
			{ID: valkey.ID{Generation: 2, End: i + 1}, Value: WarmData(2, i, make([]byte, 2<<20))},
		}}
		no(t, w.store.Mirror(&m))
	}
	r := valkey.ReadWarm{From: valkey.ID{Generation: 2, End: 1}, Count: 3}
	if err := w.store.ReadWarm(&r); !errors.Is(err, valkey.ErrReplyTooLarge) || len(r.Entries) != 0 {
		t.Fatalf("6 MiB where 4 fit: %v, %d entries", err, len(r.Entries))
	}
	r.Count = 1
	no(t, w.store.ReadWarm(&r))
	if len(r.Entries) != 1 || r.Entries[0].Err != nil || !r.More {
		t.Fatalf("%+v", r)
	}
}

func warmTrim(t *testing.T, w *warm) {
	on := w.fenced(2)
	w.mirrored(on, 2, 0, 5)
	trim := valkey.TrimWarm{Below: valkey.ID{Generation: 2, End: 3}}
	no(t, w.store.TrimWarm(&trim))
	if trim.XTRIM.Outcome != valkey.Done || trim.Removed != 3 {
		t.Fatalf("%+v", trim)
	}
	w.holds(valkey.ID{Generation: 2, End: 3}, valkey.ID{Generation: 2, End: 4}, valkey.ID{Generation: 2, End: 5})
	no(t, w.store.TrimWarm(&trim))
	if trim.Removed != 0 {
		t.Fatalf("again: %+v", trim)
	}
	if b := w.probe(); b.First.ID != trim.Below || b.Entries != 3 {
		t.Fatalf("%+v", b)
	}
	if m := w.mirrored(on, 2, 5, 1); m.Predecessor.ID.End != 5 {
		t.Fatalf("%+v", m.Predecessor)
	}
}

// A stream that was emptied still refuses the ids that it gave.
func warmLastID(t *testing.T, w *warm) {
	on := w.fenced(2)
	w.mirrored(on, 2, 0, 2)
	trim := valkey.TrimWarm{Below: valkey.ID{Generation: 9}}
	no(t, w.store.TrimWarm(&trim))
	if trim.Removed != 3 {
		t.Fatalf("%+v", trim)
	}
	want, last := valkey.Smaller, valkey.ID{Generation: 2, End: 2}
	if w.ForgetsLastID {
		want = valkey.Done
	}
	b := w.probe()
	if b.Entries != 0 || b.Top.Found || b.LastID != last {
		t.Fatalf("%+v", b)
	}
	if f := w.fence(1); f.XADD.Outcome != want {
		t.Fatalf("%+v", f)
	}
}

func warmWrongType(t *testing.T, w *warm) {
	w.SetType(w.store.Key())
	var kind *valkey.TypeError
	if err := w.store.Probe(&valkey.Probe{}); !errors.As(err, &kind) || kind.Type == "" {
		t.Fatalf("probe: %v", err)
	}
	if err := w.store.ReadWarm(&valkey.ReadWarm{Count: 1}); !errors.As(err, &kind) {
		t.Fatalf("read: %v", err)
	}
	f := valkey.Fence{Generation: 2, Marker: WarmMarker(2), Ack: w.ack()}
	if err := w.store.Fence(&f); !errors.As(err, &kind) || f.Confirmed != 0 {
		t.Fatalf("fence: %v, %+v", err, f)
	}
	trim := valkey.TrimWarm{Below: valkey.ID{Generation: 2}}
	no(t, w.store.TrimWarm(&trim))
	if trim.XTRIM.Outcome != valkey.WrongType {
		t.Fatalf("trim: %+v", trim)
	}
	if err := w.store.Probe(&valkey.Probe{}); !errors.As(err, &kind) {
		t.Fatalf("after all that: %v", err)
	}
}

func warmForeign(t *testing.T, w *warm) {
	on := w.fenced(1)
	w.mirrored(on, 1, 0, 1)
	data := string(WarmData(1, 0, nil))
	for i, e := range []struct{ field, value string }{{"name", "value"}, {"e", "value"}, {"x", data}, {"e", data}, {"e", data[:100]}} {
		w.Foreign(w.store.Key(), valkey.ID{Generation: uint64(i + 2), End: 7}.String(), e.field, e.value)
		b := w.probe()
		if b.Top.Err == nil || b.First.Err != nil || b.Top.ID.Generation != uint64(i+2) {
			t.Fatalf("%s %.10q: %+v", e.field, e.value, b.Top)
		}
		if foreign := errors.Is(b.Top.Err, valkey.ErrForeign); foreign != (i < 3) {
			t.Fatalf("%s %.10q: %v", e.field, e.value, b.Top.Err)
		}
	}
	w.Foreign(w.store.Key(), "18446744073709551615-18446744073709551615", "e", data)
	if b := w.probe(); !errors.Is(b.Top.Err, valkey.ErrForeign) {
		t.Fatalf("an id that is no offset: %+v", b.Top)
	}
	if f := w.fence(9); f.XADD.Outcome != valkey.Smaller || f.Top.Err == nil {
		t.Fatalf("fence behind the last id there is: %+v", f)
	}
}

const short = 50_000_000 // 50 ms

func warmFrozen(t *testing.T, w *warm) {
	if w.Freeze == nil {
		return // no replica: nothing to stop
	}
	on := w.fenced(2)
	w.Freeze(true)
	m := w.mirror(on, 2, 0, 1, valkey.Ack{Replicas: 1, Wait: short})
	if !m.AllDone() || m.Confirmed != 0 {
		t.Fatalf("a replica that is stopped confirmed: %+v", m)
	}
	f := valkey.Fence{Generation: 3, Marker: WarmMarker(3), Ack: valkey.Ack{Replicas: 1, Wait: short}}
	no(t, w.store.Fence(&f))
	if f.XADD.Outcome != valkey.Done || f.Confirmed != 0 {
		t.Fatalf("a replica that is stopped confirmed: %+v", f)
	}
	w.Freeze(false)
	w.mirrored(f.On, 3, 1, 1)
	w.holds(valkey.ID{Generation: 2}, valkey.ID{Generation: 2, End: 1}, valkey.ID{Generation: 3}, valkey.ID{Generation: 3, End: 2})
}

// What another connection's WAIT says is about that connection: here it confirms what nobody has.
func warmWaitElsewhere(t *testing.T, w *warm) {
	if w.Freeze == nil {
		return // no replica: nothing to wait for
	}
	on := w.fenced(2)
	w.Freeze(true)
	defer w.Freeze(false)
	if m := w.mirror(on, 2, 0, 1, valkey.Ack{Replicas: 1, Wait: short}); m.Confirmed != 0 {
		t.Fatalf("%+v", m)
	}
	other, err := w.Dialer.Dial(w.store.Key())
	no(t, err)
	defer func() { no(t, other.Close()) }()
	var p valkey.Pipeline
	p.Reset(10*second, 1<<20)
	p.Command("TYPE").Key(w.store.Key())
	p.Command("WAIT").Number(1).Number(50)
	no(t, other.Do(&p))
	if r := &p.Replies[1]; r.Kind != valkey.Int || int(r.Int) != w.Replicas {
		t.Fatalf("WAIT where nothing was written: %+v", r)
	}
}
