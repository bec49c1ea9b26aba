package fakevalkey_test

import (
	"testing"

	"varve/faultfs"
	"varve/sim/fakevalkey"
	"varve/tiers/tiertest"
	"varve/tiers/valkey"
)

// fresh is a server that draws from a seed.
func fresh(seed uint64, c fakevalkey.Config) *fakevalkey.Server {
	var r faultfs.Rand
	r.Seed(seed)
	s := fakevalkey.New(r.Below)
	s.Reset(c)
	return s
}

func TestContract(t *testing.T) {
	for _, replicas := range []int{0, 1, 2} {
		t.Run([]string{"Alone", "Replica", "Replicas"}[replicas], func(t *testing.T) {
			tiertest.TestWarm(t, func(t *testing.T) *tiertest.WarmServer {
				s := fresh(1, fakevalkey.Config{Replicas: replicas})
				w := &tiertest.WarmServer{
					Dialer: s, Replicas: replicas, Disconnect: s.Disconnect, SetType: s.SetType,
					Foreign: func(key, id, field, value string) {
						raw, err := s.Dial(key)
						if err != nil {
							t.Fatal(err)
						}
						var p valkey.Pipeline
						p.Reset(1, 1<<20)
						p.Command("XADD").Key(key).Text(id).Text(field).Text(value)
						if err := raw.Do(&p); err != nil {
							t.Fatal(err)
						}
					},
				}
				if replicas > 0 {
					w.Freeze = func(frozen bool) {
						for i := range replicas {
							s.SetFrozen(i, frozen)
						}
					}
				}
				return w
			})
		})
	}
}
