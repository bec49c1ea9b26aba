package main

import (
	"context"
	"fmt"

	"varve/broker"
	"varve/core/topics"
)

type topicRebuildCommand struct {
	Dir   string `required:"" placeholder:"D" help:"Directory of the node, which must not be running."`
	Apply bool   `help:"Write it. Without it, what would be written is printed."`
}

// Run makes a catalogue of what is left of one.
func (c *topicRebuildCommand) Run(ctx context.Context, s *streams) error {
	r, err := broker.RebuildCatalogue(ctx, c.Dir, c.Apply)
	if r != nil {
		fmt.Fprintf(s.out, "entries     %d read, %d lost\n", r.Read, r.Lost)
		for _, t := range r.Topics {
			if t.Status == topics.Live {
				fmt.Fprintf(s.out, "topic       %s, incarnation %d, %s\n", t.Name, t.Incarnation, count(int(t.Partitions), "partition"))
			}
		}
		for _, n := range r.Notes {
			fmt.Fprintf(s.out, "note        %s\n", n)
		}
	}
	if err != nil {
		return named(c.Dir, err)
	}
	if !c.Apply {
		fmt.Fprintln(s.out, "nothing was written; do it with --apply")
		return nil
	}
	fmt.Fprintln(s.out, "written     the catalogue; the node may start")
	return nil
}
