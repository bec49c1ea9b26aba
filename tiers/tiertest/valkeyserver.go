package tiertest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a server of a test, on a free port of the loopback interface.
type Process struct {
	Addr string
	Port string
	Dir  string

	t    testing.TB
	args []string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

// StartValkey starts a valkey-server with these settings, each "name value"; PORT stands for its
// port. It is stopped at the end of the test.
func StartValkey(t testing.TB, settings ...string) *Process {
	t.Helper()
	p := valkeyProcess(t, "valkey-server")
	p.args = []string{"--port", p.Port, "--bind", "127.0.0.1", "--dir", p.Dir, "--repl-diskless-sync-delay", "0", "--hz", "100"}
	for _, s := range settings {
		name, value, _ := strings.Cut(strings.Replace(s, " PORT", " "+p.Port, 1), " ")
		p.args = append(append(p.args, "--"+name), strings.Split(value, " ")...)
	}
	p.Start()
	return p
}

// StartSentinel starts a valkey-sentinel that watches a primary under a name, alone.
func StartSentinel(t *testing.T, name string, primary *Process) *Process {
	t.Helper()
	p := valkeyProcess(t, "valkey-sentinel")
	file := filepath.Join(p.Dir, "sentinel.conf")
	config := "port " + p.Port + "\nbind 127.0.0.1\ndir " + p.Dir + "\nsentinel monitor " + name + " 127.0.0.1 " + primary.Port +
		" 1\nsentinel down-after-milliseconds " + name + " 300\nsentinel failover-timeout " + name + " 2000\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.args = []string{file}
	p.Start()
	return p
}

func valkeyProcess(t testing.TB, program string) *Process {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Lacks(t, program+" in PATH", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := &Process{Addr: "127.0.0.1:" + port, Port: port, Dir: t.TempDir(), t: t, cmd: exec.Command(path)}
	t.Cleanup(func() {
		p.Resume()
		p.Kill()
		if t.Failed() {
			t.Logf("%s at port %s said:\n%s", program, port, p.log.String())
		}
	})
	return p
}

// Start starts the process, again if it was killed, and waits until it listens.
func (p *Process) Start() {
	p.t.Helper()
	cmd := exec.Command(p.cmd.Path, p.args...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd = cmd
	Eventually(p.t, "a server that listens", func() bool {
		c, err := net.Dial("tcp", p.Addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// Kill kills the process and waits until it is gone.
func (p *Process) Kill() {
	if p.cmd.Process != nil && p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it was killed
	}
}

// Pause stops the process with SIGSTOP.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	if p.cmd.Process != nil && p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// Eventually waits until something holds, and fails the test after 20 s.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 20 s for %s", what)
		}
	}
}
