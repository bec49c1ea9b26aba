// Command varve appends to, reads and looks after durable logs. README.md has a walk-through.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"

	"varve"
	"varve/core/topics"
	"varve/tiers/dirbucket"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitDamaged = 3
)

// commands are what varve can do: one file for each subcommand.
type commands struct {
	Log struct {
		Append  appendCommand  `cmd:"" help:"Append lines of standard input, or generated records, to a log."`
		Read    readCommand    `cmd:"" help:"Print records. Never writes; works beside a running writer."`
		Check   checkCommand   `cmd:"" help:"Print what recovery would find and do. Never writes."`
		Dump    dumpCommand    `cmd:"" help:"Print what the files hold, byte position by byte position. Never writes."`
		Repair  repairCommand  `cmd:"" help:"Print how a log could be repaired, and do it with --apply."`
		Tiers   tiersCommand   `cmd:"" help:"Draw which tier holds which records. Never writes."`
		Offload offloadCommand `cmd:"" help:"Move records to the cold tier, and their files off the disk."`
		Bench   benchCommand   `cmd:"" help:"Measure appends against the raw speed of the disk."`
	} `cmd:"" help:"Work with a log in a directory."`
	Cold struct {
		Scrub   scrubCommand   `cmd:"" help:"Read every object of the cold tier and name what is wrong. Writes nothing without --repair."`
		Rebuild rebuildCommand `cmd:"" name:"rebuild-manifest" help:"Make a manifest that is lost of the objects that are there; do it with --apply."`
	} `cmd:"" help:"Look after the cold tier."`
	Serve serveCommand `cmd:"" help:"Serve topics to Kafka's clients."`
	Topic struct {
		Create   topicCreateCommand   `cmd:"" help:"Create topics."`
		List     topicListCommand     `cmd:"" help:"Print the topics of a node."`
		Describe topicDescribeCommand `cmd:"" help:"Print partitions and configuration of topics."`
		Delete   topicDeleteCommand   `cmd:"" help:"Delete topics with all that they hold."`
		Rebuild  topicRebuildCommand  `cmd:"" name:"rebuild-catalogue" help:"Make a catalogue that is damaged of what is left of it, in the directory of a node that does not run; do it with --apply."`
	} `cmd:"" help:"Work with the topics of a node."`
	Config struct {
		Explain explainCommand `cmd:"" help:"Print what a configuration promises, risks and needs."`
	} `cmd:"" help:"Look at a configuration."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// streams are where a command reads and writes.
type streams struct {
	in  io.Reader
	out *bufio.Writer
	err io.Writer

	noting sync.Mutex // guards err, as far as notes go
	room   string     // what else than freeing it makes space for the log that was opened, "" if there is none
}

// note prints a line for people, beside the output.
func (s *streams) note(format string, args ...any) {
	s.noting.Lock()
	defer s.noting.Unlock()
	fmt.Fprintln(s.err, plain(fmt.Sprintf(format, args...)))
}

// plain takes the name of the package out of errors: it says nothing to people.
func plain(text string) string { return strings.ReplaceAll(text, "core: ", "") }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal ends the work in good order, a second one the process
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	s := &streams{in: in, out: bufio.NewWriterSize(out, 64<<10), err: errOut}
	var c commands
	code, exited := exitOK, false
	from := &origins{}
	parser, err := kong.New(&c, kong.Name("varve"), kong.Description("A durable append-only log."), kong.UsageOnError(),
		kong.Writers(out, errOut), kong.Exit(func(n int) { code, exited = n, true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Bind(s, from), kong.Resolvers(from), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		panic(err) // the command table itself is wrong
	}
	k, err := parser.Parse(args)
	if exited { // --help
		return code
	}
	if from.err != nil {
		err = from.err // whatever else there is to say comes from not knowing the file
	}
	if err == nil && slices.ContainsFunc(k.Flags(), func(f *kong.Flag) bool { return f.Name == "dir" && f.Required && f.Target.String() == "" }) {
		err = errors.New("--dir is empty: want the directory of a log") // and not the one that we are in
	}
	if err = explained(err, from.source); err != nil {
		s.note("varve: %s; run: varve --help", err)
		return exitUsage
	}
	err = k.Run()
	if flushErr := s.out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("write output: %w", flushErr)
	}
	return s.exit(err)
}

// exit prints an error on one line and returns its exit code.
func (s *streams) exit(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, syscall.EPIPE): // whoever read the output has had enough
		return exitOK
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	s.note("varve: %s%s", text, s.advice(err))
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case damaged(err):
		return exitDamaged
	}
	return exitFailed
}

// advice is the next step where the error does not name one.
func (s *streams) advice(err error) string {
	var bucket *dirbucket.Error
	var path *fs.PathError
	switch {
	case errors.As(err, &path) && path.Path == os.Stdout.Name(): // it is not the log's disk that is full
	case errors.As(err, &bucket): // which says it itself
	case errors.Is(err, varve.ErrInUse):
		return "; end that process first; log read and log check work beside it"
	case errors.Is(err, varve.ErrNoSpace), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "; free some space" + s.room
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "; it takes the right to read there, and to write for appends and repairs: log read and log check only read"
	case errors.Is(err, syscall.ENOTDIR):
		return "; name the directory of a log"
	}
	return ""
}

// usageError is a wrong combination of flags.
type usageError struct{ error }

// nextStep is an error whose advice is another one: the command that it names is this one.
type nextStep struct {
	error
	next string
}

func (e nextStep) Error() string {
	return strings.Replace(e.error.Error(), "run: varve log check", e.next, 1)
}

// Unwrap returns the error itself.
func (e nextStep) Unwrap() error { return e.error }

// errDamaged marks errors that mean damage without being one of the typed ones.
var errDamaged = errors.New("damaged")

// damaged reports whether an error says that the log is damaged, rather than that something failed.
func damaged(err error) bool {
	var corrupt *varve.CorruptError
	var lost *varve.LostSuffixError
	var refused *varve.RefusedError
	var entry *topics.CatalogueError
	return errors.Is(err, errDamaged) || asCorrupt(err, &corrupt) || errors.As(err, &lost) || errors.As(err, &entry) ||
		errors.As(err, &refused) && (strings.Contains(refused.Next, "repair") || strings.Contains(refused.Next, "rebuild"))
}

func asCorrupt(err error, to **varve.CorruptError) bool { return errors.As(err, to) }
