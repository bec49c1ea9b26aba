package client_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"varve/faultfs"
	"varve/sim/fakevalkey"
	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
)

// peer is one of those that must agree: two connections, and what no pipeline of a log can do.
type peer struct {
	name   string
	conns  [2]valkey.Conn
	put    func(key string)
	remove func(key string)
	freeze func(frozen bool)
}

func (p *peer) dial(t *testing.T, d valkey.Dialer) {
	t.Helper()
	for i := range p.conns {
		c, err := d.Dial(lists[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		p.conns[i] = c
	}
}

// lists are the keys of random lists, on one shard.
var lists = [2]string{"varve:{a}", "varve:{a}b"}

func fakePeer(t *testing.T, replicas int) (*peer, *fakevalkey.Server) {
	s := fakevalkey.New(func(uint64) uint64 { panic("a fake without faults draws") })
	s.Reset(fakevalkey.Config{Replicas: replicas})
	p := &peer{name: "fake", put: s.SetType, remove: s.Evict, freeze: func(frozen bool) { s.SetFrozen(0, frozen) }}
	p.dial(t, s)
	return p, s
}

// randomList writes commands. It stays within what a peer is known to do right.
type randomList struct {
	faultfs.Rand
	mini  bool // for miniredis, see TestMiniredisDiffers
	wait  int64
	added [len(lists)][]string
}

func (r *randomList) one(of ...string) string { return of[r.Below(uint64(len(of)))] }

func (r *randomList) id() string {
	if !r.mini && r.Below(40) == 0 {
		return r.one("0-0", "0-1", "18446744073709551615-0", "18446744073709551615-18446744073709551615", "9-18446744073709551615",
			"18446744073709551616-1", "1-18446744073709551616", "x", "1-x", "-1-1", "")
	}
	return fmt.Sprintf("%d-%d", 1+r.Below(4), r.Below(9))
}

// command adds a random command.
func (r *randomList) command(p *valkey.Pipeline) {
	n := r.Below(uint64(len(lists)))
	key := lists[n]
	switch r.Below(14) {
	case 0, 1, 2, 3, 4:
		id := r.id()
		r.added[n] = append(r.added[n], id)
		p.Command("XADD").Key(key).Text(id).Text(r.one("e", "f", "")).Bytes(r.value())
	case 5:
		p.Command("XRANGE").Key(key).Text("-").Text("+").Text("COUNT").Number(int64(1 + r.Below(20)))
	case 6:
		p.Command("XRANGE").Key(key).Text(r.id()).Text(r.one("+", r.id())).Text("COUNT").Number(int64(1 + r.Below(4)))
	case 7:
		p.Command("XREVRANGE").Key(key).Text(r.id()).Text("-").Text("COUNT").Number(1)
	case 8:
		p.Command("XREVRANGE").Key(key).Text("+").Text("-").Text("COUNT").Number(int64(1 + r.Below(3)))
	case 9:
		p.Command("XLEN").Key(key)
	case 10:
		r.trim(p, n)
	case 11:
		p.Command("TYPE").Key(key)
	case 12:
		p.Command("XINFO").Text("STREAM").Key(key)
	case 13:
		p.Command("WAIT").Number(1).Number(r.wait) // 0 would not wait: the answer depends on the hour
	}
}

func (r *randomList) value() []byte {
	b := make([]byte, r.Below(40))
	for i := range b {
		b[i] = byte(r.Next() >> 20)
	}
	return b
}

func (r *randomList) trim(p *valkey.Pipeline, n uint64) {
	id := r.id()
	if r.mini { // never all of it: it would forget the last id
		if id = "0-0"; len(r.added[n]) > 0 {
			id = r.added[n][0]
		}
	}
	p.Command("XTRIM").Key(lists[n]).Text("MINID").Text("=").Text(id)
}

// plain is a reply as everybody words it.
func plain(r *valkey.Reply, info bool) string {
	switch r.Kind {
	case valkey.Int:
		return fmt.Sprint(r.Int)
	case valkey.Nil:
		return "nil"
	case valkey.Error:
		return "error " + string(bytes.TrimPrefix(r.Text, []byte("ERR ")))
	case valkey.Array:
		all := "["
		for i := range r.Elems {
			if name := string(r.Elems[i&^1].Text); info && name != "length" && name != "last-generated-id" {
				continue
			}
			all += plain(&r.Elems[i], false) + " "
		}
		return all + "]"
	case valkey.Bulk, valkey.Status:
	}
	return fmt.Sprintf("%q", r.Text)
}

// agree runs random lists on peers and compares every reply with the first one's.
func agree(t *testing.T, peers []*peer, from, to uint64, mini bool) (commands int) {
	t.Helper()
	for seed := from; seed < to; seed++ {
		for _, p := range peers {
			for _, key := range lists {
				p.remove(key)
			}
		}
		r := &randomList{mini: mini, wait: 5000}
		r.Seed(seed)
		var script strings.Builder
		for range 4 + r.Below(30) {
			switch {
			case r.Below(30) == 0:
				key := lists[r.Below(2)]
				fmt.Fprintf(&script, "put %s\n", key)
				for _, p := range peers {
					p.put(key)
				}
			case r.Below(15) == 0:
				n := r.Below(2)
				r.added[n] = nil
				fmt.Fprintf(&script, "remove %s\n", lists[n])
				for _, p := range peers {
					p.remove(lists[n])
				}
			case !mini && r.Below(100) == 0:
				r.wait = 5000
				caughtUp(t, peers, seed, &script)
				if frozen := r.Below(2) == 0; frozen {
					r.wait = 20
				}
				fmt.Fprintf(&script, "frozen %v\n", r.wait == 20)
				for _, p := range peers {
					p.freeze(r.wait == 20)
				}
			}
			var p valkey.Pipeline
			p.Reset(20_000_000_000, 1<<20)
			for range 1 + r.Below(6) {
				r.command(&p)
			}
			commands += p.Len()
			agreed(t, peers, &p, int(r.Below(2)), seed, &script)
		}
		for _, p := range peers {
			p.freeze(false)
		}
	}
	return commands
}

// caughtUp lets replicas go on until they have all that was written.
func caughtUp(t *testing.T, peers []*peer, seed uint64, script *strings.Builder) {
	t.Helper()
	for _, p := range peers {
		p.freeze(false)
	}
	for conn := range 2 {
		var p valkey.Pipeline
		p.Reset(20_000_000_000, 1<<20)
		p.Command("WAIT").Number(1).Number(5000)
		agreed(t, peers, &p, conn, seed, script)
	}
}

func agreed(t *testing.T, peers []*peer, p *valkey.Pipeline, conn int, seed uint64, script *strings.Builder) {
	t.Helper()
	var first []string
	for _, peer := range peers {
		p.Replies = p.Replies[:0]
		if err := peer.conns[conn].Do(p); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, peer.name, err)
		}
		for i := range p.Replies {
			args, _ := p.Args(i)
			got := plain(&p.Replies[i], string(args[0]) == "XINFO")
			if len(first) < p.Len() {
				first = append(first, got)
				fmt.Fprintf(script, "conn %d %q: %s\n", conn, args, got)
			} else if got != first[i] {
				t.Fatalf("seed %d: %q\n%s says %s\n%s says %s\nafter\n%s", seed, args, peers[0].name, first[i], peer.name, got, script)
			}
		}
	}
}

