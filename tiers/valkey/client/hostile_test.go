package client_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
)

// script is a server that answers every command with what answer says.
func script(t *testing.T, answer func(command string) string) string {
	t.Helper()
	return listen(t, func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			words, err := readCommand(r)
			if err != nil {
				return
			}
			if _, err := io.WriteString(c, answer(words)); err != nil {
				return
			}
		}
	})
}

// listen serves connections until the end of the test.
func listen(t *testing.T, serve func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

func readCommand(r *bufio.Reader) (string, error) {
	var n, size int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return "", err
	}
	words := make([]string, n)
	for i := range words {
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return "", err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		words[i] = string(b[:size])
	}
	return strings.Join(words, " "), nil
}

func polite(command string) string {
	switch {
	case command == "CLIENT ID":
		return ":7\r\n"
	case strings.HasPrefix(command, "TYPE"):
		return "+none\r\n"
	case command == "ROLE":
		return "*1\r\n$6\r\nmaster\r\n"
	}
	return "+OK\r\n"
}

// Whatever a server says: an error, no panic, and no more memory than the bounds allow.
func TestHostileServer(t *testing.T) {
	for name, reply := range map[string]string{
		"a text of many bytes":      "$99999999999\r\n",
		"a text of too many bytes":  "$9223372036854775807\r\n",
		"a text of far too many":    "$" + strings.Repeat("9", 100) + "\r\n",
		"a list of many":            "*2000000000\r\n",
		"a map of many":             "%2000000000\r\n",
		"lists in lists":            strings.Repeat("*1\r\n", 200_000),
		"a line without an end":     strings.Repeat("a", 1<<20),
		"an error without an end":   "-" + strings.Repeat("E", 1<<20),
		"more bytes than allowed":   strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 5000),
		"a text cut short":          "$5\r\nab\r\n",
		"an unknown kind":           "?hello\r\n",
		"nothing":                   "\r\n",
		"a number that is none":     ":abc\r\n",
		"a length that is none":     "$abc\r\n",
		"a negative list":           "*-7\r\n",
		"a negative text":           "$-7\r\n",
		"a length of a minus":       "$-\r\nab*0\r\n",
		"two replies":               "*0\r\n*0\r\n",
		"many replies":              strings.Repeat("*0\r\n", 10000),
		"a list of the wrong":       "*1\r\n*2\r\n+a\r\n+b\r\n",
		"an entry without fields":   "*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n",
		"an entry of nothing":       "*1\r\n$-1\r\n",
		"a number":                  ":5\r\n",
		"nil":                       "*-1\r\n",
		"a text":                    "$5\r\nhello\r\n",
		"a redirection":             "-MOVED 1 127.0.0.1:1\r\n",
		"a push":                    ">2\r\n+a\r\n+b\r\n",
		"a push before the reply":   ">2\r\n+a\r\n+b\r\n*0\r\n",
		"a stream of text":          "$?\r\n;4\r\nabcd\r\n;0\r\n",
		"a page of more than asked": "*3\r\n" + strings.Repeat("*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\ne\r\n$1\r\nv\r\n", 3),
	} {
		t.Run(name, func(t *testing.T) {
			addr := script(t, func(command string) string {
				if strings.HasPrefix(command, "XRANGE") {
					return reply
				}
				return polite(command)
			})
			s, err := valkey.New("a", dialer(t, client.Options{Addresses: []string{addr}, EntryBytesMax: 1 << 20}),
				valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 1 << 20, Timeout: 300_000_000})
			if err != nil {
				t.Fatal(err)
			}
			r := valkey.ReadWarm{Count: 2}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err = s.ReadWarm(&r)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
				t.Errorf("%d bytes allocated", n)
			}
			foreign := len(r.Entries) == 1 && r.Entries[0].Err != nil
			if err == nil && !foreign && name != "a push before the reply" && name != "a stream of text" {
				t.Errorf("accepted: %+v", r.Entries)
			}
			if err != nil && (!strings.Contains(err.Error(), "read of varve:{a}") || len(err.Error()) > 500) {
				t.Errorf("%.600v", err)
			}
			_ = s.Close()
		})
	}
}

// A proxy that connects to the server again, and tells nobody: the pipeline is an error.
func TestProxyThatReconnects(t *testing.T) {
	p := newServer(t)
	var again atomic.Bool
	addr := listen(t, func(c net.Conn) {
		up, err := net.Dial("tcp", p.Addr)
		if err != nil {
			return
		}
		defer func() { _ = up.Close() }()
		r, replies := bufio.NewReader(c), bufio.NewReader(up)
		for {
			words, err := readCommand(r)
			if err != nil {
				return
			}
			if again.Load() && strings.HasPrefix(words, "XREVRANGE") { // in the middle of a pipeline
				again.Store(false)
				_ = up.Close()
				if up, err = net.Dial("tcp", p.Addr); err != nil {
					return
				}
				replies = bufio.NewReader(up)
			}
			if _, err := up.Write(encode(words)); err != nil {
				return
			}
			if err := copyReply(c, replies); err != nil {
				return
			}
		}
	})
	s := newStore(t, dialer(t, client.Options{Addresses: []string{addr}}))
	f := valkey.Fence{Generation: 2, Marker: []byte("x"), Ack: valkey.Ack{Wait: 1}}
	if err := s.Fence(&f); err != nil {
		t.Fatal(err)
	}
	again.Store(true)
	m := valkey.Mirror{On: f.On, Ack: f.Ack, Entries: []valkey.Outgoing{{ID: valkey.ID{Generation: 2, End: 1}, Value: []byte("x")}}}
	if err := s.Mirror(&m); !errors.Is(err, valkey.ErrReconnected) || m.Confirmed != 0 || again.Load() {
		t.Fatalf("%v, %+v", err, m)
	}
	if err := s.Mirror(&m); !errors.Is(err, valkey.ErrConnection) {
		t.Fatalf("and again: %v", err)
	}
}

func encode(words string) []byte {
	var b bytes.Buffer
	all := strings.Split(words, " ")
	fmt.Fprintf(&b, "*%d\r\n", len(all))
	for _, w := range all {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.Bytes()
}

// copyReply passes one reply on.
func copyReply(w io.Writer, r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, line); err != nil {
		return err
	}
	var n int64
	if len(line) > 1 {
		_, _ = fmt.Sscanf(line[1:], "%d", &n) // a status has no number
	}
	switch {
	case line[0] == '$' && n >= 0:
		_, err = io.CopyN(w, r, n+2)
	case line[0] == '*':
		for ; n > 0 && err == nil; n-- {
			err = copyReply(w, r)
		}
	}
	return err
}

// Close ends an operation that waits.
func TestCloseEndsAWait(t *testing.T) {
	p := newServer(t)
	conn, err := dialer(t, client.Options{Addresses: []string{p.Addr}}).Dial("varve:{a}")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		var w valkey.Pipeline
		w.Reset(60_000_000_000, 1<<10)
		w.Command("WAIT").Number(1).Number(60_000)
		done <- conn.Do(&w)
	}()
	time.Sleep(50 * time.Millisecond)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, valkey.ErrConnectionLost) {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it still waits")
	}
}
