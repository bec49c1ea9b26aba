package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	library "github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"varve/tiers/tiertest"
	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
	"varve/tiers/valkey/valkeytest"
)

// A client of a cluster ends seconds after its end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*clusterClient)._refresh.func2"))
}

// admin sends commands of tests, apart from what is tested.
type admin struct {
	t *testing.T
	c library.Client
}

func newAdmin(t *testing.T, addr string) *admin {
	t.Helper()
	c, err := library.NewClient(library.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true, AlwaysRESP2: true, ClientName: "admin",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &admin{t, c}
}

// do sends a command and returns the reply as text.
func (a *admin) do(args ...string) string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := a.c.Do(ctx, a.c.B().Arbitrary(args...).Build()).ToMessage()
	if err != nil {
		a.t.Fatalf("%v: %v", args, err)
	}
	s, _ := m.ToString()
	return s
}

// number is do for a reply that is one.
func (a *admin) number(args ...string) int64 {
	a.t.Helper()
	n, err := a.c.Do(a.t.Context(), a.c.B().Arbitrary(args...).Build()).ToInt64()
	if err != nil {
		a.t.Fatalf("%v: %v", args, err)
	}
	return n
}

func dialer(t *testing.T, o client.Options) *client.Dialer {
	t.Helper()
	d, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newMini starts a miniredis that is put right.
func newMini(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.RunT(t)
	valkeytest.Mend(m, nil)
	return m
}

func miniServer(t *testing.T) *tiertest.WarmServer {
	m := newMini(t)
	return &tiertest.WarmServer{
		Dialer:        dialer(t, client.Options{Addresses: []string{m.Addr()}}),
		ForgetsLastID: true,
		Disconnect: func() {
			m.Close()
			if err := m.Restart(); err != nil {
				t.Fatal(err)
			}
			valkeytest.Mend(m, nil)
		},
		SetType: func(key string) {
			if err := m.Set(key, "text"); err != nil {
				t.Fatal(err)
			}
		},
		Foreign: func(key, id, field, value string) {
			if _, err := m.XAdd(key, id, []string{field, value}); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// pair is a primary with a replica.
type pair struct {
	primary, replica *tiertest.Process
	admin            *admin
}

// newPair starts them and waits until the replica follows.
func newPair(t *testing.T) *pair {
	t.Helper()
	safe := []string{"appendonly yes", "appendfsync always", "save "}
	p := &pair{primary: tiertest.StartValkey(t, safe...)}
	p.replica = tiertest.StartValkey(t, append(safe, "replicaof 127.0.0.1 "+p.primary.Port)...)
	p.admin = newAdmin(t, p.primary.Addr)
	p.follows(t)
	return p
}

func (p *pair) follows(t *testing.T) {
	t.Helper()
	tiertest.Eventually(t, "a replica that follows", func() bool {
		return strings.Contains(p.admin.do("INFO", "replication"), "state=online")
	})
}

func (p *pair) server(t *testing.T) *tiertest.WarmServer {
	p.admin.do("FLUSHALL")
	return &tiertest.WarmServer{
		Dialer:   dialer(t, client.Options{Addresses: []string{p.primary.Addr}}),
		Replicas: 1,
		Freeze: func(frozen bool) {
			if frozen {
				p.replica.Pause()
			} else {
				p.replica.Resume()
			}
		},
		Disconnect: func() { p.admin.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") },
		SetType:    func(key string) { p.admin.do("SET", key, "text") },
		Foreign:    func(key, id, field, value string) { p.admin.do("XADD", key, id, field, value) },
	}
}

var _ valkey.Dialer = (*client.Dialer)(nil)
