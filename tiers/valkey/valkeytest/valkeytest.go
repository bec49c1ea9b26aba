// Package valkeytest has a Valkey server in process for tests: miniredis, which is put right where it
// does what no server does. What it does otherwise is pinned in the tests of package client, by name.
// The only program that imports it is varve-sim, for its demo.
package valkeytest

import (
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Mend puts right what would hide everything else: miniredis knows no CLIENT ID, here the number of the
// connection, and answers XLEN of a wrong type twice. before, if not nil, sees each command first, and
// answers it or not. A server that was restarted has to be mended again.
func Mend(m *miniredis.Miniredis, before server.Hook) {
	var mu sync.Mutex
	ids := map[*server.Peer]int{}
	m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		if before != nil && before(c, cmd, args...) {
			return true
		}
		switch {
		case cmd == "CLIENT" && len(args) == 1 && args[0] == "ID":
			mu.Lock()
			defer mu.Unlock()
			if ids[c] == 0 {
				ids[c] = len(ids) + 1
			}
			c.WriteInt(ids[c])
			return true
		case cmd == "XLEN" && len(args) == 1 && m.Exists(args[0]) && m.Type(args[0]) != "stream":
			c.WriteError("WRONGTYPE Operation against a key holding the wrong kind of value")
			return true
		}
		return false
	})
}
