//go:build !mutant

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

type demoCommand struct {
	Dir   string `placeholder:"D" help:"Where to work; a directory of its own is made there. Default: the system's temporary directory."`
	Keep  bool   `help:"Leave the files there."`
	Real  bool   `help:"Three tiers with a real valkey-server, a replica of it and a real S3 server (versitygw), on free loopback ports."`
	Seeds uint64 `default:"20000" placeholder:"N" help:"Seeds of the simulator at the end."`
}

// Validate checks ranges.
func (c *demoCommand) Validate() error { return (&seedRange{Seeds: c.Seeds}).Validate() }

// Run goes through the steps; the first claim that fails ends it.
func (c *demoCommand) Run(ctx context.Context, s *streams) (err error) {
	var tools demoTools
	if c.Real {
		if tools, err = findDemoTools(); err != nil {
			return err
		}
	}
	root, err := os.MkdirTemp(c.Dir, "varve-demo-")
	if err != nil {
		return err
	}
	if c.Keep {
		fmt.Fprintf(s.out, "Varve, on real files in %s\n", root)
	} else {
		fmt.Fprintf(s.out, "Varve, on real files in %s (removed at the end; --keep leaves them)\n", root)
		defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	}
	began := time.Now()
	d := &demo{root: root, seeds: c.Seeds, tools: tools, s: s}
	for i, step := range demoSteps {
		fmt.Fprintf(s.out, "\n%d. %s\n", i+1, step.title)
		if err := s.out.Flush(); err != nil {
			return err
		}
		if err := step.run(d, ctx); err != nil {
			d.say("FAILED")
			return fmt.Errorf("demo, step %d (%s): %w", i+1, step.title, err)
		}
	}
	fmt.Fprintf(s.out, "\nEvery claim above was checked, and holds. %.1f s\n", time.Since(began).Seconds())
	return nil
}

// demo is what the steps share.
type demo struct {
	root  string
	seeds uint64
	tools demoTools // of the real servers; none: servers in this process
	s     *streams

	log    string // the directory of steps 1, 2 and 4
	killed *killed
}

// demoSteps in order. Each verifies what it claims.
var demoSteps = []struct {
	title string
	run   func(d *demo, ctx context.Context) error
}{
	{"A process appends; kill -9 in the middle of a write", (*demo).kill},
	{"Open the log again", (*demo).recover},
	{"A torn tail", (*demo).torn},
	{"A damaged byte in a sealed segment", (*demo).damage},
	{"A full restart in each fsync mode", (*demo).restart},
	{"Three tiers: an object damaged, a file damaged, the disk lost", (*demo).tiered},
	{"The same core in a simulator that crashes it", (*demo).simulate},
}

// say prints a line below a step's title.
func (d *demo) say(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), d.root+string(os.PathSeparator), "")
	fmt.Fprintf(d.s.out, "   %s\n", text)
}

// demoLives bounds the kills until one meets a write: the process may have been between two.
const demoLives = 5

// kill is step 1.
func (d *demo) kill(ctx context.Context) error {
	for life := 1; life <= demoLives; life++ {
		d.log = fmt.Sprintf("%s%clog-%d", d.root, os.PathSeparator, life)
		w := demoWriterCommand{Dir: d.log, Fsync: "on_commit", Writers: 4, Life: life, Segment: 32 << 10}
		k, err := w.kill(ctx, 1000)
		if err != nil {
			return err
		}
		if d.killed = k; k.flying > 0 {
			d.say("4 writers, fsync on_commit: an append returns when the device has the record")
			d.say("killed after %s acked records, with %d more in flight", group(len(k.acked)), k.flying)
			return nil
		}
	}
	return fmt.Errorf("none of %d kills met a write", demoLives)
}

// simulate is step 7.
func (d *demo) simulate(ctx context.Context) error {
	j := job{seeds: d.seeds, stride: 1, workers: int(min(uint64(runtime.GOMAXPROCS(0)), d.seeds)), world: d.s.world}
	r := &runReport{totals: j.run(ctx, newProgress(d.s.err, "   seeds", j.seeds, 0)), job: &j}
	if err := r.verdict(ctx, d.s); err != nil {
		if r.first != nil {
			return errors.New("a seed violated a property; the line above replays it")
		}
		return err
	}
	d.say("%s seeds, %s lives, %s appends: power losses, torn writes, failed syncs, full disks, rot", group(r.totals.seeds),
		group(r.lives), group(r.appends))
	d.say("no property violated; %s seeds/s on %d cores", group(uint64(r.perSecond(r.totals.seeds))), r.workers)
	return nil
}
