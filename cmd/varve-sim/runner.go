package main

import (
	"fmt"
	"runtime/debug"

	"varve/sim"
)

// runner runs schedules in one world after another: a world that panicked is in no state to go on.
type runner struct {
	newWorld func() simulator
	world    simulator
}

// outcome is what a run violated; check is "" if nothing.
type outcome struct {
	check, text, stack string
	result             *sim.Result // valid until the next run; nil after a panic
}

// run runs a schedule. A panic that the world lets through is a violation of "panic".
func (r *runner) run(s *sim.Schedule) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{check: "panic", text: fmt.Sprint(p), stack: string(debug.Stack())}
			r.world = nil
		}
	}()
	if r.world == nil {
		r.world = r.newWorld()
	}
	result := r.world.Run(s)
	return outcome{check: result.Check, text: result.Violation, result: result}
}
