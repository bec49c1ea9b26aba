//go:build !mutant

package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"varve"
)

// demoWriterCommand is the process that the demo kills: it appends to a log until then, and says on
// standard output what it begins and what was acked.
type demoWriterCommand struct {
	Dir     string `required:""`
	Fsync   string `required:""`
	Writers int    `required:""`
	Life    int    `required:""`
	Segment int64  `default:"268435456"`
}

// demoModes are the fsync modes by name.
var demoModes = []varve.FsyncMode{varve.OnCommit, varve.Periodic, varve.None}

func demoMode(name string) (varve.FsyncMode, error) {
	for _, m := range demoModes {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("fsync mode %q is none of on_commit, periodic, none", name)
}

// demoPause keeps the files of a short demo small where a disk syncs in no time.
const demoPause = 100 * time.Microsecond

// Run appends until it is killed; it returns only with an error.
func (c *demoWriterCommand) Run() error {
	mode, err := demoMode(c.Fsync)
	if err != nil {
		return err
	}
	ctx := context.Background()
	l, err := varve.Open(ctx, c.Dir, varve.Options{Fsync: mode, SegmentBytes: c.Segment, MinFreeBytes: -1})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) error { // a line is one write: it arrives whole or not
		mu.Lock()
		defer mu.Unlock()
		_, err := os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n")
		return err
	}
	errs := make(chan error)
	for w := range c.Writers {
		go func() {
			for n := 0; ; n++ {
				err := say("begin %d %d", w, n)
				var span varve.Span
				if err == nil {
					span, err = l.Append(ctx, varve.Record{Value: demoValue(c.Life, w, n)})
				}
				if err == nil {
					err = say("ack %d %d %d", w, n, span.First)
				}
				if err != nil {
					errs <- err
					return
				}
				time.Sleep(demoPause)
			}
		}()
	}
	return <-errs
}

// demoValue is the n-th record of a writer in a life: all of its bytes follow from its first words.
func demoValue(life, writer, n int) []byte {
	v := fmt.Appendf(nil, "life %d writer %d record %d ", life, writer, n)
	for x := uint32(n*31 + writer*7 + life); len(v) < 120+n%97; {
		x = x*1664525 + 1013904223
		v = append(v, 'a'+byte(x>>24)%26)
	}
	return v
}

// demoName reads the first words of a record; ok is false if it is not exactly one of a writer's.
func demoName(value []byte) (life, writer, n int, ok bool) {
	if _, err := fmt.Sscanf(string(value), "life %d writer %d record %d ", &life, &writer, &n); err != nil {
		return 0, 0, 0, false
	}
	return life, writer, n, string(value) == string(demoValue(life, writer, n))
}
