package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"varve"
)

// childDir is the environment variable that makes a test process the program, with this directory.
const childDir = "VARVE_TEST_CHILD_DIR"

// child starts log append --report-acks in a process of its own.
func child(t *testing.T, dir string) (cmd *exec.Cmd, in *os.File, out *os.File) {
	t.Helper()
	stdin, in, err := os.Pipe()
	out, stdout, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0], "-test.run=TestSignals")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); in.Close(); out.Close() }) //nolint:errcheck // it may have ended
	_, _ = stdin.Close(), stdout.Close()
	return cmd, in, out
}

// The first signal ends a command in good order; a second one ends it where that cannot be, because
// nobody reads what it prints.
func TestSignals(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Args = append([]string{"varve"}, appendArgs(dir, "--report-acks")...)
		main()
	}
	t.Run("in good order", func(t *testing.T) {
		dir := t.TempDir() + "/log"
		cmd, in, out := child(t, dir)
		if _, err := in.WriteString("a\nb\n"); err != nil {
			t.Fatal(err)
		}
		acks := bufio.NewReader(out)
		for range 2 {
			if _, err := acks.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
			t.Fatal(err)
		}
		x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
		if err != nil || x.Proven != 2 || !x.Plan.Files[0].Info.Sealed {
			t.Fatalf("not closed cleanly: %+v %v", x, err)
		}
	})
	t.Run("at once", func(t *testing.T) {
		cmd, in, _ := child(t, t.TempDir()+"/log")
		go func() { // until the child, which cannot print its acks, reads no more, and ends
			lines := make([]byte, 1<<16)
			for i := range lines {
				lines[i] = '\n'
			}
			for err := error(nil); err == nil; {
				_, err = in.Write(lines)
			}
		}()
		time.Sleep(500 * time.Millisecond)
		ended := make(chan error)
		go func() { ended <- cmd.Wait() }()
		for range 50 {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
		t.Fatal("signals do not end it")
	})
}