// TestOracleMiniredis: the fake and miniredis answer alike, but for what TestMiniredisDiffers lists.
func TestOracleMiniredis(t *testing.T) {
	fake, _ := fakePeer(t, 0)
	m := newMini(t)
	mini := &peer{
		name: "miniredis",
		put: func(key string) {
			m.Del(key)
			if err := m.Set(key, "text"); err != nil {
				t.Error(err)
			}
		},
		remove: func(key string) { m.Del(key) },
		freeze: func(bool) {},
	}
	fake.freeze = mini.freeze
	mini.dial(t, dialer(t, client.Options{Addresses: []string{m.Addr()}}))
	t.Logf("%d commands", agree(t, []*peer{fake, mini}, 0, 200, true))
}

// TestOracleValkey: the fake and a real primary with a replica answer alike.
func TestOracleValkey(t *testing.T) {
	fake, _ := fakePeer(t, 1)
	p := newPair(t)
	real := &peer{
		name:   "valkey",
		put:    func(key string) { p.admin.do("SET", key, "text") },
		remove: func(key string) { p.admin.do("DEL", key) },
		freeze: func(frozen bool) {
			if frozen {
				p.replica.Pause()
			} else {
				p.replica.Resume()
			}
		},
	}
	real.dial(t, dialer(t, client.Options{Addresses: []string{p.primary.Addr}}))
	t.Logf("%d commands", agree(t, []*peer{fake, real}, 1000, 1120, false))
}
