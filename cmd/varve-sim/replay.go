package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"varve/sim"
)

// scheduleSource is which schedule a command works on.
type scheduleSource struct {
	What    string   `arg:"" name:"seed|file" help:"A seed, or a file with the text form of a schedule."`
	Profile string   `enum:"disk,cold,warm,tiers,broker" default:"disk" placeholder:"disk" help:"What is simulated: disk; cold: a disk and a bucket; warm: a disk and a Valkey server; tiers: all three; broker: a node with many logs, and its clients."`
	Ops     int      `default:"0" placeholder:"K" help:"Operations of the seed, as in the run that found it."`
	Without []string `placeholder:"NAME" help:"Left out, as in the run that found it."`
}

// Validate checks ranges.
func (c *scheduleSource) Validate() error {
	return errors.Join(validateWithout(c.Without), validateOps(c.Ops))
}

// words are the arguments that name the same schedule on a command line.
func (c *scheduleSource) words() string {
	words := c.What
	if c.Profile != "" && c.Profile != sim.MixDisk.String() {
		words += " --profile " + c.Profile
	}
	if c.Ops > 0 {
		words += fmt.Sprintf(" --ops %d", c.Ops)
	}
	if len(c.Without) > 0 {
		words += " --without " + strings.Join(c.Without, ",")
	}
	return words
}

// mixOf returns the mix that a flag names; the flags allow no other words.
func mixOf(word string) sim.Mix {
	mix, _ := sim.ParseMix(word)
	return mix
}

type replayCommand struct {
	scheduleSource
	Verbose bool   `short:"v" help:"Print the timeline."`
	Save    string `placeholder:"FILE" help:"Write the schedule as text, to keep or to edit."`
}

// Run runs the schedule and prints header, outcome and hash.
func (c *replayCommand) Run(s *streams) error {
	schedule, err := c.schedule()
	if err != nil {
		return err
	}
	text := schedule.AppendText(nil)
	if c.Save != "" {
		if err := os.WriteFile(c.Save, text, 0o644); err != nil {
			return err
		}
	}
	header, _, _ := bytes.Cut(text, []byte("\nevents\n"))
	ops, appends := schedule.Ops()
	fmt.Fprintf(s.out, "%s\nevents      %d, of which %d operations, of which %d appends\n", header, len(schedule.Events), ops, appends)
	var trace io.Writer
	if c.Verbose {
		trace = s.out
	}
	w := sim.NewWorld()
	leave(w, c.Without)
	r := runTraced(w, schedule, trace)
	fmt.Fprintf(s.out, "ran         %d events, %d lives, %d operations, %d records acked, %d opens ended in an error\n",
		r.Events, r.Lives, r.Ops, r.Acked, r.OpenFaults)
	fmt.Fprintf(s.out, "hash        %016x\n", r.Hash)
	switch {
	case r.Violation != "":
		fmt.Fprintf(s.out, "outcome     VIOLATION of %s: %s\n", r.Check, r.Violation)
		return failure{errors.New("violated")}
	case r.Refused:
		fmt.Fprintln(s.out, "outcome     good; the log was damaged and refused to open, as it must")
	default:
		fmt.Fprintln(s.out, "outcome     good")
	}
	return nil
}

// scheduleBytesMax is far above the text of the longest schedule that can be parsed.
const scheduleBytesMax = 32 << 20

func (c *scheduleSource) schedule() (*sim.Schedule, error) {
	if seed, err := strconv.ParseUint(c.What, 10, 64); err == nil {
		s := new(sim.Schedule)
		sim.ExpandMix(s, mixOf(c.Profile), seed, c.Ops)
		return s, nil
	}
	f, err := os.Open(c.What)
	if err != nil {
		return nil, fmt.Errorf("%q is no seed, and as a file: %w", c.What, err)
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, scheduleBytesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > scheduleBytesMax:
		return nil, fmt.Errorf("%s: expected at most %d bytes, found more", c.What, scheduleBytesMax)
	}
	s, err := sim.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.What, err)
	}
	return s, nil
}

// runTraced runs a schedule with a timeline. A panic that the world lets through is a violation
// whose timeline ends with the stack.
func runTraced(w *sim.World, s *sim.Schedule, trace io.Writer) (r *sim.Result) {
	w.Trace = trace
	defer func() {
		if p := recover(); p != nil {
			r = &sim.Result{Check: "panic", Violation: fmt.Sprint(p)}
			if trace != nil {
				fmt.Fprintf(trace, "\n%s\n", debug.Stack())
			}
		}
	}()
	return w.Run(s)
}
