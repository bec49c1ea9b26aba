package client_test

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
)

// talk sends commands to a server and returns the lines of its answers.
func talk(t *testing.T, addr string, commands ...string) []string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, command := range append(slices.Clone(commands), "PING") {
		if _, err := c.Write(encode(command)); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for r := bufio.NewScanner(c); r.Scan(); {
		if r.Text() == "+PONG" {
			return lines
		}
		lines = append(lines, r.Text())
	}
	t.Fatalf("no answer to PING: %q", lines)
	return nil
}

// What miniredis does otherwise than a server, each with what depends on it. Where one of these fails,
// miniredis has learned it, and the place that goes round it can go.
func TestMiniredisDiffers(t *testing.T) {
	for _, c := range []struct {
		name     string // and where the difference is kept away from what is tested
		commands []string
		mini     []string
		real     []string // prefixes
	}{
		{
			name:     "FK-1 the last id is forgotten with the last entry (ForgetsLastID, randomList.trim)",
			commands: []string{"XADD k 100-0 e v", "XTRIM k MAXLEN 0", "XADD k 50-0 e v"},
			mini:     []string{"$5", "100-0", ":1", "$4", "50-0"},
			real:     []string{"$5", "100-0", ":1", "-ERR The ID specified in XADD is equal or smaller"},
		},
		{
			name:     "FK-2 a trim that may leave more leaves nothing more (no log sends one)",
			commands: []string{"XADD k 1-0 e v", "XADD k 2-0 e v", "XADD k 3-0 e v", "XTRIM k MAXLEN ~ 1"},
			mini:     []string{"$3", "1-0", "$3", "2-0", "$3", "3-0", ":2"},
			real:     []string{"$3", "1-0", "$3", "2-0", "$3", "3-0", ":0"},
		},
		{
			name:     "the length of another type is answered twice (valkeytest.Mend)",
			commands: []string{"SET k v", "XLEN k"},
			mini:     []string{"+OK", "-WRONGTYPE Operation against a key holding the wrong kind of value", ":0"},
			real:     []string{"+OK", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		},
		{
			name:     "no id of a connection (valkeytest.Mend)",
			commands: []string{"CLIENT ID"},
			mini:     []string{"-ERR unknown subcommand 'ID'. Try CLIENT HELP."},
			real:     []string{":"},
		},
		{
			name:     "a stream never runs out of ids (randomList.id)",
			commands: []string{"XADD k 18446744073709551615-18446744073709551615 e v", "XADD k 1-1 e v"},
			mini:     []string{"$41", "18446744073709551615-18446744073709551615", "-ERR The ID specified in XADD is equal or smaller than the target stream top item"},
			real:     []string{"$41", "18446744073709551615-18446744073709551615", "-ERR The stream has exhausted the last possible ID"},
		},
		{
			name:     "no CONFIG (findings of Probe)",
			commands: []string{"CONFIG GET save"},
			mini:     []string{"-ERR unknown command `CONFIG`, with args beginning with: `GET`, `save`, "},
			real:     []string{"*2", "$4", "save", "$0", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := miniredis.RunT(t)
			got := talk(t, m.Addr(), c.commands...)
			if strings.Join(got, "\n") != strings.Join(c.mini, "\n") {
				t.Errorf("miniredis says %q, once %q", got, c.mini)
			}
		})
		t.Run(c.name+" in truth", func(t *testing.T) {
			p := newServer(t)
			got := talk(t, p.Addr, c.commands...)
			if len(got) != len(c.real) {
				t.Fatalf("a server says %q, once %q", got, c.real)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.real[i]) {
					t.Errorf("a server says %q, once %q", got, c.real)
				}
			}
		})
	}
	t.Run("WAIT counts no replica, whoever follows", func(t *testing.T) {
		m := newMini(t)
		conn, err := dialer(t, client.Options{Addresses: []string{m.Addr()}}).Dial(lists[0])
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		var p valkey.Pipeline
		p.Reset(10_000_000_000, 1<<10)
		p.Command("XADD").Key(lists[0]).Text("1-1").Text("e").Text("v")
		p.Command("WAIT").Number(1).Number(5000)
		if err := conn.Do(&p); err != nil || p.Replies[1].Int != 0 {
			t.Errorf("%v, %+v", err, p.Replies)
		}
	})
}
