// Package brokertest runs varve serve in a process of its own, for tests that kill it, and for those of
// clients in other languages.
package brokertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaryEnv names the program, where one is built already.
const binaryEnv = "VARVE_BIN"

// deadline is how long a node may take to open, and to close.
const deadline = 60 * time.Second

var build = sync.OnceValues(func() (path string, err error) {
	if path = os.Getenv(binaryEnv); path != "" {
		return path, nil
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "varve").Output()
	if err != nil {
		return "", err
	}
	path = filepath.Join(os.TempDir(), fmt.Sprintf("varve-of-tests-%d", os.Getpid()))
	cmd := exec.Command("go", "build", "-o", path, "./cmd/varve")
	cmd.Dir = strings.TrimSpace(string(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/varve: %w\n%s", err, out)
	}
	return path, nil
})

// Main runs the tests of a package that starts nodes, and removes the program that was built for them.
func Main(m *testing.M) {
	code := m.Run()
	if os.Getenv(binaryEnv) == "" {
		_ = os.Remove(filepath.Join(os.TempDir(), fmt.Sprintf("varve-of-tests-%d", os.Getpid())))
	}
	os.Exit(code)
}

// Node is varve serve, in one directory and at one address, from one life to the next.
type Node struct {
	Dir   string
	Addr  string // of clients
	Admin string // host:port

	args   []string
	cmd    *exec.Cmd
	exited chan struct{}

	mu  sync.Mutex
	log strings.Builder // what all lives said
}

var serving = regexp.MustCompile(`serving .* on ([0-9.]+:[0-9]+).*admin on http://([0-9.]+:[0-9]+)`)

// Start starts a node in a directory of the test, with further flags. It is stopped when the test ends.
func Start(t testing.TB, args ...string) *Node {
	t.Helper()
	n := &Node{Dir: filepath.Join(t.TempDir(), "node"), Addr: "127.0.0.1:0", Admin: "127.0.0.1:0", args: args}
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			t.Logf("what the node said:\n%s", n.Log())
		}
	})
	n.Open(t)
	return n
}

// Open starts the next life, at the address of the one before.
func (n *Node) Open(t testing.TB) {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--dir", n.Dir, "--listen", n.Addr, "--admin", n.Admin, "--min-free-bytes=0"}, n.args...)
	n.cmd, n.exited = exec.Command(path, args...), make(chan struct{})
	said, err := n.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan []string, 1)
	go n.listen(said, ready)
	select {
	case at := <-ready:
		n.Addr, n.Admin = at[1], at[2]
	case <-n.exited:
		t.Fatalf("the node ended before it served: %v\n%s", n.cmd.ProcessState, n.Log())
	case <-time.After(deadline):
		n.Kill()
		t.Fatalf("the node does not serve after %v\n%s", deadline, n.Log())
	}
}

// listen keeps what a life says.
func (n *Node) listen(said io.Reader, ready chan<- []string) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		n.mu.Lock()
		fmt.Fprintln(&n.log, lines.Text())
		n.mu.Unlock()
		if at := serving.FindStringSubmatch(lines.Text()); at != nil {
			ready <- at
		}
	}
	_ = n.cmd.Wait() // the state says how it ended
	close(n.exited)
}

// Pid returns the process of this life.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Kill ends the life with SIGKILL.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	<-n.exited
}

// Stop ends the life with SIGTERM and returns its exit code.
func (n *Node) Stop(t testing.TB) int {
	t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.exited:
	case <-time.After(deadline):
		n.Kill()
		t.Fatalf("the node does not stop in %v\n%s", deadline, n.Log())
	}
	return n.cmd.ProcessState.ExitCode()
}

// Log returns what all lives said.
func (n *Node) Log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// Varve runs another command of the program and returns what it printed and its exit code.
func Varve(ctx context.Context, t testing.TB, args ...string) (out, errOut string, code int) {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}
