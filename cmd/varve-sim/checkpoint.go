package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"varve/sim"
)

// checkpointSeeds is how many seeds lie between two checkpoints: a few seconds of work, which is what
// a killed run loses.
const checkpointSeeds = 20_000

// checkpointBytesMax is far above what a checkpoint takes.
const checkpointBytesMax = 16 << 20

// checkpoint is how far a run of seeds has come, and what it found. It goes on only with the same
// program and the same arguments: other seeds, or another simulator, would be another run.
type checkpoint struct {
	Program    string           `json:"varve_sim_checkpoint"` // hash of the executable
	Args       string           `json:"args"`
	Done       uint64           `json:"done"` // seeds
	Events     uint64           `json:"events"`
	Ops        uint64           `json:"ops"`
	Appends    uint64           `json:"appends"`
	Acked      uint64           `json:"acked"`
	Lives      uint64           `json:"lives"`
	Refused    uint64           `json:"refused"`
	Violations uint64           `json:"violations"`
	Digest     uint64           `json:"digest"`
	Wall       time.Duration    `json:"wall_ns"`
	CPU        time.Duration    `json:"cpu_ns"`
	Groups     []*failureGroup  `json:"groups"`
	Marks      map[string]int64 `json:"marks"`
	Struck     map[string]int64 `json:"marks_of_violations"`
}

// resumable runs a job in parts and writes down after each how far it is.
type resumable struct {
	file, args string
	program    string
	sum        *totals
	resumed    uint64 // seeds that earlier runs did
	part       uint64 // seeds between two checkpoints
}

// openCheckpoint takes up the checkpoint in a file, or begins one.
func openCheckpoint(file, args string) (*resumable, error) {
	program, err := programHash()
	if err != nil {
		return nil, err
	}
	r := &resumable{file: file, args: args, program: program, sum: newTotals(), part: checkpointSeeds}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, r.save() // a place that cannot be written is known before the work
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, checkpointBytesMax))
	if err != nil {
		return nil, err
	}
	if err := r.load(text); err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w; run without it, or delete it to begin anew", file, err)
	}
	return r, nil
}

// programHash tells one build of the program from another.
func programHash() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

func (r *resumable) load(text []byte) error {
	var c checkpoint
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("expected one written by varve-sim run, found: %w", err)
	}
	switch {
	case c.Program != r.program:
		return fmt.Errorf("expected one of this program (%.12s), found one of another build (%.12s)", r.program, c.Program)
	case c.Args != r.args:
		return fmt.Errorf("expected one of the run %q, found one of %q", r.args, c.Args)
	}
	t := r.sum
	t.seeds, t.events, t.ops, t.appends, t.acked = c.Done, c.Events, c.Ops, c.Appends, c.Acked
	t.lives, t.refused, t.violations, t.digest = c.Lives, c.Refused, c.Violations, c.Digest
	t.wall, t.cpu = c.Wall, c.CPU
	r.resumed = c.Done
	for _, g := range c.Groups {
		if g == nil || g.Lowest == nil {
			return errors.New("expected a violation in each group, found none")
		}
		t.groups.add(g.Lowest, g.Count)
		t.checks[g.Lowest.Check] += g.Count
		if t.first == nil || g.Lowest.Seed < t.first.Seed {
			t.first = g.Lowest
		}
	}
	for names, counts := range map[*map[string]int64]*sim.MarkCounts{&c.Marks: &t.marks, &c.Struck: &t.struck} {
		for name, n := range *names {
			if !counts.Put(name, n) {
				return fmt.Errorf("expected a mark, found %q", name)
			}
		}
	}
	return nil
}

// save writes the checkpoint: all of it, or the one before stays.
func (r *resumable) save() error {
	t := r.sum
	c := checkpoint{
		Program: r.program, Args: r.args, Done: t.seeds, Events: t.events, Ops: t.ops, Appends: t.appends, Acked: t.acked,
		Lives: t.lives, Refused: t.refused, Violations: t.violations, Digest: t.digest, Wall: t.wall, CPU: t.cpu,
		Groups: t.groups.list(), Marks: map[string]int64{}, Struck: map[string]int64{},
	}
	reached(&t.marks, c.Marks)
	reached(&t.struck, c.Struck)
	text, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	return writeWhole(r.file, text)
}

// writeWhole replaces a file: after a crash it is the old one or the new one.
func writeWhole(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone if all went well
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// run runs what is left of a job. A part that does not end, because time is up, or because a violation
// ends the run, counts in the report and not in the checkpoint: the next run begins with it.
func (r *resumable) run(ctx context.Context, j *job, p *progress) (*totals, error) {
	if j.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.limit)
		defer cancel()
	}
	for r.sum.seeds < j.seeds && !j.over(r.sum) && ctx.Err() == nil {
		part := *j
		part.from, part.seeds, part.limit = j.from+r.sum.seeds*j.stride, min(r.part, j.seeds-r.sum.seeds), 0
		part.workers = int(min(uint64(j.workers), part.seeds))
		if j.detections > 0 {
			part.detections = j.detections - r.sum.violations
		}
		t := part.run(ctx, p.from(r.sum.seeds-r.resumed))
		whole := t.seeds == part.seeds
		r.sum.gather(t)
		if !whole || !j.all && t.violations > 0 {
			return r.sum, nil
		}
		if err := r.save(); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	return r.sum, nil
}

// over reports whether violations end the run.
func (j *job) over(t *totals) bool { return j.enough() > 0 && t.violations >= uint64(j.enough()) }
