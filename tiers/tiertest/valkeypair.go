package tiertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// safeSettings are those of a server that nothing is found to be unsafe of.
var safeSettings = []string{"appendonly yes", "appendfsync always", "save "}

// StartPair starts a primary and a replica that follows it, both of which persist what they take.
func StartPair(t testing.TB) (primary, replica *Process) {
	t.Helper()
	primary = StartValkey(t, safeSettings...)
	replica = StartValkey(t, append([]string{"replicaof 127.0.0.1 " + primary.Port}, safeSettings...)...)
	Eventually(t, "a replica that follows", func() bool {
		return strings.Contains(primary.Do("INFO", "replication"), "state=online")
	})
	return primary, replica
}

// Do sends one command on a connection of its own, and returns the text of the reply: of an array, the
// texts of its elements, a line each.
func (p *Process) Do(args ...string) string {
	p.t.Helper()
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	request := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c, request); err != nil {
		p.t.Fatal(err)
	}
	text, err := readReply(bufio.NewReader(c))
	if err != nil {
		p.t.Fatalf("%v: %v", args, err)
	}
	return text
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, line := line[0], strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(line)
	switch {
	case kind == '$' && n >= 0:
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return string(b[:n]), err
	case kind == '*':
		var all []string
		for range n {
			text, err := readReply(r)
			if err != nil {
				return "", err
			}
			all = append(all, text)
		}
		return strings.Join(all, "\n"), nil
	}
	return line, nil
}
