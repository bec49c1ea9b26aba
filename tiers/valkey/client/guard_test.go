package client

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"varve/tiers/valkey"
)

// What comes in is bounded as a whole, by line, and by what was asked for.
func TestGuard(t *testing.T) {
	const ping = "*1\r\n$4\r\nPING\r\n"
	for _, c := range []struct {
		name    string
		asked   string
		replies string
		want    error
	}{
		{"one reply", ping, "+PONG\r\n", nil},
		{"replies to two commands", ping + ping, "+PONG\r\n*2\r\n$1\r\na\r\n*-1\r\n", nil},
		{"a reply in a reply", ping, "*1\r\n*2\r\n:1\r\n%1\r\n$-1\r\n:2\r\n", nil},
		{"two replies", ping, "+PONG\r\n+PONG\r\n", valkey.ErrProtocol},
		{"a reply behind a list", ping, "*2\r\n:1\r\n:2\r\n:3\r\n", valkey.ErrProtocol},
		{"nobody asked", "", "+PONG\r\n", valkey.ErrProtocol},
		{"many small ones", ping, "*30000\r\n" + strings.Repeat(":1\r\n", 30000), valkey.ErrReplyTooLarge},
		{"a long line", ping, "+" + strings.Repeat("a", lineMax+1), valkey.ErrReplyTooLarge},
		{"a long text", ping, "$1001\r\n", valkey.ErrReplyTooLarge},
		{"a list of more than can come", ping, "*200000\r\n", valkey.ErrReplyTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &guard{longest: 1000}
			if g.allow(0); c.name == "a long line" {
				g.allow(1 << 20)
			}
			near, far := net.Pipe()
			conn := &guarded{Conn: near, guard: g, in: outline{longest: g.longest}, out: outline{longest: 1 << 20}}
			go func() {
				_, _ = io.ReadFull(far, make([]byte, len(c.asked)))
				_, _ = io.WriteString(far, c.replies) // cut by the guard, or whole
				_ = far.Close()
			}()
			if c.asked != "" {
				if _, err := conn.Write([]byte(c.asked)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := io.ReadAll(conn)
			if !errors.Is(err, c.want) || c.want == nil && string(got) != c.replies || !errors.Is(g.reason(), c.want) {
				t.Errorf("%q, %v; reason %v", got[:min(len(got), 40)], err, g.reason())
			}
		})
	}
}
