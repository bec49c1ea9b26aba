// Command varve-sim runs the production log in a simulated world that crashes it, from seeds. Its
// subcommands run many seeds, replay one, prove that a seed is always the same run, and show on a
// real directory what a log survives.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands are what varve-sim can do: one file for each subcommand. The hidden one is what it starts
// itself as, in another process. A program with a planted bug has only these: it is built for each bug,
// with the tag mutant.
type commands struct {
	Run    runCommand    `cmd:"" help:"Run many seeds; a violated property ends with the line that replays it."`
	Replay replayCommand `cmd:"" help:"Run one seed, or one kept schedule, and print what happened."`
	Shrink shrinkCommand `cmd:"" help:"Make a failing schedule small: fewer events, plain values, few faults."`
	Meta   metaCommand   `cmd:"" help:"Prove that a seed is always the same run, in any world and any process."`

	MetaChild metaChildCommand `cmd:"" hidden:""`

	moreCommands
}

// streams are where a command writes, and the world it runs seeds in.
type streams struct {
	out   *bufio.Writer
	err   io.Writer
	world func() simulator
}

// note prints a line for people, beside the output.
func (s *streams) note(format string, args ...any) { fmt.Fprintf(s.err, format+"\n", args...) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, newWorld)
	stop()
	os.Exit(code)
}

// failure is an error that the command has explained already.
type failure struct{ error }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer, world func() simulator) int {
	s := &streams{out: bufio.NewWriterSize(out, 64<<10), err: errOut, world: world}
	var c commands
	code, exited := exitOK, false
	parser, err := kong.New(&c, kong.Name("varve-sim"), kong.Description("The crash simulator of Varve."), kong.UsageOnError(),
		kong.Writers(out, errOut), kong.Exit(func(n int) { code, exited = n, true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Bind(s), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		panic(err) // the command table itself is wrong
	}
	k, err := parser.Parse(args)
	if exited { // --help
		return code
	}
	if err != nil {
		s.note("varve-sim: %v; run: varve-sim --help", err)
		return exitUsage
	}
	err = k.Run()
	if flushErr := s.out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("write output: %w", flushErr)
	}
	if err == nil {
		return exitOK
	}
	if explained := (failure{}); !errors.As(err, &explained) {
		s.note("varve-sim: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return exitFailed
}
